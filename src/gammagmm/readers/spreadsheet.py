"""A sheet of an .xlsx or .ods workbook -> raw table, by calamine, after a check of its size."""

from __future__ import annotations

import datetime
import importlib
import io
import os
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.parsers import expat

from gammagmm._support.text import listed, shown
from gammagmm.errors import MissingExtraError, Note, TableError
from gammagmm.readers.layout import find_layout, layout_notes, renamed_repeats
from gammagmm.readers.numbers import is_row, numbers_first_note
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    complete_names,
    numbered_names,
    written,
)
from gammagmm.readers.source import Source, check_expansion, refusing, unpacked
from gammagmm.readers.values import Value, table_of_values

__all__ = ["ods_bytes", "read_workbook", "xlsx_bytes"]

ADVICE = "Save it again as .xlsx or .ods, or as CSV."
SHEET_CELL_BYTES = 200  # memory that calamine and Python take for a cell, with their copies
TEXT_COPIES = 4  # of a text that several cells share
# Rows and cells of a sheet, as calamine sees them. The short forms give their place at once.
ROW = re.compile(rb"<(?:[\w.-]+:)?row(?=[\s/>])")
CELL = re.compile(rb"<(?:[\w.-]+:)?c(?=[\s/>])")
SHORT_ROW = re.compile(rb"<(?:[\w.-]+:)?row r=[\"']\d")
SHORT_CELL = re.compile(rb"<(?:[\w.-]+:)?c r=[\"'][A-Z]")
PLACE = re.compile(rb"\br\s*=\s*[\"']([^\"']*)[\"']")
VALUE = re.compile(rb"<(?:[\w.-]+:)?v(?:\s[^>]*)?>\s*(\d{1,9})\s*<")
SHARED = re.compile(rb"<(?:[\w.-]+:)?si(?=[\s/>])")
HIDDEN_XML = re.compile(rb"<!--|<!\[CDATA\[|<!DOCTYPE|\0")
_ONE_READER = threading.Lock()
LEAST_SIZE = 0.5
"""Share of the cells of the largest sheet that the first one with a table has at least."""
EMPTY_ATTRIBUTES = {"table:style-name", "table:number-columns-repeated"}


def read_workbook(source: Source, table: str | None) -> RawTable:
    """Raw table of the sheet `table`, or of the first sheet that has cells."""
    try:
        calamine = importlib.import_module("python_calamine")
    except ImportError:
        needs = f"Reading {source.name} needs python-calamine"
        raise MissingExtraError(needs, "excel", name="python_calamine") from None
    content = _checked(source)
    try:
        with _without_panics(), refusing(source.name, (Exception,), ADVICE):
            workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
            return _read(source, workbook, table)
    except BaseException as error:
        # A panic of a Rust library is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise TableError(f"{source.name} cannot be read: it is damaged", ADVICE) from None


@contextmanager
def _without_panics() -> Iterator[None]:
    """Nothing on standard error, where a panic of a Rust library is printed before it is raised."""
    with _ONE_READER:
        try:
            kept = os.dup(2)
        except OSError:  # it is closed
            yield
            return
        unread, written_to = os.pipe()  # no file is opened while a workbook is read
        try:
            os.dup2(written_to, 2)
            yield
        finally:
            os.dup2(kept, 2)
            for number in (kept, unread, written_to):
                os.close(number)


def _checked(source: Source) -> bytes:
    """A plain copy of the workbook with the parts whose sizes were checked, and no others.

    What calamine opens is then what was checked: two readers of a hostile archive may disagree.
    """
    is_ods = source.suffix == ".ods"
    with refusing(source.name, (Exception,), ADVICE):
        parts = _parts(source, is_ods)
        n_bytes = ods_bytes(parts.get("content.xml", b"")) if is_ods else xlsx_bytes(parts)
    check_expansion(source.name, n_bytes, len(source.content))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def _parts(source: Source, is_ods: bool) -> dict[str, bytes]:
    """The parts of a workbook that contain its tables, by name."""
    with zipfile.ZipFile(io.BytesIO(source.content)) as archive:
        infos = archive.infolist()
        names = {info.filename.lower().replace("\\", "/") for info in infos}
        if is_ods != ("content.xml" in names) or is_ods == ("xl/workbook.xml" in names):
            kind = "an OpenDocument sheet" if is_ods else "an Excel workbook"
            raise TableError(f"{source.name} is not {kind}", ADVICE)
        kept = [info for info in infos if info.filename.lower().endswith((".xml", ".rels"))]
        kept += [info for info in infos if info.filename == "mimetype"]
        return dict(unpacked(source, archive, kept))


def xlsx_bytes(parts: dict[str, bytes]) -> int:
    """Memory that the sheets of an .xlsx workbook may take: their areas and their shared texts."""
    lengths = list[int]()
    for part in parts.values():
        starts = [*(match.start() for match in SHARED.finditer(part)), len(part)]
        lengths += [b - a for a, b in pairwise(starts)]
    total = 0
    for part in parts.values():
        if b"sheetData" in part:
            if HIDDEN_XML.search(part):
                raise ValueError("a sheet contains comments or other text between its cells")
            indices = (int(match[1]) for match in VALUE.finditer(part)) if lengths else ()
            total += _area(part) * SHEET_CELL_BYTES
            total += TEXT_COPIES * sum(lengths[i] for i in indices if i < len(lengths))
    return total


def _area(sheet: bytes) -> int:
    """At least the number of cells from the first to the last row and column of a sheet."""
    n_columns = n_rows = 0
    for place in set(PLACE.findall(sheet)):
        for letters in re.findall(rb"[A-Za-z]+", place):
            n_columns = max(n_columns, _column_number(letters.upper()[:4]))
        for digits in re.findall(rb"\d+", place):
            n_rows = max(n_rows, int(digits[:9]))
    rows = [*(match.start() for match in ROW.finditer(sheet)), len(sheet)]
    n_rows += len(rows) - 1 - len(SHORT_ROW.findall(sheet))
    if len(CELL.findall(sheet)) > len(SHORT_CELL.findall(sheet)):
        # A cell that does not give its place follows the one before it.
        counts = [len(CELL.findall(sheet, a, b)) for a, b in pairwise(rows)]
        n_columns += max(counts, default=0)
    return n_columns * n_rows


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


@dataclass
class OdsSize:
    """Rows and columns up to the last cell that is not empty, and the size of all texts."""

    n_rows: int = 0
    n_columns: int = 0
    n_text: int = 0
    row: int = 0  # the rows before the current one
    row_repeats: int = 1
    column: int = 0  # the columns before the current one
    cell_repeats: int = 1
    total: int = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin an element."""
        if name == "table:table":
            self.finish()
        elif name == "table:table-row":
            self.row += self.row_repeats
            self.row_repeats = _repeats(attributes, "table:number-rows-repeated")
            self.column, self.cell_repeats = 0, 0
        elif name in ("table:table-cell", "table:covered-table-cell"):
            self.column += self.cell_repeats
            self.cell_repeats = _repeats(attributes, "table:number-columns-repeated")
            n_text = sum(map(len, attributes.values()))
            self.fill(n_text) if attributes.keys() - EMPTY_ATTRIBUTES else None
        elif self.cell_repeats:
            self.fill(0)

    def fill(self, n_text: int) -> None:
        """Note that the current cell is not empty."""
        self.n_rows = max(self.n_rows, self.row + self.row_repeats)
        self.n_columns = max(self.n_columns, self.column + self.cell_repeats)
        self.n_text += n_text * self.row_repeats * self.cell_repeats

    def finish(self) -> None:
        """Add the current table to the total."""
        self.total += self.n_rows * self.n_columns * SHEET_CELL_BYTES + TEXT_COPIES * self.n_text
        self.n_rows = self.n_columns = self.n_text = self.row = self.column = 0
        self.row_repeats = self.cell_repeats = 0


def ods_bytes(content: bytes) -> int:
    """Memory that the tables of an .ods workbook may take."""
    if b"\0" in content or b"<!DOCTYPE" in content:
        raise ValueError("its content is not plain XML")
    size = OdsSize()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = size.start
    parser.CharacterDataHandler = lambda text: size.fill(len(text)) if text.strip() else None
    parser.Parse(content, True)
    size.finish()
    return size.total


def _repeats(attributes: dict[str, str], name: str) -> int:
    return max(int(attributes.get(name, "1")[:12]), 1)


def _read(source: Source, workbook: Any, table: str | None) -> RawTable:
    name, sheets = source.name, list(workbook.sheet_names)
    if table is not None and table not in sheets:
        raise TableError(f"{name} has no sheet {shown(table)}", f"Choose one of: {listed(sheets)}.")
    sizes = dict[str, int]()
    for sheet_name in sheets if table is None else [table]:
        rows = _cells_of(workbook, sheet_name)
        sizes[sheet_name] = sum(cell != "" for row in rows for cell in row)
    # A cover or a list beside the table has far fewer cells.
    largest = max(sizes.values(), default=0)
    chosen = next((own for own, n in sizes.items() if n and n >= LEAST_SIZE * largest), None)
    if chosen is None:
        empty = "no sheet with cells" if table is None else f"no cells in the sheet {shown(table)}"
        raise TableError(f"{name} contains {empty}", "Give a workbook that contains a table.")
    others = [other for other in sheets if other != chosen]
    notes = []
    if table is None and others:
        read = {"sheet": shown(chosen), "others": listed(others)}
        notes.append(Note.of("tables.sheet", name, **read))
    start = workbook.get_sheet_by_name(chosen).start or (0, 0)
    return _table(source, _cells_of(workbook, chosen), start[0] + 1, notes)


def _cells_of(workbook: Any, sheet: str) -> list[list[Any]]:
    rows: list[list[Any]] = workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=True)
    return rows


def _table(source: Source, rows: list[list[Any]], first: int, notes: list[Note]) -> RawTable:
    """Raw table of the rows of a sheet, the first of which has the number `first`."""
    name = source.name
    values = [[_value(cell) for cell in row] for row in rows]
    # Dates are values here, and not texts.
    typed = [[c if isinstance(c, str) else None if c == "" else c for c in row] for row in rows]
    numbers = range(first, first + len(rows))
    layout = None if source.asked.is_strict else find_layout(typed, numbers, source.asked)
    if layout is None:
        names, body, number = _first_row_names(source, values, numbers, notes)
    else:
        notes += layout_notes(name, layout, typed, numbers, "row")
        names, renamed = renamed_repeats(layout.names)
        notes += renamed
        body, number = list(layout.body), numbers[layout.header or 0]
        notes += [] if layout.header is not None else [numbers_first_note(name, "row", names)]
    if not body:
        raise TableError(f"{name} contains column names but no rows", "Add the rows below them.")
    columns = [[values[i][j] for i in body] for j in range(len(names))]
    kept = [j for j, n in enumerate(names) if n or any(c is not None for c in columns[j])]
    unique, named = complete_names([names[j] for j in kept])
    check_names(f"{name}, row {number}", unique)
    notes += named
    notes += [
        Note.of("tables.durations", unique[i])
        for i, j in enumerate(kept)
        if any(isinstance(rows[row][j], datetime.timedelta) for row in body)
    ]
    data = dict(zip(unique, (columns[j] for j in kept), strict=True))
    lines = [numbers[i] for i in body]
    return table_of_values(name, data, lines, notes=notes, unit="row", asked=source.asked)


def _first_row_names(
    source: Source, values: list[list[Value]], numbers: Sequence[int], notes: list[Note]
) -> tuple[tuple[str, ...], list[int], int]:
    """The names in the first row with more than one cell, the places of the rows below it."""
    name = source.name
    filled = [i for i, row in enumerate(values) if any(cell is not None for cell in row)]
    n_titles = _n_titles([values[i] for i in filled])
    if n_titles:
        titles = [next(c for c in values[i] if c is not None) for i in filled[:n_titles]]
        notes.append(Note.of("tables.titles", name, titles=listed(map(str, titles))))
    header = values[filled[n_titles]]
    has_header = not is_row(map(_header_cell, header))
    names = tuple(map(_header_cell, header)) if has_header else numbered_names(len(header))
    notes += [] if has_header else [numbers_first_note(name, "row", names)]
    return names, filled[n_titles + has_header :], numbers[filled[n_titles]]


def _n_titles(rows: Sequence[Sequence[Value]]) -> int:
    """Number of rows with one cell above the first row with more."""
    counts = [sum(cell is not None for cell in row) for row in rows]
    return next((i for i, count in enumerate(counts) if count > 1), 0)


def _header_cell(value: Value) -> str:
    text = value if isinstance(value, str) else written([0.0 if value is None else value])[0]
    return "" if value is None else str(text).strip()


def _value(cell: Any) -> Value:
    """A cell as text, a number or None; dates are text as ISO 8601 writes them."""
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(timespec="seconds")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    if isinstance(cell, str):
        return cell.strip() or None
    return None if cell is None else float(cell) if isinstance(cell, bool) else cell
