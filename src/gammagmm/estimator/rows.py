"""Rows of any table -> numbers with names; large tables on Dask are sampled."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_array_kind, explain_rows
from gammagmm._support.data_frames import as_frame, frame_numbers, open_frame
from gammagmm._support.table_encoder import TableEncoder
from gammagmm._support.text import listed
from gammagmm.distributed.collection import (
    Collection,
    check_collection,
    is_collection,
    map_rows,
    open_collection,
    sample_numbers,
)
from gammagmm.errors import Note
from gammagmm.estimator.encoding import encode_new_rows, encode_rows
from gammagmm.estimator.frames import Container
from gammagmm.estimator.parameters import Plan
from gammagmm.inspection.sample import Sample

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = [
    "Columns",
    "Rows",
    "SampledRows",
    "map_new_rows",
    "open_rows",
]

Array = NDArray[np.float64]

_COLLECTED = Note("tables", "X", "is a lazy frame, whose rows were collected into memory")


@dataclass(frozen=True)
class Columns:
    """The columns of a table; their names are None where it has none.

    `encoder` turns them into columns of numbers; None where they are numbers already. `missing` is
    what the encoder does with gaps.
    """

    n_features: int
    names: Any = None  # ndarray of shape (n_features,)
    encoder: TableEncoder | None = None
    missing: str = "error"

    @property
    def n_numbers(self) -> int:
        """Number of columns of numbers."""
        return self.n_features if self.encoder is None else len(self.encoder.outputs)

    @property
    def number_names(self) -> Any:
        """Names of the columns of numbers; None where they have none."""
        return self.names if self.encoder is None else self.encoder.outputs

    def numbers(self, X: Any) -> Array:
        """Finite rows (n, d) of `X`, which must have these columns."""
        if self.encoder is not None:
            return encode_new_rows(_probe(self), X, self.encoder)
        return _validate(_probe(self), X, reset=False)

    def check_collection(self, X: Any) -> None:
        """Refuse a collection on Dask with other columns, before its parts are read."""
        from sklearn.utils.validation import validate_data

        meta = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[-1]))
        validate_data(_probe(self), meta, reset=False, skip_check_array=True)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows of a fit as numbers (n, d)."""

    values: Array
    columns: Columns
    sample: Sample  # which rows of the table they are
    container: Container  # the kind of data frame that they came in
    notes: tuple[Note, ...] = ()  # what was collected, filled, encoded or sampled
    collection: Any = None  # the table that they are a sample of


@dataclass(frozen=True, eq=False, repr=False)
class SampledRows:
    """Rows that were taken from a collection on Dask, as `GammaGMM.fit` takes them.

    If the rows have been prepared already, `columns` are those of the collection.
    """

    X: Any
    sample: Sample
    collection: Collection
    columns: Columns | None = None


def open_rows(X: Any, estimator: GammaGMM, plan: Plan) -> Rows:
    """The rows of `X`, checked; those of a Dask collection are a uniform sample."""
    if is_collection(X):
        collection = open_collection(X)
        # A stream of its own, so that a fit of the same rows in memory has the same numbers.
        numbers = sample_numbers(collection.n_rows, plan.max_rows, plan.rng.spawn(1)[0])
        X = SampledRows(
            collection.take(numbers),
            Sample(collection.n_rows, len(numbers), numbers),
            collection,
        )
    if isinstance(X, SampledRows):
        rows = _open_table(X.X, estimator, plan)
        notes, sample = rows.notes, X.sample
        if sample.n_sampled < sample.n_rows:
            message = f"the fit has a random sample of {sample.n_sampled} of {sample.n_rows} rows"
            notes = (Note("tables", "max_rows", message), *notes)
        columns = rows.columns if X.columns is None else X.columns
        return Rows(rows.values, columns, sample, rows.container, notes, X.collection)
    return _open_table(X, estimator, plan)


def _open_table(X: Any, estimator: GammaGMM, plan: Plan) -> Rows:
    """The rows of a table in memory."""
    given = as_frame(X)
    frame = open_frame(given)
    notes = () if frame is given else (_COLLECTED,)
    container, table = Container.of(frame), X if frame is None else frame
    # scikit-learn sets the columns on the estimator that it is given. It is given a copy, because a
    # fit that fails must leave the estimator as it was.
    probe = copy(estimator)
    if plan.is_encoded:
        encoded, encoder = encode_rows(probe, table)
        names = getattr(probe, "feature_names_in_", None)
        columns = Columns(probe.n_features_in_, names, encoder, estimator.missing)
        values, notes = encoded.values, (*notes, *encoded.notes)
    else:
        values = _validate(probe, table, reset=True)
        columns = Columns(values.shape[1], getattr(probe, "feature_names_in_", None))
        if frame is None:
            values = np.array(values, order="K")  # the user may change the table
    return Rows(values, columns, Sample.whole(len(values)), container, notes)


def map_new_rows(
    X: Any, columns: Columns, function: Callable[[Array], Array], n_columns: int | None = None
) -> Any:
    """What `function` gives for new rows `X`; a lazy dask array for a Dask collection.

    The function returns `n_columns` values for each row, or one value where that is None.
    """
    if not is_collection(X):
        return function(columns.numbers(X))
    columns.check_collection(check_collection(X))
    return map_rows(X, partial(_on_part, columns=columns, function=function), n_columns)


def _on_part(part: Any, columns: Columns, function: Callable[[Array], Array]) -> Array:
    return function(columns.numbers(part))


def _probe(columns: Columns) -> GammaGMM:
    """An estimator without a fit that has these columns, for scikit-learn's checks."""
    from gammagmm.estimator.gamma_gmm import GammaGMM

    probe = GammaGMM(missing=columns.missing)
    probe.n_features_in_ = columns.n_features
    if columns.names is not None:
        probe.feature_names_in_ = columns.names
    return probe


def _validate(estimator: GammaGMM, X: Any, *, reset: bool) -> Array:
    """Finite rows (n, d) of `X` by scikit-learn, which sets the columns on `estimator`."""
    from sklearn.utils.validation import check_array, validate_data

    frame = open_frame(X)
    check_array_kind(X)
    options = {"dtype": np.float64, "ensure_min_samples": 2 if reset else 1}
    try:
        # scikit-learn adds all cells up to see whether one is infinite.
        with np.errstate(invalid="ignore"):
            if frame is None:
                return validate_data(estimator, X, reset=reset, **options)
            validate_data(estimator, frame.to_native(), reset=reset, skip_check_array=True)
            rows = frame_numbers(frame)
            return check_array(rows, estimator=estimator, input_name="X", **options)
    except (TypeError, ValueError) as error:
        if not reset and (made := _prepared_names(estimator, X)):
            raise ValueError(
                f"X does not have the columns {listed(made)} of the fit. If `gammagmm fit` saved "
                "it, it takes the columns of numbers that the command prepared: give X with these "
                "columns, or use `gammagmm predict` for a file with the original ones."
            ) from error
        clearer = explain_rows(X, error)
        # An error that is its own cause would never leave a worker of Dask.
        raise clearer from (None if clearer is error else error)


def _prepared_names(estimator: GammaGMM, X: Any) -> list[str]:
    """The columns of the fit that the encoder of tables could have made from columns of `X`."""
    frame = as_frame(X)
    given = set() if frame is None else set(map(str, frame.collect_schema().names()))
    starts = tuple(f"{name}{end}" for name in given for end in ("=", " "))
    names = map(str, getattr(estimator, "feature_names_in_", ()))
    return [name for name in names if name not in given and name.startswith(starts)]
