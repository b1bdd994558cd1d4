"""Several files as one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gammagmm._support.data_frames import check_same_columns
from gammagmm._support.text import listed, shown
from gammagmm.errors import Note, TableError
from gammagmm.readers.numbers import (
    has_numbers,
    marks_word,
    other_units,
    reread,
    settled,
)
from gammagmm.readers.raw_table import NumberForm, RawTable, text_column

__all__ = ["JoinedTable", "join_raw"]

SAME_WAY = "Write the column in the same way in all files."


@dataclass(frozen=True, eq=False, repr=False)
class JoinedTable(RawTable):
    """A raw table that knows the file of each row."""

    parts: tuple[RawTable, ...] = ()

    def place(self, row: int) -> str:
        """Place and file of a row, counted from 0 through all files: "line 7 of b.csv"."""
        for part in self.parts:
            if row < part.n_rows:
                return f"{part.place(row)} of {part.source}"
            row -= part.n_rows
        raise IndexError(row)


def join_raw(tables: Sequence[RawTable]) -> RawTable:
    """The rows of all `tables`, in their order.

    A column that is text in one table is text in the result. If a table does not show the decimal
    mark of a column, the mark that the others show is used. Tables whose columns, or the units of
    their columns, differ are a `TableError`.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    for table in tables[1:]:
        check_same_columns(first.source, list(first.columns), table.source, list(table.columns))
    places = range(len(first.columns))
    text_places = {j for j in places if any(table.is_text(j) for table in tables)}
    parts, forms = tuple(tables), dict[int, NumberForm]()
    for j in places:
        if j not in text_places:
            parts = _with_one_mark(parts, j)
            forms[j] = _common_form(parts, j)

    def cells(j: int) -> list[str | None]:
        return [cell for part in parts for cell in part.write_cells(j)]

    data = tuple(
        text_column(cells(j)) if j in text_places else np.concatenate([p.data[j] for p in parts])
        for j in places
    )
    source = ", ".join(part.source for part in parts)
    digest = ", ".join(part.digest for part in parts)
    refused = {j: error for table in reversed(tables) for j, error in table.refused.items()}
    return JoinedTable(
        source,
        first.columns,
        data,
        None,
        cells,
        digest,
        _joined_notes(parts),
        forms=forms,
        refused=refused,
        parts=parts,
    )


def _joined_notes(tables: Sequence[RawTable]) -> tuple[Note, ...]:
    """What all files say, once; what only some of them say, with their names."""
    sources = defaultdict[Note, list[str]](list)
    for table in tables:
        for note in dict.fromkeys(table.notes):
            sources[note].append(table.source)
    return tuple(
        note
        if len(names) == len(tables) or note.subject in names
        else Note.of(
            "tables.other files", note.subject, words=f"in {listed(names)}: {note.message}"
        )
        for note, names in sources.items()
    )


def _with_one_mark(tables: tuple[RawTable, ...], j: int) -> tuple[RawTable, ...]:
    """The tables, in which a column that does not show its decimal mark has that of the others."""
    if len({table.form(j).decimal for table in tables} - {""}) < 2:
        return tables
    tables = tuple(settled(table, j) for table in tables)
    marks = {table.form(j).decimal for table in tables if table.form(j).is_certain} - {""}
    is_open = [table for table in tables if not table.form(j).is_certain]
    if is_open and len(marks) != 1:
        raise _no_common_mark(is_open[0], tables, j)
    mark = min(marks)  # the only one where a table is open
    return tuple(reread(t, j, mark, f"other files have {marks_word(mark)}") for t in tables)


def _no_common_mark(open_one: RawTable, tables: Sequence[RawTable], j: int) -> TableError:
    mark = open_one.form(j).decimal
    other = next(table for table in tables if table.form(j).decimal not in ("", mark))
    return TableError(
        f"column {shown(open_one.columns[j])} is read with {marks_word(mark)} in "
        f"{open_one.source}, which is an assumption, but with "
        f"{marks_word(other.form(j).decimal)} in {other.source}",
        SAME_WAY,
    )


def _common_form(tables: Sequence[RawTable], j: int) -> NumberForm:
    """How the numbers of a column are written in all tables; two units are a `TableError`."""
    known = [table for table in tables if has_numbers(table, j)]
    if not known:
        return NumberForm()
    base = next((table for table in known if table.form(j).currency), known[0])
    for table in known:
        if units := other_units(table, j, base.form(j)):
            raise TableError(
                f"column {shown(table.columns[j])} contains {units[1]} in {base.source}, but "
                f"{units[0]} in {table.source}",
                SAME_WAY,
            )
    marked = [table.form(j) for table in known if table.form(j).decimal]
    has_one_mark = len({form.decimal for form in marked}) == 1
    return replace(
        base.form(j),
        decimal=marked[0].decimal if has_one_mark else "",
        is_certain=not has_one_mark or any(form.is_certain for form in marked),
    )
