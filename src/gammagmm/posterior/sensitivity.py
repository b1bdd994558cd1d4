"""Fitted runs -> the posterior under other answers of the user, or from other detectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.components import Components
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs, run_posterior
from gammagmm.posterior.link import (
    AveragedConditionals,
    Constraints,
    anomalousness,
    conditional_probabilities,
    draw_parameters,
    solve_link,
)
from gammagmm.posterior.runs import Run, fit_runs, plan_runs, solved_posteriors

__all__ = ["DrawnRun", "draw_runs", "leave_one_out", "relink"]

Array = NDArray[np.float64]

N_DRAWS = 1000
N_COMPONENTS = 100
MAX_RESTARTS = 5
SAMPLE_ROWS = 1000
"""Most rows that `leave_one_out` fits mixtures to."""


@dataclass(frozen=True)
class DrawnRun:
    """A run's components with draws of each one's r, to be used for any constraints."""

    components: Components
    r: Array  # (K, n_draws)

    def by_mean(self, means: Array) -> DrawnRun:
        """The same with r the components' mean alone; `means` (K, n_draws) are its draws."""
        found = replace(self.components, anomalousness=self.components.means.mean(axis=1))
        order = np.argsort(-found.anomalousness, kind="stable")
        return DrawnRun(found[order], means[order])


def draw_runs(
    runs: Sequence[Run], rng: np.random.Generator
) -> tuple[list[DrawnRun], list[DrawnRun]]:
    """Every run's draws, and the same by the components' means alone."""
    drawn, by_mean = [], []
    for run, child in zip(runs, rng.spawn(len(runs)), strict=True):
        means, variances = draw_parameters(run.components, N_DRAWS, child)
        drawn.append(DrawnRun(run.components, anomalousness(means, variances)))
        by_mean.append(drawn[-1].by_mean(means.mean(axis=-1)))
    return drawn, by_mean


def relink(
    drawn: Sequence[DrawnRun], constraints: Constraints, plug_in: bool = False
) -> tuple[GammaPosterior, int]:
    """The posterior of the same mixtures under `constraints`, and how many have no solution.

    Nothing is fitted again. With `plug_in` the conditionals are taken at E[r] instead of averaged
    over the draws.
    """
    posteriors = []
    for run in drawn:
        link = solve_link(run.components, constraints)
        if link.status != "unsolved":
            r = run.components.anomalousness[:, None] if plug_in else run.r
            conditionals = conditional_probabilities(r[: link.n_candidates], link.tau, link.delta)
            error = conditionals.var(axis=1) / conditionals.shape[1]
            averaged = AveragedConditionals(conditionals.mean(axis=1), error)
            posteriors.append(run_posterior(run.components, averaged, constraints.p0))
    return combine_runs(posteriors), len(drawn) - len(posteriors)


def leave_one_out(
    Z: Array, constraints: Constraints, rng: np.random.Generator, n_jobs: int | None = None
) -> list[GammaPosterior]:
    """Posteriors from the score space `Z` (n, M): with every detector, then without each in turn.

    One run each, on the same random rows, `SAMPLE_ROWS` at most: enough to see which detectors the
    answer hangs on, and no replacement for a fit.
    """
    sample_rng, *streams = rng.spawn(2 + Z.shape[1])
    if len(Z) > SAMPLE_ROWS:
        Z = Z[np.sort(sample_rng.choice(len(Z), SAMPLE_ROWS, replace=False))]
    without = [np.delete(np.arange(Z.shape[1]), j) for j in range(Z.shape[1])]
    found = []
    for columns, stream in zip([np.arange(Z.shape[1]), *without], streams, strict=True):
        chosen = np.ascontiguousarray(Z[:, columns])
        settings, _ = plan_runs(chosen, constraints, MixturePrior(), N_COMPONENTS)
        runs = fit_runs(chosen, settings, (1, MAX_RESTARTS), stream, n_jobs)
        found.append(combine_runs(solved_posteriors(runs)))
    return found
