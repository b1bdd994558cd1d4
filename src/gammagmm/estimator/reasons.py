"""Training rows -> the usual values of their columns -> the columns in which a row is unusual."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import percent
from gammagmm.table.scaling import LARGEST, ROUNDING
from gammagmm.table.table import Table

__all__ = ["ColumnShape", "Reason", "UsualValues", "flag_words", "reason_words", "usual_values"]

Array = NDArray[np.float64]

MAX_REASONS = 3
"""Most columns that are named for a row."""
MAX_VALUES = 6
"""Most columns whose values describe a row."""
COMBINATION = "no single value is unusual; the combination of values is"
"""The reason of a flagged row that is unusual in no column."""
USUAL = 2.0
"""Robust deviations from the median up to which a value is usual."""
FAR = 6.0
"""Robust deviations from which a value is far away."""
RARE = 0.05
"""Share of the rows below which one of the two values of a column is rare."""
NORMAL_QUARTILE, NORMAL_DECILE = 0.6745, 1.2816
"""The 75 % and 90 % points of the standard normal distribution."""
LONGEST_TAIL = 1.5
"""Most by which the deciles can make a deviation larger than the quartiles do."""
N_DIGITS = range(4, 18)
"""Significant digits of a number in words: as few as tell it from the end of the usual range."""
MAX_WHOLE = 15
"""Most digits before the point that are written out."""
LEAST_SHOWN = 1.0
"""Deviations on both sides of the median that a picture of a column shows at least."""
N_BARS = 25
"""Bars of a picture of a column."""
MAX_NUMBERS = 50
"""Whole numbers from the smallest to the largest value of a column that have a bar each."""


@dataclass(frozen=True)
class ColumnShape:
    """How the values of a column are distributed, for a picture behind a value.

    Places are from 0 to 1. They grow with the deviations of the values from the median, up to about
    2 as these do, and then as their logarithms.

    Attributes
    ----------
    heights : tuple of float
        The number of training rows in each cell; the highest is 1.
    edges : tuple of float
        Places of the ends of the cells. There is one for each whole number of a column of few of
        them; otherwise `N_BARS` have the same width.
    low, high : float
        Places of the ends of the usual range.
    ends : tuple of two floats
        The deviations at the places 0 and 1, as inverse hyperbolic sines.
    """

    heights: tuple[float, ...]
    edges: tuple[float, ...]
    low: float
    high: float
    ends: tuple[float, float]

    def place(self, reason: Reason) -> float:
        """Where the value of a row is, from 0 to 1."""
        return float(_places(reason.deviations, self.ends))


@dataclass(frozen=True)
class Reason:
    """A column in which a row is unusual.

    Attributes
    ----------
    column : str
        Name of the column of the table.
    value : float
        The row's value.
    deviations : float
        Its distance from the median of the training rows, in robust deviations; see `UsualValues`.
    low, high : float
        The usual range; in a column with two values, these two.
    share : float or None
        Share of the training rows with this value, in a column with two values; otherwise None.
    text : str or None
        The text whose column of 0 and 1 it is; None for a column that is no text.
    """

    column: str
    value: float
    deviations: float
    low: float
    high: float
    share: float | None = None
    text: str | None = None

    @property
    def is_other_text(self) -> bool:
        """Whether the row has another text than `text`."""
        return self.text is not None and self.value == 0.0

    @property
    def value_words(self) -> str:
        """The column and the row's value, such as "amount 5,400" or "country BR"."""
        return f"{self.column} {self.value_word}"

    @property
    def value_word(self) -> str:
        """The row's value in words."""
        if self.text is None:
            return _written([self.value], self.low, self.high)[0]
        return f"not {self.text}" if self.is_other_text else self.text

    @property
    def key(self) -> tuple[str, str | None]:
        """The column of numbers that the value is in."""
        return self.column, self.text

    @property
    def is_odd(self) -> bool:
        """Whether the value lies outside the usual range, or is the rare one of two values."""
        if self.share is not None:
            return self.share < RARE
        return not self.low <= self.value <= self.high

    @property
    def usual_words(self) -> str:
        """The usual range in words, such as "20 to 80"; empty for a column with one value."""
        if not np.isfinite([self.low, self.high]).all():
            return ""
        low, high = _written([self.low, self.high], self.low, self.high)
        return low if low == high else f"{low} to {high}"

    @property
    def side_words(self) -> str:
        """How the value is odd, such as "far above the usual"; empty if it is usual."""
        if not self.is_odd:
            return ""
        if self.share is not None:
            return f"rare: {percent(self.share)} of the rows"
        far = "far " if abs(self.deviations) >= FAR else ""
        return f"{far}{'above' if self.value > self.high else 'below'} the usual"

    @property
    def range_words(self) -> str:
        """What is usual, beside the value: "usual 20 to 80", or the share of the rows with it."""
        if self.share is not None:
            return self.side_words or f"{percent(self.share)} of the rows"
        return self.usual_words and f"usual {self.usual_words}"

    @property
    def words(self) -> str:
        """The reason in words, such as "amount 5,400 is far above the usual 20 to 80"."""
        if self.share is not None:
            share = percent(self.share)
            return f"{self.column} is {self.value_word}, which is rare ({share} of the rows)"
        far = "far " if abs(self.deviations) >= FAR else ""
        side, end = ("above", self.high) if self.value > self.high else ("below", self.low)
        value, low, high = _written([self.value, self.low, self.high], self.value, end)
        usual = low if low == high else f"{low} to {high}"
        return f"{self.column} {value} is {far}{side} the usual {usual}"


FIGURES = ("unit", "median", "below", "above", "low", "high", "share_high")
"""What `UsualValues` has of each column."""


@dataclass(frozen=True, eq=False)
class UsualValues:
    """The usual values of each of d columns, by the training rows.

    A robust deviation is (90 % quantile - median) / 1.2816 above the median and (median - 10 %
    quantile) / 1.2816 below it, which equals the standard deviation of a normal column and is
    larger towards the long tail of a skewed one. It is at most 1.5 times what the quartiles give,
    so that up to a quarter of odd rows on one side of a column do not hide themselves. Where it
    is 0, it is the standard deviation.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    texts : mapping
        Column of the table and text of each of them that encodes a text, by its name.
    other_texts : mapping
        The text of a training row that has 0 in all columns of a column of text, by its name.
    unit : ndarray of shape (d,)
        A power of two of the size of the column; `median`, `below` and `above` are in this unit, so
        that nothing overflows.
    median, below, above : ndarray of shape (d,)
        Median, and robust deviation below and above it; infinite for a constant column.
    low, high : ndarray of shape (d,)
        The usual range: the smallest and the largest value of a training row within two deviations
        of the median; in a column with two values, these two. Infinite for a constant column.
    share_high : ndarray of shape (d,)
        Share of the training rows with the value `high` in a column with two values, NaN in others.
    """

    names: tuple[str, ...]
    texts: Mapping[str, tuple[str, str]]
    other_texts: Mapping[str, str]
    unit: Array
    median: Array
    below: Array
    above: Array
    low: Array
    high: Array
    share_high: Array

    def renamed(self, table: Table) -> UsualValues:
        """The same values with the names of the columns of `table`."""
        texts, others = table.preparation.encoded, table.preparation.other_texts
        return replace(self, names=table.columns, texts=texts, other_texts=others)

    def reasons(self, rows: Any) -> list[tuple[Reason, ...]]:
        """For each of `rows` (n, d), the columns in which it is unusual, the farthest first.

        These are at most three columns in which its value lies outside the usual range, or is the
        rare one of two values. Training rows and new rows have the same reasons.
        """
        deviations, shares = self.deviations(rows), self._shares(rows)
        is_out = (rows < self.low) | (rows > self.high) | (shares < RARE)
        found: list[tuple[Reason, ...]] = [()] * len(rows)
        for i in np.flatnonzero(is_out.any(axis=1)).tolist():
            columns = np.flatnonzero(is_out[i])
            order = columns[np.argsort(-np.abs(deviations[i, columns]), kind="stable")]
            found[i] = self._first_reasons(rows[i], deviations[i], shares[i], order)
        return found

    def described(self, rows: Any) -> list[tuple[Reason, ...]]:
        """The values of each of the training `rows` (n, d) that a person judges it by.

        These are the values of at most six columns, those farthest from their medians first.
        """
        values = self.values_of(rows)
        return [tuple(sorted(own, key=lambda v: -abs(v.deviations))[:MAX_VALUES]) for own in values]

    def shapes(
        self, rows: Any, keys: Collection[tuple[str, str | None]]
    ) -> dict[tuple[str, str | None], ColumnShape]:
        """The shapes of the columns with these `Reason.key`, by the training `rows` (n, d)."""
        shapes: dict[tuple[str, str | None], ColumnShape] = {}
        for j, name in enumerate(self.names):
            key: tuple[str, str | None] = self.texts.get(name) or (name, None)
            if key in keys:
                own = self._column(j)
                shapes[key] = own._shape(rows[:, [j]])
        return shapes

    def _shape(self, values: Array) -> ColumnShape:
        """The shape of the only column, which has these `values` (n, 1)."""
        cells = _cells_of_whole(values)
        reach = self.deviations(values if cells is None else cells[:, None])
        first, last = reach.min(initial=-LEAST_SHOWN), reach.max(initial=LEAST_SHOWN)
        ends = float(np.arcsinh(first)), float(np.arcsinh(last))
        edges = np.linspace(0.0, 1.0, N_BARS + 1)
        usual = np.stack([self.low, self.high])
        if cells is not None:
            edges = _places(reach.ravel(), ends)
            usual += np.array([[-0.5], [0.5]])
        heights, _ = np.histogram(_places(self.deviations(values), ends), edges)
        low, high = _places(self.deviations(usual), ends).ravel().tolist()
        parts = tuple((heights / heights.max()).tolist())
        return ColumnShape(parts, tuple(edges.tolist()), low, high, ends)

    def _column(self, j: int) -> UsualValues:
        chosen = {name: getattr(self, name)[[j]] for name in FIGURES}
        return replace(self, names=(self.names[j],), **chosen)

    def values_of(self, rows: Array) -> list[tuple[Reason, ...]]:
        """The value of each of the training `rows` (n, d) in each column of the table."""
        return [self._values_of_row(reasons) for reasons in self.columns_of(rows)]

    def _values_of_row(self, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
        found: dict[str, Reason] = {}
        for reason in reasons:
            if not reason.is_other_text:
                found[reason.column] = reason
            elif reason.column not in found:
                found[reason.column] = self._other_text(reason)
        return tuple(found.values())

    def _other_text(self, reason: Reason) -> Reason:
        """What there is to say about the text that has no column of 0 and 1 of its own."""
        if reason.column not in self.other_texts:
            return reason
        text, share = self.text_shares(reason.column)[-1]
        # As in a column with two values, of which the more frequent one is usual.
        away = 0.0 if share >= 0.5 else 1.0 / float(np.sqrt(share * (1.0 - share)))
        return Reason(reason.column, 1.0, away, 0.0, 1.0, share, text)

    def text_shares(self, column: str) -> list[tuple[str, float]]:
        """The texts of a column of text and their shares of the training rows.

        The last one is the text that has no column of 0 and 1 of its own.
        """
        keys = [self.texts.get(name) for name in self.names]
        shares = np.nan_to_num(self.share_high).tolist()
        own = [(k[1], s) for k, s in zip(keys, shares, strict=True) if k and k[0] == column]
        return [*own, (self.other_texts[column], 1.0 - sum(share for _, share in own))]

    def columns_of(self, rows: Array) -> list[tuple[Reason, ...]]:
        """What there is to say about each of `rows` (n, d) in each column."""
        figures = zip(rows, self.deviations(rows), self._shares(rows), strict=True)
        columns = range(len(self.names))
        return [tuple(self._reason(*each, j) for j in columns) for each in figures]

    def deviations(self, rows: Array) -> Array:
        """Distance (n, d) of each value of `rows` (n, d) from the median, in robust deviations."""
        with np.errstate(over="ignore"):
            away = np.clip(rows / self.unit - self.median, -LARGEST, LARGEST)
            return np.clip(away / np.where(away < 0.0, self.below, self.above), -LARGEST, LARGEST)

    def _shares(self, rows: Array) -> Array:
        """Share of the training rows with this value, where a column has two values; else NaN."""
        shares = np.full(rows.shape, np.nan)
        for value, share in ((self.low, 1.0 - self.share_high), (self.high, self.share_high)):
            shares = np.where(rows == value, share, shares)
        return shares

    def _first_reasons(
        self, values: Array, deviations: Array, shares: Array, order: NDArray[np.intp]
    ) -> tuple[Reason, ...]:
        """The first reasons in this order of the columns, one for each column of the table."""
        found: dict[str, Reason] = {}
        for j in order.tolist():
            reason = self._reason(values, deviations, shares, j)
            found.setdefault(reason.column, reason)
            if len(found) == MAX_REASONS:
                break
        return tuple(found.values())

    def _reason(self, values: Array, deviations: Array, shares: Array, j: int) -> Reason:
        """What there is to say about a row in the column `j`."""
        column, text = self.texts.get(self.names[j], (self.names[j], None))
        return Reason(
            column,
            float(values[j]),
            float(deviations[j]),
            float(self.low[j]),
            float(self.high[j]),
            None if np.isnan(shares[j]) else float(shares[j]),
            text,
        )


def usual_values(
    X: Array,
    names: Sequence[object],
    texts: Mapping[str, tuple[str, str]] | None = None,
    other_texts: Mapping[str, str] | None = None,
) -> UsualValues:
    """The usual values of the columns of the training rows `X` (n, d).

    For `texts` and `other_texts`, see `TableEncoder.encoded` and `TableEncoder.other_texts`.

    Examples
    --------
    >>> X = np.column_stack([np.arange(20.0, 81.0), np.arange(61) == 0])
    >>> usual = usual_values(X, ["amount", "is_new"])
    >>> for reasons in usual.reasons(np.array([[5400.0, 1.0], [50.0, 0.0]])):
    ...     print(reason_words(reasons) or "nothing")
    amount 5,400 is far above the usual 20 to 80; is_new is 1, which is rare (1.6% of the rows)
    nothing
    """
    figures = np.array([_column_figures(np.sort(column)) for column in X.T])
    return UsualValues(tuple(map(str, names)), texts or {}, other_texts or {}, *figures.T)


def _column_figures(values: Array) -> tuple[float, ...]:
    """The figures of `UsualValues` for one column, whose `values` (n,) rise."""
    largest = max(abs(values[0]), abs(values[-1]))
    unit = float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1)) if largest > 0.0 else 1.0
    scaled = values / unit
    if scaled[-1] - scaled[0] <= ROUNDING:
        return unit, scaled[0], np.inf, np.inf, -np.inf, np.inf, np.nan
    quantiles = np.quantile(scaled, [0.1, 0.25, 0.5, 0.75, 0.9])
    median, deviation = quantiles[2], scaled.std()
    is_high = values == values[-1]
    if (is_high | (values == values[0])).all():
        share = is_high.mean()
        usual = scaled[-1] if share >= 0.5 else scaled[0]
        return unit, usual, deviation, deviation, values[0], values[-1], share
    below = _deviation(median - quantiles[1], median - quantiles[0]) or deviation
    above = _deviation(quantiles[3] - median, quantiles[4] - median) or deviation
    low = values[np.searchsorted(scaled, median - USUAL * below)]
    high = values[np.searchsorted(scaled, median + USUAL * above, side="right") - 1]
    return unit, median, below, above, low, high, np.nan


def _deviation(to_quartile: float, to_decile: float) -> float:
    """The robust deviation on one side of the median; 0 where there is none."""
    by_decile = to_decile / NORMAL_DECILE
    if to_quartile > ROUNDING:
        by_decile = min(by_decile, LONGEST_TAIL * to_quartile / NORMAL_QUARTILE)
    return by_decile if by_decile > ROUNDING else 0.0


def _cells_of_whole(values: Array) -> Array | None:
    """The ends of a cell around each whole number; None for a column of others, or of too many."""
    first, last = values.min(), values.max()
    if not 0.0 < last - first < MAX_NUMBERS or (values != np.round(values)).any():
        return None
    return np.arange(first, last + 2.0) - 0.5


def _places(deviations: Array | float, ends: tuple[float, float]) -> Any:
    """Places in a picture of a column, from 0 to 1."""
    start, stop = ends
    return np.clip((np.arcsinh(deviations) - start) / (stop - start), 0.0, 1.0)


def reason_words(reasons: Sequence[Reason]) -> str:
    """The reasons in words; empty where there is none."""
    return "; ".join(reason.words for reason in reasons)


def flag_words(reasons: Sequence[Reason]) -> str:
    """The reasons of a flagged row in words."""
    return reason_words(reasons) or COMBINATION


def _written(numbers: Sequence[float], one: float, other: float) -> list[str]:
    """The numbers in words, with as many digits as `one` and `other` need to differ."""
    n_digits = next(n for n in N_DIGITS if n == N_DIGITS[-1] or _word(one, n) != _word(other, n))
    return [_word(number, n_digits) for number in numbers]


def _word(number: float, n_digits: int) -> str:
    """A number with this many significant digits, and with all digits before the point."""
    n_whole = len(f"{abs(number):.0f}")
    if n_whole > MAX_WHOLE:
        return f"{number:.{n_digits}g}"
    return f"{number + 0.0:,.{max(n_digits, n_whole)}g}"
