"""A sheet of an .xlsx or .ods workbook -> raw table, by calamine."""

from __future__ import annotations

import datetime
import importlib
import io
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gammagmm._support.text import listed, shown
from gammagmm.errors import MissingExtraError, NoRowsError, Note, TableError
from gammagmm.readers.layout import find_layout, layout_notes, renamed_repeats
from gammagmm.readers.numbers import is_row, numbers_first_note
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    complete_names,
    numbered_names,
    written,
)
from gammagmm.readers.source import Source, check_expansion, refusing
from gammagmm.readers.values import Value, table_of_values

__all__ = ["read_workbook"]

SHEET_CELL_BYTES = 200  # memory that a cell takes, with its copies
ADVICE = "Save it again as .xlsx or .ods, or as CSV."
_ONE_READER = threading.Lock()
LEAST_SIZE = 0.5
"""Share of the cells of the largest sheet that the first one with a table has at least."""


def read_workbook(source: Source, table: str | None) -> RawTable:
    """Raw table of the sheet `table`, or of the first sheet that has cells."""
    try:
        calamine = importlib.import_module("python_calamine")
    except ImportError:
        needs = f"Reading {source.name} needs python-calamine"
        raise MissingExtraError(needs, "excel", name="python_calamine") from None
    try:
        with _without_panics(), refusing(source.name, (Exception,), ADVICE):
            workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(source.content))
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


def _read(source: Source, workbook: Any, table: str | None) -> RawTable:
    name, sheets = source.name, list(workbook.sheet_names)
    if table is not None and table not in sheets:
        raise TableError(f"{name} has no sheet {shown(table)}", f"Choose one of: {listed(sheets)}.")
    # A cover or a list beside the table has far fewer cells. Only sheets that are larger than all
    # before them are kept, because a smaller one is not the first that is large enough.
    kept = list[tuple[int, str, int, list[list[Any]]]]()
    for sheet_name in sheets if table is None else [table]:
        first, rows = _cells_of(source, workbook, sheet_name)
        n = sum(cell != "" for row in rows for cell in row)
        if n > max((own[0] for own in kept), default=0):
            large = [own for own in kept if own[0] >= LEAST_SIZE * n]
            kept = [*large, (n, sheet_name, first, rows)]
    if not kept:
        empty = "no sheet with cells" if table is None else f"no cells in the sheet {shown(table)}"
        raise TableError(f"{name} contains {empty}", "Give a workbook that contains a table.")
    _, chosen, first, rows = kept[0]
    others = [other for other in sheets if other != chosen]
    notes = []
    if table is None and others:
        read = {"sheet": shown(chosen), "others": listed(others)}
        notes.append(Note.of("tables.sheet", name, **read))
    return _table(source, rows, first, notes)


def _cells_of(source: Source, workbook: Any, name: str) -> tuple[int, list[list[Any]]]:
    """The number of the first row of a sheet that has cells, and the rows from there."""
    sheet = workbook.get_sheet_by_name(name)
    # A cell that is repeated millions of times would take minutes.
    check_expansion(source.name, SHEET_CELL_BYTES * sheet.height * sheet.width, len(source.content))
    rows: list[list[Any]] = sheet.to_python(skip_empty_area=True)
    return (sheet.start or (0, 0))[0] + 1, rows


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
        raise NoRowsError(
            f"{name} contains column names but no rows",
            "Add the rows below them.",
            tuple(map(str, names)),
        )
    columns = [[values[i][j] for i in body] for j in range(len(names))]
    beside = frozenset[int]() if layout is None else layout.beside
    own = [j for j in range(len(names)) if j not in beside]
    kept = [j for j in own if names[j] or any(c is not None for c in columns[j])]
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
