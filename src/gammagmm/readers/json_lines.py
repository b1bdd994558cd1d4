"""JSON lines -> raw table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    shown,
    text_column,
)
from gammagmm.readers.source import Source, check_expansion, decode

__all__ = ["read_json_lines"]

CELL_BYTES = 8


def read_json_lines(source: Source) -> RawTable:
    """Raw table of one flat JSON object a line; a key that a line lacks is missing there."""
    rows, lines = [], []
    for line, text in enumerate(decode(source).split("\n"), start=1):
        if text.strip():
            rows.append(_json_row(f"{source.name}, line {line}", text))
            lines.append(line)
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    # Lines that have a name each would fill a square.
    check_expansion(source.name, len(rows) * len(columns) * CELL_BYTES, len(source.content))
    check_names(source.name, columns)
    data = tuple(_json_column([row.get(name) for row in rows]) for name in columns)

    def cells(j: int) -> list[str | None]:
        return [_json_text(row.get(columns[j])) for row in rows]

    return RawTable(source.name, columns, data, lines, cells)


def _json_row(where: str, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise TableError(
            f"{where}: this is no JSON ({str(error).rstrip('.')}). Write one object a line."
        ) from error
    if not isinstance(row, dict):
        raise TableError(f"{where}: found {shown(text.strip())}. Write one JSON object a line.")
    for key, value in row.items():
        if isinstance(value, dict | list):
            raise TableError(
                f"{where}, column {shown(key)}: found a nested value. Write numbers, text, true, "
                "false or null only."
            )
    return row


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return row


def _json_column(values: list[Any]) -> NDArray[Any]:
    """Numbers, or text as a whole where any value is a string."""
    if any(isinstance(value, str) for value in values):
        return text_column(map(_json_text, values))
    return np.array([_json_number(value) for value in values], dtype=np.float64)


def _json_number(value: float | None) -> float:
    try:
        return np.nan if value is None else float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf


def _json_text(value: Any) -> str | None:
    is_gap = value is None or value != value
    return None if is_gap else value if isinstance(value, str) else json.dumps(value)
