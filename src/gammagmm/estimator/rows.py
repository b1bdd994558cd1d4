"""Rows of any kind -> a `Table`; large tables on Dask are sampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_array_kind, warn_user
from gammagmm._support.data_frames import as_frame, open_frame
from gammagmm._support.text import listed, shown
from gammagmm.distributed.collection import (
    check_collection,
    is_collection,
    map_rows,
    open_collection,
    sample_numbers,
)
from gammagmm.errors import ColumnsWarning, NewRowsWarning, Note, TableError
from gammagmm.estimator.parameters import Plan
from gammagmm.table.container import Container
from gammagmm.table.frames import array_table, frame_table, has_text_names
from gammagmm.table.preparation import Preparation, prepare
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table
from gammagmm.table.words import ARRAY, PYTHON

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM
    from gammagmm.readers.raw_table import RawTable

__all__ = [
    "check_columns",
    "map_new_rows",
    "new_rows",
    "new_table",
    "open_rows",
    "period_table",
    "read_more",
]

Array = NDArray[np.float64]

_COLLECTED = Note.of("tables.collected", "X")


def open_rows(X: Any, estimator: GammaGMM, plan: Plan) -> Table:
    """The rows of `X`, checked; those of a Dask collection are a uniform sample."""
    if not is_collection(X):
        return _open_table(X, estimator, plan)
    collection = open_collection(X)
    # A stream of its own, so that a fit of the same rows in memory has the same numbers.
    numbers = sample_numbers(collection.n_rows, plan.max_rows, plan.rng.spawn(1)[0])
    table = _open_table(collection.take(numbers), estimator, plan)
    sample = Sample(collection.n_rows, len(numbers), numbers)
    return replace(table, sample=sample, collection=collection).with_sample_note()


def _open_table(X: Any, estimator: GammaGMM, plan: Plan) -> Table:
    """The rows of a table in memory."""
    from sklearn.utils.validation import validate_data

    given = as_frame(X)
    frame = open_frame(given)
    notes = () if frame is given else (_COLLECTED,)
    container = Container.of(frame)
    # scikit-learn sets the columns on the estimator that it is given. It is given a copy, because a
    # fit that fails must leave the estimator as it was.
    probe = copy(estimator)
    is_named = frame is not None and has_text_names(frame)
    if plan.parameters["columns"] is not None and not is_named:
        raise ValueError("columns needs a data frame whose columns have texts as names.")
    if frame is None and (estimator.strict is None or plan.choices.missing == "error"):
        values = np.array(_validate(probe, X, reset=True), order="K")  # the user may change `X`
        return _as_it_is(values, None, container, notes)
    is_strict = plan.choices.missing == "error"
    if frame is None:
        raw = array_table(_array_cells(X, 2), is_strict=is_strict)
    else:
        _check_size(frame)
        if not is_named:  # scikit-learn refuses names of which some are texts
            validate_data(probe, frame.to_native(), reset=True, skip_check_array=True)
        raw = frame_table(frame, is_strict=is_strict)
    if plan.is_precomputed:
        return _as_it_is(_scores(raw), raw.columns if is_named else None, container, notes)
    table = prepare(raw, plan.choices, PYTHON if is_named else ARRAY, guessing=is_named)
    _warn_of(table)
    _warn_of_assumptions(table)
    if container.row_names is not None and plan.choices.id is None:
        table = replace(table, ids=None)  # the index names the rows
    notes = (*notes, *table.notes)
    return replace(table, container=container, notes=notes, places=None, raw=None)


def _as_it_is(
    values: Array, columns: tuple[str, ...] | None, container: Container, notes: tuple[Note, ...]
) -> Table:
    """The rows of a table of numbers that stays what it is."""
    preparation, sample = Preparation(columns, values.shape[1]), Sample.whole(len(values))
    return Table(values, preparation, sample, container=container, notes=notes)


def _scores(raw: RawTable, n_least: int = 2) -> Array:
    """The columns of a frame of scores, which are used as they are."""
    from sklearn.utils.validation import check_array

    texts = [name for j, name in enumerate(raw.columns) if raw.is_text(j)]
    if texts:
        raise TableError(
            f"X must hold numbers, but it has columns of text: {listed(texts)}", "Drop them."
        )
    rows = np.column_stack(raw.data)
    with _explained(rows, n_least):
        return check_array(rows, input_name="X", ensure_min_samples=n_least)


def _warn_of(table: Table) -> None:
    """Name the columns that are not used."""
    guesses = [own for own in table.guesses if own.is_left_out and own.kind != "constant"]
    found = {guess.column: guess.why for guess in guesses}
    found |= {note.subject: note.message for note in table.notes if note.code == "tables.unusable"}
    if not found:
        return
    named = "; ".join(f"{shown(column)}: {why}" for column, why in found.items())
    usable = [guess.column for guess in guesses if {"use", "dates"} & {*guess.instead}]
    them = "it" if len(usable) == 1 else "them"
    keep = f" To use {them}, pass columns={{'use': {usable}}}." if usable else ""
    warn_user(
        f"{'This column is' if len(found) == 1 else 'These columns are'} not used ({named}).{keep}",
        ColumnsWarning,
    )


def _warn_of_assumptions(table: Table) -> None:
    """Name the used columns of text that are read with a decimal mark that they do not show."""
    used = {*table.preparation.used}
    assumed = [note for note in table.notes if note.code == "tables.assumed in memory"]
    said = "; ".join(f"{shown(n.subject)}: {n.message}" for n in assumed if n.subject in used)
    if said:
        warn_user(f"Text was read as numbers by an assumption ({said}).", ColumnsWarning)


def new_rows(X: Any, preparation: Preparation) -> Array:
    """Finite rows (n, d) of `X`, which must have the columns of the training rows."""
    return new_table(X, preparation).values


def period_table(X: Any, preparation: Preparation) -> Table:
    """New rows as a table, of which there may be none if `X` has the columns."""
    if np.shape(X)[:1] != (0,):
        return new_table(X, preparation)
    names = getattr(X, "columns", None)
    lacking = [] if names is None else [name for name in preparation.used if name not in names]
    if lacking:
        raise TableError(f"X lacks columns of the training rows: {listed(lacking)}")
    return Table(np.empty((0, preparation.n_outputs)), preparation, Sample.whole(0))


def new_table(X: Any, preparation: Preparation) -> Table:
    """The same with the names of the rows."""
    frame, is_strict = open_frame(X), preparation.missing == "error"
    if frame is None and preparation.encoder is None:
        values = _validate(_probe(preparation), X, reset=False)
        return Table(values, preparation, Sample.whole(len(values)))
    if frame is None:
        cells = _array_cells(X, 1)
        _check_names(cells, preparation)
        raw = replace(array_table(cells, is_strict=is_strict), columns=preparation.names)
    else:
        _check_size(frame, 1)
        _check_names(frame.to_native(), preparation)
        raw = frame_table(frame, is_strict=is_strict)
        if preparation.columns is None:
            if preparation.encoder is None:
                values = _scores(raw, 1)
                return Table(values, preparation, Sample.whole(len(values)))
            raw = replace(raw, columns=preparation.names)
    table = preparation.apply(raw)
    _warn_of_assumptions(table)
    for note in table.notes:
        if note.code == "tables.unknown text":
            warn_user(f"In the column {shown(note.subject)}, {note.message}.", NewRowsWarning)
    return table


def read_more(table: Table, numbers: NDArray[np.intp]) -> Table:
    """The table with the rows of its collection that have these numbers, which rise."""
    if table.collection is None:
        raise TableError(
            f"The fit has a sample of {table.sample.n_sampled:,} of {table.sample.n_rows:,} rows, "
            f"and {len(numbers):,} of these rows are not among them; a copied or loaded fit cannot "
            "read them from the table",
            "Use the estimator that was fitted, or fit again.",
        )
    taken = table.collection.take(numbers)
    if table.raw is None:
        more = replace(new_table(taken, table.preparation), container=Container.of(taken))
        return table.with_more(numbers, more)
    # Rows of files are shown with all of their columns.
    raw = frame_table(taken, table.name or table.raw.source, numbers)
    return table.with_more(numbers, table.preparation.apply(raw, table.words))


def check_columns(X: Any, preparation: Preparation) -> None:
    """Refuse a collection on Dask with other columns than the fit, before its parts are read."""
    X = check_collection(X)
    _check_names(X._meta if hasattr(X, "columns") else np.empty((0, X.shape[-1])), preparation)


def _check_names(X: Any, preparation: Preparation) -> None:
    """Refuse a table without the columns of the fit, as scikit-learn does.

    Columns that the fit does not use may be absent.
    """
    from sklearn.utils.validation import validate_data

    left_out = set(preparation.left_out)
    probe = _probe(preparation)
    if left_out and hasattr(X, "columns"):
        used = [name for name in preparation.columns or () if name not in left_out]
        probe.n_features_in_, probe.feature_names_in_ = len(used), np.array(used, dtype=object)
        kept = [name for name in as_frame(X).columns if name not in left_out]  # type: ignore[union-attr]
        X = as_frame(X).select(kept).to_native()  # type: ignore[union-attr]
    validate_data(probe, X, reset=False, skip_check_array=True)


def map_new_rows(
    X: Any,
    preparation: Preparation,
    function: Callable[[Array], Array],
    n_columns: int | None = None,
) -> Any:
    """What `function` gives for new rows `X`; a lazy dask array for a Dask collection.

    The function returns `n_columns` values for each row, or one value where that is None.
    """
    if not is_collection(X):
        return function(new_rows(X, preparation))
    check_columns(X, preparation)
    return map_rows(X, partial(_on_part, preparation=preparation, function=function), n_columns)


def _on_part(part: Any, preparation: Preparation, function: Callable[[Array], Array]) -> Array:
    return function(new_rows(part, preparation))


def _probe(preparation: Preparation) -> GammaGMM:
    """An estimator without a fit that has these columns, for scikit-learn's checks."""
    from gammagmm.estimator.gamma_gmm import GammaGMM

    probe = GammaGMM()
    probe.n_features_in_ = preparation.n_columns
    if preparation.columns is not None:
        probe.feature_names_in_ = np.array(preparation.columns, dtype=object)
    return probe


def _check_size(frame: Any, n_least: int = 2) -> None:
    """Refuse a frame with too few rows, or without columns."""
    if len(frame) < n_least or not frame.columns:
        raise ValueError(
            f"X must have at least {n_least} row(s) and a column, got {len(frame)} row(s) and "
            f"{len(frame.columns)} columns."
        )


def _array_cells(X: Any, n_least: int) -> NDArray[Any]:
    """The cells (n, d) of an array of any type, checked by scikit-learn."""
    from sklearn.utils.validation import check_array

    check_array_kind(X)
    with _explained(X, n_least):
        array = X if hasattr(X, "dtype") else np.asarray(X, dtype=object)
        return check_array(array, dtype=None, ensure_all_finite=False, ensure_min_samples=n_least)


def _validate(estimator: GammaGMM, X: Any, *, reset: bool) -> Array:
    """Finite rows (n, d) of an array by scikit-learn, which sets the columns on `estimator`."""
    from sklearn.utils.validation import validate_data

    check_array_kind(X)
    n_least = 2 if reset else 1
    options = {"dtype": np.float64, "ensure_min_samples": n_least}
    # scikit-learn adds all cells up to see whether one is infinite.
    with _explained(X, n_least), np.errstate(invalid="ignore"):
        return validate_data(estimator, X, reset=reset, **options)


@contextmanager
def _explained(X: Any, n_least: int) -> Iterator[None]:
    """Raise a clearer error in place of a ValueError of scikit-learn, where there is one."""
    try:
        yield
    except ValueError as error:
        clearer = _clearer(X, n_least, error)
        if clearer is None:
            raise
        raise clearer from error


def _clearer(X: Any, n_least: int, error: ValueError) -> ValueError | None:
    """What is wrong with the rows that scikit-learn refused; None if its `error` says it best."""
    try:
        cells = np.asarray(X)
    except ValueError:  # rows of several lengths
        return None
    if cells.ndim != 2 or len(cells) < n_least or not cells.shape[1]:
        return ValueError(f"X must be a table of rows and columns. {error}")
    if cells.dtype.kind in "OSU" and (place := _first_text(cells)) is not None:
        i, j = place
        return TableError(
            f"X must hold numbers, but column {j} holds text ({cells[i, j][:40]!r} in row {i})",
            "Drop the column, encode it as numbers, or pass strict=False.",
        )
    if cells.dtype.kind != "c" and np.isnan(cells.astype(np.float64)).any():
        return TableError(
            "Input X contains NaN, which is a missing value",
            "Fill the missing values, drop their rows, or pass strict=False.",
        )
    return None


def _first_text(cells: NDArray[Any]) -> tuple[int, int] | None:
    """Row and column of the first text that is no number; None if there is none."""
    for j, column in enumerate(cells.T):
        for i, value in enumerate(column.tolist()):
            if isinstance(value, str | bytes) and not _is_number(value):
                return i, j
    return None


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
