"""Dask array or data frame -> rows in blocks, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_frame
from gammagmm.blocks.cluster import (
    compute,
    current_client,
    import_dask,
    keep,
    send,
)
from gammagmm.errors import TableError

__all__ = ["Blocks", "check_collection", "is_blocks", "map_rows", "open_blocks"]

Array = NDArray[np.float64]
FAN_IN = 8
"""Number of blocks whose results one task adds."""


def is_blocks(X: Any) -> bool:
    """Whether `X` is a Dask collection."""
    return type(X).__module__.partition(".")[0] == "dask"


def open_blocks(X: Any) -> Blocks:
    """The rows of a dask array or data frame of numbers, after one pass that checks them.

    Empty blocks are left out. A value that is missing or not finite raises a ValueError with its
    row and column.
    """
    check_collection(X)
    delayed, client = import_dask().delayed, current_client()
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
    """Refuse everything but a dask array or data frame of numbers."""
    dask = import_dask()
    is_frame = isinstance(X, dask.dataframe.DataFrame)
    if not (is_frame or isinstance(X, dask.array.Array)) or X.ndim != 2:
        kind = type(X).__name__
        raise ValueError(f"X must be a table of rows and columns, got a dask {kind}.")
    if is_frame:
        as_frame(X)  # refuses repeated names, dates and times
        others = [str(name) for name, kind in X.dtypes.items() if not _is_real(kind)]
        if others:
            what = f"X must hold numbers, but these columns do not: {', '.join(others)}"
            raise TableError(what, "Drop them, or encode them as numbers.")
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
    """Lazy dask array of ``function(rows, *shared)``.

    The function returns `n_columns` values for each row, or one value where that is None.
    """
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
    """Whether the rows have an index other than their numbers."""
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
    """``function(rows, *shared)`` of a block, which may be empty."""
    rows = _as_rows(part)
    if n_bad := int((~np.isfinite(rows)).sum()):
        raise ValueError(f"A block of X has {n_bad} values that are missing or not finite.")
    if len(rows):
        return function(rows, *shared)
    return function(np.zeros((1, rows.shape[1])), *shared)[:0]


def _look(rows: Array) -> tuple[int, int, int, int]:
    """Number of rows, number of values that are not finite, row and column of the first."""
    bad = np.argwhere(~np.isfinite(rows))
    first = bad[0].tolist() if len(bad) else [-1, -1]
    return len(rows), len(bad), first[0], first[1]


def _check_seen(seen: Sequence[tuple[int, int, int, int]], names: list[Any]) -> None:
    n_rows = 0
    for length, n_bad, row, column in seen:
        if n_bad:
            n_all = sum(one[1] for one in seen)
            where = f"the first in row {n_rows + row}, column {names[column]!r}"
            what = f"X has {n_all} values that are missing or not finite, {where}"
            raise TableError(what, "Drop these rows or fill the values.")
        n_rows += length
    if n_rows < 2 or not names:
        raise ValueError(f"X must have at least 2 rows and a column, got {n_rows} x {len(names)}.")


@dataclass(frozen=True)
class Blocks:
    """Rows in blocks.

    Attributes
    ----------
    parts : tuple of delayed values
        Each is an array (length, n_columns) once it is computed; none is empty.
    lengths : tuple of int
        Rows of each part.
    n_columns : int
        Columns of every part.
    client : distributed.Client or None
        Client of the cluster that has the parts; None for threads of this process.
    sources : tuple of delayed values or None
        The partitions with the index of the rows; None where the rows are only numbered.
    """

    parts: tuple[Any, ...]
    lengths: tuple[int, ...]
    n_columns: int
    client: Any = None
    sources: tuple[Any, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return sum(self.lengths)

    @property
    def offsets(self) -> NDArray[np.intp]:
        """Number of the first row of each block, followed by the number of all rows."""
        return np.append(0, np.cumsum(self.lengths)).astype(np.intp)

    def map(
        self,
        function: Callable[..., Array],
        *shared: Any,
        each: Sequence[Any] | None = None,
        n_columns: int | None = None,
    ) -> Blocks:
        """The blocks ``function(block, *shared)``, kept on the workers that computed them.

        `each` holds one more argument for each block, which comes last.
        """
        work, sent = import_dask().delayed(function, traverse=False), send(shared)
        own = [()] * len(self.parts) if each is None else [(one,) for one in each]
        parts = [work(part, *sent, *one) for part, one in zip(self.parts, own, strict=True)]
        kept = keep(parts, self.client)
        return replace(self, parts=kept, n_columns=n_columns or self.n_columns)

    def lazily(self, function: Callable[..., Array], *shared: Any, n_columns: int) -> Blocks:
        """The blocks ``function(block, *shared)``, computed whenever they are needed."""
        work, sent = import_dask().delayed(function, traverse=False), send(shared)
        parts = tuple(work(part, *sent) for part in self.parts)
        return replace(self, parts=parts, n_columns=n_columns)

    def summarise(self, function: Callable[..., Any], *shared: Any) -> Any:
        """Sum over the blocks of ``function(block, *shared)``, always in the same order."""
        dask = import_dask()
        work, total = dask.delayed(function, traverse=False), dask.delayed(_add_up)
        sent = send(shared)
        values = [work(part, *sent) for part in self.parts]
        while len(values) > 1:
            values = [total(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]
        return compute(values, self.client)[0]

    def take(self, rows: NDArray[np.intp]) -> Array:
        """The rows with these numbers, in their order, as an array (n, n_columns)."""
        work = import_dask().delayed(_take)
        order = np.argsort(rows, kind="stable")
        places = np.split(rows[order], np.searchsorted(rows[order], self.offsets[1:-1]))
        wanted = [
            work(part, own - first)
            for part, own, first in zip(self.parts, places, self.offsets, strict=False)
            if len(own)
        ]
        taken = np.empty((len(rows), self.n_columns))
        taken[order] = np.concatenate(compute(wanted, self.client))
        return taken

    def array(self) -> Any:
        """The rows as a lazy dask array."""
        da: Any = import_dask().array
        pieces = [
            da.from_delayed(part, (length, self.n_columns), dtype=np.float64)
            for part, length in zip(self.parts, self.lengths, strict=True)
        ]
        return da.concatenate(pieces)

    def frame(self, function: Callable[..., Any], *shared: Any) -> Any:
        """Lazy dask data frame of the pandas frames ``function(source, first, block, *shared)``.

        `first` is the number of the block's first row.
        """
        dask = import_dask()
        work, sent = dask.delayed(function, traverse=False), send(shared)
        sources = self.sources or (None,) * len(self.parts)
        each = zip(sources, self.offsets.tolist(), self.parts, strict=False)
        meta = function(None, 0, np.empty((0, self.n_columns)), *shared)
        frames = [work(*own, *sent) for own in each]
        return dask.dataframe.from_delayed(frames, meta=meta, verify_meta=False)


def _add_up(values: list[Any]) -> Any:
    return reduce(add, values)


def _take(part: Array, rows: NDArray[np.intp]) -> Array:
    return part[rows]
