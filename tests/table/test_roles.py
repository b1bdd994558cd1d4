"""Which columns are used, by the user's choices and by guesses about the others."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gammagmm.cli.words import COMMAND
from gammagmm.errors import Note, TableError
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.raw_table import RawTable, text_column, written
from gammagmm.readers.source import Source
from gammagmm.table.preparation import Choices, prepare
from gammagmm.table.roles import assign_roles
from gammagmm.table.words import PYTHON

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
    ("n", range(5, 5 + N), "id", ("id", "use")),
    ("n", SHUFFLED, "id", ("id", "use")),
    ("customer_id", UNIQUE % 3, "id", ("id", "use")),
    ("customerID", UNIQUE, "id", ("id", "use")),
    ("Id", [f"a{i % 3}" for i in range(N)], "id", ("id", "use")),
    ("Kundennummer", UNIQUE, "id", ("id", "use")),
    ("order no", UNIQUE, "id", ("id", "use")),
    ("Unnamed: 0", UNIQUE, "id", ("id", "use")),
    ("comment", [f"text {i}" for i in UNIQUE], "id", ("id", "use")),
    ("is_fraud", [0, 1] * (N // 2), "labels", ("truth", "use")),
    ("isOutlier", [1, -1] * (N // 2), "labels", ("truth", "use")),
    ("Class", [0, 0, 1] * (N // 3), "labels", ("truth", "use")),
    ("y", [0] * N, "labels", ("truth", "use")),
    ("y", [1] * N, "labels", ("use",)),
    ("label", ["yes", "No"] * (N // 2), "labels", ("truth", "use")),
    ("fraud", [np.nan, 0, 1] * (N // 3), "labels", ("use",)),
    ("when", ["2024-01-31", "2024-02-01"] * 6, "date", ("dates", "use")),
    ("when", ["31.12.2024 10:15"] * N, "date", ("dates", "use")),
    ("when", ["12/31/2024", "1/2/2024"] * 6, "date", ("dates", "use")),
    ("c", [7] * N, "constant", ()),
    ("c", [np.nan, 2.5] * (N // 2), "constant", ()),
    ("c", [np.nan] * N, "empty", ()),
]


@pytest.mark.parametrize(("name", "cells", "kind", "instead"), LEFT_OUT)
def test_columns_that_are_no_features_are_left_out_with_a_note(name, cells, kind, instead):
    prepared = prepared_of({name: list(cells)})
    assert prepared.columns == ("value",)
    np.testing.assert_array_equal(prepared.values[:, 0], VALUES)
    [guess], [note] = prepared.guesses, prepared.notes
    assert (guess.column, guess.kind, guess.instead) == (name, kind, instead)
    assert (note.code, note.subject, note.fields["kind"]) == ("tables.guess", name, kind)
    assert prepared.preparation.left_out == (name,)


PHONES = SHUFFLED * 7919 + 30_100_200


@pytest.mark.parametrize(
    ("name", "cells", "is_used"),
    [
        ("phone_calls", SHUFFLED * 5 + 2, True),
        ("fax pages", SHUFFLED + 1, True),
        ("phone_costs", SHUFFLED * 150 + 10_000, True),
        ("tel_minutes", SHUFFLED * 150 + 10_000, True),
        ("Appels téléphone", SHUFFLED * 90 + 3, True),
        ("calls by phone", [3, 4, 5] * (N // 3), True),
        ("phone_home", PHONES, False),
        ("phone number", SHUFFLED % 4 + 110, False),
        ("phone", SHUFFLED + 210, False),
        ("phone", SHUFFLED, True),
        ("Fax", PHONES, False),
    ],
)
def test_a_telephone_number_is_long_and_a_number_of_calls_is_not(name, cells, is_used):
    prepared = prepared_of({name: [*cells[:-1], cells[0]]}, categories="encode")
    codes = [own.column for own in prepared.guesses if own.kind in ("code", "category")]
    assert codes == ([] if is_used else [name])
    if is_used:
        assert prepared.columns == ("value", name)


def test_text_that_cannot_be_encoded_is_not_offered_as_data():
    texts = np.array([f"text {i}" for i in range(21)], dtype=object)
    columns = {"comment": texts, "id": texts, "few id": np.array([*"abc"] * 7, dtype=object)}
    data = (np.arange(21.0) % 4, *columns.values())
    raw = RawTable("t.csv", ("value", *columns), data, None, lambda j: data[j].tolist())
    guesses = prepare(raw, Choices(categories="encode")).guesses
    assert [guess.instead for guess in guesses] == [("id",), ("id",), ("id", "use")]


MESSAGES = {
    PYTHON: (
        "not used: it looks like an id by its name; columns={'id': 'id'} names the rows by it, "
        "columns={'use': ['id']} keeps it as data",
        "not used: it looks like known labels; columns={'truth': 'is fraud'} compares the estimate "
        "with it, columns={'use': ['is fraud']} keeps it as data",
        "not used: it contains dates (year-month-day); columns={'dates': 'encode'} turns it into "
        "numbers, columns={'use': ['day']} keeps it as data",
        "used: its values are different whole numbers, which may name the rows; "
        "columns={'id': 'size'} names the rows by it, columns={'drop': ['size']} leaves it out",
        "not used: its only value is 7",
    ),
    COMMAND: (
        "not used: it looks like an id by its name; --id id names the rows by it, --use id keeps "
        "it as data",
        "not used: it looks like known labels; --truth 'is fraud' compares the estimate with it, "
        "--use 'is fraud' keeps it as data",
        "not used: it contains dates (year-month-day); --dates encode turns it into numbers, "
        "--use day keeps it as data",
        "used: its values are different whole numbers, which may name the rows; --id size names "
        "the rows by it, --drop size leaves it out",
        "not used: its only value is 7",
    ),
}


@pytest.mark.parametrize("words", MESSAGES, ids=["Python", "command"])
def test_whole_messages_in_both_sets_of_words(words):
    columns = {"id": UNIQUE, "is fraud": [0, 1] * 6, "day": ["2024-01-31"] * N, "size": UNIQUE}
    guesses = prepared_of(columns | {"c": [7] * N}).guesses
    assert tuple(guess.message(words) for guess in guesses) == MESSAGES[words]


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
    [guess] = prepared.guesses
    assert (guess.column, guess.kind, guess.instead) == ("size", "whole numbers", ("id", "drop"))
    assert not guess.is_left_out


@pytest.mark.parametrize(
    ("name", "cells"), [("n", range(N)), ("id", UNIQUE), ("fraud", [0, 1] * 6)]
)
def test_use_keeps_a_column_without_a_note(name, cells):
    prepared = prepared_of({name: list(cells)}, use=(name,))
    assert (prepared.columns, prepared.notes) == (("value", name), ())


PRICES = [f"{1.37 * i:.2f}" for i in range(1, N)]


COMMAS = [price.replace(".", ",") for price in PRICES]
CORRECT, SAME_FORM = ("text", ("correct", "drop")), ("forms", ("same form", "drop"))


@pytest.mark.parametrize(
    ("cells", "expected", "where"),
    [
        ([*PRICES, "abc"], CORRECT, "'abc' in row 12"),
        ([*COMMAS, "Summe"], CORRECT, "'Summe' in row 12"),
        ([*COMMAS, "1.25"], SAME_FORM, "'1,37' in row 1 and '1.25' in row 12"),
        (
            [*(f"${price}" for price in PRICES), "€2.50"],
            SAME_FORM,
            "'$1.37' in row 1 and '€2.50' in row 12",
        ),
    ],
)
def test_a_column_of_numbers_with_a_wrong_cell_is_no_id(cells, expected, where):
    with pytest.raises(TableError) as caught:
        prepared_of({"c": cells})
    [problem] = caught.value.problems
    assert (problem.column, (problem.code, problem.remedies)) == ("c", expected)
    assert problem.what.endswith(where)


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
    assert [guess.kind for guess in prepared.guesses] == ["id"]


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
        columns = "'d days', 'd weekday sine', 'd weekday cosine'"
        made = Note.of("tables.dates", "d", form="day.month.year", columns=columns)
        assert prepared.notes == (made,)
    new = table(d=["2.1.2024"] * N)
    assert prepared.preparation.apply(new).values[:, 1].tolist() == [2.0] * N
    with pytest.raises(TableError) as caught:
        prepared.preparation.apply(table(d=["2024-01-01"] * N))
    assert [(own.column, own.code) for own in caught.value.problems] == [("d", "kind")]


def test_equal_dates_have_no_column():
    prepared = prepared_of({"d": ["2024-01-01"] * N}, dates="encode")
    assert prepared.columns == ("value",)
    assert [note.code for note in prepared.notes] == ["tables.equal dates"]


def test_gaps_in_dates_are_missing_values():
    cells = ["2024-01-01", None, "2024-01-03"] * 4
    with pytest.raises(TableError, match="4 missing values, the first in row 2") as caught:
        prepared_of({"d": cells}, dates="encode")
    assert [(own.column, own.code) for own in caught.value.problems] == [("d", "missing")]
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
    with pytest.raises(TableError, match=r"'x_1' of .* for 'drop' and for 'use'"):
        columns_of(drop=("x_*",), use=("*_1",))


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"drop": ("x_*,z*",)}, r"column that matches 'z\*'$"),
        ({"use": ("x_3",)}, "column 'x_3'; similar names: 'x_2', 'x_1'$"),
        ({"id": "x_*"}, r"column that matches 'x_\*'; similar names: 'x_2', 'x_1'$"),
        ({"id": "p", "truth": "q"}, "column 'p', 'q'$"),
    ],
)
def test_names_and_patterns_without_a_column(choices, words):
    with pytest.raises(TableError) as caught:
        columns_of(**choices)
    assert re.search(words, caught.value.what)
    assert "'x_1'" in caught.value.todo


@pytest.mark.parametrize(
    ("words", "helps"), [(PYTHON, "columns={'use': ['NAME']}"), (COMMAND, "--use NAME")]
)
def test_many_columns_of_one_kind_have_one_note(words, helps):
    columns = {f"c{j}": [j] * N for j in range(5)} | {f"id {j}": UNIQUE for j in range(4)}
    prepared = prepare(table(**columns), Choices(), words)
    assert [guess.kind for guess in prepared.guesses] == ["constant"] * 5 + ["id"] * 4
    found = [(note.code, note.subject, note.fields["kind"]) for note in prepared.notes]
    assert found == [("tables.guesses", "t.csv", kind) for kind in ("constant", "id")]
    assert [note.message for note in prepared.notes] == [
        "5 columns with a single value are not used: 'c0', 'c1', 'c2', 'c3', 'c4'",
        "4 columns that look like ids are not used: 'id 0', 'id 1', 'id 2', 'id 3'; "
        f"{helps} keeps them",
    ]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["a"], ValueError),
        ({"di": "a"}, ValueError),
        ({"dates": "x"}, ValueError),
        ({"id": 3}, TypeError),
        ({"truth": ["a"]}, TypeError),
        ({"drop": [3]}, TypeError),
        ({"use": {"a"}}, TypeError),
    ],
)
def test_the_parameter_columns_is_checked(columns, error):
    with pytest.raises(error, match=r"columns|dates"):
        Choices.of(columns, strict=True)


def test_the_parameters_are_the_choices():
    columns = {"id": "a", "truth": "b", "drop": "c*", "use": ["d", "e"], "dates": "encode"}
    expected = Choices("a", ("c*",), "b", "impute", "encode", ("d", "e"), "encode", "drop")
    assert Choices.of(columns, strict=False) == expected
    assert Choices.of(None, strict=True) == Choices()


@pytest.mark.parametrize(
    "name",
    ["Dept", "Dept No", "Store Number", "NAICS", "Buchungskreis", "KSt", "Département", "Reparto"],
)
def test_numbers_of_places_and_offices_are_codes(name):
    assert kinds_of(name, [310, 110, 204] * 10) == ["category"]


QUANTITIES = (
    "air_quality_index, heat index, glycemic index, page_num, child num, room_number, "
    "department_budget, department headcount, dept spend, mobile_wt, order number"
)


@pytest.mark.parametrize("name", QUANTITIES.split(", "))
def test_quantities_are_used_whatever_word_is_in_their_name(name):
    values = [9, 78, 101, 37, 1204, 65] * 5
    assert kinds_of(name, values) == []
    different = [7 * i**2 % 997 for i in range(1, 31)]
    assert len({*different}) == 30
    if "num" not in name:
        assert kinds_of(name, different) in ([], ["whole numbers"])


def test_long_whole_numbers_are_ids_if_all_have_as_many_digits():
    spread = [10**9 + 37 * i**5 * 10**4 for i in range(30)]
    assert len({len(str(value)) for value in spread}) > 1
    assert kinds_of("market_cap", spread) == ["whole numbers"]
    assert kinds_of("x", [4 * 10**9 + 10**7 * (i * 7 % 31) for i in range(30)]) == ["id"]


def kinds_of(name, numbers):
    """What the first of two columns of a file is taken for."""
    cells = "".join(f"{value};{i / 7:.3f}\n" for i, value in enumerate(numbers))
    raw = read_delimited(Source("t.csv", ".csv", f"{name};v\n{cells}".encode()))
    return [own.kind for own in assign_roles(raw, Choices().with_strict(False)).guesses]
