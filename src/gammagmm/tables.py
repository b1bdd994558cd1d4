"""A file on disk -> numeric table with column names, or a clear refusal."""

from __future__ import annotations

import csv
import io
import math
import os
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError

__all__ = ["Table", "read_table"]

# Where two delimiters split the first lines equally well ("1,5;2,5"), the earlier one is meant:
# commas stand inside cells far more often than semicolons and tabs do.
DELIMITERS = ("\t", ";", ",")
N_SNIFFED_RECORDS = 50
MISSING_MARKERS = frozenset({"", "?", "na", "n/a", "nan", "none", "null"})
MAX_SHOWN_CHARACTERS = 40

Record = tuple[int, list[str]]  # 1-based line of the file, cells


@dataclass(frozen=True, eq=False)
class Table:
    """Finite numbers with column names.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        One row of the file each, float64.
    columns : tuple of str
        Names of the columns, all different.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]

    def __repr__(self) -> str:
        n_rows, n_columns = self.values.shape
        return f"Table({n_rows} rows, {n_columns} columns)"


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Numeric table in the file at `path`.

    A CSV file is UTF-8 text whose cells are separated by commas, semicolons or tabs. Its first
    line holds the column names; where that line is all numbers it is data, and the columns are
    named "x1", "x2", ... Blank lines are skipped.

    Parameters
    ----------
    path : str or path-like
        A file whose name ends in ".csv".

    Returns
    -------
    Table
        The values, all finite, and the column names.

    Raises
    ------
    TableError
        What is wrong, in which column and on which line, and what to do about it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sizes.csv")
    ...     _ = path.write_text("width;height\n1;2.5\n3;4\n")
    ...     table = read_table(path)
    >>> table.columns, table.values.tolist()
    (('width', 'height'), [[1.0, 2.5], [3.0, 4.0]])
    """
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path and the working directory.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Give the path of one file.")
    if path.suffix.lower() not in _READERS:
        raise TableError(
            f"{path} has the suffix {path.suffix!r}, which cannot be read. "
            f"Save the table in one of these formats: {', '.join(_READERS)}."
        )
    return _READERS[path.suffix.lower()](path)


def _read_csv(path: Path) -> Table:
    """Table of a CSV file: text, then records, then names and numbers."""
    text = _decode(path)
    records = _records(path, text, _sniff_delimiter(text))
    first = next(records, None)
    if first is None:
        raise TableError(f"{path} is empty. Give a file with at least one row of numbers.")
    if _is_data(first[1]):
        columns = tuple(f"x{j}" for j in range(1, len(first[1]) + 1))
        records = chain([first], records)
    else:
        columns = _column_names(path, first)
    lines, values = _parse(path, records, columns)
    if not lines:
        raise TableError(f"{path} holds column names but no rows. Add the rows below them.")
    _refuse_non_finite(path, values, lines, columns)
    return Table(values, columns)


def _decode(path: Path) -> str:
    """Text of a UTF-8 file without its byte order mark."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    position = content.find(b"\0")
    if position >= 0:
        raise TableError(
            f"{path} holds a NUL byte at byte {position + 1}, so it is not plain UTF-8 text. "
            "Save it as CSV in UTF-8, not in UTF-16 or a spreadsheet's own format."
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{path} is not UTF-8: byte {error.start + 1} (0x{content[error.start]:02x}) "
            f"on line {line} cannot be decoded. Save the file as UTF-8."
        ) from error


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
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, cells
        line = reader.line_num + 1


def _records(path: Path, text: str, delimiter: str) -> Iterator[Record]:
    """Line and cells of every record that is not blank, all of the first one's width."""
    width = line = 0
    try:
        for line, cells in _cells(text, delimiter):
            width = width or len(cells)
            if len(cells) != width:
                raise TableError(
                    f"{path}, line {line}: found {len(cells)} cells separated by {delimiter!r} "
                    f"where the first line has {width}. Give every line the same number of cells "
                    "and quote cells that hold the delimiter."
                )
            yield line, cells
    except csv.Error as error:
        raise TableError(
            f"{path} is not well-formed CSV after line {line}: {error}. Look for a quotation "
            "mark that is not closed."
        ) from error


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING_MARKERS


def _is_number(cell: str) -> bool:
    """Whether `cell` is a number; Python's "1_000" is not one."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _is_data(cells: list[str]) -> bool:
    """Whether the first record is a row: numbers, and possibly gaps between them."""
    present = [cell for cell in cells if not _is_missing(cell)]
    return bool(present) and all(map(_is_number, present))


def _column_names(path: Path, header: Record) -> tuple[str, ...]:
    line, cells = header
    names = tuple(cell.strip() for cell in cells)
    if "" in names:
        raise TableError(
            f"{path}, line {line}: column {names.index('') + 1} has no name. Name it, or remove it "
            "if it is a row index (pandas: to_csv(..., index=False))."
        )
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise TableError(
            f"{path}, line {line}: column name {_shown(repeated[0])} stands "
            f"{names.count(repeated[0])} times. Give every column a name of its own."
        )
    return names


def _parse(
    path: Path, records: Iterator[Record], columns: tuple[str, ...]
) -> tuple[list[int], NDArray[np.float64]]:
    """Line and values of every row; missing values are NaN."""
    lines, values = [], array("d")
    for line, cells in records:
        try:
            numbers = [float(cell) for cell in cells]
        except ValueError:
            numbers = _numbers_with_gaps(path, (line, cells), columns)
        if "_" in "".join(cells):
            numbers = _numbers_with_gaps(path, (line, cells), columns)
        values.extend(numbers)
        lines.append(line)
    return lines, np.array(values, dtype=np.float64).reshape(len(lines), len(columns))


def _numbers_with_gaps(path: Path, record: Record, columns: tuple[str, ...]) -> list[float]:
    """Values of one row, NaN where they are missing; text is refused."""
    line, cells = record
    for column, cell in zip(columns, cells, strict=True):
        if not _is_missing(cell) and not _is_number(cell):
            raise TableError(
                f"{path}, column {_shown(column)}, line {line}: found {_shown(cell)}, which is "
                f"not a number. {_advice(cell)}"
            )
    return [math.nan if _is_missing(cell) else float(cell) for cell in cells]


def _advice(cell: str) -> str:
    if _is_number(cell.replace(",", ".", 1)):
        return "Write decimals with a point, not with a comma."
    return "Remove the column or replace its text by numbers."


def _refuse_non_finite(
    path: Path, values: NDArray[np.float64], lines: list[int], columns: tuple[str, ...]
) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    row, column = np.argwhere(~finite)[0]
    n_missing = int(np.isnan(values).sum())
    n_infinite = int(np.isinf(values).sum())
    raise TableError(
        f"{path} holds {n_missing} missing and {n_infinite} infinite values; the first is in "
        f"column {_shown(columns[column])}, line {lines[row]}. Remove those rows or columns, or "
        "fill them in."
    )


def _shown(text: str) -> str:
    """`text` in quotes, cut where it is long."""
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


# A further format is one more entry.
_READERS: dict[str, Callable[[Path], Table]] = {".csv": _read_csv}
