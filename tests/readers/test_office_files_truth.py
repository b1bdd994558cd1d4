"""The office files agree with their own truth; what a reader makes of them is tested elsewhere."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
import time
from functools import cache

import numpy as np
import pytest

from tests.support.office_columns import ColumnTruth
from tests.support.office_files import OfficeFile, office_files

calamine = pytest.importorskip("python_calamine")
parquet = pytest.importorskip("pyarrow.parquet")

SEEDS = (0, 1, 2)
N_FILES = 84
BOMS = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16": b"\xff\xfe"}
every_file = pytest.mark.parametrize("number", range(N_FILES))
every_seed = pytest.mark.parametrize("seed", SEEDS)


@cache
def files(seed: int = 0) -> list[OfficeFile]:
    return office_files(seed)


def lines_of(file: OfficeFile) -> list[list]:
    """The cells of each line, read without the package; None and "" are blank cells."""
    style = file.style
    if style.container == "csv":
        text = io.StringIO(file.content.decode(style.encoding), newline="")
        return list(csv.reader(text, delimiter=style.separator))
    if style.container in ("xlsx", "ods"):
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(file.content))
        return book.get_sheet_by_name(file.sheet).to_python(skip_empty_area=False)
    if style.container == "parquet":
        records = parquet.read_table(io.BytesIO(file.content)).to_pylist()
    elif style.container == "json":
        records = json.loads(file.content)
    else:
        records = [json.loads(line) for line in file.content.decode().splitlines()]
    assert all(list(record) == [c.name for c in file.columns] for record in records)
    return [list(record.values()) for record in records]


def plain(cell: object) -> object:
    """The cell without what a workbook cannot keep: errors, blanks, and times at midnight."""
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date()
    return "" if cell is None or cell == "#N/A" else cell


def number_in(cell: object, decimal: str) -> float:
    """The number that a person reads in a cell."""
    if not isinstance(cell, str):
        return float(cell)
    digits = re.sub(rf"[^0-9{re.escape(decimal)}]", "", cell)
    is_negative = re.search(r"[-−(]", cell) is not None
    return float(digits.replace(decimal, ".")) * (-1 if is_negative else 1)


def decimal_of(file: OfficeFile) -> str:
    return "," if file.locale in ("de", "fr", "se") else "."


def numbers(file: OfficeFile) -> list[ColumnTruth]:
    return [column for column in file.columns if column.kind == "number"]


@every_seed
def test_kinds_and_locales(seed):
    made = files(seed)
    assert len(made) == N_FILES
    assert len({(file.kind, file.locale) for file in made}) == 66
    assert len({file.kind for file in made}) == 11
    assert len({file.style for file in made}) == len({file.name for file in made}) == N_FILES


@every_seed
def test_every_way_of_writing_occurs(seed):
    styles = [file.style for file in files(seed)]
    assert {style.separator for style in styles} == {"", ";", ",", "\t", "|"}
    assert {s.encoding for s in styles if s.encoding} == {
        "utf-8",
        "utf-8-sig",
        "cp1252",
        "latin-1",
        "utf-16",
    }
    assert {part for style in styles for part in style.structure} == {
        "title",
        "two_headers",
        "units",
        "totals",
        "footer",
        "blocks",
        "offset",
        "sheets",
        "beside",
        "left",
    }
    assert {style.dates for style in styles} == {"native", "local", "iso", "integer", "serial"}
    assert {s.negative for s in styles} == {"", "minus", "brackets", "trailing", "unicode"}
    assert {style.thousands for style in styles} >= {"", ".", ",", "'", "\u00a0"}
    columns = [column for file in files(seed) for column in file.columns]
    assert {column.kind for column in columns} == {
        "number",
        "category",
        "date",
        "id",
        "code",
        "label",
        "empty",
        "remark",
    }
    codes = {re.sub(r"[^0-9]", "", column.gap_code)[:5] for column in columns}
    assert {code.rstrip("0") for code in codes} >= {"", "999", "9999", "99999", "19"}
    assert sum(len(column.word_rows) > 0 for column in columns) >= 20


@every_seed
def test_points_or_commas_that_only_mark_thousands_occur(seed):
    def is_grouped(column: ColumnTruth, mark: str) -> bool:
        texts = [cell for cell in column.cells if isinstance(cell, str)]
        marked = [text for text in texts if re.fullmatch(rf"\d+{re.escape(mark)}\d{{3}}", text)]
        return len(marked) > 20 and sum(text.isdigit() for text in texts) > 20

    pairs = [(file, column) for file in files(seed) for column in numbers(file)]
    assert any(file.locale == "de" and is_grouped(column, ".") for file, column in pairs)
    assert any(file.locale in ("us", "gb") and is_grouped(column, ",") for file, column in pairs)


@every_seed
def test_postcodes_have_leading_zeros(seed):
    codes = [c for file in files(seed) for c in file.columns if c.kind == "code"]
    assert any(re.fullmatch(r"0\d{4}", text) for column in codes for text in column.texts)


def test_same_seed_gives_the_same_files_in_ten_seconds():
    start = time.process_time()
    again = office_files(0)
    assert time.process_time() - start < 10
    assert [file.content for file in again] == [file.content for file in files()]
    assert all(a.content != b.content for a, b in zip(files(1), files(2), strict=True))


@every_file
def test_cells_stand_where_the_truth_says(number):
    file = files()[number]
    lines = lines_of(file)
    assert sorted([*file.data_lines, *file.other_lines]) == list(range(len(lines)))
    width = len(file.columns)
    for row, line in enumerate(file.data_lines):
        cells = lines[line][file.first_column :][:width]
        expected = [column.cells[row] for column in file.columns]
        assert list(map(plain, cells)) == list(map(plain, expected))


@every_seed
def test_another_table_stands_beside_some_tables(seed):
    made = [file for file in files(seed) if "beside" in file.style.structure]
    assert len(made) == 8
    for file in made:
        first, width = file.first_column, len(file.columns)
        assert (first > 0) == ("left" in file.style.structure)
        beside = [line[: first - 1] if first else line[width:] for line in lines_of(file)]
        filled = [i for i, cells in enumerate(beside) if any(map(plain, cells))]
        assert filled == list(range(filled[0], filled[0] + 4))
        assert all(sum(map(bool, map(plain, beside[i]))) == 3 for i in filled)
        blank = first - 1 if first else width
        assert not any(plain(line[blank]) for line in lines_of(file) if len(line) > blank)


@every_seed
def test_some_texts_have_the_name_of_a_workbook(seed):
    made = [file for file in files(seed) if file.style.suffix]
    assert {file.name.rpartition(".")[2] for file in made} == {"xlsx", "ods"}
    assert {file.style.container for file in made} == {"csv"}


@every_file
def test_names_and_other_lines(number):
    file = files()[number]
    lines = lines_of(file)
    names = [line for line, role in file.other_lines.items() if role == "names"]
    if file.style.container in ("parquet", "json", "jsonl"):
        assert not file.other_lines
        return
    assert lines[names[0]][file.first_column :][: len(file.columns)] == [
        column.name for column in file.columns
    ]
    assert len(names) == 1
    if "offset" in file.style.structure:
        assert file.first_column == 2
        assert min(i for i, role in file.other_lines.items() if role in ("groups", "names")) == 3
    blank = [line for line, role in file.other_lines.items() if role == "blank"]
    assert not any(plain(cell) for line in blank for cell in lines[line])


@every_file
def test_totals_are_the_sums_of_the_rows_above(number):
    file = files()[number]
    lines = lines_of(file)
    data = np.array(file.data_lines)
    roles = list(file.other_lines.values())
    assert roles.count("total") == ("totals" in file.style.structure)
    assert (roles.count("subtotal") > 1) == ("totals" in file.style.structure)
    start = 0
    for line, role in sorted(file.other_lines.items()):
        if role not in ("subtotal", "total"):
            continue
        rows = (data < line) & (data >= (0 if role == "total" else start))
        start = line
        for j, column in enumerate(file.columns):
            if column.kind == "number":
                written = number_in(lines[line][file.first_column + j], decimal_of(file))
                assert written == pytest.approx(np.nansum(column.values[rows]), abs=1e-6)


@every_file
def test_values_are_the_numbers_in_the_cells(number):
    file = files()[number]
    for column in numbers(file):
        for row, (cell, value) in enumerate(zip(column.cells, column.values, strict=True)):
            assert np.isnan(value) == (row in column.gaps)
            if row not in column.gaps:
                text = cell
                if row in column.word_rows:
                    text = re.sub(r"^[^0-9]+|[^0-9]+$", "", cell)
                assert number_in(text, decimal_of(file)) == value


@every_file
def test_gaps_words_and_codes(number):
    file = files()[number]
    for column in file.columns:
        assert set(column.code_rows) <= set(column.gaps)
        assert all(str(column.cells[row]) == column.gap_code for row in column.code_rows)
        assert all(not column.texts[row] for row in column.gaps)
        others = {column.cells[row] for row in column.gaps if row not in column.code_rows}
        assert others <= {"", file.style.gap}
        assert not set(column.word_rows) & {*column.gaps, *column.odd_rows}
        assert all(re.search("[^0-9.,'\u2019  \u202f]", column.cells[i]) for i in column.word_rows)


@every_seed
def test_gap_codes_are_far_from_the_numbers(seed):
    pairs = [(file, column) for file in files(seed) for column in numbers(file)]
    coded = [(file, column) for file, column in pairs if column.code_rows]
    assert len(coded) > 30
    for file, column in coded:
        code = number_in(column.cells[column.code_rows[0]], decimal_of(file))
        low, high = np.nanmin(column.values), np.nanmax(column.values)
        assert code > 3 * high or code < low - 800
        assert len(column.code_rows) >= 3


@every_file
def test_anomalies_are_outside_of_all_other_rows(number):
    file = files()[number]
    n_rows = len(file.data_lines)
    assert 200 <= n_rows <= 600
    assert 5 <= len(file.anomalies) <= 15
    times = dict.fromkeys(file.anomalies, 0)
    for column in numbers(file):
        odd = column.values[list(column.odd_rows)]
        usual = np.delete(column.values, column.odd_rows)
        assert np.all((odd > np.nanmax(usual)) | (odd < np.nanmin(usual)))
        for row in column.odd_rows:
            times[row] += 1
    assert min(times.values()) >= 2


@every_file
def test_clean_table(number):
    file = files()[number]
    table = file.clean_table()
    n_rows = len(file.data_lines)
    assert table.numbers.shape == (n_rows, len(table.names))
    gaps = {
        name: np.flatnonzero(np.isnan(c))
        for name, c in zip(table.names, table.numbers.T, strict=True)
    }
    assert {name: tuple(rows) for name, rows in gaps.items()} == {
        column.name: column.gaps for column in numbers(file)
    }
    assert all(len(texts) == n_rows for texts in table.categories.values())
    assert table.categories
    names = [column.name for column in file.columns]
    assert len(set(names)) == len(names)


@every_file
def test_text_files_have_their_encoding(number):
    style, content = files()[number].style, files()[number].content
    if style.container == "csv":
        assert content.startswith(BOMS.get(style.encoding, b"")) or style.encoding == "utf-16"
        assert (content[:3] == BOMS["utf-8-sig"]) == (style.encoding == "utf-8-sig")
        text = content.decode(style.encoding)
        assert ("\r\n" in text) == (style.newline == "\r\n")
        assert text.endswith(style.newline)


@every_file
def test_labels_mark_anomalies(number):
    file = files()[number]
    for column in file.columns:
        if column.kind == "label":
            assert tuple(np.flatnonzero(column.values == 1)) == file.anomalies
            assert np.any(column.values == 0)
            words = {text.lower() for text in column.cells}
            assert words <= {"", *"jyon", "ja", "nein", "yes", "no", "oui", "non", "nej"}
