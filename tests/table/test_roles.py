"""Which columns are used, by the user's choices and by guesses about the others."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable, text_column, written
from gammagmm.table.preparation import Choices, prepare

N = 12
VALUES = np.random.default_rng(0).normal(size=N)


def table(**columns):
    """A raw table with the column `value` and the given ones."""
    columns = {"value": VALUES} | columns
    data = tuple(
        text_column(cells) if isinstance(cells[0], str) else np.array(cells, dtype=float)
        for cells in columns.values()
    )

    def cells(j):
        return list(data[j]) if data[j].dtype == object else written(data[j])

    return RawTable("t.csv", tuple(columns), data, None, cells)


def prepared_of(columns, **choices):
    return prepare(table(**columns), Choices(**choices))


SHUFFLED = np.random.default_rng(1).permutation(N)
UNIQUE = SHUFFLED * 17 + 1000
LEFT_OUT = [
    ("n", range(5, 5 + N), "it looks like an id because its values are consecutive whole numbers"),
    ("n", SHUFFLED, "it looks like an id because its values are consecutive whole numbers"),
    ("customer_id", UNIQUE % 3, "it looks like an id by its name"),
    ("customerID", UNIQUE, "it looks like an id by its name"),
    ("Id", [f"a{i % 3}" for i in range(N)], "it looks like an id by its name"),
    ("Kundennummer", UNIQUE, "it looks like an id by its name and because its values are all diff"),
    (
        "order no",
        UNIQUE,
        "it looks like an id by its name and because its values are all different",
    ),
    ("Unnamed: 0", UNIQUE, "it looks like an id by its name and because its values are all differ"),
    (
        "comment",
        [f"text {i}" for i in UNIQUE],
        "it looks like an id because its texts are all diff",
    ),
    ("is_fraud", [0, 1] * (N // 2), "it looks like known labels; --truth is_fraud compares the"),
    ("isOutlier", [1, -1] * (N // 2), "it looks like known labels; --truth isOutlier compares"),
    ("Class", [0, 0, 1] * (N // 3), "it looks like known labels; --truth Class compares"),
    ("y", [0] * N, "it looks like known labels; --truth y compares the estimate with them, --use"),
    ("y", [1] * N, "it looks like known labels; --use y keeps the column"),
    ("label", ["yes", "No"] * (N // 2), "it looks like known labels; --truth label compares"),
    (
        "fraud",
        [np.nan, 0, 1] * (N // 3),
        "it looks like known labels; --use fraud keeps the column",
    ),
    (
        "when",
        ["2024-01-31", "2024-02-01"] * 6,
        "it contains dates (year-month-day); --dates encode",
    ),
    ("when", ["31.12.2024 10:15"] * N, "it contains dates (day.month.year); --dates encode or "),
    ("when", ["12/31/2024", "1/2/2024"] * 6, "it contains dates (month/day/year); --dates encode"),
    ("c", [7] * N, "its only value is 7"),
    ("c", [np.nan, 2.5] * (N // 2), "its only value is 2.5"),
    ("c", [np.nan] * N, "all its values are missing"),
]


@pytest.mark.parametrize(("name", "cells", "message"), LEFT_OUT)
def test_columns_that_are_no_features_are_left_out_with_a_note(name, cells, message):
    prepared = prepared_of({name: list(cells)})
    assert prepared.columns == ("value",)
    np.testing.assert_array_equal(prepared.values[:, 0], VALUES)
    assert [note.subject for note in prepared.notes] == [name]
    assert prepared.notes[0].message.startswith(f"left out: {message}")
    assert prepared.preparation.left_out == (name,)


USED = [
    ("n", [*UNIQUE[:-1], UNIQUE[0]]),
    ("number", [*UNIQUE[:-1], UNIQUE[0]]),
    ("id", UNIQUE + 0.5),
    ("y", UNIQUE % 3),
    ("is_fraud", [0, 1, 2] * (N // 3)),
    ("class_a", [0, 1] * (N // 2)),
    ("flag", [0, 1] * (N // 2)),
    ("idle", UNIQUE % 5),
]


@pytest.mark.parametrize(("name", "cells"), USED)
def test_ordinary_columns_are_used_without_a_note(name, cells):
    prepared = prepared_of({name: list(cells)})
    assert (prepared.columns, prepared.notes) == (("value", name), ())
    np.testing.assert_array_equal(prepared.values[:, 1], cells)


def test_other_columns_of_different_whole_numbers_are_used_with_a_note():
    prepared = prepared_of({"size": UNIQUE})
    assert prepared.columns == ("value", "size")
    assert prepared.notes[0].message == (
        "used, and its values are different whole numbers; if they name the rows, give --id size "
        "or --drop size"
    )


@pytest.mark.parametrize(
    ("name", "cells"), [("n", range(N)), ("id", UNIQUE), ("fraud", [0, 1] * 6)]
)
def test_use_keeps_a_column_without_a_note(name, cells):
    prepared = prepared_of({name: list(cells)}, use=(name,))
    assert (prepared.columns, prepared.notes) == (("value", name), ())


PRICES = [f"{1.37 * i:.2f}" for i in range(1, N)]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([*PRICES, "abc"], "1 cell is not a number: 'abc' in row 12. Correct it, or use --drop c."),
        (
            [*(price.replace(".", ",") for price in PRICES), "Summe"],
            "1 cell is not a number: 'Summe' in row 12. Correct it, or use --drop c.",
        ),
        (
            [*(price.replace(".", ",") for price in PRICES), "1.25"],
            "its 12 cells are numbers in different forms: '1,37' in row 1 and '1.25' in row 12. "
            "Write all of them in one form, or use --drop c.",
        ),
        (
            [*(f"${price}" for price in PRICES), "€2.50"],
            "its 12 cells are numbers in different forms: '$1.37' in row 1 and '€2.50' in row 12. "
            "Write all of them in one form, or use --drop c.",
        ),
        (
            [f"{i},10,234" for i in range(1, N + 1)],
            "12 cells are not numbers, the first is '1,10,234' in row 1. Correct them, or use "
            "--drop c.",
        ),
    ],
)
def test_a_column_of_numbers_with_a_wrong_cell_is_no_id(cells, message):
    with pytest.raises(TableError) as caught:
        prepared_of({"c": cells})
    assert str(caught.value) == f"t.csv, column 'c': {message}"


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("part", [f"{i:05}" for i in UNIQUE]),  # a file that stores digits as text
        ("part", [f"{i}{'' if i % 2 else 'A'}" for i in UNIQUE]),
        ("part no", [*map(str, UNIQUE[:-1]), "1000A"]),
        ("address", [f"192.168.0.{i}" for i in UNIQUE]),
    ],
)
def test_codes_of_digits_are_still_ids(name, cells):
    prepared = prepared_of({name: cells})
    assert prepared.columns == ("value",)
    assert prepared.notes[0].message.startswith("left out: it looks like an id because its texts")


def test_few_rows_say_nothing_about_ids():
    data = (np.arange(9.0), text_column(list("abcdefghi")))
    raw = RawTable("t.csv", ("n", "c"), data, None, lambda j: [])
    assert prepare(raw, Choices(categories="encode")).columns[0] == "n"


def test_dates_are_encoded_on_request():
    cells = ["31.12.2023", "1.1.2024", "15.1.2024"] * 4
    names = ("value", "d days", "d weekday sine", "d weekday cosine")
    for choices in ({"dates": "encode"}, {"use": ("d",)}):
        prepared = prepared_of({"d": cells}, **choices)
        assert prepared.columns == names
        assert prepared.values[:3, 1].tolist() == [0.0, 1.0, 15.0]
        assert prepared.notes[0].message == (
            "dates (day.month.year) encoded as 'd days', 'd weekday sine', 'd weekday cosine'"
        )
    new = table(d=["2.1.2024"] * N)
    assert prepared.preparation.apply(new).values[:, 1].tolist() == [2.0] * N
    with pytest.raises(TableError, match=r"column 'd' contains other cells than the dates \(day"):
        prepared.preparation.apply(table(d=["2024-01-01"] * N))


def test_equal_dates_have_no_column():
    prepared = prepared_of({"d": ["2024-01-01"] * N}, dates="encode")
    assert prepared.columns == ("value",)
    assert prepared.notes[0].message == "dates (year-month-day) left out: they are equal"


def test_gaps_in_dates_are_missing_values():
    cells = ["2024-01-01", None, "2024-01-03"] * 4
    with pytest.raises(TableError, match="column 'd': 4 missing values, the first in row 2"):
        prepared_of({"d": cells}, dates="encode")
    prepared = prepared_of({"d": cells}, dates="encode", missing="impute")
    assert prepared.values[:3, 1].tolist() == [0.0, 1.0, 2.0]


NAMES = ("x_1", "x_2", "a,b", "a", "b", "c*", "cd")


def columns_of(**choices):
    data = tuple(VALUES + j for j, _ in enumerate(NAMES))
    return prepare(
        RawTable("t.csv", NAMES, data, None, lambda j: ["r"] * N), Choices(**choices)
    ).columns


@pytest.mark.parametrize(
    ("drop", "left"),
    [
        (("x_*",), ("a,b", "a", "b", "c*", "cd")),
        (("x_?, cd",), ("a,b", "a", "b", "c*")),
        (("x_1", "x_[2-9]"), ("a,b", "a", "b", "c*", "cd")),
        (("a,b",), ("x_1", "x_2", "a", "b", "c*", "cd")),  # the exact name, not a and b
        (("a,b,",), ("x_1", "x_2", "a,b", "c*", "cd")),
        (("a, b",), ("x_1", "x_2", "a,b", "c*", "cd")),
        (("c*",), ("x_1", "x_2", "a,b", "a", "b", "cd")),  # the exact name, not a pattern
    ],
)
def test_lists_and_patterns(drop, left):
    assert columns_of(drop=drop) == left


def test_an_exact_name_overrides_a_pattern():
    assert columns_of(drop=("*",), use=("b", "cd")) == ("b", "cd")
    assert columns_of(drop=("x_*",), id="x_1") == ("a,b", "a", "b", "c*", "cd")
    with pytest.raises(TableError, match=r"Column 'x_1' of t\.csv is given by --drop and by --use"):
        columns_of(drop=("x_*",), use=("*_1",))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"drop": ("x_*,z*",)}, "t.csv has no column that matches 'z*'. Choose one of: 'x_1', "),
        ({"use": ("x_3",)}, "t.csv has no column 'x_3'; similar names: 'x_2', 'x_1'. Choose"),
        ({"id": "x_*"}, "t.csv has no column that matches 'x_*'; similar names: 'x_2', 'x_1'."),
        ({"id": "p", "truth": "q"}, "t.csv has no column 'p', 'q'. Choose one of: 'x_1', "),
    ],
)
def test_names_and_patterns_without_a_column(choices, message):
    with pytest.raises(TableError, match="^" + re.escape(message)):
        columns_of(**choices)


def test_many_columns_of_one_kind_have_one_note():
    columns = {f"c{j}": [j] * N for j in range(5)} | {f"id {j}": UNIQUE for j in range(4)}
    prepared = prepared_of(columns)
    assert [(note.subject, note.message) for note in prepared.notes] == [
        ("t.csv", "5 columns with a single value are left out: 'c0', 'c1', 'c2', 'c3', 'c4'"),
        (
            "t.csv",
            "4 columns that look like ids are left out: 'id 0', 'id 1', 'id 2', 'id 3'; --id NAME "
            "names the rows by one, --use keeps it",
        ),
    ]


@pytest.mark.parametrize(("cells", "is_offered"), [([0, 1] * 6, True), ([1] * N, False)])
def test_many_columns_of_labels_offer_a_comparison_that_works(cells, is_offered):
    prepared = prepared_of({f"label {name} y target": cells for name in "abcd"})
    [note] = prepared.notes
    assert note.message.startswith("4 columns that look like known labels are left out: 'label a")
    assert ("--truth NAME" in note.message) == is_offered
    assert note.message.endswith("--use NAME keeps one")


def test_choices_of_columns_are_tuples():
    with pytest.raises(TypeError, match="use must be a tuple of column names, got 'size'"):
        Choices(use="size")
    with pytest.raises(ValueError, match="dates must be one of drop, encode, got 'x'"):
        Choices(dates="x")
