"""A file on disk -> numeric table with column names, or a clear refusal."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.arff import read_arff
from gammagmm.readers.arrays import read_mat, read_npy, read_npz
from gammagmm.readers.arrow import read_feather, read_parquet
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.json_lines import read_json_lines
from gammagmm.readers.raw_table import RawTable, describe_text, first_text, is_number, shown
from gammagmm.readers.source import Source, open_source

__all__ = ["RawTable", "Table", "read_raw", "read_table"]


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


def read_raw(path: str | os.PathLike[str]) -> RawTable:
    r"""Everything in the file at `path`: numbers, text and gaps.

    The suffix names the format: .csv, .tsv, .parquet, .feather or .arrow, .arff, .mat, .npy, .npz,
    .jsonl or .ndjson; the text formats may be packed as .gz. A path "-" is CSV text on standard
    input.

    A CSV file is UTF-8 text whose cells are separated by commas, semicolons or tabs. Its first
    line holds the column names; where that line is all numbers it is data, and the columns are
    named "x1", "x2", ... Blank lines are skipped.

    Parameters
    ----------
    path : str or path-like
        A file, or "-".

    Returns
    -------
    RawTable
        Columns of numbers and of text, with at least one row.

    Raises
    ------
    TableError
        What is wrong, in which column and on which line or row, and what to do about it.
    MissingExtraError
        The format needs PyArrow, which is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sizes.csv")
    ...     _ = path.write_text("width;colour\n1;red\n;blue\n")
    ...     raw = read_raw(path)
    >>> raw.columns, [column.tolist() for column in raw.data], raw.place(1)
    (('width', 'colour'), [[1.0, nan], ['red', 'blue']], 'line 3')
    """
    source = open_source(path, _READERS)
    if not source.content:
        raise TableError(f"{source.name} is empty. Give a file with at least one row of numbers.")
    raw = _READERS[source.suffix](source)
    if not raw.n_rows:
        raise TableError(f"{raw.source} holds no rows or no columns. Give a file that has some.")
    return replace(raw, digest=source.digest)


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Numeric table in the file at `path`; text and missing values are refused.

    Parameters
    ----------
    path : str or path-like
        A file in one of the formats of `read_raw`.

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
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sizes.csv")
    ...     _ = path.write_text("width;height\n1;2.5\n3;4\n")
    ...     table = read_table(path)
    >>> table.columns, table.values.tolist()
    (('width', 'height'), [[1.0, 2.5], [3.0, 4.0]])
    """
    raw = read_raw(path)
    _refuse_text(raw)
    values = np.column_stack(raw.data)
    _refuse_non_finite(raw, values)
    return Table(values, raw.columns)


def _refuse_text(raw: RawTable) -> None:
    text_columns = [j for j in range(len(raw.columns)) if raw.is_text(j)]
    if not text_columns:
        return
    sentence, cell = describe_text(raw, min(text_columns, key=lambda j: first_text(raw.data[j])))
    if is_number(cell.replace(",", ".", 1)):
        raise TableError(f"{sentence} Write decimals with a point, not with a comma.")
    raise TableError(f"{sentence} Remove the column or replace its text by numbers.")


def _refuse_non_finite(raw: RawTable, values: NDArray[np.float64]) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    row, column = np.argwhere(~finite)[0]
    n_missing = int(np.isnan(values).sum())
    n_infinite = int(np.isinf(values).sum())
    raise TableError(
        f"{raw.source} holds {n_missing} missing and {n_infinite} infinite values; the first is in "
        f"column {shown(raw.columns[column])}, {raw.place(int(row))}. Remove those rows or "
        "columns, or fill them in."
    )


# A further format is one more entry.
_READERS: dict[str, Callable[[Source], RawTable]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".parquet": read_parquet,
    ".feather": read_feather,
    ".arrow": read_feather,
    ".arff": read_arff,
    ".mat": read_mat,
    ".npy": read_npy,
    ".npz": read_npz,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}
