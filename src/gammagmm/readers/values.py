"""Columns of Python values, as spreadsheets, databases and JSON have them -> raw table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_cells, as_objects
from gammagmm.errors import Note
from gammagmm.readers.numbers import (
    ReadNumbers,
    missing_words_note,
    number_notes,
    read_texts,
    unusual_words,
)
from gammagmm.readers.raw_table import RawTable, check_names, is_missing, text_column, written
from gammagmm.readers.source import Asked

__all__ = ["Value", "table_of_values", "with_read_texts"]

Value = str | float | None  # bool and int are among the numbers


def table_of_values(
    name: str,
    columns: Mapping[str, Sequence[Value]],
    lines: Sequence[int] | None = None,
    *,
    write: Callable[[Any], str | None] | None = None,
    notes: Sequence[Note] = (),
    unit: str = "line",
    asked: Asked | None = None,
) -> RawTable:
    """Raw table of columns of numbers, text and None.

    A column with text is a column of numbers if all its texts are numbers as people write them,
    and if its numbers can have the meaning of its texts.
    `write` gives the text of a number; without it, whole numbers are written without a point.
    """
    names = tuple(columns)
    check_names(name, names)
    values = [[None if _is_gap(value) else value for value in cells] for cells in columns.values()]
    texts = {
        j: [cell.strip() if isinstance(cell, str) else None for cell in cells]
        for j, cells in enumerate(values)
        if any(isinstance(cell, str) for cell in cells)
    }
    n_plain = {j: sum(c is not None and not isinstance(c, str) for c in values[j]) for j in texts}
    fractions = [j for j in texts if any(isinstance(c, float) and c % 1.0 for c in values[j])]
    read = read_texts(texts, asked=asked, n_plain=n_plain, fractions=fractions)
    numbers = {j: column for j, column in read.items() if not _is_mixed(values[j], column)}
    found = list(notes)
    for j, (column, cells) in enumerate(columns.items()):
        found += number_notes(column, numbers[j]) if j in numbers else []
        words = unusual_words(c.strip() for c in cells if isinstance(c, str) and is_missing(c))
        found += [missing_words_note(column, words)] if words else []

    def cells_of(j: int) -> list[str | None]:
        return [_text(value, write) for value in values[j]]

    data = tuple(
        text_column(cells_of(j))
        if j in texts and j not in numbers
        else _numbers(cells, numbers.get(j))
        for j, cells in enumerate(values)
    )
    # Cells that are numbers already do not depend on the decimal mark of the texts.
    forms = {
        j: column.form
        if all(cell is None or isinstance(cell, str) for cell in values[j])
        else replace(column.form, is_certain=True)
        for j, column in numbers.items()
    }
    return RawTable(name, names, data, lines, cells_of, notes=tuple(found), unit=unit, forms=forms)


def with_read_texts(
    raw: RawTable,
    texts: Collection[int],
    asked: Asked | None = None,
    *,
    is_in_memory: bool = False,
) -> RawTable:
    """`raw`, in which its columns `texts` are numbers if their cells can be read as such."""
    cells = {j: [*map(_text_or_none, raw.data[j])] for j in texts if raw.is_text(j)}
    read = read_texts(cells, asked=asked)
    data, notes = list(raw.data), list(raw.notes)
    for j, column in read.items():
        name, data[j] = raw.columns[j], column.values
        words = unusual_words(c.strip() for c in raw.data[j] if c is not None and is_missing(c))
        notes += number_notes(name, replace(column, is_in_memory=is_in_memory))
        notes += [missing_words_note(name, words)] if words else []
    forms = {**raw.forms, **{j: column.form for j, column in read.items()}}
    return replace(raw, data=tuple(data), notes=tuple(notes), forms=forms)


def _text_or_none(cell: str | None) -> str | None:
    return None if cell is None or is_missing(cell) else cell.strip()


def _is_mixed(cells: Sequence[Value], column: ReadNumbers) -> bool:
    """Whether numbers stand beside texts of another meaning: percents, or true and false."""
    beside = {cell for cell in cells if cell is not None and not isinstance(cell, str)}
    if column.form.is_percent:
        return bool(beside)
    return column.is_boolean and not beside <= {0, 1}


def _is_gap(value: Value) -> bool:
    return value is None or value != value or (isinstance(value, str) and is_missing(value))


def _text(value: Value, write: Callable[[Any], str | None] | None) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else value.strip()
    return written([value])[0] if write is None else write(value)


def _numbers(cells: Sequence[Value], column: ReadNumbers | None) -> NDArray[np.float64]:
    """Numbers of a column; those of its texts come from `column`."""
    values = as_cells(as_objects(None if isinstance(cell, str) else cell for cell in cells))
    if column is not None:
        is_text = np.array([isinstance(cell, str) for cell in cells], dtype=bool)
        values[is_text] = column.values[is_text]
    return values
