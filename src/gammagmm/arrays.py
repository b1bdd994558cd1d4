"""NPY, NPZ and MAT -> raw table: plain arrays only, and nothing is ever unpickled."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.raw import RawTable, check_names, shown, text_column, written
from gammagmm.sources import ZLIB_BITS, Source, check_expansion, inflate, refusing
from gammagmm.synthetic import numbered_names

__all__ = ["read_mat", "read_npy", "read_npz"]

Array = NDArray[Any]

MAT_NUMBERS = frozenset({"double", "single", "logical"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
MAT_HEADER_BYTES = 128
MAT_COMPRESSED = 15

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(source: Source) -> RawTable:
    """Raw table of an .npy file: rows of numbers, or one column."""
    with refusing(source.name, (ValueError, EOFError, OSError), "Write it with numpy.save."):
        array = _read_array(source.name, io.BytesIO(source.content), len(source.content))
    return _table(source.name, _matrix(source.name, array), {})


def read_npz(source: Source) -> RawTable:
    """Raw table of an .npz file: its array X or its only matrix, and the vectors of its length."""
    # RuntimeError: a password; NotImplementedError: a packing that Python does not know.
    kinds = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, RuntimeError)
    with refusing(source.name, (*kinds, NotImplementedError), "Write it with numpy.savez."):
        arrays = _read_archive(source)
    name = _table_name(source.name, {key: array.shape for key, array in arrays.items()})
    matrix = _matrix(f"{source.name}, array {name!r}", arrays[name])
    vectors = {key: a for key, a in arrays.items() if key != name and a.shape == matrix.shape[:1]}
    return _table(source.name, matrix, vectors)


def read_mat(source: Source) -> RawTable:
    """Raw table of a MAT file up to version 7: its array X or its largest one, and a vector y."""
    _check_inflation(source)
    from scipy.io import loadmat, whosmat

    file = io.BytesIO(source.content)
    # SciPy's reader answers a damaged file with almost any exception.
    advice = "Save it again in MATLAB with save(..., '-v7'), or as CSV."
    with refusing(source.name, (Exception,), advice):
        found = {name: shape for name, shape, kind in whosmat(file) if kind in MAT_NUMBERS}
        name = _largest(source.name, found)
        file.seek(0)
        arrays = loadmat(file, variable_names=[name, "y"])
    matrix = _matrix(f"{source.name}, array {name!r}", arrays[name])
    y = arrays["y"] if "y" in found and name != "y" else np.empty(0)
    is_vector = y.size == len(matrix) and y.size in y.shape
    return _table(source.name, matrix, {"y": y.ravel()} if is_vector else {})


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
    if min(shape, default=0) < 0 or n_declared > n_bytes:
        raise TableError(
            f"{where} declares the shape {shape}, which is {n_declared} bytes, but has {n_bytes} "
            "bytes. Write the file again: it is damaged or cut off."
        )
    file.seek(0)
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _read_archive(source: Source) -> dict[str, Array]:
    """Arrays of an .npz file by name."""
    with zipfile.ZipFile(io.BytesIO(source.content)) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        # The sum, not each: members that share their bytes would pass one by one.
        check_expansion(source.name, sum(m.file_size for m in members), len(source.content))
        arrays = {}
        for info in members:
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as file:
                where = f"{source.name}, array {shown(name)},"
                arrays[name] = _read_array(where, file, info.file_size)
    return arrays


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


def _check_inflation(source: Source) -> None:
    """Refuse MAT 7.3, and packed elements that are far larger than they look."""
    content = source.content
    order = ">" if content[126:128] == b"MI" else "<"
    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:10] == b"MATLAB 7.3":
        raise TableError(
            f"{source.name} is a MAT file of version 7.3 (HDF5), which cannot be read. Save it in "
            "MATLAB with save(..., '-v7')."
        )
    position, n_bytes = MAT_HEADER_BYTES, 0
    while content[126:128] in (b"MI", b"IM") and position + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, position)
        start, position = position + 8, position + 8 + size
        if kind != MAT_COMPRESSED:
            continue
        with refusing(source.name, (zlib.error,), "Save it again: it is damaged."):
            for chunk, n_taken in inflate(content[start:position], ZLIB_BITS):
                n_bytes += len(chunk)
                check_expansion(source.name, n_bytes, start + n_taken)


def _matrix(where: str, array: Array) -> Array:
    """Rows and columns of numbers; a vector is one column."""
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise TableError(
            f"{where} has the type {array.dtype} and the shape {array.shape}. "
            "Write numbers of two dimensions, rows and columns."
        )
    return array.reshape(len(array), -1) if array.ndim == 1 else array


def _table(source: str, matrix: Array, vectors: Mapping[str, Array]) -> RawTable:
    """Raw table of the columns of a matrix and some named vectors."""
    columns = (*numbered_names(matrix.shape[1]), *vectors)
    check_names(source, columns)
    arrays = [*matrix.T, *vectors.values()]
    pairs = zip(columns, arrays, strict=True)
    data = tuple(_column(f"{source}, array {shown(name)},", array) for name, array in pairs)

    def cells(j: int) -> list[str | None]:
        is_text = data[j].dtype == object
        return list(data[j]) if is_text else written(arrays[j].tolist())

    return RawTable(source, columns, data, None, cells)


def _column(where: str, array: Array) -> Array:
    """One column of numbers or of text."""
    if array.dtype.kind in "biuf":
        return np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind == "S":
        with refusing(where, (UnicodeDecodeError,), "Write text as array.astype(str)."):
            array = np.char.decode(array, "utf-8")
    if array.dtype.kind != "U":
        raise TableError(f"{where} has the type {array.dtype}. Write numbers or strings.")
    return text_column(array.tolist())
