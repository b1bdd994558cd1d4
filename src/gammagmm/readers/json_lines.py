"""JSON lines -> raw table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.documents import unique_keys
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable, check_names, shown, text_column
from gammagmm.readers.source import CELL_BYTES, Source, check_expansion, decode

__all__ = ["read_json_lines"]


def read_json_lines(source: Source) -> RawTable:
    """Raw table of one flat JSON object per line; a key that a line lacks is missing there."""
    rows, lines = [], []
    for line, text in enumerate(decode(source).split("\n"), start=1):
        if text.strip():
            rows.append(_row(f"{source.name}, line {line}", text))
            lines.append(line)
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    # If every line has its own key, the table is as wide as it is long.
    check_expansion(source.name, len(rows) * len(columns) * CELL_BYTES, len(source.content))
    check_names(source.name, columns)
    data = tuple(_column([row.get(name) for row in rows]) for name in columns)

    def cells(j: int) -> list[str | None]:
        return [_text(row.get(columns[j])) for row in rows]

    return RawTable(source.name, columns, data, lines, cells)


def _row(where: str, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        reason = str(error).rstrip(".")
        what = f"{where}: this is not JSON ({reason})"
        raise TableError(what, "Write one JSON object per line.") from error
    if not isinstance(row, dict):
        what = f"{where}: expected a JSON object, found {shown(text.strip())}"
        raise TableError(what, "Write one JSON object per line.")
    for key, value in row.items():
        if isinstance(value, dict | list):
            raise TableError(
                f"{where}, column {shown(key)}: found a nested value",
                "Write numbers, text, true, false or null only.",
            )
    return row


def _column(values: list[Any]) -> NDArray[Any]:
    """Column of numbers, or of text if any value is a string."""
    if any(isinstance(value, str) for value in values):
        return text_column(map(_text, values))
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: float | None) -> float:
    try:
        return np.nan if value is None else float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    return value if isinstance(value, str) else json.dumps(value)
