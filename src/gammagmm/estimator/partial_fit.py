"""The partial result of a fit that timed out, and the checks of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gammagmm._support.text import percent
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors
from gammagmm.errors import FitTimeoutError
from gammagmm.estimator.parameters import Plan
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, solved_posteriors, unsolved_runs

__all__ = ["PartialFit", "check_runs", "check_time"]


@dataclass(frozen=True, eq=False, repr=False)
class PartialFit:
    """The steps of a fit that were finished when it timed out.

    Attributes
    ----------
    detector_names : list of str
        Names of the detectors that were finished: the columns of `scores`.
    detectors : dict
        These detectors, fitted, by name; None for each column of precomputed scores.
    detector_info : list of DetectorInfo
        Seconds, rows, status and reason of every detector, including the others.
    scores : ndarray of shape (n_rows, n_detectors)
        Raw scores of the training rows.
    runs : tuple of Run, default=()
        The variational runs that were finished.
    posterior : GammaPosterior or None, default=None
        Posterior from the finished runs that have a solution; None where there is no such run.
    """

    detector_names: list[str]
    detectors: dict[str, Any]
    detector_info: list[DetectorInfo]
    scores: Any
    runs: tuple[Run, ...] = ()
    posterior: GammaPosterior | None = None


def check_time(plan: Plan, fitted: FittedDetectors, runs: tuple[Run, ...] = ()) -> None:
    """Raise `FitTimeoutError` with the partial results if the deadline of the plan has passed.

    The detectors in `fitted` and the `runs` are finished.
    """
    if not plan.deadline.is_over:
        return
    solved = solved_posteriors(runs)
    posterior = combine_runs(solved) if solved else None
    names = list(fitted.detectors)
    estimate = (
        f". The finished runs estimate {percent(posterior.mean)} anomalies" if posterior else ""
    )
    n_unsolved = len(runs) - len(solved)
    unsolved = f" ({n_unsolved} without a solution)" if n_unsolved else ""
    error = FitTimeoutError(
        f"The fit exceeded timeout={plan.deadline.timeout} s. Finished: {len(names)} of "
        f"{len(fitted.info)} detectors and {len(runs)} of {plan.n_runs} runs{unsolved}{estimate}",
        "Raise timeout, or give fewer rows, detectors or runs.",
        PartialFit(names, fitted.detectors, fitted.info, fitted.scores, runs, posterior),
    )
    error.add_note("The partial results are in this error's so_far.")
    raise error


def check_runs(plan: Plan, fitted: FittedDetectors, runs: tuple[Run, ...]) -> None:
    """Check the time after the last run; a fit that finishes late is not an error."""
    if len(runs) < plan.n_runs or unsolved_runs(dict(enumerate(runs)), plan.max_restarts):
        check_time(plan, fitted, runs)
