"""Posteriors, errors and texts of others -> plain words that are safe to show."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "html_safe",
    "known_sentence",
    "one_line",
    "percent",
    "rows_sentence",
    "sentence",
    "shape_words",
    "terminal_safe",
    "visible",
    "what_and_todo",
]

# They turn the text around them about; ids and column names have no need of that.
DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def sentence(posterior: GammaPosterior) -> str:
    """The answer in one sentence, and one more where the density has several humps."""
    if posterior.is_degenerate:
        return (
            "All probability lies at 0: there is no estimate, as where no mixture of the scores "
            "agrees with p_high. This does not mean that the data are clean."
        )
    low, high = (percent(end) for end in posterior.interval())
    answer = (
        f"About {percent(posterior.mean)} of the rows are anomalies (90% interval {low} to "
        f"{high}; none at all: {percent(posterior.prob_zero)}; more than 15%: "
        f"{percent(posterior.prob_above(0.15))})."
    )
    modes = [percent(mode) for mode in posterior.modes()]
    if len(modes) < 2:
        return answer
    places = f"{', '.join(modes[:-1])} and {modes[-1]}"
    return f"{answer} The density has {len(modes)} humps, at {places}."


def shape_words(posterior: GammaPosterior) -> str:
    """What the shape of the posterior means for a reader; nothing where it is one narrow hump.

    An interval wider than the mean is called wide: its ends differ by a factor of three or more.
    """
    if posterior.is_degenerate:
        return (
            "There is no answer: no mixture of these scores agrees with what was held likely "
            "beforehand. This does not mean that the data are clean."
        )
    modes = [f"about {percent(mode)}" for mode in posterior.modes()]
    if len(modes) > 1:
        return (
            f"The data leave it open: either {' or '.join(modes)}. The mean lies between the "
            "humps and describes neither; use what you know to choose."
        )
    low, high = posterior.interval()
    if high - low > posterior.mean:
        return (
            f"The answer is wide: anything from {percent(low)} to {percent(high)} is plausible. "
            "Give the interval along with the mean."
        )
    return ""


def rows_sentence(n_flagged: int, n_rows: int) -> str:
    """How many rows are flagged, as a sentence."""
    if n_flagged == 0:
        return f"None of {n_rows:,} rows is flagged."
    return f"{n_flagged:,} of {n_rows:,} rows {'is' if n_flagged == 1 else 'are'} flagged."


def known_sentence(n_known: int, n_anomalies: int, fitted: GammaPosterior) -> str:
    """What the answer rests on where a person has labelled rows, and what it was before."""
    rows = "1 row that was" if n_known == 1 else f"{n_known:,} rows that were"
    rests = f"This rests on {rows} looked at, {n_anomalies:,} anomalous."
    if fitted.is_degenerate:
        return f"{rests} Without them there was no answer."
    low, high = (percent(end) for end in fitted.interval())
    return f"{rests} Without them it was {percent(fitted.mean)} ({low} to {high})."


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


def what_and_todo(error: Exception) -> tuple[str, str]:
    """The first sentence of a message and the rest: what is wrong, and what to do.

    A sentence ends before a capital letter, outside of quotes: column names hold points, too.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}", "Check the path, and that there is room."
    message = str(error)
    for end in re.finditer(r"\. (?=[A-Z])", message):
        if message.count("'", 0, end.start()) % 2 == 0:
            return message[: end.start()], message[end.end() :]
    return message.rstrip("."), "gammagmm COMMAND --help tells what can be given."
