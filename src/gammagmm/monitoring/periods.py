"""Times of rows -> the names of their hours, days, weeks or months."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import numpy as np

from gammagmm._support.dates import DATE_FORMS, TEXT_FORMS, seconds_of
from gammagmm.errors import Note, TableError

__all__ = ["EVERY", "order_notes", "period_names"]

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
    """The name of the period of each row, by the date in its cell; the names sort by time.

    `every` is a key of `EVERY`. Dates are written in one of `TEXT_FORMS`. An offset from UTC is
    ignored: the day is the one that is written. The `column` and the `lines` of the rows are named
    in errors.

    >>> period_names(["2026-03-01 09:30", "2026-03-02T10:00:00Z"], "week", "time")
    ['2026-W09', '2026-W10']
    """
    n_found = {form: len(cells) - len(_unreadable(cells, form)) for form in TEXT_FORMS}
    form = max(n_found, key=lambda each: n_found[each])
    where = f"Column {column!r}"
    if bad := _unreadable(cells, form):
        place = f"row {bad[0] + 1}" if lines is None else f"line {lines[bad[0]]}"
        cell = (cells[bad[0]] or "")[:40]
        raise TableError(
            f"{where}: {len(bad):,} of {len(cells):,} rows have a time that cannot be read. The "
            f"first is in {place}: {cell!r}",
            "Write times as 2026-03-01, 2026-03-01 09:30 or 2026-03-01T09:30:00.",
        )
    if n_found["month/day/year"] == n_found["day/month/year"] == len(cells):
        raise TableError(
            f"{where}: it is not clear whether {(cells[0] or '')[:40]!r} has the day or the month "
            "first",
            "Write times as 2026-03-01, 2026-03-01 09:30 or 2026-03-01T09:30:00.",
        )
    return [EVERY[every](DATE_FORMS[form]((cell or "").strip())) for cell in cells]


def _unreadable(cells: Sequence[str | None], form: str) -> list[int]:
    """Places of the cells that are no dates in this form."""
    return np.flatnonzero(np.isnan(seconds_of(cells, form))).tolist()


def order_notes(known: Iterable[str], names: Iterable[str]) -> list[Note]:
    """Notes if periods with these `names` are earlier than `known` ones, or of another length.

    >>> [note.subject for note in order_notes(["2026-03-05"], ["2026-03-01"])]
    ['2026-03-01']
    """
    known = set(known)
    new, notes = sorted(set(names) - known), []
    if not new:
        return []
    of_length = {name: _length(name) for name in known}
    same = [name for name in known if of_length[name] == _length(new[0])]
    if same and new[0] < max(same):
        notes.append(Note.of("history.earlier", new[0], newest=max(same)))
    if others := sorted(known - set(same) - {name for name in known if of_length[name] is None}):
        notes.append(Note.of("history.length", new[0], other=others[0]))
    return notes


def _length(name: str) -> str | None:
    """hour, day, week or month, if the name is that of such a period."""
    return _LENGTHS.get(re.sub("[0-9]", "0", name))


_LENGTHS = {
    re.sub("[0-9]", "0", name(datetime(2000, 1, 1))): every for every, name in EVERY.items()
}
