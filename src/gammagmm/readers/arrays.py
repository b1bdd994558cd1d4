"""NPY and NPZ -> raw table: plain arrays only; nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.archives import plain_array
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
from gammagmm.readers.source import CELL_BYTES, Source, check_expansion, refusing, unpacked
from gammagmm.readers.values import with_read_texts

__all__ = ["as_matrix", "read_npy", "read_npz", "table_of_arrays"]

Array = NDArray[Any]

COLUMN_BYTES = 1000  # memory of a column beyond its numbers: its name and its array
ADVICE = "Write numbers or strings with numpy.save or numpy.savez."


def read_npy(source: Source) -> RawTable:
    """Raw table of an .npy file: rows of numbers, or one column."""
    # NumPy's reader raises almost any exception on a damaged header.
    with refusing(source.name, (Exception,), ADVICE):
        array = plain_array(source.content)
    return table_of_arrays(source, as_matrix(source.name, array), {})


def read_npz(source: Source) -> RawTable:
    """Raw table of an .npz file: its array X or its only matrix, and the vectors of its length."""
    arrays = _read_archive(source)
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


def _read_archive(source: Source) -> dict[str, Array]:
    """Arrays of an .npz file by name."""
    arrays = {}
    with (
        refusing(source.name, (Exception,), ADVICE),
        zipfile.ZipFile(io.BytesIO(source.content)) as archive,
    ):
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        for member, content in unpacked(source, archive, members):
            name = member.removesuffix(".npy")
            with refusing(f"{source.name}, array {shown(name)},", (Exception,), ADVICE):
                arrays[name] = plain_array(content)
    return arrays


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

    raw = RawTable(source.name, columns, data, None, write_cells)
    return with_read_texts(raw, range(len(columns)), source.asked)


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
