"""Sums over periods -> their variation, and p-values for a difference of the share.

A window of periods is compared with the quiet periods before it, in two ways: by Fisher's exact
test, which is right if rows are independent, and by the same test for periods whose shares differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln, chdtri, fdtrc, gammaln

from gammagmm.labels.exact_interval import p_between
from gammagmm.monitoring.counts import Count

__all__ = [
    "LEARNING_PERIODS",
    "MEASURED_ICC",
    "PRIOR_ICC",
    "PRIOR_PERIODS",
    "Sums",
    "Usual",
    "deviations",
    "p_differs",
    "p_exactly",
    "p_higher",
    "p_varying",
    "usual_for",
    "usual_range",
    "variation",
]

Array = NDArray[np.float64]

LEARNING_PERIODS = 30
"""Number of quiet periods from which the variation between periods and their level are known."""
PRIOR_PERIODS = 6.0
"""Number of periods for which the usual variation counts."""
PRIOR_ICC = 0.003
"""The usual variation between periods, as the correlation of two rows of the same period."""
LEARNING_ICC = 0.005
"""The smallest variation that is assumed while a series is learning."""
MEASURED_ICC = 0.005
"""Variation up to which the rate of false alarms was measured to be about `alpha`."""
WEEKDAY_LEVEL = 0.05
"""Level of the F test that weekdays differ, below which they are told apart."""
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
    n_above, n_rows = count.n_above + base.n_above, count.n_rows + base.n_rows
    if min(n_above, count.n_rows) > MANY:
        return _p_higher_of_many(count, n_above, n_rows)
    return p_between(count.n_above, count.n_rows, n_above, count.n_rows, n_rows)


def _p_higher_of_many(count: Count, n_above: int, total: int) -> float:
    """The same, without the numbers whose probability is negligible.

    They are more than 40 standard deviations below the mean, or above both the mean and the count.
    """
    n, share = count.n_rows, n_above / total
    sd = np.sqrt(n * share * (1.0 - share) * (total - n) / (total - 1))
    spread = int(40.0 * sd) + 1
    mean = int(n * share)
    first = max(0, n - (total - n_above), mean - spread, count.n_above)
    last = min(n, n_above, max(first, mean + spread) + spread)
    found = np.arange(first, last + 1.0)
    log_p = _log_choose(n, found) + _log_choose(total - n, n_above - found)
    return min(1.0, float(np.exp(log_p - _log_choose(total, n_above)).sum()))


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
    periods, rows, n_above : ndarray
        Number of periods with rows, of their rows, and of those above the threshold.
    squares : ndarray
        Sum of the squares of the numbers of rows.
    shares : ndarray
        Sum of n_above ** 2 / n_rows.
    """

    periods: Any = 0.0
    rows: Any = 0.0
    n_above: Any = 0.0
    squares: Any = 0.0
    shares: Any = 0.0

    @property
    def values(self) -> tuple[Any, ...]:
        """The five sums."""
        return tuple(vars(self).values())

    def each(self, change: Callable[[Any], Any]) -> Sums:
        """The sums, all changed in the same way."""
        return Sums(*map(change, self.values))

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(a + b for a, b in zip(self.values, other.values, strict=True)))

    def __sub__(self, other: Sums) -> Sums:
        return Sums(*(a - b for a, b in zip(self.values, other.values, strict=True)))

    def __getitem__(self, index: Any) -> Sums:
        return self.each(lambda value: value[index])

    @property
    def total(self) -> Sums:
        """The sums over all weekdays, which are the last axis."""
        return self.each(lambda value: value.sum(axis=-1))

    @property
    def count(self) -> Count:
        """All rows together."""
        return Count(int(self.rows), int(self.n_above))

    @classmethod
    def of(cls, count: Count) -> Sums:
        """The sums of a single period."""
        n, k = float(count.n_rows), float(count.n_above)
        return cls(1.0, n, k, n * n, k * k / n) if n else cls()

    def mirrored(self) -> Sums:
        """The sums with the rows below the threshold in the place of those above it."""
        shares = self.rows - 2.0 * self.n_above + self.shares
        return Sums(self.periods, self.rows, self.rows - self.n_above, self.squares, shares)


def variation(quiet: Sums, window: Sums, n_effects: Any = 0.0) -> Any:
    """Values (..., 7) that the correlation of two rows of a quiet period may have.

    The dispersion X^2 = sum_t n_t (p_t - p)^2 / (p (1 - p)) of m periods, divided by 1 + (n - 1)
    icc, has about a chi-square distribution with m - 1 degrees of freedom, less the number
    `n_effects` of those that weekdays take. Together with `PRIOR_PERIODS` that have the correlation
    `PRIOR_ICC`, it gives icc a distribution, of which these are quantiles. Before there are two
    periods, n is the number of rows of a period of the `window`.
    """
    m, n, k = quiet.periods, quiet.rows, quiet.n_above
    many = m >= 2.0
    df = np.where(many, m - 1.0 - n_effects, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = (k + 0.5) / (n + 1.0)
        dispersion = np.where(many, (quiet.shares - k * k / n) / (p * (1.0 - p)), 0.0)
        size = np.where(many, (n - quiet.squares / n) / (m - 1.0), window.rows / window.periods)
    more = np.maximum(size - 1.0, 1.0)
    prior = PRIOR_PERIODS * (1.0 + more * PRIOR_ICC)
    each, place = np.unique(df, return_inverse=True)  # chdtri is slow
    # It has the probability above the value.
    quantiles = chdtri(each[:, None] + PRIOR_PERIODS, _MIDDLES)[place.reshape(df.shape)]
    factor = (dispersion + prior)[..., None] / quantiles
    return np.clip((factor - 1.0) / more[..., None], 0.0, 1.0)


def _while_learning(icc: Any, n_quiet: Any) -> Any:
    """The values `icc` (..., 7) of `variation` for a series that is learning.

    They are at least `LEARNING_ICC`. Before the first quiet period, all are the median, so that a
    large difference from the training rows is seen at once.
    """
    icc = np.maximum(icc, LEARNING_ICC)
    return np.where(n_quiet[..., None] > 0.0, icc, _middle(icc)[..., None])


def _middle(icc: Any) -> Any:
    """The median of the values of `variation`."""
    return icc[..., len(_PARTS) // 2]


@dataclass(frozen=True)
class Usual:
    """What a window is compared with.

    Attributes
    ----------
    rows : Sums
        The quiet periods and, while the series is learning, the training rows as one more.
    base : Sums
        The same, with the share that is usual on the weekdays of the window. These are fewer
        periods if weekdays differ, because a weekday is known from its own periods.
    icc : ndarray of shape (..., 7)
        Values that the correlation of two rows of a period may have.
    """

    rows: Sums
    base: Sums
    icc: Any

    def __getitem__(self, index: Any) -> Usual:
        return Usual(self.rows[index], self.base[index], self.icc[index])

    def mirrored(self) -> Usual:
        """The same of the rows below the threshold."""
        return Usual(self.rows.mirrored(), self.base.mirrored(), self.icc)


def usual_for(window: Sums, quiet: Sums, extra: Sums) -> Usual:
    """What is usual for a `window`, by the `quiet` periods; both are (..., 7) or (..., 1) sums.

    The last axis has the weekdays, or has length 1 without them. The `extra` rows count as one more
    period while the quiet periods are fewer than `LEARNING_PERIODS`.
    """
    total = quiet.total
    is_learning = total.periods < LEARNING_PERIODS
    rows = base = total + extra.each(lambda value: value * is_learning)
    if quiet.rows.shape[-1] == 1:
        icc = variation(total, window.total)
    else:
        weekdays = _Weekdays.of(window, quiet, ~is_learning)
        n_above = rows.n_above + weekdays.effect * rows.rows
        base = replace(rows, n_above=n_above).each(lambda value: value / weekdays.fewer)
        rest = replace(total, shares=total.shares - weekdays.explained)
        icc = variation(rest, window.total, weekdays.n_effects)
    learned = _while_learning(icc, total.periods)
    return Usual(rows, base, np.where(is_learning[..., None], learned, icc))


@dataclass(frozen=True)
class _Weekdays:
    """What the weekdays of quiet periods say of a window; all are (...).

    Attributes
    ----------
    effect : ndarray
        Difference of the share that is usual on the weekdays of the window from that of all.
    fewer : ndarray
        By how much the periods count less, because a weekday is known from its own periods.
    explained, n_effects : ndarray
        Part of the dispersion that is not variation, and its degrees of freedom.
    """

    effect: Any
    fewer: Any
    explained: Any
    n_effects: Any

    @classmethod
    def of(cls, window: Sums, quiet: Sums, is_learned: Any) -> _Weekdays:
        """The effects where the F test shows that weekdays differ, and 0 elsewhere.

        The share of a weekday is drawn towards that of all by the factor of James and Stein.
        """
        total = quiet.total
        with np.errstate(divide="ignore", invalid="ignore"):
            share = total.n_above / total.rows
            effects = np.nan_to_num(quiet.n_above / quiet.rows - share[..., None])
            n_effects = (quiet.rows > 0.0).sum(axis=-1) - 1.0
            between = (quiet.rows * effects**2).sum(axis=-1)
            within = total.shares - total.n_above**2 / total.rows - between
            n_left = total.periods - 1.0 - n_effects
            unit = np.maximum(within / n_left, share * (1.0 - share))  # of equal shares at least
            p_value = fdtrc(n_effects, n_left, between / n_effects / unit)
            kept = (1.0 - (n_effects - 2.0) * unit / between).clip(0.0, 1.0)
            kept = np.where(is_learned & (p_value < WEEKDAY_LEVEL), kept, 0.0)
            weights = window.rows / window.rows.sum(axis=-1, keepdims=True)
            each = np.where(quiet.periods > 0.0, quiet.periods, total.periods[..., None])
            fewer = kept**2 * (total.periods * (weights**2 / each).sum(axis=-1) - 1.0)
            fewer = np.where(kept > 0.0, fewer, 0.0)  # without quiet periods, it is not defined
            effect = kept * (weights * effects).sum(axis=-1)
        gone = 1.0 - (1.0 - kept) ** 2
        return cls(effect, 1.0 + np.maximum(fewer, 0.0), gone * between, gone * n_effects)


def _precision(window: Sums, base: Sums, icc: Any) -> Any:
    """Sum of the parameters (..., 7) of the Beta distribution of the share of the window."""
    spread = window.squares / window.rows**2 + base.squares / base.rows**2
    total = 1.0 / (1.0 / (base.rows + 2.0)[..., None] + icc * spread[..., None]) - 1.0
    return np.maximum(total, 1e-6)


def _with_rows(precision: Any, n_rows: Any) -> Any:
    """The same for the share of `n_rows` rows, of which each is above the threshold or not."""
    return 1.0 / (1.0 / (precision + 1.0) + 1.0 / n_rows) - 1.0


def _betas(window: Sums, base: Sums, icc: Any) -> tuple[Any, Any]:
    """Parameters (..., 7) of the Beta distribution of the share of the window.

    Without variation, they are k + 1 and n - k for the rows of the `base`, so that the
    Beta-binomial test is Fisher's exact test.
    """
    total = _precision(window, base, icc)
    share = ((base.n_above + 1.0) / (base.rows + 1.0))[..., None]
    return share * total, np.maximum((1.0 - share) * total, 1e-300)


def _log_pmf(x: Any, n: Any, a: Any, b: Any) -> Any:
    return _log_choose(n, x) + betaln(x + a, n - x + b) - betaln(a, b)


def p_exactly(window: Sums, base: Sums, icc: Any) -> Any:
    """The probability of exactly the window's count, which is at most `p_varying` and quick."""
    with np.errstate(all="ignore"):
        a, b = _betas(window, base, icc)
        return np.exp(_log_pmf(window.n_above[..., None], window.rows[..., None], a, b)) @ _PARTS


def p_varying(window: Sums, base: Sums, icc: Any) -> float:
    """P-value that the share of the `window` is no higher than that of the `base`.

    The shares of periods vary with one of the correlations `icc` (7,), see `variation`.
    """
    window, base = window.each(np.float64), base.each(np.float64)
    a, b = _betas(window, base, icc)
    n, x = window.rows, window.n_above
    if n <= LONG:
        found = np.arange(x, n + 1.0)[:, None]
        return min(1.0, float(np.exp(_log_pmf(found, n, a, b)).sum(axis=0) @ _PARTS))
    share, total = a / (a + b), _with_rows(a + b, n)
    return float(betainc((1.0 - share) * total, share * total, 1.0 - (x - 0.5) / n) @ _PARTS)


def deviations(window: Sums, usual: Usual) -> Any:
    """Difference of the window's share from the usual one, in its standard deviations."""
    base = usual.base
    share = (base.n_above + 0.5) / (base.rows + 1.0)
    spread = _middle(usual.icc) * (window.squares / window.rows**2 + base.squares / base.rows**2)
    spread = spread + 1.0 / base.rows + 1.0 / window.rows
    difference = window.n_above / window.rows - base.n_above / base.rows
    return difference / np.sqrt(share * (1.0 - share) * spread)


def usual_range(window: Sums, usual: Usual) -> tuple[float, float]:
    """Ends of the range in which 90 % of the shares of quiet windows lie; NaN without rows."""
    base = usual.base
    if not (window.rows and base.rows):
        return np.nan, np.nan
    precision = _precision(window, base, _middle(usual.icc)[..., None])
    total = np.maximum(_with_rows(precision, window.rows), 1e-2)
    share = (base.n_above + 0.5) / (base.rows + 1.0)
    a, b = share * total, (1.0 - share) * total
    return float(betaincinv(a, b, 0.05)[0]), float(betaincinv(a, b, 0.95)[0])
