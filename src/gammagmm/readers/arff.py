"""ARFF -> raw table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import TableError
from gammagmm.readers.raw_table import (
    RawTable,
    check_names,
    is_number,
    shown,
    text_column,
)
from gammagmm.readers.source import Source, decode

__all__ = ["arff_lines", "read_arff"]

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


ARFF_NUMERIC_TYPES = frozenset({"real", "numeric", "integer"})


def arff_lines(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of whatever is neither blank nor a comment."""
    stripped = ((i, line.strip()) for i, line in enumerate(text.splitlines(), start=1))
    return ((i, line) for i, line in stripped if line and not line.startswith("%"))
