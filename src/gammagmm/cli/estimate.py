"""``gammagmm estimate``: fit, print the estimate, write the files that were asked for.

scikit-learn and PyOD take seconds to import, so that is done after the rows have been read: a bad
file is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gammagmm._support.files import write_document
from gammagmm._support.progress import progress_bar, quiet
from gammagmm._support.text import one_line, percent
from gammagmm.cli.columns import columns_text
from gammagmm.cli.commands import label_commands
from gammagmm.cli.fitting import kept_fit
from gammagmm.cli.kept import check_kept, open_kept
from gammagmm.cli.options import Request
from gammagmm.cli.output import answer_json, answer_text, labels_csv, part_frame
from gammagmm.cli.request import (
    UsageError,
    check_fail_above,
    check_request,
    check_sample,
    choices_for,
    label_sheets,
)
from gammagmm.cli.sheet import agreement_of, checked_words, read_answers
from gammagmm.cli.terminal import Echo, print_answer, warnings_as_lines
from gammagmm.cli.training_rows import cluster_of, read_columns, read_training_rows
from gammagmm.distributed.parquet import write_parquet
from gammagmm.errors import TableError
from gammagmm.labels.sheet import Sheet, recall_check
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.distributed.collection import Collection
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "ABOVE_LIMIT",
    "check_agreement",
    "estimate_rows",
    "file_writers",
    "run_estimate",
    "write_folder",
]

ABOVE_LIMIT = 3
"""Exit code if the interval lies above ``--fail-above``."""


def run_estimate(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm estimate``."""
    if request.kept is not None:
        check_kept(request)
    check_request(request, needs_files=request.kept is None)
    check_fail_above(request)
    if request.kept is not None:
        fit = open_kept(request.kept).fit
        if request.outputs.out is not None and not fit.sample.is_whole:
            raise UsageError(
                f"{request.kept} has a sample of the table, and --out writes all of its rows",
                "Give the files to gammagmm predict, with --engine dask and --out.",
            )
        return estimate_rows(fit.table, request, echo, fit)
    with cluster_of(request, echo):
        if request.answer.columns:
            raw, by = read_columns(request), request.labelling.by
            print_answer(columns_text(raw, choices_for(raw, request.reading, by), by))
            return 0
        sheets = [path for path, _ in label_sheets(request.labelling)]
        sheets += [path for path in [request.labelling.second_labels] if path is not None]
        return estimate_rows(read_training_rows(request, sheets), request, echo)


def estimate_rows(table: Table, request: Request, echo: Echo, fit: Fit | None = None) -> int:
    """Exit code after the rows of `table` are estimated and the outputs written.

    They are fitted unless their `fit` is given.
    """
    table = replace(
        table,
        notes=(*request.running.notes, *table.notes),
        commands=table.commands or label_commands(request, table.name),
    )
    paths = label_sheets(request.labelling)
    # Before the fit, so that a bad sheet is refused at once.
    sheets = [(path, read_answers(path, table), how) for path, how in paths]
    check_agreement([(path, sheet) for path, sheet, _ in sheets], table)
    path = request.labelling.second_labels
    second = None if path is None else read_answers(path, table)
    if request.answer.fail_above is not None:
        check_sample([sheet for _, sheet, at_random in sheets if at_random])
    with warnings_as_lines(echo):
        if fit is None:
            fit = kept_fit(table, request, [path for path, _ in paths], echo)
        else:
            fit = fit.with_table(table)
        if sheets:
            labelled = fit.labelled_rows
            for _, sheet, at_random in sheets:
                labelled = sheet.label(labelled, at_random=at_random)
            fit = fit.with_labels(labelled)
        labelled, all_sheets = fit.labelled_rows, [sheet for _, sheet, _ in sheets]
        agreement = agreement_of(all_sheets, second, labelled)
        has_out = bool(request.reading.paths) or request.kept is not None  # not the demo
        if request.answer.as_json:
            text = answer_json(fit, recall_check(all_sheets, labelled), agreement)
        else:
            text = answer_text(fit, checked_words(all_sheets, labelled), agreement, has_out=has_out)
        # In here, so that the answer stands before the warnings.
        _write_each([lambda: print_answer(text), *file_writers(request, fit)], echo)
    return _exit_code(request.answer.fail_above, fit.posterior, echo)


def check_agreement(sheets: Sequence[tuple[Path, Sheet]], table: Table) -> None:
    """Refuse a row that has different labels in two sheets."""
    seen: dict[int, tuple[int, Path]] = {}
    for path, sheet in sheets:
        for row, label in zip(sheet.rows, sheet.answers, strict=True):
            if label is None:
                continue
            before, other = seen.setdefault(row, (label, path))
            if before != label:
                raise TableError(
                    f"Row {table.row_number(row)} is {before} in {other} and {label} in {path}",
                    "Correct one of them.",
                )


def file_writers(request: Request, fit: Fit) -> Iterator[Callable[[], None]]:
    """A function for each file that was asked for, which writes it completely or not at all."""
    outputs, force, is_sorted = request.outputs, request.running.force, request.answer.is_sorted
    labels, is_large = outputs.out, fit.table.collection is not None
    if save := request.save:
        from gammagmm.estimator.saved_fit import save_fit

        yield lambda: save_fit(fit, save, overwrite=force)
    if labels and not is_large:
        yield lambda: write_document(labels_csv(fit, is_sorted=is_sorted), labels, force)
    if posterior := outputs.posterior:
        yield lambda: fit.posterior.save(posterior, overwrite=force)
    if report := outputs.report:
        yield lambda: _write_report(request, fit, report)
    if picture := outputs.picture:
        from gammagmm.report.plots import save_picture

        yield lambda: save_picture(fit.posterior.plot, picture, force)
    # Last, because this takes longest and the cluster can be lost.
    if labels and is_large:
        yield lambda: write_folder(labels, request, fit, fit.table, fit.held_by_number)


def _write_report(request: Request, fit: Fit, path: Path) -> None:
    from gammagmm.report.page import write_report

    with progress_bar("report", {}, request.running.quiet):
        write_report(fit, path, request.running.force)


def write_folder(folder: Path, request: Request, fit: Fit, table: Table, held: Any = None) -> None:
    """Write a line for each row of `table` on Dask to a folder of Parquet files: `part_frame`."""
    collection = cast("Collection", table.collection)
    usual = fit.usual_values().renamed(table)
    shared = table.preparation, table.name, fit.answering, usual, fit.detector_names, held
    frame = collection.frame(part_frame, *shared)
    if request.answer.is_sorted:
        frame = frame.sort_values(["probability", "score"], ascending=[False, False])
    blocks = {f"block {i + 1}": 0.0 for i in range(frame.npartitions)}
    with progress_bar("labels", blocks, request.running.quiet) as progress:
        force, client = request.running.force, collection.client
        write_parquet(frame, folder, force, progress or quiet, client)


def _write_each(steps: Sequence[Callable[[], None]], echo: Echo) -> None:
    """Do every step, even if others cannot write; then raise the first error, print the others."""
    errors: list[OSError] = []
    for step in steps:
        try:
            step()
        except OSError as error:
            errors.append(error)
    for other in errors[1:]:
        echo(f"gammagmm: {one_line(f'{other.filename}: {other.strerror}')}.")
    if errors:
        raise errors[0]


def _exit_code(fail_above: float | None, posterior: GammaPosterior, echo: Echo) -> int:
    """Exit code by ``--fail-above``."""
    if fail_above is None:
        return 0
    low, high = posterior.interval()
    interval = f"the 90% interval {percent(low)} to {percent(high)}"
    if low > fail_above:
        echo(f"gammagmm: {interval} lies above --fail-above {fail_above:g}.")
        return ABOVE_LIMIT
    if high > fail_above:
        limit = f"--fail-above {fail_above:g}"
        echo(f"gammagmm: {interval} contains {limit}: label more rows to decide.")
    return 0
