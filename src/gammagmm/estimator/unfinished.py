"""Work of a fit whose time is over -> the error that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gammagmm._support.processes import Deadline
from gammagmm._support.text import percent
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors
from gammagmm.errors import FitTimeoutError
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, solved_posteriors

__all__ = ["FitSoFar", "check_runs", "check_time"]


@dataclass(frozen=True)
class FitSoFar:
    """What a fit had done when its time was over.

    Attributes
    ----------
    detector_names : list of str
        The detectors that were done: names of the columns of `scores`.
    detectors : dict
        They themselves, fitted, by name; None each for precomputed scores.
    detector_info : list of DetectorInfo
        Seconds, rows, status and reason of every detector, the others included.
    scores : ndarray of shape (n_rows, n_detectors)
        Their raw scores of the training rows. Of rows on Dask, a lazy dask array; an array with no
        rows while only a sample of them has scores.
    runs : tuple of Run
        The variational runs that were done.
    posterior : GammaPosterior or None
        Posterior from those of them that are solved; None where none is.
    """

    detector_names: list[str]
    detectors: dict[str, Any]
    detector_info: list[DetectorInfo]
    scores: Any
    runs: tuple[Run, ...] = ()
    posterior: GammaPosterior | None = None


def check_time(
    deadline: Deadline, fitted: FittedDetectors, n_runs: int, runs: tuple[Run, ...] = ()
) -> None:
    """Raise `FitTimeoutError`, with what was done, if the deadline has come.

    The detectors in `fitted` and the `runs` are done; `n_runs` were asked for.
    """
    if not deadline.is_over:
        return
    solved = solved_posteriors(runs)
    posterior = combine_runs(solved) if solved else None
    names = list(fitted.detectors)
    share = f" (by those, {percent(posterior.mean)} are anomalies)" if posterior else ""
    n_unsolved = len(runs) - len(solved)
    unsolved = f", {n_unsolved} of them without a solution so far" if n_unsolved else ""
    error = FitTimeoutError(
        f"The fit was not done after timeout={deadline.timeout} s: {len(names)} of "
        f"{len(fitted.info)} detectors were, and {len(runs)} of {n_runs} runs{unsolved}{share}. "
        "Raise timeout, or give fewer rows, detectors or runs.",
        so_far=FitSoFar(names, fitted.detectors, fitted.info, fitted.scores, runs, posterior),
    )
    error.add_note("What was done is in this error's so_far.")
    raise error


def check_runs(
    deadline: Deadline, fitted: FittedDetectors, budget: tuple[int, int], runs: tuple[Run, ...]
) -> None:
    """The same after the last run: a fit that is done, if late, is done.

    `budget` is (n_runs, max_restarts).
    """
    n_runs, max_restarts = budget
    n_restarts = sum(run.n_restarts for run in runs)
    is_unsolved = any(run.status == "unsolved" for run in runs)
    if len(runs) < n_runs or (is_unsolved and n_restarts < max_restarts):
        check_time(deadline, fitted, n_runs, runs)
