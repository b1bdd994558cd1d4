"""How many bytes packed pages and messages declare to become, read before anything is unpacked.

Of Parquet's page headers and Arrow's messages just as much is understood as that takes. See
https://parquet.apache.org/docs/file-format and https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["message_bytes", "page_bytes"]

UNPACKED_SIZE, PACKED_SIZE = 2, 3  # fields of a page header
HEADER, BUFFERS, COMPRESSION, DICTIONARY = 2, 2, 3, 1  # fields of a message and of its batches
HEADER_TYPE, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3


def page_bytes(content: bytes, start: int, n_packed: int) -> int:
    """Unpacked size of the pages of a column chunk that begins at `start`."""
    total, position, end = 0, start, min(start + n_packed, len(content))
    while position < end:
        reader = Compact(content, position)
        sizes = dict(reader.struct())
        packed = sizes.get(PACKED_SIZE, -1)
        if packed < 0:
            raise ValueError("a page has no size")
        total += max(sizes.get(UNPACKED_SIZE, 0), 0)
        position = reader.position + packed
    return total


class Compact:
    """Reader of Thrift's compact protocol, of which whole numbers are kept and the rest skipped."""

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

    def struct(self, depth: int = 0) -> Iterator[tuple[int, int]]:
        """Number and value of the fields of a struct that are whole numbers."""
        if depth > 8:
            raise ValueError("a page header is nested too deep")
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            if head & 15 in (4, 5, 6):
                yield field, self.zigzag()
            else:
                self.skip(head & 15, depth)

    def skip(self, kind: int, depth: int) -> None:
        """Go past a value of a kind that is no whole number."""
        if kind == 12:
            for _ in self.struct(depth + 1):
                pass
        elif kind in (3, 7):
            self.position += 1 if kind == 3 else 8
        elif kind == 8:
            n_bytes = self.varint()
            self.position += n_bytes
        elif kind not in (1, 2):
            raise ValueError(f"a page header has a field of the kind {kind}")


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
