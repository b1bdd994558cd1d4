"""Ranks of rows -> how unlikely it is that they were drawn at random from a ranking."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["p_top_rows"]

MAX_PLACES = 200
"""Most rows whose rank is compared with chance."""


def p_top_rows(ranks: NDArray[np.int_], n_rows: int) -> float:
    """A bound of the probability that n random rows come from so far up in a ranking.

    `ranks` (n,) are those of the rows among all `n_rows`, from 1; rows with the same score have the
    largest of their ranks. The statistic is the smallest P(at least k of n random rows have at most
    the rank of the k-th one), over k, of hypergeometric distributions. It is multiplied by the
    number of places k, so that random rows are at most p with a probability of at most p.

    >>> float(f"{p_top_rows(np.arange(1, 11), 1000):.1g}")
    4e-23
    >>> p_top_rows(np.arange(50, 1000, 100), 1000)
    1.0
    """
    ranks, n = np.sort(ranks), len(ranks)
    places = np.unique(np.linspace(1, n, min(n, MAX_PLACES)).astype(int))
    total = ranks[places - 1][:, None].astype(float)
    found = np.arange(n + 1.0)
    terms = (found, total - found, n - found, n_rows - total - n + found)
    is_possible = np.minimum(terms[1], terms[3]) >= 0.0
    log_p = -sum(gammaln(np.where(is_possible, term, 0.0) + 1.0) for term in terms)
    log_p = np.where(is_possible, log_p, -np.inf)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    tails = np.where(found >= places[:, None], p, 0.0).sum(axis=1) / p.sum(axis=1)
    return float(min(len(places) * tails.min(), 1.0))
