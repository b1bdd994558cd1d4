"""What `estimate` does: fit, say the answer, write what was asked for."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gammagmm._support.checks import as_generator
from gammagmm._support.files import write_document
from gammagmm._support.progress import block_bar, progress_bars, quiet, working
from gammagmm._support.text import one_line, percent
from gammagmm.blocks.cluster import open_cluster
from gammagmm.blocks.parquet import read_parquet
from gammagmm.cli.inspect import Inspection, ask_rows, write_sheet
from gammagmm.cli.output import answer_json, labels_csv
from gammagmm.cli.request import Request
from gammagmm.cli.sheet import SHEET, read_answers, read_sheet
from gammagmm.detectors.presets import NAMES, PRESETS
from gammagmm.errors import Note, TableError
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.posterior.sentences import known_sentence, rows_sentence, sentence, shape_words
from gammagmm.report.origin import Origin

__all__ = [
    "FAILED_ABOVE",
    "answer",
    "do_each",
    "estimate_blocks",
    "fit_and_tell",
    "fit_rows",
    "inspect_and_tell",
    "judge",
    "say",
    "writers",
]

FAILED_ABOVE = 3
"""Exit code where the mean exceeds ``--fail-above``."""


def fit_and_tell(
    request: Request, X: Any, origin: Origin, echo: Callable[[str], None]
) -> tuple[Any, int]:
    """The fit and the exit code; the answer goes to standard output, then the files.

    `echo` writes a line to standard error.
    """
    # Before the work, so that a wrong sheet is refused at once.
    sheets = ((request.inspected, True), (request.known, False))
    answers = [(read_answers(path, X, origin), how) for path, how in sheets if path is not None]
    fit = fit_rows(request, X, origin, echo).fit_
    for given, at_random in answers:
        fit = fit.update(*given, at_random=at_random)
    told = answer_json(fit, origin) if request.as_json else answer(fit, origin)
    # One that fails is no reason to lose the others.
    do_each([lambda: say(told), *writers(request, fit, X, origin)], echo)
    return fit, judge(request, fit.posterior, echo)


def inspect_and_tell(request: Request, X: Any, origin: Origin, echo: Callable[[str], None]) -> None:
    """Write the rows to look at to a sheet, or ask for their labels one by one."""
    path = request.sheet or Path(SHEET)
    if request.ask and not request.force and path.exists():
        read_sheet(path, X, origin)  # before the work, so that a wrong one is refused at once
    inspection = Inspection(
        estimator=fit_rows(request, X, origin, echo),
        X=X,
        origin=origin,
        path=path,
        n=request.n,
        strategy=request.strategy,
        is_new=request.force,
        rng=as_generator(request.parameters["random_state"]),
    )
    if not request.ask:
        say(write_sheet(inspection, request.force))
        return
    ask_rows(inspection, echo)
    say(answer(inspection.estimator.fit_, origin))


def say(text: str) -> None:
    """Write to standard output; that nobody listens any more is no error."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        # What Python writes when it ends goes nowhere, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from error


def do_each(steps: list[Callable[[], None]], echo: Callable[[str], None]) -> None:
    """Do every step; where some cannot write, the first is raised and the others are told."""
    failed: list[OSError] = []
    for step in steps:
        try:
            step()
        except OSError as error:
            failed.append(error)
    for other in failed[1:]:
        echo(f"gammagmm: {one_line(str(other))}")
    if failed:
        raise failed[0]


def judge(request: Request, posterior: Any, echo: Callable[[str], None]) -> int:
    """Exit code by ``--fail-above``; an answer that is none does not pass."""
    if request.fail_above is None:
        return 0
    asked = f"--fail-above {request.fail_above:g}"
    if posterior.is_degenerate:
        echo(f"gammagmm: there is no estimate to compare with {asked}.")
        return FAILED_ABOVE
    if posterior.mean > request.fail_above:
        echo(f"gammagmm: the estimate {percent(posterior.mean)} exceeds {asked}.")
        return FAILED_ABOVE
    return 0


def fit_rows(request: Request, X: Any, origin: Origin, echo: Callable[[str], None]) -> Any:
    """The fit; warnings and notes go to standard error, a line each."""
    detectors = _detectors(request.parameters.get("detectors", "classic"))
    parameters = request.parameters | {"detectors": detectors}
    n_detectors = len(PRESETS.get(detectors, ()) if isinstance(detectors, str) else detectors)
    if not request.quiet:
        for note in origin.notes:
            echo(f"note: {one_line(note.subject)}: {one_line(note.message)}")
    n_runs = parameters.get("n_runs", 10)
    with (
        warnings.catch_warnings(record=True) as caught,
        progress_bars(n_detectors, n_runs, request.quiet) as progress,
    ):
        warnings.simplefilter("always")
        estimator = GammaGMM(**parameters, progress=progress).fit(X)
    for warning in caught:
        echo(f"warning: {one_line(' '.join(str(warning.message).split()))}")
    return estimator


def _detectors(words: str) -> str | list[str]:
    """A preset, or names with commas."""
    names = [name.strip() for name in words.split(",")]
    return names if len(names) > 1 or names[0] in NAMES else names[0]


def answer(fit: Fit, origin: Origin) -> str:
    """The answer in words, and a table of the detectors."""
    posterior = fit.posterior
    n_rows, n_flagged = (fit.n_rows, fit.n_flagged)
    lines = [_lead(posterior), rows_sentence(n_flagged, n_rows)]
    if (shape := shape_words(posterior)) and not posterior.is_degenerate:
        lines.append(shape)
    if n_known := len(fit.known_rows):
        n_found = int(fit.known_rows.labels.sum())
        lines.append(known_sentence(n_known, n_found, fit.fitted_posterior))
    if origin.truth is not None:
        share = float(origin.truth.mean())
        low, high = posterior.interval()
        place = "inside" if low <= share <= high else "outside"
        lines.append(f"By the labels in the file {percent(share)} are: {place} the interval.")
    return " ".join(lines) + "\n\n" + detector_table(fit)


def _lead(posterior: Any) -> str:
    if posterior.is_degenerate:
        return "No solution: no mixture of these scores agrees with p_high, so the estimate is 0."
    return sentence(posterior)


def detector_table(fit: Fit) -> str:
    """What became of each detector, in columns."""
    heads = ["detector", "status", "rows fitted", "seconds", "threshold"]
    rows = []
    for info in fit.detector_info:
        threshold = fit.thresholds.get(info.name)
        shown = "" if threshold is None else f"{threshold:.4g}"
        name = one_line(info.name)
        rows.append([name, info.status, f"{info.n_rows}", f"{info.seconds:.1f}", shown])
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(_aligned(line, widths) for line in [heads, *rows])


def _aligned(cells: list[str], widths: list[int]) -> str:
    """Words to the left, numbers to the right."""
    pairs = enumerate(zip(cells, widths, strict=True))
    return "  ".join(c.ljust(w) if j < 2 else c.rjust(w) for j, (c, w) in pairs).rstrip()


def writers(request: Request, fit: Fit, X: Any, origin: Origin) -> Iterator[Callable[[], None]]:
    """For each file that was asked for, what writes it, whole or not at all."""
    force = request.force
    if labels := request.labels:
        yield lambda: write_document(labels_csv(fit, origin), labels, force)
    if posterior := request.posterior:
        yield lambda: fit.posterior.save(posterior, overwrite=force)
    if report := request.report:
        yield lambda: _report(fit, report, X, origin, request)
    if picture := request.picture:
        from gammagmm.report.plots import save_picture

        yield lambda: save_picture(fit.posterior, picture, force)


def _report(fit: Fit, path: Path, X: Any, origin: Origin, request: Request) -> None:
    from gammagmm.report.page import write_report

    with working("report", request.quiet):
        write_report(fit, path, X, origin, request.force)


def estimate_blocks(request: Request, echo: Callable[[str], None]) -> int:
    """Exit code; the answer goes to standard output, then the files.

    `echo` writes a line to standard error.
    """
    # Dask's and asyncio's tracebacks of a connection that is gone would bury our two lines.
    logging.disable(logging.CRITICAL)
    n_jobs = request.parameters["n_jobs"]
    with open_cluster(request.scheduler, n_jobs if n_jobs > 0 else None) as client:
        if not request.quiet:
            echo(f"dashboard: {client.dashboard_link}")
        X, origin = _read(request)
        fit = fit_rows(request, X, origin, echo).fit_
        told = answer_json(fit, origin) if request.as_json else answer(fit, origin)
        files = writers(replace(request, labels=None), fit, X, origin)
        do_each([lambda: say(told), *files, lambda: _write_labels(request, fit)], echo)
    return judge(request, fit.posterior, echo)


def _write_labels(request: Request, fit: Fit) -> None:
    """A folder of Parquet files with a line for each row, where it was asked for."""
    if request.labels:
        n_blocks = fit.labels.npartitions
        with block_bar(n_blocks, request.quiet) as progress:
            fit.to_parquet(request.labels, request.force, progress or quiet)


def _read(request: Request) -> tuple[Any, Origin]:
    """The features of the files as a dask data frame, and where they came from."""
    frame, choices = read_parquet(request.paths), request.choices
    wanted = [name for name in (*choices.drop, choices.id) if name is not None]
    for name in wanted:
        if name not in frame.columns:
            raise TableError(f"There is no column {name!r}. The columns: {list(frame.columns)}.")
    frame, notes = _drop_missing(frame, choices), []
    if choices.missing == "drop":
        notes.append(Note("tables", "missing", "rows with missing values left out"))
    if choices.id is not None:
        frame = frame.map_partitions(_set_index, choices.id)
    frame = frame[[name for name in frame.columns if name not in wanted]]
    columns = tuple(str(name) for name in frame.columns)
    name = one_line(", ".join(request.paths))
    return frame, Origin(name, columns=columns, notes=tuple(notes))


def _drop_missing(frame: Any, choices: Any) -> Any:
    if choices.missing != "drop":
        return frame
    return frame.dropna(subset=[name for name in frame.columns if name not in choices.drop])


def _set_index(part: Any, column: str) -> Any:
    return part.set_index(column)
