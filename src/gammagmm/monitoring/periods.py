"""Times of rows -> the names of their hours, days, weeks or months."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from gammagmm.errors import TableError

__all__ = ["EVERY", "period_names"]

EVERY: dict[str, Callable[[datetime], str]] = {
    "hour": lambda time: f"{time:%Y-%m-%dT%H}",
    "day": lambda time: f"{time:%Y-%m-%d}",
    "week": lambda time: "{}-W{:02}".format(*time.isocalendar()),
    "month": lambda time: f"{time:%Y-%m}",
}
"""The name of the period that a time lies in, by the length of the periods."""


def period_names(times: Sequence[str], every: str, column: str) -> list[str]:
    """The name of the period of each of the `times`, which are dates in the form of ISO 8601.

    The names sort by time. An offset from UTC is ignored: the day is the one that is written. The
    times come from the `column`, and the first one is that of row 1, which errors name.

    >>> period_names(["2026-03-01 09:30", "2026-03-02T10:00:00Z"], "week", "time")
    ['2026-W09', '2026-W10']
    """
    if every not in EVERY:
        raise ValueError(f"every must be one of {', '.join(EVERY)}, got {every!r}.")
    name, found, bad = EVERY[every], [], []
    for row, text in enumerate(times, start=1):
        try:
            found.append(name(datetime.fromisoformat(text.strip())))
        except ValueError:
            bad.append(row)
    if bad:
        rows = f"{len(bad)} of {len(times)} rows have"
        raise TableError(
            f"Column {column!r}: {rows} a time that cannot be read. The first is row {bad[0]}, "
            f"{times[bad[0] - 1][:40]!r}",
            "Write times as 2026-03-01, 2026-03-01 09:30 or 2026-03-01T09:30:00.",
        )
    return found
