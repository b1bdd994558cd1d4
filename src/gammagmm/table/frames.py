"""A data frame of any kind, or an array with gaps or texts -> a raw table."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_cells, as_objects, open_frame
from gammagmm._support.text import listed, shown
from gammagmm.readers.raw_table import RawTable, number_or_none, text_column, written

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame

__all__ = ["array_names", "array_table", "frame_table", "has_text_names"]

Cells = NDArray[Any]

CODE = re.compile(r"\s*0\d")
"""Texts of digits that are no quantities, because they begin with a zero."""
NO_FRACTION = ".000000"  # of a second


def has_text_names(frame: DataFrame[Any]) -> bool:
    """Whether the names of the columns are texts, by which one can guess what a column is."""
    return all(isinstance(name, str) for name in frame.columns)


def frame_table(X: Any, name: str = "X", numbers: NDArray[np.intp] | None = None) -> RawTable:
    """Raw table of a data frame that Narwhals knows; rows are counted from 0, as in Python.

    `numbers`, from 0, are given for rows of a file. These are counted from 1.
    """
    frame = open_frame(X)
    if frame is None:
        raise TypeError(f"X must be a data frame, got {type(X).__name__}.")
    names = tuple(map(str, frame.columns))
    columns = list(frame.iter_columns())
    data = tuple(_column_data(column, own) for column, own in zip(columns, names, strict=True))

    def cells(j: int) -> list[str | None]:
        if data[j].dtype == object:
            return list(data[j])
        if not columns[j].dtype.is_integer():
            return written(data[j].tolist())
        # Whole numbers above 2**53 are usually ids: all their digits are kept.
        return [None if value is None else str(value) for value in columns[j].to_list()]

    places = range(len(frame)) if numbers is None else (numbers + 1).tolist()
    return RawTable(name, names, data, places, cells, unit="row")


def array_names(d: int) -> tuple[str, ...]:
    """Names of the `d` columns of an array: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(d))


def array_table(cells: Cells, name: str = "X") -> RawTable:
    """Raw table of an array (n, d)."""
    names = array_names(cells.shape[1])
    data = tuple(_as_column(own, name) for own, name in zip(cells.T, names, strict=True))

    def written_cells(j: int) -> list[str | None]:
        return list(data[j]) if data[j].dtype == object else written(data[j].tolist())

    return RawTable(name, names, data, range(len(cells)), written_cells, unit="row")


def _column_data(column: Any, name: str) -> Cells:
    """Numbers with NaN where they are missing, or texts with None; dates are texts."""
    import narwhals.stable.v2 as nw

    kind = column.dtype
    is_number = kind.is_float() or kind.is_integer() or kind == nw.Boolean
    if is_number and kind not in (nw.Int128, nw.UInt128):  # which NumPy does not have
        values = column.to_numpy()
        if values.dtype.kind in "biuf":
            return as_cells(values)
    # Not to_numpy(), which fills the gaps of a dictionary of pyarrow with one of its texts.
    return _as_column(as_objects(column.to_list()), name)


def _as_column(values: Cells, name: str) -> Cells:
    """Cells of any type as numbers with NaN, or as texts with None."""
    cells = as_cells(values)
    if cells.dtype != object:
        return cells
    kinds = {type(cell) for cell in cells if cell is not None}
    if all(issubclass(kind, date) for kind in kinds):
        return text_column(map(_moment, cells))
    if not kinds <= {str, float}:
        found = listed(dict.fromkeys(type(cell).__name__ for cell in cells if cell is not None))
        raise TypeError(
            f"The column {shown(name)} of X must hold numbers, text or dates alone, got {found}. "
            "Drop or encode it."
        )
    numbers = _as_numbers(cells)
    return text_column(_texts(cells)) if numbers is None else numbers


def _as_numbers(cells: Cells) -> NDArray[np.float64] | None:
    """Texts of numbers, and numbers beside them, as numbers; None if a text is no number.

    Codes such as "007" are texts.
    """
    for cell in cells:
        if isinstance(cell, str) and (number_or_none(cell) is None or CODE.match(cell)):
            return None
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def _texts(cells: Cells) -> list[str | None]:
    """The cells as texts; numbers among them as they are written."""
    return [cell if cell is None or isinstance(cell, str) else written([cell])[0] for cell in cells]


def _moment(value: date | None) -> str | None:
    """A date or time as ISO 8601 writes it, in UTC if it has a zone."""
    if not isinstance(value, datetime):
        return None if value is None else value.isoformat()
    value = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(timespec="microseconds").removesuffix(NO_FRACTION)
