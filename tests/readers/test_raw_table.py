"""Columns of numbers and text, their missing values and names, and several files as one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gammagmm.errors import Note, TableError
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.raw_table import join_raw
from gammagmm.readers.source import Source


def table(text, name="t.csv"):
    """Raw table of CSV text; its digest stands for that of a file."""
    return replace(read_delimited(Source(name, ".csv", text.encode())), digest=f"sum of {name}")


def test_missing_cells_of_numbers_and_of_text():
    raw = table("a,b\n1,x\n,\n")
    assert [raw.is_gap(j).tolist() for j in (0, 1)] == [[False, True]] * 2


def test_a_single_table_stays_as_it_is():
    raw = table("a\n1\n")
    assert join_raw([raw]) is raw


def test_several_tables_as_one():
    joined = join_raw([table("a,b\n1,2\n\n3,\n", "u.csv"), table("a,b\n 007 ,x\n", "v.csv")])
    assert joined.columns == ("a", "b")
    assert joined.data[0].tolist() == [1.0, 3.0, 7.0]
    assert joined.data[1].tolist() == ["2", None, "x"]  # text in one of them is text in all
    assert joined.cells(0) == ["1", "3", "007"]
    assert [joined.is_gap(j).tolist() for j in (0, 1)] == [[False] * 3, [False, True, False]]
    places = ["line 2 of u.csv", "line 4 of u.csv", "line 2 of v.csv"]
    assert [joined.place(row) for row in range(3)] == places
    assert (joined.source, joined.digest) == ("u.csv, v.csv", "sum of u.csv, sum of v.csv")
    with pytest.raises(IndexError):
        joined.place(3)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "b,a",
            "v.csv has the columns of u.csv in another order. Give files with the same columns "
            "in the same order.",
        ),
        ("a", "v.csv lacks the columns 'b', unlike u.csv. Give files with the same columns."),
        (
            "a,b,c",
            "v.csv has the additional columns 'c', unlike u.csv. Give files with the same columns.",
        ),
        (
            "a,c",
            "v.csv lacks the columns 'b' and has the additional columns 'c', unlike u.csv. "
            "Give files with the same columns.",
        ),
    ],
)
def test_tables_with_different_columns_are_refused(header, message):
    row = ",".join("1" for _ in header.split(","))
    with pytest.raises(TableError, match=f"^{re.escape(message)}$"):
        join_raw([table("a,b\n1,2\n", "u.csv"), table(f"{header}\n{row}\n", "v.csv")])


def test_many_different_columns_give_a_short_message():
    names = [f"c{j}" for j in range(1000)]
    wide = table(f"{','.join(names)}\n{','.join('1' * 1000)}\n", "v.csv")
    with pytest.raises(TableError, match="'c19' and 980 more, unlike") as caught:
        join_raw([table("a\n1\n", "u.csv"), wide])
    assert len(str(caught.value)) < 1000


def test_what_several_files_say_is_said_once():
    same, other = Note("tables", "a", "read with decimal commas"), Note("tables", "b", "in CHF")
    tables = [table("a\n1\n", "u.csv"), table("a\n2\n", "v.csv"), table("a\n3\n", "w.csv")]
    notes = [(same,), (same, other), ()]
    joined = join_raw([replace(t, notes=n) for t, n in zip(tables, notes, strict=True)])
    assert joined.notes == (same, other)
