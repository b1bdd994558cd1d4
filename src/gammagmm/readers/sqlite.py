"""A table of an SQLite database -> raw table; nothing that a database computes is run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from gammagmm._support.text import listed, shown
from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.source import CELL_BYTES, Source, check_expansion, refusing
from gammagmm.readers.values import table_of_values

__all__ = ["read_sqlite"]

MAGIC = b"SQLite format 3\0"
VERSIONS = slice(18, 20)  # 1 for a database alone, 2 for one with a log beside it
MAX_ROW_BYTES = 50_000_000
STEPS_PER_CALL = 10_000
MIN_STEPS, STEPS_PER_BYTE = 10_000_000, 100
"""Steps of SQLite's machine after which a damaged database, which may go in circles, is refused."""
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 "
    "AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
)
COMPUTED = 2  # the mark of columns that functions compute when they are read
BINARY = "(binary)"


def read_sqlite(source: Source, table: str | None) -> RawTable:
    """Raw table of the table `table`, or of the largest one."""
    if not source.content.startswith(MAGIC):
        raise TableError(f"{source.name} is not an SQLite database", "Give an SQLite 3 file.")
    with (
        refusing(source.name, (Exception,), "Write the database again: it may be damaged."),
        closing(sqlite3.connect(":memory:")) as connection,
    ):
        _load(source, connection)
        chosen, notes = _chosen(source, connection, table)
        return _read(source, connection, chosen, notes)


def _load(source: Source, connection: sqlite3.Connection) -> None:
    """Copy the database into memory: no other file is opened, and reading it has limits."""
    content = bytearray(source.content)
    content[VERSIONS] = b"\1\1"  # what is only in the log is not read
    connection.deserialize(bytes(content))
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    n_calls = (MIN_STEPS + STEPS_PER_BYTE * len(content)) // STEPS_PER_CALL
    calls = iter(range(n_calls))
    connection.set_progress_handler(lambda: next(calls, None) is None, STEPS_PER_CALL)


def _chosen(
    source: Source, connection: sqlite3.Connection, table: str | None
) -> tuple[str, list[Note]]:
    """The name of the table that is read, and a note if others are not."""
    names = [name for (name,) in connection.execute(TABLES)]
    if not names:
        raise TableError(f"{source.name} contains no table", "Give a database with a table.")
    if table is not None and table not in names:
        raise TableError(
            f"{source.name} has no table {shown(table)}", f"Choose one of: {listed(names)}."
        )
    if table is not None:
        return table, []
    largest = max(names, key=lambda name: _n_cells(connection, name))
    others = listed(name for name in names if name != largest)
    read = {"sheet": shown(largest), "others": others}
    return largest, [Note.of("tables.sheet", source.name, **read)] if others else []


def _n_cells(connection: sqlite3.Connection, table: str) -> int:
    n_columns = len(connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall())
    [(n_rows,)] = connection.execute(f"SELECT count(*) FROM {_quoted(table)}")
    return n_columns * int(n_rows)


def _authorize(action: int, *_: Any) -> int:
    """Tables may be read, and nothing else may be done."""
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def _read(
    source: Source, connection: sqlite3.Connection, table: str, notes: list[Note]
) -> RawTable:
    information = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    names = [column[1] for column in information if column[6] != COMPUTED]
    notes += [
        Note.of("tables.computed", column[1]) for column in information if column[6] == COMPUTED
    ]
    connection.set_authorizer(_authorize)
    cursor = connection.execute(f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}")
    columns = list[list[Any]]([] for _ in names)
    n_bytes = 0
    for row in cursor:
        for column, cell in zip(columns, row, strict=True):
            column.append(BINARY if isinstance(cell, bytes) else cell)
            n_bytes += CELL_BYTES + (len(cell) if isinstance(cell, str | bytes) else 0)
        check_expansion(source.name, n_bytes, len(source.content))
    notes += [
        Note.of("tables.binary", name)
        for name, column in zip(names, columns, strict=True)
        if BINARY in column
    ]
    pairs = zip(names, columns, strict=True)
    return table_of_values(source.name, dict(pairs), notes=notes)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
