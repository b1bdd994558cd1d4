"""A dask array or data frame -> rows in blocks, or why it cannot be; functions of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._checks import check_table
from gammagmm.blocks import Blocks, compute, import_dask

__all__ = ["map_rows", "open_blocks"]

Array = NDArray[np.float64]


def open_blocks(X: Any) -> Blocks:
    """The rows of a dask array or data frame of numbers, once all of them have been seen.

    Empty blocks are left out. What is missing, or not finite, is a ValueError that says where.
    """
    dask = import_dask()
    if getattr(X, "ndim", 0) != 2:
        kind = type(X).__name__
        raise ValueError(f"X must be a table of rows and columns, got a dask {kind} that is none.")
    check_table(X)
    partitions, names = _partitions(X)
    to_rows = dask.delayed(_as_rows)
    parts = [to_rows(partition) for partition in partitions]
    seen = compute([dask.delayed(_look)(part) for part in parts])
    _check_seen(seen, names)
    filled = [i for i, (length, *_) in enumerate(seen) if length]
    return Blocks(
        tuple(parts[i] for i in filled),
        tuple(seen[i][0] for i in filled),
        len(names),
        tuple(partitions[i] for i in filled),
    )


def map_rows(X: Any, function: Callable[[Array], Array], n_columns: int | None = None) -> Any:
    """Lazy dask array of function(rows) of each block; `n_columns` None: one value a row."""
    check_table(X)
    rows = X.map_partitions(_as_rows, meta=np.empty((0, 0))) if hasattr(X, "columns") else X
    if rows.ndim == 2 and rows.numblocks[1] > 1:
        rows = rows.rechunk({1: -1})
    if n_columns is None:
        return rows.map_blocks(_on_rows, function, dtype=np.float64, drop_axis=1)
    chunks = (rows.chunks[0], (n_columns,))
    return rows.map_blocks(_on_rows, function, dtype=np.float64, chunks=chunks)


def _partitions(X: Any) -> tuple[list[Any], list[Any]]:
    """The delayed partitions of a collection, and the names or numbers of its columns."""
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        texts = [str(name) for name, kind in X.dtypes.items() if not _is_numeric(kind)]
        if texts:
            words = f"X must hold numbers, but these columns hold text: {', '.join(texts)}."
            raise ValueError(f"{words} Drop them, or encode them as numbers.")
        return list(X.to_delayed()), list(X.columns)
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns: call X.compute_chunk_sizes().")
    return list(X.rechunk({1: -1}).to_delayed().ravel()), list(range(X.shape[1]))


def _is_numeric(kind: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind))


def _as_rows(part: Any) -> Array:
    """Rows (n, d) of an array or a pandas frame."""
    if hasattr(part, "iloc"):
        part = part.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.ascontiguousarray(part, dtype=np.float64)


def _on_rows(part: Any, function: Callable[[Array], Array]) -> Array:
    rows = _as_rows(part)
    return (
        function(rows)
        if len(rows)
        else np.empty((0, *function(np.zeros((1, rows.shape[1]))).shape[1:]))
    )


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
