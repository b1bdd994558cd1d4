"""Numbers and untrusted text -> words that are safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

__all__ = [
    "MAX_SHOWN_CHARACTERS",
    "aligned",
    "counted",
    "listed",
    "one_line",
    "percent",
    "shown",
    "spreadsheet_safe",
    "terminal_safe",
    "visible",
]

# They reverse the direction of the text around them, which no id or column name needs.
DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

MAX_SHOWN_CHARACTERS = 40
MAX_LISTED = 20


def shown(text: str) -> str:
    """`text` in quotes, cut where it is long."""
    return repr(text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "...")


def listed(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas; the first ones and a count if there are many."""
    all_names = list(names)
    n_more = len(all_names) - MAX_LISTED
    first = ", ".join(map(shown, all_names[:MAX_LISTED]))
    return f"{first} and {n_more} more" if n_more > 0 else first


def counted(n: int, thing: str) -> str:
    """A number with its noun: "1 row", "2 rows"."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def aligned(table: Sequence[Sequence[str]], n_words: int) -> str:
    """The table as lines: the first `n_words` columns on the left, the others on the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for cells in table:
        pairs = list(zip(cells, widths, strict=True))
        words = [cell.ljust(width) for cell, width in pairs[:n_words]]
        numbers = [cell.rjust(width) for cell, width in pairs[n_words:]]
        lines.append("  ".join(words + numbers).rstrip())
    return "\n".join(lines)


def percent(share: float) -> str:
    """The share in per cent, with more digits if it is small; empty for NaN."""
    if np.isnan(share):
        return ""
    if 0.0 < share < 5e-6:
        return "below 0.001%"
    return f"{share:.1%}" if share == 0.0 or share >= 1e-3 else f"{100.0 * share:.1g}%"


def terminal_safe(text: str) -> str:
    """The text with escaped control characters, which could move the cursor or worse."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """The text as `terminal_safe` returns it, with escaped line ends as well."""
    return terminal_safe(text).replace("\n", "\\n")


def visible(text: str) -> str:
    """The text with escaped control characters, lone surrogates and direction marks."""
    hidden = (c in DIRECTIONS or unicodedata.category(c) in ("Cc", "Cs") for c in text)
    return "".join(ascii(c)[1:-1] if h else c for c, h in zip(text, hidden, strict=True))


# The full-width characters start a formula in Chinese and Japanese spreadsheets.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def spreadsheet_safe(cell: str) -> str:
    """The cell as a CSV file can have it: two different cells stay different.

    An apostrophe stands in front if a spreadsheet would run it as a formula, and in front of such
    an apostrophe. Control characters and direction marks are escaped, except line ends and tabs.
    """
    cell = "".join(c if c in "\n\t" else visible(c) for c in cell)
    if not cell.lstrip("'").startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
