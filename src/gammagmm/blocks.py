"""Rows in blocks, on a laptop's cores or a cluster's: what can be asked of them, by Dask.

The only module that knows Dask; it knows nothing of the method.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import ClusterError, MissingExtraError

__all__ = [
    "Blocks",
    "clear_errors",
    "compute",
    "import_dask",
    "is_blocks",
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

    `parts` are Dask's delayed values, none of them empty; `sources` are what they were made of,
    with the index that the rows came with.
    """

    parts: tuple[Any, ...]
    lengths: tuple[int, ...]
    n_columns: int
    sources: tuple[Any, ...] = ()

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
        work, sent = import_dask().delayed(function, traverse=False), _send(shared)
        own = [()] * len(self.parts) if each is None else [(one,) for one in each]
        parts = [work(part, *sent, *one) for part, one in zip(self.parts, own, strict=True)]
        return Blocks(_keep(parts), self.lengths, n_columns or self.n_columns, self.sources)

    def merged(self, function: Callable[..., Array], *shared: Any) -> Blocks:
        """function(rows, *shared) of neighbouring blocks together, kept where it was computed.

        A few blocks for each thread, so that a pass over them is few tasks; MERGED_ROWS at most.
        """
        size = min(max(self.n_rows // (4 * _count_threads()), 1), MERGED_ROWS)
        groups = np.split(np.arange(len(self.parts)), _borders(self.lengths, size))
        work, sent = import_dask().delayed(_on_all, traverse=False), _send(shared)
        parts = [work([self.parts[i] for i in group], function, *sent) for group in groups]
        lengths = tuple(sum(self.lengths[i] for i in group) for group in groups)
        return Blocks(_keep(parts), lengths, self.n_columns)

    def summarise(self, function: Callable[..., Any], *shared: Any) -> Any:
        """Sum over the blocks of function(block, *shared), in an order that is always the same."""
        dask = import_dask()
        work, total = dask.delayed(function, traverse=False), dask.delayed(_add_up)
        sent = _send(shared)
        values = [work(part, *sent) for part in self.parts]
        while len(values) > 1:
            values = [total(values[i : i + FAN_IN]) for i in range(0, len(values), FAN_IN)]
        return compute(values)[0]

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
        taken[order] = np.concatenate(compute(wanted))
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
        work, sent = dask.delayed(function, traverse=False), _send(shared)
        each = zip(self.sources, self.offsets.tolist(), self.parts, strict=False)
        return dask.dataframe.from_delayed([work(*own, *sent) for own in each])


def _send(arguments: Sequence[Any]) -> list[Any]:
    """Each argument as a task of its own, which a worker gets once."""
    delayed = import_dask().delayed
    return [delayed(argument, traverse=False) for argument in arguments]


def _keep(parts: Sequence[Any]) -> tuple[Any, ...]:
    """The delayed `parts`, computed in the background and kept on the workers."""
    dask = import_dask()
    with clear_errors(), dask.config.set(LARGE_GRAPHS):
        return tuple(dask.persist(*parts))


def _count_threads() -> int:
    """Threads of the cluster at hand, or of this machine."""
    try:
        client = import_dask().distributed.get_client()
    except ValueError:
        return os.cpu_count() or 1
    with clear_errors():
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


def compute(values: Sequence[Any]) -> tuple[Any, ...]:
    """What delayed values are, by the cluster that is at hand."""
    with clear_errors():
        return tuple(import_dask().compute(*values))


@contextmanager
def clear_errors() -> Iterator[None]:
    """A `ClusterError` in place of what Dask raises once a cluster is of no use any more."""
    from asyncio import CancelledError as AsyncCancelled
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        yield
    except KilledWorker as error:
        what = "A task of the Dask cluster was given up, since each worker that took it died"
        todo = "Most often memory ran out: give smaller blocks, or workers more memory"
        raise ClusterError(f"{what} ({error.task}). {todo}.") from error
    except (CommClosedError, CancelledError, AsyncCancelled, TimeoutError) as error:
        what = "The connection to the Dask scheduler is lost"
        raise ClusterError(f"{what} ({_words(error)}). Start the cluster and fit again.") from error


def _words(error: BaseException) -> str:
    """The message of `error` as one clause."""
    words = " ".join(str(error).split()).replace(". ", "; ").rstrip(".")
    return words[:200] or type(error).__name__
