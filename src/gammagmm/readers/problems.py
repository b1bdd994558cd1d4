"""What is wrong with the columns of a file, all of it at once, and the options that help."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.table_encoder import MAX_CATEGORIES, fit_encoder, n_texts
from gammagmm._support.text import counted, shown
from gammagmm.errors import Problem, TableError
from gammagmm.readers.guesses import are_mostly_numbers, column_option
from gammagmm.readers.numbers import looks_like_number, read_column
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.roles import Choices, Roles

__all__ = [
    "find_problems",
    "helping_options",
    "infinite_values",
    "missing_values",
    "table_error",
]

Cell: TypeAlias = tuple[int, str]
"""The row of a cell, from 0, and its text."""

MAX_MESSAGE = 1_000
"""Characters of a message after which further problems are only counted."""
MAX_OPTIONS = 600
"""Characters of options above which no command is suggested."""
PLAIN = re.compile(r"\w[^,*?\[]*\S|\w")
"""Names that can be part of a list."""


def find_problems(raw: RawTable, roles: Roles, choices: Choices) -> list[Problem]:
    """The problems of the columns that are used, in their order."""
    problems, dates = [], dict(roles.dates)
    used = {raw.columns[j] for j in roles.features}
    for j in roles.features:
        name = raw.columns[j]
        if not raw.is_text(j):
            drop = f", or leave the column out with {column_option('--drop', name)}"
            problems += infinite_values(raw, j, drop, ("--drop", name))
        elif name not in dates:
            problems += _texts(raw, j, choices.categories, used)
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


def _texts(raw: RawTable, j: int, categories: str, used: set[str]) -> list[Problem]:
    """The problem of a column of text that has too many texts, or that must not be encoded."""
    name, n = raw.columns[j], n_texts(raw.data[j])
    if n <= MAX_CATEGORIES and categories == "encode":
        return []
    present = [(row, cell) for row, cell in enumerate(raw.data[j].tolist()) if cell is not None]
    is_number = {cell: looks_like_number(cell) for cell in {cell for _, cell in present}}
    texts = [pair for pair in present if not is_number[pair[1]]]
    drop, options = column_option("--drop", name), ("--drop", name)
    if not texts and (forms := _different_forms(present)):
        examples = " and ".join(f"{shown(cell)} in {raw.place(row)}" for row, cell in forms)
        found = f"its {len(present):,} cells are numbers in different forms: {examples}"
        todo = f"Write all of them in one form, or use {drop}."
        return [Problem(name, f"column {shown(name)}: {found}", todo, options)]
    are_numbers = bool(texts) and are_mostly_numbers([cell for _, cell in present])
    # A file with typed columns may store numbers as text.
    texts = texts or present
    row, cell = texts[0]
    verb = "is not a number:" if len(texts) == 1 else "are not numbers, the first is"
    found = f"{counted(len(texts), 'cell')} {verb} {shown(cell)} in {raw.place(row)}"
    if are_numbers:
        todo = f"Correct {'it' if len(texts) == 1 else 'them'}, or use {drop}."
    elif n <= MAX_CATEGORIES and (taken := used.intersection(_encoded_names(raw, j))):
        again = f"column {shown(min(taken))}, which --categories encode would make again"
        todo = f"Use {drop}, or rename {again}."
    elif n <= MAX_CATEGORIES:
        todo, options = f"Use --categories encode or {drop}.", ("--categories", "encode")
    else:
        found += f"; {n:,} different texts, and at most {MAX_CATEGORIES} can be encoded"
        todo = f"Use {drop}, or {column_option('--id', name)} if it names the rows."
    return [Problem(name, f"column {shown(name)}: {found}", todo, options)]


def _encoded_names(raw: RawTable, j: int) -> tuple[str, ...]:
    """The columns that a column of text becomes if it is encoded."""
    return fit_encoder([raw.columns[j]], [raw.data[j]]).outputs


def _different_forms(numbers: list[Cell]) -> list[Cell]:
    """Two of the numbers that cannot be read as one column; none if all of them can."""
    cells = [cell for _, cell in numbers]
    if read_column(cells) is not None:
        return []
    end = bisect_left(range(len(cells)), True, key=lambda i: read_column(cells[: i + 1]) is None)
    last = numbers[end]
    others = [pair for pair in numbers if pair[1] != last[1]]
    unlike = (pair for pair in others if read_column([pair[1], last[1]]) is None)
    return sorted([last, next(unlike, numbers[0])])


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
