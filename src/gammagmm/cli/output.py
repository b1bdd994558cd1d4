"""A fit -> the texts of the command line: the estimate in words and as JSON, labels as CSV."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.documents import record_to_data
from gammagmm._support.text import aligned, counted, one_line, percent, spreadsheet_safe
from gammagmm.cli.new_rows import prepare_part
from gammagmm.labels.sentences import agreement_sentence
from gammagmm.posterior.sentences import below_half_sentence, first_row_words

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Answering, Fit, RowAnswers
    from gammagmm.estimator.reasons import UsualValues
    from gammagmm.labels.group_shares import GroupShare
    from gammagmm.labels.label_error import Agreement
    from gammagmm.labels.recall import RecallResult
    from gammagmm.posterior.gamma_posterior import GammaPosterior
    from gammagmm.report.svg import ShareLine
    from gammagmm.table.preparation import Preparation
    from gammagmm.table.table import Table

__all__ = [
    "answer_json",
    "answer_text",
    "comparison_text",
    "environment",
    "labels_csv",
    "labels_words",
    "part_frame",
    "row_columns",
    "rows_csv",
]

MAX_GROUPS = 30
"""Most groups in the text."""
N_FIRST = 5
"""Rows in the text."""
MAX_NAME = 30
"""Most characters of the name of a row in the text."""
FILE_WIDTH = 10_000
"""Most characters of a line that does not go to a terminal."""

NOT_COMPARABLE = {
    "no estimate": "They cannot be compared: at least one of them has no estimate. This does not "
    "mean that its data are clean. Label 30 rows of each table with `gammagmm label` to compare "
    "them.",
    "no labels": "Without labels of rows chosen at random, the difference between two estimates "
    "says nothing reliable about the difference between the shares: such an estimate depends on "
    "assumptions. Label 30 rows of each table with `gammagmm label` to compare them.",
}
"""Why two posteriors cannot be compared, by the code of the reason."""
N_DECIMALS = 4
"""Decimals of a probability in the labels."""
EXTRA_OF = {
    **dict.fromkeys(("torch", "tqdm"), "deep"),
    "pyarrow": "data",
    "python-calamine": "excel",
    **dict.fromkeys(("dask", "distributed"), "dask"),
    "arviz": "arviz",
    "mcp": "mcp",
    "anywidget": "notebook",
    "pythresh": "experiments",
    **dict.fromkeys(("xgboost-cpu", "coniferest"), "peers"),
}
"""The extra that installs a package."""


def answer_text(
    fit: Fit,
    check: Sequence[str] = (),
    agreement: Agreement | None = None,
    command: str = "this command",
    *,
    has_out: bool = True,
) -> str:
    """The estimate in words, the first rows with their reasons, and a table of the groups.

    The sentences of a `check`, if there are any, come in place of what to do next. The `command`
    estimates the share, and writes a report and, with `has_out`, all rows. Detectors are named
    if they were skipped.
    """
    *lines, following = fit.lines
    lines += [] if agreement is None else [agreement_sentence(agreement)]
    lines += check or [following]
    if (truth := fit.truth) is not None:
        place = "inside" if truth.is_inside else "outside"
        lines.append(
            f"According to the labels in the file, the share is {percent(truth.share)}, which is "
            f"{place} the {fit.posterior.range_name}."
        )
    groups = fit.table.groups
    tables = [] if groups is None else _group_tables(fit.group_shares, groups.column)
    parts = [
        "\n".join(lines),
        _first_rows(fit, command, has_out=has_out),
        *tables,
        _skipped_detectors(fit),
    ]
    return "\n\n".join(filter(None, parts))


def _first_rows(fit: Fit, command: str, *, has_out: bool) -> str:
    """The first rows of the ranking, a line for each, and how to get all of them."""
    from gammagmm.estimator.reasons import flag_words

    table, answers = fit.table, fit.answers
    rows, names = answers.order[:N_FIRST], table.given_names
    cells = [["row", "P(anomaly)"]]
    for row in rows.tolist():
        name = one_line(str(table.row_number(row)) if names is None else names[row])
        name = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}..."
        cells.append([name, percent(float(answers.probability[row]))])
    reasons = ["", *[""] * len(rows)]
    if not fit.plan.is_precomputed:
        found = fit.usual_values().reasons(fit.rows[rows])
        reasons = ["unusual values", *(one_line(flag_words(each)) for each in found)]
    width = get_terminal_size((FILE_WIDTH, 24)).columns
    pairs = zip(aligned(cells, n_words=1).split("\n"), reasons, strict=True)
    lines = [f"  {line}  {reason}".rstrip() for line, reason in pairs]
    lines = [line if len(line) <= width else f"{line[: width - 3]}..." for line in lines]
    has_all = fit.n_rows == fit.sample.n_rows
    of = "rows" if has_all else f"of the {fit.n_rows:,} sampled rows"
    where = f" ({first_row_words(fit.preparation.columns is not None)})" if names is None else ""
    below = below_half_sentence(answers.n_below_half, fit.n_flagged)
    more = f"Add --report report.html to {command} for a page with pictures."
    if not has_out:
        pass
    elif table.collection is not None:
        more += " Add --out rows_with_scores for all rows."
    elif fit.sample.is_whole:
        more += " Add --out rows_with_scores.csv --sort for all rows."
    return "\n".join(filter(None, [f"The most unusual {of}{where}:", *lines, below, more]))


def _skipped_detectors(fit: Fit) -> str:
    """The detectors without scores, and why; empty if all have scores."""
    skipped = [
        f"{one_line(info.name)} ({info.status})"
        for info in fit.detector_info
        if info.status != "ok"
    ]
    if not skipped:
        return ""
    return f"{len(skipped)} of {len(fit.detector_info)} detectors not used: {', '.join(skipped)}."


def _group_tables(groups: Sequence[GroupShare], column: str | None) -> list[str]:
    """The flagged rows of each group and, where there are labels, its share by its own labels."""
    from gammagmm.report.page import group_lines

    name, lines = one_line(column or "group"), group_lines(groups, MAX_GROUPS)
    table = _share_table(("rows", "flagged"), "exact range", lines.flagged)
    tables = [f"Flagged rows by {name}:\n{table}"]
    if lines.n_left:
        tables[0] += f"\nThese are the {MAX_GROUPS} largest of {len(groups):,} groups."
        tables[0] += " --json prints all."
    if lines.labelled:
        table = _share_table(("labels", "anomalies"), "90% interval", lines.labelled)
        tables.append(f"Share of anomalies by {name}, from the labels of each group:\n{table}")
    return tables


def _share_table(counts: tuple[str, str], name: str, lines: Sequence[ShareLine]) -> str:
    exact = ["exact interval"] * any(line.exact is not None for line in lines)
    table = [["group", *counts, "share", name, *exact]]
    for line in lines:
        ends = [(line.low, line.high), *([] if line.exact is None else [line.exact])]
        intervals = [f"{percent(low)} to {percent(high)}" for low, high in ends]
        found = [f"{line.n_rows:,}", f"{line.n_found:,}", percent(line.share), *intervals]
        table.append([one_line(str(line.group)), *found])
    return aligned(table, n_words=1)


def answer_json(
    fit: Fit, check: RecallResult | None = None, agreement: Agreement | None = None
) -> str:
    """The summary of a fit as JSON, with the flagged rows and the groups."""
    from gammagmm.estimator.summary import summarise

    data, table, names = summarise(fit).to_data(), fit.table, fit.table.given_names
    separate, flagged = fit.evidence.separate_rows, fit.labels.nonzero()[0].tolist()
    if separate is not None:
        rows = cast("NDArray[np.intp]", separate.rows)
        numbers = [table.row_number(row) for row in rows.tolist()]
        data["evidence"]["separate_rows"]["rows"] = numbers
    data |= {
        "source": table.name,
        "flagged_rows": [table.row_number(i) for i in flagged],
        "flagged_ids": None if names is None else [names[i] for i in flagged],
        "groups": [record_to_data(each) for each in fit.group_shares] or None,
        "recall_check": None if check is None else record_to_data(check),
        "agreement": None if agreement is None else record_to_data(agreement),
    }
    return json.dumps(data, indent=2, allow_nan=False)


def row_columns(
    table: Table, answers: RowAnswers, usual: UsualValues, detectors: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Columns with a value for each row: id, score, probability, label, reason, detectors' scores.

    Only flagged rows have a reason. The ids are numbers from 1 if no column names the rows.
    """
    from gammagmm.estimator.reasons import flag_words

    flagged = np.flatnonzero(answers.labels)
    reasons = np.full(len(table), "", dtype=object)
    reasons[flagged] = [flag_words(why) for why in usual.reasons(table.values[flagged])]
    probability = [round(p, N_DECIMALS) for p in answers.probability.tolist()]
    return {
        "id": np.array(table.row_names, dtype=object),
        "score": answers.scores,
        "probability": np.array(probability, dtype=np.float64),
        "label": answers.labels,
        "reason": reasons,
        **{f"score_{name}": own for name, own in zip(detectors, answers.own.T, strict=True)},
    }


def rows_csv(columns: Mapping[str, NDArray[Any]], order: NDArray[np.intp]) -> str:
    """A line for each row with its values of `columns`, in this `order`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(spreadsheet_safe, columns))
    safe = [
        [spreadsheet_safe(cell) if isinstance(cell, str) else cell for cell in own[order].tolist()]
        for own in columns.values()
    ]
    writer.writerows(zip(*safe, strict=True))
    return text.getvalue()


def labels_csv(fit: Fit, *, is_sorted: bool = False) -> str:
    """A line for each training row, the most anomalous first if `is_sorted`."""
    table, answers = fit.table.sampled, fit.answers
    columns = row_columns(table, answers, fit.usual_values(), fit.detector_names)
    return rows_csv(columns, answers.order if is_sorted else table.sample.all_places)


def part_frame(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    answering: Answering,
    usual: UsualValues,
    detectors: Sequence[str],
    held: tuple[NDArray[np.intp], RowAnswers] | None = None,
) -> Any:
    """The columns of `row_columns` for a part of files on Dask, as a pandas frame.

    The first row of the part has the number `first`. The rows in `held`, by their numbers, have the
    answers that are given there.
    """
    import pandas as pd

    from gammagmm.estimator.fit_result import RowAnswers

    table, empty = prepare_part(part, first, preparation, source), np.empty(0)
    answers = RowAnswers(empty, empty, empty.astype(int), np.empty((0, len(detectors))))
    if len(table):
        answers = answering(table.values)
    if held is not None:
        answers = answers.replaced(first, *held)
    columns = row_columns(table, answers, usual, detectors)
    return pd.DataFrame(columns).astype({"id": "str", "reason": "str"})


def comparison_text(names: Sequence[str], pair: Sequence[GammaPosterior]) -> str:
    """A table of two posteriors and, if both use labels, which share is probably larger."""
    from gammagmm.posterior.comparison import compare_posteriors

    ranges = " or ".join(dict.fromkeys(each.range_name for each in pair))
    table = [["", "mean", ranges, "labels"]]
    for letter, name, posterior in zip("AB", names, pair, strict=True):
        cells = ["no estimate", ""]
        if posterior.has_estimate:
            low, high = (percent(end) for end in posterior.interval())
            cells = [percent(posterior.mean), f"{low} to {high}"]
        table.append([f"{letter}  {one_line(name)}", *cells, f"{posterior.n_labels:,}"])
    found = compare_posteriors(*pair)
    words = NOT_COMPARABLE.get(found["reason"]) or (
        f"The share in B exceeds that in A with probability {percent(found['prob_b_above_a'])}; "
        f"it is lower with probability {percent(found['prob_a_above_b'])}."
    )
    return f"{aligned(table, n_words=1)}\n\n{words}"


def labels_words(posterior: GammaPosterior) -> str:
    """How many labels a posterior uses, for the legend of a picture."""
    return counted(posterior.n_labels, "label") if posterior.n_labels else "without labels"


def environment() -> dict[str, str]:
    """Versions, extras, threads and GPU by name."""
    from gammagmm.estimator.summary import PACKAGES
    from gammagmm.mixture.backends import count_threads

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in (*PACKAGES, "numba", "narwhals", "pandas", "polars", *EXTRA_OF):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            extra = EXTRA_OF.get(package)
            command = f" (pip install 'gammagmm[{extra}]')" if extra else ""
            found[package] = f"not installed{command}"
    found["cores"] = str(os.cpu_count())
    found["threads"] = str(count_threads())
    found["GPU"] = _gpu()
    return found


def _gpu() -> str:
    try:
        import torch
    except ModuleNotFoundError:
        return "unknown without PyTorch"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
