"""CSV and TSV -> raw table; the standard library's parser defines what a file means."""

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
    numbered_names,
    text_column,
)
from gammagmm.readers.source import Source, decode

__all__ = ["read_delimited"]

# If two delimiters split the first lines equally well ("1,5;2,5"), the earlier one is chosen:
# commas occur inside cells far more often than semicolons and tabs do.
DELIMITERS = ("\t", ";", ",")
N_SNIFFED_RECORDS = 50
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Below this size PyArrow saves less time than its import takes.
MIN_QUICK_CHARACTERS = 1_000_000

Record = tuple[int, list[str]]  # 1-based line of the file, cells


@dataclass(frozen=True, repr=False)
class DelimitedText:
    """Text with a known delimiter and known columns."""

    name: str
    text: str
    delimiter: str
    columns: tuple[str, ...]
    has_header: bool


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a table: d columns of n rows."""

    lines: list[int] | range  # line of each row
    values: NDArray[np.float64]  # (d, n), NaN where a cell is missing or text
    text_columns: frozenset[int] = frozenset()


def read_delimited(source: Source) -> RawTable:
    """Raw table of a CSV or TSV file."""
    table = open_text(source)
    numbers = parse_quickly(table) if len(table.text) > MIN_QUICK_CHARACTERS else None
    numbers = numbers or parse(table)
    if not numbers.lines:
        raise TableError(
            f"{table.name} contains column names but no rows", "Add the rows below them."
        )
    data: list[NDArray[Any]] = list(numbers.values)
    for j, cells in _texts(table, numbers.text_columns).items():
        data[j] = text_column(cells)

    def cells_of(j: int) -> list[str | None]:
        return _texts(table, {j})[j]

    return RawTable(table.name, table.columns, tuple(data), numbers.lines, cells_of)


def open_text(source: Source) -> DelimitedText:
    """Text of a file, with the delimiter and the columns that its first lines show."""
    text = decode(source)
    delimiter = "\t" if source.suffix == ".tsv" else _sniff_delimiter(text)
    first = next(_records(source.name, text, delimiter), None)
    if first is None:
        raise TableError(f"{source.name} is empty", "Give a file with at least one row of numbers.")
    line, cells = first
    present = [cell for cell in cells if not is_missing(cell)]
    if present and all(map(is_number, present)):  # a row, possibly with missing values
        columns = numbered_names(len(cells))
        return DelimitedText(source.name, text, delimiter, columns, has_header=False)
    columns = tuple(cell.strip() for cell in cells)
    check_names(f"{source.name}, line {line}", columns)
    return DelimitedText(source.name, text, delimiter, columns, has_header=True)


def _sniff_delimiter(text: str) -> str:
    """Delimiter that splits each of the first records into the same number of cells, above one."""
    for delimiter in DELIMITERS:
        try:
            sample = list(islice(_cells(text, delimiter), N_SNIFFED_RECORDS))
        except csv.Error:
            continue
        widths = {len(cells) for _, cells in sample}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    # No delimiter fits: the most frequent one on the first line gives the best error message.
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
    """Line and cells of every record that is not blank; all must have as many cells as the first.

    The first record is the column names or, where a file has none, a row.
    """
    width = line = 0
    try:
        for line, cells in _cells(text, delimiter):
            width = width or len(cells)
            if len(cells) != width:
                raise TableError(
                    f"{name}, line {line}: found {len(cells)} cells separated by {delimiter!r} "
                    f"where the first line has {width}",
                    "Give every line the same number of cells and quote cells that contain the "
                    "delimiter.",
                )
            yield line, cells
    except csv.Error as error:
        raise TableError(
            f"{name} is not well-formed CSV after line {line}: {error}",
            "Look for a quotation mark that is not closed.",
        ) from error


def _rows(table: DelimitedText) -> Iterator[Record]:
    """Line and cells of every row below the column names."""
    records = _records(table.name, table.text, table.delimiter)
    return islice(records, int(table.has_header), None)


def parse(table: DelimitedText) -> Numbers:
    """Numbers of every row, by the standard library; a column with any text is a text column."""
    lines, values, text_columns = list[int](), array("d"), set[int]()
    for line, cells in _rows(table):
        for j in text_columns:
            cells[j] = "nan"  # known to be text, so that it does not send each row the slow way
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
    rows = np.array(values, dtype=np.float64).reshape(len(lines), len(table.columns))
    return Numbers(lines, np.ascontiguousarray(rows.T), frozenset(text_columns))


def _texts(table: DelimitedText, columns: Collection[int]) -> dict[int, list[str | None]]:
    """Cells of some columns as they are written, without the space around them."""
    texts: dict[int, list[str | None]] = {j: [] for j in sorted(columns)}
    if not texts:
        return texts
    for _, cells in _rows(table):
        for j, column in texts.items():
            column.append(None if is_missing(cells[j]) else cells[j].strip())
    return texts


def parse_quickly(table: DelimitedText) -> Numbers | None:
    """The result of `parse`, by PyArrow; None if PyArrow is missing or might read it differently.

    The two agree if every cell is a finite number that PyArrow accepts, if no quotation mark,
    blank line or lone carriage return changes the lines, and if no cell is longer than the
    standard library allows.
    """
    content = table.text.encode()
    n_lines = _count_lines(content)
    if n_lines is None or '"' in table.text:
        return None
    try:
        values = _arrow_values(table, content)
    except (ImportError, ValueError, OSError):  # pyarrow.ArrowInvalid is a ValueError
        return None
    n_rows = n_lines - int(table.has_header)
    if values.shape != (len(table.columns), n_rows) or not np.isfinite(values).all():
        return None
    return Numbers(range(1 + int(table.has_header), n_lines + 1), values)


def _count_lines(content: bytes) -> int | None:
    """Number of lines, None if parsers may split them differently or if one is very long."""
    if content.count(b"\r") != content.count(b"\r\n"):
        return None
    ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("\n"))
    ends = np.concatenate([[-1], ends, [len(content)] if content[-1:] != b"\n" else []])
    return len(ends) - 1 if np.diff(ends).max() < csv.field_size_limit() else None


def _arrow_values(table: DelimitedText, content: bytes) -> NDArray[np.float64]:
    """Columns (d, n) as PyArrow reads them; with no null values a missing cell is an error."""
    arrow: Any = importlib.import_module("pyarrow")
    arrow_csv: Any = importlib.import_module("pyarrow.csv")
    names = [str(j) for j in range(len(table.columns))]
    read = arrow_csv.read_csv(
        arrow.BufferReader(content),
        arrow_csv.ReadOptions(column_names=names, skip_rows=int(table.has_header)),
        arrow_csv.ParseOptions(delimiter=table.delimiter, quote_char=False),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, arrow.float64()), null_values=[]
        ),
    )
    return np.array([column.to_numpy() for column in read.columns], dtype=np.float64)
