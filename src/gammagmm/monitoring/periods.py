"""Times of rows -> the names of their hours, days, weeks or months."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta

import numpy as np

from gammagmm._support.dates import DATE_FORMS, TEXT_FORMS, seconds_of
from gammagmm.errors import Note, TableError

__all__ = ["EVERY", "empty_days", "order_notes", "period_names", "weekdays_of"]

EVERY: dict[str, Callable[[datetime], str]] = {
    "hour": lambda time: f"{time:%Y-%m-%dT%H}",
    "day": lambda time: f"{time:%Y-%m-%d}",
    "week": lambda time: "{}-W{:02}".format(*time.isocalendar()),
    "month": lambda time: f"{time:%Y-%m}",
}
"""The name of the period that a time lies in, by the length of the periods."""


def period_names(
    cells: Sequence[str | None], every: str, column: str, lines: Sequence[int] | None = None
) -> list[str]:
    """The name of the period of each row, by the date in its cell; empty where it is blank.

    The names sort by time. `every` is a key of `EVERY`. Dates are written in one of `TEXT_FORMS`.
    An offset from UTC is ignored: the day is the one that is written. The `column` and the `lines`
    of the rows are named in errors.

    >>> period_names(["2026-03-01 09:30", "", "2026-03-02T10:00:00Z"], "week", "time")
    ['2026-W09', '', '2026-W10']
    """
    texts = [(cell or "").strip() for cell in cells]
    given = np.flatnonzero([text != "" for text in texts]).tolist()
    bad_of = {form: _unreadable([texts[row] for row in given], form) for form in TEXT_FORMS}
    form = min(bad_of, key=lambda each: len(bad_of[each]))
    where = f"Column {column!r}"
    if bad := bad_of[form]:
        row = given[bad[0]]
        place = f"row {row + 1}" if lines is None else f"line {lines[row]}"
        raise TableError(
            f"{where}: {len(bad):,} of {len(cells):,} rows have a time that cannot be read. The "
            f"first is in {place}: {texts[row][:40]!r}",
            "Write times as 2026-03-01, 2026-03-01 09:30 or 2026-03-01T09:30:00.",
        )
    if given and not bad_of["month/day/year"] and not bad_of["day/month/year"]:
        raise TableError(
            f"{where}: it is not clear whether {texts[given[0]][:40]!r} has the day or the month "
            "first",
            "Write times as 2026-03-01, 2026-03-01 09:30 or 2026-03-01T09:30:00.",
        )
    return [EVERY[every](DATE_FORMS[form](text)) if text else "" for text in texts]


def _unreadable(texts: Sequence[str], form: str) -> list[int]:
    """Places of the texts that are no dates in this form."""
    return np.flatnonzero(np.isnan(seconds_of(texts, form))).tolist()


def order_notes(known: Iterable[str], names: Iterable[str]) -> list[Note]:
    """Notes if periods with these `names` are earlier than `known` ones, or of another length.

    Names that `period_names` does not give have neither.

    >>> [note.subject for note in order_notes(["2026-03-05"], ["2026-03-01"])]
    ['2026-03-01']
    """
    lengths = {name: length for name in known if (length := _length(name))}
    new = sorted(name for name in set(names) - lengths.keys() if _length(name))
    if not new:
        return []
    notes, own = [], _length(new[0])
    same = [name for name, length in lengths.items() if length == own]
    if same and new[0] < max(same):
        notes.append(Note.of("history.earlier", new[0], newest=max(same)))
    if others := [name for name, length in lengths.items() if length != own]:
        notes.append(Note.of("history.length", new[0], other=min(others)))
    return notes


def weekdays_of(names: Iterable[str]) -> list[int] | None:
    """The weekdays of periods that are days, from 0 for Monday; None if some are not.

    >>> weekdays_of(["2026-03-02", "2026-03-08"])
    [0, 6]
    """
    days = _days(names)
    return None if days is None else [day.weekday() for day in days]


def empty_days(names: Iterable[str]) -> list[str]:
    """The days between those of `names` that are not among them; none if these are the majority.

    A few scattered days, or one with a wrong year, do not make the days between empty ones.

    >>> empty_days(["2026-03-02", "2026-03-04"]), empty_days(["2026-03-02", "2027-03-02"])
    (['2026-03-03'], [])
    """
    days = set(_days(names) or ())
    if not days or (n_all := (max(days) - min(days)).days + 1) > 2 * len(days):
        return []
    every = {min(days) + timedelta(days=t) for t in range(n_all)}
    return [day.isoformat() for day in sorted(every - days)]


def _days(names: Iterable[str]) -> list[date] | None:
    """The days with these names; None if some are not days."""
    names = list(names)
    if any(_length(name) != "day" for name in names):
        return None
    try:
        return [date.fromisoformat(name) for name in names]
    except ValueError:  # such as 2026-02-30
        return None


def _length(name: str) -> str | None:
    """hour, day, week or month, if the name is that of such a period."""
    return _LENGTHS.get(re.sub("[0-9]", "0", name))


_LENGTHS = {
    re.sub("[0-9]", "0", name(datetime(2000, 1, 1))): every for every, name in EVERY.items()
}
