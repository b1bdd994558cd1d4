"""MAT files of versions 5 to 7 -> raw table, by NumPy alone.

SciPy's reader ends the process on some damaged files and never returns on others. Only full arrays
of numbers are needed here, which are a small part of the format.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import listed, shown
from gammagmm.errors import TableError
from gammagmm.readers.arrays import as_matrix, table_of_arrays
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.source import (
    CELL_BYTES,
    ZLIB_BITS,
    Source,
    check_expansion,
    inflate,
    join_chunks,
    refusing,
)

__all__ = ["read_mat"]

ADVICE = "Save it again in MATLAB with save(..., '-v7'), or as CSV."
DAMAGE = (ValueError, struct.error, zlib.error)  # what the functions below raise on a damaged file

# Codes of the format: elements, flags of an array, classes, and types in the file.
HEADER_BYTES = 128
MATRIX, COMPRESSED = 14, 15
LOGICAL, COMPLEX = 0x02, 0x08
CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), start=6))
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
STORED |= {13: "u8"}

Element = tuple[int, memoryview, int]  # type, contents, position of the next one


@dataclass(frozen=True)
class Variable:
    """A variable of a MAT file; `load` reads its numbers.

    What is not a full array of numbers has no shape and no numbers.
    """

    name: str
    shape: tuple[int, ...] = ()
    load: Callable[[], NDArray[Any]] = lambda: np.empty(0)


def read_mat(source: Source) -> RawTable:
    """Raw table of a MAT file up to version 7: its array X or its largest one, and a vector y."""
    content = source.content
    is_hdf = content[:8] == b"\x89HDF\r\n\x1a\n" or content[:10] == b"MATLAB 7.3"
    if is_hdf or 0 in content[:4]:
        version = "7.3 (HDF5)" if is_hdf else "4"
        raise TableError(
            f"{source.name} is a MAT file of version {version}, which cannot be read",
            "Save it in MATLAB with save(..., '-v7').",
        )
    variables: dict[str, Variable] = {}
    with refusing(source.name, DAMAGE, ADVICE):
        if content[126:128] not in (b"IM", b"MI"):
            raise ValueError("it is not a MAT file")
        for variable in _variables(source):
            variables.setdefault(variable.name, variable)  # the first one of a name counts
    name = _table_name(source.name, variables)
    matrix = as_matrix(f"{source.name}, array {shown(name)}", _load(source, variables[name]))
    y = _load(source, variables["y"]) if "y" in variables and name != "y" else np.empty(0)
    is_vector = y.size == len(matrix) and y.size in y.shape
    return table_of_arrays(source, matrix, {"y": y.ravel()} if is_vector else {})


def _table_name(source: str, variables: dict[str, Variable]) -> str:
    """Name of the variable that is the table: X, or else the matrix with the most cells."""
    n_cells = {name: math.prod(v.shape) for name, v in variables.items() if len(v.shape) == 2}
    if "X" in n_cells:
        return "X"
    most = max(n_cells.values(), default=0)
    largest = [name for name, n in n_cells.items() if n == most]
    if not largest:
        raise TableError(
            f"{source} contains no table of numbers: cells, structures, text and sparse arrays "
            "cannot be read",
            "Save a full array of numbers named X.",
        )
    if len(largest) > 1:
        raise TableError(
            f"{source} contains {len(largest)} arrays of the same size: {listed(largest)}",
            "Name the table X.",
        )
    return largest[0]


def _load(source: Source, variable: Variable) -> NDArray[Any]:
    n_bytes = math.prod(variable.shape) * CELL_BYTES
    check_expansion(source.name, n_bytes, len(source.content))
    with refusing(source.name, DAMAGE, ADVICE):
        return variable.load()


def _variables(source: Source) -> Iterator[Variable]:
    """All variables, compressed ones included."""
    order = ">" if source.content[126:128] == b"MI" else "<"
    position, content = HEADER_BYTES, memoryview(source.content)
    while position + 8 <= len(content):
        kind, n_bytes = struct.unpack_from(f"{order}II", content, position)
        body, position = content[position + 8 :][:n_bytes], position + 8 + n_bytes
        if position > len(content):
            break
        if kind == MATRIX:
            yield _variable(body, order, body.toreadonly)
        elif kind == COMPRESSED:
            # The first chunk contains the name and the shape.
            first = next((chunk for chunk, _ in inflate(bytes(body), ZLIB_BITS)), b"")
            yield _variable(memoryview(first)[8:], order, partial(_unpacked, source, bytes(body)))
    if position != len(content):
        raise ValueError("the file is incomplete")


def _unpacked(source: Source, body: bytes) -> memoryview:
    """Contents of a compressed element; too much for the size of the file is a `TableError`."""
    chunks = ((chunk, len(source.content)) for chunk, _ in inflate(body, ZLIB_BITS))
    return memoryview(join_chunks(source.name, chunks))[8:]


def _variable(head: memoryview, order: str, read_body: Callable[[], memoryview]) -> Variable:
    """Variable of a matrix element that begins with `head`; its numbers are read when needed."""
    _, flags, position = _element(head, 0, order)
    word = struct.unpack_from(f"{order}I", flags)[0]
    _, dims, position = _element(head, position, order)
    shape = struct.unpack(f"{order}{len(dims) // 4}i", dims[: len(dims) // 4 * 4])
    _, letters, position = _element(head, position, order)
    name, kind = bytes(letters).decode("latin-1"), CLASSES.get(word & 0xFF)
    if kind is None:
        return Variable(name)
    is_complex, is_logical = bool(word >> 8 & COMPLEX), bool(word >> 8 & LOGICAL)

    def load() -> NDArray[Any]:
        stored, numbers, _ = _element(read_body(), position, order)
        if stored not in STORED:
            raise ValueError(f"its data type {stored} is not numeric")
        values = np.frombuffer(numbers, np.dtype(order + STORED[stored]))
        values = values.astype("?" if is_logical else kind)
        if min(shape, default=0) < 0 or math.prod(shape) != len(values):
            raise ValueError(
                f"an array has the shape {shape[:4]} but contains {len(values)} numbers"
            )
        values = values.astype(complex) if is_complex else values
        return values.reshape(shape, order="F")

    return Variable(name, shape, load)


def _element(body: memoryview, position: int, order: str) -> Element:
    """The data element at `position`; a small one is stored inside its tag."""
    tag = struct.unpack_from(f"{order}I", body, position)[0]
    if tag >> 16:
        kind, n_bytes, start = tag & 0xFFFF, tag >> 16, position + 4
        end = position + 8
    else:
        kind, n_bytes = tag, struct.unpack_from(f"{order}I", body, position + 4)[0]
        start = position + 8
        end = start + n_bytes + -n_bytes % 8
    if start + n_bytes > min(len(body), end):
        raise ValueError("the file is incomplete")
    return kind, body[start : start + n_bytes], end
