"""Scores and a stored start -> the posterior after a fixed number of iterations, step by step.

No k-means and no stopping rule: what is left depends on the numbers continuously, so that two ways
to the same posterior can be compared by a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.mixture.fit import Mixture, ascend
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.rows import NumpyRows, Rows
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import Statistics, add_blocks, start_statistics, summarise
from gammagmm.posterior.components import Components, order_components
from gammagmm.posterior.gamma_posterior import GammaPosterior, run_posterior
from gammagmm.posterior.link import Constraints, Link, average_conditionals, solve_link

__all__ = ["Blocks", "Steps", "follow", "grouped_scores", "numbers", "rank_labels", "space_of"]

Array = NDArray[np.float64]
CONSTRAINTS = Constraints(p_high=0.1)
N_DRAWS = 2000


@dataclass(frozen=True)
class Steps:
    """What each step gave."""

    mixture: Mixture
    components: Components
    link: Link
    posterior: GammaPosterior


class Blocks:
    """Rows that are summarised in blocks of `size`."""

    def __init__(self, Z: Array, size: int) -> None:
        self.Z, self.size = Z, size

    def statistics(self, coefficients: Array) -> Statistics:
        return add_blocks([summarise(self.Z, self.size, coefficients)], coefficients)


def grouped_scores(n_rows: int, n_detectors: int, rng: np.random.Generator) -> Array:
    """Raw scores of five groups, fewer and more spread out the further they lie out."""
    group = rng.choice(5, size=n_rows, p=[0.55, 0.3, 0.08, 0.04, 0.03])
    centre, spread = np.array([0.0, 1.2, 2.6, 4.0, 5.2])[group], np.array([0.3, 0.3, 0.2, 0.2, 0.3])
    noise = rng.normal(size=(n_rows, n_detectors)) * spread[group][:, None]
    return np.exp(centre[:, None] + noise)


def space_of(scores: Array) -> Array:
    """Score space of raw scores (n, M)."""
    return fit_scaler(scores).transform(scores)


def rank_labels(scores: Array, n_components: int) -> NDArray[np.intp]:
    """A start by formula: rows in order of their mean score, in `n_components` parts.

    The first part, of the highest scores, is a twentieth of the rows.
    """
    place = np.argsort(np.argsort(-scores.mean(axis=1), kind="stable"))
    small = len(scores) // 20
    parts = 1 + (place - small) * (n_components - 1) // (len(scores) - small)
    return np.where(place < small, 0, parts)


def follow(
    Z: Array, labels: NDArray[np.intp], n_iter: int, block_size: int | None = None, seed: int = 0
) -> Steps:
    """The steps from the score space `Z` (n, M) and a start to the posterior."""
    prior = MixturePrior().resolve(Z)
    whitened = prior.whiten(Z)
    rows: Rows = NumpyRows(whitened) if block_size is None else Blocks(whitened, block_size)
    start = start_statistics(rows.Z, labels, int(labels.max()) + 1)
    # No change of the bound is below 0: every iteration is made.
    mixture = ascend(rows, start, prior, n_iter, tol=0.0)
    components = order_components(mixture)
    link = solve_link(components, CONSTRAINTS)
    if link.status == "unsolved":
        raise ValueError(f"no solution from this start: {link.reachable}")
    rng = np.random.default_rng(seed)
    conditionals = average_conditionals(components, link, N_DRAWS, rng)
    return Steps(mixture, components, link, run_posterior(components, conditionals, CONSTRAINTS.p0))


def numbers(posterior: GammaPosterior) -> dict[str, Any]:
    """The posterior as plain numbers."""
    quantiles = posterior.ppf([0.05, 0.25, 0.5, 0.75, 0.95])
    return {"mean": posterior.mean, "std": posterior.std, "quantiles": quantiles.tolist()}
