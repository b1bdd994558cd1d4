"""Rows -> a table in Markdown."""

from __future__ import annotations

from typing import Any

import numpy as np

Row = dict[str, Any]


def markdown(rows: list[Row], columns: dict[str, str]) -> str:
    """A table of these columns, each with its format; what a row has not is a dash."""
    lines = [list(columns), ["---"] * len(columns)]
    lines += [[formatted(row.get(name), form) for name, form in columns.items()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def formatted(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)


def mean_of(values: np.ndarray, form: str) -> str:
    return format(values.mean(), form) if len(values) else "–"
