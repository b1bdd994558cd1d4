"""A row of a fit -> a card that shows it to a person, as plain values for a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import visible
from gammagmm.estimator.reasons import FAR, Reason, reason_words

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit

__all__ = ["Cards"]

Array = NDArray[np.float64]

N_BARS = 24
"""Most bars of the picture of a column."""
MAX_TEXTS = 6
"""Texts of a column that its picture tells apart."""
MAX_ROWS = 20_000
"""Training rows that the pictures, and the ordinary rows, are taken from."""
MAX_CELL = 300
"""Most characters of a cell that a card shows."""
EDGE = 0.005
"""Share of the rows beyond each end of a picture, unless they are usual."""


@dataclass(frozen=True)
class _Axis:
    """The ends of the picture of a column, in its unit, and the number of its bars.

    Each bar of a column of whole numbers has as many of them, `half` of one at both sides.
    """

    start: float
    end: float
    unit: float
    n_bars: int = N_BARS
    half: float = 0.0

    def at(self, value: float) -> float:
        """Place of a value, from 0 to 1; below 0 or above 1 if it lies beyond an end."""
        width = self.end - self.start
        place = 0.5 if width <= 0.0 else (value / self.unit - self.start) / width
        return float(np.clip(round(place, 4), -1.0, 2.0))


class Cards:
    """The cards of the rows of a fit.

    A card has the value of the row in each column, the oddest first, its place in the picture of
    the column, and the same of the nearest ordinary row: one of the lower half of the ranking that
    is not flagged.
    """

    def __init__(self, fit: Fit) -> None:
        self.fit = fit
        self._usual = fit.usual_values()
        step = max(1, -(-fit.n_rows // MAX_ROWS))
        rows = fit.rows[: fit.n_rows : step]
        self._axes = [self._axis(rows[:, j], j) for j in range(rows.shape[1])]
        self._first = self._first_columns()
        self._pool = self._ordinary_rows(step)
        self._pool_deviations = self._shape(fit.rows[self._pool])
        self._bars = [_bars(rows[:, j], axis) for j, axis in enumerate(self._axes)]
        self._made: dict[int, dict[str, Any]] = {}

    def columns(self) -> list[dict[str, Any]]:
        """The picture of each column of the table."""
        first = self._usual.values_of(self.fit.rows[:1])[0]
        return [self._column(value, self._first[value.column]) for value in first]

    def card(self, row: int) -> dict[str, Any]:
        """The card of a row."""
        if row not in self._made:
            self._made[row] = self._card(row)
        return self._made[row]

    def _axis(self, values: Array, j: int) -> _Axis:
        usual, unit = self._usual, float(self._usual.unit[j])
        ends = np.quantile(values / unit, [EDGE, 1.0 - EDGE])
        if np.isfinite(usual.low[j]) and np.isfinite(usual.high[j]):
            ends = np.append(ends, [usual.low[j] / unit, usual.high[j] / unit])
        start, end = float(ends.min()), float(ends.max())
        if end > start and (values == np.round(values)).all():
            return _whole_axis(np.floor(start * unit), np.ceil(end * unit), unit)
        margin = 0.04 * (end - start)
        return _Axis(start - margin, end + margin, unit)

    def _first_columns(self) -> dict[str, int]:
        """The first column of numbers that belongs to each column of the table."""
        first: dict[str, int] = {}
        for j, name in enumerate(self._usual.names):
            column, _ = self._usual.texts.get(name, (name, None))
            first.setdefault(column, j)
        return first

    def _parts(self, column: str) -> dict[str, tuple[int, float]]:
        """Place in the picture, and share of the rows, of each text of a column.

        The most frequent text comes first. Those beyond `MAX_TEXTS` have the last place together.
        """
        pairs = sorted(self._usual.text_shares(column), key=lambda pair: -pair[1])
        return {text: (min(i, MAX_TEXTS), share) for i, (text, share) in enumerate(pairs)}

    def _column(self, value: Reason, j: int) -> dict[str, Any]:
        name = value.column
        if value.text is not None:
            shares = [0.0] * (MAX_TEXTS + 1)
            for place, share in self._parts(name).values():
                shares[place] += share
            return {"name": visible(name), "texts": [round(share, 4) for share in shares if share]}
        low, high = self._usual.low[j], self._usual.high[j]
        usual = [0.0, 1.0]
        if np.isfinite(low) and np.isfinite(high):
            axis = self._axes[j]
            usual = [axis.at(low - axis.half), axis.at(high + axis.half)]
        return {
            "name": visible(name),
            "bars": self._bars[j],
            "usual": usual,
            "words": value.usual_words,
        }

    def _ordinary_rows(self, step: int) -> NDArray[np.intp]:
        """Places of the training rows that are ordinary."""
        scores = self.fit.decision_scores
        is_ordinary = (scores <= np.median(scores)) & (self.fit.labels == 0)
        return np.flatnonzero(is_ordinary)[::step]

    def _shape(self, rows: Array) -> NDArray[np.float32]:
        return np.clip(self._usual.deviations(rows), -FAR, FAR).astype(np.float32)

    def _nearest(self, row: int) -> int | None:
        """Place of the ordinary row that is nearest to a row, in robust deviations."""
        pool = self._pool
        if not len(pool) or (len(pool) == 1 and pool[0] == row):
            return None
        far = np.abs(self._pool_deviations - self._shape(self.fit.rows[[row]])).sum(axis=1)
        far[pool == row] = np.inf
        return int(pool[np.argmin(far)])

    def _card(self, row: int) -> dict[str, Any]:
        fit, table = self.fit, self.fit.table
        nearest = self._nearest(row)
        shown = [row] if nearest is None else [row, nearest]
        cells = [table.cells(each) for each in shown]
        pairs = zip(*self._usual.values_of(fit.rows[shown]), strict=True)
        values = [self._value(k, chosen, cells) for k, chosen in enumerate(pairs)]
        values.sort(key=lambda value: -value.pop("far"))
        others = [
            [visible(name), _cell(text)]
            for name, text in cells[0].items()
            if name not in self._first and name not in self._usual.texts
        ]
        return {
            "row": row,
            "number": table.row_number(row),
            "name": None if table.given_names is None else _cell(table.given_names[row]),
            "why": reason_words(self._usual.reasons(fit.rows[[row]])[0]),
            "values": values,
            "others": others,
            "ordinary": None if nearest is None else table.row_number(nearest),
        }

    def _value(
        self, k: int, chosen: tuple[Reason, ...], cells: list[dict[str, str]]
    ) -> dict[str, Any]:
        """The value of a row in one column of the table, and that of the ordinary row."""
        name = chosen[0].column
        words = [
            _cell(own.get(name, reason.value_word))
            for own, reason in zip(cells, chosen, strict=True)
        ]
        value: dict[str, Any] = {"column": k, "far": abs(chosen[0].deviations)}
        if side := chosen[0].side_words:
            value |= {"side": side, "is_rare": chosen[0].share is not None}
            value["far"] += 1e6  # odd values first
        value |= dict(zip(("text", "ordinary"), words, strict=False))
        value |= dict(zip(("at", "ordinary_at"), map(self._at, chosen), strict=False))
        if chosen[0].text is not None:
            value["share"] = chosen[0].range_words
        return value

    def _at(self, value: Reason) -> float:
        """Where a value is in the picture of its column: the place of a text, from 0."""
        if value.text is not None:
            return self._parts(value.column)[value.text][0]
        return self._axes[self._first[value.column]].at(value.value)


def _cell(text: str) -> str:
    return visible(text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…")


def _whole_axis(first: float, last: float, unit: float) -> _Axis:
    """The axis of a column of whole numbers from `first` to `last`."""
    n_values = last - first + 1.0
    in_bar = np.ceil(n_values / N_BARS)
    n_bars = int(np.ceil(n_values / in_bar))
    start = first - 0.5
    return _Axis(float(start / unit), float((start + n_bars * in_bar) / unit), unit, n_bars, 0.5)


def _bars(values: Array, axis: _Axis) -> list[int]:
    """Heights of the bars of a picture, of which the highest is 100."""
    width, n = axis.end - axis.start, axis.n_bars
    if width <= 0.0:
        return [100 if i == n // 2 else 0 for i in range(n)]
    places = np.floor(n * (values / axis.unit - axis.start) / width)
    inside = places[(places >= 0) & (places < n)].astype(int)
    counts = np.bincount(inside, minlength=n)
    return [int(height) for height in np.ceil(100.0 * counts / max(counts.max(), 1))]
