"""MAT files of versions 4 to 7 -> full arrays of numbers, by NumPy alone.

SciPy's reader ends the process on some damaged files and follows others in circles; of the format
no more is needed here than arrays of numbers.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.source import ZLIB_BITS, Source, check_expansion, inflate, refusing

__all__ = ["ADVICE", "Variable", "mat_variables"]

HEADER_BYTES = 128
MATRIX, COMPRESSED = 14, 15
LOGICAL, COMPLEX = 0x02, 0x08
CLASSES = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), start=6))
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
STORED |= {13: "u8"}
OLD_KINDS = ("f8", "f4", "i4", "i2", "u2", "u1")
ADVICE = "Save it again in MATLAB with save(..., '-v7'), or as CSV."

Element = tuple[int, memoryview, int]  # type, contents, position of the next one


@dataclass(frozen=True)
class Variable:
    """A named array of a MAT file; `load` reads its numbers, and is None for anything else."""

    name: str
    shape: tuple[int, ...]
    load: Callable[[], NDArray[Any]] | None


def mat_variables(source: Source) -> dict[str, Variable]:
    """The variables of a MAT file by name; of a name that comes twice the first one counts."""
    content = source.content
    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:10] == b"MATLAB 7.3":
        raise TableError(
            f"{source.name} is a MAT file of version 7.3 (HDF5), which cannot be read. Save it in "
            "MATLAB with save(..., '-v7')."
        )
    found: dict[str, Variable] = {}
    with refusing(source.name, (ValueError, struct.error, zlib.error), ADVICE):
        if 0 in content[:4]:
            listed = _old_variables(content)
        elif content[126:128] in (b"IM", b"MI"):
            listed = _variables(source)
        else:
            raise ValueError("it is no MAT file")
        for variable in listed:
            found.setdefault(variable.name, variable)
    return found


def _variables(source: Source) -> Iterator[Variable]:
    """Variables of versions 5 to 7, packed ones included."""
    order = ">" if source.content[126:128] == b"MI" else "<"
    position, content = HEADER_BYTES, memoryview(source.content)
    while position + 8 <= len(content):
        kind, n_bytes = struct.unpack_from(f"{order}II", content, position)
        body, position = content[position + 8 :][:n_bytes], position + 8 + n_bytes
        if position > len(content):
            break
        if kind == MATRIX:
            yield _variable(body, order, _given(body))
        elif kind == COMPRESSED:
            # The first chunk holds the name and the shape.
            first = next((chunk for chunk, _ in inflate(bytes(body), ZLIB_BITS)), b"")
            whole = _Packed(source, bytes(body))
            yield _variable(memoryview(first)[8:], order, whole)
    if position != len(content):
        raise ValueError("it is cut off")


def _given(body: memoryview) -> Callable[[], memoryview]:
    return lambda: body


@dataclass(frozen=True)
class _Packed:
    """The unpacked contents of an element, read only as far as they are believable."""

    source: Source
    body: bytes

    def __call__(self) -> memoryview:
        chunks, n_bytes = [], 0
        for chunk, _ in inflate(self.body, ZLIB_BITS):
            n_bytes += len(chunk)
            check_expansion(self.source.name, n_bytes, len(self.source.content))
            chunks.append(chunk)
        return memoryview(b"".join(chunks))[8:]


def _variable(body: memoryview, order: str, whole: Callable[[], memoryview]) -> Variable:
    """What a matrix element says of itself; its numbers are read later, from `whole`."""
    _, flags, position = _element(body, 0, order)
    word = struct.unpack_from(f"{order}I", flags)[0]
    _, dims, position = _element(body, position, order)
    shape = struct.unpack(f"{order}{len(dims) // 4}i", dims[: len(dims) // 4 * 4])
    _, letters, position = _element(body, position, order)
    name, kind = bytes(letters).decode("latin-1"), CLASSES.get(word & 0xFF)
    if kind is None:
        return Variable(name, shape, None)
    is_complex, is_logical = bool(word >> 8 & COMPLEX), bool(word >> 8 & LOGICAL)

    def load() -> NDArray[Any]:
        values = _numbers(whole(), position, order)
        made = values.astype("?" if is_logical else kind)
        return _shaped(made.astype(complex) if is_complex else made, shape)

    return Variable(name, shape, load)


def _numbers(body: memoryview, position: int, order: str) -> NDArray[Any]:
    kind, stored, _ = _element(body, position, order)
    if kind not in STORED:
        raise ValueError(f"its numbers have the type {kind}, which is none")
    return np.frombuffer(stored, np.dtype(order + STORED[kind]))


def _shaped(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if min(shape, default=0) < 0 or math.prod(shape) != len(values):
        raise ValueError(f"an array of the shape {shape[:4]} has {len(values)} numbers")
    return values.reshape(shape, order="F")


def _element(body: memoryview, position: int, order: str) -> Element:
    """A data element: four bytes of it may stand inside its tag."""
    tag = struct.unpack_from(f"{order}I", body, position)[0]
    if tag >> 16:
        kind, n_bytes, start = tag & 0xFFFF, tag >> 16, position + 4
        end = position + 8
    else:
        kind, n_bytes = tag, struct.unpack_from(f"{order}I", body, position + 4)[0]
        start = position + 8
        end = start + n_bytes + -n_bytes % 8
    if start + n_bytes > min(len(body), end):
        raise ValueError("it is cut off")
    return kind, body[start : start + n_bytes], end


def _old_variables(content: bytes) -> Iterator[Variable]:
    """Variables of version 4."""
    position = 0
    while position + 20 <= len(content):
        order = "<" if struct.unpack_from("<i", content, position)[0] in range(5000) else ">"
        kind, rows, columns, has_imaginary, n_name = struct.unpack_from(
            f"{order}5i", content, position
        )
        stored = kind // 10 % 10
        if kind not in range(2000) or stored >= len(OLD_KINDS) or min(rows, columns, n_name) < 0:
            raise ValueError("it is no MAT file")
        start = position + 20 + n_name
        name = content[position + 20 : start].split(b"\0")[0].decode("latin-1")
        n_bytes = rows * columns * np.dtype(OLD_KINDS[stored]).itemsize * (1 + (has_imaginary == 1))
        position = start + n_bytes
        if position > len(content):
            raise ValueError("it is cut off")
        values = _old_loader(content[start:position], order + OLD_KINDS[stored], (rows, columns))
        is_plain = kind % 10 == 0 and not has_imaginary
        yield Variable(name, (rows, columns), values if is_plain else None)
    if position != len(content):
        raise ValueError("it is cut off")


def _old_loader(stored: bytes, kind: str, shape: tuple[int, int]) -> Callable[[], NDArray[Any]]:
    return lambda: _shaped(np.frombuffer(stored, kind), shape)
