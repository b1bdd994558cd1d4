"""What a column probably is, by its name and its values: an id, known labels, dates, or nothing."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gammagmm._support.dates import date_form
from gammagmm._support.table_encoder import n_texts
from gammagmm._support.text import MAX_SHOWN_CHARACTERS, counted, listed, shown
from gammagmm.errors import Note, Problem
from gammagmm.readers.numbers import looks_like_number
from gammagmm.readers.raw_table import RawTable, written
from gammagmm.readers.truth import looks_like_labels, read_truth

__all__ = ["Guess", "are_mostly_numbers", "column_option", "guess", "guess_notes"]

Kind: TypeAlias = Literal["empty", "constant", "id", "labels", "date", "whole numbers"]

MIN_ROWS = 10
"""With fewer rows, values say nothing about ids: two measurements are often different numbers."""
N_EXAMPLES = 1_000
"""About as many cells of a column are examined to find out whether most of them are numbers."""
MAX_NOTES = 3
"""Above this number of columns of one kind there is one note about all of them."""

# Words of a name that say that a column is an id, whatever its values are.
ID_WORDS = frozenset({"id", "ids", "uuid", "guid"})
# Words that say so if all values are different.
NUMBER_WORDS = frozenset(
    {"nr", "no", "num", "number", "nummer", "numero", "key", "code", "index", "idx", "unnamed"}
)
NUMBER_ENDINGS = ("number", "nummer", "schluessel", "schlüssel")
# Words that say that a column of two values has labels, anywhere in the name or at its end.
LABEL_WORDS = frozenset(
    {"anomaly", "anomalies", "anomalous", "anomalie", "outlier", "outliers", "fraud", "fraudulent"}
    | {"betrug", "abnormal", "attack", "intrusion"}
)
LABEL_ENDINGS = frozenset({"label", "labels", "target", "class", "truth"})
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Numbers with Indian groups of digits, which are not read: 1,10,234 is 110234.
INDIAN = re.compile(r"[+-]?\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d*)?", re.ASCII)


@dataclass(frozen=True)
class Guess:
    """What a column of a file probably is, and why it is treated so."""

    column: str
    kind: Kind
    message: str

    @property
    def is_left_out(self) -> bool:
        """Whether the column is not used unless the user asks for it."""
        return self.kind != "whole numbers"


def guess(raw: RawTable, j: int) -> Guess | None:
    """What column `j` probably is; None for an ordinary column of numbers or text."""
    name = raw.columns[j]
    words = [word.lower() for word in WORD.findall(name)]
    find = _guess_text if raw.is_text(j) else _guess_numbers
    if raw.is_gap(j).all():
        return Guess(name, "empty", "left out: all its values are missing")
    if _is_named_like_labels(name, words) and looks_like_labels(raw, j):
        helps = f"{column_option('--use', name)} keeps the column"
        if not isinstance(read_truth(raw, name), Problem):
            helps = f"{column_option('--truth', name)} compares the estimate with them, {helps}"
        return Guess(name, "labels", f"left out: it looks like known labels; {helps}")
    return find(raw, j, words)


def _guess_text(raw: RawTable, j: int, words: list[str]) -> Guess | None:
    name, cells = raw.columns[j], raw.data[j]
    if (form := date_form(cells)) is not None:
        encode = f"--dates encode or {column_option('--use', name)} turns them into numbers"
        return Guess(name, "date", f"left out: it contains dates ({form}); {encode}")
    n = n_texts(cells)
    if n == 1:
        only = next(cell for cell in cells if cell is not None)
        return Guess(name, "constant", f"left out: its only text is {shown(only)}")
    if ID_WORDS.intersection(words):
        return _id(name, "by its name")
    is_unique = raw.n_rows >= MIN_ROWS and n == raw.n_rows
    if is_unique and (_are_codes(cells.tolist(), words) or not are_mostly_numbers(cells.tolist())):
        return _id(name, "because its texts are all different")
    return None


def _are_codes(cells: list[str], words: list[str]) -> bool:
    """Whether different texts are codes of digits, such as "007", though they look like numbers."""
    n_codes = sum(cell.isdigit() for cell in cells)
    return n_codes == len(cells) or (2 * n_codes > len(cells) and _is_named_like_numbers(words))


def are_mostly_numbers(cells: list[str]) -> bool:
    """Whether more than half of the cells are numbers in some way of writing."""
    examples = cells[:: -(-len(cells) // N_EXAMPLES)]
    found = [cell for cell in examples if looks_like_number(cell) or INDIAN.fullmatch(cell)]
    return 2 * len(found) > len(examples)


def _guess_numbers(raw: RawTable, j: int, words: list[str]) -> Guess | None:
    name, values = raw.columns[j], raw.data[j]
    present = values[~np.isnan(values)]
    if not np.isfinite(present).all():
        return None  # they are a problem
    low, high = float(present.min()), float(present.max())
    if low == high:
        return Guess(name, "constant", f"left out: its only value is {written([low])[0]}")
    if not (present == np.floor(present)).all():
        return None
    if ID_WORDS.intersection(words):
        return _id(name, "by its name")
    is_complete = raw.n_rows >= MIN_ROWS and len(present) == raw.n_rows
    if not is_complete or len(np.unique(present)) < raw.n_rows:
        return None
    if high - low == raw.n_rows - 1:
        return _id(name, "because its values are consecutive whole numbers")
    if _is_named_like_numbers(words):
        return _id(name, "by its name and because its values are all different")
    row_id, drop = column_option("--id", name), column_option("--drop", name)
    message = "used, and its values are different whole numbers; if they name the rows, give "
    return Guess(name, "whole numbers", f"{message}{row_id} or {drop}")


def _id(name: str, why: str) -> Guess:
    row_id, use = column_option("--id", name), column_option("--use", name)
    helps = f"{row_id} names the rows by it, {use} keeps it as data"
    return Guess(name, "id", f"left out: it looks like an id {why}; {helps}")


def _is_named_like_numbers(words: list[str]) -> bool:
    return bool(NUMBER_WORDS.intersection(words)) or any(w.endswith(NUMBER_ENDINGS) for w in words)


def _is_named_like_labels(name: str, words: list[str]) -> bool:
    if name.strip().lower() == "y" or LABEL_WORDS.intersection(words):
        return True
    return bool(words) and words[-1] in LABEL_ENDINGS


TOGETHER: dict[Kind, tuple[str, str]] = {
    "empty": ("without values are left out", ""),
    "constant": ("with a single value are left out", ""),
    "id": ("that look like ids are left out", "; --id NAME names the rows by one, --use keeps it"),
    "labels": (
        "that look like known labels are left out",
        "; --use NAME keeps one",
    ),
    "date": ("of dates are left out", "; --dates encode turns them into numbers"),
    "whole numbers": (
        "of different whole numbers are used",
        "; --drop NAME leaves one out if it names the rows",
    ),
}
"""What is said about many columns of one kind, before and after their names."""


def guess_notes(source: str, guesses: list[Guess]) -> list[Note]:
    """A note about each column, or one about all columns of a kind if they are many."""
    notes = []
    for kind, (said, helps) in TOGETHER.items():
        found = [own for own in guesses if own.kind == kind]
        if len(found) <= MAX_NOTES:
            notes += [Note("tables", own.column, own.message) for own in found]
            continue
        if kind == "labels" and any("; --truth " in own.message for own in found):
            helps = "; --truth NAME compares the estimate with one, --use NAME keeps one"
        names = listed(own.column for own in found)
        message = f"{counted(len(found), 'column')} {said}: {names}{helps}"
        notes.append(Note("tables", source, message))
    return notes


def column_option(flag: str, name: str) -> str:
    """An option as the user can type it; NAME stands for a name that is hard to type."""
    is_short = name.isprintable() and len(name) <= MAX_SHOWN_CHARACTERS
    return f"{flag} {shlex.quote(name) if is_short else 'NAME'}"
