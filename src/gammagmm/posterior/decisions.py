"""Scores + posterior -> thresholds, labels, probabilities and decisions by cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "RankTable",
    "cost_cut",
    "cut_off",
    "exact_ranks",
    "is_anomaly",
    "is_far_above",
    "new_row_ranks",
    "probability_at",
    "ranks_left",
]

Array = NDArray[np.float64]

SEVERAL_TIMES = 3.0
"""A share of flagged rows that is so many times the expected one needs an explanation."""
CHANCE = 1e-3
"""Probability below which chance does not explain it."""


def cut_off(scores: Array, gamma: float | Array) -> Array:
    """Score that a share `gamma` of the rows of `scores` exceeds, for each column.

    This is PyOD's formula, to the bit. An array of shares gives one row of cut-offs a share.
    """
    return np.asarray(np.percentile(scores, 100.0 * (1.0 - gamma), axis=0))


def is_anomaly(scores: Array, threshold: Array | float) -> NDArray[np.int_]:
    """1 where a score lies strictly above `threshold`, else 0."""
    return (scores > threshold).astype(int)


def is_far_above(n_flagged: int, n_rows: int, share: float) -> bool:
    """Whether `n_flagged` of `n_rows` rows show that more than three times `share` are flagged.

    That is so if at least as many flagged rows have a probability below 0.001 when each row is
    flagged with probability 3 . `share`.

    >>> is_far_above(110, 500, 0.05), is_far_above(75, 500, 0.05), is_far_above(3, 3, 0.05)
    (True, False, False)
    """
    p_flagged = min(SEVERAL_TIMES * share, 1.0)
    return n_flagged > 0 and bool(bdtrc(n_flagged - 1, n_rows, p_flagged) < CHANCE)


def probability_at(posterior: GammaPosterior, shares: Array) -> Array:
    """P(gamma > share) for each of `shares` (n,), which may repeat.

    For the share of training rows that score at least as high as a row, this is the posterior
    probability that the row is an anomaly if the ranking is right:
    ``probability_at(posterior, exact_ranks(training).shares_at_least(scores))``.
    """
    distinct, place = np.unique(shares, return_inverse=True)
    # The weights of a posterior add up to 1 but for rounding.
    return np.clip(posterior.sf(distinct), 0.0, 1.0)[place]


@dataclass(frozen=True)
class RankTable:
    """Number of the `n_rows` rows whose score is at least each of `edges` (E,), in rising order.

    `n_above` stands for the number of rows above the last edge.
    """

    edges: Array
    n_at_least: NDArray[Any]
    n_rows: int
    n_above: float = 0

    def shares_at_least(self, scores: Array) -> Array:
        """Share of the rows that score at least each of `scores`."""
        counts = np.append(self.n_at_least, self.n_above)
        return counts[np.searchsorted(self.edges, scores, side="left")] / self.n_rows


def exact_ranks(scores: Array) -> RankTable:
    """Rank table of rows in memory, in which each of their `scores` (n,) is an edge."""
    edges, counts = np.unique(scores, return_counts=True)
    return RankTable(edges, np.cumsum(counts[::-1])[::-1], len(scores))


def new_row_ranks(scores: Array) -> RankTable:
    """Rank table of rows in memory, which gives new rows shares strictly between 0 and 1.

    A row above all of the n rows with these `scores` (n,) has the share 0.5 / (n + 1).

    >>> new_row_ranks(np.array([0.1, 0.7, 0.9])).shares_at_least(np.array([0.0, 0.8, 1.0]))
    array([0.875, 0.375, 0.125])
    """
    exact = exact_ranks(scores)
    return RankTable(exact.edges, exact.n_at_least + 0.5, len(scores) + 1, 0.5)


def ranks_left(
    scores: Array, n_anomalies: float, n_rows: int, n_left: int | None = None
) -> RankTable:
    """Rank table of the rows that are not known, whose scores are `scores` (n,).

    `n_anomalies` of the known rows are anomalies, which come before all of these. The number of
    anomalies is a whole one, and a row is one of them if there are at least as many as its rank:
    more than half a row less. A score above all of these rows has the rank of the first. If these
    rows are a random sample of more rows that are not known, `n_left` is the number of those.

    >>> ranks_left(np.array([0.1, 0.7, 0.9]), 2, 10).shares_at_least(np.array([0.8, 0.9, 1.0]))
    array([0.25, 0.25, 0.25])
    """
    edges, counts = np.unique(scores, return_counts=True)
    each = 1.0 if n_left is None else n_left / len(scores)  # rows that a row of a sample stands for
    n_at_least = each * np.cumsum(counts[::-1])[::-1] + (n_anomalies - 0.5)
    return RankTable(edges, n_at_least, n_rows, n_anomalies + 0.5)


def cost_cut(costs: Any) -> float:
    """Probability above which flagging a row costs less: false_alarm / (false_alarm + miss).

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
