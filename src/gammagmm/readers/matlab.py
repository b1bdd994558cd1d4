"""MAT files of versions 5 to 7 -> raw table, by SciPy."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import listed, shown
from gammagmm.errors import TableError
from gammagmm.readers.arrays import as_matrix, table_of_arrays
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.source import Source, refusing

__all__ = ["read_mat"]

ADVICE = "Save it again in MATLAB with save(..., '-v7'), or as CSV."
FULL_ARRAYS = frozenset(
    {"double", "single", "logical"}
    | {f"{sign}int{n_bits}" for sign in ("", "u") for n_bits in (8, 16, 32, 64)}
)
"""What SciPy calls the variables that are full arrays of numbers."""


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
    from scipy.io import loadmat, whosmat

    # On a damaged file SciPy raises almost any exception.
    with refusing(source.name, (Exception,), ADVICE), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = whosmat(io.BytesIO(content))
        shapes = {name: shape for name, shape, kind in found if kind in FULL_ARRAYS}
        name = _table_name(source.name, shapes)
        wanted = [name, *({"y"} & shapes.keys())]
        arrays: Mapping[str, NDArray[Any]] = loadmat(io.BytesIO(content), variable_names=wanted)
        matrix = as_matrix(f"{source.name}, array {shown(name)}", arrays[name])
        y = arrays["y"] if "y" in wanted and name != "y" else np.empty(0)
        is_vector = y.size == len(matrix) and y.size in y.shape
    return table_of_arrays(source, matrix, {"y": y.ravel()} if is_vector else {})


def _table_name(source: str, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Name of the variable that is the table: X, or else the matrix with the most cells."""
    n_cells = {name: math.prod(shape) for name, shape in shapes.items() if len(shape) == 2}
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
