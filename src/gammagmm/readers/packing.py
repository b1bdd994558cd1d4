"""How many bytes packed pages and messages declare to become, read before anything is unpacked.

Of Parquet's page headers and Arrow's messages just as much is understood as that takes. See
https://parquet.apache.org/docs/file-format and https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

__all__ = ["message_bytes", "parquet_chunks"]

MAX_DEPTH = 16

# Fields of a Parquet footer, of its row groups, its column chunks and their pages.
GROUPS, COLUMNS, N_ROWS, CHUNK = 4, 1, 3, 3
N_VALUES, CHUNK_SIZE, DATA_START, DICTIONARY_START = 5, 7, 9, 11
UNPACKED_SIZE, PACKED_SIZE = 2, 3
# Fields of an Arrow message and of its batches.
HEADER, BUFFERS, COMPRESSION, DICTIONARY = 2, 2, 3, 1
HEADER_TYPE, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3

Struct = dict[int, Any]  # fields by their numbers


def parquet_chunks(content: bytes) -> Iterator[tuple[int, int]]:
    """Number of cells and unpacked size of every column chunk of a Parquet file.

    PyArrow's metadata would tell some of it, and ends the process on some damaged files.
    """
    n_footer = struct.unpack_from("<I", content, len(content) - 8)[0]
    footer = Compact(content, max(len(content) - 8 - n_footer, 0)).struct()
    for group in footer.get(GROUPS, []):
        for column in group[COLUMNS]:
            chunk = column[CHUNK]
            start, dictionary = chunk[DATA_START], chunk.get(DICTIONARY_START, 0)
            start = dictionary if 0 < dictionary < start else start
            n_cells = max(group[N_ROWS], chunk[N_VALUES])
            # A chunk without cells is not looked into, and need not say where it is.
            yield n_cells, _page_bytes(content, start, chunk[CHUNK_SIZE]) if n_cells > 0 else 0


def _page_bytes(content: bytes, start: int, n_packed: int) -> int:
    """Unpacked size of the pages of a column chunk that begins at `start`."""
    total, position, end = 0, max(start, 0), min(start + n_packed, len(content))
    while position < end:
        reader = Compact(content, position)
        page = reader.struct()
        total += max(page[UNPACKED_SIZE], 0)
        position = reader.position + max(page[PACKED_SIZE], 0)
    return total


class Compact:
    """Reader of Thrift's compact protocol; whole numbers, lists and structs are kept."""

    def __init__(self, content: bytes, position: int) -> None:
        self.content, self.position = content, position

    def byte(self) -> int:
        """The next byte; an IndexError at the end."""
        self.position += 1
        return self.content[self.position - 1]

    def varint(self) -> int:
        """A whole number of at most 64 bits, seven to a byte."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number is too long")

    def zigzag(self) -> int:
        """A number that may be negative."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def struct(self, depth: int = 0) -> Struct:
        """The fields of a struct."""
        if depth > MAX_DEPTH:
            raise ValueError("its metadata are nested too deep")
        field, found = 0, {}
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 15
            found[field] = None if kind in (1, 2) else self.value(kind, depth)
        return found

    def value(self, kind: int, depth: int) -> Any:
        """A value; None for text and fractions, which are gone past."""
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (9, 10):
            return self.items(depth)
        if kind not in (1, 2, 3, 7, 8):
            raise ValueError(f"its metadata have a field of the kind {kind}")
        n_bytes = self.varint() if kind == 8 else 8 if kind == 7 else 1
        self.position += n_bytes
        return None

    def items(self, depth: int) -> list[Any]:
        """A list or a set."""
        head = self.byte()
        n_items = head >> 4 if head >> 4 < 15 else self.varint()
        if n_items > len(self.content):
            raise ValueError("a list is longer than the file")
        return [self.value(head & 15, depth + 1) for _ in range(n_items)]


def message_bytes(metadata: bytes, body: memoryview) -> int:
    """Unpacked size of the buffers of an Arrow message; 0 for one that has none."""
    message = struct.unpack_from("<I", metadata)[0]
    kind_at = _field(metadata, message, HEADER_TYPE)
    kind, batch = metadata[kind_at] if kind_at else 0, _follow(metadata, message, HEADER)
    if kind == DICTIONARY_BATCH and batch:
        batch = _follow(metadata, batch, DICTIONARY)
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH) or not batch:
        return 0
    vector = _follow(metadata, batch, BUFFERS)
    n_buffers = struct.unpack_from("<I", metadata, vector)[0] if vector else 0
    is_packed = _field(metadata, batch, COMPRESSION) > 0
    total = 0
    for i in range(n_buffers):
        offset, n_bytes = struct.unpack_from("<qq", metadata, vector + 4 + 16 * i)
        if is_packed and n_bytes >= 8:
            declared = struct.unpack_from("<q", body, offset)[0]
            n_bytes = n_bytes if declared == -1 else declared
        if n_bytes < 0 or offset < 0:
            raise ValueError("a buffer has a size below 0")
        total += n_bytes
    return total


def _field(content: bytes, table: int, number: int) -> int:
    """Position of a field of a FlatBuffers table; 0 where it is left out."""
    vtable = table - struct.unpack_from("<i", content, table)[0]
    place = 4 + 2 * number
    if vtable < 0 or place >= struct.unpack_from("<H", content, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", content, vtable + place)[0]
    return table + offset if offset else 0


def _follow(content: bytes, table: int, number: int) -> int:
    """Position of what a field points to; 0 where it is left out."""
    field = _field(content, table, number)
    return field + struct.unpack_from("<I", content, field)[0] if field else 0
