"""NPY, NPZ and MAT -> raw table: plain arrays only, and nothing is ever unpickled."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.matlab import ADVICE, Variable, mat_variables
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    numbered_names,
    shown,
    text_column,
    written,
)
from gammagmm.readers.source import Source, check_expansion, refusing

__all__ = ["read_archive", "read_mat", "read_npy", "read_npz"]

Array = NDArray[Any]

# What a number takes in memory, and a column of them besides: its name and its array.
CELL_BYTES = 8
COLUMN_BYTES = 1000

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(source: Source) -> RawTable:
    """Raw table of an .npy file: rows of numbers, or one column."""
    # NumPy's reader answers a damaged header with almost any exception.
    with refusing(source.name, (Exception,), "Write it with numpy.save."):
        array = _read_array(source.name, io.BytesIO(source.content), len(source.content))
    return _table(source, _matrix(source.name, array), {})


def read_npz(source: Source) -> RawTable:
    """Raw table of an .npz file: its array X or its only matrix, and the vectors of its length."""
    arrays = read_archive(source)
    name = _table_name(source.name, {key: array.shape for key, array in arrays.items()})
    matrix = _matrix(f"{source.name}, array {shown(name)}", arrays[name])
    vectors = {key: a for key, a in arrays.items() if key != name and a.shape == matrix.shape[:1]}
    return _table(source, matrix, vectors)


def read_mat(source: Source) -> RawTable:
    """Raw table of a MAT file up to version 7: its array X or its largest one, and a vector y."""
    found = {name: v for name, v in mat_variables(source).items() if v.load is not None}
    name = _largest(source.name, {key: variable.shape for key, variable in found.items()})
    matrix = _matrix(f"{source.name}, array {shown(name)}", _load(source, found[name]))
    y = _load(source, found["y"]) if "y" in found and name != "y" else np.empty(0)
    is_vector = y.size == len(matrix) and y.size in y.shape
    return _table(source, matrix, {"y": y.ravel()} if is_vector else {})


def _load(source: Source, variable: Variable) -> Array:
    n_cells = math.prod(variable.shape)
    check_expansion(source.name, n_cells * CELL_BYTES, len(source.content))
    with refusing(source.name, (ValueError, struct.error, zlib.error), ADVICE):
        return variable.load() if variable.load is not None else np.empty(0)


def _read_array(where: str, file: IO[bytes], n_bytes: int) -> Array:
    """Array of .npy bytes, after its header has been compared with the `n_bytes` there are."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise TableError(f"{where} is no plain array of numbers. Write a float array.")
    shape, _, kind = HEADERS[version](file)
    if kind.hasobject:
        raise TableError(
            f"{where} holds Python objects, which are never unpickled. Write numbers or strings: "
            "array.astype(float) or array.astype(str)."
        )
    n_declared = math.prod(shape) * kind.itemsize
    if min(shape, default=0) < 0 or bool in map(type, shape) or n_declared > n_bytes:
        raise TableError(
            f"{where} declares the shape {shape}, which is {n_declared} bytes, but has {n_bytes} "
            "bytes. Write the file again: it is damaged or cut off."
        )
    file.seek(0)
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def read_archive(source: Source, names: Collection[str] | None = None) -> dict[str, Array]:
    """Arrays of an .npz file by name; those of `names` where these are given."""
    with refusing(source.name, (Exception,), "Write it with numpy.savez."):
        return _read_archive(source, names)


def _read_archive(source: Source, names: Collection[str] | None) -> dict[str, Array]:
    with zipfile.ZipFile(io.BytesIO(source.content)) as archive:
        members = [info for info in archive.infolist() if _is_asked(info.filename, names)]
        # The others unpack as much as they like at once, whatever size is declared.
        if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
            raise TableError(
                f"{source.name} is packed in a way that cannot be read. Write it with numpy.savez."
            )
        # The sum, not each: members that share their bytes would pass one by one.
        check_expansion(source.name, sum(m.file_size for m in members), len(source.content))
        arrays = {}
        for info in members:
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as file:
                where = f"{source.name}, array {shown(name)},"
                arrays[name] = _read_array(where, file, info.file_size)
    return arrays


def _is_asked(filename: str, names: Collection[str] | None) -> bool:
    name, point, suffix = filename.rpartition(".")
    return suffix == "npy" and bool(point) and (names is None or name in names)


def _table_name(source: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Name of the array that is the table."""
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if "X" in shapes:
        return "X"
    if len(matrices) != 1:
        there = ", ".join(f"{shown(name)} {shape}" for name, shape in shapes.items()) or "no array"
        raise TableError(
            f"{source} holds {len(matrices)} arrays of two dimensions and none named X: {there}. "
            "Name the table X."
        )
    return matrices[0]


def _largest(source: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Name of the MAT array that is the table: X, or else the one with the most cells."""
    matrices = {name: math.prod(shape) for name, shape in shapes.items() if len(shape) == 2}
    if "X" in matrices:
        return "X"
    most = max(matrices.values(), default=0)
    largest = [name for name, n_cells in matrices.items() if n_cells == most]
    if not largest:
        raise TableError(
            f"{source} holds no table of numbers: cells, structures, text and sparse arrays cannot "
            "be read. Save a full array of numbers named X."
        )
    if len(largest) > 1:
        raise TableError(
            f"{source} holds {len(largest)} arrays of the same size: "
            f"{', '.join(map(shown, largest))}. Name the table X."
        )
    return largest[0]


def _matrix(where: str, array: Array) -> Array:
    """Rows and columns of numbers; a vector is one column."""
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise TableError(
            f"{where} has the type {array.dtype} and the shape {array.shape}. "
            "Write numbers of two dimensions, rows and columns."
        )
    if not array.size:
        raise TableError(f"{where} holds no rows or no columns. Give a file that has some.")
    return array[:, None] if array.ndim == 1 else array


def _table(source: Source, matrix: Array, vectors: Mapping[str, Array]) -> RawTable:
    """Raw table of the columns of a matrix and some named vectors."""
    n_columns = matrix.shape[1] + len(vectors)
    n_bytes = n_columns * (COLUMN_BYTES + len(matrix) * CELL_BYTES)
    check_expansion(source.name, n_bytes, len(source.content))
    columns = (*numbered_names(matrix.shape[1]), *vectors)
    check_names(source.name, columns)
    arrays = [*matrix.T, *vectors.values()]
    pairs = zip(columns, arrays, strict=True)
    data = tuple(_column(f"{source.name}, array {shown(name)},", array) for name, array in pairs)

    def cells(j: int) -> list[str | None]:
        is_text = data[j].dtype == object
        return list(data[j]) if is_text else written(arrays[j].tolist())

    return RawTable(source.name, columns, data, None, cells)


def _column(where: str, array: Array) -> Array:
    """One column of numbers or of text."""
    if array.dtype.kind in "biuf":
        return np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind == "S":
        with refusing(where, (UnicodeDecodeError,), "Write text as array.astype(str)."):
            array = np.char.decode(array, "utf-8")
    if array.dtype.kind != "U":
        raise TableError(f"{where} has the type {array.dtype}. Write numbers or strings.")
    with refusing(where, (Exception,), "Write text as array.astype(str)."):  # no such letter
        return text_column(array.tolist())
