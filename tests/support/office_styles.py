"""How the files of `tests.support.office_files` are written: styles, drawn by chance."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from tests.support.office_tables import NOT_AVAILABLE, Locale, in_language
from tests.support.workbooks import EPOCH, Cell

__all__ = [
    "HOTLINE_STYLES",
    "NO_DATE",
    "WORKBOOKS",
    "Style",
    "date_cell",
    "deal",
    "draw_hotline_styles",
    "draw_styles",
    "number_cell",
    "number_text",
]

T = TypeVar("T")
CONTAINERS = {"csv": 44, "xlsx": 16, "ods": 5, "parquet": 3, "json": 2, "jsonl": 2}
"""How many of 72 files are of each."""
WORKBOOKS = ("xlsx", "ods")
ENCODINGS = ("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16")
STRUCTURES: tuple[tuple[str, ...], ...] = (
    (),
    ("title",),
    ("two_headers",),
    ("units",),
    ("totals",),
    ("footer",),
    ("blocks",),
    ("offset",),
    ("title", "footer"),
    ("units", "totals"),
    ("title", "two_headers", "units"),
    ("blocks", "totals", "footer"),
    ("title", "offset"),
)
SHEET_STRUCTURES = (*STRUCTURES, ("sheets",), ("sheets", "title", "totals"))
HOTLINE_STYLES = (
    ("csv", ("beside",), ""),
    ("xlsx", ("beside",), ""),
    ("csv", (), "xlsx"),
    ("ods", ("beside", "left"), ""),
    ("csv", ("beside", "left", "title"), "ods"),
    ("csv", (), ""),
)
"""Container, structure and suffix of the files of the hotline, two of each."""
NEGATIVES = ("minus", "brackets", "trailing", "unicode")
NO_DATE = datetime.datetime(1900, 1, 1)
GAP_CODES: tuple[float | datetime.datetime | None, ...] = (-999.0, 9999.0, None, 99999.0, NO_DATE)


@dataclass(frozen=True)
class Style:
    """How one file is written."""

    container: str  # csv, xlsx, ods, parquet, json, jsonl
    structure: tuple[str, ...]
    native: bool  # numbers are numbers, not texts
    gap: str  # the text of a gap
    gap_code: float | datetime.datetime | None
    words: bool  # some numbers stand among words
    extra: str  # one more column: "label" or "empty"
    negative: str
    dates: str = "native"  # or local, iso, integer, serial
    units_in_names: bool = False
    separator: str = ""
    encoding: str = ""
    newline: str = ""
    quote_all: bool = False
    padded: bool = True  # lines around the table have as many cells as the table
    decimal: str = ""
    thousands: str = ""
    money: tuple[str, str] = ("", "")  # what stands before and after an amount
    signs: bool = False  # cells have the signs of currencies and percents
    suffix: str = ""  # of another container than that of the file


def deal(rng: np.random.Generator, cards: Sequence[T]) -> Iterator[T]:
    """The cards without end; each round has every card once, in random order."""
    while True:
        yield from (cards[i] for i in rng.permutation(len(cards)))


def draw_hotline_styles(rng: np.random.Generator) -> Iterator[Callable[[Locale], Style]]:
    """For each file of the hotline a function that draws a style for a locale."""
    encodings, gap_codes, gaps = (
        deal(rng, ENCODINGS),
        deal(rng, GAP_CODES),
        deal(rng, NOT_AVAILABLE),
    )
    for container, structure, suffix in 2 * HOTLINE_STYLES:
        style = Style(
            container=container,
            structure=structure,
            native=container != "csv",
            gap=next(gaps),
            gap_code=next(gap_codes),
            words=bool(rng.random() < 0.5),
            extra="",
            negative="minus",
            encoding=next(encodings) if container == "csv" else "",
            suffix=suffix,
        )
        yield partial(_for_locale, style, rng)


def draw_styles(rng: np.random.Generator) -> Iterator[Callable[[Locale], Style]]:
    """For each of 72 files a function that draws a style for a locale."""
    containers = [c for c, n in CONTAINERS.items() for _ in range(n)]
    text_structures, sheet_structures = deal(rng, STRUCTURES), deal(rng, SHEET_STRUCTURES)
    encodings, gap_codes = deal(rng, ENCODINGS), deal(rng, GAP_CODES)
    words, extras = deal(rng, (True, False)), deal(rng, ("label", "empty", "", ""))
    negatives, gaps = deal(rng, NEGATIVES), deal(rng, NOT_AVAILABLE)
    as_text = deal(rng, (False, False, True))
    for container in itertools.islice(deal(rng, containers), len(containers)):
        is_book, is_text = container in WORKBOOKS, container == "csv"
        structure: tuple[str, ...] = ()
        if is_book or is_text:
            structure = next(sheet_structures if is_book else text_structures)
        has_types = container == "parquet"  # a column of numbers has no texts
        style = Style(
            container=container,
            structure=structure,
            native=not is_text and not (is_book and next(as_text)),
            gap="" if has_types else next(gaps),
            gap_code=next(gap_codes),
            words=not has_types and next(words),
            extra=next(extras),
            negative=next(negatives),
            encoding=next(encodings) if is_text else "",
        )
        yield partial(_for_locale, style, rng)


def _for_locale(style: Style, rng: np.random.Generator, locale: Locale) -> Style:
    """The style with what depends on the country and on chance."""
    style = replace(
        style,
        gap=in_language(style.gap, locale.language),
        units_in_names="units" not in style.structure and bool(rng.random() < 0.4),
        dates=_date_form(style, rng),
    )
    if style.container == "csv":
        style = _text_file(style, locale, rng)
    return replace(style, negative="") if style.native else _number_marks(style, locale, rng)


def _date_form(style: Style, rng: np.random.Generator) -> str:
    forms = ["local", "local", "iso", "integer", "serial"]
    if style.native:
        forms = ["iso", "integer"] if "json" in style.container else ["native", "native", "integer"]
        forms += ["serial"] if style.container in WORKBOOKS else []
    if style.gap_code == NO_DATE:  # Excel's serial numbers before March 1900 are off by one
        barred = ("serial", "native") if style.container == "xlsx" else ("serial",)
        forms = [form for form in forms if form not in barred]
    return str(rng.choice(forms))


def _text_file(style: Style, locale: Locale, rng: np.random.Generator) -> Style:
    return replace(
        style,
        separator="\t" if style.encoding == "utf-16" else str(rng.choice(locale.separators)),
        newline=str(rng.choice(["\r\n", "\n"])),
        quote_all=bool(rng.random() < 0.25),
        padded=bool(rng.random() < 0.5),
    )


def _number_marks(style: Style, locale: Locale, rng: np.random.Generator) -> Style:
    """The style with marks and signs that its encoding has."""
    encoding = style.encoding or "utf-8"
    thousands = [mark for mark in locale.thousands if _has(encoding, mark)]
    before, after = locale.money
    is_lost = style.negative == "unicode" and not _has(encoding, "−")
    return replace(
        style,
        negative="minus" if is_lost else style.negative,
        decimal=locale.decimal,
        thousands=str(rng.choice([*thousands, *thousands, ""])),
        money=(before, after if _has(encoding, after) else " EUR"),
        signs=style.negative != "trailing" and bool(rng.random() < 0.5),
    )


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def number_cell(value: float, digits: int, unit: str, style: Style) -> Cell:
    """A number as it stands in a cell; the unit "¤" is the currency."""
    if style.native:
        return value if digits else int(value)
    if not style.signs:
        return number_text(value, digits, style)
    before, after = style.money if unit == "¤" else ("", " %" if unit == "%" else "")
    return number_text(value, digits, style, before, after)


def number_text(value: float, digits: int, style: Style, before: str = "", after: str = "") -> str:
    """A number with the marks of the country and the signs around it."""
    marks = str.maketrans({",": style.thousands, ".": style.decimal})
    text = before + f"{abs(value):,.{digits}f}".translate(marks) + after
    if value >= 0:
        return text
    if style.negative == "brackets":
        return f"({text})"
    if style.negative == "trailing":
        return f"{text}-"
    return ("−" if style.negative == "unicode" else "-") + text


def date_cell(date: datetime.datetime, has_time: bool, style: Style, locale: Locale) -> Cell:
    """A date as it stands in a cell."""
    if style.dates == "native":
        return date if has_time else date.date()
    if style.dates == "local":
        return date.strftime(locale.date + (" %H:%M" if has_time else ""))
    if has_time:
        return date.isoformat(sep=" ")
    if style.dates == "iso":
        return date.date().isoformat()
    number = (date - EPOCH).days if style.dates == "serial" else int(f"{date:%Y%m%d}")
    return number if style.native else str(number)
