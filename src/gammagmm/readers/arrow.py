"""Parquet and Feather -> raw table, by PyArrow, once the sizes that a file declares are known."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import MissingExtraError, TableError
from gammagmm.readers.packing import message_bytes, parquet_chunks
from gammagmm.readers.raw_table import RawTable, check_names, shown, text_column, written
from gammagmm.readers.source import Source, check_expansion, refusing

__all__ = ["read_feather", "read_parquet"]

CELL_BYTES = 8
BATCH_ROWS = 4096
FILE_MAGIC = b"ARROW1\0\0"


@dataclass
class Meter:
    """How much a file has come to so far."""

    source: Source
    n_bytes: int = 0

    def add(self, n_bytes: int) -> None:
        """Count further bytes; too many for the size of the file are a `TableError`."""
        self.n_bytes += n_bytes
        check_expansion(self.source.name, self.n_bytes, len(self.source.content))


def read_parquet(source: Source) -> RawTable:
    """Raw table of a Parquet file."""
    arrow, parquet = _arrow(source, "pyarrow"), _arrow(source, "pyarrow.parquet")
    # PyArrow answers a damaged file with its own exceptions, Python's, and those of Unicode.
    with refusing(source.name, (Exception,), "Write it again as Parquet."):
        buffer = arrow.BufferReader(source.content)
        file = parquet.ParquetFile(buffer)
        _check_schema(source, arrow, file.schema_arrow)
        _check_pages(source, file.metadata)
        # A text that a column repeats is kept once: else a kilobyte could become gigabytes.
        texts = [field.name for field in file.schema_arrow if _is_text(arrow, field.type)]
        again = parquet.ParquetFile(buffer, read_dictionary=texts)
        return _collect(source, arrow, file.schema_arrow, again.iter_batches(BATCH_ROWS))


def read_feather(source: Source) -> RawTable:
    """Raw table of a Feather file, which is Arrow's own format, as a file or as a stream."""
    arrow = _arrow(source, "pyarrow")
    # A file is a stream with an index behind it, which could lead anywhere.
    start = len(FILE_MAGIC) if source.content.startswith(FILE_MAGIC) else 0
    with refusing(source.name, (Exception,), "Write it again as Feather."):
        buffer = arrow.py_buffer(source.content)[start:]
        meter = Meter(source)
        for message in arrow.ipc.MessageReader.open_stream(buffer):
            meter.add(message_bytes(message.metadata.to_pybytes(), memoryview(message.body or b"")))
        reader = arrow.ipc.open_stream(buffer)
        _check_schema(source, arrow, reader.schema)
        return _collect(source, arrow, reader.schema, reader)


def _arrow(source: Source, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        message = f"{source.name} needs pyarrow to be read: pip install 'gammagmm[data]'."
        raise MissingExtraError(message, name="pyarrow") from None


def _check_pages(source: Source, metadata: Any) -> None:
    """Refuse row groups that hold far more than the file is large, by what each says of itself."""
    Meter(source).add(metadata.num_rows * metadata.num_columns * CELL_BYTES)
    meter = Meter(source)
    for n_cells, n_bytes in parquet_chunks(source.content):
        meter.add(n_cells * CELL_BYTES + n_bytes)


def _check_schema(source: Source, arrow: Any, schema: Any) -> None:
    """Refuse names that stand twice, and types that are neither numbers nor text."""
    check_names(source.name, tuple(schema.names))
    for field in schema:
        if not (_is_text(arrow, field.type) or _is_number(arrow, field.type)):
            raise TableError(
                f"{source.name}, column {shown(field.name)}: the type {str(field.type)[:100]} "
                "cannot be read. Write the column as numbers or text, or write the file without it."
            )


def _plain_type(arrow: Any, kind: Any) -> Any:
    """The type of the values, where these are categories."""
    return kind.value_type if arrow.types.is_dictionary(kind) else kind


def _is_text(arrow: Any, kind: Any) -> bool:
    kind, types = _plain_type(arrow, kind), arrow.types
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def _is_number(arrow: Any, kind: Any) -> bool:
    kind, types = _plain_type(arrow, kind), arrow.types
    kinds = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return any(is_kind(kind) for is_kind in kinds)


def _collect(source: Source, arrow: Any, schema: Any, batches: Iterable[Any]) -> RawTable:
    """Raw table of batches, each checked before it is looked into."""
    columns, meter = tuple(schema.names), Meter(source)
    is_text = [_is_text(arrow, field.type) for field in schema]
    parts: list[list[Any]] = [[] for _ in columns]
    for batch in batches:
        batch.validate(full=True)
        meter.add(batch.num_rows * len(columns) * CELL_BYTES)
        for part, array, text in zip(parts, batch.columns, is_text, strict=True):
            part.append(_texts(arrow, array, meter) if text else _plain(arrow, array))
    data = tuple(
        text_column(chain.from_iterable(part)) if text else _numbers(arrow, part)
        for part, text in zip(parts, is_text, strict=True)
    )

    def cells(j: int) -> list[str | None]:
        if is_text[j]:
            return list(chain.from_iterable(parts[j]))
        is_whole = arrow.types.is_integer(_plain_type(arrow, schema.field(j).type))
        # Whole numbers beyond 2**53 are ids more often than not: their digits are kept.
        digits = (array.cast(arrow.string()).to_pylist() for array in parts[j])
        return list(chain.from_iterable(digits)) if is_whole else written(data[j].tolist())

    return RawTable(source.name, columns, data, None, cells)


def _plain(arrow: Any, array: Any) -> Any:
    """A column of categories as a column of their values."""
    is_dictionary = arrow.types.is_dictionary(array.type)
    return array.cast(array.type.value_type) if is_dictionary else array


def _numbers(arrow: Any, parts: list[Any]) -> NDArray[np.float64]:
    made = (part.cast(arrow.float64(), safe=False) for part in parts)
    found = [array.to_numpy(zero_copy_only=False) for array in made]
    return np.concatenate([np.empty(0), *found]).astype(np.float64)


def _texts(arrow: Any, array: Any, meter: Meter) -> list[str | None]:
    """Cells of a column of text; those that are the same category are the same object."""
    if arrow.types.is_dictionary(array.type):
        values = _texts(arrow, array.dictionary, meter)
        return [None if i is None else values[i] for i in array.indices.to_pylist()]
    return list(_counted(array, meter))


def _counted(array: Any, meter: Meter) -> Iterator[str | None]:
    """Texts one by one: views may show the same megabyte again and again."""
    for cell in array:
        text = cell.as_py()
        meter.add(len(text or ""))
        yield text
