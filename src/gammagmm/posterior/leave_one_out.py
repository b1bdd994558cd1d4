"""Fitted runs -> the estimate without each detector, or under other constraints."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from gammagmm.mixture.backends import count_threads, place_rows
from gammagmm.mixture.fit import ascend
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.statistics import start_moments
from gammagmm.posterior.components import Components
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs, run_posterior
from gammagmm.posterior.link import (
    AveragedConditionals,
    Constraints,
    anomalousness,
    conditional_probabilities,
    count_candidates,
    draw_parameters,
    solve_link,
)
from gammagmm.posterior.runs import (
    Run,
    RunSettings,
    make_run,
    plan_runs,
    solved_posteriors,
)

__all__ = [
    "N_DRAWS",
    "N_STARTS",
    "SAMPLE_ROWS",
    "DrawnRun",
    "draw_runs",
    "leave_one_out",
    "relink",
]

Array = NDArray[np.float64]

N_DRAWS = 1000
"""Draws of each component's r."""
MAX_GAMMA = 0.5
"""The largest `max_gamma` that `Constraints` allows."""
SAMPLE_ROWS = 1000
"""Most rows that `leave_one_out` fits mixtures to."""
N_STARTS = 5
"""Runs that `leave_one_out` starts from; more only if these have no solution."""
N_STEPS = 10
"""Most iterations of `leave_one_out`: a mixture that starts near its end changes little later."""
N_LEFT_DRAWS = 200
"""Draws of `leave_one_out`: their error is small beside the differences between runs."""


@dataclass(frozen=True)
class DrawnRun:
    """The components of a run with draws of r, to be used with any constraints.

    Only the first components have draws: those that can be candidates.
    """

    components: Components
    r: Array  # (n_drawn, n_draws)


def draw_runs(
    runs: Sequence[Run],
    rng: np.random.Generator,
    max_gamma: float = MAX_GAMMA,
    n_draws: int = N_DRAWS,
) -> list[DrawnRun]:
    """The components of each run, with `n_draws` draws of r.

    The draws serve all constraints whose `max_gamma` is at most this one.
    """
    drawn = []
    for run, child in zip(runs, rng.spawn(len(runs)), strict=True):
        candidates = run.components[slice(0, count_candidates(run.components, max_gamma))]
        r = anomalousness(*draw_parameters(candidates, n_draws, child))
        drawn.append(DrawnRun(run.components, r))
    return drawn


def relink(drawn: Sequence[DrawnRun], constraints: Constraints) -> tuple[GammaPosterior, int]:
    """The posterior of the same mixtures under `constraints`, and how many have no solution.

    Nothing is refitted. `constraints.max_gamma` is at most that of the draws.
    """
    posteriors = []
    for run in drawn:
        link = solve_link(run.components, constraints)
        if link.n_candidates > len(run.r):
            raise ValueError(f"The draws do not reach max_gamma={constraints.max_gamma}.")
        if link.status != "unsolved":
            r = run.r[: link.n_candidates]
            conditionals = conditional_probabilities(r, link.tau, link.delta)
            error = conditionals.var(axis=1) / conditionals.shape[1]
            averaged = AveragedConditionals(conditionals.mean(axis=1), error)
            posteriors.append(run_posterior(run.components, averaged, constraints.p0))
    return combine_runs(posteriors), len(drawn) - len(posteriors)


def leave_one_out(
    runs: Sequence[Run],
    Z: Array,
    prior: MixturePrior,
    n_components: int,
    constraints: Constraints,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[GammaPosterior]:
    """Posteriors from the score space `Z` (n, M): with all detectors, then without each in turn.

    Fitted `runs` are continued without the detector: each row starts in its most probable
    component, and a few iterations on the same random sample of at most `SAMPLE_ROWS` rows adapt
    the mixtures. `prior` and `n_components` are those of the fit. This shows which detectors the
    estimate depends on; it does not replace a fit. The result does not depend on `n_jobs`.
    """
    n_detectors = Z.shape[1]
    sample_rng, *streams = rng.spawn(2 + n_detectors)
    resolved = prior.resolve(Z)
    if len(Z) > SAMPLE_ROWS:
        Z = Z[np.sort(sample_rng.choice(len(Z), SAMPLE_ROWS, replace=False))]
    options = {"max_iter": N_STEPS, "n_draws": N_LEFT_DRAWS}
    settings, _ = plan_runs(len(Z), resolved, constraints, n_components, **options)
    solved_first = sorted(runs, key=lambda run: run.status == "unsolved")
    labels = [_assign(Z, run.components, settings.n_components) for run in solved_first]
    every = np.arange(n_detectors)
    chosen_columns = [every, *(np.delete(every, j) for j in every)]

    def continued(columns: NDArray[np.intp], stream: np.random.Generator) -> GammaPosterior:
        own = replace(settings, prior=settings.prior.marginal(columns))
        return _continue(Z[:, columns], labels, own, stream)

    with ThreadPoolExecutor(count_threads(n_jobs)) as pool:
        return list(pool.map(continued, chosen_columns, streams))


def _assign(Z: Array, components: Components, n_components: int) -> NDArray[np.intp]:
    """The most probable component of each row of `Z` (n, M), of the `n_components` largest.

    The largest component is number 0.
    """
    largest = components[np.argsort(-components.alpha, kind="stable")[:n_components]]
    factors = np.linalg.cholesky(largest.covariances)
    log_density = np.empty((len(largest), len(Z)))
    for k, inverse in enumerate(np.linalg.inv(factors)):
        log_scale = np.log(np.diagonal(factors[k])).sum()
        distance = np.square((Z - largest.means[k]) @ inverse.T).sum(axis=1)
        log_density[k] = np.log(largest.alpha[k]) - log_scale - 0.5 * distance
    return log_density.argmax(axis=0)


def _continue(
    Z: Array,
    labels: Sequence[NDArray[np.intp]],
    settings: RunSettings,
    rng: np.random.Generator,
) -> GammaPosterior:
    """The posterior of the runs that start with the rows of `Z` (n, M) in components `labels`.

    `N_STARTS` are used at a time, until some of them have a solution.
    """
    prior, n_components, posteriors = settings.prior, settings.n_components, []
    whitened = prior.whiten(Z)
    rows = place_rows(whitened[None], "numpy")
    for first in range(0, len(labels), N_STARTS):
        chosen = labels[first : first + N_STARTS]
        starts = np.stack([start_moments(whitened, own, n_components) for own in chosen])
        reached = ascend(rows, starts, prior, settings.max_iter, settings.tol, accelerated=True)
        in_order = [mixture for _, mixture in sorted(reached, key=itemgetter(0))]
        streams = rng.spawn(len(in_order))
        made = [make_run(one, settings, own) for one, own in zip(in_order, streams, strict=True)]
        posteriors = solved_posteriors(made)
        if posteriors:
            break
    return combine_runs(posteriors)
