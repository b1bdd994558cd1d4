"""CSV and TSV files: what is read, and how everything else is refused."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm.errors import Note, TableError
from gammagmm.readers.csv import open_text, parse, parse_quickly, read_delimited
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import Asked, Source
from gammagmm.table.preparation import Choices, prepare
from tests.support.raw_columns import columns_of


def rows_of(raw):
    """Rows of a table of numbers, as lists."""
    return np.column_stack(raw.data).tolist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_delimiters_line_ends_and_byte_order_marks(write, delimiter, newline, mark):
    lines = [["a", "größe"], ["1", "-2.5"], ["3e2", " 4 "]]
    text = newline.join(delimiter.join(cells) for cells in lines)
    raw = read_raw(write(mark + text.encode()))
    assert raw.columns == ("a", "größe")
    assert [column.dtype for column in raw.data] == [np.float64, np.float64]
    assert rows_of(raw) == [[1.0, -2.5], [300.0, 4.0]]


def test_tabs_alone_separate_the_cells_of_a_tsv(write):
    raw = read_raw(write("a;1\tb;2\n1\t2\n", "table.tsv"))
    assert raw.columns == ("a;1", "b;2")
    raw = read_raw(write("a;b\n1;2\n", "table.tsv"))
    assert raw.columns == ("a;b",)


def test_semicolons_win_over_decimal_commas(write):
    raw = read_raw(write("a;b\n1,5;2,5\n"))
    assert raw.columns == ("a", "b")
    assert rows_of(raw) == [[1.5, 2.5]]


def test_a_first_line_of_numbers_is_data(write):
    raw = read_raw(write("1,2\n3,4\n"))
    assert raw.columns == ("x1", "x2")
    assert rows_of(raw) == [[1.0, 2.0], [3.0, 4.0]]
    assert raw.notes == (Note.of("tables.numbers first", raw.source, unit="line", n_columns=2),)


def test_the_numbers_by_which_pandas_calls_columns_are_names(write):
    raw = read_raw(write("0,1,2\n1.5,1.2,1.1\n"))
    assert columns_of(raw) == {"0": [1.5], "1": [1.2], "2": [1.1]}
    raw = read_raw(write(",0,1,2\n0,1.5,1.2,1.1\n1,1.5,1.2,1.1\n"))
    assert raw.columns == ("index", "0", "1", "2")
    assert read_raw(write("0,1\n1,0\n")).columns == ("x1", "x2")  # truth values, for example


def test_percentages_in_the_first_line_are_names(write):
    raw = read_raw(write("25%,50%,75%\n1.5,1.2,1.1\n"))
    assert columns_of(raw) == {"25%": [1.5], "50%": [1.2], "75%": [1.1]}
    assert raw.notes == ()


def test_a_gap_in_the_first_row_does_not_make_it_a_header(write):
    raw = read_raw(write("1,,3\n4,5,6\n"))
    assert raw.columns == ("x1", "x2", "x3")
    assert [raw.is_gap(j).tolist() for j in range(3)] == [[False] * 2, [True, False], [False] * 2]
    assert raw.place(0) == "line 1"


def test_one_column(write):
    raw = read_raw(write("a\n1\n\n2\n"))
    assert raw.columns == ("a",)
    assert rows_of(raw) == [[1.0], [2.0]]


def test_blank_lines_are_skipped_and_quotes_removed(write):
    raw = read_raw(write('\n"a, b";"c"\n   \n"1";2\n\n\n3;"4"\n\n'))
    assert raw.columns == ("a, b", "c")
    assert rows_of(raw) == [[1.0, 2.0], [3.0, 4.0]]


def test_lines_are_counted_through_quoted_line_breaks(write):
    raw = read_raw(write('"a\nfirst",b\n1,2\n3,x\n'))
    assert raw.columns == ("a\nfirst", "b")
    assert (raw.data[1][1], raw.place(1)) == ("x", "line 4")


def test_raw_columns_are_numbers_or_text_as_a_whole(write):
    raw = read_raw(write("a,b,c,d\n1, red,007,\n\n,NA,1_0,\n3,2,inf,?\n"))
    assert raw.columns == ("a", "b", "c", "d")
    np.testing.assert_array_equal(raw.data[0], [1.0, np.nan, 3.0])
    assert raw.data[1].tolist() == ["red", None, "2"]
    assert raw.data[2].tolist() == ["007", "1_0", "inf"]
    assert [column.dtype for column in raw.data] == [float, object, object, float]
    assert np.isnan(raw.data[3]).all()
    assert [raw.place(row) for row in range(raw.n_rows)] == ["line 2", "line 4", "line 5"]
    assert repr(raw).endswith("table.csv', 3 rows, 4 columns)")


def test_cells_are_kept_as_they_are_written(write):
    raw = read_raw(write("a,b\n007,1\n 12345678901234567890 ,2\nNA,3\n"))
    assert raw.data[0].dtype == float
    assert raw.cells(0) == ["007", "12345678901234567890", None]


@pytest.mark.parametrize("cell", ["1_000", "0x10", "12 kg each", "yes", "1 00"])
def test_what_only_looks_like_a_number_is_text(write, cell):
    raw = read_raw(write(f"a;b\n{cell};1\n"))
    assert [raw.is_text(j) for j in (0, 1)] == [True, False]
    assert raw.data[0].tolist() == [cell]


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan", "NA", "n/a", "null", "None", "?"])
def test_missing_values(write, cell):
    raw = read_raw(write(f"a,b\n1,2\n3,{cell}\n{cell},5\n"))
    assert raw.is_gap(0).tolist() == [False, False, True]
    assert raw.is_gap(1).tolist() == [False, True, False]
    assert raw.data[1][[0, 2]].tolist() == [2.0, 5.0]
    assert raw.cells(1) == ["2", None, "5"]


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_infinite_values_are_refused_later(write, cell):
    raw = read_raw(write(f"a,b\n1,2\n{cell},4\n"))
    assert raw.data[0].tolist() == [1.0, -np.inf if cell[0] == "-" else np.inf]
    with pytest.raises(TableError, match=r"column 'a': 1 infinite value, in line 3"):
        prepare(raw, Choices())


@pytest.mark.parametrize("content", ["", "\n  \n\n", "\ufeff"])
def test_empty_file(write, content):
    with pytest.raises(TableError, match=r"table\.csv is empty\. Give a file with at least one"):
        read_raw(write(content))


def test_header_only(write):
    with pytest.raises(TableError, match=r"contains column names but no rows\. Add the rows"):
        read_raw(write("a,b\n\n"))


@pytest.mark.parametrize(("row", "n_cells"), [("3,4,5", 3), ("3", 1)])
def test_ragged_rows(write, row, n_cells):
    message = rf"line 4: found {n_cells} cells separated by ',' where the first line has 2\. Give"
    with pytest.raises(TableError, match=message):
        read_raw(write(f"a,b\n1,2\n\n{row}\n"))


@pytest.mark.parametrize("rest", ['"3,4\n5,6\n', '"3"x,4\n'])
def test_broken_quotes(write, rest):
    message = r"not well-formed CSV after line 2: .* quotation mark that is not closed"
    with pytest.raises(TableError, match=message):
        read_raw(write("a,b\n1,2\n" + rest))


def test_duplicate_column_names(write):
    with pytest.raises(TableError, match=r"line 1: column name 'a' occurs 2 times\. Give every"):
        read_raw(write("a,b,a\n1,2,3\n"))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",a\n0,1.5\n1,2.5\n", {"index": [0.0, 1.0], "a": [1.5, 2.5]}),  # pandas
        ('"","a"\n"u",1.5\n"v",2.5\n', {"index": ["u", "v"], "a": [1.5, 2.5]}),  # R
        ("a;;index\n1;2;3\n", {"a": [1.0], "x2": [2.0], "index": [3.0]}),
        (";index\n1;2\n", {"x1": [1.0], "index": [2.0]}),
    ],
)
def test_a_column_without_a_name_gets_one(write, text, columns):
    raw = read_raw(write(text))
    assert columns_of(raw) == columns
    [name] = {"index", "x1", "x2"} & set(columns) - set(text.split("\n")[0].split(";"))
    position = list(columns).index(name) + 1
    assert raw.notes == (Note.of("tables.unnamed", name, place=position, name=name),)


@pytest.mark.parametrize(
    ("header", "cells", "index"),
    [
        ("a\tb", ["u", "v"], {"index": ["u", "v"]}),
        ("a\tb", ["1", "2"], {"index": [1.0, 2.0]}),
        ("a\tb", ["0", "1"], {"index": [0.0, 1.0]}),
        ("index\tb", ["u", "v"], {"x1": ["u", "v"]}),
    ],
)
def test_a_header_without_a_cell_for_the_row_names(write, header, cells, index):
    raw = read_raw(write(f"{header}\n{cells[0]}\t1\t2\n{cells[1]}\t3\t4\n"))
    first, second = header.split("\t")
    assert columns_of(raw) == {**index, first: [1.0, 3.0], second: [2.0, 4.0]}
    name = next(iter(index))
    assert raw.notes == (Note.of("tables.row names", name, name=name),)


@pytest.mark.parametrize("names", ["11", "23", "aa", "a2", "a ", "1"])
def test_decimal_commas_without_quotes_do_not_shift_the_columns(write, names):
    rows = "\n".join(f"{name},3,1" for name in names)
    with pytest.raises(TableError, match=r"line 2: found 3 cells separated by ',' where the first"):
        read_raw(write(f"menge,preis\n{rows}\n"))


@pytest.mark.parametrize("header", ["a;b", "a;b;"])
def test_a_delimiter_at_the_end_of_each_line_makes_no_column(write, header):
    raw = read_raw(write(f"{header}\n1;2;\n3;x;\n"))
    assert columns_of(raw) == {"a": [1.0, 3.0], "b": ["2", "x"]}
    assert raw.cells(1) == ["2", "x"]
    assert raw.notes == ()


def test_all_ragged_lines_are_counted(write):
    message = r"line 3: .* first line has 2; 4 lines differ, the first are 3, 5, 6\. Give every"
    with pytest.raises(TableError, match=message):
        read_raw(write("a,b\n1,2\n3\n4,5\n6\n7,8,9\n1\n2,3\n"))


finite = st.floats(allow_nan=False, allow_infinity=False)


def test_values_survive_to_the_last_bit(write):
    values = np.random.default_rng(0).normal(size=(200, 3)) * 10.0 ** np.arange(-200, 400, 200)
    text = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    np.testing.assert_array_equal(rows_of(read_raw(write("a,b,c\n" + text))), values)


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=20))
def test_floats_survive_a_csv_file_to_the_last_bit(rows):
    text = "a,b\n" + "\n".join(f"{a!r},{b!r}" for a, b in rows)
    raw = read_delimited(Source("table.csv", ".csv", text.encode()))
    found = np.column_stack(raw.data)
    assert found.tobytes() == np.array(rows).tobytes()


cells = st.one_of(
    finite.map(repr),
    st.integers().map(str),
    st.sampled_from(["", " 1 ", "nan", "inf", "1e999", "1e-999", "-0", "+1", "1.", ".5", "nan(1)"]),
    st.sampled_from(
        ["0x10", "1_0", "1d5", "1e5", "x", "NA", '"1"', "-nan", "1\t", "\u0661", "1,5"]
    ),
    st.text("0123456789.eE+-", max_size=6),
)


def sheet(text):
    return open_text(Source("table.csv", ".csv", text.encode()))


@given(
    header=st.sampled_from(["a;b\n", "a;b\r\n", "", "\n", "1;b\n", "\ufeffa;b\n", '"a";b\n']),
    rows=st.lists(st.tuples(cells, cells), min_size=1, max_size=6),
    newline=st.sampled_from(["\n", "\r\n", "\r", "\n\n", ";1\n"]),
    end=st.sampled_from(["", "\n", "\r\n", "\n  \n"]),
)
def test_the_quick_way_gives_what_the_standard_library_gives_or_nothing(header, rows, newline, end):
    try:
        table = sheet(header + newline.join(map(";".join, rows)) + end)
    except TableError:
        return
    quick = parse_quickly(table)
    if quick is None:
        return
    expected = parse(table)
    assert not expected.text_columns
    assert list(quick.lines) == expected.lines
    assert quick.values.tobytes() == expected.values.tobytes()


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=20), st.booleans(), st.booleans())
def test_the_quick_way_takes_plain_numbers(rows, has_header, ends_with_newline):
    text = "a\tb\n" * has_header + "\n".join(f"{a!r}\t{b!r}" for a, b in rows)
    quick = parse_quickly(sheet(text + "\n" * ends_with_newline))
    assert quick is not None
    assert quick.values.tobytes() == np.array(rows).T.tobytes()


ODD = {
    "gap": "a,b\n1,\n",
    "text": "a,b\n1,x\n",
    "ragged": "a,b\n1,2\n3\n",
    "infinite": "a,b\n1,inf\n",
    "blank line": "a,b\n\n1,2\n",
    "quotes": 'a,b\n1,"2"\n',
    "carriage return": "a,b\r1,2\r",
    "underscore": "a,b\n1,1_0\n",
    "long cell": f"a,b\n1,{'0' * 140_000}1\n",
}


@pytest.mark.parametrize("kind", ODD)
def test_the_quick_way_leaves_what_is_unusual_to_the_standard_library(kind):
    table = sheet(ODD[kind]) if kind != "ragged" else sheet("a,b\n1,2\n" * 60 + "3\n")
    assert parse_quickly(table) is None


@pytest.mark.parametrize("is_there", [True, False])
def test_large_files_read_alike_with_and_without_pyarrow(write, monkeypatch, is_there):
    if not is_there:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    values = np.random.default_rng(1).normal(size=(20_000, 3))
    text = "a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in values.tolist())
    raw = read_raw(write(text))
    assert len(text) > 1_000_000
    assert isinstance(raw.lines, range) == is_there
    assert raw.place(19_999) == "line 20001"
    assert raw.cells(1)[5] == repr(float(values[5, 1]))
    np.testing.assert_array_equal(np.column_stack(raw.data), values)
    raw = read_raw(write(text + "\n1,x,2\n"), asked=Asked(is_strict=True))
    assert [raw.is_text(j) for j in range(3)] == [False, True, False]
    assert (raw.data[1][20_000], raw.place(20_000)) == ("x", "line 20002")


def test_a_line_of_many_megabytes_is_refused_at_once(write):
    content = b"a,b\n1,2\n" + b"1,2.5," * 7_000_000 + b"\n"
    start = time.process_time()
    with pytest.raises(TableError, match=r"has a line of more than 20,000,000 bytes\. Write"):
        read_raw(write(content, "t.csv"))
    assert time.process_time() - start < 2.0
