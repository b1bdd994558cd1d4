"""CSV files: what is read, and how everything else is refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

from gammagmm.errors import TableError
from gammagmm.tables import read_table


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
    message = r"has the suffix '(\.xlsx)?', which cannot be read\. Save .* formats: \.csv\."
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
