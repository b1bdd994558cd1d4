"""How a user asks for what happens to a column: in Python here, in `cli/words.py` as options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gammagmm.errors import Problem

__all__ = ["ARRAY", "PYTHON", "Words", "problem_todo"]


@dataclass(frozen=True, eq=False)
class Words:
    """The words for what a user can ask for."""

    dates: str  # to turn dates into numbers
    fill: str  # to fill gaps
    drop_rows: str  # to leave rows with gaps out
    encode: str  # to encode texts
    missing_codes: str  # to read a value as a gap
    no_codes: str  # to read no value so
    roles: Mapping[str, str]  # what a column is: "use", "drop", "id" or "truth"
    quote: Callable[[str], str]  # how the name of a column is written there

    def of(self, role: str, column: str) -> str:
        """How a user asks for a role of a column; empty where that cannot be."""
        return self.roles[role].format(self.quote(column))


MAX_NAME = 200
"""Characters of a name that is quoted as a whole."""


def _python_name(name: str) -> str:
    """A name as Python writes it; NAME stands for a very long one."""
    return repr(name) if len(name) <= MAX_NAME else "NAME"


PYTHON = Words(
    dates="columns={'dates': 'encode'}",
    fill="strict=False",
    drop_rows="X.dropna()",
    encode="strict=False",
    missing_codes="columns={{'missing_codes': [{}]}}",
    no_codes="columns={'missing_codes': []}",
    roles={
        "use": "columns={{'use': [{}]}}",
        "drop": "columns={{'drop': [{}]}}",
        "id": "columns={{'id': {}}}",
        "truth": "columns={{'truth': {}}}",
    },
    quote=_python_name,
)
"""The parameters of `GammaGMM`."""
ARRAY = replace(
    PYTHON,
    drop_rows="X without these rows",
    roles={**PYTHON.roles, "drop": "X without the column {}", "id": ""},
    quote=str,
)
"""The same for tables without names of columns, for which ``columns`` cannot be given."""


def problem_todo(problem: Problem, words: Words) -> str:
    """What to do about a problem, as a sentence."""
    column, remedies = problem.column, dict.fromkeys(problem.remedies)
    id_words = words.of("id", column)
    given = {
        "fill": words.fill,
        "drop rows": words.drop_rows,
        "encode": words.encode,
        "drop": words.of("drop", column),
        "id": f"{id_words} if it names the rows" if id_words else "",
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
