"""A dask array or data frame -> rows in blocks, or why it cannot be; functions of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_table
from gammagmm.blocks.collection import Blocks, client_at_hand, compute, import_dask, send

__all__ = ["check_collection", "map_rows", "open_blocks"]

Array = NDArray[np.float64]


def open_blocks(X: Any) -> Blocks:
    """The rows of a dask array or data frame of numbers, once all of them have been seen.

    Empty blocks are left out. What is missing, or not finite, is a ValueError that says where.
    """
    check_collection(X)
    delayed, client = import_dask().delayed, client_at_hand()
    partitions, names = _partitions(X)
    parts = [delayed(_as_rows)(partition) for partition in partitions]
    seen = compute([delayed(_look)(part) for part in parts], client)
    _check_seen(seen, names)
    filled = [i for i, (length, *_) in enumerate(seen) if length]
    return Blocks(
        tuple(parts[i] for i in filled),
        tuple(seen[i][0] for i in filled),
        len(names),
        client,
        tuple(partitions[i] for i in filled) if _has_index(X) else None,
    )


def check_collection(X: Any) -> None:
    """Refuse what is no dask array or data frame of numbers."""
    dask = import_dask()
    is_frame = isinstance(X, dask.dataframe.DataFrame)
    if not (is_frame or isinstance(X, dask.array.Array)) or X.ndim != 2:
        kind = type(X).__name__
        raise ValueError(f"X must be a table of rows and columns, got a dask {kind} that is none.")
    check_table(X)
    if is_frame:
        others = [str(name) for name, kind in X.dtypes.items() if not _is_real(kind)]
        if others:
            words = f"X must hold numbers, but these columns do not: {', '.join(others)}."
            raise ValueError(f"{words} Drop them, or encode them as numbers.")
        return
    if isinstance(X._meta, np.ma.MaskedArray):
        raise ValueError("X is a masked array: fill its masked values, or drop their rows.")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got the type {X.dtype}.")
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns: call X.compute_chunk_sizes().")


def map_rows(
    X: Any, function: Callable[..., Array], *shared: Any, n_columns: int | None = None
) -> Any:
    """Lazy dask array of function(rows, *shared); `n_columns` None: one value a row."""
    check_collection(X)
    rows = X.map_partitions(_as_rows, meta=np.empty((0, 0))) if hasattr(X, "columns") else X
    rows = rows.rechunk({1: -1}) if rows.numblocks[1] > 1 else rows
    sent = send(shared)
    if n_columns is None:
        return rows.map_blocks(_on_rows, function, *sent, meta=np.empty(0), drop_axis=1)
    chunks = (rows.chunks[0], (n_columns,))
    return rows.map_blocks(_on_rows, function, *sent, meta=np.empty((0, 0)), chunks=chunks)


def _partitions(X: Any) -> tuple[list[Any], list[Any]]:
    """The delayed partitions of a collection, and the names or numbers of its columns."""
    if hasattr(X, "columns"):
        return list(X.to_delayed()), list(X.columns)
    return list(X.rechunk({1: -1}).to_delayed().ravel()), list(range(X.shape[1]))


def _has_index(X: Any) -> bool:
    """Whether the rows have an index that says more than their numbers."""
    import pandas as pd

    index = getattr(X, "_meta", X).index if hasattr(X, "columns") else None
    is_default = isinstance(index, pd.RangeIndex) and index.name is None
    return index is not None and not is_default


def _is_real(kind: Any) -> bool:
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(kind)) and not is_complex_dtype(kind)


def _as_rows(part: Any) -> Array:
    """Rows (n, d) of an array or a pandas frame."""
    if hasattr(part, "iloc"):
        part = part.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(part, np.ma.MaskedArray):
        part = np.ma.filled(part.astype(np.float64), np.nan)
    return np.ascontiguousarray(part, dtype=np.float64)


def _on_rows(part: Any, function: Callable[..., Array], *shared: Any) -> Array:
    """function(rows, *shared) of a block, which may be empty, but not hold what is no number."""
    rows = _as_rows(part)
    if n_bad := int((~np.isfinite(rows)).sum()):
        raise ValueError(f"A block of X has {n_bad} values that are missing or not finite.")
    if len(rows):
        return function(rows, *shared)
    return function(np.zeros((1, rows.shape[1])), *shared)[:0]


def _look(rows: Array) -> tuple[int, int, int, int]:
    """Rows, values that are not finite, and the place (row, column) of the first of them."""
    bad = np.argwhere(~np.isfinite(rows))
    first = bad[0].tolist() if len(bad) else [-1, -1]
    return len(rows), len(bad), first[0], first[1]


def _check_seen(seen: Sequence[tuple[int, int, int, int]], names: list[Any]) -> None:
    n_rows = 0
    for length, n_bad, row, column in seen:
        if n_bad:
            n_all = sum(one[1] for one in seen)
            where = f"the first in row {n_rows + row}, column {names[column]!r}"
            words = f"X has {n_all} values that are missing or not finite, {where}."
            raise ValueError(f"{words} Drop these rows or fill the values.")
        n_rows += length
    if n_rows < 2 or not names:
        raise ValueError(f"X must have at least 2 rows and a column, got {n_rows} x {len(names)}.")
