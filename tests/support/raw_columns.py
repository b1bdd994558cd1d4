"""Raw tables in a form that tests compare."""

from __future__ import annotations


def columns_of(raw):
    """Columns by name, NaN as None."""
    cells = [[None if c != c else c for c in column.tolist()] for column in raw.data]
    return dict(zip(raw.columns, cells, strict=True))
