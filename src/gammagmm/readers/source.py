"""A path or standard input -> bytes, never gigabytes from a kilobyte."""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gammagmm.errors import TableError

__all__ = [
    "STANDARD_INPUT",
    "Source",
    "check_expansion",
    "decode",
    "inflate",
    "open_source",
    "refusing",
]

STANDARD_INPUT = "standard input"
# Formats of text, which may be packed with gzip; the others pack their own contents.
TEXT_SUFFIXES = (".csv", ".tsv", ".arff", ".jsonl", ".ndjson")

MAX_BYTES = 4_000_000_000
# A small file may expand as it likes; beyond this size it must have had something to expand from.
# Numbers as text shrink to a third or so, and gzip cannot shrink anything below 1/1032.
MAX_FREE_BYTES = 100_000_000
MAX_EXPANSION = 1000
CHUNK_BYTES = 1 << 20
MAX_REASON = 300  # characters of what a library says
PACKED_CHUNK_BYTES = 1 << 16
ZLIB_BITS, GZIP_BITS = 15, 31  # as zlib wants to be told what kind of stream it is


@dataclass(frozen=True, repr=False)
class Source:
    """Bytes of one file.

    Attributes
    ----------
    name : str
        The name that messages give it.
    suffix : str
        Format, in lower case and without ".gz": ".csv", ".parquet", ...
    content : bytes
        The whole file, unpacked where it was a ".gz".
    digest : str
        SHA-256 of the file as it lies there.
    """

    name: str
    suffix: str
    content: bytes
    digest: str = ""

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {len(self.content)} bytes)"


def open_source(path: str | os.PathLike[str], suffixes: Collection[str]) -> Source:
    """The file at `path`, or standard input where that is "-", in one of the formats `suffixes`."""
    if str(path) == "-":
        content = _read_input()
        return Source(STANDARD_INPUT, ".csv", content, _digest(content))
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist. Check the path and the working directory.")
    if path.is_dir():
        raise TableError(f"{path} is a folder. Give the path of one file.")
    suffix = _suffix(path, suffixes)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    is_packed = path.suffix.lower() == ".gz"
    unpacked = _unpack(str(path), content) if is_packed else content
    return Source(str(path), suffix, unpacked, _digest(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _suffix(path: Path, suffixes: Collection[str]) -> str:
    """Suffix of the format of a file, which stands before ".gz"."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower()
        if suffix in suffixes and suffix not in TEXT_SUFFIXES:
            raise TableError(
                f"{path} is a {suffix} file inside a .gz, which cannot be read. Unpack it first."
            )
    if suffix not in suffixes:
        raise TableError(
            f"{path} has the suffix {path.suffix!r}, which cannot be read. Save the table in one "
            f"of these formats: {', '.join(suffixes)}; those of text may be packed as .gz."
        )
    return suffix


def _read_input() -> bytes:
    """Standard input, a chunk at a time, so that the limit holds before memory is full."""
    chunks, n_bytes = [], 0
    while chunk := sys.stdin.buffer.read(CHUNK_BYTES):
        n_bytes += len(chunk)
        check_expansion(STANDARD_INPUT, n_bytes, n_bytes)
        chunks.append(chunk)
    return b"".join(chunks)


def _unpack(name: str, content: bytes) -> bytes:
    """Contents of a gzip file, read only as far as they are believable."""
    chunks, n_bytes = [], 0
    with refusing(name, (zlib.error,), "Pack it again with gzip, or give the unpacked file."):
        for chunk, n_taken in inflate(content, GZIP_BITS):
            n_bytes += len(chunk)
            check_expansion(name, n_bytes, n_taken)
            chunks.append(chunk)
    return b"".join(chunks)


def inflate(packed: bytes, bits: int) -> Iterator[tuple[bytes, int]]:
    """Unpacked chunks of zlib or gzip streams, each with how many packed bytes it took so far.

    The standard library's GzipFile reads ahead, so it cannot tell how much a chunk took.
    """
    position, unpacker = 0, zlib.decompressobj(bits)
    while position < len(packed):
        if unpacker.eof:
            if packed[position] == 0:  # padding; no stream begins with 0
                return
            unpacker = zlib.decompressobj(bits)
        piece = packed[position : position + PACKED_CHUNK_BYTES]
        chunk = unpacker.decompress(piece, CHUNK_BYTES)
        left = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        position += len(piece) - len(left)
        yield chunk, position
    if not unpacker.eof:
        raise zlib.error("it is cut off")


def check_expansion(name: str, n_bytes: int, n_taken: int) -> None:
    """Refuse to fill `n_bytes` of memory, and to do so from only `n_taken` bytes of a file."""
    if n_bytes > MAX_BYTES:
        raise TableError(
            f"{name} holds more than {MAX_BYTES / 1e9:g} GB when unpacked, which is the limit. "
            "Give fewer rows or columns."
        )
    if n_bytes > MAX_FREE_BYTES and n_bytes > MAX_EXPANSION * n_taken:
        raise TableError(
            f"{name} expands more than {MAX_EXPANSION}-fold, to over {MAX_FREE_BYTES / 1e6:g} MB, "
            "which no honest table does. Check where it comes from."
        )


def decode(source: Source) -> str:
    """Text of a UTF-8 file without its byte order mark."""
    content = source.content
    position = content.find(b"\0")
    if position >= 0:
        raise TableError(
            f"{source.name} holds a NUL byte at byte {position + 1}, so it is not plain UTF-8 "
            f"text. Save it as {source.suffix[1:].upper()} in UTF-8, not in UTF-16 or a "
            "spreadsheet's own format."
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{source.name} is not UTF-8: byte {error.start + 1} (0x{content[error.start]:02x}) "
            f"on line {line} cannot be decoded. Save the file as UTF-8."
        ) from error


@contextmanager
def refusing(name: str, kinds: tuple[type[Exception], ...], advice: str) -> Iterator[None]:
    """Turn what a library says of a damaged file into a `TableError`."""
    try:
        yield
    except TableError:
        raise
    except kinds as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0][:MAX_REASON].rstrip(".")
        raise TableError(f"{name} cannot be read: {reason}. {advice}") from error
