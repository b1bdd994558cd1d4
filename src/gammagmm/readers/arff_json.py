"""ARFF and JSON lines -> raw table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.datasets import ARFF_NUMERIC_TYPES, arff_lines
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable, check_names, is_number, shown, text_column
from gammagmm.readers.source import Source, check_expansion, decode

__all__ = ["read_arff", "read_json_lines"]

CELL_BYTES = 8
QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ARFF_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(\S.*)", re.IGNORECASE)
ARFF_CELL = re.compile(rf"(\s*(?:{QUOTED})\s*|[^,]*),")
ARFF_ESCAPE = re.compile(r"\\(.)")

Attribute = tuple[str, bool]  # name, whether it is numeric


def read_arff(source: Source) -> RawTable:
    """Raw table of an ARFF file: numbers, and text for nominal and string attributes."""
    found = arff_lines(decode(source))
    attributes = _arff_attributes(source.name, found)
    rows, lines = [], []
    for line, text in found:
        rows.append(_arff_cells(f"{source.name}, line {line}", text, attributes))
        lines.append(line)
    names = tuple(name for name, _ in attributes)
    texts: list[list[str | None]] = [[row[j] for row in rows] for j in range(len(names))]
    data = tuple(
        _numbers(cells) if is_numeric else text_column(cells)
        for cells, (_, is_numeric) in zip(texts, attributes, strict=True)
    )
    return RawTable(source.name, names, data, lines, texts.__getitem__)


def _numbers(cells: Iterable[str | None]) -> NDArray[np.float64]:
    return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)


def _arff_attributes(name: str, lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    """Attributes of an ARFF header; `lines` is left at the first row."""
    header = takewhile(lambda line: not line[1].lower().startswith("@data"), lines)
    attributes = [
        _arff_attribute(f"{name}, line {line}", text)
        for line, text in header
        if text.lower().startswith("@attribute")
    ]
    if not attributes:
        raise TableError(f"{name} holds no @attribute before its @data. Write the ARFF header.")
    check_names(name, tuple(attribute for attribute, _ in attributes))
    return attributes


def _arff_attribute(where: str, text: str) -> Attribute:
    match = ARFF_ATTRIBUTE.match(text)
    if match is None:
        raise TableError(f"{where}: this attribute has no type. Write @attribute NAME TYPE.")
    name, kind = _unquoted(match[1]), match[2].split()[0].lower()
    if kind not in ARFF_NUMERIC_TYPES and kind != "string" and not kind.startswith("{"):
        raise TableError(
            f"{where}, column {shown(name)}: the type {shown(kind)} cannot be read. Write the "
            "column as numbers or text, or write the file without it."
        )
    return name, kind in ARFF_NUMERIC_TYPES


def _arff_cells(where: str, text: str, attributes: list[Attribute]) -> list[str | None]:
    """Cells of one row, None where they are missing."""
    if text.startswith("{"):
        raise TableError(f"{where}: sparse ARFF rows cannot be read. Write every value out.")
    has_quotes = "'" in text or '"' in text
    found = ARFF_CELL.findall(text + ",") if has_quotes else text.split(",")
    cells = [cell.strip() for cell in found]
    if len(cells) != len(attributes):
        raise TableError(
            f"{where}: found {len(cells)} cells separated by ',' for {len(attributes)} "
            "attributes. Give every line one cell for each attribute."
        )
    for cell, (name, is_numeric) in zip(cells, attributes, strict=True):
        if is_numeric and cell != "?" and not is_number(_unquoted(cell)):
            raise TableError(
                f"{where}, column {shown(name)}: found {shown(cell)}, which is not a number. "
                "Correct it, or declare the attribute as string."
            )
    return [None if cell == "?" else _unquoted(cell) for cell in cells]


def _unquoted(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] and cell[0] in "'\""
    return ARFF_ESCAPE.sub(r"\1", cell[1:-1]) if is_quoted else cell


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
