"""A Dask array or data frame: a uniform sample of its rows, and maps over its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import check_same_columns
from gammagmm._support.text import shown
from gammagmm.distributed.cluster import compute, current_client, import_dask, send
from gammagmm.errors import TableError

__all__ = [
    "Collection",
    "in_memory",
    "index_of_part",
    "is_collection",
    "map_rows",
    "open_collection",
    "sample_numbers",
]

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]


def is_collection(X: Any) -> bool:
    """Whether `X` is a Dask collection."""
    return type(X).__module__.partition(".")[0] == "dask"


def open_collection(X: Any) -> Collection:
    """The dask array or data frame `X`, once the rows of its parts have been counted."""
    given, X = X, check_collection(X)
    client = current_client()
    if not hasattr(X, "columns") and not np.isnan(X.chunks[0]).any():
        lengths = tuple(map(int, X.chunks[0]))
    else:
        lengths = _count_rows(given, X, client)
    if sum(lengths) < 2 or not X.shape[1]:
        what = f"X must have at least 2 rows and a column, got {sum(lengths)} x {X.shape[1]}."
        raise ValueError(what)
    return Collection(X, tuple(lengths), client)


def _count_rows(given: Any, X: Any, client: Any) -> tuple[int, ...]:
    """Number of rows of each part of `X`, the checked form of the collection `given`."""
    if hasattr(X, "columns"):
        narrow = given.iloc[:, :1].optimize()  # of files, only a column is read
        # An optimised collection that has as many parts as before has the same parts.
        if narrow.npartitions == X.npartitions == given.npartitions:
            with suppress(KeyError):  # a part lacks the column, which is said below
                return compute(_tasks(narrow, len), client)
    return compute(_tasks(X, len), client)


def in_memory(values: Any) -> Any:
    """The values of a dask array or series as an array; others as they are."""
    if not is_collection(values):
        return values
    return np.asarray(compute([values], current_client())[0])


def check_collection(X: Any) -> Any:
    """The dask array or data frame `X`; everything else on Dask is refused."""
    dask = import_dask()
    is_frame = isinstance(X, dask.dataframe.DataFrame)
    if not (is_frame or isinstance(X, dask.array.Array)) or X.ndim != 2:
        kind = type(X).__name__
        raise ValueError(f"X must be a table of rows and columns, got a dask {kind}.")
    if is_frame:
        # Dask may join parts when it optimises, for example if few columns of files are read. All
        # later steps must have the same parts.
        return X.optimize()
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

        Rows without names are named by their numbers.
        """
        places = np.split(numbers, np.searchsorted(numbers, self.offsets[1:]))
        wanted = [i for i, own in enumerate(places) if len(own)] or [0]
        offsets = self.offsets.tolist()
        own = [(places[i] - offsets[i], offsets[i]) for i in wanted]
        taken = compute(_tasks(self.X, _take, own, chosen=wanted), self.client)
        if not hasattr(self.X, "columns"):
            return np.concatenate(taken)
        import pandas as pd

        return pd.concat(taken)

    def first(self, score: Callable[[Any, int], Array], n: int) -> Numbers:
        """Numbers of the `n` rows with the highest scores, the highest first.

        ``score(part, first)`` gives those of a part, whose first row has the number `first`.
        """
        found = self.gather(_first, score, n)
        numbers, scores = (np.concatenate(each) for each in zip(*found, strict=True))
        return np.asarray(numbers[np.lexsort((numbers, -scores))][:n])

    def gather(self, function: Callable[..., Any], *shared: Any) -> tuple[Any, ...]:
        """``function(part, first, *shared)`` of each part; `first` numbers its first row."""
        return compute(self._map(function, *shared), self.client)

    def frame(self, function: Callable[..., Any], *shared: Any) -> Any:
        """Lazy dask data frame of the pandas frames ``function(part, first, *shared)``.

        `first` is the number of the first row of the part.
        """
        empty = function(_empty(self.X), 0, *shared)
        made = self._map(function, *shared)
        return import_dask().dataframe.from_delayed(made, meta=empty)

    def _map(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        sent = send(shared)
        return _tasks(self.X, function, [(first, *sent) for first in self.offsets.tolist()])


def map_rows(X: Any, function: Callable[[Any], Array], n_columns: int | None = None) -> Any:
    """Lazy dask array of what `function` gives for each part of `X`, an array or a pandas frame.

    The function returns `n_columns` values for each row, or one value where that is None.
    """
    X = check_collection(X)
    dask = import_dask()
    # As an argument, the function with its detectors is sent once, not with every task.
    (sent,) = send([function])
    lengths = [np.nan] * X.npartitions if hasattr(X, "columns") else X.chunks[0]
    ends = () if n_columns is None else (n_columns,)
    tasks = _tasks(X, _apply, [(sent, ends)] * len(lengths))
    pieces = [
        dask.array.from_delayed(task, (length, *ends), dtype=np.float64)
        for task, length in zip(tasks, lengths, strict=True)
    ]
    return dask.array.concatenate(pieces)


def _apply(part: Any, function: Callable[[Any], Array], ends: tuple[int, ...]) -> Array:
    return function(part) if len(part) else np.empty((0, *ends))


def _parts(X: Any) -> list[Any]:
    """The delayed parts of a collection."""
    return list(
        X.to_delayed(optimize_graph=False) if hasattr(X, "columns") else X.to_delayed().ravel()
    )


def _name(X: Any) -> str:
    return str(getattr(X, "_name", None) or getattr(X, "name", ""))


def _empty(X: Any) -> Any:
    """A part of `X` without rows."""
    return X._meta.iloc[:0] if hasattr(X, "columns") else np.empty((0, X.shape[1]))


def _tasks(
    X: Any,
    function: Callable[..., Any],
    own: Sequence[tuple[Any, ...]] | None = None,
    chosen: Sequence[int] | None = None,
) -> list[Any]:
    """Delayed ``function(part, *own[i])`` of each part, or of those that are `chosen`.

    A part of a data frame with other columns than the collection is a `TableError`.
    """
    parts = _parts(X)
    chosen = range(len(parts)) if chosen is None else chosen
    own = [()] * len(parts) if own is None else own
    work = import_dask().delayed(_checked)
    kinds = _kinds(X._meta) if hasattr(X, "columns") else None
    pairs = zip(chosen, own, strict=True)
    return [work(parts[i], i + 1, kinds, function, *arguments) for i, arguments in pairs]


def _checked(
    part: Any,
    number: int,
    kinds: Sequence[tuple[str, str]] | None,
    function: Callable[..., Any],
    *arguments: Any,
) -> Any:
    """``function(part, *arguments)``, once the columns of the part have been checked."""
    if kinds is not None and len(part):
        name = f"Part {number} of X"
        check_same_columns("X", [column for column, _ in kinds], name, list(part.columns))
        for (column, expected), (_, found) in zip(kinds, _kinds(part), strict=True):
            if found and expected and found != expected:
                raise TableError(
                    f"{name}: the column {shown(str(column))} has {found}, and {expected} in X",
                    "Give parts whose columns have the same types.",
                )
    return function(part, *arguments)


def _kinds(frame: Any) -> list[tuple[Any, str]]:
    """Name and kind of each column of a pandas frame; the kind is empty where any may be."""
    from pandas import StringDtype
    from pandas.api.types import infer_dtype, is_datetime64_any_dtype, is_numeric_dtype

    def kind(column: Any) -> str:
        if is_numeric_dtype(column.dtype):
            return "numbers"
        if is_datetime64_any_dtype(column.dtype):
            return "dates"
        # A column of booleans with gaps holds objects.
        is_text = (
            isinstance(column.dtype, StringDtype) or infer_dtype(column, skipna=True) == "string"
        )
        return "text" if is_text else ""

    return [(name, kind(column)) for name, column in frame.items()]


def index_of_part(part: Any, first: int) -> Any:
    """The names of the rows of a part; if they have none, their numbers, from `first`."""
    import pandas as pd

    index = getattr(part, "index", None)
    numbers = pd.RangeIndex(first, first + len(part))
    if index is None:
        return numbers
    # Files have the default index 0, 1, ... each.
    is_default = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(part)))
    return numbers if is_default and index.name is None else index


def _take(part: Any, places: Numbers, first: int) -> Any:
    """The rows of a part at these places; `first` is the number of its first row."""
    if not hasattr(part, "iloc"):
        return np.asarray(part)[places]
    return part.set_axis(index_of_part(part, first), axis=0).iloc[places]


def _first(
    part: Any, first: int, score: Callable[[Any, int], Array], n: int
) -> tuple[Numbers, Array]:
    """Numbers and scores of the `n` rows of a part with the highest scores."""
    if not len(part):
        return np.empty(0, dtype=np.intp), np.empty(0)
    scores = score(part, first)
    order = np.argsort(-scores, kind="stable")[:n]
    return order + first, scores[order]
