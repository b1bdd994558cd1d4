"""A path or standard input -> bytes; files that expand into gigabytes are refused."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gammagmm._support.text import listed, shown
from gammagmm.errors import Note, TableError

__all__ = [
    "CELL_BYTES",
    "STANDARD_INPUT",
    "Asked",
    "Source",
    "check_expansion",
    "decode",
    "decode_any",
    "is_text",
    "open_source",
    "refusing",
    "unpacked",
]

STANDARD_INPUT = "standard input"
# Text formats, which may be compressed as .gz or .zip; the others have their own compression.
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".arff", ".json", ".jsonl", ".ndjson")

CELL_BYTES = 8  # memory that one number of a table takes
MAX_TABLE_BYTES = 4_000_000_000
# Up to MAX_FREE_BYTES any file may expand; a larger result needs a file of a plausible size.
# Numbers as text shrink to about a third, and gzip cannot shrink anything below 1/1032.
MAX_FREE_BYTES = 100_000_000
MAX_EXPANSION = 1000
CHUNK_BYTES = 1 << 20
PACKED_CHUNK_BYTES = 1 << 16
GZIP_BITS = 31  # the code of zlib for such a stream
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MARKS = (codecs.BOM_UTF8, *UTF_16_MARKS)
CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")  # no text has these bytes
PACKED_MARK = b"PK\x03\x04"
MIN_WIDE, MAX_ODD = 20, 2_000
"""Bytes in which every other one is NUL where a text is UTF-16 without a byte order mark."""
MAX_REASON = 300  # characters that are quoted from the message of a library


@dataclass(frozen=True)
class Asked:
    """What the user says about how a file is written.

    Attributes
    ----------
    header : int or None
        Number of the line, or row of a sheet, that has the names of the columns.
    skip : tuple of int
        Numbers of lines, or rows, that are left out.
    decimal : {"", ".", ","}
        The decimal mark of all numbers; empty where the cells decide.
    encoding : str
        The encoding of a text file; empty where its bytes decide.
    is_strict : bool
        Whether every line below the names is data, and cells with words are no numbers.
    """

    header: int | None = None
    skip: tuple[int, ...] = ()
    decimal: Literal["", ".", ","] = ""
    encoding: str = ""
    is_strict: bool = False


@dataclass(frozen=True, repr=False)
class Source:
    """Bytes of one file.

    Attributes
    ----------
    name : str
        The name of the file in messages.
    suffix : str
        Format, in lower case and without ".gz" or ".zip": ".csv", ".parquet", ...
    content : bytes
        The whole file, decompressed if it is a ".gz" or ".zip".
    digest : str
        SHA-256 of the file on disk.
    asked : Asked
        What the user says about how it is written.
    """

    name: str
    suffix: str
    content: bytes
    digest: str = ""
    asked: Asked = Asked()

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {len(self.content)} bytes)"


def open_source(path: str | os.PathLike[str], suffixes: Collection[str]) -> Source:
    """The file at `path`, or standard input if that is "-", in one of the formats `suffixes`."""
    if str(path) == "-":
        content = _join_chunks(STANDARD_INPUT, _input_chunks())
        return Source(STANDARD_INPUT, ".csv", content, hashlib.sha256(content).hexdigest())
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist", "Check the path and the working directory.")
    if path.is_dir():
        raise TableError(f"{path} is a folder", "Give the path of one file.")
    suffix = path.suffix.lower()
    suffix = suffix if suffix == ".zip" else _format_suffix(path, suffixes)
    try:
        content = path.read_bytes()
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise TableError(what, "Check the file and its permissions.") from error
    digest = hashlib.sha256(content).hexdigest()
    if path.suffix.lower() == ".gz":
        advice = "Compress it again with gzip, or give the decompressed file."
        with refusing(str(path), (zlib.error,), advice):
            content = _gunzip(str(path), content)
    source = Source(str(path), suffix, content, digest)
    return _only_member(source, suffixes) if suffix == ".zip" else source


def _only_member(source: Source, suffixes: Collection[str]) -> Source:
    """The only file in a .zip."""
    name = source.name
    with (
        refusing(name, (Exception,), "Compress it again, or give the decompressed file."),
        zipfile.ZipFile(io.BytesIO(source.content)) as archive,
    ):
        members = [
            member
            for member in archive.infolist()
            if not member.is_dir() and not member.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            names = listed(member.filename for member in members)
            raise TableError(
                f"{name} contains {len(members)} files: {names}",
                "Give a .zip with one file, or the decompressed files.",
            )
        [member] = members
        suffix = Path(member.filename).suffix.lower()
        if suffix not in suffixes or suffix not in TEXT_SUFFIXES:
            raise TableError(
                f"{name} contains {shown(member.filename)}, which cannot be read inside a .zip",
                f"Decompress it first; a .zip may contain {', '.join(TEXT_SUFFIXES)}.",
            )
        [(_, content)] = unpacked(source, archive, [member])
        return replace(source, suffix=suffix, content=content)


def unpacked(
    source: Source, archive: zipfile.ZipFile, members: Collection[zipfile.ZipInfo]
) -> Iterator[tuple[str, bytes]]:
    """Name and contents of these members of a file, once the sizes they declare were checked."""
    # Other methods decompress any amount at once, whatever size is declared.
    if {member.compress_type for member in members} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError("it uses an unsupported compression method")
    # The sum, not each one: members that share their bytes would pass one by one.
    n_bytes = sum(member.file_size for member in members)
    check_expansion(source.name, n_bytes, len(source.content))
    for member in members:
        yield member.filename, archive.read(member)


def _format_suffix(path: Path, suffixes: Collection[str]) -> str:
    """Suffix that names the format of a file; a ".gz" after it is ignored."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower()
        if suffix in suffixes and suffix not in TEXT_SUFFIXES:
            what = f"{path} is a {suffix} file inside a .gz, which cannot be read"
            raise TableError(what, "Decompress it first.")
    if suffix not in suffixes:
        raise TableError(
            f"{path} has the suffix {path.suffix!r}, which cannot be read",
            f"Save the table in one of these formats: {', '.join(suffixes)}; text formats may be "
            "compressed as .gz or .zip.",
        )
    return suffix


def _input_chunks() -> Iterator[tuple[bytes, int]]:
    """Chunks of standard input, each with the number of bytes that were read so far."""
    n_read = 0
    while chunk := sys.stdin.buffer.read(CHUNK_BYTES):
        n_read += len(chunk)
        yield chunk, n_read


def _inflate(packed: bytes) -> Iterator[tuple[bytes, int]]:
    """Decompressed chunks of gzip streams, each with the number of bytes used so far.

    The standard library's GzipFile reads ahead, so it does not know how many bytes a chunk used.
    """
    position, unpacker = 0, zlib.decompressobj(GZIP_BITS)
    while position < len(packed):
        if unpacker.eof:
            if packed[position] == 0:  # padding; no stream begins with 0
                return
            unpacker = zlib.decompressobj(GZIP_BITS)
        piece = packed[position : position + PACKED_CHUNK_BYTES]
        chunk = unpacker.decompress(piece, CHUNK_BYTES)
        left = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        position += len(piece) - len(left)
        yield chunk, position
    if not unpacker.eof:
        raise zlib.error("the file is incomplete")


def _gunzip(name: str, packed: bytes) -> bytes:
    """The decompressed content; nothing of it is kept before its size is known."""
    for _ in _checked(name, _inflate(packed)):
        pass
    return b"".join(chunk for chunk, _ in _inflate(packed))


def _join_chunks(name: str, chunks: Iterable[tuple[bytes, int]]) -> bytes:
    """All chunks as one; a `TableError` as soon as `check_expansion` refuses their size.

    Each chunk comes with the number of bytes of the file that it and those before it used.
    """
    return b"".join(_checked(name, chunks))


def _checked(name: str, chunks: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
    """The chunks, up to the one with which their size is refused."""
    n_bytes = 0
    for chunk, n_used in chunks:
        n_bytes += len(chunk)
        check_expansion(name, n_bytes, n_used)
        yield chunk


def check_expansion(name: str, n_bytes: int, n_used: int) -> None:
    """Refuse to fill `n_bytes` of memory from `n_used` bytes of a file if that is too much."""
    if n_bytes > MAX_TABLE_BYTES:
        raise TableError(
            f"{name} takes more than {MAX_TABLE_BYTES / 1e9:g} GB in memory, which is the limit",
            "Give fewer rows or columns.",
        )
    if n_bytes > MAX_FREE_BYTES and n_bytes > MAX_EXPANSION * n_used:
        raise TableError(
            f"{name} expands to more than {MAX_EXPANSION} times its size and more than "
            f"{MAX_FREE_BYTES / 1e6:g} MB, which is unusual for a table",
            "Check where the file comes from.",
        )


def decode(source: Source) -> str:
    """Text of a file without its byte order mark: UTF-8, or UTF-16 if the mark says so.

    It is in the encoding that the user gave, if any.
    """
    content = source.content
    if encoding := source.asked.encoding:
        with refusing(source.name, (UnicodeError,), "Give the encoding of the file."):
            return content.decode(encoding).removeprefix("\ufeff")
    if content.startswith(UTF_16_MARKS):
        with refusing(source.name, (UnicodeDecodeError,), "Save the file as UTF-8."):
            text = content.decode("utf-16")
        if "\0" not in text:
            return text
    if encoding := _unmarked_utf_16(content):
        with refusing(source.name, (UnicodeDecodeError,), "Save the file as UTF-8."):
            return content.decode(encoding)
    if content.startswith(PACKED_MARK):
        raise TableError(
            f"{source.name} is a workbook or another packed file, and no text",
            "Give it the suffix of its format, such as .xlsx or .ods.",
        )
    position = content.find(b"\0")
    if position >= 0:
        raise TableError(
            f"{source.name} contains a NUL byte at byte {position + 1}, so it is not plain "
            "UTF-8 text",
            f"Save it as {source.suffix[1:].upper()} in UTF-8, not in UTF-16 or a spreadsheet's "
            "own format.",
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{source.name} is not UTF-8: byte {error.start + 1} (0x{content[error.start]:02x}) "
            f"on line {line} cannot be decoded",
            "Save the file as UTF-8.",
        ) from error


def is_text(source: Source) -> bool:
    """Whether the content is text in some encoding."""
    try:
        decode_any(source)
    except TableError:
        return False
    return source.content.startswith(UTF_16_MARKS) or not CONTROLS.search(source.content)


def _unmarked_utf_16(content: bytes) -> str:
    """The encoding of UTF-16 without a byte order mark; empty for other texts."""
    first = content[:MAX_ODD]
    n_zeros = [first[i::2].count(0) for i in (0, 1)]
    is_mixed = min(n_zeros) > 0 or len(content) < MIN_WIDE or 4 * max(n_zeros) < len(first)
    return "" if is_mixed else "utf-16-be" if n_zeros[0] else "utf-16-le"


def decode_any(source: Source) -> tuple[str, tuple[Note, ...]]:
    """Text of a file, and a note if it is neither UTF-8 nor UTF-16.

    Any bytes are text in Windows-1252 or Latin-1, so control characters are refused there.
    """
    try:
        return decode(source), ()
    except TableError:
        content = source.content
        if source.asked.encoding or content.startswith(MARKS) or CONTROLS.search(content):
            raise
    try:
        text, name = content.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        text, name = content.decode("latin-1"), "Latin-1"
    return text, (Note.of("tables.encoding", source.name, encoding=name),)


@contextmanager
def refusing(name: str, kinds: tuple[type[Exception], ...], advice: str) -> Iterator[None]:
    """Turn the exceptions `kinds`, which a library raises on a damaged file, into `TableError`."""
    try:
        yield
    except (TableError, MemoryError):
        raise
    except kinds as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0][:MAX_REASON].rstrip(".")
        raise TableError(f"{name} cannot be read: {reason}", advice) from error
