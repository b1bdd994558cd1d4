"""NPY and NPZ -> raw table: plain arrays only; nothing is unpickled."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Collection, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import shown
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    numbered_names,
    text_column,
    typed_texts,
    written_cells,
)
from gammagmm.readers.source import CELL_BYTES, Source, check_expansion, refusing

__all__ = ["as_matrix", "read_archive", "read_npy", "read_npz", "table_of_arrays"]

Array = NDArray[Any]

COLUMN_BYTES = 1000  # memory of a column beyond its numbers: its name and its array
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(source: Source) -> RawTable:
    """Raw table of an .npy file: rows of numbers, or one column."""
    # NumPy's reader raises almost any exception on a damaged header.
    with refusing(source.name, (Exception,), "Write it with numpy.save."):
        array = _read_array(source.name, io.BytesIO(source.content), len(source.content))
    return table_of_arrays(source, as_matrix(source.name, array), {})


def read_npz(source: Source) -> RawTable:
    """Raw table of an .npz file: its array X or its only matrix, and the vectors of its length."""
    arrays = read_archive(source)
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if "X" not in arrays and len(matrices) != 1:
        found = ", ".join(f"{shown(name)} {array.shape}" for name, array in arrays.items())
        raise TableError(
            f"{source.name} contains {len(matrices)} two-dimensional arrays, and none is named X: "
            f"{found or 'no array'}",
            "Name the table X.",
        )
    name = "X" if "X" in arrays else matrices[0]
    matrix = as_matrix(f"{source.name}, array {shown(name)}", arrays.pop(name))
    vectors = {key: array for key, array in arrays.items() if array.shape == matrix.shape[:1]}
    return table_of_arrays(source, matrix, vectors)


def read_archive(source: Source, names: Collection[str] | None = None) -> dict[str, Array]:
    """Arrays of an .npz file by name; only those in `names` if these are given."""
    advice = "Write it with numpy.savez."
    with (
        refusing(source.name, (Exception,), advice),
        zipfile.ZipFile(io.BytesIO(source.content)) as archive,
    ):
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        asked = {name: m for name, m in members.items() if names is None or name in names}
        # Other methods decompress any amount at once, whatever size is declared.
        methods = {member.compress_type for member in asked.values()}
        if methods - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise TableError(f"{source.name} uses an unsupported compression method", advice)
        # The sum, not each one: members that share their bytes would pass one by one.
        n_bytes = sum(member.file_size for member in asked.values())
        check_expansion(source.name, n_bytes, len(source.content))
        arrays = {}
        for name, member in asked.items():
            with archive.open(member) as file:
                where = f"{source.name}, array {shown(name)},"
                arrays[name] = _read_array(where, file, member.file_size)
        return arrays


def _read_array(where: str, file: IO[bytes], n_bytes: int) -> Array:
    """Array of .npy bytes, once its header agrees with the `n_bytes` that the file has."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise TableError(f"{where} is not a plain array of numbers", "Write a float array.")
    shape, _, kind = HEADERS[version](file)
    if kind.hasobject:
        raise TableError(
            f"{where} contains Python objects, which are never unpickled",
            "Write numbers or strings: array.astype(float) or array.astype(str).",
        )
    n_declared = math.prod(shape) * kind.itemsize
    if min(shape, default=0) < 0 or bool in map(type, shape) or n_declared > n_bytes:
        raise TableError(
            f"{where} declares the shape {shape}, which is {n_declared} bytes, but has {n_bytes} "
            "bytes",
            "Write the file again: it is damaged or cut off.",
        )
    file.seek(0)
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def as_matrix(where: str, array: Array) -> Array:
    """Numbers of shape (n, d), at least one; a vector becomes one column."""
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise TableError(
            f"{where} has the type {array.dtype} and the shape {array.shape}",
            "Save a two-dimensional array of numbers.",
        )
    if not array.size:
        raise TableError(f"{where} contains no rows or no columns", "Give a file that has both.")
    return array[:, None] if array.ndim == 1 else array


def table_of_arrays(source: Source, matrix: Array, vectors: Mapping[str, Array]) -> RawTable:
    """Raw table of the columns of a matrix (n, d) and of named vectors (n,)."""
    n_columns = matrix.shape[1] + len(vectors)
    n_bytes = n_columns * (COLUMN_BYTES + len(matrix) * CELL_BYTES)
    check_expansion(source.name, n_bytes, len(source.content))
    columns = (*numbered_names(matrix.shape[1]), *vectors)
    check_names(source.name, columns)
    arrays = [*matrix.T, *vectors.values()]
    pairs = zip(columns, arrays, strict=True)
    cells = [_column(f"{source.name}, array {shown(name)},", array) for name, array in pairs]
    data = tuple(typed_texts(own) if own.dtype == object else own for own in cells)

    def write_cells(j: int) -> list[str | None]:
        return written_cells(cells[j] if cells[j].dtype == object else arrays[j])

    return RawTable(source.name, columns, data, None, write_cells)


def _column(where: str, array: Array) -> Array:
    """One column of numbers or of text."""
    if array.dtype.kind in "biuf":
        return np.ascontiguousarray(array, dtype=np.float64)
    advice = "Write text as array.astype(str)."
    if array.dtype.kind == "S":
        with refusing(where, (UnicodeDecodeError,), advice):
            array = np.char.decode(array, "utf-8")
    if array.dtype.kind != "U":
        what = f"{where} has the type {array.dtype}, which is not supported"
        raise TableError(what, "Save it as real numbers or as strings.")
    with refusing(where, (Exception,), advice):  # code points that do not exist
        return text_column(array.tolist())
