"""A table of any kind and the user's choices -> a `Table`: numbers, names, labels and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.dates import seconds_of
from gammagmm._support.text import counted, listed, shown
from gammagmm.errors import Note, Problem, TableError
from gammagmm.readers.numbers import marks_word, other_units, reread
from gammagmm.readers.raw_table import NumberForm, RawTable, are_gaps, check_names
from gammagmm.table.encoder import Column, DateColumn, NumberColumn, TableEncoder, fit_encoder
from gammagmm.table.frames import array_names
from gammagmm.table.gap_codes import GapCode, codes_of, likely_codes, without_codes
from gammagmm.table.guesses import guess_notes
from gammagmm.table.problems import (
    infinite_values,
    missing_values,
    table_error,
    without_unusable,
)
from gammagmm.table.roles import (
    Choices,
    Roles,
    assign_roles,
    check_features,
    used_as_they_are,
)
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table
from gammagmm.table.truth import read_truth
from gammagmm.table.words import PYTHON, Words

__all__ = ["Choices", "Preparation", "prepare", "truth_problems"]

Places = NDArray[np.intp]
Labels = NDArray[np.int64]

GAPS_OF_NEW_ROWS = ("fill by hand", "fill and fit")


@dataclass(frozen=True)
class Preparation:
    """How the training rows became numbers, as plain values that can be stored.

    Attributes
    ----------
    columns : tuple of str or None
        Names of all columns of the training rows, used or not; None if they have none.
    n_columns : int
        Number of these columns.
    id, truth : str or None
        The columns with the names and the labels of the rows.
    missing : {"error", "drop", "impute"}
        What is done with rows that have missing values.
    encoder : TableEncoder or None
        The map from the used columns, ``encoder.names``, to the columns of numbers; None for an
        array of numbers, which stays what it is.
    forms : tuple of NumberForm
        How the columns ``encoder.numbers`` of the training rows are written; empty if these did not
        come from a file.
    codes : tuple of pairs
        Names of columns, and the values that mark gaps in them.
    """

    columns: tuple[str, ...] | None
    n_columns: int
    id: str | None = None
    truth: str | None = None
    missing: Literal["error", "drop", "impute"] = "error"
    encoder: TableEncoder | None = None
    forms: tuple[NumberForm, ...] = ()
    codes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, also of those of an array."""
        return self.columns or self._map.names

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns that are used; empty for arrays without names."""
        return (self.columns or ()) if self.encoder is None else self.encoder.names

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the columns that are not used."""
        used = set(self.used)
        return tuple(name for name in self.columns or () if name not in used)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of numbers; empty where they have none."""
        return (self.columns or ()) if self.encoder is None else self.encoder.outputs

    @property
    def encoded(self) -> dict[str, tuple[str, str]]:
        """Column and text of each of them that encodes a text, by its name."""
        return {} if self.encoder is None else self.encoder.encoded

    @property
    def other_texts(self) -> dict[str, str]:
        """The text of each column of text in the rows that have 0 in all of its columns."""
        return {} if self.encoder is None else self.encoder.other_texts

    @property
    def n_outputs(self) -> int:
        """Number of the columns of numbers."""
        return self.n_columns if self.encoder is None else len(self.encoder.outputs)

    @property
    def _map(self) -> TableEncoder:
        """The encoder, or that of columns of numbers without gaps."""
        if self.encoder is not None:
            return self.encoder
        names = self.columns or array_names(self.n_columns)
        return TableEncoder(names, tuple(NumberColumn(name, 0.0) for name in names))

    def __post_init__(self) -> None:
        if self.columns is not None and len(self.columns) != self.n_columns:
            raise ValueError("every column must have a name, or none")
        if self.encoder is None:
            if self.forms:
                raise ValueError("columns that stay what they are have no forms")
            return
        if len(self.forms) not in (0, len(self.encoder.numbers)):
            raise ValueError("every column of numbers must have a form, or none")
        if self.columns is None:
            if len(self.encoder.names) != self.n_columns:
                raise ValueError("an array has a column for each name of its encoder")
        elif set(self.encoder.names) - set(self.columns):
            raise ValueError("the columns that are used must be columns of the training rows")

    def apply(self, raw: RawTable, words: Words = PYTHON, *, n_least: int = 1) -> Table:
        """Finite numbers of new rows, with the columns and the figures of the training rows.

        Additional columns are ignored, with a note. Columns that are not used may be absent. At
        least `n_least` rows must be left where rows with missing values are dropped.

        Raises
        ------
        TableError
            A column is missing, contains infinite values or is of another kind or unit, or, with
            ``missing="error"``, contains missing values. The message lists all of them.
        """
        self._check_columns(raw)
        raw, coded = without_codes(self._with_trained_marks(raw), dict(self.codes))
        notes = [*self._notes(raw), *_code_notes(coded)]
        place_of, encoder = {name: j for j, name in enumerate(raw.columns)}, self._map
        places = [place_of[name] for name in encoder.names]
        columns = encoder.columns
        cells = [_cells(raw, j, column) for j, column in zip(places, columns, strict=True)]
        problems = [
            problem
            for j, column, own in zip(places, columns, cells, strict=True)
            for problem in _new_problems(raw, j, column, own, self.missing)
        ]
        problems += self._other_units(raw)
        if problems:
            raise table_error(raw.source, problems, words)
        # The kind of the column in the training rows decides whether a cell is missing: "NA" is a
        # word in a column of words, even where it is the only text of the new rows.
        gaps = [are_gaps(own) for own in cells]
        rows, dropped = _rows_to_keep(raw, gaps, self.missing, n_least, words)
        values, encoding = encoder.transform([own[rows] for own in cells])
        # The labels of new rows are not compared with anything.
        return Table(
            values,
            self,
            Sample.whole(len(rows)),
            digest=raw.digest,
            ids=_ids(raw, self.id if self.id in raw.columns else None, rows),
            places=None if len(rows) == raw.n_rows else rows,
            n_gaps=np.sum([own[rows] for own in gaps], axis=0, dtype=np.int_),
            notes=(*raw.notes, *notes, *dropped, *encoding),
            raw=raw,
            words=words,
        )

    def renamed(self, names: Sequence[str]) -> Preparation:
        """The preparation of an array, for columns with these names."""
        new = dict(zip(self._map.names, names, strict=True))
        return replace(self, columns=tuple(names), encoder=self._map.renamed(new))

    def _check_columns(self, raw: RawTable) -> None:
        lacking = [name for name in self._map.names if name not in raw.columns]
        if lacking:
            columns = counted(len(lacking), "column")
            raise TableError(
                f"{raw.source} lacks {columns} of the training rows: {listed(lacking)}",
                "Give a file with the columns of the training rows.",
            )

    def _trained_forms(self, raw: RawTable) -> list[tuple[int, NumberForm]]:
        """Places of the columns of numbers, and their forms in the training rows."""
        numbers = self._map.numbers if self.forms else ()
        places = [raw.columns.index(column.name) for column in numbers]
        pairs = zip(places, self.forms, strict=True)
        return [(j, form) for j, form in pairs if not raw.is_text(j)]

    def _with_trained_marks(self, raw: RawTable) -> RawTable:
        """The table with the decimal marks of the training rows where its cells do not decide."""
        for j, form in self._trained_forms(raw):
            if form.decimal:
                reason = f"the training rows are read with {marks_word(form.decimal)}"
                raw = reread(raw, j, form.decimal, reason)
        return raw

    def _other_units(self, raw: RawTable) -> list[Problem]:
        """The problems of columns with other units than in the training rows."""
        problems = []
        for j, form in self._trained_forms(raw):
            if units := other_units(raw, j, form):
                name = raw.columns[j]
                what = f"column {shown(name)} contains {units[0]}, but the training rows contain"
                problems.append(Problem(name, "unit", f"{what} {units[1]}", ("as trained",)))
        return problems

    def _notes(self, raw: RawTable) -> list[Note]:
        """What is said about columns that the training rows had or did not have."""
        known = {self.id, self.truth, *(self.columns or ()), *self._map.names}
        notes = []
        if added := [name for name in raw.columns if name not in known]:
            notes.append(Note.of("tables.added", raw.source, columns=listed(added)))
        if self.id is not None and self.id not in raw.columns:
            notes.append(Note.of("tables.no id", self.id))
        return notes


def prepare(
    raw: RawTable,
    choices: Choices,
    words: Words = PYTHON,
    *,
    guessing: bool = True,
    roles: Roles | None = None,
) -> Table:
    r"""Finite numbers of a raw table, according to the user's choices.

    Parameters
    ----------
    raw : RawTable
        The columns of a file, a data frame or an array.
    choices : Choices
        How to treat ids, labels, missing values and text.
    words : Words, default=PYTHON
        The words for what the user can ask for.
    guessing : bool, default=True
        Whether columns that look like ids, known labels or dates are not used. The columns of an
        array have no names to guess by.
    roles : Roles or None, default=None
        What `assign_roles` gives, where it is known already.

    Returns
    -------
    Table
        At least two rows and one column.

    Raises
    ------
    TableError
        The choices do not give such a table. The message says why, where, and what helps;
        `problems` lists everything that is wrong with the columns.

    Examples
    --------
    >>> from gammagmm.readers.csv import read_delimited
    >>> from gammagmm.readers.source import Source
    >>> raw = read_delimited(Source("f.csv", ".csv", b"name,a,c\nu,1,x\nv,,y\nw,3,z\n"))
    >>> table = prepare(raw, Choices(id="name", missing="impute", categories="encode"))
    >>> table.columns, table.ids, table.values[1].tolist()
    (('a', 'c=y', 'c=z'), ('u', 'v', 'w'), [2.0, 1.0, 0.0])
    """
    if raw.n_rows < 2:
        raise TableError(
            f"{raw.source} has {counted(raw.n_rows, 'row')}", "Give at least two rows."
        )
    if roles is None:
        roles = assign_roles(raw, choices) if guessing else used_as_they_are(raw)
    check_features(raw, roles, words)
    likely = _likely_codes(raw, roles)
    is_open = guessing and choices.missing != "error"
    asked = choices.missing_codes if is_open else choices.missing_codes or ()
    codes = codes_of(raw, roles.features, asked, likely)
    raw, coded = without_codes(raw, codes)
    raw = _with_texts(raw, roles)
    if not guessing:  # the columns of new rows are found by their places
        choices = replace(choices, unusable="error")
    raw, roles, unusable, problems = without_unusable(raw, roles, choices)
    features = roles.features
    if problems := [*truth_problems(raw, choices), *problems]:
        raise table_error(raw.source, problems, words)
    truth = _labels(raw, choices.truth, words)
    gaps = [raw.is_gap(j) for j in features]
    rows, dropped = _rows_to_keep(raw, gaps, choices.missing, 2, words)
    names = tuple(raw.columns[j] for j in features)
    cells = [_training_cells(raw, j, roles)[rows] for j in features]
    encoder = fit_encoder(names, cells, dict(roles.dates))
    if not encoder.outputs:
        raise TableError(
            f"{raw.source} has no usable column: every column has only one text in the rows "
            "without missing values",
            "Give at least one column of numbers, or fill the missing values.",
        )
    check_names(f"{raw.source}, with its texts encoded", encoder.outputs)
    values, encoding = encoder.transform(cells, is_new=False)
    place_of = dict(zip(names, features, strict=True))
    forms = tuple(raw.form(place_of[column.name]) for column in encoder.numbers)
    id_column = choices.id or _naming_column(raw, roles)
    preparation = Preparation(
        raw.columns if guessing else None,
        len(raw.columns),
        id_column,
        choices.truth,
        cast("Any", choices.missing),
        encoder,
        forms if guessing else (),
        tuple(codes.items()),
    )
    return Table(
        values,
        preparation,
        Sample.whole(len(rows)),
        digest=raw.digest,
        ids=_ids(raw, id_column, rows),
        places=None if len(rows) == raw.n_rows else rows,
        truth=None if truth is None else truth[rows],
        notes=(
            *raw.notes,
            *guess_notes(raw.source, roles.guesses, words),
            *_likely_notes(likely, codes, coded, choices, words),
            *unusable,
            *dropped,
            *encoding,
        ),
        guesses=roles.guesses,
        raw=raw,
        words=words,
    )


def _likely_codes(raw: RawTable, roles: Roles) -> dict[str, tuple[GapCode, ...]]:
    """The values that probably mark gaps in each column of numbers that has some."""
    dates = dict(roles.dates)
    numbers = [j for j in roles.features if not raw.is_text(j) and raw.columns[j] not in dates]
    found = {raw.columns[j]: likely_codes(raw.data[j]) for j in numbers}
    return {name: codes for name, codes in found.items() if codes}


def _likely_notes(
    likely: dict[str, tuple[GapCode, ...]],
    codes: dict[str, tuple[str, ...]],
    coded: dict[str, int],
    choices: Choices,
    words: Words,
) -> list[Note]:
    """A note about each value that probably marks gaps, or was asked for."""
    notes = []
    for name, code in ((name, code) for name, own in likely.items() for code in own):
        values = {"value": code.text, "n_cells": code.n_cells}
        if code.text not in codes.get(name, ()):
            ask = words.missing_codes.format(code.text)
            notes.append(Note.of("tables.likely code", name, ask=ask, **values))
        elif choices.missing_codes is None:
            notes.append(Note.of("tables.clear code", name, ask=words.no_codes, **values))
    return notes + ([] if choices.missing_codes is None else _code_notes(coded))


def _code_notes(coded: dict[str, int]) -> list[Note]:
    """A note about each column in which values count as gaps."""
    return [Note.of("tables.codes", name, n_cells=n) for name, n in coded.items()]


def _with_texts(raw: RawTable, roles: Roles) -> RawTable:
    """The table, in which codes that are numbers are texts as they stand in the file."""
    names = {own.column for own in roles.guesses if own.is_text}
    data = list(raw.data)
    for j in roles.features:
        if raw.columns[j] in names and not raw.is_text(j):
            data[j] = _as_texts(raw, j)
    return replace(raw, data=tuple(data))


def _as_texts(raw: RawTable, j: int) -> NDArray[Any]:
    """The cells of a column of numbers as they stand in the file, None where missing."""
    cells = np.empty(raw.n_rows, dtype=object)
    cells[:] = raw.cells(j)
    cells[raw.is_gap(j)] = None
    return cells


def _training_cells(raw: RawTable, j: int, roles: Roles) -> NDArray[Any]:
    """The cells of a column; those of dates are texts."""
    is_number = raw.columns[j] in dict(roles.dates) and not raw.is_text(j)
    return _as_texts(raw, j) if is_number else raw.data[j]


def _naming_column(raw: RawTable, roles: Roles) -> str | None:
    """The first column that looks like an id and has a different value in each row."""
    for own in roles.guesses:
        if own.kind == "id":
            j = raw.columns.index(own.column)
            values = raw.data[j]
            if not raw.is_gap(j).any() and len(set(values.tolist())) == raw.n_rows:
                return own.column
    return None


def truth_problems(raw: RawTable, choices: Choices) -> list[Problem]:
    """What is wrong with the truth column."""
    truth = None if choices.truth is None else read_truth(raw, choices.truth)
    return [truth] if isinstance(truth, Problem) else []


def _labels(raw: RawTable, name: str | None, words: Words) -> Labels | None:
    """The labels in the truth column `name`; cells with an unclear meaning are a `TableError`."""
    found = None if name is None else read_truth(raw, name)
    if isinstance(found, Problem):
        raise table_error(raw.source, [found], words)
    return found


def _ids(raw: RawTable, name: str | None, rows: Places) -> tuple[str, ...] | None:
    """The cells of the column `name` in these rows; None without such a column."""
    if name is None:
        return None
    cells = raw.cells(raw.columns.index(name))
    return tuple(cells[row] or "" for row in rows.tolist())


def _rows_to_keep(
    raw: RawTable,
    gaps: Sequence[NDArray[np.bool_]],
    missing: str,
    n_needed: int,
    words: Words,
) -> tuple[Places, list[Note]]:
    """Indices of all rows, or of those without `gaps` in any column if the others are dropped."""
    is_kept = np.ones(raw.n_rows, dtype=bool)
    if missing == "drop":
        for is_gap in gaps:
            is_kept &= ~is_gap
    rows = np.flatnonzero(is_kept)
    if len(rows) < n_needed:
        needed = "two rows are" if n_needed == 2 else "one row is"
        todo = f"Use {words.fill}, or leave out the columns with the most missing values."
        raise TableError(
            f"{raw.source} has {counted(len(rows), 'row')} without missing values, and at least "
            f"{needed} needed",
            todo if n_needed == 2 else f"Fill them in, or fit again with {words.fill}.",
        )
    n_dropped = raw.n_rows - len(rows)
    if not n_dropped:
        return rows, []
    counts = {"n_dropped": n_dropped, "rows": counted(raw.n_rows, "row")}
    return rows, [Note.of("tables.dropped", raw.source, **counts)]


def _cells(raw: RawTable, j: int, column: Column) -> NDArray[Any]:
    """The cells of a column of new rows; those of text are as they are written in the file."""
    if not isinstance(column, NumberColumn | DateColumn):
        raw.check_column(j)
    if raw.is_text(j) or isinstance(column, NumberColumn):
        return raw.data[j]
    cells = np.empty(raw.n_rows, dtype=object)
    cells[:] = [None if cell is None else cell.strip() for cell in raw.cells(j)]
    return cells


def _new_problems(
    raw: RawTable,
    j: int,
    column: Column,
    cells: NDArray[Any],
    missing: str,
) -> list[Problem]:
    """The problems of a column of new rows."""
    problems = []
    if isinstance(column, NumberColumn):
        is_text = raw.is_text(j)
        is_wrong = _other_kind(raw, j, "numbers") if is_text else []
        problems += is_wrong or ([] if is_text else infinite_values(raw, j, ("correct",)))
    elif isinstance(column, DateColumn):
        known = np.array([cell is not None for cell in cells], dtype=bool)
        if (known & np.isnan(seconds_of(cells, column.form))).any():
            problems += _other_kind(raw, j, f"dates ({column.form})")
    if missing == "error":
        problems += missing_values(raw, j, are_gaps(cells), GAPS_OF_NEW_ROWS)
    return problems


def _other_kind(raw: RawTable, j: int, kind: str) -> list[Problem]:
    name = raw.columns[j]
    what = f"column {shown(name)} contains other cells than the {kind} of the training rows"
    return [Problem(name, "kind", what, ("correct",))]
