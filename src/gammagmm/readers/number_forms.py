"""Numbers of one column in several files: read with one decimal mark, in one unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gammagmm.errors import Note
from gammagmm.readers.numbers import read_column
from gammagmm.readers.raw_table import NumberForm, RawTable

__all__ = ["has_numbers", "marks_word", "other_units", "reread", "settled"]


def settled(raw: RawTable, j: int) -> RawTable:
    """`raw`, where the form of column `j` is certain if any cell, not only the first, shows it."""
    column = None if raw.form(j).is_certain else read_column(raw.cells(j))
    if column is None or not column.form.is_certain:
        return raw
    return replace(raw, forms={**raw.forms, j: column.form})


def reread(raw: RawTable, j: int, decimal: str, reason: str) -> RawTable:
    """`raw` with its column `j` read with the mark `decimal`, unless its cells show the mark."""
    raw = settled(raw, j)
    column = None if raw.form(j).is_certain else read_column(raw.cells(j), decimal, reason)
    if column is None:
        return raw
    name = raw.columns[j]
    others = [note for note in raw.notes if (note.code, note.subject) != ("tables.numbers", name)]
    notes = (*others, Note.of("tables.numbers", name, words=column.message))
    data = (*raw.data[:j], column.values, *raw.data[j + 1 :])
    return replace(raw, data=data, notes=notes, forms={**raw.forms, j: column.form})


def marks_word(decimal: str) -> str:
    """A decimal mark in words."""
    return "decimal commas" if decimal == "," else "decimal points"


def has_numbers(raw: RawTable, j: int) -> bool:
    """Whether some cell of a column of numbers is not missing."""
    return not bool(np.isnan(raw.data[j]).all())


def other_units(raw: RawTable, j: int, form: NumberForm) -> tuple[str, str] | None:
    """The unit of column `j` and that of `form`, in words; None if they do not contradict."""
    own = raw.form(j)
    if not has_numbers(raw, j):
        return None
    if own.is_percent != form.is_percent:
        return _percents(own), _percents(form)
    if own.currency and form.currency and own.currency != form.currency:
        return f"amounts in {own.currency}", f"amounts in {form.currency}"
    return None


def _percents(form: NumberForm) -> str:
    return "percents" if form.is_percent else "numbers without a percent sign"
