"""Parquet and Feather -> raw table, by PyArrow."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
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
from gammagmm.readers.source import Source, refusing
from gammagmm.readers.values import with_read_texts

__all__ = ["read_feather", "read_parquet"]

BATCH_ROWS = 4096
FILE_MAGIC = b"ARROW1\0\0"


def read_parquet(source: Source) -> RawTable:
    """Raw table of a Parquet file."""
    arrow, parquet = _import(source, "pyarrow"), _import(source, "pyarrow.parquet")
    # On a damaged file PyArrow raises its own exceptions, Python's and those of Unicode.
    with refusing(source.name, (Exception,), "Write it again as Parquet."):
        buffer = arrow.BufferReader(source.content)
        schema = parquet.read_schema(buffer)
        kinds = _kinds(source, arrow, schema)
        # A text that a column repeats is kept once.
        texts = [name for name, kind in kinds.items() if kind == "text"]
        readable = [name for name, kind in kinds.items() if kind != "other"]
        file = parquet.ParquetFile(buffer, read_dictionary=texts)
        batches = file.iter_batches(BATCH_ROWS, columns=readable, use_threads=False)
        return _collect(source, arrow, schema, kinds, batches)


def read_feather(source: Source) -> RawTable:
    """Raw table of a Feather file, which is Arrow's own format, as a file or as a stream."""
    arrow = _import(source, "pyarrow")
    is_file = source.content.startswith(FILE_MAGIC)
    open_ipc = arrow.ipc.open_file if is_file else arrow.ipc.open_stream
    with refusing(source.name, (Exception,), "Write it again as Feather."):
        buffer = arrow.py_buffer(source.content)
        schema = open_ipc(buffer).schema
        kinds = _kinds(source, arrow, schema)
        readable = [j for j, kind in enumerate(kinds.values()) if kind != "other"]
        options = arrow.ipc.IpcReadOptions(included_fields=readable, use_threads=False)
        reader = open_ipc(buffer, options=options)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
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
    parts = {name: list[Any]() for name in kinds}
    for batch in batches:
        batch.validate(full=True)
        for name, kind in kinds.items():
            if kind == "other":
                parts[name] += [NOT_READABLE] * batch.num_rows
            else:
                parts[name] += _read_cells(arrow, batch.column(name), kind)
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

    raw = RawTable(source.name, tuple(kinds), data, None, write_cells, refused=refused)
    texts = [j for j, kind in enumerate(kinds.values()) if kind == "text"]
    return with_read_texts(raw, texts, source.asked)


def _read_cells(arrow: Any, array: Any, kind: str) -> list[Any]:
    """Cells of dates and texts as text; numbers stay an array, in a list of its own."""
    if kind == "number":
        return [array.cast(_value_type(arrow.types, array.type))]
    return _times(arrow, array) if kind == "time" else _texts(arrow, array)


def _texts(arrow: Any, array: Any) -> list[str | None]:
    """Cells of a column of text; equal categories are one object."""
    if not arrow.types.is_dictionary(array.type):
        texts: list[str | None] = array.to_pylist()
        return texts
    values = _texts(arrow, array.dictionary)
    return [None if i is None else values[i] for i in array.indices.to_pylist()]


def _column(arrow: Any, kind: str, cells: list[Any]) -> NDArray[Any]:
    if kind != "number":
        return typed_texts(cells)
    floats = (array.cast(arrow.float64(), safe=False) for array in cells)
    numbers = [array.to_numpy(zero_copy_only=False) for array in floats]
    return np.concatenate([np.empty(0), *numbers]).astype(np.float64)
