"""CSV and TSV -> raw table; the standard library's parser says what a file means."""

from __future__ import annotations

import csv
import importlib
import re
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    is_missing,
    is_number,
    number_or_none,
    text_column,
)
from gammagmm.readers.source import Source, decode

__all__ = ["read_delimited"]

# Where two delimiters split the first lines equally well ("1,5;2,5"), the earlier one is meant:
# commas stand inside cells far more often than semicolons and tabs do.
DELIMITERS = ("\t", ";", ",")
N_SNIFFED_RECORDS = 50
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Below this size PyArrow saves less time than its import takes.
MIN_QUICK_CHARACTERS = 1_000_000

Record = tuple[int, list[str]]  # 1-based line of the file, cells
Numbers = tuple[list[int] | range, NDArray[np.float64]]  # line of each row, columns (d, n)


@dataclass(frozen=True, repr=False)
class Sheet:
    """Text of which the delimiter and the columns are known."""

    name: str
    text: str
    delimiter: str
    columns: tuple[str, ...]
    has_header: bool


def read_delimited(source: Source) -> RawTable:
    """Raw table of a CSV or TSV file: text, then records, then names and columns."""
    sheet = _sheet(source)
    quick = parse_quickly(sheet) if len(sheet.text) > MIN_QUICK_CHARACTERS else None
    (lines, numbers), text_columns = (quick, set[int]()) if quick else parse(sheet)
    if not lines:
        raise TableError(f"{sheet.name} holds column names but no rows. Add the rows below them.")
    data: list[NDArray[Any]] = list(numbers)
    for j, cells in _texts(sheet, text_columns).items():
        data[j] = text_column(cells)
    return RawTable(sheet.name, sheet.columns, tuple(data), lines, lambda j: _texts(sheet, {j})[j])


def _sheet(source: Source) -> Sheet:
    """What the first lines say about a file."""
    text = decode(source)
    delimiter = "\t" if source.suffix == ".tsv" else _sniff_delimiter(text)
    first = next(_records(source.name, text, delimiter), None)
    if first is None:
        raise TableError(f"{source.name} is empty. Give a file with at least one row of numbers.")
    line, cells = first
    if _is_data(cells):
        columns = tuple(f"x{j}" for j in range(1, len(cells) + 1))
        return Sheet(source.name, text, delimiter, columns, has_header=False)
    columns = tuple(cell.strip() for cell in cells)
    check_names(f"{source.name}, line {line}", columns)
    return Sheet(source.name, text, delimiter, columns, has_header=True)


def _sniff_delimiter(text: str) -> str:
    """Delimiter that cuts the first records into equally many cells, at least two."""
    for delimiter in DELIMITERS:
        try:
            sample = list(islice(_cells(text, delimiter), N_SNIFFED_RECORDS))
        except csv.Error:
            continue
        widths = {len(cells) for _, cells in sample}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    # No delimiter fits: the one that is most frequent on the first line makes the better message.
    first_line = text.lstrip().partition("\n")[0]
    return max(reversed(DELIMITERS), key=first_line.count)


def _cells(text: str, delimiter: str) -> Iterator[Record]:
    """Line and cells of every record that is not blank."""
    lines = (match[0] for match in LINE.finditer(text))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, cells
        line = reader.line_num + 1


def _records(name: str, text: str, delimiter: str) -> Iterator[Record]:
    """Line and cells of every record that is not blank, all of the first one's width."""
    width = line = 0
    try:
        for line, cells in _cells(text, delimiter):
            width = width or len(cells)
            if len(cells) != width:
                raise TableError(
                    f"{name}, line {line}: found {len(cells)} cells separated by {delimiter!r} "
                    f"where the first line has {width}. Give every line the same number of cells "
                    "and quote cells that hold the delimiter."
                )
            yield line, cells
    except csv.Error as error:
        raise TableError(
            f"{name} is not well-formed CSV after line {line}: {error}. Look for a quotation "
            "mark that is not closed."
        ) from error


def _is_data(cells: list[str]) -> bool:
    """Whether the first record is a row: numbers, and possibly gaps between them."""
    present = [cell for cell in cells if not is_missing(cell)]
    return bool(present) and all(map(is_number, present))


def _rows(sheet: Sheet) -> Iterator[Record]:
    """Line and cells of every row below the column names."""
    records = _records(sheet.name, sheet.text, sheet.delimiter)
    return islice(records, int(sheet.has_header), None)


def parse(sheet: Sheet) -> tuple[Numbers, set[int]]:
    """Line and numbers of every row, NaN where there is none, and which columns hold text."""
    lines, values, text_columns = list[int](), array("d"), set[int]()
    for line, cells in _rows(sheet):
        for j in text_columns:
            cells[j] = "nan"  # known to be text: a row is not slowed down twice for it
        try:
            numbers = list(map(float, cells))
        except ValueError:
            numbers = []
        if not numbers or "_" in "".join(cells):
            found = list(map(number_or_none, cells))
            text_columns.update(j for j, value in enumerate(found) if value is None)
            numbers = [np.nan if value is None else value for value in found]
        values.extend(numbers)
        lines.append(line)
    rows = np.array(values, dtype=np.float64).reshape(len(lines), len(sheet.columns))
    return (lines, np.ascontiguousarray(rows.T)), text_columns


def _texts(sheet: Sheet, columns: Collection[int]) -> dict[int, list[str | None]]:
    """Cells of some columns as they are written, without the space around them."""
    texts: dict[int, list[str | None]] = {j: [] for j in sorted(columns)}
    if not texts:
        return texts
    for _, cells in _rows(sheet):
        for j, column in texts.items():
            column.append(None if is_missing(cells[j]) else cells[j].strip())
    return texts


def parse_quickly(sheet: Sheet) -> Numbers | None:
    """What `parse` gives, by PyArrow; None where that is absent or the two might differ.

    They agree where every cell is a finite number that PyArrow takes, where no quotation mark,
    blank line or lone carriage return changes what a line is, and where no cell is longer than
    the standard library allows.
    """
    content = sheet.text.encode()
    n_lines = _count_lines(content)
    if n_lines is None or '"' in sheet.text:
        return None
    try:
        numbers = _arrow_numbers(sheet, content)
    except (ImportError, ValueError, OSError):  # pyarrow.ArrowInvalid is a ValueError
        return None
    n_rows = n_lines - int(sheet.has_header)
    if numbers.shape != (len(sheet.columns), n_rows) or not np.isfinite(numbers).all():
        return None
    return range(1 + int(sheet.has_header), n_lines + 1), numbers


def _count_lines(content: bytes) -> int | None:
    """Number of lines, None where they may be cut in several ways or are very long."""
    if content.count(b"\r") != content.count(b"\r\n"):
        return None
    ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("\n"))
    ends = np.concatenate([[-1], ends, [len(content)] if content[-1:] != b"\n" else []])
    return len(ends) - 1 if np.diff(ends).max() < csv.field_size_limit() else None


def _arrow_numbers(sheet: Sheet, content: bytes) -> NDArray[np.float64]:
    """Columns (d, n) as PyArrow reads them; an empty list of null values makes gaps an error."""
    arrow: Any = importlib.import_module("pyarrow")
    arrow_csv: Any = importlib.import_module("pyarrow.csv")
    names = [str(j) for j in range(len(sheet.columns))]
    table = arrow_csv.read_csv(
        arrow.BufferReader(content),
        arrow_csv.ReadOptions(column_names=names, skip_rows=int(sheet.has_header)),
        arrow_csv.ParseOptions(delimiter=sheet.delimiter, quote_char=False),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.float64()), null_values=[]
        ),
    )
    return np.array([column.to_numpy() for column in table.columns], dtype=np.float64)
