"""Data frames of every kind that Narwhals knows -> columns of numbers or text.

Among them are pandas, polars, pyarrow, Modin, cuDF and relations of DuckDB.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import listed
from gammagmm.errors import MissingExtraError, TableError

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame, LazyFrame

__all__ = [
    "as_cells",
    "as_column",
    "as_frame",
    "as_objects",
    "check_same_columns",
    "open_frame",
]

Cells = NDArray[Any]

EXCHANGES = ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")
"""Methods by which tables and series give their columns to other libraries."""


def as_frame(X: Any) -> DataFrame[Any] | LazyFrame[Any] | None:
    """The data frame `X` as one of Narwhals; None for everything else.

    Columns with the same name and sparse columns are refused. So are tables that Narwhals does not
    know: NumPy would read their dates as numbers.
    """
    if X is None or isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v2 as nw

    X = _whole_table(X)
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        _check_names(X.column_names if hasattr(X, "column_names") else X.columns)
        raise
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        _check_is_array(X)
        return None
    if not frame.implementation.is_polars():  # which has no equal names
        _check_names(frame.columns)
    _check_dense(frame)
    return frame


def open_frame(X: Any) -> DataFrame[Any] | None:
    """The same with its rows in memory: a lazy frame is collected."""
    frame = as_frame(X)
    if frame is None:
        return None
    import narwhals.stable.v2 as nw

    return frame if isinstance(frame, nw.DataFrame) else _collected(frame)


def as_cells(values: Cells) -> Cells:
    """The values as float64 with NaN where missing, or as objects if not all are numbers.

    Numbers among these objects are of the type float, and missing values are None.
    """
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    cells = [_cell(value) for value in values.tolist()]
    if all(cell is None or isinstance(cell, float) for cell in cells):
        return np.array(cells, dtype=np.float64)
    return as_objects(cells)


def as_column(values: Any) -> Cells:
    """The values of a series of any kind, of a frame with one column, or of a list, as an array."""
    if isinstance(values, np.ndarray | list | tuple):
        return np.asarray(values)
    import narwhals.stable.v2 as nw

    column = nw.from_native(_whole_table(values), pass_through=True, allow_series=True)
    if isinstance(column, nw.LazyFrame):
        column = _collected(column)
    if isinstance(column, nw.DataFrame) and column.shape[1] == 1:
        column = column.get_column(column.columns[0])
    if not isinstance(column, nw.Series):
        return np.asarray(values)
    is_whole = column.dtype.is_integer() or column.dtype == nw.Boolean
    is_wide = column.dtype in (nw.Int128, nw.UInt128)  # which NumPy does not have
    if (is_whole and not (is_wide or column.null_count())) or column.implementation.is_cudf():
        return column.to_numpy()
    if is_whole or (column.implementation.is_pyarrow() and column.dtype == nw.Categorical):
        return as_objects(column.to_list())
    return np.asarray(column.to_native())


def as_objects(cells: Iterable[Any]) -> Cells:
    """The cells as an array of objects."""
    kept = list(cells)
    made = np.empty(len(kept), dtype=object)
    made[:] = kept
    return made


def check_same_columns(first: str, ours: Sequence[Any], other: str, theirs: Sequence[Any]) -> None:
    """Refuse the table `other` if its columns are not those of `first`, in their order."""
    if ours == theirs:
        return
    lacking = [str(name) for name in ours if name not in set(theirs)]
    added = [str(name) for name in theirs if name not in set(ours)]
    if not lacking and not added:
        raise TableError(
            f"{other} has the columns of {first} in another order",
            "Give tables with the same columns in the same order.",
        )
    differences = [f"lacks the columns {listed(lacking)}"] if lacking else []
    differences += [f"has the additional columns {listed(added)}"] if added else []
    raise TableError(
        f"{other} {' and '.join(differences)}, unlike {first}", "Give tables with the same columns."
    )


def _whole_table(X: Any) -> Any:
    """A record batch of pyarrow as a table, because Narwhals does not know it; `X` otherwise."""
    pyarrow: Any = sys.modules.get("pyarrow")
    is_batch = pyarrow is not None and isinstance(X, pyarrow.RecordBatch)
    return pyarrow.Table.from_batches([X]) if is_batch else X


def _collected(frame: LazyFrame[Any]) -> DataFrame[Any]:
    """The lazy frame with its rows in memory."""
    try:
        return frame.collect()
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise MissingExtraError(
            f"A {frame.implementation} frame needs pyarrow", "data", name="pyarrow"
        ) from None


def _check_is_array(X: Any) -> None:
    """Refuse a series, and a table that gives its columns to other libraries."""
    if any(hasattr(X, name) for name in EXCHANGES):
        raise TableError(
            f"X must be an array or a data frame of rows and columns, got {type(X).__name__}",
            "Convert it to a data frame of pandas, polars or pyarrow.",
        )


def _check_dense(frame: DataFrame[Any] | LazyFrame[Any]) -> None:
    """Refuse sparse columns of pandas."""
    if not frame.implementation.is_pandas_like():
        return
    types = zip(frame.columns, frame.to_native().dtypes, strict=True)
    if sparse := [str(name) for name, of in types if type(of).__name__ == "SparseDtype"]:
        raise TypeError(
            f"The detectors need dense columns, but these of X are sparse: {listed(sparse)}. Call "
            ".sparse.to_dense() on them first."
        )


def _check_names(names: Iterable[Any]) -> None:
    """Refuse two columns with the same name."""
    for name, n in Counter(names).items():
        if n > 1:
            raise TableError(f"X has {n} columns named {name!r}", "Rename them.")


def _cell(value: Any) -> Any:
    """The value as a float or a str, None if it is missing, or itself if it is something else."""
    if _is_missing(value):
        return None
    if isinstance(value, str):
        return str(value)
    is_number = isinstance(value, Real | Decimal | np.bool_)
    if not is_number or isinstance(value, np.timedelta64):  # which NumPy registers as a number
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, or the missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating) and value != value
