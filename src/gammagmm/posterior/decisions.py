"""Scores + posterior -> cut-off, labels, probabilities and decisions by cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "RankTable",
    "anomaly_probability",
    "cost_cut",
    "cut_off",
    "exact_ranks",
    "is_anomaly",
    "probability_at",
    "training_probability",
]

Array = NDArray[np.float64]


def cut_off(scores: Array, gamma: float | Array) -> Array:
    """Score that a share `gamma` of the rows of `scores` exceeds, for each column.

    PyOD's own formula, to the bit. An array of shares gives a row of cut-offs for each.
    """
    return np.asarray(np.percentile(scores, 100.0 * (1.0 - gamma), axis=0))


def is_anomaly(scores: Array, threshold: Array | float) -> NDArray[np.int_]:
    """1 where a score lies strictly above `threshold`, else 0."""
    return (scores > threshold).astype(int)


def anomaly_probability(posterior: GammaPosterior, scores: Array, training: Array) -> Array:
    """P(gamma > share of training rows scored at least as high), for each of `scores` (n,).

    The posterior probability that a row lies inside the anomalous share if the ranking is right.
    """
    ranked = np.sort(training)
    n_higher = len(ranked) - np.searchsorted(ranked, scores, side="left")
    return probability_at(posterior, n_higher / len(ranked))


def probability_at(posterior: GammaPosterior, shares: Array) -> Array:
    """P(gamma > share) for each of `shares` (n,), many of which may be the same."""
    distinct, place = np.unique(shares, return_inverse=True)
    return np.asarray(posterior.sf(distinct))[place]


def training_probability(estimator: Any) -> Array:
    """Probability of each training row of a fitted `GammaGMM`; a known row has 0 or 1."""
    consensus, known = estimator.decision_scores_, estimator.known_rows_
    probability = anomaly_probability(estimator.posterior_, consensus, consensus)
    probability[known.rows] = known.labels
    return probability


def cost_cut(costs: Any) -> float:
    """Probability above which an alarm costs less than silence: false_alarm / (false_alarm + miss).

    >>> cost_cut((1.0, 4.0))
    0.2
    """
    message = f"costs must be two positive numbers (false_alarm, miss), got {costs!r}."
    try:
        false_alarm, miss = (float(cost) for cost in costs)
    except (TypeError, ValueError) as error:
        raise type(error)(message) from error
    if not (0.0 < false_alarm < np.inf and 0.0 < miss < np.inf):
        raise ValueError(message)
    return false_alarm / (false_alarm + miss)


@dataclass(frozen=True)
class RankTable:
    """How many of `n_rows` rows have at least each value of `edges` (E,), which rise.

    `error` is the largest share of the rows that lie between two edges.
    """

    edges: Array
    n_at_least: NDArray[np.intp]
    n_rows: int
    error: float

    def shares_at_least(self, scores: Array) -> Array:
        """Share of the rows that have at least each of `scores`, too small by `error` at most."""
        counts = np.append(self.n_at_least, 0)
        return counts[np.searchsorted(self.edges, scores, side="left")] / self.n_rows


def exact_ranks(scores: Array) -> RankTable:
    """Table of rows in memory, with every one of their `scores` (n,) an edge."""
    edges, counts = np.unique(scores, return_counts=True)
    return RankTable(edges, np.cumsum(counts[::-1])[::-1], len(scores), 0.0)
