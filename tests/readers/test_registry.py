"""CSV files: what is read, and how everything else is refused."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm.errors import TableError
from gammagmm.readers import source as sources
from gammagmm.readers.csv import _sheet, parse, parse_quickly
from gammagmm.readers.registry import read_raw, read_table
from gammagmm.readers.source import Source


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_delimiters_line_ends_and_byte_order_marks(write, delimiter, newline, mark):
    lines = [["a", "größe"], ["1", "-2.5"], ["3e2", " 4 "]]
    text = newline.join(delimiter.join(cells) for cells in lines)
    table = read_table(write(mark + text.encode()))
    assert table.columns == ("a", "größe")
    assert table.values.dtype == np.float64
    assert table.values.tolist() == [[1.0, -2.5], [300.0, 4.0]]


def test_a_first_line_of_numbers_is_data(write):
    table = read_table(write("1,2\n3,4\n"))
    assert table.columns == ("x1", "x2")
    assert table.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_one_column(write):
    table = read_table(write("a\n1\n\n2\n"))
    assert table.columns == ("a",)
    assert table.values.tolist() == [[1.0], [2.0]]


def test_blank_lines_are_skipped_and_quotes_removed(write):
    table = read_table(write('\n"a, b";"c"\n   \n"1";2\n\n\n3;"4"\n\n'))
    assert table.columns == ("a, b", "c")
    assert table.values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_values_survive_to_the_last_bit(write):
    values = np.random.default_rng(0).normal(size=(200, 3)) * 10.0 ** np.arange(-200, 400, 200)
    text = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    np.testing.assert_array_equal(read_table(write("a,b,c\n" + text)).values, values)


def test_suffix_is_case_insensitive_and_text_paths_work(write):
    assert read_table(str(write("a\n1", "TABLE.CSV"))).values.tolist() == [[1.0]]


def test_repr_is_one_line(write):
    assert repr(read_table(write("a,b\n1,2\n3,4"))) == "Table(2 rows, 2 columns)"


def test_semicolons_win_over_decimal_commas(write):
    message = (
        r"column 'a', line 2: found '1,5', which is not a number\. Write decimals with a point"
    )
    with pytest.raises(TableError, match=message):
        read_table(write("a;b\n1,5;2,5\n"))


def test_missing_file(tmp_path):
    with pytest.raises(TableError, match=r"no\.csv does not exist\. Check the path"):
        read_table(tmp_path / "no.csv")


def test_folder(tmp_path):
    with pytest.raises(TableError, match=r"is a folder\. Give the path of one file"):
        read_table(tmp_path)


@pytest.mark.parametrize("name", ["table.xlsx", "table"])
def test_unknown_suffix(write, name):
    message = r"has the suffix '(\.xlsx)?', which cannot be read\. Save .* formats: \.csv, \.tsv, "
    with pytest.raises(TableError, match=message):
        read_table(write("a\n1", name))


@pytest.mark.parametrize("content", ["", "\n  \n\n", "\ufeff"])
def test_empty_file(write, content):
    with pytest.raises(TableError, match=r"table\.csv is empty\. Give a file with at least one"):
        read_table(write(content))


def test_header_only(write):
    with pytest.raises(TableError, match=r"holds column names but no rows\. Add the rows"):
        read_table(write("a,b\n\n"))


@pytest.mark.parametrize(("row", "n_cells"), [("3,4,5", 3), ("3", 1)])
def test_ragged_rows(write, row, n_cells):
    message = rf"line 4: found {n_cells} cells separated by ',' where the first line has 2\. Give"
    with pytest.raises(TableError, match=message):
        read_table(write(f"a,b\n1,2\n\n{row}\n"))


def test_lines_are_counted_through_quoted_line_breaks(write):
    with pytest.raises(TableError, match=r"column 'b', line 4: found 'x'"):
        read_table(write('"a\nfirst",b\n1,2\n3,x\n'))


def test_text_cell(write):
    message = r"table\.csv, column 'b', line 3: found 'red', which is not a number\. Remove the col"
    with pytest.raises(TableError, match=message):
        read_table(write("a,b\n1,2\n3,red\n4,blue\n"))


def test_long_text_is_cut(write):
    with pytest.raises(TableError, match=rf"found '{'y' * 40}\.\.\.', which"):
        read_table(write(f"a,b\n1,{'y' * 5000}\n"))


@pytest.mark.parametrize("cell", ["1_000", "0x10", "12%", "True", "1 000"])
def test_what_only_looks_like_a_number(write, cell):
    with pytest.raises(TableError, match=f"line 2: found '{cell}', which is not a number"):
        read_table(write(f"a;b\n{cell};1\n"))


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan", "NA", "n/a", "null", "None", "?"])
def test_missing_values(write, cell):
    message = (
        r"holds 2 missing and 0 infinite values; the first is in column 'b', line 3\. "
        r"Remove those rows or columns, or fill them in\."
    )
    with pytest.raises(TableError, match=message):
        read_table(write(f"a,b\n1,2\n3,{cell}\n{cell},5\n"))


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_infinite_values(write, cell):
    with pytest.raises(TableError, match=r"0 missing and 1 infinite values; .* 'a', line 3"):
        read_table(write(f"a,b\n1,2\n{cell},4\n"))


def test_a_gap_in_the_first_row_does_not_make_it_a_header(write):
    with pytest.raises(TableError, match=r"1 missing and 0 infinite values; .* 'x2', line 1"):
        read_table(write("1,,3\n4,5,6\n"))


def test_duplicate_column_names(write):
    with pytest.raises(TableError, match=r"line 1: column name 'a' stands 2 times\. Give every"):
        read_table(write("a,b,a\n1,2,3\n"))


def test_column_without_a_name(write):
    with pytest.raises(TableError, match=r"column 1 has no name\. Name it, .* index=False"):
        read_table(write(",a\n0,1.5\n1,2.5\n"))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_wrong_encoding(write, mark):
    content = mark + b"a,b\n1,\xe92\n"
    message = rf"is not UTF-8: byte {7 + len(mark)} \(0xe9\) on line 2 .* Save the file as UTF-8"
    with pytest.raises(TableError, match=message):
        read_table(write(content))


def test_nul_bytes(write):
    with pytest.raises(TableError, match=r"holds a NUL byte at byte 4, .* not in UTF-16"):
        read_table(write("a,b\n1,2\n".encode("utf-16")))


@pytest.mark.parametrize("rest", ['"3,4\n5,6\n', '"3"x,4\n'])
def test_broken_quotes(write, rest):
    message = r"not well-formed CSV after line 2: .* quotation mark that is not closed"
    with pytest.raises(TableError, match=message):
        read_table(write("a,b\n1,2\n" + rest))


def test_a_file_that_may_not_be_read(write):
    path = write("a\n1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(TableError, match=r"table\.csv cannot be read: Permission denied"):
        read_table(path)


def sheet(text, suffix=".csv"):
    return _sheet(Source("table.csv", suffix, text.encode()))


def read_text(text):
    return read_raw_bytes(text.encode())


def read_raw_bytes(content):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return read_raw("-")


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


def test_gaps_are_counted_alike_in_numbers_and_text(write):
    raw = read_raw(write("a,b\n1,x\n,\n"))
    assert [raw.is_gap(j).tolist() for j in (0, 1)] == [[False, True]] * 2


def test_tabs_alone_separate_the_cells_of_a_tsv(write):
    raw = read_raw(write("a;1\tb;2\n1\t2\n", "table.tsv"))
    assert raw.columns == ("a;1", "b;2")
    raw = read_raw(write("a;b\n1;2\n", "table.tsv"))
    assert raw.columns == ("a;b",)


def test_standard_input():
    raw = read_text("a;b\n1;2\n")
    assert (raw.source, raw.columns, raw.place(0)) == ("standard input", ("a", "b"), "line 2")
    with pytest.raises(TableError, match="standard input is empty"):
        read_text("")


@pytest.mark.parametrize("name", ["table.csv.gz", "TABLE.TSV.GZ"])
def test_packed_text(write, name):
    raw = read_raw(write(gzip.compress(b"a\tb\n1\t2\n", mtime=0), name))
    assert raw.columns == ("a", "b")
    assert raw.source.endswith(name)


def test_packed_parts_and_padding(write):
    parts = gzip.compress(b"a,b\n1,2", mtime=0) + gzip.compress(b"2\n" + b"3,4\n" * 10**6, mtime=0)
    raw = read_raw(write(parts + bytes(50), "table.csv.gz"))
    assert raw.n_rows == 10**6 + 1
    assert [column[:2].tolist() for column in raw.data] == [[1.0, 3.0], [22.0, 4.0]]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", gzip.compress(b"a,b\n" * 99, mtime=0)[:-9]])
def test_damaged_gzip(write, content):
    message = r"table\.csv\.gz cannot be read: .*\. Pack it again with gzip"
    with pytest.raises(TableError, match=message):
        read_raw(write(content, "table.csv.gz"))


def test_only_text_may_be_packed(write):
    with pytest.raises(TableError, match=r"is a \.npy file inside a \.gz, .* Unpack it first"):
        read_raw(write(b"", "table.npy.gz"))
    with pytest.raises(TableError, match=r"has the suffix '\.gz', which cannot be read"):
        read_raw(write(b"", "table.gz"))


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(write):
    zeros = gzip.compress(b"0" * 10**7, 9, mtime=0)
    path = write(zeros * 400, "bomb.csv.gz")  # 4 GB
    tracemalloc.start()
    message = r"bomb\.csv\.gz expands more than 1000-fold, to over 100 MB, .* Check where it comes"
    with pytest.raises(TableError, match=message):
        read_raw(path)
    assert path.stat().st_size < 4e6
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # It was refused at a hundred million of its four thousand million bytes.
    assert peak < 5e8


def test_the_limit_holds_for_whatever_unpacks_slowly(write, monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 1_500_000)
    text = b"a\n" + b"1\n" * 10**6
    message = r"holds more than 0\.0015 GB when unpacked, which is the limit\. Give fewer rows"
    with pytest.raises(TableError, match=message):
        read_raw(write(gzip.compress(text, mtime=0), "table.csv.gz"))
    with pytest.raises(TableError, match=f"standard input {message}"):
        read_raw_bytes(text)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=20))
def test_floats_survive_a_csv_file_to_the_last_bit(rows):
    raw = read_text("a,b\n" + "\n".join(f"{a!r},{b!r}" for a, b in rows))
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
    (lines, numbers), text_columns = parse(table)
    assert not text_columns
    assert list(quick[0]) == lines
    assert quick[1].tobytes() == numbers.tobytes()


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=20), st.booleans(), st.booleans())
def test_the_quick_way_takes_plain_numbers(rows, has_header, ends_with_newline):
    text = "a\tb\n" * has_header + "\n".join(f"{a!r}\t{b!r}" for a, b in rows)
    quick = parse_quickly(sheet(text + "\n" * ends_with_newline))
    assert quick is not None
    assert quick[1].tobytes() == np.array(rows).T.tobytes()


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
    with pytest.raises(TableError, match="line 20002: found 'x', which is not a number"):
        read_table(write(text + "\n1,x,2\n"))


def test_the_first_text_of_the_file_is_named_not_that_of_the_first_column(write):
    with pytest.raises(TableError, match="column 'b', line 2: found 'red'"):
        read_table(write("a,b\n1,red\nblue,2\n"))


def test_an_empty_file_of_any_format(write):
    with pytest.raises(TableError, match=r"table\.npy is empty\. Give a file with at least one"):
        read_raw(write(b"", "table.npy"))


def test_a_large_file_may_expand_as_tables_do():
    sources.check_expansion("t.csv.gz", 200_000_000, 200_000)
    sources.check_expansion("t.csv.gz", 100_000_000, 1)
    with pytest.raises(TableError, match=r"t\.csv\.gz expands more than 1000-fold"):
        sources.check_expansion("t.csv.gz", 200_000_001, 200_000)
