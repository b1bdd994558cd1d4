"""ARFF -> raw table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from gammagmm._support.text import shown
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable, check_names, is_number, text_column
from gammagmm.readers.source import Source, decode

__all__ = ["read_arff"]

NUMERIC_TYPES = frozenset({"real", "numeric", "integer"})
QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(\S.*)", re.IGNORECASE)
CELL = re.compile(rf"(\s*(?:{QUOTED})\s*|[^,]*),")
ESCAPE = re.compile(r"\\(.)")


def read_arff(source: Source) -> RawTable:
    """Raw table of an ARFF file: numbers, and text for nominal and string attributes."""
    stripped = ((i, line.strip()) for i, line in enumerate(decode(source).splitlines(), start=1))
    lines = ((i, line) for i, line in stripped if line and not line.startswith("%"))
    attributes = _attributes(source.name, lines)
    places, texts = list[int](), [list[str | None]() for _ in attributes]
    for place, line in lines:
        places.append(place)
        cells = _row_cells(f"{source.name}, line {place}", line, attributes)
        for column, cell in zip(texts, cells, strict=True):
            column.append(cell)
    data = tuple(
        np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
        if attribute.is_numeric
        else text_column(cells)
        for cells, attribute in zip(texts, attributes, strict=True)
    )
    names = tuple(attribute.name for attribute in attributes)
    return RawTable(source.name, names, data, places, texts.__getitem__)


class Attribute(NamedTuple):
    """A column as the header of an ARFF file declares it; it is text if it is not numeric."""

    name: str
    is_numeric: bool


def _attributes(name: str, lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    """Attributes of the header; `lines` then continues with the first row."""
    attributes = []
    for line, text in takewhile(lambda line: not line[1].lower().startswith("@data"), lines):
        if not text.lower().startswith("@attribute"):
            continue
        match = ATTRIBUTE.match(text)
        if match is None:
            raise TableError(
                f"{name}, line {line}: this attribute has no type", "Write @attribute NAME TYPE."
            )
        column, kind = _unquoted(match[1]), match[2].lower().split()[0]
        if kind not in NUMERIC_TYPES and kind != "string" and not kind.startswith("{"):
            raise TableError(
                f"{name}, line {line}, column {shown(column)}: the type {shown(kind)} cannot be "
                "read",
                "Write the column as numbers or text, or write the file without it.",
            )
        attributes.append(Attribute(column, kind in NUMERIC_TYPES))
    if not attributes:
        raise TableError(
            f"{name} contains no @attribute before its @data", "Write the ARFF header."
        )
    check_names(name, tuple(attribute.name for attribute in attributes))
    return attributes


def _row_cells(where: str, text: str, attributes: list[Attribute]) -> list[str | None]:
    """Cells of one row without their quotes, None where they are missing.

    Those of numeric attributes are numbers.
    """
    if text.startswith("{"):
        raise TableError(f"{where}: sparse ARFF rows cannot be read", "Write out every value.")
    has_quotes = "'" in text or '"' in text
    found = CELL.findall(text + ",") if has_quotes else text.split(",")
    if len(found) != len(attributes):
        raise TableError(
            f"{where}: found {len(found)} cells separated by ',' for {len(attributes)} attributes",
            "Give every line one cell for each attribute.",
        )
    stripped = (cell.strip() for cell in found)
    cells = [None if cell == "?" else _unquoted(cell) for cell in stripped]
    for cell, attribute in zip(cells, attributes, strict=True):
        if attribute.is_numeric and cell is not None and not is_number(cell):
            raise TableError(
                f"{where}, column {shown(attribute.name)}: found {shown(cell)}, which is not a "
                "number",
                "Correct it, or declare the attribute as string.",
            )
    return cells


def _unquoted(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] and cell[0] in "'\""
    return ESCAPE.sub(r"\1", cell[1:-1]) if is_quoted else cell
