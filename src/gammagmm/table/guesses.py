"""What a column probably is, by its name and its values: an id, known labels, dates, or nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gammagmm._support.dates import date_form
from gammagmm._support.text import counted, listed, shown
from gammagmm.errors import Note, Problem
from gammagmm.readers.numbers import looks_like_number
from gammagmm.readers.raw_table import RawTable, written
from gammagmm.table.encoder import MAX_CATEGORIES, n_texts
from gammagmm.table.truth import looks_like_labels, read_truth
from gammagmm.table.words import Words

__all__ = ["Guess", "are_mostly_numbers", "guess", "guess_notes"]

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


ROLES = {
    "use": "keeps it as data",
    "drop": "leaves it out",
    "id": "names the rows by it",
    "truth": "compares the estimate with it",
}
"""What a user can ask for about a column, and what that does."""


@dataclass(frozen=True)
class Guess:
    """What a column probably is, why it is thought so, and what the user can ask for instead."""

    column: str
    kind: Kind
    why: str
    instead: tuple[Literal["use", "drop", "id", "truth", "dates"], ...] = ()

    @property
    def is_left_out(self) -> bool:
        """Whether the column is not used unless the user asks for it."""
        return self.kind != "whole numbers"

    def message(self, words: Words) -> str:
        """What is done with the column and why, and what to ask for instead."""
        own = {role: f"{words.of(role, self.column)} {does}" for role, does in ROLES.items()}
        own["dates"] = f"{words.dates} turns it into numbers"
        done = "left out" if self.is_left_out else "used"
        instead = ", ".join(own[each] for each in self.instead)
        return f"{done}: {self.why}" + (f"; {instead}" if instead else "")


def guess(raw: RawTable, j: int) -> Guess | None:
    """What column `j` probably is; None for an ordinary column of numbers or text."""
    if j in raw.refused:
        return None  # it is a problem if it is used
    name = raw.columns[j]
    words = [word.lower() for word in WORD.findall(name)]
    find = _guess_text if raw.is_text(j) else _guess_numbers
    if raw.is_gap(j).all():
        return Guess(name, "empty", "all its values are missing")
    if _is_named_like_labels(name, words) and looks_like_labels(raw, j):
        is_clear = not isinstance(read_truth(raw, name), Problem)
        return Guess(
            name, "labels", "it looks like known labels", ("truth", "use") if is_clear else ("use",)
        )
    return find(raw, j, words)


def _guess_text(raw: RawTable, j: int, words: list[str]) -> Guess | None:
    name, cells = raw.columns[j], raw.data[j]
    if (form := date_form(cells)) is not None:
        return Guess(name, "date", f"it contains dates ({form})", ("dates", "use"))
    n = n_texts(cells)
    if n == 1:
        only = next(cell for cell in cells if cell is not None)
        return Guess(name, "constant", f"its only text is {shown(only)}")
    can_be_used = n <= MAX_CATEGORIES
    if ID_WORDS.intersection(words):
        return _id(name, "by its name", can_be_used)
    is_unique = raw.n_rows >= MIN_ROWS and n == raw.n_rows
    if is_unique and (_are_codes(cells.tolist(), words) or not are_mostly_numbers(cells.tolist())):
        return _id(name, "because its texts are all different", can_be_used)
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
        return Guess(name, "constant", f"its only value is {written([low])[0]}")
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
    why = "its values are different whole numbers, which may name the rows"
    return Guess(name, "whole numbers", why, ("id", "drop"))


def _id(name: str, why: str, can_be_used: bool = True) -> Guess:
    return Guess(
        name, "id", f"it looks like an id {why}", ("id", "use") if can_be_used else ("id",)
    )


def _is_named_like_numbers(words: list[str]) -> bool:
    return bool(NUMBER_WORDS.intersection(words)) or any(w.endswith(NUMBER_ENDINGS) for w in words)


def _is_named_like_labels(name: str, words: list[str]) -> bool:
    if name.strip().lower() == "y" or LABEL_WORDS.intersection(words):
        return True
    return bool(words) and words[-1] in LABEL_ENDINGS


TOGETHER: dict[Kind, str] = {
    "empty": "without values are left out",
    "constant": "with a single value are left out",
    "id": "that look like ids are left out",
    "labels": "that look like known labels are left out",
    "date": "of dates are left out",
    "whole numbers": "of different whole numbers are used",
}
"""What is said about many columns of one kind."""


def guess_notes(source: str, guesses: Sequence[Guess], words: Words) -> list[Note]:
    """A note about each column, or one about all columns of a kind if they are many."""
    notes = []
    for kind, said in TOGETHER.items():
        found = [own for own in guesses if own.kind == kind]
        if len(found) <= MAX_NOTES:
            notes += [
                Note.of("tables.guess", own.column, kind=kind, words=own.message(words))
                for own in found
            ]
            continue
        names = listed(own.column for own in found)
        instead = words.dates if kind == "date" else words.of("use", "NAME")
        helps = f"; {instead} keeps them" if all("use" in own.instead for own in found) else ""
        told = f"{counted(len(found), 'column')} {said}: {names}{helps}"
        notes.append(Note.of("tables.guesses", source, kind=kind, words=told))
    return notes
