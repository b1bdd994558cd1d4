"""What ``estimate`` and ``inspect`` do with the rows: fit, say the answer, write what is asked."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gammagmm._checks import as_generator
from gammagmm.bars import progress_bars, working
from gammagmm.dialogue import Inspection, ask_rows, write_sheet
from gammagmm.documents import write_document
from gammagmm.estimator import GammaGMM
from gammagmm.origin import Origin
from gammagmm.outputs import answer_json, labels_csv
from gammagmm.presets import NAMES, PRESETS
from gammagmm.request import Request
from gammagmm.sheets import SHEET, read_answers, read_sheet
from gammagmm.wording import (
    known_sentence,
    percent,
    rows_sentence,
    sentence,
    shape_words,
    terminal_safe,
)

__all__ = [
    "FAILED_ABOVE",
    "answer",
    "fit",
    "fit_and_tell",
    "inspect_and_tell",
    "judge",
    "say",
    "write_posterior",
]

FAILED_ABOVE = 3
"""Exit code where the mean exceeds ``--fail-above``."""


def fit_and_tell(
    request: Request, X: Any, origin: Origin, echo: Callable[[str], None]
) -> tuple[Any, int]:
    """The fitted estimator and the exit code; the answer goes to standard output, then the files.

    `echo` writes a line to standard error.
    """
    # Before the work, so that a wrong sheet is refused at once.
    sheets = ((request.inspected, True), (request.known, False))
    answers = [(read_answers(path, X, origin), how) for path, how in sheets if path is not None]
    estimator = fit(request, X, origin, echo)
    for given, at_random in answers:
        estimator.update(*given, at_random=at_random)
    told = answer_json(estimator, origin) if request.as_json else answer(estimator, origin)
    say(told)
    _write(request, estimator, X, origin)
    return estimator, judge(request, estimator.posterior_, echo)


def inspect_and_tell(request: Request, X: Any, origin: Origin, echo: Callable[[str], None]) -> None:
    """Write the rows to look at to a sheet, or ask for their labels one by one."""
    path = request.sheet or Path(SHEET)
    if request.ask and not request.force and path.exists():
        read_sheet(path, X, origin)  # before the work, so that a wrong one is refused at once
    inspection = Inspection(
        estimator=fit(request, X, origin, echo),
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
    say(answer(inspection.estimator, origin))


def say(text: str) -> None:
    """Write to standard output; that nobody listens any more is no reason to lose the files."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # What Python writes when it ends goes nowhere, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


def fit(request: Request, X: Any, origin: Origin, echo: Callable[[str], None]) -> Any:
    """The fitted estimator; warnings and notes go to standard error, a line each."""
    detectors = _detectors(request.parameters.get("detectors", "classic"))
    parameters = request.parameters | {"detectors": detectors}
    n_detectors = len(PRESETS.get(detectors, ()) if isinstance(detectors, str) else detectors)
    if not request.quiet:
        for note in origin.notes:
            echo(f"note: {terminal_safe(note.subject)}: {terminal_safe(note.message)}")
    n_runs = parameters.get("n_runs", 10)
    with (
        warnings.catch_warnings(record=True) as caught,
        progress_bars(n_detectors, n_runs, request.quiet) as progress,
    ):
        warnings.simplefilter("always")
        estimator = GammaGMM(**parameters, progress=progress).fit(X)
    for warning in caught:
        echo(f"warning: {terminal_safe(str(warning.message))}")
    return estimator


def _detectors(words: str) -> str | list[str]:
    """A preset, or names with commas."""
    names = [name.strip() for name in words.split(",")]
    return names if len(names) > 1 or names[0] in NAMES else names[0]


def answer(estimator: Any, origin: Origin) -> str:
    """The answer in words, and a table of the detectors."""
    posterior = estimator.posterior_
    lines = [_lead(posterior), rows_sentence(int(estimator.labels_.sum()), len(estimator.labels_))]
    if (shape := shape_words(posterior)) and not posterior.is_degenerate:
        lines.append(shape)
    if n_known := len(estimator.known_rows_):
        n_found = int(estimator.known_rows_.labels.sum())
        lines.append(known_sentence(n_known, n_found, estimator.fitted_posterior_))
    if origin.truth is not None:
        share = float(origin.truth.mean())
        low, high = posterior.interval()
        place = "inside" if low <= share <= high else "outside"
        lines.append(f"By the labels in the file {percent(share)} are: {place} the interval.")
    return " ".join(lines) + "\n\n" + detector_table(estimator)


def _lead(posterior: Any) -> str:
    if posterior.is_degenerate:
        return "No solution: no mixture of these scores agrees with p_high, so the estimate is 0."
    return sentence(posterior)


def detector_table(estimator: Any) -> str:
    """What became of each detector, in columns."""
    heads = ["detector", "status", "rows fitted", "seconds", "threshold"]
    rows = []
    for info in estimator.detector_info_:
        threshold = estimator.thresholds_.get(info.name)
        shown = "" if threshold is None else f"{threshold:.4g}"
        name = terminal_safe(info.name)
        rows.append([name, info.status, f"{info.n_rows}", f"{info.seconds:.1f}", shown])
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(_aligned(line, widths) for line in [heads, *rows])


def _aligned(cells: list[str], widths: list[int]) -> str:
    """Words to the left, numbers to the right."""
    pairs = enumerate(zip(cells, widths, strict=True))
    return "  ".join(c.ljust(w) if j < 2 else c.rjust(w) for j, (c, w) in pairs).rstrip()


def _write(request: Request, estimator: Any, X: Any, origin: Origin) -> None:
    """The files that were asked for, each whole or not at all."""
    if request.labels:
        write_document(labels_csv(estimator, origin), request.labels, request.force)
    write_posterior(request, estimator.posterior_)
    if request.report:
        from gammagmm.report import write_report

        with working("report", request.quiet):
            write_report(estimator, request.report, X, origin, request.force)


def write_posterior(request: Request, posterior: Any) -> None:
    """The posterior as JSON and as a picture, where that was asked for."""
    if request.posterior:
        posterior.save(request.posterior, overwrite=request.force)
    if request.picture:
        from gammagmm.plots import save_picture

        save_picture(posterior, request.picture, request.force)
