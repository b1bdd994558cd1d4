"""Content of a file before any choice about it: columns of numbers and columns of text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import shown
from gammagmm.errors import Note, TableError

__all__ = [
    "NOT_READABLE",
    "NO_FRACTION",
    "PLAIN_MISSING",
    "NumberForm",
    "RawTable",
    "are_gaps",
    "check_names",
    "complete_names",
    "is_missing",
    "is_number",
    "number_or_none",
    "numbered_names",
    "text_column",
    "typed_texts",
    "written",
    "written_cells",
]

PLAIN_MISSING = frozenset({"", "?", "na", "n/a", "nan", "none", "null"})
# What databases, statistics programs and spreadsheets write, the latter in several languages.
MISSING_MARKERS = PLAIN_MISSING | {
    *("-", "--", "---", "–", "—", ".", "..", "...", "\\n", "<na>", "nat", "n.a.", "n.d.", "k.a."),
    *("(null)", "(leer)", "(blank)", "(empty)", "(vide)", "(vazio)", "#n/a", "#na", "#nv", "#n/d"),
    *("#div/0!", "#value!", "#wert!", "#valeur!", "#valor!", "#ref!", "#bezug!", "#name?"),
    *("#num!", "#zahl!", "#null!"),
}
# Texts of digits that are no quantities, because they begin with a zero.
CODE = re.compile(r"\s*0\d")
NOT_READABLE = "(not readable)"  # each cell of a column that is neither numbers nor text
NO_FRACTION = ".000000"  # of a second
# Up to this number float64 represents every whole number, so it may be written without a point.
MAX_EXACT = 2.0**53


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : {"", ".", ","}
        The decimal mark with which they are read; empty if no cell has a point or a comma.
    is_percent : bool
        Whether they have a percent sign.
    currency : str
        The currency; empty without one.
    is_certain : bool
        Whether the cells show the decimal mark. It is false where it is assumed, and for plain
        numbers of which the first rows do not show it.
    """

    decimal: Literal["", ".", ","] = ""
    is_percent: bool = False
    currency: str = ""
    is_certain: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """Columns of a file as they are written there, with missing values and text.

    Attributes
    ----------
    source : str
        The name of the file in messages: its path, or "standard input".
    columns : tuple of str
        Names of the columns, all different.
    data : tuple of ndarray, each of shape (n_rows,)
        One array a column: float64, where NaN is missing, or objects that are str, or None where
        missing.
    lines : sequence of int or None
        1-based line of each row in a text file; None for a binary file.
    write_cells : callable
        ``write_cells(j)`` gives what `cells` gives.
    digest : str
        SHA-256 of the file; for several files their digests, separated by commas.
    notes : tuple of Note
        How the file was read where that is not plain: its encoding, and columns with decimal
        commas, currency signs and the like.
    unit : str
        What `lines` counts: "line" of a text file, "row" of a sheet.
    forms : mapping of int to NumberForm
        How columns of numbers, by position, are written as text; others hold numbers only.
    refused : mapping of int to Exception
        Columns, by position, that are neither numbers nor text, with the error that is raised if
        they are used. Their cells are `NOT_READABLE`.
    """

    source: str
    columns: tuple[str, ...]
    data: tuple[NDArray[Any], ...]
    lines: Sequence[int] | None
    write_cells: Callable[[int], list[str | None]]
    digest: str = ""
    notes: tuple[Note, ...] = ()
    unit: str = "line"
    forms: Mapping[int, NumberForm] = field(default_factory=dict)
    refused: Mapping[int, Exception] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data[0]) if self.data else 0

    def place(self, row: int) -> str:
        """Place of a row (counted from 0) in the file: "line 7" of text, "row 7" otherwise."""
        return f"row {row + 1}" if self.lines is None else f"{self.unit} {self.lines[row]}"

    def cells(self, column: int) -> list[str | None]:
        """Cells of a column (counted from 0) as they are written in the file, None where missing.

        They keep "007", which as a number is 7.
        """
        self.check_column(column)
        return self.write_cells(column)

    def check_column(self, column: int) -> None:
        """Refuse to use a column (counted from 0) that is neither numbers nor text."""
        if column in self.refused:
            raise self.refused[column]

    def is_text(self, column: int) -> bool:
        """Whether a column (counted from 0) contains text."""
        return self.data[column].dtype == object

    def is_gap(self, column: int) -> NDArray[np.bool_]:
        """Which cells of a column are missing, shape (n_rows,)."""
        return are_gaps(self.data[column])

    def form(self, column: int) -> NumberForm:
        """How the numbers of a column (counted from 0) are written."""
        return self.forms.get(column, NumberForm())

    def __repr__(self) -> str:
        return f"RawTable({self.source!r}, {self.n_rows} rows, {len(self.columns)} columns)"


def check_names(where: str, names: tuple[str, ...]) -> None:
    """Refuse columns without a name and names that occur twice."""
    if "" in names:
        raise TableError(
            f"{where}: column {names.index('') + 1} has no name",
            "Name it, or remove it if it is a row index (pandas: to_csv(..., index=False)).",
        )
    repeated, n_times = Counter(names).most_common(1)[0] if names else ("", 0)
    if n_times > 1:
        raise TableError(
            f"{where}: column name {shown(repeated)} occurs {n_times} times",
            "Give every column a different name.",
        )


def complete_names(names: Sequence[str]) -> tuple[tuple[str, ...], list[Note]]:
    """Names of all columns: those without one are called "index" or "x2", with a note."""
    found, notes = list(names), []
    for j, name in enumerate(names):
        if not name:
            found[j] = "index" if j == 0 and "index" not in names else f"x{j + 1}"
            notes.append(Note.of("tables.unnamed", found[j], place=j + 1, name=found[j]))
    return tuple(found), notes


def numbered_names(d: int) -> tuple[str, ...]:
    """Names "x1", "x2", ... for `d` columns without names."""
    return tuple(f"x{j}" for j in range(1, d + 1))


def are_gaps(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells (n,) of a column of numbers or of text are missing."""
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnan(cells)


def is_missing(cell: str) -> bool:
    """Whether a cell of a text file marks a missing value."""
    return cell.strip().lower() in MISSING_MARKERS


def is_number(cell: str) -> bool:
    """Whether a cell is a number; Python's "1_000" is not."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def number_or_none(cell: str) -> float | None:
    """Value of a cell, NaN where it is missing, None where it is text."""
    if is_number(cell):
        return float(cell)
    return math.nan if is_missing(cell) else None


def text_column(cells: Iterable[str | None]) -> NDArray[Any]:
    """Column of text; a column in which every cell is None becomes missing numbers."""
    kept = list(cells)
    if not any(cell is not None for cell in kept):
        return np.full(len(kept), np.nan)
    column = np.empty(len(kept), dtype=object)
    column[:] = kept
    return column


def typed_texts(cells: Iterable[str | None]) -> NDArray[Any]:
    """Column of numbers if all texts are plain numbers or mark missing values; otherwise of text.

    Codes such as "007" are texts. Tables with typed columns may store numbers as text.
    """
    kept, numbers = list(cells), list[float]()
    for cell in kept:
        number = math.nan if cell is None else number_or_none(cell)
        if number is None or (cell is not None and CODE.match(cell)):
            return text_column(kept)
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)


def written_cells(column: NDArray[Any]) -> list[str | None]:
    """Cells of a column of numbers or of text as text, None where missing."""
    return column.tolist() if column.dtype == object else written(column.tolist())


def written(values: Iterable[float]) -> list[str | None]:
    """Numbers as people write them: whole ones without a point, None for NaN."""
    return [None if value != value else _written(value) for value in values]


def _written(value: float) -> str:
    is_whole = isinstance(value, int) or (abs(value) <= MAX_EXACT and value == round(value, 0))
    return str(int(value)) if is_whole else repr(value)
