"""The file that the rows of a fit came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import listed
from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import RawTable, numbered_names, written
from gammagmm.table.preparation import Preparation

__all__ = ["Origin"]


@dataclass(frozen=True)
class Origin:
    """What is known about the rows of a fit beyond their values."""

    name: str = "the table"  # of the file
    columns: tuple[str, ...] | None = None  # names of the features
    ids: tuple[str, ...] | None = None  # names of the rows; None: their numbers from 1
    digest: str = ""  # SHA-256 of the file
    truth: NDArray[np.int_] | None = None  # labels that the method does not use
    notes: tuple[Note, ...] = ()  # changes before the fit
    rows: tuple[int, ...] | None = None  # place of each row in the file, from 0; None: all rows
    id_column: str | None = None  # the column with the ids
    hidden: frozenset[str] = frozenset()  # columns that a person who labels rows must not see
    table: RawTable | None = None  # the file, where rows of it are shown
    preparation: Preparation | None = None  # what made the rows of the file numbers
    groups: NDArray[Any] | None = None  # the group of each row, by a column that the user named
    group_column: str | None = None  # that column
    numbers: tuple[int, ...] | None = None  # of sampled rows in their file, from 0
    large: Any = None  # the files on Dask that these rows are a part of

    def row_number(self, row: int) -> int:
        """Number in the file, from 1, of a training row, from 0."""
        return 1 + (self._place(row) if self.numbers is None else self.numbers[row])

    def places(self, n_rows: int) -> Sequence[int]:
        """Place of each of `n_rows` rows in the table, from 0."""
        return range(n_rows) if self.rows is None else self.rows

    def first(self, n_rows: int) -> Origin:
        """The origin of the first `n_rows` rows."""
        return replace(
            self,
            ids=None if self.ids is None else self.ids[:n_rows],
            rows=None if self.rows is None else self.rows[:n_rows],
            truth=None if self.truth is None else self.truth[:n_rows],
            groups=None if self.groups is None else self.groups[:n_rows],
            numbers=None if self.numbers is None else self.numbers[:n_rows],
        )

    def cells(self, row: int, X: NDArray[np.float64]) -> dict[str, str]:
        """The columns of the file, with those that are no features, and the cells of a row.

        Without a table, these are the columns of the training rows `X`.
        """
        if self.table is None:
            names = self.columns or numbered_names(X.shape[1])
            values = (cell or "" for cell in written(X[row].tolist()))
            named = {} if self.ids is None else {"id": self.ids[row]}
            return named | dict(zip(names, values, strict=True))
        cells = {}
        for j, name in enumerate(self.table.columns):
            if name == self.id_column and self.ids is not None:
                cells[name] = self.ids[row]
            elif name not in self.hidden:
                value = self.table.data[j][self._place(row)]
                cell = value if self.table.is_text(j) else written([float(value)])[0]
                cells[name] = cell or ""
        return cells

    def column(self, name: str) -> list[str]:
        """The cells of one column of the file, for each training row."""
        if self.table is None:
            raise ValueError("The rows were not read from a file.")
        if name not in self.table.columns:
            raise TableError(
                f"There is no column {name!r}", f"The columns are {listed(self.table.columns)}."
            )
        cells = self.table.cells(self.table.columns.index(name))
        places = range(len(cells)) if self.rows is None else self.rows
        return [cells[place] or "" for place in places]

    def grouped_by(self, name: str) -> Origin:
        """The same, with the rows in groups by a column of the file."""
        return replace(self, groups=np.array(self.column(name), dtype=str), group_column=name)

    def _place(self, row: int) -> int:
        """Place of a training row in the file, from 0."""
        return row if self.rows is None else self.rows[row]
