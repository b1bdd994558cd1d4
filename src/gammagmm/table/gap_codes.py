"""Values that mark a gap, such as -999: which they probably are, and the table without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.readers.raw_table import RawTable, number_or_none, written

__all__ = ["AUTO", "GapCode", "codes_of", "likely_code", "without_codes"]

AUTO = "auto"
"""What a user gives in the place of a code for all that `likely_code` finds."""
MIN_REPEATS = 3
"""Fewest cells of a code."""
MIN_OTHERS = 5
"""Fewest other values, without which nothing is far from them."""
NEAR = 0.25
MIN_NINES, MIN_POSITIVE_NINES = 3, 4
"""Fewest digits of a number of nines alone; 999 is also a price."""


@dataclass(frozen=True)
class GapCode:
    """A value that probably marks gaps in a column.

    Attributes
    ----------
    value : float
        The value.
    n_cells : int
        In how many cells it stands.
    is_clear : bool
        Whether it counts as a gap if nobody says otherwise: a number of nines alone that is
        negative beside others that are not, or farther from them than they are from one another.
    """

    value: float
    n_cells: int
    is_clear: bool

    @property
    def text(self) -> str:
        """The value as people write it."""
        return written([self.value])[0] or ""


def likely_code(values: NDArray[np.float64]) -> GapCode | None:
    """The smallest or largest of the `values` (n,) if it repeats exactly, far from the others.

    It is farther from the next value than the others are from one another. For a number of nines
    alone it is enough to be negative beside positive numbers, or twice as large as any of them, and
    for another negative whole number beside positive ones to be a quarter as far. NaN is no value.
    """
    present = values[np.isfinite(values)]
    distinct, counts = np.unique(present, return_counts=True)
    if len(distinct) <= MIN_OTHERS:
        return None
    for end, inner in ((0, slice(1, None)), (-1, slice(None, -1))):
        value, others = float(distinct[end]), distinct[inner]
        if counts[end] < MIN_REPEATS or counts[end] > len(present) / 2:
            continue
        nearest, spread = float(others[end]), float(others[-1] - others[0])
        digits = written([abs(value)])[0] or ""
        is_nines = len(digits) >= MIN_NINES and set(digits) == {"9"}
        is_apart, is_other_sign = abs(value - nearest) > spread, value < 0.0 <= nearest
        is_odd = is_other_sign and value.is_integer() and nearest - value > NEAR * spread
        is_far = is_nines and (is_other_sign or 2.0 * abs(nearest) <= abs(value))
        if is_apart or is_far or is_odd:
            is_long = len(digits) >= MIN_POSITIVE_NINES or value < 0.0
            is_clear = is_nines and (is_other_sign or (is_apart and is_long))
            return GapCode(value, int(counts[end]), is_clear)
    return None


def codes_of(
    raw: RawTable,
    columns: Iterable[int],
    asked: Sequence[str] | None,
    likely: Mapping[str, GapCode],
) -> dict[str, tuple[str, ...]]:
    """The codes that each column has, as texts by its name, of those that were `asked` for.

    If None, they are those that are clear.
    """
    if asked is None:
        return {name: (code.text,) for name, code in likely.items() if code.is_clear}
    given = tuple(code for code in asked if code != AUTO)
    found = dict[str, tuple[str, ...]]()
    for j in columns:
        name = raw.columns[j]
        own = [likely[name].text] if AUTO in asked and name in likely else []
        codes = tuple(code for code in (*given, *own) if _has(raw, j, code).any())
        found |= {name: codes} if codes else {}
    return found


def without_codes(
    raw: RawTable, codes: Mapping[str, Sequence[str]]
) -> tuple[RawTable, dict[str, int]]:
    """The table in which the cells with these codes are missing, and how many they are."""
    data, counts = list(raw.data), dict[str, int]()
    for j, name in enumerate(raw.columns):
        is_code = np.zeros(raw.n_rows, dtype=bool)
        for code in codes.get(name, ()):
            is_code |= _has(raw, j, code)
        if is_code.any():
            gap: Any = None if raw.is_text(j) else np.nan
            data[j] = np.where(is_code, gap, data[j])
            counts[name] = int(is_code.sum())
    return replace(raw, data=tuple(data)), counts


def _has(raw: RawTable, j: int, code: str) -> NDArray[np.bool_]:
    """The cells of a column that have this code."""
    if raw.is_text(j):
        return np.array([cell == code for cell in raw.data[j]], dtype=bool)
    number = number_or_none(code)
    return np.zeros(raw.n_rows, dtype=bool) if number is None else raw.data[j] == number
