"""Texts of a column -> moments in time, where all of them are dates written in one way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

__all__ = ["DATE_FORMS", "NUMBER_FORMS", "TEXT_FORMS", "date_form", "seconds_of"]

EPOCH = datetime(1970, 1, 1)
SERIAL_EPOCH = datetime(1899, 12, 30)
"""The day 0 of spreadsheets."""
PIVOT = "70"
"""Years of two digits from this one on are of the last century."""
_LIKE_A_DATE = re.compile(r"\s*\d{1,4}[./-]\d{1,2}[./-]\d")
_ISO = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})((?:[ T]\d\d:\d\d.*)?)")
_NUMBERS = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d\d)(?:[ T](\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?"
)


def _iso(text: str) -> datetime:
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError("not a date")
    year, _, month, day, rest = match.groups()
    # The clock time, whatever the time zone is: it is what weekdays and hours mean to people.
    return datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{rest}").replace(tzinfo=None)


def _numbers(separator: str, is_day_first: bool) -> Callable[[str], datetime]:
    def parse(text: str) -> datetime:
        match = _NUMBERS.fullmatch(text)
        if match is None or match[2] != separator:
            raise ValueError("not a date")
        day, month = (match[1], match[3]) if is_day_first else (match[3], match[1])
        hour, minute, second = (int(match[group] or 0) for group in (5, 6, 7))
        year = int(match[4]) + (0 if len(match[4]) == 4 else 1900 if match[4] >= PIVOT else 2000)
        return datetime(year, int(month), int(day), hour, minute, second)

    return parse


def _digits(text: str) -> datetime:
    if len(text) != 8:
        raise ValueError("not a date")
    return datetime.strptime(text, "%Y%m%d")


DATE_FORMS: dict[str, Callable[[str], datetime]] = {
    "year-month-day": _iso,
    "day.month.year": _numbers(".", is_day_first=True),
    "month/day/year": _numbers("/", is_day_first=False),
    "day/month/year": _numbers("/", is_day_first=True),
    "day-month-year": _numbers("-", is_day_first=True),
    "yearmonthday": _digits,
    "spreadsheet days": lambda text: SERIAL_EPOCH + timedelta(days=float(text)),
    "Unix seconds": lambda text: EPOCH + timedelta(seconds=float(text)),
    "Unix milliseconds": lambda text: EPOCH + timedelta(milliseconds=float(text)),
    "year": lambda text: datetime(int(text), 1, 1),
}
"""Ways to write a date, of texts also with a time of day; the first that fits all is taken."""
NUMBER_FORMS = ("yearmonthday", "spreadsheet days", "Unix seconds", "Unix milliseconds", "year")
"""Those of them that are numbers, which can also be something else than dates."""
TEXT_FORMS = tuple(form for form in DATE_FORMS if form not in NUMBER_FORMS)
"""The others."""


def date_form(cells: Iterable[str | None]) -> str | None:
    """The key of `DATE_FORMS` in which all `cells` that are not None are dates; None without one.

    >>> date_form(["31.12.2024", None, "1.2.2025 08:30"]), date_form(["1.5"])
    ('day.month.year', None)
    """
    texts = {cell for cell in cells if cell is not None}
    if not all(map(_LIKE_A_DATE.match, texts)):
        return None
    fitting = (form for form in TEXT_FORMS if all(_moment(text, form) for text in texts))
    return next(fitting, None) if texts else None


def _moment(text: str, form: str) -> datetime | None:
    try:
        return DATE_FORMS[form](text.strip())
    except (ValueError, OverflowError):
        return None


def seconds_of(cells: Iterable[str | None], form: str) -> NDArray[np.float64]:
    """Seconds since 1970 of dates in one form; NaN where a cell is None or another text."""
    every = list(cells)
    moments = {cell: None if cell is None else _moment(cell, form) for cell in set(every)}
    seconds = {
        cell: np.nan if moment is None else (moment - EPOCH).total_seconds()
        for cell, moment in moments.items()
    }
    return np.array([seconds[cell] for cell in every], dtype=np.float64)
