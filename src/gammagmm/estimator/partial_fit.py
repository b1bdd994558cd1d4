"""The partial results of a fit without an answer that timed out, and the checks of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gammagmm._support.text import listed
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors
from gammagmm.errors import FitTimeoutError, Note
from gammagmm.estimator.parameters import Plan
from gammagmm.posterior.runs import Run, solved_posteriors, unsolved_runs

__all__ = ["PartialFit", "check_detectors", "check_runs"]


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
        The variational runs that were finished; none of them has a solution.
    """

    detector_names: list[str]
    detectors: dict[str, Any]
    detector_info: list[DetectorInfo]
    scores: Any
    runs: tuple[Run, ...] = ()

    @property
    def waited_for(self) -> list[str]:
        """Names of the detectors that had started and did not finish in time."""
        late = [info for info in self.detector_info if info.status == "timeout"]
        return [info.name for info in late if info.seconds > 0.0]


def check_detectors(plan: Plan, fitted: FittedDetectors) -> None:
    """Raise `FitTimeoutError` if the deadline has passed and leaves no time for the mixtures."""
    if plan.deadline.is_over:
        raise _timeout_error(plan, fitted)


def check_runs(plan: Plan, fitted: FittedDetectors, runs: tuple[Run, ...]) -> list[Note]:
    """A note if the deadline interrupted runs; `FitTimeoutError` if no other run has a solution.

    A fit that finishes late is not an error.
    """
    n_done = len(runs) - len(unsolved_runs(dict(enumerate(runs)), plan.max_restarts))
    if n_done == plan.n_runs:
        return []
    if not solved_posteriors(runs):
        raise _timeout_error(plan, fitted, runs)
    counts = {"n_done": n_done, "n_runs": plan.n_runs, "timeout": plan.deadline.timeout}
    return [Note.of("mixture.timeout", "runs", **counts)]


def _timeout_error(
    plan: Plan, fitted: FittedDetectors, runs: tuple[Run, ...] = ()
) -> FitTimeoutError:
    """The error of a fit without a result, whose detectors in `fitted` and `runs` are finished."""
    names = list(fitted.detectors)
    so_far = PartialFit(names, fitted.detectors, fitted.info, fitted.scores, runs)
    unsolved = f" ({len(runs)} without a solution)" if runs else ""
    waited = f". It waited for {listed(so_far.waited_for)}" if so_far.waited_for else ""
    error = FitTimeoutError(
        f"The fit exceeded timeout={plan.deadline.timeout} s. Finished: {len(names)} of "
        f"{len(fitted.info)} detectors and {len(runs)} of {plan.n_runs} runs{unsolved}{waited}",
        "Raise timeout, or give fewer rows, detectors or runs.",
        so_far,
    )
    error.add_note("The partial results are in this error's so_far.")
    return error
