"""Rows to label <-> a sheet for a person to fill in: CSV with an empty column ``anomaly``."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gammagmm._support.text import shown, spreadsheet_safe, visible
from gammagmm.cli.files import read_file
from gammagmm.errors import TableError
from gammagmm.labels.sheet import Sheet, recall_check
from gammagmm.readers.raw_table import number_or_none
from gammagmm.readers.source import Asked, Source, decode_any
from gammagmm.table.table import Table
from gammagmm.table.truth import YES_NO

if TYPE_CHECKING:
    from gammagmm.labels.label_error import Agreement
    from gammagmm.labels.labelled_rows import LabelledRows

__all__ = [
    "agreement_of",
    "checked_words",
    "fill_sheet",
    "label_of_cell",
    "read_answers",
    "read_sheet",
    "sheet_numbers",
]

ROW, PURPOSE, ANSWER, ANSWER_BY = "row", "chosen for", "anomaly", "anomaly by "
SIMPLE = "share (random)"
"""What rows are chosen for that are drawn for the share in simple random order."""
UNSURE = "unsure"
"""Answer of a person who looked at a row and cannot say what it is."""
NAME = "name of the row"
"""Column that names the row in a sheet of a report."""
YES = frozenset({"1", "1.0", "true", "anomaly", *(yes for yes, _ in YES_NO)})
NO = frozenset({"0", "0.0", "false", "normal", *(no for _, no in YES_NO)})
UNSURE_WORDS = frozenset({UNSURE, "?"})
MAX_SHEET_BYTES = 100_000_000
TEXTS = (".csv", ".tsv", ".txt", "")
CHANGED_VALUE = (
    f"If a spreadsheet program has changed it, delete this column from the sheet: only {ROW!r}, "
    f"{PURPOSE!r} and {ANSWER!r} are needed. Otherwise, give a sheet that was made from these data."
)
OTHER_DATA = "Give a sheet that was made from these data, and the same options as for the sheet."


def checked_words(sheets: Sequence[Sheet], rows: LabelledRows) -> list[str]:
    """The same in words, also if answers are missing."""
    from gammagmm.labels.sentences import check_sentence

    answers = [label for sheet in sheets for _, label in sheet.of_check]
    if not answers:
        return []
    n_answers = sum(answer is not None for answer in answers)
    return [check_sentence(len(answers), recall_check(sheets, rows), n_answers)]


def agreement_of(
    sheets: Sequence[Sheet], second: Sheet | None, rows: LabelledRows
) -> Agreement | None:
    """How often two people agree on the same rows; None if no row has two labels.

    They have answered rows of the `sheets`, or those of the `second` sheet, whose first labels are
    among the `rows`.
    """
    from gammagmm.labels.label_error import agreement

    pairs = [pair for sheet in sheets for pair in sheet.answered_twice]
    if second is not None:
        known = rows.known_rows
        first = dict(zip(known.rows.tolist(), known.labels.tolist(), strict=True))
        given = zip(second.rows, second.answers, strict=True)
        both = [(first[row], label) for row, label in given if row in first and label is not None]
        if not both:
            raise TableError(
                "No row of --second-labels has a first label",
                "Pass the first labels with --labels.",
            )
        pairs += both
    return agreement(*zip(*pairs, strict=True)) if pairs else None


def fill_sheet(
    sheet: Sheet, table: Table, cells_of: Callable[[int], Mapping[str, str]] | None = None
) -> str:
    """The sheet as CSV: number of the row in its file, all columns of the file, its label.

    If rows were picked, or come in simple random order, a column tells what each row was chosen
    for. If people have names, each has a column with their answers. `cells_of` gives the cells of
    a row, as ``table.cells`` does.
    """
    lines = [(cells_of or table.cells)(row) for row in sheet.rows]
    columns = lines[0] if lines else table.columns
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    # Next to a column of the file with the same name, ours is always there: it is the second.
    has_purpose = bool(sheet.picked or sheet.simple) or PURPOSE in columns
    people = [spreadsheet_safe(f"{ANSWER_BY}{name}") for name in sheet.said]
    heads = [ROW, *[PURPOSE] * has_purpose, *map(spreadsheet_safe, columns), *people, ANSWER]
    writer.writerow(heads)
    for row, cells, answer in zip(sheet.rows, lines, sheet.answers, strict=True):
        label = "" if answer is None else str(answer)
        safe = map(spreadsheet_safe, cells.values())
        purpose = [SIMPLE if row in sheet.simple else sheet.purpose(row)] * has_purpose
        own = [str(labels.get(row, "")) for labels in sheet.said.values()]
        label = UNSURE if not label and row in sheet.unsure else label
        writer.writerow([table.row_number(row), *purpose, *safe, *own, label])
    return text.getvalue()


def sheet_numbers(path: Path) -> list[int]:
    """Numbers, from 0, of the rows of the sheet at `path`; what is no number is left out."""
    (_, heads), *lines = _read_lines(path) or [(1, [])]
    if ROW not in heads:
        return []
    place = heads.index(ROW)
    cells = (cells[place] for _, cells in lines if len(cells) > place)
    values = (number_or_none(cell) for cell in cells)
    return [int(value) - 1 for value in values if value is not None and value.is_integer()]


def read_answers(path: Path, table: Table) -> Sheet:
    """The sheet at `path`, which must have at least one answer."""
    sheet = read_sheet(path, table)
    if not sheet.n_answers:
        raise TableError(
            f"{path} has no answers yet",
            f"Write 1 (anomaly) or 0 (normal) in its column {ANSWER!r}.",
        )
    return sheet


def read_sheet(path: Path, table: Table) -> Sheet:
    """The sheet in the file at `path`, or a `TableError` that names the wrong line.

    Rows are identified by their numbers. Columns that are features of the data must have the same
    values there, so that a sheet of other data is refused.
    """
    (_, heads), *lines = _read_lines(path) or [(1, [])]
    if ROW not in heads or ANSWER not in heads:
        raise TableError(
            f"{path} has no columns {ROW!r} and {ANSWER!r}",
            "Give a file that `gammagmm label` wrote, with the answers filled in.",
        )
    positions = {table.row_number(i): i for i in range(len(table))}
    names = {spreadsheet_safe(name): j for j, name in enumerate(table.columns)}
    # Columns of the data may have our names as well: of each name, ours is the first, or the last
    # for the answer.
    ours = [heads.index(name) for name in (ROW, PURPOSE) if name in heads]
    # Position in the sheet -> position in the data.
    shared = {
        i: names[head]
        for i, head in enumerate(heads)
        if head in names and head not in (ROW, ANSWER) and i not in ours
    }
    found: dict[int, tuple[str, list[str]]] = {}
    for number, cells in lines:
        where = f"{path}, line {number}"
        if len(cells) != len(heads):
            raise TableError(
                f"{where} has {len(cells)} cells, and the first line has {len(heads)}",
                "Correct the line.",
            )
        row = _position(cells[heads.index(ROW)], positions, where)
        if row in found:
            raise TableError(
                f"{where}: row {table.row_number(row)} occurs twice", "Remove one of the lines."
            )
        for i, j in shared.items():
            _check_value(cells[i], table.values[row, j], heads[i], where)
        others = [i for i in range(len(heads)) if i not in ours]
        _check_name([cells[i] for i in others], [heads[i] for i in others], row, table, where)
        found[row] = where, cells
    people = [i for i, head in enumerate(heads) if head.startswith(ANSWER_BY) and head not in names]
    return _answered(heads, found, people)


def _answered(
    heads: list[str], found: dict[int, tuple[str, list[str]]], people: list[int]
) -> Sheet:
    """The sheet with these lines, whose columns `people` have the answers of each person."""
    place = len(heads) - 1 - heads[::-1].index(ANSWER)
    words = {row: cells[place].strip().lower() for row, (_, cells) in found.items()}
    purposes = {
        row: _purpose(cells[heads.index(PURPOSE)], where) if PURPOSE in heads else "share"
        for row, (where, cells) in found.items()
    }
    said: dict[str, dict[int, int]] = {}
    for i in people:
        labels = {row: label_of_cell(cells[i], where) for row, (where, cells) in found.items()}
        if own := {row: label for row, label in labels.items() if label is not None}:
            said[heads[i].removeprefix(ANSWER_BY)] = own
    return Sheet(
        tuple(found),
        tuple(label_of_cell(words[row], where) for row, (where, _) in found.items()),
        frozenset(row for row, purpose in purposes.items() if purpose in ("find", "check")),
        frozenset(row for row, purpose in purposes.items() if purpose == "check"),
        frozenset(row for row, word in words.items() if word in UNSURE_WORDS),
        frozenset(row for row, purpose in purposes.items() if purpose == SIMPLE),
        said,
    )


def _read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Number, from 1, and cells of each line that is not empty."""
    if path.suffix.lower() not in TEXTS:
        return _read_table(path)
    try:
        if path.stat().st_size > MAX_SHEET_BYTES:
            raise TableError(
                f"{path} is larger than {MAX_SHEET_BYTES:,} bytes", "Give a sheet of rows."
            )
        # A spreadsheet saves CSV with the separator and the encoding of its locale.
        text, _ = decode_any(Source(str(path), ".csv", path.read_bytes()))
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
        lines = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        raise TableError(f"{path} is not a CSV file ({error})", "Save it as CSV.") from error
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror})", "Check the path.") from error
    return [(number, cells) for number, cells in lines if any(cell.strip() for cell in cells)]


def _read_table(path: Path) -> list[tuple[int, list[str]]]:
    """The same of a workbook, or of another file with a table, in which the sheet was saved."""
    raw = read_file(str(path), asked=Asked(is_strict=True))
    columns = [raw.cells(j) for j in range(len(raw.columns))]
    numbers = raw.lines or range(2, raw.n_rows + 2)
    lines = [[cell or "" for cell in cells] for cells in zip(*columns, strict=True)]
    return [(1, list(raw.columns)), *zip(numbers, lines, strict=True)]


def _separator(text: str) -> str:
    """What separates the cells: that by which the first line has our columns, or a comma."""
    for separator in ";\t":
        heads = next(csv.reader(text.splitlines()[:1], delimiter=separator), [])
        if ROW in heads and ANSWER in heads:
            return separator
    return ","


def _position(cell: str, positions: dict[int, int], where: str) -> int:
    """Position among the training rows of the row whose number is in `cell`."""
    try:
        number = float(cell)
        position = positions.get(int(number)) if number.is_integer() else None
    except (ValueError, OverflowError):
        raise TableError(
            f"{where}: {cell[:40]!r} is not a row number", "Correct the cell."
        ) from None
    if position is None:
        raise TableError(f"{where}: row {cell[:40]} is not in the data, or was dropped", OTHER_DATA)
    return position


def _check_value(cell: str, value: float, column: str, where: str) -> None:
    """Refuse a value that the data do not have; a spreadsheet may have rounded it.

    An empty cell is a missing value, which the data have in another form.
    """
    if not cell.strip():
        return
    # In many countries, a spreadsheet writes decimal commas and points between thousands.
    forms = (cell, cell.replace(".", "").replace(",", "."))
    numbers = [number for form in forms if (number := number_or_none(form)) is not None]
    if not any(math.isclose(number, value, rel_tol=1e-6, abs_tol=1e-9) for number in numbers):
        raise TableError(
            f"{where}: {shown(column)} is {cell[:40]!r} here and {value:g} in the data",
            CHANGED_VALUE,
        )


def _check_name(
    cells: Sequence[str], heads: Sequence[str], row: int, table: Table, where: str
) -> None:
    """Refuse a row that has another name than in the data."""
    columns = (spreadsheet_safe(table.preparation.id or NAME), NAME)
    column = next((name for name in columns if name in heads[:-1]), None)
    if table.given_names is None or column is None or column in table.columns:
        return
    name, expected = cells[heads.index(column)], spreadsheet_safe(table.given_names[row])
    # A report shows invisible characters as escape sequences, and cuts long names.
    written = spreadsheet_safe(visible(table.given_names[row]))
    is_cut = name.endswith("…") and written.startswith(name[:-1])
    # A spreadsheet turns 007 into 7.
    is_number = number_or_none(name) is not None and number_or_none(name) == number_or_none(
        expected
    )
    if name not in (expected, written) and not (is_cut or is_number):
        raise TableError(
            f"{where}: the row is named {name[:40]!r} here and {expected[:40]!r} in the data",
            OTHER_DATA,
        )


def _purpose(cell: str, where: str) -> str:
    """What the row was chosen for."""
    if (word := cell.strip().lower()) not in ("share", SIMPLE, "find", "check"):
        raise TableError(
            f"{where}: {cell[:40]!r} is not what a row is chosen for",
            f"Do not change the column {PURPOSE!r}: share, {SIMPLE}, find or check.",
        )
    return word


def label_of_cell(cell: str, where: str) -> int | None:
    """1 or 0, or None for an empty cell."""
    word = cell.strip().lower()
    if word in YES or word in NO:
        return int(word in YES)
    if word and word not in UNSURE_WORDS:
        raise TableError(
            f"{where}: {cell[:40]!r} is not an answer",
            "Write 1 (anomaly), 0 (normal) or unsure, or leave the cell empty.",
        )
    return None
