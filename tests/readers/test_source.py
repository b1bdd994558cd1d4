"""Files and standard input as bytes: names, compression, sizes and encodings."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tracemalloc
from types import SimpleNamespace

import pytest

from gammagmm.errors import TableError
from gammagmm.readers import source as sources
from gammagmm.readers.registry import read_raw


def test_missing_file(tmp_path):
    with pytest.raises(TableError, match=r"no\.csv does not exist\. Check the path"):
        read_raw(tmp_path / "no.csv")


def test_folder(tmp_path):
    with pytest.raises(TableError, match=r"is a folder\. Give the path of one file"):
        read_raw(tmp_path)


def test_a_file_that_may_not_be_read(write):
    path = write("a\n1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    message = r"table\.csv cannot be read: Permission denied\. Check the file and its permissions"
    with pytest.raises(TableError, match=message):
        read_raw(path)


@pytest.fixture
def read_input(monkeypatch):
    """Reader of a table whose content comes on standard input."""

    def read(content):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        return read_raw("-")

    return read


def test_standard_input(read_input):
    raw = read_input(b"a;b\n1;2\n")
    assert (raw.source, raw.columns, raw.place(0)) == ("standard input", ("a", "b"), "line 2")
    with pytest.raises(TableError, match="standard input is empty"):
        read_input(b"")


@pytest.mark.parametrize("name", ["table.csv.gz", "TABLE.TSV.GZ"])
def test_packed_text(write, name):
    raw = read_raw(write(gzip.compress(b"a\tb\n1\t2\n", mtime=0), name))
    assert raw.columns == ("a", "b")
    assert raw.source.endswith(name)


def test_packed_parts_and_padding(write):
    parts = gzip.compress(b"a,b\n1,2", mtime=0) + gzip.compress(b"2\n" + b"3,4\n" * 10**6, mtime=0)
    raw = read_raw(write(parts + bytes(50), "table.csv.gz"))
    assert raw.n_rows == 10**6 + 1
    assert [column[:2].tolist() for column in raw.data] == [[1.0, 3.0], [22.0, 4.0]]


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", gzip.compress(b"a,b\n" * 99, mtime=0)[:-9]])
def test_damaged_gzip(write, content):
    message = r"table\.csv\.gz cannot be read: .*\. Compress it again with gzip"
    with pytest.raises(TableError, match=message):
        read_raw(write(content, "table.csv.gz"))


def test_only_text_may_be_packed(write):
    with pytest.raises(TableError, match=r"is a \.npy file inside a \.gz, .* Decompress it first"):
        read_raw(write(b"", "table.npy.gz"))
    with pytest.raises(TableError, match=r"has the suffix '\.gz', which cannot be read"):
        read_raw(write(b"", "table.gz"))


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(write):
    zeros = gzip.compress(b"0" * 10**7, 9, mtime=0)
    path = write(zeros * 400, "bomb.csv.gz")  # 4 GB
    tracemalloc.start()
    message = (
        r"bomb\.csv\.gz expands to more than 1000 times its size and more than 100 MB, .* Check w"
    )
    with pytest.raises(TableError, match=message):
        read_raw(path)
    assert path.stat().st_size < 4e6
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # It is refused at a hundred million of its four thousand million bytes.
    assert peak < 5e8


def test_the_size_limit_holds_for_files_that_expand_slowly(write, read_input, monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 1_500_000)
    text = b"a\n" + b"1\n" * 10**6
    message = r"takes more than 0\.0015 GB in memory, which is the limit\. Give fewer rows"
    with pytest.raises(TableError, match=message):
        read_raw(write(gzip.compress(text, mtime=0), "table.csv.gz"))
    with pytest.raises(TableError, match=f"standard input {message}"):
        read_input(text)


def test_a_large_file_may_expand_as_tables_do():
    sources.check_expansion("t.csv.gz", 200_000_000, 200_000)
    sources.check_expansion("t.csv.gz", 100_000_000, 1)
    with pytest.raises(TableError, match=r"t\.csv\.gz expands to more than 1000 times"):
        sources.check_expansion("t.csv.gz", 200_000_001, 200_000)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_wrong_encoding(write, mark):
    content = mark + b"a,b\n1,\xe92\n"
    message = rf"is not UTF-8: byte {7 + len(mark)} \(0xe9\) on line 2 .* Save the file as UTF-8"
    with pytest.raises(TableError, match=message):
        read_raw(write(content))


def test_nul_bytes(write):
    with pytest.raises(TableError, match=r"contains a NUL byte at byte 4, .* not in UTF-16"):
        read_raw(write("a,b\n1,2\n".encode("utf-16")))
