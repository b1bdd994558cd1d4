"""A data frame of any kind, or an array with gaps or texts -> a raw table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_cells, as_objects, open_frame
from gammagmm._support.text import listed, shown
from gammagmm.readers.raw_table import (
    NO_FRACTION,
    NOT_READABLE,
    RawTable,
    typed_texts,
    written,
    written_cells,
)
from gammagmm.readers.source import Asked
from gammagmm.readers.values import with_read_texts

if TYPE_CHECKING:
    from narwhals.stable.v2 import DataFrame

__all__ = ["array_names", "array_table", "frame_table", "has_text_names"]

Cells = NDArray[Any]


def has_text_names(frame: DataFrame[Any]) -> bool:
    """Whether the names of the columns are texts, by which one can guess what a column is."""
    return all(isinstance(name, str) for name in frame.columns)


def frame_table(
    X: Any,
    name: str = "X",
    numbers: NDArray[np.intp] | None = None,
    *,
    is_strict: bool = False,
) -> RawTable:
    """Raw table of a data frame that Narwhals knows; rows are counted from 0, as in Python.

    `numbers`, from 0, are given for rows of a file. These are counted from 1. Texts are read as
    numbers as in files, and unless `is_strict`, a few cells may have words there.
    """
    frame = open_frame(X)
    if frame is None:
        raise TypeError(f"X must be a data frame, got {type(X).__name__}.")
    columns = list(frame.iter_columns())
    whole = {j: column for j, column in enumerate(columns) if column.dtype.is_integer()}
    places = range(len(frame)) if numbers is None else (numbers + 1).tolist()
    names = [*map(str, frame.columns)]
    return _table(name, names, map(_cells_of, columns), places, whole, is_strict)


def array_names(d: int) -> tuple[str, ...]:
    """Names of the `d` columns of an array: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(d))


def array_table(cells: Cells, *, is_strict: bool = False) -> RawTable:
    """Raw table of an array (n, d)."""
    names, columns = array_names(cells.shape[1]), map(as_cells, cells.T)
    return _table("X", names, columns, range(len(cells)), {}, is_strict)


def _table(
    name: str,
    names: Sequence[str],
    columns: Iterable[Cells],
    places: Sequence[int],
    whole: dict[int, Any],
    is_strict: bool,
) -> RawTable:
    """Raw table of columns as `as_cells` gives them; those of `whole` hold whole numbers."""
    data, texts, refused = list[Cells](), dict[int, list[str | None]](), dict[int, Exception]()
    dates = set[int]()
    for j, cells in enumerate(columns):
        if cells.dtype != object:
            data.append(cells)
            continue
        kinds = {type(cell) for cell in cells if cell is not None}
        if all(issubclass(kind, date) for kind in kinds):
            texts[j] = [_moment(cell) for cell in cells]
            dates.add(j)
        elif kinds <= {str, float}:
            texts[j] = [written([cell])[0] if isinstance(cell, float) else cell for cell in cells]
        else:
            found = listed(dict.fromkeys(type(cell).__name__ for cell in cells if cell is not None))
            refused[j] = TypeError(
                f"The column {shown(names[j])} of X must hold numbers, text or dates alone, got "
                f"{found}. Drop or encode it."
            )
            texts[j] = [NOT_READABLE] * len(cells)
        data.append(typed_texts(texts[j]))

    def write_cells(j: int) -> list[str | None]:
        # Whole numbers above 2**53 are usually ids: all their digits are kept.
        if j in whole:
            return [None if value is None else str(value) for value in whole[j].to_list()]
        return texts[j] if j in texts else written_cells(data[j])

    raw = RawTable(
        name, tuple(names), tuple(data), places, write_cells, unit="row", refused=refused
    )
    written_by_people = texts.keys() - dates - refused.keys()
    asked = Asked(is_strict=is_strict)
    return with_read_texts(raw, sorted(written_by_people), asked, is_in_memory=True)


def _cells_of(column: Any) -> Cells:
    """Numbers with NaN where they are missing, or other cells as `as_cells` gives them."""
    import narwhals.stable.v2 as nw

    kind = column.dtype
    is_number = kind.is_float() or kind.is_integer() or kind == nw.Boolean
    if is_number and kind not in (nw.Int128, nw.UInt128):  # which NumPy does not have
        values = column.to_numpy()
        if values.dtype.kind in "biuf":
            return as_cells(values)
    # Not to_numpy(), which fills the gaps of a dictionary of pyarrow with one of its texts.
    return as_cells(as_objects(column.to_list()))


def _moment(value: date | None) -> str | None:
    """A date or time as ISO 8601 writes it, in UTC if it has a zone."""
    if not isinstance(value, datetime):
        return None if value is None else value.isoformat()
    value = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(timespec="microseconds").removesuffix(NO_FRACTION)
