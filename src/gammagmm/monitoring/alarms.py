"""Counts of rows above a threshold over time -> the periods in which the share has changed.

The newest periods are compared with the quiet ones before them. Two tests must agree: Fisher's
exact test, which is right if rows are independent, and the same test for periods whose shares
differ, with the variation that the quiet periods show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln, chdtri, gammaln

from gammagmm.labels.exact_interval import p_between
from gammagmm.monitoring.counts import Count

__all__ = [
    "EXACT_WEIGHTS",
    "MEASURED_ICC",
    "PER_PERIODS",
    "WEIGHTS",
    "WINDOWS",
    "Change",
    "Direction",
    "Series",
    "Sums",
    "p_differs",
    "p_higher",
    "p_varying",
    "usual_range",
    "variation",
    "while_learning",
]

Array = NDArray[np.float64]
Direction = Literal["raised", "fallen"]

PER_PERIODS = 100
"""Number of periods in which a series without a change has an alarm with probability `alpha`."""
WINDOWS = (1, 3, 8)
"""Numbers of periods, up to the newest one, that are tested together."""
EXACT_WEIGHTS = (0.25, 0.5, 0.25)
"""Parts of the level of a period that Fisher's tests of these windows have: their sum is 1."""
WEIGHTS = (0.1, 1.35, 0.1)
"""The same of the tests for periods that differ.

Their sum may be larger than 1, because windows overlap: experiments/monitoring.py measures the rate
of false alarms, which is about `alpha` at `MEASURED_ICC` and higher above.
"""

PRIOR_PERIODS = 6.0
"""Number of periods for which the usual variation counts."""
PRIOR_ICC = 0.003
"""The usual variation between periods, as the correlation of two rows of the same period."""
LEARNING_ICC = 0.005
"""The smallest variation that is assumed while a series is learning."""
MEASURED_ICC = 0.005
"""Variation up to which the rate of false alarms was measured to be about `alpha`."""
_EDGES = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0])
_PARTS, _MIDDLES = np.diff(_EDGES), 0.5 * (_EDGES[1:] + _EDGES[:-1])
"""Weights of the values that the variation may have, and their quantiles."""

MANY = 10**6
"""With more possible numbers of rows, a p-value is summed over the likely ones."""
LONG = 4000
"""With more rows, a Beta distribution stands for the Beta-binomial one, which takes long to sum."""


def p_higher(count: Count, base: Count) -> float:
    """P-value of Fisher's exact test that the share of `count` is no higher than that of `base`.

    Given the number of rows above the threshold in both together, the number in `count` has a
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
    log_p = _log_choose(n, found) + _log_choose(total - n, n_beyond - found)
    return min(1.0, float(np.exp(log_p - _log_choose(total, n_beyond)).sum()))


def p_differs(first: Count, second: Count) -> float:
    """P-value of the same test for a difference in either direction: twice the smaller one.

    >>> round(p_differs(Count(10, 4), Count(20, 1)), 4)
    0.0625
    """
    return min(1.0, 2.0 * min(p_higher(first, second), p_higher(second, first)))


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


@dataclass(frozen=True)
class Sums:
    """Sums over periods; each is a number or an array.

    Attributes
    ----------
    periods, rows, beyond : ndarray
        Number of periods with rows, of their rows, and of those above the threshold.
    squares : ndarray
        Sum of the squares of the numbers of rows.
    shares : ndarray
        Sum of n_beyond ** 2 / n_rows.
    """

    periods: Any = 0.0
    rows: Any = 0.0
    beyond: Any = 0.0
    squares: Any = 0.0
    shares: Any = 0.0

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(a + b for a, b in zip(self.values, other.values, strict=True)))

    def __sub__(self, other: Sums) -> Sums:
        return Sums(*(a - b for a, b in zip(self.values, other.values, strict=True)))

    def __getitem__(self, index: Any) -> Sums:
        return Sums(*(value[index] for value in self.values))

    @property
    def values(self) -> tuple[Any, ...]:
        """The five sums."""
        return self.periods, self.rows, self.beyond, self.squares, self.shares

    @property
    def count(self) -> Count:
        """All rows together."""
        return Count(int(self.rows), int(self.beyond))

    @classmethod
    def of(cls, count: Count) -> Sums:
        """The sums of a single period."""
        n, k = float(count.n_rows), float(count.n_beyond)
        return cls(1.0, n, k, n * n, k * k / n) if n else cls()

    def mirrored(self) -> Sums:
        """The sums with the rows below the threshold in the place of those above it."""
        shares = self.rows - 2.0 * self.beyond + self.shares
        return Sums(self.periods, self.rows, self.rows - self.beyond, self.squares, shares)


def variation(quiet: Sums, window: Sums) -> Any:
    """Values (..., 7) that the correlation of two rows of a quiet period may have.

    The dispersion X^2 = sum_t n_t (p_t - p)^2 / (p (1 - p)) of m periods, divided by 1 + (n - 1)
    icc, has about a chi-square distribution with m - 1 degrees of freedom. Together with
    `PRIOR_PERIODS` that have the correlation `PRIOR_ICC`, it gives icc a distribution, of which
    these are quantiles. Before there are two periods, n is the number of rows of a period of the
    `window`.
    """
    m, n, k = quiet.periods, quiet.rows, quiet.beyond
    many = m >= 2.0
    df = np.where(many, m - 1.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = (k + 0.5) / (n + 1.0)
        dispersion = np.where(many, (quiet.shares - k * k / n) / (p * (1.0 - p)), 0.0)
        size = np.where(many, (n - quiet.squares / n) / (m - 1.0), window.rows / window.periods)
    more = np.maximum(size - 1.0, 1.0)
    prior = PRIOR_PERIODS * (1.0 + more * PRIOR_ICC)
    # chdtri has the probability above the value.
    factor = (dispersion + prior)[..., None] / chdtri(df[..., None] + PRIOR_PERIODS, _MIDDLES)
    return np.clip((factor - 1.0) / more[..., None], 0.0, 1.0)


def while_learning(icc: Any, n_quiet: Any) -> Any:
    """The values `icc` (..., 7) of `variation` for a series that is learning.

    They are at least `LEARNING_ICC`. Before the first quiet period, all are the median, so that a
    large difference from the training rows is seen at once.
    """
    icc = np.maximum(icc, LEARNING_ICC)
    return np.where(n_quiet[..., None] > 0.0, icc, icc[..., len(_PARTS) // 2, None])


def _betas(window: Sums, base: Sums, icc: Any) -> tuple[Any, Any]:
    """Parameters (..., 7) of the Beta distribution of the share of the window.

    Without variation, they are k + 1 and n - k for the rows of the `base`, so that the
    Beta-binomial test is Fisher's exact test.
    """
    n, k = base.rows, base.beyond
    spread = window.squares / window.rows**2 + base.squares / n**2
    total = 1.0 / (1.0 / (n + 2.0)[..., None] + icc * spread[..., None]) - 1.0
    total = np.maximum(total, 1e-6)
    share = ((k + 1.0) / (n + 1.0))[..., None]
    return share * total, np.maximum((1.0 - share) * total, 1e-300)


def _log_pmf(x: Any, n: Any, a: Any, b: Any) -> Any:
    return _log_choose(n, x) + betaln(x + a, n - x + b) - betaln(a, b)


def p_varying(window: Sums, base: Sums, icc: Any) -> float:
    """P-value that the share of the `window` is no higher than that of the `base`.

    The shares of periods vary with one of the correlations `icc` (7,), see `variation`.
    """
    window, base = (Sums(*map(np.float64, each.values)) for each in (window, base))
    a, b = _betas(window, base, icc)
    n, x = window.rows, window.beyond
    if n <= LONG:
        found = np.arange(x, n + 1.0)[:, None]
        return min(1.0, float(np.exp(_log_pmf(found, n, a, b)).sum(axis=0) @ _PARTS))
    share, total = a / (a + b), a + b
    total = 1.0 / (1.0 / (total + 1.0) + 1.0 / n) - 1.0
    return float(betainc((1.0 - share) * total, share * total, 1.0 - (x - 0.5) / n) @ _PARTS)


def usual_range(base: Sums, n_rows: int, is_learning: bool) -> tuple[float, float]:
    """Ends of the range in which 90 % of the shares of quiet periods with `n_rows` rows lie."""
    base = Sums(*map(np.float64, base.values))
    if not (n_rows and base.rows):
        return np.nan, np.nan
    window = Sums.of(Count(n_rows, 0))
    icc = float(variation(base, Sums(*map(np.float64, window.values)))[len(_PARTS) // 2])
    icc = max(icc, LEARNING_ICC) if is_learning else icc
    spread = 1.0 + float(base.squares / base.rows**2)
    variance = min(1.0 / n_rows + 1.0 / (base.rows + 2.0) + icc * spread, 0.99)
    share, total = (base.beyond + 0.5) / (base.rows + 1.0), 1.0 / variance - 1.0
    a, b = share * total, (1.0 - share) * total
    return float(betaincinv(a, b, 0.05)), float(betaincinv(a, b, 0.95))


@dataclass(frozen=True)
class Change:
    """A test that shows a change.

    Attributes
    ----------
    direction : {"raised", "fallen"}
        Whether the share has risen.
    window : int
        Number of periods, up to this one, whose rows together show the change.
    p_value : float
        P-value of the test for periods whose shares differ.
    level : float
        Level of the test, which the p-value does not exceed.
    base : Count
        The rows of the quiet periods, with which it was compared.
    """

    direction: Direction
    window: int
    p_value: float
    level: float
    base: Count


class Series:
    """Cumulated sums of the counts of periods that have rows."""

    def __init__(self, periods: Sequence[Count]) -> None:
        n = np.array([period.n_rows for period in periods], dtype=float)
        k = np.array([period.n_beyond for period in periods], dtype=float)
        each = (np.ones(len(n)), n, k, n * n, k * k / np.maximum(n, 1.0))
        self.sums = Sums(*(np.append(0.0, np.cumsum(values)) for values in each))
        self.n_periods = len(n)

    def between(self, first: Any, end: Any) -> Sums:
        """Sums over the periods from `first` to before `end`."""
        return self.sums[end] - self.sums[first]

    def first_change(
        self, start: int, quiet: Sums, extra: Sums, levels: Array, n_learning: int
    ) -> tuple[int, Change] | None:
        """Place of the first period from `start` on that shows a change, and the change.

        Windows begin at `start` or later. They are compared with the `quiet` periods before `start`
        and the periods from `start` on before the window; and also with the `extra` rows, as one
        period more, while these are fewer than `n_learning`; so long, the variation is that of
        `while_learning`. `levels` (n_periods,) are those of one direction.
        """
        ends = np.arange(start + 1, self.n_periods + 1)[:, None]
        firsts = ends - np.array(WINDOWS)
        is_tested, firsts = firsts >= start, np.maximum(firsts, start)
        window, own = self.between(firsts, ends), self.between(start, firsts) + quiet
        is_learning = own.periods < n_learning
        base = own + Sums(*(value * is_learning for value in extra.values))
        is_tested &= base.rows > 0.0
        icc = variation(own, window)
        icc = np.where(is_learning[..., None], while_learning(icc, own.periods), icc)
        found: list[tuple[int, int, Change]] = []
        directions: tuple[Direction, ...] = ("raised", "fallen")
        for direction in directions:
            sides = window, base
            if direction == "fallen":
                sides = window.mirrored(), base.mirrored()
            found += self._changes(direction, *sides, icc, is_tested, levels[start:])
        if not found:
            return None
        place, _, change = min(found, key=lambda each: each[:2])
        return start + place, change

    @staticmethod
    def _changes(
        direction: Direction,
        window: Sums,
        base: Sums,
        icc: Array,
        is_tested: NDArray[np.bool_],
        levels: Array,
    ) -> list[tuple[int, int, Change]]:
        """The first change in one direction, as a list of none or one, with its window's place."""
        limits, exact = levels[:, None] * np.array(WEIGHTS), levels[:, None] * EXACT_WEIGHTS
        is_higher = window.beyond * base.rows > base.beyond * window.rows
        with np.errstate(all="ignore"):
            a, b = _betas(window, base, icc)
            # The p-value is at least the probability of the count, which is quick to compute.
            log_p = _log_pmf(window.beyond[..., None], window.rows[..., None], a, b)
            is_candidate = is_tested & is_higher & (np.exp(log_p) @ _PARTS <= limits)
        for t, j in np.argwhere(is_candidate).tolist():
            own, before = window[t, j], base[t, j]
            p_value = p_varying(own, before, icc[t, j])
            if p_value <= limits[t, j] and p_higher(own.count, before.count) <= exact[t, j]:
                count = before.count
                if direction == "fallen":
                    count = Count(count.n_rows, count.n_rows - count.n_beyond)
                change = Change(direction, WINDOWS[j], p_value, float(limits[t, j]), count)
                return [(t, j, change)]
        return []
