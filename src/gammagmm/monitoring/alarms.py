"""Counts of rows beyond a cut over time -> the periods in which the share has risen.

Each period is compared with everything before it, by Fisher's exact test of one side. The levels of
all tests of a series add up to `alpha`, so that a series without a change rings with at most this
probability, however long it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gammagmm.labels.exact_interval import p_between
from gammagmm.monitoring.counts import Count

__all__ = ["WINDOWS", "Ring", "find_rings", "p_differs", "p_higher", "period_levels"]

Array = NDArray[np.float64]

WINDOWS = (1, 2, 4, 8)
"""Numbers of periods, up to the newest one, that are tested together."""
WINDOW_WEIGHTS = (0.4, 0.3, 0.2, 0.1)
"""Parts of the level of a period that these tests have."""
HALF_SPENT = 30
"""Number of periods after which half of `alpha` is spent."""

MANY = 10**6
"""With more possible numbers of rows beyond the cut, a p-value is summed over the likely ones."""


def period_levels(alpha: float, n_periods: int) -> Array:
    """Level (n_periods,) of each period: alpha . c / ((t + c - 1) (t + c)) for t = 1, 2, ...

    The levels of the first t periods add up to alpha . t / (t + c), and all levels to `alpha`.

    >>> period_levels(0.01, 30).sum().round(6)
    np.float64(0.005)
    """
    t, c = np.arange(1.0, n_periods + 1.0), HALF_SPENT
    return np.asarray(alpha * c / ((t + c - 1.0) * (t + c)))


def p_higher(count: Count, base: Count) -> float:
    """P-value of Fisher's exact test that the share of `count` is no higher than that of `base`.

    Given the number of rows beyond the cut in both together, the number in `count` has a
    hypergeometric distribution if nothing has changed, whatever the share is.

    >>> round(p_higher(Count(10, 4), Count(20, 1)), 4)
    0.0312
    """
    n_beyond, n_rows = count.n_beyond + base.n_beyond, count.n_rows + base.n_rows
    if min(n_beyond, count.n_rows) > MANY:
        return _p_higher_of_many(count, n_beyond, n_rows)
    return p_between(count.n_beyond, count.n_rows, n_beyond, count.n_rows, n_rows)


def _p_higher_of_many(count: Count, n_beyond: int, total: int) -> float:
    """The same, without the numbers whose probability is negligible.

    They are more than 40 standard deviations below the mean, or above both the mean and the count.
    """
    n, share = count.n_rows, n_beyond / total
    sd = np.sqrt(n * share * (1.0 - share) * (total - n) / (total - 1))
    spread = int(40.0 * sd) + 1
    mean = int(n * share)
    first = max(0, n - (total - n_beyond), mean - spread, count.n_beyond)
    last = min(n, n_beyond, max(first, mean + spread) + spread)
    found = np.arange(first, last + 1.0)
    return min(1.0, float(np.exp(_log_pmf(found, n, n_beyond, total)).sum()))


def p_differs(first: Count, second: Count) -> float:
    """P-value of the same test for a difference in either direction: twice the smaller one.

    >>> round(p_differs(Count(10, 4), Count(20, 1)), 4)
    0.0625
    """
    return min(1.0, 2.0 * min(p_higher(first, second), p_higher(second, first)))


def _log_pmf(x: Any, n_drawn: Any, n_beyond: Any, total: Any) -> Any:
    """Log-probability of `x` rows beyond the cut among `n_drawn` of `total` rows."""
    return (
        _log_choose(n_drawn, x)
        + _log_choose(total - n_drawn, n_beyond - x)
        - _log_choose(total, n_beyond)
    )


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


@dataclass(frozen=True)
class Ring:
    """A test that rings.

    Attributes
    ----------
    window : int
        Number of periods, up to this one, whose rows together show the rise.
    p_value : float
        P-value of the test.
    level : float
        Level of the test, which the p-value does not exceed.
    base : Count
        The rows before the window, with which it was compared.
    """

    window: int
    p_value: float
    level: float
    base: Count


def find_rings(periods: Sequence[Count], base: Count, levels: Array) -> list[Ring | None]:
    """The test that rings in each of the `periods`, or None where none does.

    A window of the newest 1, 2, 4 or 8 periods is compared with everything before it: the rows of
    `base` and the earlier periods. After a ring, windows begin with the next period, so that no row
    rings twice; and what came before the first window that rang stays the base, so that a share
    that stays high rings again. `levels` (n_periods,) are divided among the windows. A period
    without rows is not tested, so it spends no level.
    """
    series = _Series(periods, base, levels)
    rings: list[Ring | None] = [None] * len(periods)
    start, base_end = 0, len(periods)
    while start < len(periods):
        found = series.first_ring(start, base_end)
        if found is None:
            break
        place, ring = found
        rings[place] = ring
        start, base_end = place + 1, min(base_end, place + 1 - ring.window)
    return rings


class _Series:
    """Sums of the counts of periods, and the level of each window that ends with a period."""

    def __init__(self, periods: Sequence[Count], base: Count, levels: Array) -> None:
        self.rows = np.cumsum([0, *(period.n_rows for period in periods)])
        self.beyond = np.cumsum([0, *(period.n_beyond for period in periods)])
        self.base, self.levels = base, levels[:, None] * np.array(WINDOW_WEIGHTS)

    def first_ring(self, start: int, base_end: int) -> tuple[int, Ring] | None:
        """Place of the first period from `start` on that rings, and its ring.

        Windows begin at `start` or later. Their base has the periods before them, but none from
        `base_end` on.
        """
        ends = np.arange(start + 1, len(self.rows))[:, None]
        starts = ends - np.array(WINDOWS)
        has_rows = self.rows[ends] > self.rows[ends - 1]
        is_tested, starts = has_rows & (starts >= start), np.maximum(starts, start)
        n, x = self.rows[ends] - self.rows[starts], self.beyond[ends] - self.beyond[starts]
        last = np.minimum(starts, base_end)
        base_n, base_x = self.base.n_rows + self.rows[last], self.base.n_beyond + self.beyond[last]
        levels = self.levels[start:]
        # The p-value is at least the probability of the count itself, which is quick to compute.
        log_p = _log_pmf(x, n, x + base_x, n + base_n)
        is_candidate = (
            is_tested & (x * (1.0 * base_n) > base_x * (1.0 * n)) & (log_p <= np.log(levels))
        )
        for place, j in np.argwhere(is_candidate).tolist():
            before = Count(int(base_n[place, j]), int(base_x[place, j]))
            p_value = p_higher(Count(int(n[place, j]), int(x[place, j])), before)
            if p_value <= levels[place, j]:
                return start + place, Ring(WINDOWS[j], p_value, float(levels[place, j]), before)
        return None
