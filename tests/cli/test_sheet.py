"""The sheet of rows that a person labels."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from gammagmm import LabelledRows
from gammagmm.cli.sheet import agreement_of, fill_sheet, read_answers, read_sheet
from gammagmm.errors import TableError
from gammagmm.labels.sheet import Sheet
from gammagmm.readers.raw_table import RawTable
from tests.support.tables import table_of

X = np.array([[1.0, 2.5], [3.0, -4.25], [1e-7, 6.0], [7.0, 8.0]])
TABLE = table_of(X, ("a", "=b"), places=np.array([0, 2, 3, 5]))


def test_a_sheet_is_read_as_it_was_written(tmp_path):
    sheet = Sheet((3, 0, 2), (1, None, 0))
    text = fill_sheet(sheet, TABLE)
    assert text == "row,a,'=b,anomaly\n6,7,8,1\n1,1,2.5,\n4,1e-07,6,0\n"
    (tmp_path / "s.csv").write_text(text)
    read = read_sheet(tmp_path / "s.csv", TABLE)
    assert read == sheet
    assert read.answered(picked=False) == ([3, 2], [1, 0])
    assert read.answered(picked=True) == ([], [])


def test_ids_are_written_as_text():
    table = table_of(X, ("a", "b"), "id", ids=("u", "@v", "w", "x"))
    lines = list(csv.reader(io.StringIO(fill_sheet(Sheet((1,), (None,)), table))))
    assert lines == [["row", "id", "a", "b", "anomaly"], ["2", "'@v", "3", "-4.25", ""]]


def test_columns_of_the_data_may_be_named_row_and_anomaly(tmp_path):
    table = table_of(X, ("row", "anomaly"))
    (tmp_path / "s.csv").write_text(fill_sheet(Sheet((1,), (1,)), table))
    assert read_sheet(tmp_path / "s.csv", table) == Sheet((1,), (1,))


def test_a_sheet_with_picked_rows_is_read_as_it_was_written(tmp_path):
    sheet = Sheet((3, 0, 2, 1), (1, None, 0, None), frozenset({2, 3}))
    text = fill_sheet(sheet, TABLE)
    assert text == (
        "row,chosen for,a,'=b,anomaly\n6,find,7,8,1\n1,share,1,2.5,\n4,find,1e-07,6,0\n"
        "3,share,3,-4.25,\n"
    )
    (tmp_path / "s.csv").write_text(text)
    read = read_sheet(tmp_path / "s.csv", TABLE)
    assert read == sheet
    assert read == read_answers(tmp_path / "s.csv", TABLE)
    assert read.answered(picked=True) == ([3, 2], [1, 0])
    assert read.answered(picked=False) == ([], [])


def test_the_answers_of_each_person_and_unsure_rows_are_read_as_they_were_written(tmp_path):
    sheet = Sheet((3, 0, 2), (None, 0, None)).leave_unsure(2)
    sheet = sheet.answer(0, 1, "=ann").answer(3, 1, "=ann").answer(3, 0, "bo")
    (tmp_path / "s.csv").write_text(text := fill_sheet(sheet, TABLE))
    heads = next(csv.reader(text.splitlines()))
    assert heads[-4:] == [
        "anomaly by first person",
        "anomaly by =ann",
        "anomaly by bo",
        "anomaly",
    ]
    read = read_sheet(tmp_path / "s.csv", TABLE)
    assert read == sheet
    assert read.said == {"first person": {0: 0}, "=ann": {0: 1, 3: 1}, "bo": {3: 0}}
    assert (read.answers, read.unsure, read.disputed) == ((0, 1, None), {2}, (3, 0))


def test_the_rows_of_a_check_are_no_sample(tmp_path):
    sheet = Sheet((3, 0), (1, None), frozenset({3, 0}), frozenset({3, 0}))
    (tmp_path / "s.csv").write_text(text := fill_sheet(sheet, TABLE))
    assert [line.split(",")[1] for line in text.splitlines()[1:]] == ["check", "check"]
    read = read_sheet(tmp_path / "s.csv", TABLE)
    assert read == sheet == Sheet((), ()).extend([3, 0], "check").answer(3, 1)
    assert read.answered(picked=False) == ([], [])


def test_rows_that_two_people_answered_tell_how_often_labels_are_wrong():
    sheet = Sheet((3, 0, 2), (None,) * 3)
    for row, label, person in ((3, 1, "Ann"), (0, 0, "Ann"), (3, 0, "Bo"), (0, 0, "Bo")):
        sheet = sheet.answer(row, label, person)
    assert sheet.answered_twice == [(1, 0), (0, 0)]
    rows = LabelledRows(np.zeros(4))
    found = agreement_of([sheet], None, rows)
    assert (found.n_rows, found.n_agree) == (2, 1)
    assert agreement_of([Sheet((3,), (1,))], None, rows) is None


def test_what_a_row_is_chosen_for_as_a_spreadsheet_saves_it(tmp_path):
    (tmp_path / "s.csv").write_text("row,chosen for,anomaly\n1, FIND,1\n3,Share ,0\n")
    assert read_sheet(tmp_path / "s.csv", TABLE) == Sheet((0, 1), (1, 0), frozenset({0}))


def test_a_sheet_knows_which_rows_come_in_simple_random_order(tmp_path):
    sheet = Sheet().extend([3], "find").extend([0, 2], "share", is_simple=True)
    sheet = sheet.extend([1], "share").answer(0, 1)
    (tmp_path / "s.csv").write_text(fill_sheet(sheet, TABLE))
    assert read_sheet(tmp_path / "s.csv", TABLE) == sheet
    assert sheet.simple == {0, 2}
    assert (sheet.picked, sheet.purpose(0)) == ({3}, "share")


@pytest.mark.parametrize("picked", [(), (1,), (1, 3)])
@pytest.mark.parametrize("columns", [("chosen for", "b"), ("a", "chosen for")])
def test_a_column_of_the_data_may_be_named_chosen_for(columns, picked, tmp_path):
    table, sheet = table_of(X, columns), Sheet((1, 3), (1, None), frozenset(picked))
    (tmp_path / "s.csv").write_text(fill_sheet(sheet, table))
    assert read_sheet(tmp_path / "s.csv", table) == sheet
    # It is still compared with the data.
    other = table_of(X + [name == "chosen for" for name in columns], columns)
    with pytest.raises(TableError, match=r"line 2: 'chosen for' is .* here and .* in the data"):
        read_sheet(tmp_path / "s.csv", other)


@pytest.mark.parametrize("picked", [(), (1,)])
@pytest.mark.parametrize("is_id", [True, False])
def test_a_column_that_is_no_feature_may_be_named_chosen_for(is_id, picked, tmp_path):
    names = ("u", "v", "w", "x")
    data = (np.array(names, dtype=object), X[:, 0])
    raw = RawTable("rows.csv", ("chosen for", "a"), data, None, lambda j: data[j].tolist())
    known = {"ids": names, "id_column": "chosen for"} if is_id else {}
    written = table_of(X[:, :1], ("a",), raw=raw, **known)
    sheet = Sheet((1, 3), (1, None), frozenset(picked))
    (tmp_path / "s.csv").write_text(fill_sheet(sheet, written))
    # `gammagmm estimate` does not keep the columns of the file.
    for table in (written, replace(written, raw=None)):
        assert read_sheet(tmp_path / "s.csv", table) == sheet


def test_more_rows_come_at_the_end_without_answers():
    sheet = Sheet((3, 0), (1, None)).extend([2], "find")
    assert sheet == Sheet((3, 0, 2), (1, None, None), frozenset({2}))
    longer = sheet.extend([1], "find")
    assert longer == Sheet((3, 0, 2, 1), (1, None, None, None), frozenset({1, 2}))
    assert sheet.extend([1], "share") == replace(longer, picked=frozenset({2}))
    assert sheet.extend([], "find") == sheet


def test_another_answer_leaves_the_rest_as_it_is():
    sheet = Sheet((5, 3, 4), (0, 1, None), frozenset({3}))
    assert sheet.answer(4, 1) == Sheet((5, 3, 4), (0, 1, 1), frozenset({3}))
    assert sheet.answer(3, None) == Sheet((5, 3, 4), (0, None, None), frozenset({3}))
    assert (sheet.n_answers, sheet.answer(3, None).n_answers) == (2, 1)


def test_picked_rows_count_as_picked_unless_the_sheet_is_a_list():
    sheet = Sheet((5, 3, 4, 0), (0, 1, None, 1), frozenset({0, 4}))
    rows = LabelledRows(np.arange(10.0)).update([7], [0])
    known = sheet.label(rows).known_rows
    assert (known.rows.tolist(), known.labels.tolist()) == ([0, 3, 5, 7], [1, 1, 0, 0])
    assert known.at_random.tolist() == [False, True, True, True]
    assert known.picked.tolist() == [True, False, False, False]
    known = sheet.label(rows, at_random=False).known_rows
    assert known.listed.tolist() == [True, True, True, False]
    assert (known.labels.tolist(), known.picked.any()) == ([1, 1, 0, 0], False)
    # No answer, no label.
    known = Sheet((5, 3), (None, None), frozenset({3})).label(rows).known_rows
    assert known.rows.tolist() == [7]


@pytest.mark.parametrize("word", ["1", " yes", "Y", "TRUE", "1.0", "Anomaly"])
def test_answers_as_people_write_them(word, tmp_path):
    # As a spreadsheet saves it: a byte order mark, quotes, rounded numbers, other line ends.
    text = f'\ufeff"row","a","anomaly"\r\n1.0,"1.0000000001","{word}"\r\n\r\n'
    (tmp_path / "s.csv").write_text(text, encoding="utf-8", newline="")
    assert read_sheet(tmp_path / "s.csv", TABLE) == Sheet((0,), (1,))


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16"])
def test_a_sheet_as_a_spreadsheet_in_another_country_saves_it(separator, encoding, tmp_path):
    values = np.array([[1.0], [0.0], [1234.5]])
    table = table_of(values, ("Größe, cm",))
    heads, *rows = ["row", "Größe, cm", "anomaly"], ["1", "1", "0"], ["3", "1.234,5", "1"]
    text = "".join(f"{separator.join(cells)}\r\n" for cells in (heads, *rows))
    (tmp_path / "s.csv").write_bytes(text.encode(encoding))
    assert read_sheet(tmp_path / "s.csv", table) == Sheet((0, 2), (0, 1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no columns 'row' and 'anomaly'. Give a file that"),
        (b"row,a\n1,1\n", "has no columns"),
        (b"row,anomaly\n2,1\n", "line 2: row 2 is not in the data, or was dropped"),
        (b"row,anomaly\n1,1\n1e99,1\n", "line 3: row 1e99 is not in the data"),
        (b"row,anomaly\nx,1\n", "line 2: 'x' is not a row number. Correct the cell."),
        (b"row,anomaly\ninf,1\n", "line 2: row inf is not in the data"),
        (
            b"row,anomaly\n1,maybe\n",
            "line 2: 'maybe' is not an answer. Write 1 (anomaly), 0 (normal)",
        ),
        (
            b"row,anomaly\n1,1,1\n",
            "line 2 has 3 cells, and the first line has 2. Correct the line.",
        ),
        (
            b"row,a,anomaly\n1,2.0,1\n",
            "line 2: 'a' is '2.0' here and 1 in the data. If a spreadsheet",
        ),
        (b"row,anomaly\n1,\xff\n", "line 2: 'ÿ' is not an answer"),
        (b"row,anomaly\n1,\0\n", "contains a NUL byte"),
        (b'row,anomaly\n"1"x,1\n', "is not a CSV file ("),
        (b"row;a;anomaly\n1;2,0;1\n", "line 2: 'a' is '2,0' here and 1 in the data"),
        (
            b"row,chosen for,anomaly\n1,find,1\n3,other,\n",
            "line 3: 'other' is not what a row is chosen for. Do not change the column 'chosen "
            "for': share, share (random), find or check.",
        ),
        (b"row,chosen for,anomaly\n1,,1\n", "line 2: '' is not what a row is chosen for"),
        (b"row,anomaly\n1,1\n\n3,0\n1,1\n", "line 5: row 1 occurs twice. Remove one of the lines."),
    ],
)
def test_a_bad_sheet_is_refused_with_its_line(content, message, tmp_path):
    (tmp_path / "s.csv").write_bytes(content)
    with pytest.raises(TableError) as caught:
        read_sheet(tmp_path / "s.csv", TABLE)
    assert message in str(caught.value)


def test_a_sheet_needs_no_columns_of_the_data(tmp_path):
    # What the message about a value that a spreadsheet program has changed says.
    (tmp_path / "s.csv").write_text("row,chosen for,anomaly\n1,share,1\n3,find,0\n")
    sheet = read_sheet(tmp_path / "s.csv", TABLE)
    assert (sheet.rows, sheet.answers, sheet.picked) == ((0, 1), (1, 0), {1})


def test_a_row_with_another_name_is_refused(tmp_path):
    table = table_of(X, ids=("u", "v" * 80, "w", "x"))
    (tmp_path / "s.csv").write_text(f"row,name of the row,anomaly\n2,{'v' * 60}…,1\n1,y,0\n")
    with pytest.raises(TableError, match="line 3: the row is named 'y' here and 'u' in the data"):
        read_sheet(tmp_path / "s.csv", table)


def test_a_sheet_without_answers_is_refused(tmp_path):
    (tmp_path / "s.csv").write_text("row,anomaly\n1,\n")
    with pytest.raises(TableError, match=r"has no answers yet\. Write 1 \(anomaly\)"):
        read_answers(tmp_path / "s.csv", TABLE)


def test_a_missing_file(tmp_path):
    with pytest.raises(TableError, match="cannot be read"):
        read_sheet(tmp_path / "none.csv", TABLE)


def test_a_column_that_was_moved_is_found(tmp_path):
    """A spreadsheet may put our columns in another order."""
    sheet = Sheet((3, 0, 2), (1, 0, None), frozenset({0, 2}))
    lines = list(csv.reader(fill_sheet(sheet, TABLE).splitlines()))
    moved = [[line[0], *line[2:-1], line[1], line[-1]] for line in lines]
    (tmp_path / "s.csv").write_text("\n".join(",".join(line) for line in moved))
    assert read_sheet(tmp_path / "s.csv", TABLE) == sheet
