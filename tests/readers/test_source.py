"""Files and standard input as bytes: names, compression, sizes and encodings."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tracemalloc
import zipfile
from types import SimpleNamespace

import pytest

from gammagmm.errors import Note, TableError
from gammagmm.readers import source as sources
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of


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
    monkeypatch.setattr(sources, "MAX_TABLE_BYTES", 1_500_000)
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


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\xef\xbb\xbfa,b\n1,\xe92\n", "t.csv"),  # a mark of UTF-8 that is wrong
        (b"a,bcd\n\x01,\xe92\n", "t.csv"),  # no text at all
        (b'{"a": 1,\n"b\xe9": 2}', "t.jsonl"),  # JSON is UTF-8
    ],
)
def test_wrong_encoding(write, content, name):
    message = rf"is not UTF-8: byte {content.index(0xE9) + 1} \(0xe9\) on line 2 .* Save the file"
    with pytest.raises(TableError, match=message):
        read_raw(write(content, name))


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("cp1252", "Windows-1252"),
        ("latin-1", "Latin-1"),
    ],
)
def test_encodings(write, encoding, note):
    # The byte of the second sign is no letter in Windows-1252.
    names = {"cp1252": "größe in €", "latin-1": "größe \x81"}.get(encoding, "größe in € \u4e2d")
    path = write(f"{names},b\n1,ä\n2,ö\n".encode(encoding))
    raw = read_raw(path)
    assert columns_of(raw) == {names: [1.0, 2.0], "b": ["ä", "ö"]}
    assert raw.notes == (
        () if note is None else (Note.of("tables.encoding", str(path), encoding=note),)
    )


def test_utf_16_of_either_order(write):
    text = "a\tb\r\n1\t\u20ac 2\r\n"
    for order in ("le", "be"):
        raw = read_raw(write(("\ufeff" + text).encode(f"utf-16-{order}"), "t.txt"))
        assert columns_of(raw) == {"a": [1.0], "b": [2.0]}
    raw = read_raw(write('{"a": 1}'.encode("utf-16"), "t.jsonl"))
    assert columns_of(raw) == {"a": [1.0]}


@pytest.mark.parametrize("n_lost", [1, 2])
def test_damaged_utf_16(write, n_lost):
    content = "a,b\n1,\U0001f600".encode("utf-16")[:-n_lost]
    with pytest.raises(
        TableError, match=r"t\.csv cannot be read: 'utf-16.* Save the file as UTF-8"
    ):
        read_raw(write(content, "t.csv"))


def test_nul_bytes(write):
    message = r"contains a NUL byte at byte 2, .* not in UTF-16"
    with pytest.raises(TableError, match=message):
        read_raw(write("a,b\n1,2\n".encode("utf-16-le")))  # without its mark
    with pytest.raises(TableError, match=r"contains a NUL byte"):
        read_raw(write("a,b\n1,\0\n".encode("utf-16")))


def zipped(members, method=zipfile.ZIP_DEFLATED):
    """A .zip with these files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize("name", ["t.csv", "folder/t.TXT", "../../t.tsv"])
def test_a_zip_with_one_table(write, name):
    content = zipped({name: "a\tb\n1\t2\n", "__MACOSX/._t.csv": "x", "folder/": ""})
    raw = read_raw(write(content, "t.zip"))
    assert columns_of(raw) == {"a": [1.0], "b": [2.0]}
    assert raw.digest == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped({"a.csv": "x", "b.csv": "y"}), r"contains 2 files: 'a\.csv', 'b\.csv'\. Give a"),
        (zipped({str(i): "" for i in range(30)}), r"30 files: '0', .* '19' and 10 more\. Give"),
        (zipped({}), r"contains 0 files: "),
        (zipped({"t.parquet": "x"}), r"contains 't\.parquet', which cannot be read inside a \.zip"),
        (zipped({"t.zip": "x"}), r"contains 't\.zip', .* Decompress it first; a \.zip may contain"),
        (zipped({"t.csv": "a"}, zipfile.ZIP_LZMA), r"uses an unsupported compression method"),
        (zipped({"t.csv": "a"})[:-5], r"t\.zip cannot be read: .*\. Compress it again"),
        (b"a,b\n1,2\n", r"t\.zip cannot be read: File is not a zip file\. Compress it again"),
    ],
    ids=lambda value: value if isinstance(value, str) else "zip",  # a zip contains the time
)
def test_a_zip_that_is_refused(write, content, message):
    with pytest.raises(TableError, match=message):
        read_raw(write(content, "t.zip"))


def test_a_zip_bomb_is_refused_before_it_is_decompressed(write, monkeypatch):
    monkeypatch.setattr(sources, "MAX_FREE_BYTES", 1_000_000)
    content = bytearray(zipped({"t.csv": b"0" * 10_000_000}))
    with pytest.raises(TableError, match=r"t\.zip expands to more than 1000 times its size"):
        read_raw(write(bytes(content), "t.zip"))
    # A size that is declared too small only cuts the file, which its checksum then shows.
    for place in (content.rindex(b"PK\x01\x02") + 24, 22):
        content[place : place + 4] = (1000).to_bytes(4, "little")
    with pytest.raises(TableError, match=r"t\.zip cannot be read: Bad CRC-32"):
        read_raw(write(bytes(content), "t.zip"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(write, encoding):
    raw = read_raw(write("Ort;Größe\nÅmål;1,5\nLund;2,5\n".encode(encoding)))
    assert columns_of(raw) == {"Ort": ["Åmål", "Lund"], "Größe": [1.5, 2.5]}


def test_a_workbook_with_the_name_of_a_text_is_named_as_such(write):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(TableError, match="is a workbook"):
        read_raw(write(packed.getvalue()))
