"""Tables of SQLite databases; views, functions and other files stay untouched."""

from __future__ import annotations

import sqlite3

import pytest

from gammagmm.errors import Note, TableError
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of

ROWS = "CREATE TABLE rows (id TEXT, a REAL, n INTEGER, price, day DATE);"
VALUES = (
    "INSERT INTO rows VALUES ('007', 1.5, 3, '1.185,43', '2024-12-31'), (NULL, NULL, 4, 2, '');"
)


@pytest.fixture
def database(tmp_path):
    """Maker of a database by a script; its path comes back."""

    def make(script, name="t.sqlite"):
        path = tmp_path / name
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.commit()
        connection.close()
        return path

    return make


@pytest.mark.parametrize("name", ["t.sqlite", "t.sqlite3", "t.db"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_values(database, name, mode):
    path = database(f"PRAGMA journal_mode = {mode}; {ROWS}{VALUES}", name)
    raw = read_raw(path)
    assert columns_of(raw) == {
        "id": ["007", None],
        "a": [1.5, None],
        "n": [3.0, 4.0],
        "price": [1185.43, 2.0],
        "day": ["2024-12-31", None],
    } | {"id": [7.0, None]}
    assert raw.cells(0) == ["007", None]
    assert raw.place(1) == "row 2"
    assert sorted(entry.name for entry in path.parent.iterdir()) == [name]


def test_several_tables(database):
    path = database(
        f'{ROWS}{VALUES} CREATE TABLE "the ""other""" (x); INSERT INTO "the ""other""" VALUES (5);'
    )
    raw = read_raw(path)
    assert columns_of(raw) == columns_of(read_raw(path, table="rows"))
    assert [note.code for note in raw.notes].count("tables.sheet") == 1
    assert columns_of(read_raw(path, table='the "other"')) == {"x": [5.0]}
    with pytest.raises(TableError, match=r"has no table 'x'\. Choose one of: 'rows', 'the"):
        read_raw(path, table="x")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("CREATE TABLE t (a); DROP TABLE t;", r"contains no table\. Give a database with a table"),
        ("CREATE TABLE t (a);", r"contains no rows or no columns"),
    ],
)
def test_databases_that_are_refused(database, script, message):
    with pytest.raises(TableError, match=message):
        read_raw(database(script))


def test_views_are_no_tables(database):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    path = database(f"{ROWS}{VALUES} CREATE VIEW v AS {endless};")
    assert read_raw(path).n_rows == 2
    with pytest.raises(TableError, match=r"has no table 'v'"):
        read_raw(path, table="v")


def test_columns_that_the_database_computes_are_left_out(database):
    path = database("CREATE TABLE t (a, b AS (zeroblob(900000000))); INSERT INTO t VALUES (1);")
    raw = read_raw(path)
    assert columns_of(raw) == {"a": [1.0]}
    assert raw.notes == (Note.of("tables.computed", "b"),)


def test_binary_data(database):
    raw = read_raw(database("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, x'00ff'), (2, NULL);"))
    assert columns_of(raw) == {"a": [1.0, 2.0], "b": ["(binary)", None]}
    assert raw.notes == (Note.of("tables.binary", "b"),)


def test_other_files(write):
    with pytest.raises(TableError, match=r"t\.db is not an SQLite database\. Give an SQLite 3"):
        read_raw(write(b"something else", "t.db"))
