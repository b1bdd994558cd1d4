"""Columns with gaps, texts and dates -> columns of finite numbers, by figures of training rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.dates import DATE_FORMS, seconds_of
from gammagmm._support.text import listed, shown
from gammagmm.errors import Note

__all__ = [
    "MAX_CATEGORIES",
    "Column",
    "DateColumn",
    "NumberColumn",
    "TableEncoder",
    "TextColumn",
    "fit_encoder",
    "n_texts",
]

Array = NDArray[np.float64]
Cells = NDArray[Any]
Part: TypeAlias = Literal["days", "weekday", "hour"]

MAX_CATEGORIES = 20
"""Columns with more different texts are not encoded."""
GAP = "(missing)"
"""The text that a gap in a column of text counts as."""
DAY, WEEK = 86_400.0, 7.0
MAX_COMPARED = 500
"""Columns of 0 and 1 that are compared with each other at a time."""
LEAST_NEW = 1e-9
"""Share of the variance of a column below which other columns explain all of it."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, whose gaps are filled with the median of the training rows."""

    name: str
    median: float

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        return (self.name,)

    def encode(self, cells: Cells, is_new: bool) -> tuple[list[Array], list[Note]]:
        """The columns that `cells`, with NaN where missing, become."""
        gaps = np.isnan(cells)
        if not gaps.any():
            return [cells], []
        values = {"n_cells": gaps.sum(), "value": self.median, "is_new": is_new}
        note = Note.of("tables.filled", self.name, **values)
        return [np.where(gaps, self.median, cells)], [note]


@dataclass(frozen=True)
class TextColumn:
    """A column of text, which becomes columns of 0 and 1, one for each of the texts `encoded`.

    The most frequent text of the training rows has no column: all columns are 0 for it, and for a
    text that the training rows do not have. So the columns of a text never add up to 1, which
    principal components cannot bear. A gap counts as the text `GAP`.
    """

    name: str
    texts: tuple[str, ...]  # sorted
    encoded: tuple[str, ...]  # those of them that have a column

    def __post_init__(self) -> None:
        if list(self.texts) != sorted(set(self.texts)):
            raise ValueError("texts must be sorted and different")
        if [text for text in self.texts if text in self.encoded] != list(self.encoded):
            raise ValueError("the texts that have a column must be some of the texts")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        return tuple(f"{self.name}={text}" for text in self.encoded)

    def encode(self, cells: Cells, is_new: bool) -> tuple[list[Array], list[Note]]:
        """The columns that `cells`, with None where missing, become."""
        notes = []
        gaps = np.array([cell is None for cell in cells], dtype=bool)
        if gaps.any():
            notes.append(Note.of("tables.gap text", self.name, n_cells=gaps.sum(), text=GAP))
            cells = np.where(gaps, GAP, cells)
        notes += self._unknown(cells) if is_new else [self._how()]
        return [(cells == text).astype(np.float64) for text in self.encoded], notes

    def _how(self) -> Note:
        if len(self.texts) == 1:
            return Note.of("tables.one text", self.name, text=shown(self.texts[0]))
        if not self.encoded:
            return Note.of("tables.implied text", self.name, texts=listed(self.texts))
        values = {"n_columns": len(self.encoded), "texts": listed(self.texts)}
        return Note.of("tables.encoded", self.name, **values)

    def _unknown(self, cells: Cells) -> list[Note]:
        """The note about texts that the training rows do not have."""
        known = set(self.texts)
        unknown = Counter(cell for cell in cells if cell not in known)
        if not unknown:
            return []
        values = {"n_rows": unknown.total(), "texts": listed(unknown)}
        return [Note.of("tables.unknown text", self.name, **values)]


@dataclass(frozen=True)
class DateColumn:
    """A column of dates, which becomes numbers: days, and circles of the weekday and the hour.

    "days" are those since the first training row's day. "weekday" and "hour" are two columns each,
    the sine and the cosine of the angle on a circle of a week or a day, so that Sunday is next to
    Monday. Only parts that vary among the training rows are used. A gap is filled with the median.
    """

    name: str
    form: str  # a key of DATE_FORMS
    median: float  # seconds since 1970, as is the next
    first: float
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if self.form not in DATE_FORMS:
            raise ValueError(f"form must be one of {', '.join(DATE_FORMS)}")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns that it becomes."""
        ends = {
            "days": ("days",),
            "weekday": ("weekday sine", "weekday cosine"),
            "hour": ("hour sine", "hour cosine"),
        }
        return tuple(f"{self.name} {end}" for part in self.parts for end in ends[part])

    def encode(self, cells: Cells, is_new: bool) -> tuple[list[Array], list[Note]]:
        """The columns that `cells`, with None where missing, become."""
        seconds = seconds_of(cells, self.form)
        gaps, notes = np.isnan(seconds), []
        if not is_new:
            columns = listed(self.outputs)
            code = "tables.dates" if self.parts else "tables.equal dates"
            notes.append(Note.of(code, self.name, form=self.form, columns=columns))
        if gaps.any():
            values = {"n_cells": gaps.sum(), "is_new": is_new}
            notes.append(Note.of("tables.filled date", self.name, **values))
        moments = np.where(gaps, self.median, seconds)
        return [column for part in self.parts for column in self._columns(part, moments)], notes

    def _columns(self, part: Part, seconds: Array) -> list[Array]:
        if part == "days":
            return [(seconds - self.first) / DAY]
        turns = seconds / DAY if part == "hour" else np.floor(seconds / DAY) / WEEK
        angle = 2.0 * np.pi * (turns % 1.0)
        return [np.sin(angle), np.cos(angle)]


Column: TypeAlias = NumberColumn | TextColumn | DateColumn
"""What is known of one column."""


@dataclass(frozen=True)
class TableEncoder:
    """The map from columns as they are given to columns of finite numbers.

    Attributes
    ----------
    names : tuple of str
        The columns that are given, in their order.
    numbers, texts, dates : tuple
        What is known of each column, by its kind.

    Examples
    --------
    >>> import numpy as np
    >>> cells = [np.array([1.0, np.nan, 4.0]), np.array(["a", "b", "c"], dtype=object)]
    >>> encoder = fit_encoder(("size", "kind"), cells)
    >>> encoder.outputs, encoder.transform(cells)[0][1].tolist()
    (('size', 'kind=b', 'kind=c'), [2.5, 1.0, 0.0])
    """

    names: tuple[str, ...]
    numbers: tuple[NumberColumn, ...] = ()
    texts: tuple[TextColumn, ...] = ()
    dates: tuple[DateColumn, ...] = ()

    def __post_init__(self) -> None:
        known = [column.name for column in self._columns]
        if sorted(known) != sorted(set(self.names)) or len(known) != len(self.names):
            raise ValueError("every column must be a number, a text or a date, and have one name")

    @property
    def _columns(self) -> list[Column]:
        return [*self.numbers, *self.texts, *self.dates]

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is known of each column, in the order of `names`."""
        known = {column.name: column for column in self._columns}
        return tuple(known[name] for name in self.names)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def encoded(self) -> dict[str, tuple[str, str]]:
        """Column and text of each column of 0 and 1, by its name."""
        return {
            output: (column.name, text)
            for column in self.texts
            for output, text in zip(column.outputs, column.encoded, strict=True)
        }

    @property
    def other_texts(self) -> dict[str, str]:
        """The text of each column of text in the rows that have 0 in all of its columns."""
        left = {c.name: [t for t in c.texts if t not in c.encoded] for c in self.texts}
        return {name: " or ".join(texts) for name, texts in left.items()}

    def renamed(self, names: Mapping[str, str]) -> TableEncoder:
        """The same map of columns with other names."""
        kinds: Any = (self.numbers, self.texts, self.dates)
        renamed = (tuple(replace(each, name=names[each.name]) for each in kind) for kind in kinds)
        return TableEncoder(tuple(names[name] for name in self.names), *renamed)

    def transform(
        self, cells: Sequence[Cells], *, is_new: bool = True
    ) -> tuple[Array, tuple[Note, ...]]:
        """Finite numbers (n, d) of `cells`, an array for each of `names`, and notes.

        A column of numbers is float64, NaN where missing. Texts and dates are objects: str, or None
        where missing. `is_new` is false for the training rows; it changes only the notes.
        """
        arrays, notes = list[Array](), list[Note]()
        for column, own in zip(self.columns, cells, strict=True):
            made, said = column.encode(own, is_new)
            arrays += made
            notes += said
        n_rows = len(cells[0]) if cells else 0
        values = np.column_stack(arrays) if arrays else np.empty((n_rows, 0))
        return values, tuple(notes)


def fit_encoder(
    names: Sequence[str], cells: Sequence[Cells], dates: Mapping[str, str] | None = None
) -> TableEncoder:
    """The encoder of training rows, in which every column has at least one value.

    `dates` gives the form, a key of `DATE_FORMS`, of columns that hold dates; other columns of
    objects hold text.
    """
    forms, numbers, texts, moments = dates or {}, [], [], []
    for name, column in zip(names, cells, strict=True):
        if column.dtype != object:
            numbers.append(NumberColumn(name, _median(column)))
        elif name in forms:
            moments.append(_fit_dates(name, column, forms[name]))
        else:
            texts.append(_fit_texts(name, column))
    cells_of = dict(zip(names, cells, strict=True))
    texts = _without_collinear(texts, [cells_of[column.name] for column in texts])
    return TableEncoder(tuple(names), tuple(numbers), tuple(texts), tuple(moments))


def _fit_texts(name: str, cells: Cells) -> TextColumn:
    """The column of each text but the most frequent one."""
    counts = Counter(GAP if cell is None else cell for cell in cells)
    found = sorted(counts)
    usual = max(found, key=lambda text: counts[text])
    return TextColumn(name, tuple(found), tuple(text for text in found if text != usual))


def _without_collinear(columns: list[TextColumn], cells: list[Cells]) -> list[TextColumn]:
    """The columns without the texts whose column of 0 and 1 is a sum of other such columns.

    A code and its meaning in two columns say the same twice. Only columns of 0 and 1 that are near
    each other are compared, about `MAX_COMPARED` at a time, so that the time is proportional to
    their number.
    """
    found, first = list[TextColumn](), 0
    for end in range(1, len(columns) + 1):
        n_compared = sum(len(column.encoded) for column in columns[first : end + 1])
        if n_compared > MAX_COMPARED or end == len(columns):
            found += _without_sums(columns[first:end], cells[first:end])
            first = end
    return found


def _without_sums(columns: list[TextColumn], cells: list[Cells]) -> list[TextColumn]:
    """The columns without the texts whose column of 0 and 1 is a sum of others of these."""
    if len(columns) < 2:
        return columns
    made = [c.encode(own, is_new=True)[0] for c, own in zip(columns, cells, strict=True)]
    values = np.column_stack([np.empty((len(cells[0]), 0)), *(v for own in made for v in own)])
    values -= values.mean(axis=0)
    products = values.T @ values
    d = len(products)
    is_kept, factors = np.zeros(d, dtype=bool), np.empty((d, d))
    for j in range(d):  # a Cholesky decomposition of the products of the columns that are kept
        n = np.count_nonzero(is_kept)
        left = products[:, j] - factors[:, :n] @ factors[j, :n]
        is_kept[j] = left[j] > LEAST_NEW * products[j, j]
        if is_kept[j]:
            factors[:, n] = left / np.sqrt(left[j])
    kept = iter(is_kept.tolist())
    return [replace(c, encoded=tuple(t for t in c.encoded if next(kept))) for c in columns]


def n_texts(cells: Cells) -> int:
    """Number of different texts in a column."""
    return len({cell for cell in cells if cell is not None})


def _fit_dates(name: str, cells: Cells, form: str) -> DateColumn:
    seconds = seconds_of(cells, form)
    known = seconds[~np.isnan(seconds)]
    days = np.floor(known / DAY)
    varies: dict[Part, bool] = {
        "days": bool(np.ptp(known) > 0.0),
        "weekday": bool(np.ptp(days % WEEK) > 0.0),
        "hour": bool(np.ptp(known % DAY) > 0.0),
    }
    parts = tuple(part for part, does in varies.items() if does)
    return DateColumn(name, form, float(np.median(known)), float(days.min()) * DAY, parts)


def _median(values: Array) -> float:
    """Median of the values that are not missing."""
    present = values[~np.isnan(values)]
    places = [(len(present) - 1) // 2, len(present) // 2]
    low, high = np.partition(present, places)[places].tolist()  # quicker than np.median
    median = (low + high) / 2.0
    return median if math.isfinite(median) else low / 2.0 + high / 2.0
