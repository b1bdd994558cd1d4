"""Rows in blocks, on a laptop's cores or a cluster's: what can be asked of them, by Dask.

The only module that knows Dask; it knows nothing of the method.
"""

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

from gammagmm.errors import ClusterError, MissingExtraError

__all__ = [
    "Blocks",
    "clear_errors",
    "client_at_hand",
    "compute",
    "import_dask",
    "is_blocks",
    "keep",
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
        words = f"Blocks of rows need Dask ({error}): pip install 'gammagmm[dask]'."
        raise MissingExtraError(words, name=error.name) from error
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
