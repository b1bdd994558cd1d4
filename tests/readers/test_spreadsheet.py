"""Sheets of .xlsx and .ods workbooks: values, dates, titles, and sizes that are refused."""

from __future__ import annotations

import datetime
import sys

import pytest

from gammagmm.errors import MissingExtraError, Note, TableError
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of
from tests.support.workbooks import ods, xlsx, zipped

WRITERS = {"xlsx": xlsx, "ods": ods}
DAY, MOMENT = datetime.date(2024, 12, 31), datetime.datetime(2024, 12, 31, 14, 5)
ROWS = [
    ["name", "a", "day", "moment", "flag", "price", 2024],
    ["u", 1.5, DAY, MOMENT, True, "1.185,43 €", 1],
    ["007", None, None, None, False, "2,50 €", 2],
    [None, -3, DAY, MOMENT, None, "-", 3.25],
]
COLUMNS = {
    "name": ["u", "007", None],
    "a": [1.5, None, -3.0],
    "day": ["2024-12-31", None, "2024-12-31"],
    "moment": ["2024-12-31T14:05:00", None, "2024-12-31T14:05:00"],
    "flag": [1.0, 0.0, None],
    "price": [1185.43, 2.5, None],
    "2024": [1.0, 2.0, 3.25],
}


@pytest.fixture(params=WRITERS)
def kind(request):
    return request.param


def read(write, kind, sheets, table=None):
    return read_raw(write(WRITERS[kind](sheets), f"t.{kind}"), table=table)


def test_values(write, kind):
    raw = read(write, kind, {"Sheet": ROWS})
    assert columns_of(raw) == COLUMNS
    assert raw.cells(0) == ["u", "007", None]
    assert raw.cells(1) == ["1.5", None, "-3"]
    assert [raw.place(i) for i in range(3)] == ["row 2", "row 3", "row 4"]
    price = "read with decimal commas and thousands separators, as amounts in EUR: "
    assert raw.notes == (
        Note.of("tables.numbers", "price", words=price + "'1.185,43 €' is 1185.43"),
        Note.of("tables.missing words", "price", words="'-'", n_cells=1),
    )


def test_the_first_sheet_with_cells_is_read(write, kind):
    sheets = {"empty": [], "rows": [["a"], [1], [2]], "more": [["b"], [3], [4]]}
    raw = read(write, kind, sheets)
    assert columns_of(raw) == {"a": [1.0, 2.0]}
    others = {"sheet": "'rows'", "others": "'empty', 'more'"}
    assert raw.notes == (Note.of("tables.sheet", raw.source, **others),)
    assert columns_of(read(write, kind, sheets, "more")) == {"b": [3.0, 4.0]}
    with pytest.raises(TableError, match=r"has no sheet 'x'\. Choose one of: 'empty', 'rows', 'm"):
        read(write, kind, sheets, "x")
    with pytest.raises(TableError, match=r"contains no cells in the sheet 'empty'\. Give a work"):
        read(write, kind, sheets, "empty")
    with pytest.raises(TableError, match=r"t\.\w+ contains no sheet with cells\. Give a workbook"):
        read(write, kind, {"empty": []})


def test_titles_empty_rows_and_columns_are_skipped(write, kind):
    rows = [[], [None, "Sales"], [], [None, "", "a", "b"], [None, 1, 2, 3], [], [None, 4, 5, None]]
    raw = read(write, kind, {"s": rows})
    assert columns_of(raw) == {"index": [1.0, 4.0], "a": [2.0, 5.0], "b": [3.0, None]}
    assert raw.place(1) == "row 7"
    assert raw.notes == (
        Note.of(
            "tables.rows",
            raw.source,
            kind="title",
            unit="row",
            texts="'Sales'",
            n_rows=1,
            lines="2",
        ),
        Note.of("tables.unnamed", "index", place=1, name="index"),
    )


def test_a_first_row_of_numbers_is_data(write, kind):
    raw = read(write, kind, {"s": [[1, 2.5], [3, 4]]})
    assert columns_of(raw) == {"x1": [1.0, 3.0], "x2": [2.5, 4.0]}
    assert raw.notes == (Note.of("tables.numbers first", raw.source, unit="row", n_columns=2),)
    raw = read(write, kind, {"s": [["25%", "50%"], [3, 4]]})
    assert (columns_of(raw), raw.notes) == ({"25%": [3.0], "50%": [4.0]}, ())
    with pytest.raises(TableError, match=r"contains column names but no rows\. Add the rows"):
        read(write, kind, {"s": [["a", "b"]]})
    with pytest.raises(TableError, match=r"row 1: column name 'a' occurs 2 times"):
        read(write, kind, {"s": [["a", "a"], [1, 2]]})


def test_errors_of_formulas_are_missing(write):
    raw = read(write, "xlsx", {"s": [["a", "b"], [1, 2], ["#DIV/0!", 3], ["#N/A", 4]]})
    assert columns_of(raw) == {"a": [1.0, None, None], "b": [2.0, 3.0, 4.0]}


def test_without_calamine(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    message = r"t\.xlsx needs python-calamine, which is not installed\. Run: .*gammagmm\[excel\]"
    with pytest.raises(MissingExtraError, match=message):
        read(write, "xlsx", {"s": [["a"], [1]]})


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize("name", ["t.xlsx", "t.ods"])
def test_text_under_the_name_of_a_workbook_is_read_as_csv(write, name, encoding):
    raw = read_raw(write("Größe;b\n1,5;2\n2,5;3\n".encode(encoding), name))
    assert columns_of(raw) == {"Größe": [1.5, 2.5], "b": [2.0, 3.0]}
    assert raw.notes[0] == Note.of("tables.text", raw.source)


@pytest.mark.parametrize(
    ("sizes", "chosen"), [((5, 9, 7), 0), ((2, 12, 30, 40), 2), ((2, 12, 9, 40), 3), ((3, 3), 0)]
)
def test_the_first_sheet_with_half_the_cells_of_the_largest_is_read(write, kind, sizes, chosen):
    sheets = {f"s{i}": [["a"], *[[j] for j in range(n - 1)]] for i, n in enumerate(sizes)}
    assert read(write, kind, sheets).n_rows == sizes[chosen] - 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", "<html><td>1".encode("utf-16"), r"t\.xlsx is a web page or XML .* save it as"),
        ("t.xlsx", b" <html><table><tr><td>1", r"t\.xlsx is a web page or XML .* save it as"),
        (
            "t.xlsx",
            b"a,b\n1,2\n\0",
            r"t\.xlsx cannot be read: .*\. Save it again",
        ),
        ("t.ods", zipped({"content.xml": "<a>"}), r"t\.ods cannot be read: .*\. Save it"),
    ],
)
def test_files_of_another_kind(write, name, content, message):
    with pytest.raises(TableError, match=message):
        read_raw(write(content, name))
