"""A file on disk -> raw table; the suffix names the reader."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from gammagmm._support.text import shown
from gammagmm.errors import NoRowsError, Note, TableError
from gammagmm.readers.arff import read_arff
from gammagmm.readers.arrays import read_npy, read_npz
from gammagmm.readers.arrow import read_feather, read_parquet
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.json import read_json, read_json_lines
from gammagmm.readers.matlab import read_mat
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.source import Asked, Source, decode_any, is_text, open_source
from gammagmm.readers.spreadsheet import read_workbook
from gammagmm.readers.sqlite import read_sqlite

__all__ = ["read_raw"]

# A new format is one more entry here; if it is text, also in `source.TEXT_SUFFIXES`.
READERS: dict[str, Callable[[Source], RawTable]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".txt": read_delimited,
    ".parquet": read_parquet,
    ".feather": read_feather,
    ".arrow": read_feather,
    ".arff": read_arff,
    ".mat": read_mat,
    ".npy": read_npy,
    ".npz": read_npz,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}
# Files with several tables: the second argument is the name of one of them, or None.
TABLE_READERS: dict[str, Callable[[Source, str | None], RawTable]] = {
    ".xlsx": read_workbook,
    ".ods": read_workbook,
    ".sqlite": read_sqlite,
    ".sqlite3": read_sqlite,
    ".db": read_sqlite,
}
WORKBOOKS = (".xlsx", ".ods")
"""Packed files, under whose names some programs save text."""


def read_raw(
    path: str | os.PathLike[str], *, table: str | None = None, asked: Asked | None = None
) -> RawTable:
    r"""Everything in the file at `path`: numbers, text and missing values.

    The suffix names the format: .csv, .tsv or .txt, .xlsx, .ods, .parquet, .feather or .arrow,
    .arff, .mat, .npy, .npz, .json, .jsonl or .ndjson, .sqlite, .sqlite3 or .db; text formats may
    be compressed as .gz or .zip. The path "-" is CSV text on standard input.

    The cells of a CSV file are separated by commas, semicolons, tabs or pipes. Its first line
    contains the column names; if that line has only numbers, it is data, and the columns are
    named "x1", "x2", ... Blank lines are skipped, and so are titles above the names, units below
    them, sums, remarks and further tables, in text and in sheets. Numbers may have decimal commas,
    separators of thousands, currency signs and percent signs; `notes` of the result says how they
    were read.

    Parameters
    ----------
    path : str or path-like
        A file, or "-".
    table : str, default=None
        The sheet of a workbook or the table of a database; the other formats have only one.
    asked : Asked or None, default=None
        What the user says about how the file is written.

    Returns
    -------
    RawTable
        Columns of numbers and of text, with at least one row.

    Raises
    ------
    TableError
        The file cannot be read. The message says what is wrong, in which column and on which line
        or row, and what to do.
    MissingExtraError
        The format needs PyArrow or python-calamine, which is not installed.

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
    source = replace(open_source(path, [*READERS, *TABLE_READERS]), asked=asked or Asked())
    if not source.content:
        raise NoRowsError(
            f"{source.name} is empty", "Give a file with at least one row of numbers."
        )
    notes = list[Note]()
    if source.suffix in WORKBOOKS and is_text(source):
        if decode_any(source)[0].lstrip().startswith("<"):
            raise TableError(
                f"{source.name} is a web page or XML under the name of a workbook",
                "Open it in a spreadsheet, and save it as .xlsx or as CSV.",
            )
        source = replace(source, suffix=".csv")
        notes.append(Note.of("tables.text", source.name))
    if source.suffix in TABLE_READERS:
        raw = TABLE_READERS[source.suffix](source, table)
    elif table is None:
        raw = READERS[source.suffix](source)
    else:
        raise TableError(
            f"{source.name} is a single table, so it has no table {shown(table)}",
            "Leave out --table: it names a sheet of a workbook or a table of a database.",
        )
    if not raw.n_rows:
        raise NoRowsError(
            f"{raw.source} contains no rows or no columns",
            "Give a file that has both.",
            raw.columns,
        )
    return replace(raw, digest=source.digest, notes=(*notes, *raw.notes))
