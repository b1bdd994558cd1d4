"""Numbers as people write them, and columns that stay text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm.errors import Note
from gammagmm.readers.numbers import is_row, read_column, read_texts
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of

WRITTEN = {
    "Indian": (["1,10,234.50", "12,10,234", "99"], [110234.5, 1210234.0, 99.0]),
    "German": (["1.185,43", "-2,5", "1.234.567"], [1185.43, -2.5, 1234567.0]),
    "French": (["1 185,43", "1\u202f234\u202f567,5", "12\u00a0000"], [1185.43, 1234567.5, 12000.0]),
    "American": (["1,185.43", "12", ".5", "1,234,567"], [1185.43, 12.0, 0.5, 1234567.0]),
    "Swiss": (["1'185.43", "1\u2019234\u2019567", "5"], [1185.43, 1234567.0, 5.0]),
    "euros": (["€ 1.185,43", "-€5", "3,10 €", "7 EUR"], [1185.43, -5.0, 3.1, 7.0]),
    "dollars": (["$1,185.43", "-$5.00", "$ -6"], [1185.43, -5.0, -6.0]),
    "francs": (["CHF 1'200.50", "15.-"], [1200.5, 15.0]),
    "reais": (["R$ 1.185,43", "-R$ 0,99"], [1185.43, -0.99]),
    "accounting": (["(1,234.50)", "3.25", "($7.00)"], [-1234.5, 3.25, -7.0]),
    "SAP": (["1.234,56-", "7,00"], [-1234.56, 7.0]),
    "percent": (["5,9 %", "10%", "-0,25 %"], [5.9, 10.0, -0.25]),
    "minus sign": (["\u22125,5", "+5,5"], [-5.5, 5.5]),
    "exponent": (["1,5e3", "2E-2"], [1500.0, 0.02]),
    "booleans": (["True", "FALSE", "true"], [1.0, 0.0, 1.0]),
    "German booleans": (["WAHR", "FALSCH"], [1.0, 0.0]),
    "French booleans": (["VRAI"], [1.0]),
    "PostgreSQL": (["t", "f"], [1.0, 0.0]),
    "one letter": (["t", "t"], None),
    "yes and no": (["yes", "no"], None),
    "date": (["31.12.2024"], None),
    "ISO date": (["2024-12-31"], None),
    "version": (["1.2.3"], None),
    "address": (["10.0.0.1"], None),
    "two marks": (["0.5", "1,5"], None),
    "two currencies": (["$5", "€5"], None),
    "two meanings": (["5 %", "0.05"], None),
    "two signs": (["-5,0-"], None),
    "half a parenthesis": (["(5,0"], None),
    "wrong groups": (["1.23,45"], None),
    "groups from zero": (["0,123,456"], None),
    "units": (["12,5 kg"], None),
    "long": (["1" * 99 + ",50"], None),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_in_every_form(name):
    cells, values = WRITTEN[name]
    column = read_column([*cells, None])
    if values is None:
        assert column is None
    else:
        np.testing.assert_array_equal(column.values, [*values, np.nan])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ["2,5", "1.185,43"],
            "read with decimal commas and thousands separators: '1.185,43' is 1185.43",
        ),
        (["7", "1,185,000"], "read with thousands separators: '1,185,000' is 1185000"),
        (["5,9 %"], "read with decimal commas, in percent, not divided by 100: '5,9 %' is 5.9"),
        (["3.50\u00a0€"], "read as amounts in EUR: '3.50 €' is 3.5"),
        (["(3.50)"], "read with negative numbers in parentheses: '(3.50)' is -3.5"),
        (["3.50-"], "read with trailing minus signs: '3.50-' is -3.5"),
        (["true", "false"], "read as numbers: 'true' is 1 and 'false' is 0"),
    ],
)
def test_messages(cells, message):
    assert read_column(cells).message == message


def grouped(whole, mark):
    """A whole number with a mark between its thousands, by Python's own format."""
    return f"{whole:,}".replace(",", mark)


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 99)), min_size=1),
    st.sampled_from([(",", "."), (",", " "), (".", ","), (".", "'"), (",", ""), (",", "\u202f")]),
)
def test_every_amount_with_two_decimals_is_read_right(amounts, marks):
    decimal, group = marks
    cells = [f"{grouped(whole, group)}{decimal}{cents:02}" for whole, cents in amounts]
    expected = [float(f"{whole}.{cents:02}") for whole, cents in amounts]
    column = read_column(cells)
    assert column.values.tolist() == expected
    assert column.decimal == decimal


OPEN = {"a": ["1,234", "950"], "b": ["1.234 €"]}


@pytest.mark.parametrize(
    ("others", "values", "reason"),
    [
        ([["2,5"]], [[1.234, 950.0], [1234.0]], "other columns have decimal commas"),
        ([["1'000.5"]], [[1234.0, 950.0], [1.234]], "other columns have decimal points"),
        ([["2,5"], ["€2.50"]], [[1234.0, 950.0], [1.234]], "the other columns do not decide"),
        (
            [],
            [[1234.0, 950.0], [1.234]],
            "the other columns do not decide which mark is the decimal mark",
        ),
    ],
)
def test_a_mark_that_may_have_two_meanings(others, values, reason):
    found = read_texts(dict(enumerate([*OPEN.values(), *others])))
    assert [found[j].values.tolist() for j in (0, 1)] == values
    assert all(f"; this is an assumption: {reason}" in found[j].message for j in (0, 1))


def notes_of(raw):
    return {note.subject: note.message for note in raw.notes}


def test_points_in_a_file_with_decimal_commas_are_thousands(write):
    raw = read_raw(write("price;sales;n;share\n1,5;1.185;3;0.5\n2,25;950;4;0.25\n"))
    # share shows decimal points, price decimal commas: nothing is changed without a reason.
    assert columns_of(raw)["sales"] == [1.185, 950.0]
    assert "the other columns do not decide which mark" in notes_of(raw)["sales"]
    raw = read_raw(write("price;sales;n;k\n1,5;1.185;3;1.000\n2,25;950;4;2.000\n"))
    assert columns_of(raw) == {
        "price": [1.5, 2.25],
        "sales": [1185.0, 950.0],
        "n": [3.0, 4.0],
        "k": [1000.0, 2000.0],
    }
    expected = "read with thousands separators: '1.185' is 1185; this is an assumption: other"
    assert notes_of(raw)["sales"].startswith(expected)
    assert list(notes_of(raw)) == ["price", "sales", "k"]


def test_points_that_may_be_thousands_are_told(write):
    raw = read_raw(write("sales;n\n1.185;3\n950;4\n"))
    assert columns_of(raw)["sales"] == [1.185, 950.0]
    message = (
        "read with decimal points: '1.185' is 1.185; this is an assumption: the other columns do "
        "not decide which mark is the decimal mark; --decimal , reads it in the other way"
    )
    assert notes_of(raw) == {"sales": message}
    for told in ("sales\tn\n1.185\t3\n950\tx\n", "sales|n\n1.185|3\n950|\n"):
        assert notes_of(read_raw(write(told))) == {"sales": message}
    assert notes_of(read_raw(write("sales;n\n1.000;3\n2.000;4\n"))).keys() == {"sales"}
    for plain in ("sales;n\n1.185;3.5\n950;4\n", "sales,n\n1.185,3\n950,4\n"):
        assert read_raw(write(plain)).notes == ()


@pytest.mark.parametrize(
    ("last", "n_notes"), [("", 2), ("5.25;1", 0), ("0.000;1", 0), ("1234.567;1", 0), ("950;1", 2)]
)
@pytest.mark.parametrize("gap", ["", "1.185;-"])
def test_a_cell_far_below_shows_the_decimal_mark(write, last, n_notes, gap):
    lines = [line for line in (gap, *["1.185;7.250"] * 2_000, last) if line]
    text = "a.b;c;d\n" + "".join(f"{line};{'x' * 500}\n" for line in lines)
    assert len(text) > 1_000_000
    raw = read_raw(write(text))
    assert len([note for note in raw.notes if "assumption" in note.message]) == n_notes
    assert raw.data[0][1] == (1185.0 if n_notes else 1.185)


def test_certain_decimal_points_beside_decimal_commas_stay(write):
    rows = "\n".join(f"{i}.107;{i},5;{i}.5;{i}" for i in range(1, 12))
    raw = read_raw(write(f"a;b;c;d\n{rows}\n1.25;3,5;0.5;7\n"))
    assert columns_of(raw)["a"][:2] == [1.107, 2.107]
    assert notes_of(raw).keys() == {"b"}
    raw = read_raw(write("a;b\n1,5;1.107\n2,5;inf\n"))
    assert columns_of(raw)["b"] == [1.107, np.inf]


def test_a_column_with_both_decimal_marks_stays_text(write):
    raw = read_raw(write("a;b\n6.069;30.367\n9 134,54;53.629\n"))
    assert columns_of(raw) == {"a": ["6.069", "9 134,54"], "b": [30.367, 53.629]}


@pytest.mark.parametrize("comma", ["1,107", "2.107 €"])
def test_one_assumption_holds_for_the_whole_file(write, comma):
    raw = read_raw(write(f"a;b\n{comma};1.103\n{comma};950\n"))
    assert columns_of(raw) == {"a": [1.107 if "," in comma else 2107.0] * 2, "b": [1103.0, 950.0]}
    reason = "this is an assumption: cells separated by semicolons usually have decimal commas"
    assert all(reason in message for message in notes_of(raw).values())
    assert notes_of(raw).keys() == {"a", "b"}
    raw = read_raw(write(f"a\tb\n{comma}\t1.103\n{comma}\t950\n"))
    assert columns_of(raw) == {"a": [1107.0 if "," in comma else 2.107] * 2, "b": [1.103, 950.0]}
    assert all("the other columns do not decide" in note for note in notes_of(raw).values())
    assert notes_of(raw).keys() == {"a", "b"}


def test_semicolons_suggest_decimal_commas(write):
    raw = read_raw(write("a;b\n1,234;x\n2,345;y\n"))
    assert columns_of(raw)["a"] == [1.234, 2.345]
    assert "cells separated by semicolons usually have decimal commas" in notes_of(raw)["a"]
    raw = read_raw(write('a,b\n"1,234",x\n"2,345",y\n'))
    assert columns_of(raw)["a"] == [1234.0, 2345.0]


MISSING = ["-", "–", "--", ".", "#N/A", "#NV", "#DIV/0!", "(leer)", "\\N", "<NA>", "NaT"]


@pytest.mark.parametrize("word", MISSING)
def test_words_for_missing_values(write, word):
    raw = read_raw(write(f"a;b;c\n1;1,5;x\n{word};{word};{word}\n{word};2;y\n"))
    assert columns_of(raw) == {"a": [1.0, None, None], "b": [1.5, None, 2.0], "c": ["x", None, "y"]}
    counts = {"a": 2, "b": 1, "c": 1}
    assert [note for note in raw.notes if note.code == "tables.missing words"] == [
        Note.of("tables.missing words", name, words=repr(word), n_cells=n)
        for name, n in counts.items()
    ]


def test_cells_are_kept_as_they_are_written(write):
    raw = read_raw(write("id;b\n007;1.185,43 €\n008;-\n"))
    assert raw.cells(0) == ["007", "008"]
    assert raw.cells(1) == ["1.185,43 €", None]


def test_a_first_line_of_written_numbers_is_data(write):
    raw = read_raw(write("1,5;2,5\n3,5;-\n"))
    assert columns_of(raw) == {"x1": [1.5, 3.5], "x2": [2.5, None]}
    found = {cell: is_row([cell]) for cell in ("a", "25%", "5 €", "1.185,4")}
    assert found == {"a": False, "25%": False, "5 €": False, "1.185,4": True}


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"'])
def test_the_first_line_may_name_the_delimiter(write, first):
    raw = read_raw(write(f"{first}\r\na|x;b\r\n1;2\r\n"))
    assert columns_of(raw) == {"a|x": [1.0], "b": [2.0]}
    assert raw.place(0) == "line 3"


@pytest.mark.parametrize(
    ("one", "many"), [("1 Tag", "{} Tage"), ("1 mese", "{} mesi"), ("1 day", "{} days")]
)
def test_forms_of_one_unit_are_one_unit(write, one, many):
    cells = [one if i % 5 == 0 else many.format(i) for i in range(1, 40)]
    raw = read_raw(write("a;b\n" + "".join(f"{cell};x\n" for cell in cells)))
    assert columns_of(raw)["a"] == [1.0 if i % 5 == 0 else float(i) for i in range(1, 40)]
    kinds = [f"{i} kg" if i % 4 else f"{i} mg" for i in range(1, 40)]
    raw = read_raw(write("a;b\n" + "".join(f"{cell};x\n" for cell in kinds)))
    assert columns_of(raw)["a"] != [float(i) for i in range(1, 40)]


@pytest.mark.parametrize("n_plain", [0, 1, 2])
@pytest.mark.parametrize("mark", [";", ","])
def test_columns_of_thousands_with_few_plain_numbers(write, mark, n_plain):
    numbers = [*range(391, 391 + n_plain), *(1_107 + 1_013 * i for i in range(120))]
    cells = [f"{number:,}".replace(",", ".") for number in numbers]
    raw = read_raw(
        write(f"place{mark}n\n" + "".join(f"P{i}{mark}{c}\n" for i, c in enumerate(cells)))
    )
    if mark == "," and not n_plain:  # nothing says so
        numbers = [float(cell) for cell in cells]
    assert columns_of(raw)["n"] == numbers
    assert [note.code for note in raw.notes] == ["tables.assumed"][
        : int(mark == ";" or n_plain > 0)
    ]


def test_thousands_in_one_column_decide_for_the_others(write):
    rows = [(391 + i if i < 2 else 1_107 + 1_013 * i, 1_501 + 37 * i) for i in range(60)]
    text = "".join(f"P{i}\t{a:,}\t{b:,}\n".replace(",", ".") for i, (a, b) in enumerate(rows))
    found = columns_of(read_raw(write(f"place\ta\tb\n{text}", "t.tsv")))
    assert (found["a"], found["b"]) == ([a for a, _ in rows], [b for _, b in rows])
