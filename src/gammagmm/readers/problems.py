"""What is wrong with the columns of a file, all of it at once, and the options that help."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.table_encoder import MAX_CATEGORIES, n_texts
from gammagmm._support.text import counted, shown
from gammagmm.errors import Problem, TableError
from gammagmm.readers.guesses import column_option
from gammagmm.readers.raw_table import RawTable, is_number
from gammagmm.readers.roles import Choices, Roles

__all__ = [
    "find_problems",
    "helping_options",
    "infinite_values",
    "missing_values",
    "table_error",
]

MAX_MESSAGE = 1_000
"""Characters of a message after which further problems are only counted."""
MAX_OPTIONS = 600
"""Characters of options above which no command is suggested."""
PLAIN = re.compile(r"\w[^,*?\[]*\S|\w")
"""Names that can be part of a list."""


def find_problems(raw: RawTable, roles: Roles, choices: Choices) -> list[Problem]:
    """The problems of the columns that are used, in their order."""
    problems, dates = [], dict(roles.dates)
    for j in roles.features:
        name = raw.columns[j]
        if not raw.is_text(j):
            drop = f", or leave the column out with {column_option('--drop', name)}"
            problems += infinite_values(raw, j, drop, ("--drop", name))
        elif name not in dates:
            problems += _texts(raw, j, choices.categories)
        if choices.missing == "error":
            todo = f"Use --missing drop, --missing impute or {column_option('--drop', name)}."
            problems += missing_values(raw, j, todo, ("--missing", "impute"))
    return problems


def infinite_values(raw: RawTable, j: int, drop: str, options: tuple[str, ...]) -> list[Problem]:
    """The problem of a column of numbers that contains infinite ones; `drop` ends the advice."""
    rows = np.flatnonzero(np.isinf(raw.data[j]))
    if not len(rows):
        return []
    name = raw.columns[j]
    found = f"{counted(len(rows), 'infinite value')}, {_first_place(raw, rows)}"
    todo = f"Correct {'it' if len(rows) == 1 else 'them'}{drop}."
    return [Problem(name, f"column {shown(name)}: {found}", todo, options)]


def missing_values(raw: RawTable, j: int, todo: str, options: tuple[str, ...]) -> list[Problem]:
    """The problem of a column with missing values."""
    rows = np.flatnonzero(raw.is_gap(j))
    if not len(rows):
        return []
    name = raw.columns[j]
    found = f"{counted(len(rows), 'missing value')}, {_first_place(raw, rows)}"
    return [Problem(name, f"column {shown(name)}: {found}", todo, options)]


def _texts(raw: RawTable, j: int, categories: str) -> list[Problem]:
    """The problem of a column of text that has too many texts, or that must not be encoded."""
    name, n = raw.columns[j], n_texts(raw.data[j])
    if n <= MAX_CATEGORIES and categories == "encode":
        return []
    present = [(row, cell) for row, cell in enumerate(raw.data[j].tolist()) if cell is not None]
    # A column of a binary file may be text though all its cells look like numbers.
    texts = [pair for pair in present if not is_number(pair[1])] or present
    row, cell = texts[0]
    verb = "is not a number:" if len(texts) == 1 else "are not numbers, the first is"
    found = f"{counted(len(texts), 'cell')} {verb} {shown(cell)} in {raw.place(row)}"
    drop, options = column_option("--drop", name), ("--drop", name)
    if n <= MAX_CATEGORIES:
        todo, options = f"Use --categories encode or {drop}.", ("--categories", "encode")
    elif 2 * len(texts) < len(present):
        todo = f"Correct {'it' if len(texts) == 1 else 'them'}, or use {drop}."
    else:
        found += f"; {n:,} different texts, and at most {MAX_CATEGORIES} can be encoded"
        todo = f"Use {drop}, or {column_option('--id', name)} if it names the rows."
    return [Problem(name, f"column {shown(name)}: {found}", todo, options)]


def _first_place(raw: RawTable, rows: NDArray[np.intp]) -> str:
    return f"{'the first ' if len(rows) > 1 else ''}in {raw.place(rows[0])}"


def table_error(
    source: str, problems: Sequence[Problem], options: Sequence[str] = ()
) -> TableError:
    """The error that lists the problems; `options` are those with which the file is read."""
    if len(problems) == 1:
        only = problems[0]
        return TableError(f"{source}, {only.what}", only.todo, (only,), tuple(options), source)
    n_problems, shown_ones, n_characters = len(problems), list[str](), 0
    for problem in problems:
        n_characters += len(problem.what)
        if shown_ones and n_characters > MAX_MESSAGE:
            break
        shown_ones.append(problem.what)
    n_more = n_problems - len(shown_ones)
    if n_more:
        shown_ones.append(f"{n_more:,} more")
    what = f"{source} has {n_problems:,} problems: {'; '.join(shown_ones)}"
    if options:
        todo = f"Add {shlex.join(options)}."
    else:
        todo = "Correct the file, or leave columns out with --drop."
    return TableError(what, todo, tuple(problems), tuple(options), source)


def helping_options(problems: Sequence[Problem]) -> tuple[str, ...]:
    """The options that solve all problems; empty where there are none, or too many to type."""
    if not all(problem.options for problem in problems):
        return ()
    dropped = {p.column for p in problems if p.options[0] == "--drop"}
    kept = [p.options for p in problems if p.column not in dropped or p.options[0] == "--drop"]
    options = tuple(word for pair in _together(dict.fromkeys(kept)) for word in pair)
    is_short = len(shlex.join(options)) <= MAX_OPTIONS
    return options if is_short and all(word.isprintable() for word in options) else ()


def _together(pairs: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The options, with plain names of columns to drop in one list."""
    others = [pair for pair in pairs if pair[0] != "--drop" or not PLAIN.fullmatch(pair[1])]
    plain = [name for flag, name in pairs if (flag, name) not in others]
    return [*others, ("--drop", ",".join(plain))] if plain else others
