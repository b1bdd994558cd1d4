"""``gammagmm predict``: the answers of a kept fit for new rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gammagmm._support.files import write_document
from gammagmm._support.text import aligned, one_line, percent
from gammagmm.cli.estimate import write_folder
from gammagmm.cli.kept import open_kept
from gammagmm.cli.new_rows import prepare_part, read_new_rows
from gammagmm.cli.options import Request
from gammagmm.cli.output import N_DECIMALS, row_columns, rows_csv
from gammagmm.cli.request import check_request
from gammagmm.cli.terminal import Echo, print_answer, tell, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of
from gammagmm.table.preparation import Preparation
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Answering, Fit, RowAnswers
    from gammagmm.estimator.reasons import UsualValues

__all__ = ["Found", "find_rows", "run_predict"]

MAX_LISTED = 10_000
"""Most flagged rows of files on Dask that are listed as JSON."""
N_SHOWN = 10
"""Most rows that are shown without --out."""


@dataclass(frozen=True)
class FoundRow:
    """A new row near the top of the ranking."""

    number: int  # in its file, from 1
    name: str
    score: float
    probability: float
    is_flagged: bool
    reason: str


@dataclass(frozen=True)
class Found:
    """How many new rows there are, how many are flagged, and the first ones of the ranking."""

    n_rows: int
    n_flagged: int
    first: list[FoundRow]


def run_predict(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm predict``."""
    check_request(request)
    loaded = open_kept(cast("Path", request.kept))
    with cluster_of(request, echo):
        table = read_new_rows(loaded.fit, request)
        tell(table.notes, request, echo)
        with warnings_as_lines(echo):
            fit = loaded.checked()
            # The columns of a fit of an array have the names of the file.
            usual = fit.usual_values().renamed(table)
            answers, found = _find(fit, table, usual, request)
            fit.check_flagged(found.n_flagged, found.n_rows)
        labels, is_sorted = request.outputs.out, request.answer.is_sorted
        if request.answer.as_json:
            print_answer(_as_json(fit, table, found))
        else:
            print_answer(_as_text(fit, found, shows_rows=labels is None))
        if labels is None:
            return 0
        if answers is None:
            write_folder(labels, request, fit, table)
        else:
            columns = row_columns(table, answers, usual, fit.detector_names)
            order = answers.order if is_sorted else table.sample.all_places
            write_document(rows_csv(columns, order), labels, request.running.force)
    return 0


def _find(
    fit: Fit, table: Table, usual: UsualValues, request: Request
) -> tuple[RowAnswers | None, Found]:
    """What is found in all rows; and the answers for them, if they are in memory."""
    flagged_only = request.answer.as_json
    if table.collection is None:
        answers, n = fit.answering(table.values), len(table) if flagged_only else N_SHOWN
        return answers, find_rows(table, answers, usual, n, flagged_only)
    n = MAX_LISTED if flagged_only else N_SHOWN
    shared = table.preparation, table.name, fit.answering, usual, n, flagged_only
    parts = table.collection.gather(find_in_part, *shared)
    first = sorted(
        (row for part in parts for row in part.first),
        key=lambda row: (-row.probability, -row.score),
    )
    counts = (sum(part.n_rows for part in parts), sum(part.n_flagged for part in parts))
    return None, Found(*counts, first[:n])


def find_in_part(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    answering: Answering,
    *shared: Any,
) -> Found:
    """The same in a part of files on Dask, whose first row has the number `first`."""
    table = prepare_part(part, first, preparation, source)
    return find_rows(table, answering(table.values), *shared) if len(table) else Found(0, 0, [])


def find_rows(
    table: Table, answers: RowAnswers, usual: UsualValues, n: int, flagged_only: bool
) -> Found:
    """The `n` most anomalous rows, or flagged rows, and in which columns they are unusual."""
    from gammagmm.estimator.reasons import flag_words, reason_words

    order = answers.order
    chosen = (order[answers.labels[order] == 1] if flagged_only else order)[:n]
    names = table.row_names
    first = []
    for row, why in zip(chosen.tolist(), usual.reasons(table.values[chosen]), strict=True):
        is_flagged = bool(answers.labels[row])
        reason = flag_words(why) if is_flagged else reason_words(why)
        score, probability = float(answers.scores[row]), float(answers.probability[row])
        number = table.row_number(row)
        first.append(FoundRow(number, names[row], score, probability, is_flagged, reason))
    return Found(len(answers.labels), int(answers.labels.sum()), first)


def _as_text(fit: Fit, found: Found, *, shows_rows: bool) -> str:
    """How many rows are flagged and, if asked for, the first rows with their reasons."""
    n_rows, n_flagged = found.n_rows, found.n_flagged
    counts = (
        f"{n_flagged:,} of {n_rows:,} new rows are flagged ({percent(n_flagged / n_rows)}). Among "
        f"the training rows, {fit.n_flagged:,} of {fit.n_rows:,} are flagged "
        f"({percent(fit.n_flagged / fit.n_rows)})."
    )
    if not shows_rows:
        return counts
    heading = f"\n\nThe {len(found.first)} most anomalous of them:" if n_rows > 1 else ""
    return f"{counts}{heading}\n{aligned(_lines(found.first), n_words=5)}"


def _lines(rows: Sequence[FoundRow]) -> list[list[str]]:
    lines = [["id", "score", "probability", "flagged", "reason"]]
    for row in rows:
        numbers = [f"{row.score:.3g}", percent(row.probability)]
        flagged = "yes" if row.is_flagged else "no"
        lines.append([one_line(row.name), *numbers, flagged, one_line(row.reason)])
    return lines


def _as_json(fit: Fit, table: Table, found: Found) -> str:
    """Counts, and a record for each flagged row, the most anomalous first."""
    data = {
        "n_rows": found.n_rows,
        "n_flagged": found.n_flagged,
        "threshold": fit.threshold,
        "flagged": [
            {
                "row": row.number,
                "id": row.name,
                "score": row.score,
                "probability": round(row.probability, N_DECIMALS),
                "reason": row.reason,
            }
            for row in found.first
        ],
        "notes": [note.to_data() for note in (*table.notes, *fit.notes)],
    }
    return json.dumps(data, indent=2, allow_nan=False)
