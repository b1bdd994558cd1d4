"""Counts of rows -> an interval of the share with guaranteed coverage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, gammaln

__all__ = ["Side", "binomial_interval", "exact_interval", "first_true", "p_between"]

Side = Literal["both", "upper", "lower"]


def exact_interval(
    n_rows: int, n_drawn: int, n_found: int, mass: float, side: Side = "both"
) -> tuple[int, int]:
    """Ends of a confidence interval for the number of anomalies among `n_rows` rows.

    `n_found` of `n_drawn` rows, drawn at random without replacement, are anomalies. The number of
    anomalies in such a sample has a hypergeometric distribution. The interval has all numbers for
    which a sample with as few anomalies as this one, and a sample with as many, each have at
    least the probability (1 - `mass`) / 2. It contains the true number with at least the
    probability `mass`, whatever the true number is. With `side` "upper" or "lower", only this
    end is uncertain, and 1 - `mass` is the probability on its side.

    >>> exact_interval(10_000, 30, 0, 0.95, "upper")
    (0, 948)
    """
    tail = (1.0 - mass) * (0.5 if side == "both" else 1.0)
    tail *= 1.0 - 1e-9  # what is likely enough is so after rounding too
    low, high = n_found, n_rows - (n_drawn - n_found)

    def p_at_most(total: int) -> float:
        return p_between(0, n_found, total, n_drawn, n_rows)

    def p_at_least(total: int) -> float:
        return p_between(n_found, n_drawn, total, n_drawn, n_rows)

    lower = low if side == "upper" else first_true(lambda k: p_at_least(k) >= tail, low, high)
    if side == "lower":
        return lower, high
    # The largest number that is likely enough: one below the first that is not.
    upper = first_true(lambda k: p_at_most(k) < tail, lower, high + 1) - 1
    return lower, upper


def first_true(is_true: Callable[[int], bool], low: int, high: int) -> int:
    """The first number from `low` on for which a condition holds, as it does for all after it.

    It is `high` if the condition holds for none below it.
    """
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_true(middle) else (middle + 1, high)
    return low


def p_between(first: int, last: int, total: int, n_drawn: int, n_rows: int) -> float:
    """P(first <= anomalies in the sample <= last) if `total` of the rows are anomalies."""
    least, most = max(0, n_drawn - (n_rows - total)), min(n_drawn, total)
    found = np.arange(least, most + 1.0)
    log_p = -(
        gammaln(found + 1.0)
        + gammaln(total - found + 1.0)
        + gammaln(n_drawn - found + 1.0)
        + gammaln(n_rows - total - n_drawn + found + 1.0)
    )
    p = np.exp(log_p - log_p.max())
    return float(p[(found >= first) & (found <= last)].sum() / p.sum())


def binomial_interval(
    n_rows: ArrayLike, n_found: ArrayLike, mass: float = 0.9
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the confidence interval of Clopper and Pearson for the probability of an event.

    It happened in `n_found` of `n_rows` independent rows; both may be arrays. The interval contains
    the probability with at least the probability `mass`, whatever it is. Each end holds by itself
    with the probability (1 + `mass`) / 2.

    >>> low, high = binomial_interval([3, 300], [1, 100])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.017, 0.288], [0.865, 0.381])
    """
    n, k = np.asarray(n_rows, dtype=float), np.asarray(n_found, dtype=float)
    tail = 0.5 * (1.0 - mass)
    # Outside 0 < k < n, an end is certain; the 1 there only keeps the function defined.
    low = betaincinv(np.where(k > 0, k, 1.0), n - k + 1.0, tail)
    high = betaincinv(k + 1.0, np.where(k < n, n - k, 1.0), 1.0 - tail)
    return np.where(k > 0, low, 0.0), np.where(k < n, high, 1.0)
