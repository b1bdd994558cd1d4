"""Rows to look at <-> a sheet for a person to fill in: CSV with an empty column ``anomaly``."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gammagmm._support.text import spreadsheet_safe, visible
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import numbered_names, shown
from gammagmm.report.origin import Origin

__all__ = ["ANSWER", "SHEET", "Sheet", "fill_sheet", "read_answers", "read_sheet"]

SHEET = "to_label.csv"
"""Name of the file, unless another is given."""
ROW, ANSWER = "row", "anomaly"
NAMES = ("id", "name of the row")
"""Columns that name the row, in a sheet and in that of a report."""
YES = frozenset({"1", "1.0", "yes", "y", "true", "anomaly"})
NO = frozenset({"0", "0.0", "no", "n", "false", "normal"})
MAX_BYTES = 100_000_000


@dataclass(frozen=True)
class Sheet:
    """Training rows in the order in which they are looked at; None has no answer yet."""

    rows: tuple[int, ...]  # places among the training rows, from 0
    answers: tuple[int | None, ...]

    @property
    def answered(self) -> tuple[list[int], list[int]]:
        """Rows that have an answer, and their labels."""
        given = [(row, a) for row, a in zip(self.rows, self.answers, strict=True) if a is not None]
        return [row for row, _ in given], [label for _, label in given]


def fill_sheet(sheet: Sheet, X: Any, origin: Origin) -> str:
    """The sheet as CSV: number of the row in its file, its id, its columns, its label."""
    columns = origin.columns or numbered_names(X.shape[1])
    ids = ["id"] if origin.ids is not None else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([ROW, *ids, *map(spreadsheet_safe, columns), ANSWER])
    for row, answer in zip(sheet.rows, sheet.answers, strict=True):
        named = [spreadsheet_safe(origin.ids[row])] if origin.ids is not None else []
        values = [repr(value) for value in X[row].tolist()]
        label = "" if answer is None else str(answer)
        writer.writerow([origin.row_number(row), *named, *values, label])
    return text.getvalue()


def read_answers(path: Path, X: Any, origin: Origin) -> tuple[list[int], list[int]]:
    """Rows and labels of the sheet at `path`, which must have some."""
    rows, labels = read_sheet(path, X, origin).answered
    if not rows:
        raise TableError(
            f"{path} has no answers yet. Write 1 (anomaly) or 0 (normal) in its column {ANSWER!r}."
        )
    return rows, labels


def read_sheet(path: Path, X: Any, origin: Origin) -> Sheet:
    """The sheet in the file at `path`, or a `TableError` that says in which line it is wrong.

    Its rows are found by their numbers; columns that it shares with the data must have the same
    values, so that a sheet of other data is not taken for one of these.
    """
    (_, heads), *lines = _read_lines(path) or [(1, [])]
    # Columns of the data may have these names as well: ours are the first and the last.
    if ROW not in heads or ANSWER not in heads:
        raise TableError(
            f"{path} has no columns {ROW!r} and {ANSWER!r}. Give a file that `gammagmm inspect` "
            "wrote, with the answers filled in."
        )
    places = {origin.row_number(i): i for i in range(len(X))}
    shared = _shared_columns(heads, origin)
    answers: dict[int, int | None] = {}
    for number, cells in lines:
        where = f"{path}, line {number}"
        if len(cells) != len(heads):
            raise TableError(f"{where} has {len(cells)} cells, not {len(heads)}. Mend the line.")
        row = _place(cells[heads.index(ROW)], places, where)
        if row in answers:
            raise TableError(f"{where}: row {origin.row_number(row)} comes twice. Leave one.")
        _check_values(cells, X[row], shared, where)
        _check_name(cells, heads, row, origin, where)
        answers[row] = _answer(cells[-1 - heads[::-1].index(ANSWER)], where)
    return Sheet(tuple(answers), tuple(answers.values()))


def _read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Number, from 1, and cells of each line that is not empty."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TableError(f"{path} is larger than {MAX_BYTES:,} bytes. Give the sheet itself.")
        text = path.read_bytes().decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        lines = [(reader.line_num, cells) for cells in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path} is no CSV file in UTF-8 ({error}). Save it as such.") from error
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}). Check the path.") from error
    return [(number, cells) for number, cells in lines if any(cell.strip() for cell in cells)]


def _shared_columns(heads: list[str], origin: Origin) -> dict[int, tuple[int, str]]:
    """Places in the sheet of the columns of the data, with their places there and their names."""
    names = {spreadsheet_safe(name): j for j, name in enumerate(origin.columns or ())}
    known = {ROW, ANSWER}
    return {i: (names[h], h) for i, h in enumerate(heads) if h in names and h not in known}


def _place(cell: str, places: dict[int, int], where: str) -> int:
    try:
        number = float(cell)
        place = places.get(int(number)) if number.is_integer() else None
    except (ValueError, OverflowError):
        raise TableError(f"{where}: {cell[:40]!r} is no number of a row. Mend it.") from None
    if place is None:
        raise TableError(
            f"{where}: the data have no row {cell[:40]}, or it was left out. Give the sheet of "
            "these data, and the same options as for it."
        )
    return place


def _check_values(
    cells: list[str], values: Any, shared: dict[int, tuple[int, str]], where: str
) -> None:
    for i, (j, name) in shared.items():
        try:
            is_same = math.isclose(float(cells[i]), values[j], rel_tol=1e-6, abs_tol=1e-9)
        except ValueError:
            is_same = False
        if not is_same:
            raise TableError(
                f"{where}: {shown(name)} is {cells[i][:40]!r} here and {values[j]:g} in the data. "
                "Give the sheet of these data, and the same options as for it."
            )


def _check_name(cells: list[str], heads: list[str], row: int, origin: Origin, where: str) -> None:
    """Refuse a row that has another name than in the data."""
    column = next((name for name in NAMES if name in heads), None)
    if origin.ids is None or column is None or column in (origin.columns or ()):
        return
    name, expected = cells[heads.index(column)], spreadsheet_safe(origin.ids[row])
    # A report writes out what cannot be seen, and cuts long names.
    written = spreadsheet_safe(visible(origin.ids[row]))
    is_cut = name.endswith("…") and written.startswith(name[:-1])
    if name not in (expected, written) and not is_cut:
        raise TableError(
            f"{where}: the row is {name[:40]!r} here and {expected[:40]!r} in the data. Give the "
            "sheet of these data, and the same options as for it."
        )


def _answer(cell: str, where: str) -> int | None:
    word = cell.strip().lower()
    if word in YES or word in NO:
        return int(word in YES)
    if word:
        raise TableError(f"{where}: {cell[:40]!r} is no answer. Write 1 (anomaly), 0 or nothing.")
    return None
