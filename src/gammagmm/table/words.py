"""How a user asks for what happens to a column: in Python here, in `cli/words.py` as options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gammagmm.errors import Problem

__all__ = ["ARRAY", "PYTHON", "Words", "problem_todo"]


class Words(Protocol):
    """The words for what a user can ask for; those about columns take the name of one."""

    dates: str  # to turn dates into numbers
    fill: str  # to fill gaps
    drop_rows: str  # to leave rows with gaps out
    encode: str  # to encode texts

    def use(self, column: str) -> str:
        """To use a column although it looks like an id, known labels or dates."""

    def drop(self, column: str) -> str:
        """To leave a column out."""

    def id(self, column: str) -> str:
        """To name the rows by a column."""

    def truth(self, column: str) -> str:
        """To compare the estimate with the labels in a column."""


class _Python:
    """The parameters of `GammaGMM`."""

    dates = "columns={'dates': 'encode'}"
    fill = "strict=False"
    drop_rows = "X.dropna()"
    encode = "strict=False"

    def use(self, column: str) -> str:
        """The key "use" of ``columns``."""
        return f"columns={{'use': [{column!r}]}}"

    def drop(self, column: str) -> str:
        """The key "drop" of ``columns``."""
        return f"columns={{'drop': [{column!r}]}}"

    def id(self, column: str) -> str:
        """The key "id" of ``columns``."""
        return f"columns={{'id': {column!r}}}"

    def truth(self, column: str) -> str:
        """The key "truth" of ``columns``."""
        return f"columns={{'truth': {column!r}}}"


class _Array(_Python):
    """The same for tables without names of columns, for which ``columns`` cannot be given."""

    drop_rows = "X without these rows"

    def drop(self, column: str) -> str:
        """To pass `X` without the column."""
        return f"X without the column {column}"

    def id(self, column: str) -> str:
        """Nothing: an array has no names of rows."""
        return ""


PYTHON: Words = _Python()
ARRAY: Words = _Array()


def problem_todo(problem: Problem, words: Words) -> str:
    """What to do about a problem, as a sentence."""
    column, remedies = problem.column, dict.fromkeys(problem.remedies)
    given = {
        "fill": words.fill,
        "drop rows": words.drop_rows,
        "encode": words.encode,
        "drop": words.drop(column),
        "id": f"{words.id(column)} if it names the rows" if words.id(column) else "",
    }
    by_hand = {
        "correct": "correct it",
        "same form": "write all of its cells in one form",
        "fill by hand": "fill them in",
        "fill and fit": f"fit again with {words.fill}",
        "as trained": "write the column as in the training rows",
        "rename": "rename the column that has this name already",
        "words": "write normal rows and anomalies as 0 and 1",
    }
    asked = list(dict.fromkeys(given[remedy] for remedy in remedies if given.get(remedy)))
    parts = [by_hand[remedy] for remedy in remedies if remedy in by_hand]
    parts += [f"use {_either(asked)}"] if asked else []
    sentence = _either(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _either(parts: Sequence[str]) -> str:
    """The parts with commas and a last "or"."""
    return " or ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
