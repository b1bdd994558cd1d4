"""What is wrong with an office file as it was read without an option, by its truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gammagmm.cli.words import COMMAND
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.registry import read_raw
from gammagmm.table.preparation import Choices, prepare
from gammagmm.table.table import Table
from tests.support.office_columns import ColumnTruth
from tests.support.office_files import OfficeFile

__all__ = ["Fault", "faults_of", "is_quietly_wrong"]

Fault = tuple[str, str]  # the name of a column, or "file" or "rows", and a code

TOLD = ("tables.likely code", "tables.clear code", "tables.words")
"""Codes of notes that name a value that marks a gap."""


def wrong_numbers(raw: RawTable, j: int, column: ColumnTruth) -> list[int]:
    """Rows in which a number is not the true one; the code of a gap is named by a note."""
    if raw.is_text(j):
        return [-1]
    same = np.isclose(raw.data[j], column.values, rtol=1e-9, atol=0.0, equal_nan=True)
    same[list(column.code_rows)] = True
    return np.flatnonzero(~same).tolist()


def faults_of_column(raw: RawTable, prepared: Table, column: ColumnTruth) -> list[str]:
    """What is wrong with a column as it was read, as codes."""
    j = raw.columns.index(column.name)
    encoder = prepared.preparation.encoder
    numbers = {own.name for own in encoder.numbers}
    cells = [cell or "" for cell in raw.cells(j)]
    if column.kind == "number":
        told = {note.subject for note in prepared.notes if note.code in TOLD}
        faults = ["number"] if wrong_numbers(raw, j, column) else []
        faults += ["unused"] if column.name not in numbers else []
        return faults + (["code"] if column.code_rows and column.name not in told else [])
    if column.kind == "category":
        is_used = column.name in {own.name for own in encoder.texts}
        return [] if is_used and cells == list(column.texts) else ["category"]
    if column.kind in ("id", "code"):
        # As they stand in the file, and no quantity.
        return [] if column.name not in numbers and cells == list(column.texts) else [column.kind]
    is_used = column.name in encoder.names
    return [column.kind] if is_used and column.kind in ("date", "label") else []


def faults_of(file: OfficeFile, path: Path) -> list[Fault]:
    """What is wrong with a file as it was read; nothing if it is answered as its truth says."""
    path.write_bytes(file.content)
    try:
        raw = read_raw(path)
        prepared = prepare(raw, Choices().with_strict(False), COMMAND)
    except TableError:
        return [("file", "refused")]
    if raw.lines is not None and [line - 1 for line in raw.lines] != list(file.data_lines):
        return [("rows", "rows")]
    names = [own for own in file.columns if own.kind != "empty" or own.name in raw.columns]
    lacking = [(own.name, "lacking") for own in names if own.name not in raw.columns]
    lacking += [(name, "other") for name in raw.columns if name not in [c.name for c in names]]
    return lacking or [
        (own.name, fault) for own in names for fault in faults_of_column(raw, prepared, own)
    ]


def is_quietly_wrong(faults: Sequence[Fault]) -> bool:
    """Whether a wrong value is in a column that is used; a refusal or an unused column is told."""
    unused = {name for name, code in faults if code == "unused"}
    codes = {code for name, code in faults if not (code == "number" and name in unused)}
    return not codes <= {"unused", "refused"}
