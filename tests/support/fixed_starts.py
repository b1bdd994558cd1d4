"""Posteriors from fixed scores, fixed starts and a fixed number of iterations.

Without k-means and without a stopping rule the posterior is a continuous function of the scores, so
two ways to compute it can be compared within a tolerance. `CASES` lists the cases whose results
are stored in tests/golden/results.json.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.datasets import load_demo
from gammagmm.mixture.backends import NumpyRows
from gammagmm.mixture.fit import Mixture, ascend
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import start_moments
from gammagmm.posterior.components import Components, order_components
from gammagmm.posterior.gamma_posterior import GammaPosterior, run_posterior
from gammagmm.posterior.link import Constraints, Link, average_conditionals, solve_link
from tests.support.random_tables import grouped_scores

__all__ = [
    "CASES",
    "STORED_RESULTS",
    "Case",
    "Steps",
    "fit_from_start",
    "posterior_numbers",
    "rank_labels",
    "result_of",
    "score_space_of",
]

Array = NDArray[np.float64]
STORED_RESULTS = Path(__file__).parents[1] / "golden" / "results.json"
CONSTRAINTS = Constraints(p_high=0.1)
N_DRAWS = 2000


@dataclass(frozen=True)
class Steps:
    """The result of each step from the mixture to the posterior."""

    mixture: Mixture
    components: Components
    link: Link
    posterior: GammaPosterior


def fit_from_start(
    Z: Array, labels: NDArray[np.intp], n_iter: int, block_size: int | None = None
) -> Steps:
    """The steps after `n_iter` iterations from a start.

    `Z` is the score space (n, M); `labels` (n,) assigns each row to its first component.
    """
    prior = MixturePrior().resolve(Z)
    whitened = prior.whiten(Z)
    rows = NumpyRows(whitened[None], block_rows=block_size)
    start = start_moments(whitened, labels, int(labels.max()) + 1)
    # The bound never changes by less than 0, so every iteration is made.
    ((_, mixture),) = ascend(rows, start[None], prior, n_iter, tol=0.0)
    components = order_components(mixture)
    link = solve_link(components, CONSTRAINTS)
    if link.status == "unsolved":
        raise ValueError(f"no solution from this start: {link.reachable}")
    conditionals = average_conditionals(components, link, N_DRAWS, np.random.default_rng(0))
    return Steps(mixture, components, link, run_posterior(components, conditionals, CONSTRAINTS.p0))


def score_space_of(scores: Array) -> Array:
    """Score space of raw scores (n, M)."""
    return fit_scaler(scores).transform(scores)


def rank_labels(scores: Array, n_components: int) -> NDArray[np.intp]:
    """A start (n,) that needs no k-means: the rows by rank of their mean score, in parts.

    Part 0 is the twentieth of the rows with the highest scores; the other parts have equal sizes.
    """
    rank = np.argsort(np.argsort(-scores.mean(axis=1), kind="stable"))
    n_first = len(scores) // 20
    parts = 1 + (rank - n_first) * (n_components - 1) // (len(scores) - n_first)
    return np.where(rank < n_first, 0, parts)


def posterior_numbers(posterior: GammaPosterior) -> dict[str, Any]:
    """The posterior as plain numbers."""
    quantiles = posterior.ppf([0.05, 0.25, 0.5, 0.75, 0.95])
    return {"mean": posterior.mean, "std": posterior.std, "quantiles": quantiles.tolist()}


def random_scores(n_rows: int, n_detectors: int) -> Array:
    return grouped_scores(n_rows, n_detectors, np.random.default_rng([n_rows, n_detectors]))


def demo_scores() -> Array:
    """Five scores of the rows of the demo set, computed without a detector, from distances."""
    X = load_demo().X
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distances = np.sort(np.sqrt(np.square(Z[:, None] - Z).sum(axis=-1)), axis=1)
    return np.column_stack(
        [np.abs(Z).max(axis=1), np.square(Z).sum(axis=1), distances[:, [1, 5, 20]]]
    )


@dataclass(frozen=True)
class Case:
    """Scores, and the size of the mixture that is fitted to them."""

    make_scores: Callable[[], Array]
    n_components: int
    n_iter: int


CASES = {
    "500 rows, 6 detectors": Case(lambda: random_scores(500, 6), 10, 100),
    "2000 rows, 2 detectors": Case(lambda: random_scores(2000, 2), 30, 50),
    "5000 rows, 10 detectors": Case(lambda: random_scores(5000, 10), 20, 30),
    "demo": Case(demo_scores, 10, 50),
}
"""The cases whose results are stored, by name."""


def result_of(scores: Array, case: Case) -> dict[str, Any]:
    """The numbers that are stored: those of the posterior and of the steps that lead to it."""
    labels = rank_labels(scores, case.n_components)
    steps = fit_from_start(score_space_of(scores), labels, case.n_iter)
    return {
        **posterior_numbers(steps.posterior),
        "elbo": steps.mixture.elbo,
        "n_iter": steps.mixture.n_iter,
        "n_active": len(steps.components),
        "tau": steps.link.tau,
        "delta": steps.link.delta,
        "standard_error": steps.posterior.standard_error,
    }
