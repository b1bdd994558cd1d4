"""Rows of periods in each part of each column -> the columns that moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.monitoring.parts import Parts
from gammagmm.monitoring.variation import Sums, Usual, deviations, p_varying, usual_for

__all__ = ["MovedColumn", "moved_columns"]

Array = NDArray[np.float64]
Counts = Mapping[str, tuple[int, ...]]

LEVEL = 0.05
"""Probability that a column is named although none has moved."""
TESTS_PER_COLUMN = 8.0
"""About the number of independent tests among those of all ends of a column, in both directions."""
CLEAR = 2.5
"""Standard deviations below which the p-value of a distance is not computed."""


@dataclass(frozen=True)
class MovedColumn:
    """A column whose values differ between the quiet rows and those of the periods of a change.

    Attributes
    ----------
    name : str
        Name of the column, as the fit uses it: of a text, such as "region=east".
    distance : float
        The largest difference between both distribution functions, at an end of a part (the
        Kolmogorov-Smirnov distance).
    end : int
        Place among the `ends` of the tested one: there, the difference is largest in standard
        deviations of the differences between quiet periods.
    deviations : float
        This difference, in these standard deviations.
    p_value : float
        P-value of this difference, for all columns together (Bonferroni).
    ends : tuple of float
        Upper ends of all parts but the last.
    before : tuple of float
        Share of the quiet rows in each part.
    now : tuple of float
        Share of the rows of the change in each part.
    is_text : bool
        Whether the column is 1 for the rows with one text, and 0 for the others.
    """

    name: str
    distance: float
    end: int
    deviations: float
    p_value: float
    ends: tuple[float, ...]
    before: tuple[float, ...]
    now: tuple[float, ...]
    is_text: bool

    @property
    def is_higher(self) -> bool:
        """Whether more values than before lie above the tested end."""
        below, below_now = self.below
        return below_now < below

    @property
    def below(self) -> tuple[float, float]:
        """Shares of the rows at or below the tested end, before and now."""
        return sum(self.before[: self.end + 1]), sum(self.now[: self.end + 1])


def moved_columns(
    training: Mapping[str, Parts], before: Sequence[Counts], now: Sequence[Counts]
) -> list[MovedColumn]:
    """All columns, with their distances between the quiet rows and those `now`.

    The first column has the most deviations. The quiet rows are those of the periods `before`, and
    the `training` rows as one more period while these are fewer than 30. Each end of a part is
    tested as the share of rows above the threshold is, with the variation between the quiet
    periods. In at most 5 % of the series without a change, some `p_value` is at most 0.05.
    """
    names = list(training)
    before, now = (
        [own for own in periods if names and any(own.get(names[0], ()))]  # has rows
        for periods in (before, now)
    )
    if not now:
        return []
    extra = _sums([{name: own.counts for name, own in training.items()}], names)
    quiet, by_period = _sums(before, names), _sums(now, names)
    window, usual = by_period.total, usual_for(by_period, quiet, extra.total)
    below, below_now = usual.base.n_above / usual.base.rows, window.n_above / window.rows
    clear = np.abs(deviations(window, usual))
    places = np.cumsum([0, *(len(training[name].ends) for name in names)])
    found = []
    for j, name in enumerate(names):
        own = slice(places[j], places[j + 1])
        best = int(places[j] + np.argmax(clear[own]))
        p_value = 1.0
        if clear[best] > CLEAR:
            p_value = _p_value(window[best], usual[best]) * TESTS_PER_COLUMN * len(names)
        found.append(
            MovedColumn(
                name,
                float(np.abs(below_now - below)[own].max()),
                best - int(places[j]),
                float(clear[best]),
                min(1.0, p_value),
                training[name].ends,
                _shares(below[own]),
                _shares(below_now[own]),
                training[name].is_text,
            )
        )
    return sorted(found, key=lambda column: -column.deviations)


def _p_value(window: Sums, usual: Usual) -> float:
    """The smaller p-value of both directions."""
    sides = (window, usual), (window.mirrored(), usual.mirrored())
    return min(p_varying(own, before.base, before.icc) for own, before in sides)


def _shares(below: Array) -> tuple[float, ...]:
    """Shares of the parts, by the shares at or below their ends."""
    return tuple(np.diff(below, prepend=0.0, append=1.0).tolist())


def _sums(periods: Sequence[Counts], names: Sequence[str]) -> Sums:
    """Sums (n_ends, 1) over periods with rows of those at or below each end of each column."""
    n_ends = sum(len(periods[0][name]) - 1 for name in names) if periods else 1
    total = Sums(*np.zeros((5, n_ends)))
    for period in periods:
        below = np.concatenate([np.cumsum(period[name])[:-1] for name in names]).astype(float)
        n, ones = float(sum(period[names[0]])), np.ones(len(below))
        total += Sums(ones, n * ones, below, n * n * ones, below**2 / n)
    return total[:, None]
