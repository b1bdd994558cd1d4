"""Counts of rows above a threshold over time -> the period in which the share has changed.

The newest periods are compared with the quiet ones before them. Two tests must agree: Fisher's
exact test, and the one for periods whose shares differ, see `gammagmm.monitoring.variation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gammagmm.monitoring.counts import Count
from gammagmm.monitoring.variation import (
    Sums,
    Usual,
    deviations,
    p_exactly,
    p_higher,
    p_varying,
    usual_for,
)

__all__ = ["EXACT_WEIGHTS", "PER_PERIODS", "WEIGHTS", "WINDOWS", "Change", "Direction", "Series"]

Array = NDArray[np.float64]
Direction = Literal["raised", "fallen"]

PER_PERIODS = 100
"""Number of periods in which a series without a change has an alarm with probability `alpha`."""
WINDOWS = (1, 3, 8)
"""Numbers of periods, up to the newest one, that are tested together."""
EXACT_WEIGHTS = (0.25, 0.5, 0.25)
"""Parts of the level of a period that Fisher's tests of these windows have: their sum is 1."""
WEIGHTS = (0.1, 1.1, 0.1)
"""The same of the tests for periods that differ.

Their sum may be larger than 1, because windows overlap: experiments/monitoring.py measures the rate
of false alarms, which is about `alpha` at `MEASURED_ICC` and higher above. Most is for changes that
three periods show; with the rest, a jump is seen in one.
"""
N_WEEKDAYS = 7


@dataclass(frozen=True)
class Change:
    """A test that shows a change.

    Attributes
    ----------
    direction : {"raised", "fallen"}
        Whether the share has risen.
    window : int
        Number of periods, up to the one in which the change was found, whose rows together show it.
    p_value : float
        P-value of the test for periods whose shares differ.
    level : float
        Level of the test, which the p-value does not exceed.
    base : Count
        The rows of the quiet periods before the change.
    """

    direction: Direction
    window: int
    p_value: float
    level: float
    base: Count


class Series:
    """Cumulated sums of the counts of periods that have rows, by weekday if these are given."""

    def __init__(self, periods: Sequence[Count], weekdays: Sequence[int] | None = None) -> None:
        n = np.array([period.n_rows for period in periods], dtype=float)
        k = np.array([period.n_above for period in periods], dtype=float)
        each = np.stack([np.ones(len(n)), n, k, n * n, k * k / np.maximum(n, 1.0)])[..., None]
        if weekdays is not None:
            each = each * (np.array(weekdays)[:, None] == np.arange(N_WEEKDAYS))
        self.sums = Sums(*np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0), (0, 0))))
        self.n_periods = len(n)

    def between(self, first: Any, end: Any) -> Sums:
        """Sums (..., 7 or 1) over the periods from `first` to before `end`."""
        return self.sums[end] - self.sums[first]

    def first_change(
        self, start: int, quiet: Sums, extra: Sums, levels: Array
    ) -> tuple[int, Change] | None:
        """Place of the first period from `start` on that shows a change, and the change.

        Windows begin at `start` or later. They are compared with the `quiet` periods before `start`
        and the periods from `start` on before the window, and while learning also with the `extra`
        rows. `levels` (n_periods,) are those of one direction.
        """
        ends = np.arange(start + 1, self.n_periods + 1)[:, None]
        firsts = ends - np.array(WINDOWS)
        is_tested, firsts = firsts >= start, np.maximum(firsts, start)
        window = self.between(firsts, ends)
        usual = usual_for(window, self.between(start, firsts) + quiet, extra)
        is_tested &= usual.rows.rows > 0.0
        found: list[tuple[int, int, Change]] = []
        directions: tuple[Direction, ...] = ("raised", "fallen")
        for direction in directions:
            sides = window.total, usual
            if direction == "fallen":
                sides = window.total.mirrored(), usual.mirrored()
            found += self._changes(direction, *sides, is_tested, levels[start:])
        if not found:
            return None
        place, _, change = min(found, key=lambda each: each[:2])
        return start + place, change

    @staticmethod
    def _changes(
        direction: Direction,
        window: Sums,
        usual: Usual,
        is_tested: NDArray[np.bool_],
        levels: Array,
    ) -> list[tuple[int, int, Change]]:
        """The first change in one direction, as a list of none or one, with its window's place."""
        limits, exact = levels[:, None] * np.array(WEIGHTS), levels[:, None] * EXACT_WEIGHTS
        is_higher = window.n_above * usual.base.rows > usual.base.n_above * window.rows
        is_likely = p_exactly(window, usual.base, usual.icc) <= limits
        for t, j in np.argwhere(is_tested & is_higher & is_likely).tolist():
            own, before = window[t, j], usual[t, j]
            p_value = p_varying(own, before.base, before.icc)
            count = before.rows.count
            if p_value <= limits[t, j] and p_higher(own.count, count) <= exact[t, j]:
                if direction == "fallen":
                    count = Count(count.n_rows, count.n_rows - count.n_above)
                change = Change(direction, WINDOWS[j], p_value, float(limits[t, j]), count)
                return [(t, j, change)]
        return []

    def begin(self, direction: Direction, start: int, end: int, quiet: Sums, extra: Sums) -> int:
        """The likeliest first period of a change that the period before `end` shows.

        Among the newest 8 periods from `start` on, it is that from which on the share differs most
        from the usual one, in standard deviations.
        """
        firsts = np.arange(max(start, end - WINDOWS[-1]), end)
        window = self.between(firsts, end)
        usual = usual_for(window, self.between(start, firsts) + quiet, extra)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = deviations(window.total, usual) * (1.0 if direction == "raised" else -1.0)
        return int(firsts[np.nanargmax(found)])
