"""A belief -> the rows whose labels are worth asking for, and the expected gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gammagmm.inspection.labelled_posterior import Belief, labelled_posterior

__all__ = ["Strategy", "expected_width", "suggest_rows"]

Array = NDArray[np.float64]
Rows = NDArray[np.int_]
Strategy = Literal["random", "adaptive"]

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
# Above this probability that the ranking says nothing, "adaptive" no longer relies on it.
_MAX_P_FLAT = 0.5
_N_SIMULATIONS = 32
# "adaptive" takes one row in so many as "random" does.
_SPREAD_EVERY = 3


def suggest_rows(
    belief: Belief, unknown: Rows, n: int, strategy: Strategy, rng: np.random.Generator
) -> Rows:
    """`n` of the `unknown` rows, ordered so that you can stop labelling after any row.

    `unknown` has the row numbers, highest score first. "random" spreads them evenly over the
    ranks from a random start. "adaptive" takes every third row so, and between them the rank
    whose label is expected to lower the variance of gamma most.
    """
    spread = spread_evenly(unknown, rng)
    if strategy == "random" or belief.p_flat > _MAX_P_FLAT:
        return spread[:n]
    return np.array(list(_alternate(belief, spread, n, rng)), dtype=int)


def spread_evenly(rows: Rows, rng: np.random.Generator) -> Rows:
    """All `rows` ordered so that every prefix is spread evenly over the ranking.

    Steps of the golden section stay evenly spaced however many are taken; they start at a random
    row, so that each row is as likely as any other to come first, or at any other place.
    """
    steps = np.argsort(np.argsort(_GOLDEN * np.arange(len(rows)) % 1.0, kind="stable"))
    return rows[(steps + rng.integers(len(rows))) % len(rows)]


def _alternate(belief: Belief, spread: Rows, n: int, rng: np.random.Generator) -> Iterator[int]:
    """Every third row from `spread`, the others from the most informative cell, without repeats.

    The rows that are known count too, so that it does not matter how many are asked for at once.
    """
    cells = belief.cells.of_row[spread]
    is_free = np.ones(len(spread), dtype=bool)
    left = np.bincount(cells, minlength=len(belief.cells.counts))
    covariance, variance = _label_covariance(belief)
    n_known = int(belief.labels.known.sum())
    for turn in range(n_known, n_known + n):
        if turn % _SPREAD_EVERY:
            gain = np.where(left > 0, np.square(covariance @ left) / variance, -1.0)
            place = int(rng.choice(np.flatnonzero(is_free & (cells == np.argmax(gain)))))
        else:
            place = int(np.argmax(is_free))
        yield int(spread[place])
        is_free[place] = False
        cell = cells[place]
        left[cell] -= 1
        covariance = covariance - np.outer(covariance[:, cell], covariance[cell]) / variance[cell]


def _label_covariance(belief: Belief) -> tuple[Array, Array]:
    """Covariance over the curves of rho in any two cells (G, G), and each label's variance (G,).

    For the first row, covariance of gamma and its label, squared, over the label's variance is
    by how much the label lowers the variance of gamma on average; for those that follow it is
    so as long as everything is linear.
    """
    matters = belief.weights > 1e-8 * belief.weights.max()
    rho, weights = belief.rho[matters], belief.weights[matters]
    mean = weights @ rho
    covariance = (rho.T * weights) @ rho - np.outer(mean, mean)
    return covariance, np.maximum(mean * (1.0 - mean), 1e-12)


def expected_width(belief: Belief, rows: Rows, mass: float, rng: np.random.Generator) -> float:
    """Mean width of the interval of probability `mass` once the labels of `rows` are known.

    The labels are drawn from what is believed now, and the posterior taken after each draw.
    """
    cells = belief.cells.of_row[rows]
    p_curve = np.append(belief.weights, belief.p_zero)
    rho = np.vstack([belief.rho[:, cells], np.zeros(len(cells))])
    widths = []
    for curve in rng.choice(len(p_curve), _N_SIMULATIONS, p=p_curve / p_curve.sum()):
        is_anomaly = rng.random(len(cells)) < rho[curve]
        low, high = labelled_posterior(_imagine(belief, cells, is_anomaly)).interval(mass)
        widths.append(high - low)
    return float(np.mean(widths))


def _imagine(belief: Belief, cells: Rows, is_anomaly: NDArray[np.bool_]) -> Belief:
    """The belief if the rows of these `cells` had these labels as well."""
    labels, n_cells = belief.labels, len(belief.cells.counts)
    more = [np.bincount(cells[chosen], minlength=n_cells) for chosen in (is_anomaly, ~is_anomaly)]
    return belief.given(
        replace(labels, anomalies=labels.anomalies + more[0], normals=labels.normals + more[1])
    )
