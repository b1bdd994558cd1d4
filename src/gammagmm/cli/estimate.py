"""``gammagmm estimate``: fit, print the estimate, write the files that were asked for.

scikit-learn and PyOD take seconds to import, so that is done after the rows have been read: a bad
file is refused at once.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gammagmm._support.files import write_document
from gammagmm._support.platform import is_closed_pipe
from gammagmm._support.progress import block_bar, quiet, working
from gammagmm._support.text import one_line, percent
from gammagmm.blocks.cluster import open_cluster
from gammagmm.cli.columns import columns_text
from gammagmm.cli.fitting import Echo, kept_fit
from gammagmm.cli.kept import check_kept, keep_fit, kept_path, open_kept
from gammagmm.cli.options import Request
from gammagmm.cli.output import answer_json, answer_text, labels_csv
from gammagmm.cli.request import (
    check_estimate,
    check_sample,
    choices_for,
    label_sheets,
    read_blocks,
    read_rows,
    read_table,
)
from gammagmm.cli.sheet import Sheet, read_answers
from gammagmm.errors import TableError
from gammagmm.report.origin import Origin

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "ABOVE_LIMIT",
    "check_agreement",
    "estimate_rows",
    "file_writers",
    "print_answer",
    "run_estimate",
    "warnings_as_lines",
]

ABOVE_LIMIT = 3
"""Exit code if the interval lies above ``--fail-above``."""


def run_estimate(request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm estimate``."""
    if request.kept is not None:
        check_kept(request)
        request = replace(request, kept=kept_path(request.kept))
    if request.save is not None:
        request = replace(request, save=kept_path(request.save))
    check_estimate(request)
    if request.kept is not None:
        loaded, origin = open_kept(request.kept)
        return estimate_rows(loaded.fit.space.rows, origin, request, echo, loaded.fit)
    if request.answer.columns:
        raw = read_table(request.reading)
        by = request.labelling.by
        print_answer(columns_text(raw, choices_for(raw, request.reading, by), by))
        return 0
    if request.engine.name == "memory":
        X, origin = read_rows(request.reading, by=request.labelling.by)
        return estimate_rows(X, origin, request, echo)
    # When a connection is lost, Dask and asyncio log tracebacks that would hide our two lines.
    logging.disable(logging.CRITICAL)
    jobs = request.method.jobs
    with open_cluster(request.engine.scheduler, jobs if jobs > 0 else None) as client:
        if not request.running.quiet:
            echo(f"dashboard: {client.dashboard_link}")
        X, origin = read_blocks(request.reading, client)
        return estimate_rows(X, origin, request, echo)


def estimate_rows(
    X: Any, origin: Origin, request: Request, echo: Echo, fit: Fit | None = None
) -> int:
    """Exit code after the rows `X`, in memory or on Dask, are estimated and the outputs written.

    They are fitted unless their `fit` is given.
    """
    origin = replace(origin, notes=(*request.running.notes, *origin.notes))
    paths = label_sheets(request.labelling)
    # Before the fit, so that a bad sheet is refused at once.
    sheets = [(path, read_answers(path, X, origin), how) for path, how in paths]
    check_agreement([(path, sheet) for path, sheet, _ in sheets], origin)
    if request.answer.fail_above is not None:
        check_sample([sheet for _, sheet, at_random in sheets if at_random])
    with warnings_as_lines(echo):
        if fit is None:
            fit = kept_fit(X, origin, request, [path for path, _ in paths], echo)
        if sheets:
            labelled = fit.labelled_rows
            for _, sheet, at_random in sheets:
                labelled = sheet.label(labelled, at_random=at_random)
            fit = fit.with_labels(labelled)
    text = (answer_json if request.answer.as_json else answer_text)(fit, origin)
    _write_each([lambda: print_answer(text), *file_writers(X, origin, request, fit)], echo)
    return _exit_code(request.answer.fail_above, fit.posterior, echo)


def check_agreement(sheets: Sequence[tuple[Path, Sheet]], origin: Origin) -> None:
    """Refuse a row that has different labels in two sheets."""
    seen: dict[int, tuple[int, Path]] = {}
    for path, sheet in sheets:
        for row, label in zip(sheet.rows, sheet.answers, strict=True):
            if label is None:
                continue
            before, other = seen.setdefault(row, (label, path))
            if before != label:
                raise TableError(
                    f"Row {origin.row_number(row)} is {before} in {other} and {label} in {path}",
                    "Correct one of them.",
                )


@contextmanager
def warnings_as_lines(echo: Echo) -> Iterator[None]:
    """Write each warning to standard error as one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        echo(f"warning: {one_line(' '.join(str(warning.message).split()))}")


def print_answer(text: str) -> None:
    """Write to standard output; a reader that has closed it is not an error."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        # Python flushes standard output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not is_closed_pipe(error):
            raise OSError(error.errno, error.strerror, "standard output") from error


def file_writers(
    X: Any, origin: Origin, request: Request, fit: Fit
) -> Iterator[Callable[[], None]]:
    """A function for each file that was asked for, which writes it completely or not at all."""
    outputs, force = request.outputs, request.running.force
    labels, is_in_memory = outputs.labels, fit.space.is_in_memory
    if save := request.save:
        yield lambda: keep_fit(fit, origin, save, force)
    if labels and is_in_memory:
        is_sorted = request.answer.is_sorted
        yield lambda: write_document(labels_csv(fit, origin, is_sorted=is_sorted), labels, force)
    if posterior := outputs.posterior:
        yield lambda: fit.posterior.save(posterior, overwrite=force)
    if report := outputs.report:
        yield lambda: _write_report(X, origin, request, fit, report)
    if picture := outputs.picture:
        from gammagmm.report.plots import save_picture

        yield lambda: save_picture(fit.posterior, picture, force)
    # Last, because this takes longest and the cluster can be lost.
    if labels and not is_in_memory:
        yield lambda: _write_folder(labels, request, fit)


def _write_report(X: Any, origin: Origin, request: Request, fit: Fit, path: Path) -> None:
    from gammagmm.report.page import write_report

    with working("report", request.running.quiet):
        write_report(fit, path, X, origin, request.running.force)


def _write_folder(folder: Path, request: Request, fit: Fit) -> None:
    """Write a line for each row on Dask to a folder of Parquet files."""
    with block_bar(fit.space.n_blocks, request.running.quiet) as progress:
        fit.to_parquet(folder, request.running.force, progress or quiet)


def _write_each(steps: Sequence[Callable[[], None]], echo: Echo) -> None:
    """Do every step, even if others cannot write; then raise the first error, print the others."""
    errors: list[OSError] = []
    for step in steps:
        try:
            step()
        except OSError as error:
            errors.append(error)
    for other in errors[1:]:
        echo(f"gammagmm: {one_line(str(other))}")
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
