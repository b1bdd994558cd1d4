"""Several files as one table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gammagmm.errors import Note, TableError
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.joined_table import join_raw
from gammagmm.readers.raw_table import NumberForm
from gammagmm.readers.source import Source


def table(text, name="t.csv"):
    """Raw table of CSV text; its digest stands for that of a file."""
    return replace(read_delimited(Source(name, ".csv", text.encode())), digest=f"sum of {name}")


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
    ("header", "words"),
    [
        ("b,a", ["in another order"]),
        ("a", ["lacks the columns 'b'"]),
        ("a,b,c", ["additional columns 'c'"]),
        ("a,c", ["lacks the columns 'b'", "additional columns 'c'"]),
    ],
)
def test_tables_with_different_columns_are_refused(header, words):
    row = ",".join("1" for _ in header.split(","))
    with pytest.raises(TableError, match=r"^v\.csv .*u\.csv") as caught:
        join_raw([table("a,b\n1,2\n", "u.csv"), table(f"{header}\n{row}\n", "v.csv")])
    assert all(word in caught.value.what for word in words)


def test_many_different_columns_give_a_short_message():
    names = [f"c{j}" for j in range(1000)]
    wide = table(f"{','.join(names)}\n{','.join('1' * 1000)}\n", "v.csv")
    with pytest.raises(TableError, match="'c19' and 980 more, unlike") as caught:
        join_raw([table("a\n1\n", "u.csv"), wide])
    assert len(str(caught.value)) < 1000


def test_what_several_files_say_is_said_once():
    same, other = (
        Note.of("tables.numbers", column, words=words)
        for column, words in (("a", "read with decimal commas"), ("b", "in CHF"))
    )
    tables = [table("a\n1\n", "u.csv"), table("a\n2\n", "v.csv"), table("a\n3\n", "w.csv")]
    notes = [(same,), (same, other), ()]
    joined = join_raw([replace(t, notes=n) for t, n in zip(tables, notes, strict=True)])
    assert [(note.subject, note.message) for note in joined.notes] == [
        ("a", "in 'u.csv', 'v.csv': read with decimal commas"),
        ("b", "in 'v.csv': in CHF"),
    ]
    joined = join_raw([replace(t, notes=(same, other)) for t in tables])
    assert joined.notes == (same, other)
    about_the_file = Note.of("tables.encoding", "u.csv", encoding="Latin-1")
    joined = join_raw([replace(tables[0], notes=(about_the_file,)), *tables[1:]])
    assert joined.notes == (about_the_file,)


def test_a_file_that_shows_its_decimal_mark_decides_for_the_others():
    tables = [
        table("price;b\n1.103;1\n2.250;2\n", "u.csv"),
        table("price;b\n1.103,5;1\n", "v.csv"),
        table("price,b\n3.104,1\n", "w.csv"),
        table("price,b\n,1\n", "x.csv"),
    ]
    joined = join_raw(tables)
    assert joined.data[0][:4].tolist() == [1103.0, 2250.0, 1103.5, 3104.0]
    assert joined.form(0) == NumberForm(",")
    assert [note.message for note in joined.notes if "w.csv" in note.message] == [
        "in 'w.csv': read with thousands separators: '3.104' is 3104; this is an assumption: "
        "other files have decimal commas; --decimal . reads it in the other way"
    ]
    points = join_raw([tables[2], table("price,b\n7.25,1\n", "y.csv")])
    assert points.data[0].tolist() == [3.104, 7.25]
    assert points.form(0) == NumberForm(".")


def test_a_decimal_mark_far_below_decides():
    rows = "".join(f"{n}.250;1\n" for n in range(1, 100))
    late = table(f"price;b\n{rows}7.5;1\n", "u.csv")
    assert not late.form(0).is_certain
    joined = join_raw([late, table("price;b\n1.103,5;1\n", "v.csv")])
    assert joined.data[0][[0, 99, 100]].tolist() == [1.25, 7.5, 1103.5]
    assert joined.form(0) == NumberForm()


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (
            "a;b\n5 %;1\n",
            "a,b\n0.05,1\n",
            "column 'a' contains percents in u.csv, but numbers without a percent sign in v.csv",
        ),
        (
            "a;b\n5;1\n6 €;1\n",
            "a,b\n$5,1\n",
            "column 'a' contains amounts in EUR in u.csv, but amounts in $ in v.csv",
        ),
        (
            "a;b\n1.103;2,5\n",
            "a,b\n1.103,2\n",
            "column 'a' is read with decimal commas in u.csv, which is an assumption, but with "
            "decimal points in v.csv",
        ),
    ],
)
def test_a_column_with_two_meanings_is_refused(ours, theirs, message):
    with pytest.raises(TableError) as caught:
        join_raw([table(ours, "u.csv"), table(theirs, "v.csv")])
    assert str(caught.value) == f"{message}. Write the column in the same way in all files."


def test_units_of_files_that_do_not_contradict():
    joined = join_raw([table("a,b\n,1\n"), table("a,b\n5,1\n"), table("a,b\n6 €,1\n")])
    assert joined.data[0][1:].tolist() == [5.0, 6.0]
    assert joined.form(0) == NumberForm(currency="EUR")
    assert join_raw([table("a,b\n,1\n"), table("a,b\n5 %,1\n")]).form(0).is_percent
    assert join_raw([table("a,b\n,1\n")] * 2).form(0) == NumberForm()
