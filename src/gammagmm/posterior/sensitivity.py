"""Fitted runs -> the posterior under other constraints, or with one detector fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

__all__ = ["N_DRAWS", "DrawnRun", "draw_runs", "leave_one_out", "relink"]

Array = NDArray[np.float64]

N_DRAWS = 1000
"""Draws of each component's r."""
N_COMPONENTS = 100
MAX_RESTARTS = 5
SAMPLE_ROWS = 1000
"""Most rows that `leave_one_out` fits mixtures to."""


@dataclass(frozen=True)
class DrawnRun:
    """The components of a run with draws of each one's r, to be used with any constraints."""

    components: Components
    r: Array  # (K, n_draws)


def draw_runs(runs: Sequence[Run], rng: np.random.Generator) -> list[DrawnRun]:
    """The components of each run, with `N_DRAWS` draws of r."""
    return [
        DrawnRun(run.components, anomalousness(*draw_parameters(run.components, N_DRAWS, child)))
        for run, child in zip(runs, rng.spawn(len(runs)), strict=True)
    ]


def relink(drawn: Sequence[DrawnRun], constraints: Constraints) -> tuple[GammaPosterior, int]:
    """The posterior of the same mixtures under `constraints`, and how many have no solution.

    Nothing is refitted.
    """
    posteriors = []
    for run in drawn:
        link = solve_link(run.components, constraints)
        if link.status != "unsolved":
            r = run.r[: link.n_candidates]
            conditionals = conditional_probabilities(r, link.tau, link.delta)
            error = conditionals.var(axis=1) / conditionals.shape[1]
            averaged = AveragedConditionals(conditionals.mean(axis=1), error)
            posteriors.append(run_posterior(run.components, averaged, constraints.p0))
    return combine_runs(posteriors), len(drawn) - len(posteriors)


def leave_one_out(
    Z: Array, constraints: Constraints, rng: np.random.Generator, n_jobs: int | None = None
) -> list[GammaPosterior]:
    """Posteriors from the score space `Z` (n, M): with all detectors, then without each in turn.

    Each is one run on the same random sample of at most `SAMPLE_ROWS` rows. This shows which
    detectors the estimate depends on; it does not replace a fit.
    """
    n_detectors = Z.shape[1]
    sample_rng, *streams = rng.spawn(2 + n_detectors)
    if len(Z) > SAMPLE_ROWS:
        Z = Z[np.sort(sample_rng.choice(len(Z), SAMPLE_ROWS, replace=False))]
    every = np.arange(n_detectors)
    chosen_columns = [every, *(np.delete(every, j) for j in every)]
    posteriors = []
    for columns, stream in zip(chosen_columns, streams, strict=True):
        chosen = np.ascontiguousarray(Z[:, columns])
        prior = MixturePrior().resolve(chosen)
        settings, _ = plan_runs(len(chosen), prior, constraints, N_COMPONENTS)
        runs = fit_runs(chosen, settings, (1, MAX_RESTARTS), stream, n_jobs)
        posteriors.append(combine_runs(solved_posteriors(runs)))
    return posteriors
