"""Runs of a fit -> what is to be said of them, as notes and warnings."""

from __future__ import annotations

from gammagmm.errors import NoSolutionWarning, Note, UnsolvedRunsWarning
from gammagmm.mixture.convergence import MixtureConvergenceWarning
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import Run

__all__ = ["describe_runs"]


def describe_runs(
    runs: tuple[Run, ...], constraints: Constraints, max_iter: int
) -> list[tuple[Note, type[Warning] | None]]:
    """What is to be said of the runs: notes, each with the category of its warning if it is one."""
    n_capped = sum(not run.converged for run in runs)
    n_restarts = sum(run.n_restarts for run in runs)
    unsolved = [run for run in runs if run.status == "unsolved"]
    slack = [run for run in runs if run.status == "slack"]
    told: list[tuple[Note, type[Warning] | None]] = []
    if n_capped:
        message = f"{n_capped} of {len(runs)} runs stopped at max_iter={max_iter}: raise it or tol."
        told.append((Note("mixture", "runs", message), MixtureConvergenceWarning))
    if n_restarts:
        message = f"{n_restarts} starts had no solution and were made anew."
        told.append((Note("link", "runs", message), None))
    if slack:
        most = max(run.reachable[1] for run in slack)
        message = (
            f"{len(slack)} of {len(runs)} runs reach at most {most:.3g} for P(gamma >= "
            f"{constraints.high_gamma}), less than p_high={constraints.p_high}: delta = 0 there."
        )
        told.append((Note("link", "p_high", message), None))
    if unsolved:
        told.append(_describe_unsolved(unsolved, len(runs), constraints))
    return told


def _describe_unsolved(
    unsolved: list[Run], n_runs: int, constraints: Constraints
) -> tuple[Note, type[Warning]]:
    cause = _explain_unsolved(unsolved, constraints)
    if len(unsolved) < n_runs:
        message = f"{len(unsolved)} of {n_runs} runs have no solution and do not count: {cause}"
        return Note("link", "runs", message), UnsolvedRunsWarning
    message = (
        f"No solution in any of {n_runs} runs: {cause} The result is the point mass at 0 that the "
        "paper prescribes."
    )
    return Note("link", "runs", message), NoSolutionWarning


def _explain_unsolved(unsolved: list[Run], constraints: Constraints) -> str:
    """Why there is no solution, and what could be changed."""
    low = min(run.reachable[0] for run in unsolved)
    high = max(run.reachable[1] for run in unsolved)
    n_large = sum(run.first_share >= constraints.max_gamma for run in unsolved)
    cause = (
        f"their mixtures allow {low:.3g} to {high:.3g} for P(gamma >= {constraints.high_gamma}), "
        f"p_high is {constraints.p_high}."
    )
    if n_large == len(unsolved):
        return (
            f"{cause} Their most anomalous component alone expects max_gamma="
            f"{constraints.max_gamma} of the rows or more: raise max_gamma, or look for duplicate "
            "rows."
        )
    return f"{cause} Raise p_high or high_gamma, or look for duplicate rows."
