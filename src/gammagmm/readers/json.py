"""JSON -> raw table: an object a line, a list of objects, or an object of columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from gammagmm._support.documents import unique_keys
from gammagmm._support.text import shown
from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import NOT_READABLE, RawTable
from gammagmm.readers.source import CELL_BYTES, Source, check_expansion, decode
from gammagmm.readers.values import table_of_values

__all__ = ["read_json", "read_json_lines"]

MAX_DEPTH = 5  # of objects inside the row
ADVICE = "Write a list of objects, an object of lists, or one object per line."


def read_json_lines(source: Source) -> RawTable:
    """Raw table of one flat JSON object per line; a key that a line lacks is missing there."""
    return _table_of_lines(source, decode(source))


def read_json(source: Source) -> RawTable:
    """Raw table of a list of flat objects, of columns by their names, or of an object a line.

    The values of a column are a list, or an object with the names of the rows, as pandas writes it.
    An object of rows by their names is read too, and so is the only list of objects in an object.
    Objects inside a row are columns with the names of both: "size.width".
    """
    text = decode(source)
    try:
        document = _parse(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("{") and "\n" in text.strip():
            return _table_of_lines(source, text)
        what = f"{source.name} is not JSON ({str(error).rstrip('.')})"
        raise TableError(what, ADVICE) from error
    notes = list[Note]()
    if isinstance(document, dict) and (name := _only_list(document)) is not None:
        words = f"the list {shown(name)} is the table"
        document, notes = document[name], [Note.of("tables.keys", source.name, words=words)]
    if isinstance(document, dict) and _are_all(document.values(), list):
        return _table_of_lists(source, document)
    if isinstance(document, dict) and _are_all(document.values(), dict):
        return _table_of_objects(source, document)
    if isinstance(document, dict):
        document = [document]
    if not isinstance(document, list) or not _are_all(document, dict):
        raise TableError(f"{source.name} contains no table", ADVICE)
    return _table_of_rows(source, document, notes=notes)


def _only_list(document: dict[str, Any]) -> str | None:
    """The name of the only list of several objects in an object; None without one."""
    lists = [name for name, own in document.items() if isinstance(own, list) and len(own) > 1]
    found = [name for name in lists if _are_all(document[name], dict)]
    return found[0] if len(found) == 1 else None


def _flat(row: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """The row with the values of the objects in it."""
    if depth == MAX_DEPTH or not any(isinstance(value, dict) for value in row.values()):
        return row
    found = dict[str, Any]()
    for name, value in row.items():
        inner = _flat(value, depth + 1) if isinstance(value, dict) else {}
        found |= {f"{name}.{key}": cell for key, cell in inner.items()} or {name: value}
    return found


def _parse(text: str) -> Any:
    return json.loads(text, object_pairs_hook=unique_keys)


def _are_all(values: Any, kind: type) -> bool:
    """Whether there are values, and all of one kind."""
    found = list(values)
    return bool(found) and all(isinstance(value, kind) for value in found)


def _table_of_lines(source: Source, text: str) -> RawTable:
    rows, lines = [], []
    for line, line_text in enumerate(text.split("\n"), start=1):
        if line_text.strip():
            rows.append(_row(f"{source.name}, line {line}", line_text))
            lines.append(line)
    return _table_of_rows(source, rows, lines)


def _table_of_rows(
    source: Source,
    rows: Sequence[dict[str, Any]],
    lines: list[int] | None = None,
    notes: Sequence[Note] = (),
) -> RawTable:
    rows = [_flat(row) for row in rows]
    names = tuple(dict.fromkeys(key for row in rows for key in row))
    # If every row has its own key, the table is as wide as it is long.
    check_expansion(source.name, len(rows) * len(names) * CELL_BYTES, len(source.content))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return _table(source, columns, lines, notes)


def _table_of_lists(source: Source, columns: dict[str, list[Any]]) -> RawTable:
    lengths = {name: len(values) for name, values in columns.items()}
    first = next(iter(lengths))
    other = next((name for name in lengths if lengths[name] != lengths[first]), None)
    if other is not None:
        raise TableError(
            f"{source.name}: column {shown(first)} has {lengths[first]} values, but column "
            f"{shown(other)} has {lengths[other]}",
            "Give every column the same number of values.",
        )
    return _table(source, columns)


def _table(
    source: Source,
    columns: dict[str, list[Any]],
    lines: list[int] | None = None,
    notes: Sequence[Note] = (),
) -> RawTable:
    """Raw table of columns; those with lists or objects among their values are refused if used."""
    nested = {
        name: next(row for row, value in enumerate(values) if isinstance(value, dict | list))
        for name, values in columns.items()
        if any(isinstance(value, dict | list) for value in values)
    }
    plain = {name: [NOT_READABLE] * len(columns[name]) for name in nested}
    raw = table_of_values(source.name, columns | plain, lines, write=json.dumps, notes=notes)
    refused = {
        raw.columns.index(name): TableError(
            f"{source.name}, {raw.place(row)}, column {shown(name)}: found a nested value",
            "Write numbers, text, true, false or null only, or leave the column out.",
        )
        for name, row in nested.items()
    }
    return replace(raw, refused=refused)


def _table_of_objects(source: Source, document: dict[str, dict[str, Any]]) -> RawTable:
    """Raw table of objects in an object, whose outer or inner keys are the names of the rows.

    Numbers from 0 or 1 are those of rows. If neither keys are such numbers, there are more rows
    than columns.
    """
    inner = list(dict.fromkeys(key for values in document.values() for key in values))
    if not inner:
        raise TableError(f"{source.name} contains no values", ADVICE)
    are_rows_inside = _are_row_numbers(inner) or (
        len(inner) > len(document) and not _are_row_numbers(document)
    )
    if are_rows_inside:
        check_expansion(source.name, len(inner) * len(document) * CELL_BYTES, len(source.content))
        names = inner
        rows = [{name: own.get(key) for name, own in document.items()} for key in inner]
    else:
        names, rows = list(document), list(document.values())
    keys = f"the {'inner' if are_rows_inside else 'outer'} keys, such as {shown(names[0])}, are"
    if all(map(str.isdecimal, names)):
        notes = [] if are_rows_inside else [f"{keys} the numbers of the rows"]
    else:
        kept = "index"
        while any(kept in row for row in rows):
            kept += "_"
        rows = [{kept: name, **row} for name, row in zip(names, rows, strict=True)]
        notes = [f"{keys} the names of the rows, in the column {kept!r}"]
    said = [Note.of("tables.keys", source.name, words=words) for words in notes]
    return _table_of_rows(source, rows, notes=said)


def _are_row_numbers(keys: Collection[str]) -> bool:
    """Whether keys are the numbers from 0, or from 1, in any order."""
    return any(set(keys) == {str(i + first) for i in range(len(keys))} for first in (0, 1))


def _row(where: str, text: str) -> dict[str, Any]:
    try:
        row = _parse(text)
    except (ValueError, RecursionError) as error:
        reason = str(error).rstrip(".")
        what = f"{where}: this is not JSON ({reason})"
        raise TableError(what, "Write one JSON object per line.") from error
    if not isinstance(row, dict):
        what = f"{where}: expected a JSON object, found {shown(text.strip())}"
        raise TableError(what, "Write one JSON object per line.")
    return row
