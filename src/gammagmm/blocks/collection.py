"""Dask array or data frame -> rows in blocks, and what can be asked of them."""

from __future__ import annotations

import os
from asyncio import CancelledError as AsyncCancelled
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_table
from gammagmm.errors import ClusterError, MissingExtraError

__all__ = [
    "Blocks",
    "check_collection",
    "clear_errors",
    "client_at_hand",
    "compute",
    "import_dask",
    "is_blocks",
    "keep",
    "map_rows",
    "open_blocks",
    "send",
]

Array = NDArray[np.float64]
# Fitted detectors are part of the graph, so that blocks lost with a worker can be scored again.
LARGE_GRAPHS = {"distributed.admin.large-graph-warning-threshold": "1TB"}
FAN_IN = 8
"""How many blocks' answers are added by one task."""
MERGED_ROWS = 500_000
"""Most rows of a block that was merged from others, unless one of them has more."""


def is_blocks(X: Any) -> bool:
    """Whether `X` is a collection of Dask's."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def import_dask() -> Any:
    """The package dask, with arrays and data frames."""
    try:
        import dask
        import dask.array
        import dask.dataframe
        import dask.distributed
    except ImportError as error:
        raise MissingExtraError("A table on Dask needs Dask", "dask", name=error.name) from error
    return dask


@dataclass(frozen=True)
class Blocks:
    """Rows in blocks: each part, once it is computed, is an array (length, n_columns).

    `parts` are Dask's delayed values, none of them empty; `sources` are the partitions that have
    the index of the rows, where it says something.
    """

    parts: tuple[Any, ...]
    lengths: tuple[int, ...]
    n_columns: int
    client: Any = None  # of the cluster that has them; None: threads of this process
    sources: tuple[Any, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return sum(self.lengths)

    @property
    def offsets(self) -> NDArray[np.intp]:
        """Number of the first row of each block, and of all rows at the end."""
        return np.append(0, np.cumsum(self.lengths)).astype(np.intp)

    def map(
        self,
        function: Callable[..., Array],
        *shared: Any,
        each: Sequence[Any] | None = None,
        n_columns: int | None = None,
    ) -> Blocks:
        """function(block, *shared) of every block, kept where it was computed.

        With `each`, one more argument for each block comes last.
        """
        work, sent = import_dask().delayed(function, traverse=False), send(shared)
        own = [()] * len(self.parts) if each is None else [(one,) for one in each]
        parts = [work(part, *sent, *one) for part, one in zip(self.parts, own, strict=True)]
        kept = keep(parts, self.client)
        return replace(self, parts=kept, n_columns=n_columns or self.n_columns)

    def merged(self, function: Callable[..., Array], *shared: Any) -> Blocks:
        """function(rows, *shared) of neighbouring blocks together, kept where it was computed.

        A few blocks for each thread, so that a pass over them is few tasks; MERGED_ROWS at most.
        """
        size = min(max(self.n_rows // (4 * _count_threads(self.client)), 1), MERGED_ROWS)
        groups = np.split(np.arange(len(self.parts)), _borders(self.lengths, size))
        work, sent = import_dask().delayed(_on_all, traverse=False), send(shared)
        parts = [work([self.parts[i] for i in group], function, *sent) for group in groups]
        lengths = tuple(sum(self.lengths[i] for i in group) for group in groups)
        return Blocks(keep(parts, self.client), lengths, self.n_columns, self.client)

    def summarise(self, function: Callable[..., Any], *shared: Any) -> Any:
        """Sum over the blocks of function(block, *shared), in an order that is always the same."""
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
        """Lazy dask data frame of function(source, first, block, *shared), a pandas frame each.

        `first` is the number of the block's first row.
        """
        dask = import_dask()
        work, sent = dask.delayed(function, traverse=False), send(shared)
        sources = self.sources or (None,) * len(self.parts)
        each = zip(sources, self.offsets.tolist(), self.parts, strict=False)
        meta = function(None, 0, np.empty((0, self.n_columns)), *shared)
        frames = [work(*own, *sent) for own in each]
        return dask.dataframe.from_delayed(frames, meta=meta, verify_meta=False)


def send(arguments: Sequence[Any]) -> list[Any]:
    """Each argument as a delayed value of its own, which a worker gets once."""
    delayed = import_dask().delayed
    return [delayed(argument, traverse=False) for argument in arguments]


def keep(parts: Sequence[Any], client: Any) -> tuple[Any, ...]:
    """The delayed `parts`, computed in the background and kept on the workers."""
    dask = import_dask()
    with clear_errors(client), dask.config.set(LARGE_GRAPHS):
        return tuple(dask.persist(*parts) if client is None else client.persist(list(parts)))


def compute(values: Sequence[Any], client: Any) -> tuple[Any, ...]:
    """What the delayed `values` are, by the cluster of `client` or by threads."""
    with clear_errors(client):
        if client is None:
            return tuple(import_dask().compute(*values))
        return tuple(client.gather(client.compute(list(values))))


def client_at_hand() -> Any:
    """The client of the cluster that is in use here; None: there is none."""
    try:
        return import_dask().distributed.get_client()
    except ValueError:
        return None


def _count_threads(client: Any) -> int:
    """Threads of the cluster, or of this machine."""
    if client is None:
        return os.cpu_count() or 1
    with clear_errors(client):
        return sum(client.ncores().values()) or 1


def _borders(lengths: Sequence[int], size: int) -> list[int]:
    """Where a group of neighbours begins, so that each has `size` rows at most, or one block."""
    borders, n_rows = [], 0
    for i, length in enumerate(lengths):
        if i and n_rows + length > size:
            borders.append(i)
            n_rows = 0
        n_rows += length
    return borders


def _on_all(parts: list[Array], function: Callable[..., Array], *shared: Any) -> Array:
    return function(np.concatenate(parts), *shared)


def _add_up(values: list[Any]) -> Any:
    return reduce(add, values)


def _take(part: Array, rows: NDArray[np.intp]) -> Array:
    return part[rows]


@contextmanager
def clear_errors(client: Any) -> Iterator[None]:
    """A `ClusterError` in place of what Dask raises once the cluster is of no use any more.

    A client that has lost its scheduler must not be used: Dask would go on with threads.
    """
    from concurrent.futures import CancelledError

    import distributed
    from distributed import KilledWorker

    # Older versions have no name for it.
    closed = getattr(distributed.client, "ClosedClientError", CancelledError)

    if _is_lost(client):
        raise _lost("it was closed")
    try:
        yield
    except KilledWorker as error:
        what = "A task of the Dask cluster was given up, since each worker that took it died"
        todo = "Most often memory ran out: give smaller blocks, or workers more memory"
        raise ClusterError(f"{what} ({error.task}). {todo}.") from error
    except (CancelledError, AsyncCancelled, closed) as error:
        raise _lost(_words(error)) from error
    except OSError as error:  # of a connection, or of a task that reads a file
        if not _is_lost(client):
            raise
        raise _lost(_words(error)) from error


def _is_lost(client: Any) -> bool:
    return client is not None and client.status != "running"


def _lost(words: str) -> ClusterError:
    what = f"The connection to the Dask scheduler is lost ({words})"
    return ClusterError(f"{what}. Start the cluster and fit again.")


def _words(error: BaseException) -> str:
    """The message of `error` as one clause."""
    words = " ".join(str(error).split()).replace(". ", "; ").rstrip(".")
    return words[:200] or type(error).__name__


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
