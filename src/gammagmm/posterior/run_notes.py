"""Fitted runs -> notes about them: those that did not converge or have no solution, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gammagmm.errors import NoSolutionWarning, Note, UnsolvedRunsWarning
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import Run, count_starts

__all__ = ["describe_runs"]


def describe_runs(
    runs: Sequence[Run],
    constraints: Constraints,
    max_iter: int,
    *,
    accelerated: bool = False,
    n_separate: int = 0,
) -> list[tuple[Note, type[Warning] | None]]:
    """Notes about the runs, each with the category of its warning, or None if it is not one.

    `n_separate` rows are separate from the rest.
    """
    n_runs = len(runs)
    unsolved = [run for run in runs if run.status == "unsolved"]
    slack = [run for run in runs if run.status == "slack"]
    reached = [run.reached for run in runs if run.status == "solved"]
    asked = {"high_gamma": constraints.high_gamma, "p_high": constraints.p_high}
    described: list[tuple[Note, type[Warning] | None]] = []

    def note(category: type[Warning] | None, code: str, subject: str, **values: Any) -> None:
        described.append((Note.of(code, subject, **values), category))

    # A run that was given up has not converged either.
    if n_capped := sum(not run.converged and run.n_iter == max_iter for run in runs):
        from gammagmm.mixture.convergence import MixtureConvergenceWarning

        raised = "max_iter" if accelerated else "max_iter or tol"
        counts = {"n_capped": n_capped, "n_runs": n_runs, "max_iter": max_iter}
        note(MixtureConvergenceWarning, "mixture.max_iter", "runs", **counts, raised=raised)
    n_starts, n_unsolved = count_starts(runs)
    if n_unsolved:
        is_most = len(unsolved) < n_runs and 2 * n_unsolved > n_starts
        category = UnsolvedRunsWarning if is_most else None
        note(category, "link.starts", "runs", n_unsolved=n_unsolved, n_starts=n_starts)
    if slack:
        most = max(run.reachable[1] for run in slack)
        note(None, "link.slack", "p_high", n_slack=len(slack), n_runs=n_runs, most=most, **asked)
    # Slack runs do not count: `p_high` does not bind them.
    if reached and not 0.5 <= np.mean(reached) / constraints.p_high <= 2.0:
        found = {"reached": np.mean(reached), "n_solved": len(reached)}
        change = "lower" if np.mean(reached) > constraints.p_high else "raise"
        note(None, "link.missed", "p_high", **asked, **found, change=change)
    if unsolved:
        cause = asked | {
            "n_runs": n_runs,
            "low": min(run.reachable[0] for run in unsolved),
            "high": max(run.reachable[1] for run in unsolved),
            "max_gamma": constraints.max_gamma,
            "n_separate": n_separate,
            "is_first_large": all(r.first_share >= constraints.max_gamma for r in unsolved),
        }
        if len(unsolved) == n_runs:
            note(NoSolutionWarning, "link.no solution", "runs", **cause)
        else:
            note(None, "link.unsolved", "runs", n_unsolved=len(unsolved), **cause)
    return described
