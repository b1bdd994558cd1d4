"""Values that mark a gap, such as -999: which they probably are, and the table without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.readers.raw_table import RawTable, number_or_none, written

__all__ = ["AUTO", "GapCode", "codes_of", "likely_codes", "without_codes"]

AUTO = "auto"
"""What a user gives in the place of a code for all that `likely_codes` finds."""
MIN_REPEATS = 3
"""Fewest cells of a code."""
MIN_OTHERS = 5
"""Fewest other values, without which nothing is far from them."""
MAX_CODES = 3
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
        Whether it counts as a gap if nobody says otherwise: a number of nines, eights or sevens
        alone that is negative beside others that are not, or farther from them than they are from
        one another.
    """

    value: float
    n_cells: int
    is_clear: bool

    @property
    def text(self) -> str:
        """The value as people write it."""
        return written([self.value])[0] or ""


def likely_codes(values: NDArray[np.float64]) -> tuple[GapCode, ...]:
    """The smallest or largest of the `values` (n,) that repeat exactly, far from the others.

    There are at most `MAX_CODES` at an end, such as 7777, 8888 and 9999. They are farther from the
    next value than the others are from one another. For a number of nines alone it is enough to be
    negative beside positive numbers, or twice as large as any of them, and for another negative
    whole number beside positive ones to be a quarter as far. NaN is no value.
    """
    present = values[np.isfinite(values)]
    ends = (present.min(), present.max()) if len(present) else ()
    if all(np.count_nonzero(present == end) < MIN_REPEATS for end in ends):
        return ()
    distinct, counts = np.unique(present, return_counts=True)
    for sign in (1, -1):
        for n in range(1, MAX_CODES + 1):
            found, others = distinct[::sign][:n], distinct[::sign][n:]
            n_cells = counts[::sign][:n]
            if len(others) < MIN_OTHERS or n_cells[-1] < MIN_REPEATS:
                break
            code = _code(float(found[-1]), int(n_cells[-1]), others)
            if code is not None and 2 * n_cells.sum() <= len(present):
                pairs = zip(found[:-1].tolist(), n_cells[:-1].tolist(), strict=True)
                outer = (_code(value, count, others) for value, count in pairs)
                return tuple(own for own in (*outer, code) if own is not None)
    return ()


def _code(value: float, n_cells: int, others: NDArray[np.float64]) -> GapCode | None:
    """The value as a code beside the `others`, of which the first is the nearest; None if not."""
    nearest, spread = float(others[0]), abs(float(others[-1] - others[0]))
    digits = written([abs(value)])[0] or ""
    is_alike = len(digits) >= MIN_NINES and digits[0] in "789" and len(set(digits)) == 1
    is_apart, is_other_sign = abs(value - nearest) > spread, value < 0.0 <= nearest
    is_odd = is_other_sign and value.is_integer() and nearest - value > NEAR * spread
    is_far = is_alike and (is_other_sign or 2.0 * abs(nearest) <= abs(value))
    if not (is_apart or is_far or is_odd):
        return None
    is_long = len(digits) >= MIN_POSITIVE_NINES or value < 0.0
    return GapCode(value, n_cells, is_alike and (is_other_sign or (is_apart and is_long)))


def codes_of(
    raw: RawTable,
    columns: Iterable[int],
    asked: Sequence[str] | None,
    likely: Mapping[str, Sequence[GapCode]],
) -> dict[str, tuple[str, ...]]:
    """The codes that each column has, as texts by its name, of those that were `asked` for.

    If None, they are those that are clear.
    """
    if asked is None:
        clear = {name: tuple(own.text for own in likely[name] if own.is_clear) for name in likely}
        return {name: codes for name, codes in clear.items() if codes}
    given = tuple(code for code in asked if code != AUTO)
    found = dict[str, tuple[str, ...]]()
    for j in columns:
        name = raw.columns[j]
        own = [code.text for code in likely.get(name, ())] if AUTO in asked else []
        codes = tuple(code for code in (*given, *own) if _has(raw, j, code).any())
        found |= {name: codes} if codes else {}
    return found


def without_codes(
    raw: RawTable, codes: Mapping[str, Sequence[str]]
) -> tuple[RawTable, dict[str, int]]:
    """The table in which the cells with these codes are missing, and how many they are."""
    data, counts = list(raw.data), dict[str, int]()
    for j, name in ((j, name) for j, name in enumerate(raw.columns) if name in codes):
        is_code = np.zeros(raw.n_rows, dtype=bool)
        for code in codes[name]:
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
