"""What a file holds before anything is decided about it: columns of numbers and of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError

__all__ = [
    "RawTable",
    "check_names",
    "describe_text",
    "first_text",
    "is_missing",
    "is_number",
    "join_raw",
    "number_or_none",
    "numbered_names",
    "shown",
    "text_column",
    "written",
]

MISSING_MARKERS = frozenset({"", "?", "na", "n/a", "nan", "none", "null"})
MAX_SHOWN_CHARACTERS = 40
# Up to here every whole number is a float64 of its own, so it may be written without a point.
MAX_EXACT = 2.0**53


@dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """Columns of a file as they stand there, gaps and text included.

    Attributes
    ----------
    source : str
        The path of the file, or "standard input": the name that messages give it.
    columns : tuple of str
        Names of the columns, all different.
    data : tuple of ndarray, each of shape (n_rows,)
        One array a column: float64, where NaN is missing, or objects that are str, or None where
        missing.
    lines : sequence of int or None
        1-based line of each row in a text file; None for a binary file.
    cells : callable
        ``cells(j)`` lists the cells of column `j` as they are written in the file, None where
        missing: "007" is kept, which the number 7 is not.
    digest : str
        SHA-256 of the file; of several, one after the other.
    """

    source: str
    columns: tuple[str, ...]
    data: tuple[NDArray[Any], ...]
    lines: Sequence[int] | None
    cells: Callable[[int], list[str | None]]
    digest: str = ""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data[0]) if self.data else 0

    def place(self, row: int) -> str:
        """Where the user finds a row (counted from 0): "line 7" in text, else "row 7"."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def is_text(self, column: int) -> bool:
        """Whether a column (counted from 0) holds text."""
        return self.data[column].dtype == object

    def is_gap(self, column: int) -> NDArray[np.bool_]:
        """Which cells of a column are missing, shape (n_rows,)."""
        cells = self.data[column]
        if self.is_text(column):
            return np.array([cell is None for cell in cells], dtype=bool)
        return np.isnan(cells)

    def __repr__(self) -> str:
        return f"RawTable({self.source!r}, {self.n_rows} rows, {len(self.columns)} columns)"


def shown(text: str) -> str:
    """`text` in quotes, cut where it is long."""
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


def is_missing(cell: str) -> bool:
    """Whether a cell of a text file says that there is no value."""
    return cell.strip().lower() in MISSING_MARKERS


def is_number(cell: str) -> bool:
    """Whether a cell is a number; Python's "1_000" is not one."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def number_or_none(cell: str) -> float | None:
    """Value of a cell, NaN where it is missing, None where it is text."""
    try:
        value = float(cell)
    except ValueError:
        return math.nan if is_missing(cell) else None
    return None if "_" in cell else value


def text_column(cells: Iterable[str | None]) -> NDArray[Any]:
    """Column of text; one without a single text is a column of missing numbers."""
    kept = list(cells)
    if not any(cell is not None for cell in kept):
        return np.full(len(kept), np.nan)
    column = np.empty(len(kept), dtype=object)
    column[:] = kept
    return column


def written(values: Iterable[float]) -> list[str | None]:
    """Numbers as one would write them: whole ones without a point, None for NaN."""
    return [None if value != value else _written(value) for value in values]


def _written(value: float) -> str:
    is_whole = isinstance(value, int) or (value == round(value, 0) and abs(value) <= MAX_EXACT)
    return str(int(value)) if is_whole else repr(value)


def check_names(where: str, names: tuple[str, ...]) -> None:
    """Refuse columns without a name and names that stand twice."""
    if "" in names:
        raise TableError(
            f"{where}: column {names.index('') + 1} has no name. Name it, or remove it "
            "if it is a row index (pandas: to_csv(..., index=False))."
        )
    repeated, n_times = Counter(names).most_common(1)[0] if names else ("", 0)
    if n_times < 2:
        return
    raise TableError(
        f"{where}: column name {shown(repeated)} stands {n_times} times. "
        "Give every column a name of its own."
    )


def first_text(column: NDArray[Any]) -> int:
    """Row of the first cell that makes a column text."""
    is_present = [cell is not None for cell in column]
    rows = (i for i, cell in enumerate(column) if cell is not None and not is_number(cell))
    return next(rows, is_present.index(True))


def describe_text(raw: RawTable, column: int) -> tuple[str, str]:
    """Where the first text of a column stands, as a sentence, and that text."""
    row = first_text(raw.data[column])
    cell = raw.data[column][row]
    return (
        f"{raw.source}, column {shown(raw.columns[column])}, {raw.place(row)}: found "
        f"{shown(cell)}, which is not a number."
    ), cell


def numbered_names(d: int) -> tuple[str, ...]:
    """Names "x1", "x2", ... for columns that have none."""
    return tuple(f"x{j}" for j in range(1, d + 1))


def join_raw(tables: Sequence[RawTable]) -> RawTable:
    """The rows of all `tables`, in their order; rows are then counted through.

    A column that is text in one of them is text in all.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    for table in tables[1:]:
        _check_columns(first, table)
    data = tuple(_column(tables, j) for j in range(len(first.columns)))

    def cells(j: int) -> list[str | None]:
        return [cell for table in tables for cell in table.cells(j)]

    source = ", ".join(table.source for table in tables)
    digest = ", ".join(table.digest for table in tables)
    return JoinedTable(source, first.columns, data, None, cells, digest, tuple(tables))


@dataclass(frozen=True, eq=False, repr=False)
class JoinedTable(RawTable):
    """A raw table that knows which file each row came from."""

    parts: tuple[RawTable, ...] = ()

    def place(self, row: int) -> str:
        """File and place in it of a row, counted through from 0."""
        for part in self.parts:
            if row < part.n_rows:
                return f"{part.place(row)} of {part.source}"
            row -= part.n_rows
        raise IndexError(row)


def _check_columns(first: RawTable, other: RawTable) -> None:
    """Refuse other columns, or the same in another order."""
    if other.columns == first.columns:
        return
    lacking = [shown(name) for name in first.columns if name not in other.columns]
    beyond = [shown(name) for name in other.columns if name not in first.columns]
    if lacking or beyond:
        what = (
            f"lacks the columns {', '.join(lacking) or 'none'}, has {', '.join(beyond) or 'none'}"
        )
        raise TableError(
            f"{other.source} {what} beyond those of {first.source}. Give files with the same "
            "columns."
        )
    raise TableError(
        f"{other.source} has the columns of {first.source} in another order. Give files with the "
        "same columns in the same order."
    )


def _column(tables: Sequence[RawTable], j: int) -> NDArray[Any]:
    if any(table.is_text(j) for table in tables):
        return text_column(cell for table in tables for cell in table.cells(j))
    return np.concatenate([table.data[j] for table in tables])
