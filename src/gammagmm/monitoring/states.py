"""Counts over time -> the state after each period: learning, quiet, raised, fallen or back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gammagmm.monitoring.alarms import WINDOWS, Change, Series
from gammagmm.monitoring.counts import Count
from gammagmm.monitoring.variation import LEARNING_PERIODS, Sums, p_varying, usual_for

__all__ = ["LEARNING_PERIODS", "Kind", "State", "find_states"]

Array = NDArray[np.float64]
Kind = Literal["learning", "quiet", "raised", "fallen", "back"]

BACK_LEVEL = 0.003
"""Level of the test that the newest periods differ from those of the change."""
LIKE_QUIET = 0.05
"""P-value from which the newest periods count as like the quiet ones."""


@dataclass(frozen=True)
class State:
    """The state of a series after one of its periods.

    Attributes
    ----------
    kind : {"learning", "quiet", "raised", "fallen", "back"}
        "learning" until there are 30 quiet periods, "raised" or "fallen" from a change on, and
        "back" for 30 periods from the one on in which the share is like that of the quiet periods
        again.
    since : int
        Place of the first period of this state; of a change, the likeliest one, which can be up to
        7 periods earlier than the one in which it was found.
    n_quiet : int
        Number of quiet periods with rows up to here, since the series was started.
    change : Change or None, default=None
        The test that showed the change that lasts, or the last one.
    changed : int or None, default=None
        Place of the first period of this change.
    """

    kind: Kind
    since: int
    n_quiet: int
    change: Change | None = None
    changed: int | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether the share has changed and is not back."""
        return self.kind in ("raised", "fallen")

    @property
    def n_learning(self) -> int:
        """Number of quiet periods from which the series is learned."""
        return LEARNING_PERIODS

    @property
    def is_learning(self) -> bool:
        """Whether there are fewer quiet periods, so that their variation is assumed."""
        return self.n_quiet < LEARNING_PERIODS


def find_states(
    periods: Sequence[Count],
    reference: Count,
    levels: Array,
    starts: Sequence[int] = (),
    weekdays: Sequence[int] | None = None,
) -> list[State]:
    """The state after each of the `periods`.

    `levels` (n_periods,) are the probabilities of a false alarm in each period. The series starts
    again at the places `starts`. The rows of the `reference` count as one more period while the
    first of these series is learning. A period without rows has the state of the one before.
    `weekdays` (n_periods,) are those of days, from 0 to 6.
    """
    states: list[State] = []
    for first, end in zip((0, *starts), (*starts, len(periods)), strict=True):
        extra = Sums() if first else Sums.of(reference)
        own = None if weekdays is None else weekdays[first:end]
        states += _of_part(periods[first:end], extra, levels[first:end], own, first)
    return states


def _of_part(
    periods: Sequence[Count],
    extra: Sums,
    levels: Array,
    weekdays: Sequence[int] | None,
    first: int,
) -> list[State]:
    """The states of periods without a new start, whose first one has the place `first`."""
    places = [t for t, period in enumerate(periods) if period.n_rows]
    days = None if weekdays is None else [weekdays[t] for t in places]
    series = Series([periods[t] for t in places], days)
    found = iter(_of_series(series, extra, levels[places]))
    states: list[State] = []
    last = State("learning", first, 0)
    for period in periods:
        if period.n_rows:
            own = next(found)
            changed = None if own.changed is None else first + places[own.changed]
            since = first + (0 if own.kind == "learning" else places[own.since])
            last = replace(own, since=since, changed=changed)
        states.append(last)
    return states


def _of_series(series: Series, extra: Sums, levels: Array) -> list[State]:
    """The same for periods that all have rows."""
    states, quiet, start, last = list[State](), series.between(0, 0), 0, None
    while True:
        found = series.first_change(start, quiet, extra, 0.5 * levels)
        end = series.n_periods if found is None else found[0]
        states += _quiet_states(len(states), end, start, int(quiet.total.periods), last)
        if found is None:
            return states
        place, change = found
        begin = series.begin(change.direction, start, place + 1, quiet, extra)
        quiet += series.between(start, begin)
        rows = usual_for(series.between(begin, place + 1), quiet, extra).rows
        change = replace(change, base=rows.count)
        n_quiet = int(quiet.total.periods)
        own = State(change.direction, begin, n_quiet, change, begin)
        back = _first_back(series, own, place, quiet, extra)
        states += [own] * ((series.n_periods if back is None else back[1] + 1) - len(states))
        if back is None:
            return states
        start = back[0]
        last = State("back", start, n_quiet + back[1] + 1 - start, change, begin)
        states[-1] = last


def _quiet_states(
    first: int, end: int, start: int, n_before: int, last: State | None
) -> list[State]:
    """The states of the quiet periods from `first` to before `end`."""
    states = []
    for t in range(first, end):
        n_quiet = n_before + t + 1 - start
        if last is not None and t < last.since + LEARNING_PERIODS:
            states.append(replace(last, n_quiet=n_quiet))
        elif n_quiet < LEARNING_PERIODS:
            states.append(State("learning", 0, n_quiet))
        else:
            since = LEARNING_PERIODS - 1 if last is None else last.since + LEARNING_PERIODS
            states.append(State("quiet", since, n_quiet))
    return states


def _first_back(
    series: Series, state: State, place: int, quiet: Sums, extra: Sums
) -> tuple[int, int] | None:
    """First and last place of the first periods after `place` that are like the quiet ones again.

    These are windows up to the newest period, or all periods after the alarm, which do not differ
    from the quiet ones and differ from the periods since the change.
    """
    for end in range(place + 2, series.n_periods + 1):
        for first in sorted({place + 1, *(end - w for w in WINDOWS)}, reverse=True):
            if first <= place:
                continue
            window, changed = series.between(first, end), series.between(state.since, first).total
            usual, own = usual_for(window, quiet, extra), window.total
            if state.kind == "fallen":
                usual, own, changed = usual.mirrored(), own.mirrored(), changed.mirrored()
            is_like_quiet = p_varying(own, usual.base, usual.icc) > LIKE_QUIET
            if is_like_quiet and _p_lower(own, changed, usual.icc) <= BACK_LEVEL:
                return first, end - 1
    return None


def _p_lower(window: Sums, base: Sums, icc: Array) -> float:
    return p_varying(window.mirrored(), base.mirrored(), icc)
