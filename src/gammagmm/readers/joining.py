"""Several raw tables of the same columns -> one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable, shown, text_column

__all__ = ["join_raw"]


def join_raw(tables: Sequence[RawTable]) -> RawTable:
    """The rows of all `tables`, in their order; rows are then counted through.

    A column that is text in one of them is text in all.
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    for table in tables[1:]:
        _check_columns(first, table)
    data = tuple(_column(tables, j) for j in range(len(first.columns)))

    def cells(j: int) -> list[str | None]:
        return [cell for table in tables for cell in table.cells(j)]

    source = ", ".join(table.source for table in tables)
    digest = ", ".join(table.digest for table in tables)
    return JoinedTable(source, first.columns, data, None, cells, digest, tuple(tables))


@dataclass(frozen=True, eq=False, repr=False)
class JoinedTable(RawTable):
    """A raw table that knows which file each row came from."""

    parts: tuple[RawTable, ...] = ()

    def place(self, row: int) -> str:
        """File and place in it of a row, counted through from 0."""
        for part in self.parts:
            if row < part.n_rows:
                return f"{part.place(row)} of {part.source}"
            row -= part.n_rows
        raise IndexError(row)


def _check_columns(first: RawTable, other: RawTable) -> None:
    """Refuse other columns, or the same in another order."""
    if other.columns == first.columns:
        return
    lacking = [shown(name) for name in first.columns if name not in other.columns]
    beyond = [shown(name) for name in other.columns if name not in first.columns]
    if lacking or beyond:
        what = (
            f"lacks the columns {', '.join(lacking) or 'none'}, has {', '.join(beyond) or 'none'}"
        )
        raise TableError(
            f"{other.source} {what} beyond those of {first.source}. Give files with the same "
            "columns."
        )
    raise TableError(
        f"{other.source} has the columns of {first.source} in another order. Give files with the "
        "same columns in the same order."
    )


def _column(tables: Sequence[RawTable], j: int) -> NDArray[Any]:
    if any(table.is_text(j) for table in tables):
        return text_column(cell for table in tables for cell in table.cells(j))
    return np.concatenate([table.data[j] for table in tables])
