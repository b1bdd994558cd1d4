"""What a column probably is, by its name and its values: an id, known labels, dates, or nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.dates import date_form, seconds_of
from gammagmm._support.text import counted, listed, shown
from gammagmm.errors import Note, Problem
from gammagmm.readers.numbers import looks_like_number
from gammagmm.readers.raw_table import RawTable, written
from gammagmm.table.encoder import MAX_CATEGORIES, n_texts
from gammagmm.table.truth import looks_like_labels, read_truth
from gammagmm.table.words import Words

__all__ = ["Guess", "are_mostly_numbers", "guess", "guess_notes"]

Kind: TypeAlias = Literal[
    "empty", "constant", "id", "labels", "date", "code", "category", "whole numbers"
]

MIN_ROWS = 10
"""With fewer rows, values say nothing about ids: two measurements are often different numbers."""
N_EXAMPLES = 1_000
"""About as many cells of a column are examined to find out whether most of them are numbers."""
MAX_NOTES = 3
"""Above this number of columns of one kind there is one note about all of them."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words of a name that say that a column is an id, whatever its values are.
ID_WORDS = frozenset({"id", "ids", "uuid", "guid", "imei"})
# Words that say so if all values are different; behind another word, and with as many digits in
# all numbers, they say that it is a code.
NUMBER_WORDS = _words("nr no num number nummer numero número numer key code unnamed")
# Names that say so if they have no other word: an air quality index is a quantity.
INDEX_NAMES = frozenset({"index", "idx"})
NUMBER_ENDINGS = ("number", "nummer", "nr", "schluessel", "schlüssel", "konto", "account")
# A number in a name: "N° client".
NUMBER_SIGN = re.compile(r"(?:^|\W)(?:n[°ºr]|no\.|#)(?:\W|$)|№", re.IGNORECASE)
# Words that say that whole numbers are codes.
CODE_WORDS = _words(
    "plz postleitzahl zip zipcode postcode postal postnummer postnr cedex postort psč "
    "postinumero irányítószám ean gtin upc isbn barcode iban bic blz swift routing sku siret "
    "siren naics nace code kod código codice buchungskreis kostenstelle kst"
)
CODE_ENDINGS = ("schluessel", "schlüssel")
# Words that say so of long numbers: calls by phone are a quantity.
TELEPHONE_WORDS = _words("phone telephone telefon tel telefone téléphone teléfono handy fax")
# Words that say so alone or before a number word: the budget of a department is a quantity.
OFFICE_WORDS = _words(
    "dept department département departamento dipartimento reparto avdelning oddział mobile"
)
# Words that say so if all numbers have as many digits, four or more; before a number word, three.
ENTITY_WORDS = _words(
    "account accounts acct konto compte cuenta conto conta rekening tili kreditor debitor "
    "creditor debtor vendor supplier lieferant fournisseur proveedor fornitore leverancier "
    "leverantör dostawca customer client kunde kund klant cliente klient article artikel item "
    "product produkt material matnr employee personal matricule patient invoice rechnung "
    "facture factura fattura order auftrag beleg document contract vertrag station device "
    "gerät machine maschine center centre store filiale branch dossier case file akte"
)
STATUS_WORDS = frozenset({"status", "statut", "estado", "stato", "state", "http"})
YEAR_WORDS = frozenset(
    {"year", "année", "annee", "año", "ano", "anno", "år", "rok", "jaar", "vuosi"}
)
YEAR_ENDINGS = ("jahr", "jaar", "år")
DATE_WORDS = frozenset(
    {"date", "datum", "fecha", "data", "dato", "day", "tag", "dag", "jour", "día", "dia", "giorno"}
    | {"päivä", "kelt", "dátum", "tarih", "birthday", "geburtstag", "since", "seit", "until", "bis"}
    | {"due", "fällig", "contact", "kontakt", "visit", "start", "end", "created", "updated", "time"}
    | {"modified", "timestamp", "ts", "zeit", "epoch"}
)
DATE_ENDINGS = ("date", "datum", "dag", "tag", "päivä")
YEARS = (1800, 2200)
SERIALS, RECENT = (20_000, 60_000), (36_526, 54_789)
"""Days of spreadsheets from 1954 to 2064, and from 2000 to 2049."""
DENSE, MAX_DAYS = 0.2, 4_000
"""Share of the days of a period of at most so many days that whole numbers in it are like."""
MAX_STEPS = 10
"""Times the number of rows up to which rising whole numbers number the rows."""
MIN_DIGITS, MIN_ENTITY_DIGITS, ALIKE = 4, 3, 0.9
MIN_EXTENSION, MIN_TELEPHONE = 100.0, 100_000.0
"""Smallest numbers of a column that is called "phone", or so among other words."""
MIN_LONG = 10
"""Digits of different whole numbers, all as long, that are more probably ids than quantities."""
# Words that say that a column of two values has labels, anywhere in the name or at its end.
LABEL_WORDS = frozenset(
    {"anomaly", "anomalies", "anomalous", "anomalie", "outlier", "outliers", "fraud", "fraudulent"}
    | {"betrug", "abnormal", "attack", "intrusion", "suspicious", "auffällig", "auffaellig"}
    | {"anomal", "verdächtig", "anomalía", "anomalia", "anomalo", "suspect", "fraude", "frode"}
    | {"afwijkend", "afwijking", "avvikande", "avvikelse", "avvik", "avvikende", "anomaal"}
    | {"nietypowe", "podejrzane", "oszustwo", "poikkeava", "podvod", "csalás", "anormal", "şüpheli"}
)
LABEL_ENDINGS = frozenset({"label", "labels", "target", "class", "truth"})
WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")


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
    form: str = ""  # of a date

    @property
    def is_left_out(self) -> bool:
        """Whether the column is not used unless the user asks for it."""
        return self.kind not in ("whole numbers", "category")

    @property
    def is_text(self) -> bool:
        """Whether the numbers are used as texts."""
        return self.kind == "category"

    def message(self, words: Words) -> str:
        """What is done with the column and why, and what to ask for instead."""
        own = {role: f"{words.of(role, self.column)} {does}" for role, does in ROLES.items()}
        own["dates"] = f"{words.dates} turns it into numbers"
        done = "not used" if self.is_left_out else "used as text" if self.is_text else "used"
        instead = ", ".join(own[each] for each in self.instead)
        return f"{done}: {self.why}" + (f"; {instead}" if instead else "")


def guess(raw: RawTable, j: int) -> Guess | None:
    """What column `j` probably is; None for an ordinary column of numbers or text."""
    if j in raw.refused:
        return None  # it is a problem if it is used
    name = raw.columns[j]
    words = [word.lower() for word in WORD.findall(unicodedata.normalize("NFC", name))]
    if len(words) > 1 and name.isalpha():  # "KSt" is one word
        words = [name.lower(), *words]
    if raw.is_gap(j).all():
        return Guess(name, "empty", "all its values are missing")
    if _is_named_like_labels(name, words) and looks_like_labels(raw, j):
        is_clear = not isinstance(read_truth(raw, name), Problem)
        return Guess(
            name, "labels", "it looks like known labels", ("truth", "use") if is_clear else ("use",)
        )
    return (_guess_text if raw.is_text(j) else _guess_numbers)(raw, j, words)


def _guess_text(raw: RawTable, j: int, words: list[str]) -> Guess | None:
    name, cells = raw.columns[j], raw.data[j]
    if (form := date_form(cells)) is not None:
        return Guess(name, "date", f"it contains dates ({form})", ("dates", "use"), form)
    n = n_texts(cells)
    if n == 1 and not raw.is_gap(j).any():  # a cross in some rows says something
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
    found = [cell for cell in examples if looks_like_number(cell)]
    return 2 * len(found) > len(examples)


def _guess_numbers(raw: RawTable, j: int, words: list[str]) -> Guess | None:
    name, values = raw.columns[j], raw.data[j]
    present = values[~np.isnan(values)]
    if not np.isfinite(present).all():
        return None  # they are a problem
    low, high = float(present.min()), float(present.max())
    if low == high:
        return Guess(name, "constant", f"its only value is {written([low])[0]}")
    if (form := _number_date(words, present)) is not None:
        return Guess(name, "date", f"it contains dates ({form})", ("dates", "use"), form)
    if not _are_whole(present):
        return None
    if ID_WORDS.intersection(words):
        return _id(name, "by its name")
    return _guess_whole_numbers(raw, j, words)


def _guess_whole_numbers(raw: RawTable, j: int, words: list[str]) -> Guess | None:
    """What a column of whole numbers is that are not all the same: a code, an id, or neither."""
    name, values = raw.columns[j], raw.data[j]
    present = values[~np.isnan(values)]
    n_different, span = len(np.unique(present)), float(np.ptp(present))
    is_code = len(values) >= MIN_ROWS and present.min() >= 0.0 and _is_code(name, words, present)
    is_repeated = n_different < len(values)
    if is_code and is_repeated and n_different <= MAX_CATEGORIES:
        return Guess(name, "category", "it looks like a code by its name", ("drop",))
    if is_code and is_repeated:
        return Guess(name, "code", "it looks like a code by its name", ("use",))
    if len(values) < MIN_ROWS or is_repeated:
        return None
    if span == len(values) - 1:
        return _id(name, "because its values are consecutive whole numbers")
    if is_code or _is_named_like_numbers(words):
        return _id(name, "by its name and because its values are all different")
    lengths = {len(f"{value:.0f}") for value in (present.min(), present.max())}
    if present.min() > 0.0 and len(lengths) == 1 and lengths.pop() >= MIN_LONG:
        return _id(name, "because its values are different whole numbers, all of as many digits")
    if (np.diff(values) > 0.0).all() and span <= MAX_STEPS * len(values):
        return _id(name, "because its values rise in small steps")
    why = "its values are different whole numbers, which may name the rows"
    return Guess(name, "whole numbers", why, ("id", "drop"))


def _number_date(words: list[str], present: NDArray[np.float64]) -> str | None:
    """The form of numbers that are dates, by their name and their values; None for others."""
    low, high = present.min(), present.max()
    are_whole = _are_whole(present)
    if are_whole and YEARS[0] * 10_000 <= low <= high <= YEARS[1] * 10_000:
        cells = (f"{value:.0f}" for value in np.unique(present))
        return None if np.isnan(seconds_of(cells, "yearmonthday")).any() else "yearmonthday"
    is_year = any(w in YEAR_WORDS or w.endswith(YEAR_ENDINGS) for w in words)
    if are_whole and is_year and YEARS[0] <= low <= high <= YEARS[1]:
        return "year"
    is_named = any(w in DATE_WORDS or w.endswith(DATE_ENDINGS) for w in words)
    if is_named and SERIALS[0] <= low <= high <= SERIALS[1]:
        return "spreadsheet days"
    if is_named and 1e9 <= low <= high <= 2.2e9:
        return "Unix seconds"
    if (is_named or are_whole) and 1.2e12 <= low <= high <= 2.2e12:
        return "Unix milliseconds"
    n_days = high - low + 1.0
    is_recent = RECENT[0] <= low and high <= RECENT[1] and MIN_ROWS < n_days <= MAX_DAYS
    if not (are_whole and is_recent and len(present) >= MIN_ROWS):
        return None
    is_dense = len(np.unique(present)) >= DENSE * n_days
    return "spreadsheet days" if is_dense else None


def _are_whole(values: NDArray[np.float64]) -> bool:
    """Whether all values are whole numbers; most columns of others show it by the first one."""
    return float(values[0]).is_integer() and bool((values == np.floor(values)).all())


def _is_code(name: str, words: list[str], present: NDArray[np.float64]) -> bool:
    """Whether whole numbers are codes by their name and, for some names, by their digits."""
    last, before = words[-1] if words else "", set(words[:-1])
    is_number = last in NUMBER_WORDS or last.endswith(NUMBER_ENDINGS)
    offices = OFFICE_WORDS.intersection(words)
    is_office = len(words) == len(offices) or (bool(before & offices) and is_number)
    is_coded = bool(CODE_WORDS.intersection(words)) or last.endswith(CODE_ENDINGS)
    if is_coded or NUMBER_SIGN.search(name) or (offices and is_office):
        return True
    if TELEPHONE_WORDS.intersection(words):
        least = MIN_EXTENSION if len(words) == 1 else MIN_TELEPHONE
        return is_number or bool((present >= least).mean() >= ALIKE)
    if STATUS_WORDS.intersection(words):
        return len(np.unique(present)) <= MAX_CATEGORIES
    digits = np.floor(np.log10(np.maximum(present, 1.0))) + 1.0
    most = np.bincount(digits.astype(np.intp)).argmax()
    if (digits == most).mean() < ALIKE:
        return False
    if is_number and before & ENTITY_WORDS:
        return bool(most >= MIN_ENTITY_DIGITS)
    is_alone = len(words) == 1 and last.endswith(NUMBER_ENDINGS)
    is_named = last in ENTITY_WORDS or is_alone or (is_number and bool(before))
    return bool(most >= MIN_DIGITS and is_named)


def _id(name: str, why: str, can_be_used: bool = True) -> Guess:
    return Guess(
        name, "id", f"it looks like an id {why}", ("id", "use") if can_be_used else ("id",)
    )


def _is_named_like_numbers(words: list[str]) -> bool:
    if NUMBER_WORDS.intersection(words) or (len(words) == 1 and words[0] in INDEX_NAMES):
        return True
    return any(w.endswith(NUMBER_ENDINGS) for w in words)


def _is_named_like_labels(name: str, words: list[str]) -> bool:
    if name.strip().lower() == "y" or LABEL_WORDS.intersection(words):
        return True
    return bool(words) and words[-1] in LABEL_ENDINGS


TOGETHER: dict[Kind, str] = {
    "empty": "without values are not used",
    "constant": "with a single value are not used",
    "id": "that look like ids are not used",
    "labels": "that look like known labels are not used",
    "date": "of dates are not used",
    "code": "of codes are not used",
    "category": "of codes are used as texts",
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
        counts = {"n_columns": len(found), "columns": names}
        notes.append(Note.of("tables.guesses", source, kind=kind, words=told, **counts))
    return notes
