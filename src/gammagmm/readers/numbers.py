"""Cells as people write them -> numbers: decimal commas, thousands, currencies, percents, words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import listed, shown
from gammagmm.errors import Note
from gammagmm.readers.raw_table import (
    PLAIN_MISSING,
    NumberForm,
    RawTable,
    is_missing,
    is_number,
    written,
)
from gammagmm.readers.source import Asked

__all__ = [
    "NO_MARK",
    "CellsWithWords",
    "ReadNumbers",
    "Texts",
    "are_codes",
    "decimal_mark",
    "has_numbers",
    "has_one_number",
    "have_groups",
    "is_row",
    "looks_like_number",
    "mark_for",
    "marks_word",
    "missing_words_note",
    "number_and_digits",
    "number_notes",
    "numbers_first_note",
    "other_units",
    "read_column",
    "read_texts",
    "reread",
    "settled",
    "shape_mark",
    "unusual_words",
]

Texts = Sequence[str | None]

SIGNS = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₺": "TRY", "₩": "KRW"}
CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KRW|MXN|"
    "MYR|NOK|NZD|PEN|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
NAMES = ("US$", "R$", "C$", "A$", "$", "SFr.", "Fr.", "zł", "Kč", "kr.", "kr", "Ft")
CURRENCY = "|".join([CODES, *SIGNS, *map(re.escape, NAMES)])
# Spreadsheets write these spaces, minus signs and apostrophes in place of those of ASCII.
PLAIN_LETTERS = str.maketrans(
    {"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"}
)
AMOUNT = re.compile(
    rf"""(?P<open>\()?\ ?(?P<sign>[+-]?)\ ?(?P<before>{CURRENCY})?\ ?(?P<sign2>[+-]?)
    (?P<core>[\d.,][\d.,'\ ]*(?<!\ )(?:[eE][+-]?\d+)?)
    (?P<minus>-?)\ ?(?P<percent>%)?\ ?(?P<after>{CURRENCY})?\ ?(?P<minus2>-?)(?P<close>\))?""",
    re.VERBOSE,
)
DIGITS = re.compile(r"([+-]?)([\d.,]+)", re.ASCII)  # most cells; this is quicker than AMOUNT
MARKS = ".,' "
INDIAN = r"|[1-9]\d?(?:,\d\d)+,\d{3}"
"""Groups of two digits above the thousands: 1,10,234 is 110234."""
Mark = Literal[".", ","]
GROUPS: dict[Mark, str] = {".": ",' ", ",": ".' "}  # marks between thousands, by the decimal mark
NO_MARK = "the other columns do not decide which mark is the decimal mark"
N_EXAMPLES = 1000
"""Cells of which one is shown as an example."""
BY_SHAPE = "by the numbers below 1,000 in the column"
BY_FRACTIONS = "other numbers of the column have fractions"
LEAST_PLAIN = 0.02
"""Share of numbers without a mark in a column from which `shape_mark` decides by them."""
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}(?!\d)")
MIN_ALIKE = 20
"""Numbers with three digits after the mark among which one without a mark decides."""
MIN_CODE = 3
"""Fewest digits of a code that begins with 0; days and months have two."""
MAX_GAPS, MAX_CODES = 0.2, 0.05
"""Share of cells of a column of numbers that may have words without a number, or be like "A12"."""
MAX_CELL = 100
"""Longest cell that may be a number in other than plain form."""
# Both values of a logical column; spreadsheets write them in the language of the user.
BOOLEANS = (
    {"true": 1.0, "false": 0.0},
    {"t": 1.0, "f": 0.0},
    {"wahr": 1.0, "falsch": 0.0},
    {"vrai": 1.0, "faux": 0.0},
    {"verdadero": 1.0, "falso": 0.0},
    {"verdadeiro": 1.0, "falso": 0.0},
    {"vero": 1.0, "falso": 0.0},
)


# Words beside a number that do not change it, in several languages.
BESIDE = (
    "approx|approximately|about|around|roughly|circa|cca|ca|c|est|estimated|etwa|rund|ungefähr|zirka|"
    "geschätzt|env|environ|vers|aprox|aproximadamente|cerca de|alrededor de|ongeveer|około|ok|"
    "ungefär|cirka|omkring|noin|asi|přibližně|körülbelül|kb|yaklasik|приблизительно|около|ок|"
    "up to|at least|at most|min|max|bis zu|mind|mindestens|höchstens|jusqu'à|hasta"
).replace(" ", r"\ ")
IN_WORDS = re.compile(
    rf"""(?:(?:{BESIDE})(?:[.:](?=[\s\d~-])|(?=[\s~]))|[~≈<>≤≥=±]{{1,2}})?\s*
    (?P<number>[-+]?\(?(?:{CURRENCY})?\ ?\d(?:[\d.,' ]*\d)?\)?(?:\ ?(?:{CURRENCY}))?)
    \s*(?P<unit>(?:[^\W\d_]|[°%µ²³/·^.]){{0,15}})\s*(?:[*?!~]{{1,3}}|\((?:{BESIDE})\.?\))?""",
    re.VERBOSE | re.IGNORECASE,
)
MIN_STEM, MAX_ENDING = 3, 2
"""Letters that the forms of one unit have in common, and those in which they differ."""
CODE_IN_WORDS = re.compile(r"[^\W_]*\d[^\s]*")
FACTORS = frozenset(
    {"k", "tsd", "thousand", "tausend", "mille", "mil", "t€", "mio", "mln", "million", "millions"}
    | {"millionen", "bn", "mrd", "mld", "billion", "billions", "dozen", "hundred", "tys"}
)
"""Words after a number that multiply it."""


class Amount(NamedTuple):
    """A cell that is a number with signs around it."""

    core: str  # digits and the marks between them
    is_negative: bool = False
    form: str = ""  # how a negative amount is written: "", "parentheses" or "trailing"
    currency: str = ""
    is_percent: bool = False


@dataclass(frozen=True)
class CellsWithWords:
    """Cells of a column of numbers that have words beside a number, or no number.

    Attributes
    ----------
    n_numbers, n_gaps : int
        How many count as the number that they have, and how many as missing.
    examples : tuple of str
        The first different cells of both.
    """

    n_numbers: int
    n_gaps: int
    examples: tuple[str, ...]

    def note(self, column: str) -> Note:
        """A note about the cells of this column."""
        counts = {"n_numbers": self.n_numbers, "n_gaps": self.n_gaps}
        return Note.of("tables.words", column, texts=listed(self.examples), **counts)


@dataclass(frozen=True, eq=False)
class ReadNumbers:
    """Numbers of a column, and how they were read.

    Attributes
    ----------
    values : ndarray of shape (n,)
        NaN where a cell is missing.
    form : NumberForm
        How they are written.
    message : str
        How the column was read, with an example. Empty if it could not be decided.
    is_boolean : bool
        Whether the cells are words for true and false.
    words : CellsWithWords or None
        What became of cells with words among the numbers; None without them.
    """

    values: NDArray[np.float64]
    form: NumberForm
    message: str = ""
    manner: str = ""
    is_boolean: bool = False
    words: CellsWithWords | None = None
    is_in_memory: bool = False

    @property
    def decimal(self) -> str:
        """The decimal mark that the column shows: "." or ",", "" if it shows none."""
        return self.form.decimal if self.form.is_certain else ""

    @property
    def assumed(self) -> str:
        """The decimal mark that was assumed, "" if the column shows it."""
        return "" if self.form.is_certain else self.form.decimal

    def note(self, column: str) -> Note:
        """A note about how this column was read; one about an assumption has a code of its own."""
        if not self.assumed:
            return Note.of("tables.numbers", column, words=self.message)
        if self.is_in_memory:
            return Note.of("tables.assumed in memory", column, words=self.message)
        other = {".": ",", ",": "."}[self.assumed]
        words = {"words": self.message, "manner": self.manner}
        return Note.of("tables.assumed", column, **words, other=other)


def read_column(cells: Texts, assumed: str = "", reason: str = "") -> ReadNumbers | None:
    """Numbers of a column of text, None if some cell is not a number.

    Where "1,234" can be 1234 or 1.234 and no cell of the column decides, the decimal mark
    `assumed` decides, for a `reason` that the message gives; without it the result shows no
    decimal mark and has no values.
    """
    distinct = list(dict.fromkeys(cell for cell in cells if cell is not None))
    if not distinct:
        return ReadNumbers(np.full(len(cells), np.nan), NumberForm())
    words = _booleans(distinct)
    if words is not None:
        listed_words = " and ".join(f"{shown(w)} is {v:g}" for w, v in list(words.items())[:2])
        message = f"read as numbers: {listed_words}"
        return ReadNumbers(_spread(cells, words), NumberForm(), message, is_boolean=True)
    amounts = _amounts(distinct)
    if amounts is None:
        return None
    cores = [amount.core for amount in amounts.values()]
    styles = _styles(cores)
    if not styles:
        return None
    has_marks = any("," in core or "." in core for core in cores)
    is_open = has_marks and len(styles) > 1
    if is_open and not assumed:
        return ReadNumbers(np.empty(0), NumberForm(is_certain=False))
    decimal, group = next((style for style in styles if style[0] == assumed), styles[0])
    values = {cell: _value(amount, decimal, group) for cell, amount in amounts.items()}
    example = max(distinct[:N_EXAMPLES], key=len)
    form = NumberForm(
        decimal if has_marks else "",
        any(amount.is_percent for amount in amounts.values()),
        next((amount.currency for amount in amounts.values() if amount.currency), ""),
        not is_open,
    )
    shown_cell = shown(example.translate(PLAIN_LETTERS))
    manner = f"read {_manner(amounts.values(), form, group)}"
    message = f"{manner}: {shown_cell} is "
    message += str(written([values[example]])[0])
    message += f"; this is an assumption: {reason}" if is_open else ""
    return ReadNumbers(_spread(cells, values), form, message, manner)


def read_texts(
    texts: Mapping[int, Texts],
    other_marks: Callable[[], set[str]] = set,
    usual: tuple[str, str] = (".", NO_MARK),
    *,
    asked: Asked | None = None,
    n_plain: Mapping[int, int] | None = None,
    fractions: Collection[int] = (),
) -> dict[int, ReadNumbers]:
    """Numbers of those columns of text, by position, whose cells are numbers.

    A column that does not show its decimal mark has the mark that was `asked` for, or that of the
    other columns: those of `texts`, and those whose marks `other_marks` finds. If they show none or
    both, `shape_mark` decides, or else the first of `usual`, for the reason that is the second.

    Unless the user is strict, a few cells may have words; see `without_words`, also for `n_plain`.
    Codes such as "007" are no numbers. The columns `fractions` have numbers with fractions beside
    the texts, so that their mark is the decimal one.
    """
    beside, asked = n_plain or {}, asked or Asked()
    found, plain, words = dict[int, ReadNumbers](), dict(texts), dict[int, CellsWithWords]()
    for j, cells in texts.items():
        column = None if are_codes(cells) else read_column(cells)
        is_open = column is None and not asked.is_strict
        if is_open and (cleaned := without_words(cells, beside.get(j, 0))) is not None:
            plain[j], words[j] = cleaned
            column = read_column(plain[j])
        if column is not None:
            found[j] = column
    undecided = [j for j, column in found.items() if not column.form.is_certain]
    if undecided:
        marks = {column.decimal for column in found.values()} | other_marks()
        for j in undecided:
            own = _mark_in(plain[j]) if j in fractions else ""
            likely = (own, BY_FRACTIONS) if own else usual
            known = set() if own else marks
            column = read_column(plain[j], *mark_for(plain[j], asked.decimal, known, likely))
            if column is not None:
                found[j] = column
    told = {j: replace(found[j], words=own) for j, own in words.items() if j in found}
    return dict(sorted((found | told).items()))


def _mark_in(cells: Texts) -> str:
    """The first of the two marks that a cell has; empty text without one."""
    return next((c for cell in cells if cell is not None for c in cell if c in ".,"), "")


def mark_for(
    cells: Texts, decimal: str, marks: set[str], usual: tuple[str, str]
) -> tuple[str, str]:
    """The decimal mark of a column that does not show it, and the reason."""
    if decimal:
        return decimal, "it was asked for"
    shape = shape_mark(cells)
    return assumed_mark(marks, (shape, BY_SHAPE) if shape else usual)


def shape_mark(cells: Texts) -> str:
    """The decimal mark of a column of whole numbers and numbers such as "1.232".

    Where no number above 999 lacks the mark and some below have none, it stands between thousands.
    One such number is enough among many with three digits after the mark, where a fraction of three
    digits would be written as 391.000. Where one above 999 lacks the mark, it is the decimal mark.
    Empty text where neither is so.
    """
    cores = [amount.core for cell in cells if cell is not None and (amount := _amount(cell))]
    used = {mark for core in cores for mark in ".," if mark in core}
    if len(used) != 1:
        return ""
    [mark] = used
    lengths = [len(core) for core in cores if core.isdigit() and core.strip("0")]
    if any(length > 3 for length in lengths):
        return mark
    least = 1 if have_groups(cores) else max(2, LEAST_PLAIN * len(cores))
    return {".": ",", ",": "."}[mark] if len(lengths) >= least else ""


def have_groups(cells: Texts) -> bool:
    """Whether cells are many numbers that all have three digits after their only mark, if any."""
    numbers = [cell for cell in cells if cell is not None]
    return len(numbers) >= MIN_ALIKE and all(n.isdigit() or GROUPED.match(n) for n in numbers)


def are_codes(cells: Texts) -> bool:
    """Whether cells are codes such as "03808": digits, as many in those that begin with 0."""
    present = [cell for cell in cells if cell is not None]
    if not all(map(str.isdigit, present)):
        return False
    lengths = {len(cell) for cell in present if cell[:1] == "0"}
    if not lengths or len(set(present)) < 2:
        return False
    return len(lengths) == 1 and lengths.pop() == max(map(len, present)) >= MIN_CODE


def without_words(cells: Texts, n_plain: int = 0) -> tuple[Texts, CellsWithWords] | None:
    """Cells of numbers, of which a few have words, without these; None for other cells.

    "approx 10" and "12 kg" count as 10 and 12, in which one unit at most may stand beside numbers
    without one. Cells without a number, with two of them or with a factor, such as "2 million",
    count as missing. `n_plain` more cells of the column are numbers.
    """
    counts = Counter(cell for cell in cells if cell is not None)
    n_cells = counts.total() + n_plain
    first = list(islice(counts, N_EXAMPLES))
    if not n_plain and 2 * sum(any(map(str.isdigit, cell)) for cell in first) <= len(first):
        return None
    other = {cell: n for cell, n in counts.items() if not looks_like_number(cell)}
    sign = _sign_of_most(counts, other)
    other |= {c: n for c, n in counts.items() if c not in other and sign != ("%" in c)}
    parts = {cell: None if looks_like_number(cell) else _number_in_words(cell) for cell in other}
    counted = Counter[str]()
    for cell, part in parts.items():
        if part is not None and part[1]:
            counted[part[1]] += other[cell]
    units = _as_one(counted)
    has_plain = len(other) < len(counts) or n_plain > 0
    values = {
        cell: part[0]
        for cell, part in parts.items()
        if part is not None
        and part[1] in ("", *units)
        and not (has_plain and part[1].rstrip(".") in FACTORS)
    }
    gaps = {cell: n for cell, n in other.items() if cell not in values}
    n_gaps = sum(gaps.values())
    like_codes = (cell for cell in gaps if CODE_IN_WORDS.fullmatch(cell))
    n_codes = sum(gaps[cell] for cell in like_codes if not looks_like_number(cell))
    if not other or n_gaps > MAX_GAPS * n_cells or n_codes > MAX_CODES * n_cells:
        return None
    # "approx 5" among percents is a percent.
    own = {
        cell: f"{value} %" if sign and "%" not in value else value for cell, value in values.items()
    }
    cleaned = [own.get(cell) if cell in other else cell for cell in cells]
    examples = [*islice(values, 2), *islice(gaps, 2)]
    n_numbers = sum(other[cell] for cell in values)
    return cleaned, CellsWithWords(n_numbers, n_gaps, tuple(examples))


def _as_one(units: Counter[str]) -> list[str]:
    """The most frequent unit in its forms, such as "day" and "days"; none if two are as frequent.

    Forms of one unit differ in at most two letters at their ends, behind three equal ones.
    """
    groups = list[list[str]]()
    for unit in units:
        same = next((own for own in groups if _are_forms(unit, own[0])), None)
        groups += [[unit]] if same is None else []
        if same is not None:
            same.append(unit)
    groups.sort(key=lambda own: sum(units[unit] for unit in own), reverse=True)
    n_first = [sum(units[unit] for unit in own) for own in groups[:2]]
    return groups[0] if groups and len(set(n_first)) == len(n_first) else []


def _are_forms(unit: str, other: str) -> bool:
    n_common = max(MIN_STEM, max(len(unit), len(other)) - MAX_ENDING)
    return unit[:n_common] == other[:n_common]


def has_one_number(cell: str) -> bool:
    """Whether a cell is a number with words that do not change it, such as "12 kg"."""
    return _number_in_words(cell.strip()) is not None


def number_and_digits(cell: str, decimal: str) -> tuple[float, int] | None:
    """The number in a cell with this decimal mark, and its digits after the mark; None without."""
    amount = _amount(cell.strip())
    if amount is None:
        in_words = _number_in_words(cell.strip())
        amount = None if in_words is None else _amount(in_words[0])
    if amount is None:
        return None
    found = next((own for own in _styles([amount.core]) if own[0] == decimal), None)
    value = None if found is None else _value(amount, *found)
    return None if value is None else (value, len(amount.core.partition(decimal)[2]))


def _sign_of_most(counts: Mapping[str, int], other: Collection[str]) -> bool:
    """Whether more than half of the numbers that are not among `other` have a percent sign."""
    numbers = {cell: n for cell, n in counts.items() if cell not in other}
    n_signs = sum(n for cell, n in numbers.items() if "%" in cell)
    return 2 * n_signs > sum(numbers.values())


def _number_in_words(cell: str) -> tuple[str, str] | None:
    """The number in a cell and its unit in lower case; None if there is not exactly one number."""
    match = IN_WORDS.fullmatch(cell.translate(PLAIN_LETTERS)) if len(cell) <= MAX_CELL else None
    if match is None or not looks_like_number(match["number"]):
        return None
    return match["number"], match["unit"].strip().lower()


def assumed_mark(marks: set[str], usual: tuple[str, str]) -> tuple[str, str]:
    """The decimal mark of columns that do not show theirs, and the reason."""
    certain = marks - {""}
    if len(certain) != 1:
        return usual
    [mark] = certain
    return mark, f"other columns have {marks_word(mark)}"


def looks_like_number(cell: str) -> bool:
    """Whether a cell is a number in some way of writing."""
    amount = _amount(cell.strip())
    return is_number(cell) or (amount is not None and bool(_styles([amount.core])))


def is_row(cells: Iterable[str]) -> bool:
    """Whether the first line of a table has numbers only, so that it is a row and has no names.

    pandas calls columns without names 0, 1, 2, ...; at least three such cells are names.
    """
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    if len(present) > 2 and present == [*map(str, range(len(present)))]:
        return False
    return bool(present) and all(map(_is_bare_number, present))


def _is_bare_number(cell: str) -> bool:
    """Whether a cell is a number without a unit; "25%" and "5 EUR" may also be names."""
    amount = _amount(cell.strip())
    has_unit = amount is not None and (amount.is_percent or bool(amount.currency))
    return not has_unit and looks_like_number(cell)


def decimal_mark(cells: Iterable[str | None]) -> str:
    """A point if plain numbers show that it is their decimal mark; otherwise empty text."""
    pattern = _pattern(",", ".")
    shown_by = (cell for cell in cells if cell is not None and "." in cell)
    return "." if any(not pattern.fullmatch(cell.lstrip("+-")) for cell in shown_by) else ""


def missing_words_note(column: str, words: Mapping[str, int]) -> Note:
    """A note that these words of a column, with their counts, were read as missing values."""
    n_cells = sum(words.values())
    return Note.of("tables.missing words", column, words=listed(words), n_cells=n_cells)


def number_notes(column: str, read: ReadNumbers) -> list[Note]:
    """Notes about how a column of numbers was read."""
    is_plain = read.form in (NumberForm("."), NumberForm())
    own = [] if is_plain and read.words is not None else [read.note(column)]
    return own if read.words is None else [*own, read.words.note(column)]


def numbers_first_note(source: str, unit: str, columns: Sequence[str]) -> Note:
    """A note that the first line, or row, of a table is read as data."""
    return Note.of("tables.numbers first", source, unit=unit, n_columns=len(columns))


def unusual_words(cells: Iterable[str]) -> Counter[str]:
    """Words for missing values, with their counts, other than the plain ones, among `cells`."""
    return Counter(cell for cell in cells if cell.lower() not in PLAIN_MISSING)


NUMBER_NOTES = ("tables.numbers", "tables.assumed", "tables.assumed in memory")
"""Codes of the notes about how a column of numbers was read."""


def settled(raw: RawTable, j: int) -> RawTable:
    """`raw`, where the form of column `j` is certain if any cell, not only the first, shows it."""
    column = None if raw.form(j).is_certain else read_column(raw.cells(j))
    if column is None or not column.form.is_certain:
        return raw
    return replace(raw, forms={**raw.forms, j: column.form})


def reread(raw: RawTable, j: int, decimal: str, reason: str) -> RawTable:
    """`raw` with its column `j` read with the mark `decimal`, unless its cells show the mark."""
    if raw.form(j).decimal == decimal:
        return raw
    raw = settled(raw, j)
    column = None if raw.form(j).is_certain else read_column(raw.cells(j), decimal, reason)
    if column is None:
        return raw
    name = raw.columns[j]
    replaced = [(code, name) for code in NUMBER_NOTES]
    is_in_memory = any(n.code == NUMBER_NOTES[-1] and n.subject == name for n in raw.notes)
    column = replace(column, is_in_memory=is_in_memory)
    others = [note for note in raw.notes if (note.code, note.subject) not in replaced]
    notes = (*others, column.note(name))
    data = (*raw.data[:j], column.values, *raw.data[j + 1 :])
    return replace(raw, data=data, notes=notes, forms={**raw.forms, j: column.form})


def marks_word(decimal: str) -> str:
    """A decimal mark in words."""
    return "decimal commas" if decimal == "," else "decimal points"


def has_numbers(raw: RawTable, j: int) -> bool:
    """Whether some cell of a column of numbers is not missing."""
    return not bool(np.isnan(raw.data[j]).all())


def other_units(raw: RawTable, j: int, form: NumberForm) -> tuple[str, str] | None:
    """The unit of column `j` and that of `form`, in words; None if they do not contradict."""
    own = raw.form(j)
    if not has_numbers(raw, j):
        return None
    if own.is_percent != form.is_percent:
        return _percents(own), _percents(form)
    if own.currency and form.currency and own.currency != form.currency:
        return f"amounts in {own.currency}", f"amounts in {form.currency}"
    return None


def _booleans(distinct: list[str]) -> dict[str, float] | None:
    """Values of words for true and false, None if the cells are something else."""
    lowered = {cell.lower() for cell in distinct} if len(distinct) <= 6 else set()
    for words in BOOLEANS:
        # One letter alone is more probably the name of a group.
        if lowered and lowered <= words.keys() and ("t" not in words or len(lowered) == 2):
            return {cell: words[cell.lower()] for cell in distinct}
    return None


def _amounts(distinct: list[str]) -> dict[str, Amount] | None:
    """The parts of every cell, None if one is no number or if two units are mixed."""
    found = {}
    for cell in distinct:
        amount = _amount(cell)
        if amount is None:
            return None
        found[cell] = amount
    if len({amount.currency for amount in found.values()} - {""}) > 1:
        return None
    # Shares as "5 %" and as "0.05" in one column have two meanings.
    is_percent = {amount.is_percent for amount in found.values()}
    return found if len(is_percent) == 1 else None


def _amount(cell: str) -> Amount | None:
    if len(cell) <= MAX_CELL and (digits := DIGITS.fullmatch(cell)):
        return Amount(digits[2], digits[1] == "-")
    match = AMOUNT.fullmatch(cell.translate(PLAIN_LETTERS)) if len(cell) <= MAX_CELL else None
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    before, after = match["before"] or "", match["after"] or ""
    signs = [match["sign"], match["sign2"], match["minus"], match["minus2"], match["open"] or ""]
    if (before and after) or sum(map(bool, signs)) > 1:
        return None
    core = match["core"]
    if match["minus"] and core[-1] in ".,":  # "15.-" has no cents; "15-" is negative
        core, signs[2] = core[:-1], ""
    form = "parentheses" if signs[4] else "trailing" if signs[2] or signs[3] else ""
    is_negative = bool(form) or "-" in signs
    currency = before or after
    return Amount(
        core,
        is_negative,
        form,
        SIGNS.get(currency, currency),
        match["percent"] is not None,
    )


@cache
def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    """Numbers with these marks; groups have three digits, and the first does not begin with 0.

    Commas may also stand between the groups of Indian numbers.
    """
    mark = re.escape(decimal)
    whole = rf"\d+|[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+" if group else r"\d+"
    whole += INDIAN if group == "," else ""
    return re.compile(rf"(?:(?:{whole})(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def _styles(cores: list[str]) -> list[tuple[Mark, str]]:
    """Pairs of a decimal mark and a mark between thousands that fit every number."""
    present = set("".join(cores)) & set(MARKS)
    found = []
    for decimal, groups in GROUPS.items():
        used = [mark for mark in groups if mark in present]
        if len(used) > 1:
            continue
        pattern = _pattern(decimal, used[0] if used else "")
        if all(map(pattern.fullmatch, cores)):
            found.append((decimal, used[0] if used else ""))
    return found


def _value(amount: Amount, decimal: str, group: str) -> float:
    digits = amount.core.replace(group, "") if group else amount.core
    value = float(digits.replace(decimal, "."))
    return -value if amount.is_negative else value


def _manner(amounts: Collection[Amount], form: NumberForm, group: str) -> str:
    """How numbers are written: "with decimal commas, as amounts in EUR"."""
    signs = {amount.form for amount in amounts}
    has_marks = any(form.decimal in amount.core for amount in amounts) if form.decimal else False
    is_assumed_point = form.decimal == "." and not form.is_certain
    marks = ["decimal commas"] if form.decimal == "," and has_marks else []
    marks += ["decimal points"] if is_assumed_point and has_marks else []
    marks += ["thousands separators"] if group else []
    marks += ["negative numbers in parentheses"] if "parentheses" in signs else []
    marks += ["trailing minus signs"] if "trailing" in signs else []
    parts = [f"with {' and '.join(marks)}"] if marks else []
    parts += [f"as amounts in {form.currency}"] if form.currency else []
    parts += ["in percent, not divided by 100"] if form.is_percent else []
    return ", ".join(parts) or "as numbers"


def _spread(cells: Texts, values: dict[str, float]) -> NDArray[np.float64]:
    """The value of every cell, NaN where it is missing."""
    found = (np.nan if cell is None else values[cell] for cell in cells)
    return np.fromiter(found, dtype=np.float64, count=len(cells))


def _percents(form: NumberForm) -> str:
    return "percents" if form.is_percent else "numbers without a percent sign"
