"""The words of the notes about files."""

from __future__ import annotations

import pytest

from gammagmm.errors import Note

NOTES = [
    Note.of("tables.binary", "b"),
    Note.of("tables.computed", "b"),
    Note.of("tables.encoding", "t.csv", encoding="Latin-1"),
    Note.of("tables.missing words", "a", words="'-'", n_cells=1),
    Note.of("tables.missing words", "a", words="'-'", n_cells=2),
    Note.of("tables.numbers first", "t.csv", unit="line", n_columns=1),
    Note.of("tables.numbers first", "t.csv", unit="row", n_columns=2),
    Note.of("tables.row names", "index", name="index"),
    Note.of("tables.sheet", "t.xlsx", sheet="'rows'", others="'more'"),
    Note.of("tables.titles", "t.xlsx", titles="'Sales'"),
    Note.of("tables.unnamed", "x2", place=2, name="x2"),
]


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.code)
def test_each_note_has_words_with_all_its_values(note):
    assert not note.message.startswith(note.code)
    shown = set(note.fields) - {"n_columns"}
    assert all(str(note.fields[name]) in note.message for name in shown)
