"""Parquet and Feather -> raw table, by PyArrow, after a check of the sizes that files declare."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import shown
from gammagmm.errors import MissingExtraError, TableError
from gammagmm.readers.raw_table import (
    NO_FRACTION,
    NOT_READABLE,
    RawTable,
    check_names,
    typed_texts,
    written_cells,
)
from gammagmm.readers.source import CELL_BYTES, Source, check_expansion, refusing

__all__ = ["message_bytes", "parquet_chunks", "read_feather", "read_parquet"]

BATCH_ROWS = 4096
FILE_MAGIC = b"ARROW1\0\0"
MAX_DEPTH = 16
# Fields of a Parquet footer, of its row groups, its column chunks and their pages.
GROUPS, COLUMNS, N_ROWS, CHUNK = 4, 1, 3, 3
N_VALUES, CHUNK_SIZE, DATA_START, DICTIONARY_START = 5, 7, 9, 11
UNPACKED_SIZE, PACKED_SIZE = 2, 3
# Fields of an Arrow message and of its batches.
HEADER, BUFFERS, COMPRESSION, DICTIONARY = 2, 2, 3, 1
HEADER_TYPE, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3

Struct = dict[int, Any]  # fields by their numbers


@dataclass
class Meter:
    """Number of bytes that a file has expanded to so far."""

    source: Source
    n_bytes: int = 0

    def add(self, n_bytes: int) -> None:
        """Add bytes; too many for the size of the file are a `TableError`."""
        self.n_bytes += n_bytes
        check_expansion(self.source.name, self.n_bytes, len(self.source.content))


def read_parquet(source: Source) -> RawTable:
    """Raw table of a Parquet file."""
    arrow, parquet = _import(source, "pyarrow"), _import(source, "pyarrow.parquet")
    # On a damaged file PyArrow raises its own exceptions, Python's and those of Unicode.
    with refusing(source.name, (Exception,), "Write it again as Parquet."):
        buffer = arrow.BufferReader(source.content)
        file = parquet.ParquetFile(buffer)
        kinds = _kinds(source, arrow, file.schema_arrow)
        Meter(source).add(file.metadata.num_rows * file.metadata.num_columns * CELL_BYTES)
        meter = Meter(source)
        for n_cells, n_bytes in parquet_chunks(source.content):
            meter.add(n_cells * CELL_BYTES + n_bytes)
        # A text that a column repeats is kept once: else a kilobyte could become gigabytes.
        texts = [name for name, kind in kinds.items() if kind == "text"]
        readable = [name for name, kind in kinds.items() if kind != "other"]
        again = parquet.ParquetFile(buffer, read_dictionary=texts)
        batches = again.iter_batches(BATCH_ROWS, columns=readable)
        return _collect(source, arrow, file.schema_arrow, kinds, batches)


def read_feather(source: Source) -> RawTable:
    """Raw table of a Feather file, which is Arrow's own format, as a file or as a stream."""
    arrow = _import(source, "pyarrow")
    # A file is a stream with an index after it, which in a hostile file may point anywhere.
    start = len(FILE_MAGIC) if source.content.startswith(FILE_MAGIC) else 0
    with refusing(source.name, (Exception,), "Write it again as Feather."):
        buffer = arrow.py_buffer(source.content)[start:]
        meter = Meter(source)
        for message in arrow.ipc.MessageReader.open_stream(buffer):
            meter.add(message_bytes(message.metadata.to_pybytes(), memoryview(message.body or b"")))
        schema = arrow.ipc.open_stream(buffer).schema
        kinds = _kinds(source, arrow, schema)
        readable = [j for j, kind in enumerate(kinds.values()) if kind != "other"]
        options = arrow.ipc.IpcReadOptions(included_fields=readable)
        batches = arrow.ipc.open_stream(buffer, options=options)
        return _collect(source, arrow, schema, kinds, batches)


def _import(source: Source, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        needs = f"Reading {source.name} needs PyArrow"
        raise MissingExtraError(needs, "data", name="pyarrow") from None


def _kinds(source: Source, arrow: Any, schema: Any) -> dict[str, str]:
    """Kind of each column by its name: "number", "text", "time" or "other"."""
    check_names(source.name, tuple(schema.names))
    return {field.name: _kind(arrow.types, field.type) for field in schema}


def _kind(types: Any, declared: Any) -> str:
    kind = _value_type(types, declared)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "time"
    are_numbers = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    is_number = types.is_null(kind) or any(is_kind(kind) for is_kind in are_numbers)
    return "number" if is_number else "other"


def _value_type(types: Any, declared: Any) -> Any:
    """The type itself, or the type of the categories of a dictionary."""
    return declared.value_type if types.is_dictionary(declared) else declared


def _times(arrow: Any, array: Any) -> list[str | None]:
    """Dates and times as ISO 8601 writes them, in UTC if they have a zone; equal ones are one."""
    kind = _value_type(arrow.types, array.type)
    plain = arrow.date32() if arrow.types.is_date(kind) else arrow.timestamp("us")
    moments = array.cast(kind).cast(plain, safe=False).to_numpy(zero_copy_only=False)
    distinct, places = np.unique(moments, return_inverse=True)
    days = distinct.astype("M8[D]") if arrow.types.is_date(kind) else distinct
    texts = [None if np.isnat(day) else str(day).removesuffix(NO_FRACTION) for day in days]
    return [texts[place] for place in places]


def _collect(
    source: Source, arrow: Any, schema: Any, kinds: Mapping[str, str], batches: Iterable[Any]
) -> RawTable:
    """Raw table of batches of the readable columns; each is validated before its cells are read."""
    meter, parts = Meter(source), {name: list[Any]() for name in kinds}
    for batch in batches:
        batch.validate(full=True)
        meter.add(batch.num_rows * len(kinds) * CELL_BYTES)
        for name, kind in kinds.items():
            if kind == "other":
                parts[name] += [NOT_READABLE] * batch.num_rows
            else:
                parts[name] += _read_cells(arrow, batch.column(name), kind, meter)
    data = tuple(_column(arrow, kind, parts[name]) for name, kind in kinds.items())
    refused = {
        j: TableError(
            f"{source.name}, column {shown(name)}: the type {str(schema.field(j).type)[:100]} "
            "cannot be read",
            "Write the column as numbers or text, or leave it out.",
        )
        for j, name in enumerate(kinds)
        if kinds[name] == "other"
    }

    def write_cells(j: int) -> list[str | None]:
        field = schema.field(j)
        if kinds[field.name] != "number":
            return parts[field.name]
        if not arrow.types.is_integer(_value_type(arrow.types, field.type)):
            return written_cells(data[j])
        # Whole numbers above 2**53 are usually ids: all their digits are kept.
        digits = (array.cast(arrow.string()).to_pylist() for array in parts[field.name])
        return list(chain.from_iterable(digits))

    return RawTable(source.name, tuple(kinds), data, None, write_cells, refused=refused)


def _read_cells(arrow: Any, array: Any, kind: str, meter: Meter) -> list[Any]:
    """Cells of dates and texts as text; numbers stay an array, in a list of its own."""
    if kind == "number":
        return [array.cast(_value_type(arrow.types, array.type))]
    return _times(arrow, array) if kind == "time" else _texts(arrow, array, meter)


def _texts(arrow: Any, array: Any, meter: Meter) -> list[str | None]:
    """Cells of a column of text; equal categories are one object."""
    if arrow.types.is_dictionary(array.type):
        values = _texts(arrow, array.dictionary, meter)
        return [None if i is None else values[i] for i in array.indices.to_pylist()]
    texts = []
    for cell in array:  # one by one: many views may show the same megabyte
        texts.append(cell.as_py())
        meter.add(len(texts[-1] or ""))
    return texts


def _column(arrow: Any, kind: str, cells: list[Any]) -> NDArray[Any]:
    if kind != "number":
        return typed_texts(cells)
    floats = (array.cast(arrow.float64(), safe=False) for array in cells)
    numbers = [array.to_numpy(zero_copy_only=False) for array in floats]
    return np.concatenate([np.empty(0), *numbers]).astype(np.float64)


def parquet_chunks(content: bytes) -> Iterator[tuple[int, int]]:
    """Number of cells and unpacked size of every column chunk of a Parquet file.

    PyArrow's metadata gives only some of it, and ends the process on some damaged files.
    """
    n_footer = struct.unpack_from("<I", content, len(content) - 8)[0]
    footer = Compact(content, max(len(content) - 8 - n_footer, 0)).struct()
    for group in footer.get(GROUPS, []):
        for column in group[COLUMNS]:
            chunk = column[CHUNK]
            start, dictionary = chunk[DATA_START], chunk.get(DICTIONARY_START, 0)
            start = dictionary if 0 < dictionary < start else start
            n_cells = max(group[N_ROWS], chunk[N_VALUES])
            # A chunk without cells is not read, and its position may be wrong.
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
    """Reader of Thrift's compact protocol; it keeps whole numbers, lists and structs."""

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
            raise ValueError("its metadata are nested too deeply")
        field, found = 0, {}
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 15
            found[field] = None if kind in (1, 2) else self.value(kind, depth)
        return found

    def value(self, kind: int, depth: int) -> Any:
        """A value; None for text and fractions, which are skipped."""
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
    """Unpacked size of the buffers of an Arrow message; 0 for a message without buffers."""
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
    """Position of a field of a FlatBuffers table; 0 if the table does not have it."""
    vtable = table - struct.unpack_from("<i", content, table)[0]
    place = 4 + 2 * number
    if vtable < 0 or place >= struct.unpack_from("<H", content, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", content, vtable + place)[0]
    return table + offset if offset else 0


def _follow(content: bytes, table: int, number: int) -> int:
    """Position that a field points to; 0 if the table does not have the field."""
    field = _field(content, table, number)
    return field + struct.unpack_from("<I", content, field)[0] if field else 0
