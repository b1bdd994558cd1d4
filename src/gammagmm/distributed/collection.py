"""A Dask array or data frame: a uniform sample of its rows, and maps over its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import check_same_columns
from gammagmm.distributed.cluster import compute, current_client, import_dask, send

__all__ = ["Collection", "is_collection", "map_rows", "open_collection", "sample_numbers"]

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]


def is_collection(X: Any) -> bool:
    """Whether `X` is a Dask collection."""
    return type(X).__module__.partition(".")[0] == "dask"


def open_collection(X: Any) -> Collection:
    """The dask array or data frame `X`, once the rows of its parts have been counted."""
    X = check_collection(X)
    client = current_client()
    delayed = import_dask().delayed
    narrow = X.iloc[:, :1] if hasattr(X, "columns") else X
    if not hasattr(X, "columns") and not np.isnan(X.chunks[0]).any():
        lengths = tuple(map(int, X.chunks[0]))
    else:
        lengths = compute([delayed(len)(part) for part in _parts(narrow)], client)
    if sum(lengths) < 2 or not X.shape[1]:
        what = f"X must have at least 2 rows and a column, got {sum(lengths)} x {X.shape[1]}."
        raise ValueError(what)
    return Collection(X, tuple(lengths), client)


def check_collection(X: Any) -> Any:
    """The dask array or data frame `X`; everything else on Dask is refused."""
    dask = import_dask()
    is_frame = isinstance(X, dask.dataframe.DataFrame)
    if not (is_frame or isinstance(X, dask.array.Array)) or X.ndim != 2:
        kind = type(X).__name__
        raise ValueError(f"X must be a table of rows and columns, got a dask {kind}.")
    if is_frame:
        return X
    if isinstance(X._meta, np.ma.MaskedArray):
        raise ValueError("X is a masked array: fill its masked values, or drop their rows.")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got the type {X.dtype}.")
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns: call X.compute_chunk_sizes().")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def sample_numbers(n_rows: int, max_rows: int | None, rng: np.random.Generator) -> Numbers:
    """Numbers of `max_rows` random rows, in rising order, or of all rows if there are fewer."""
    if max_rows is None or n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(rng.choice(n_rows, max_rows, replace=False))


@dataclass(frozen=True, eq=False)
class Collection:
    """The rows of a dask array or data frame.

    Attributes
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows; an array has all columns in one block.
    lengths : tuple of int
        Number of rows of each part.
    client : distributed.Client or None
        Client of the cluster that computes; None for threads of this process.
    """

    X: Any
    lengths: tuple[int, ...]
    client: Any = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return sum(self.lengths)

    @property
    def offsets(self) -> Numbers:
        """Number of the first row of each part."""
        return np.append(0, np.cumsum(self.lengths)[:-1]).astype(np.intp)

    def is_of(self, X: Any) -> bool:
        """Whether `X` is this collection."""
        return is_collection(X) and hasattr(X, "ndim") and _name(X) == _name(self.X)

    def take(self, numbers: Numbers) -> Any:
        """The rows with these `numbers`, which rise: a pandas DataFrame or an array.

        Rows with a default index are named by their numbers. Parts of a data frame with other
        columns than the first are a `TableError`.
        """
        work = import_dask().delayed(_take)
        places = np.split(numbers, np.searchsorted(numbers, self.offsets[1:]))
        wanted = [i for i, own in enumerate(places) if len(own)] or [0]
        has_default = _has_default_index(self.X)
        parts, offsets = _parts(self.X), self.offsets.tolist()
        tasks = [
            work(parts[i], places[i] - offsets[i], offsets[i] if has_default else None)
            for i in wanted
        ]
        taken = compute(tasks, self.client)
        if not hasattr(self.X, "columns"):
            return np.concatenate(taken)
        import pandas as pd

        columns = list(self.X.columns)
        for i, part in zip(wanted, taken, strict=True):
            check_same_columns("X", columns, f"Part {i + 1} of X", list(part.columns))
        return pd.concat(taken)

    def first(self, score: Callable[[Any], Array], n: int) -> Numbers:
        """Numbers of the `n` rows with the highest `score`, the highest first."""
        found = self.gather(_first, score, n)
        numbers, scores = (np.concatenate(each) for each in zip(*found, strict=True))
        return np.asarray(numbers[np.lexsort((numbers, -scores))][:n])

    def gather(self, function: Callable[..., Any], *shared: Any) -> tuple[Any, ...]:
        """``function(part, first, *shared)`` of each part; `first` numbers its first row."""
        work, sent = import_dask().delayed(function, traverse=False), send(shared)
        parts = zip(_parts(self.X), self.offsets.tolist(), strict=True)
        return compute([work(part, first, *sent) for part, first in parts], self.client)

    def frame(self, function: Callable[..., Any], *shared: Any) -> Any:
        """Lazy dask data frame of the pandas frames ``function(part, first, *shared)``.

        `first` is the number of the first row of the part.
        """
        dask = import_dask()
        work, sent = dask.delayed(function, traverse=False), send(shared)
        empty = function(_empty(self.X), 0, *shared)
        made = [
            work(part, int(first), *sent)
            for part, first in zip(_parts(self.X), self.offsets, strict=True)
        ]
        return dask.dataframe.from_delayed(made, meta=empty, verify_meta=False)


def map_rows(X: Any, function: Callable[[Any], Array], n_columns: int | None = None) -> Any:
    """Lazy dask array of what `function` gives for each part of `X`, an array or a pandas frame.

    The function returns `n_columns` values for each row, or one value where that is None.
    """
    X = check_collection(X)
    dask = import_dask()
    # As an argument, the function with its detectors is sent once, not with every task.
    (sent,) = send([function])
    work = dask.delayed(_apply)
    lengths = [np.nan] * X.npartitions if hasattr(X, "columns") else X.chunks[0]
    ends = () if n_columns is None else (n_columns,)
    pieces = [
        dask.array.from_delayed(work(part, sent, ends), (length, *ends), dtype=np.float64)
        for part, length in zip(_parts(X), lengths, strict=True)
    ]
    return dask.array.concatenate(pieces)


def _apply(part: Any, function: Callable[[Any], Array], ends: tuple[int, ...]) -> Array:
    return function(part) if len(part) else np.empty((0, *ends))


def _parts(X: Any) -> list[Any]:
    """The delayed parts of a collection."""
    return list(X.to_delayed() if hasattr(X, "columns") else X.to_delayed().ravel())


def _name(X: Any) -> str:
    return str(getattr(X, "_name", None) or getattr(X, "name", ""))


def _empty(X: Any) -> Any:
    """A part of `X` without rows."""
    return X._meta.iloc[:0] if hasattr(X, "columns") else np.empty((0, X.shape[1]))


def _has_default_index(X: Any) -> bool:
    """Whether the rows have no other names than their numbers."""
    import pandas as pd

    index = getattr(X, "_meta", X).index if hasattr(X, "columns") else None
    return index is None or (isinstance(index, pd.RangeIndex) and index.name is None)


def _take(part: Any, places: Numbers, first: int | None) -> Any:
    """The rows of a part at these places, named by their numbers if that of the first is given."""
    if not hasattr(part, "iloc"):
        return np.asarray(part)[places]
    taken = part.iloc[places]
    return taken if first is None else taken.set_axis(places + first, axis=0)


def _first(part: Any, first: int, score: Callable[[Any], Array], n: int) -> tuple[Numbers, Array]:
    """Numbers and scores of the `n` rows of a part with the highest scores."""
    if not len(part):
        return np.empty(0, dtype=np.intp), np.empty(0)
    scores = score(part)
    order = np.argsort(-scores, kind="stable")[:n]
    return order + first, scores[order]
