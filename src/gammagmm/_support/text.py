"""Numbers and texts of others -> words that are safe to show."""

from __future__ import annotations

import unicodedata
from html import escape

import numpy as np

__all__ = [
    "html_safe",
    "one_line",
    "percent",
    "spreadsheet_safe",
    "terminal_safe",
    "visible",
]

# They turn the text around them about; ids and column names have no need of that.
DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def percent(share: float) -> str:
    """The share in per cent, with more digits where it is small; nothing for NaN."""
    if np.isnan(share):
        return ""
    if 0.0 < share < 5e-6:
        return "below 0.001%"
    return f"{share:.1%}" if share == 0.0 or share >= 1e-3 else f"{100.0 * share:.1g}%"


def terminal_safe(text: str) -> str:
    """The text with control characters, which could move the cursor or worse, written out."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """The text as `terminal_safe` has it, line ends written out as well."""
    return terminal_safe(text).replace("\n", "\\n")


def visible(text: str) -> str:
    """The text with controls, lone surrogates and changes of direction written out."""
    hidden = (c in DIRECTIONS or unicodedata.category(c) in ("Cc", "Cs") for c in text)
    return "".join(ascii(c)[1:-1] if h else c for c, h in zip(text, hidden, strict=True))


def html_safe(text: str) -> str:
    """The text as HTML that shows it and does nothing."""
    return escape(visible(text))


# The wide ones are the same to a spreadsheet that writes Chinese or Japanese.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def spreadsheet_safe(cell: str) -> str:
    """The cell, with an apostrophe before what a spreadsheet would run as a formula."""
    if not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
