"""The rows of a table as numbers, and what is known of each row beyond them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import listed
from gammagmm.errors import Note, TableError
from gammagmm.readers.joined_table import join_raw
from gammagmm.readers.raw_table import RawTable, numbered_names, written
from gammagmm.table.container import Container
from gammagmm.table.guesses import Guess, guess
from gammagmm.table.sample import Sample
from gammagmm.table.words import PYTHON, Words

if TYPE_CHECKING:
    from gammagmm.distributed.collection import Collection
    from gammagmm.table.preparation import Preparation

__all__ = ["Commands", "Groups", "Table"]


@dataclass(frozen=True)
class Commands:
    """What a person types in a shell to be asked about the rows of a file."""

    label: str
    check: str  # of what is found
    find: str  # the rows that are most likely anomalies


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows.

    Attributes
    ----------
    values : ndarray of shape (n_held,) or (n_sampled,)
        The group of each row. Groups that the user gives are those of the sample only.
    column : str or None, default=None
        The column that was read for them; None if the user gave them.
    """

    values: NDArray[Any]
    column: str | None = None

    def first(self, n: int) -> Groups:
        """The groups of the first `n` rows."""
        return replace(self, values=self.values[:n])


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows as finite numbers, how they became numbers, and what else is known of them.

    Attributes
    ----------
    values : ndarray of shape (n_held, d)
        The rows that are held, as finite numbers.
    preparation : Preparation
        How they became numbers, which prepares new rows in the same way.
    sample : Sample
        Which rows of the table they are: all of them, or a random sample and some others.
    name : str or None, default=None
        Name of the file or files; None for rows in memory.
    digest : str, default=""
        SHA-256 of the file; empty for rows in memory.
    container : Container
        The kind of data frame that the rows came in, and its index, if it has one.
    ids : tuple of str or None, default=None
        Names of the rows by the column of the choice ``id``; None without it, see `given_names`.
    places : ndarray of shape (n_held,) or None, default=None
        Place of each row among those that were read, from 0; None if all of these are held.
    n_gaps : ndarray of shape (n_held,) or None, default=None
        Number of missing values in each row of new rows; None for training rows.
    truth : ndarray of shape (n_sampled,) or None, default=None
        1 for an anomaly, 0 for a normal row, by labels that the method does not use.
    notes : tuple of Note, default=()
        How the rows were read, and everything that was not used, filled in or encoded.
    guesses : tuple of Guess, default=()
        What columns probably are that the user did not decide about.
    raw : RawTable or None, default=None
        The columns as they were read, where a person is shown rows of them.
    groups : Groups or None, default=None
        The groups of the rows.
    collection : Collection or None, default=None
        The table on Dask that these rows are a sample of. A copy and a saved fit do not have it.
    words : Words
        The words for what the user can ask for.
    commands : Commands or None, default=None
        The commands that label rows of these files; None for rows in Python.
    """

    values: NDArray[np.float64]
    preparation: Preparation
    sample: Sample
    name: str | None = None
    digest: str = ""
    container: Container = field(default_factory=Container)
    ids: tuple[str, ...] | None = None
    places: NDArray[np.intp] | None = None
    n_gaps: NDArray[np.int_] | None = None
    truth: NDArray[np.int64] | None = None
    notes: tuple[Note, ...] = ()
    guesses: tuple[Guess, ...] = ()
    raw: RawTable | None = None
    groups: Groups | None = None
    collection: Collection | None = None
    words: Words = PYTHON
    commands: Commands | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of numbers: x1, x2, ... if they have none."""
        return self.preparation.outputs or numbered_names(self.values.shape[1])

    def row_number(self, row: int) -> int:
        """Number in the table, from 1, of the row that is held at the place `row`, from 0."""
        if self.sample.numbers is not None:
            return 1 + int(self.sample.numbers[row])
        return 1 + self._place(row)

    @cached_property
    def given_names(self) -> tuple[str, ...] | None:
        """Names of the rows, by the column of ids or the index; None if they only have numbers."""
        if self.ids is not None:
            return self.ids
        index, numbers = self.container.index, self.sample.numbers
        # A collection without an index names its rows by their numbers.
        has_numbers = index is not None and numbers is not None and np.array_equal(index, numbers)
        return None if has_numbers else self.container.row_names

    @property
    def row_names(self) -> tuple[str, ...]:
        """Name of each row: the name that it was given, or its number."""
        if self.given_names is not None:
            return self.given_names
        return tuple(str(self.row_number(row)) for row in range(len(self)))

    @property
    def sampled(self) -> Table:
        """The same without the rows that are held beside the sample."""
        n, own = self.sample.n_sampled, self.sample.numbers
        if n == len(self):
            return self
        return replace(
            self,
            values=self.values[:n],
            sample=replace(self.sample, numbers=None if own is None else own[:n]),
            container=self.container.first(n),
            ids=None if self.ids is None else self.ids[:n],
            places=None if self.places is None else self.places[:n],
            groups=None if self.groups is None else self.groups.first(n),
        )

    def with_sample_note(self) -> Table:
        """The same with a note if the rows are a sample."""
        counts = {"n_sampled": self.sample.n_sampled, "n_rows": self.sample.n_rows}
        if counts["n_sampled"] == counts["n_rows"]:
            return self
        return replace(self, notes=(Note.of("tables.sampled", "max_rows", **counts), *self.notes))

    def with_more(self, numbers: NDArray[np.intp], more: Table) -> Table:
        """The same with the rows of `more` as well, which have these `numbers` in the table."""
        raw, places = self.raw, self.places
        if raw is not None and more.raw is not None:
            places = np.concatenate([self.all_places, raw.n_rows + more.all_places])
            raw = join_raw([raw, more.raw])
        elif places is not None:
            places = np.concatenate([places, more.all_places])
        extended = replace(
            self,
            values=np.concatenate([self.values, more.values]),
            sample=self.sample.with_more(numbers),
            container=self.container.with_more(more.container),
            ids=None if self.ids is None else (*self.ids, *(more.ids or map(str, numbers + 1))),
            places=places,
            raw=raw,
        )
        column = None if self.groups is None else self.groups.column
        return extended if column is None else extended.grouped_by(column)

    def cells(self, row: int) -> dict[str, str]:
        """The cells of a row by column: those that were read, or else the numbers.

        Columns that look like known labels are left out unless they are used as data, whatever else
        they are for: a person who labels rows must not see them.
        """
        if self.raw is None:
            values = (cell or "" for cell in written(self.values[row].tolist()))
            named = {} if self.given_names is None else {"id": self.given_names[row]}
            return named | dict(zip(self.columns, values, strict=True))
        hidden, cells = self._hidden, {}
        for j, name in enumerate(self.raw.columns):
            if name == self.preparation.id and self.ids is not None:
                cells[name] = self.ids[row]
            elif name not in hidden:
                value = self.raw.data[j][self._place(row)]
                cell = value if self.raw.is_text(j) else written([float(value)])[0]
                cells[name] = cell or ""
        return cells

    @cached_property
    def _hidden(self) -> frozenset[str | None]:
        """The columns that were read with known labels, and those that look like that."""
        if self.raw is None:
            return frozenset()
        used = self.preparation.used
        own = (guess(self.raw, j) for j, name in enumerate(self.raw.columns) if name not in used)
        looks = {each.column for each in own if each is not None and each.kind == "labels"}
        return frozenset({self.preparation.truth, *looks})

    def column(self, name: str) -> list[str]:
        """The cells of one column that was read, for each row that is held."""
        if self.raw is None:
            raise ValueError("The rows were not read from a file.")
        if name not in self.raw.columns:
            raise TableError(
                f"There is no column {name!r}", f"The columns are {listed(self.raw.columns)}."
            )
        cells = self.raw.cells(self.raw.columns.index(name))
        return [cells[place] or "" for place in self.all_places.tolist()]

    def grouped_by(self, name: str) -> Table:
        """The same, with the rows in groups by a column that was read."""
        return replace(self, groups=Groups(np.array(self.column(name), dtype=str), name))

    def _place(self, row: int) -> int:
        return row if self.places is None else int(self.places[row])

    @property
    def all_places(self) -> NDArray[np.intp]:
        """Place of each row among those that were read, from 0."""
        return np.arange(len(self)) if self.places is None else self.places

    def __getstate__(self) -> dict[str, Any]:
        """The state without what was read, and without the table on Dask.

        Groups by a column keep its name as a title, and no other row can be read for them.
        """
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"raw": None, "collection": None}

    def __repr__(self) -> str:
        n_rows, n_columns = self.values.shape
        return f"Table({n_rows} rows, {n_columns} columns, {len(self.notes)} notes)"
