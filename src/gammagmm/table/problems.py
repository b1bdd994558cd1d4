"""What is wrong with the columns of a table, all of it at once, and what helps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import counted, shown
from gammagmm.errors import Note, Problem, TableError
from gammagmm.readers.numbers import looks_like_number, read_column
from gammagmm.readers.raw_table import RawTable
from gammagmm.table.encoder import MAX_CATEGORIES, fit_encoder, n_texts
from gammagmm.table.guesses import are_mostly_numbers
from gammagmm.table.roles import Choices, Roles
from gammagmm.table.words import Words, problem_todo

__all__ = [
    "find_problems",
    "infinite_values",
    "missing_values",
    "table_error",
    "without_unusable",
]

Cell: TypeAlias = tuple[int, str]
"""The row of a cell, from 0, and its text."""

MAX_MESSAGE = 1_000
"""Characters of a message after which further problems are only counted."""
MAX_TODOS = 3
"""Most different pieces of advice of a message about several problems."""


def find_problems(raw: RawTable, roles: Roles, choices: Choices) -> list[Problem]:
    """The problems of the columns that are used, in their order.

    The error of a column that is neither numbers nor text is raised.
    """
    problems, dates = [], dict(roles.dates)
    used = {raw.columns[j] for j in roles.features}
    for j in roles.features:
        raw.check_column(j)
        if raw.is_gap(j).all():  # of an array; columns with names are left out
            problems.append(_problem(raw, j, "empty", "all its values are missing", ("drop",)))
            continue
        if not raw.is_text(j):
            problems += infinite_values(raw, j, ("correct", "drop"))
        elif raw.columns[j] not in dates:
            problems += _texts(raw, j, choices.categories, used)
        if choices.missing == "error":
            problems += missing_values(raw, j, raw.is_gap(j), ("fill", "drop rows", "drop"))
    return problems


def without_unusable(
    raw: RawTable, roles: Roles, choices: Choices
) -> tuple[RawTable, Roles, list[Note], list[Problem]]:
    """The table and the roles without the columns that cannot be used, notes, and what is wrong.

    Infinite numbers become missing values. A column that the user wants to use stays, and so do all
    columns where none is left; their problems are those that are left.
    """
    if choices.unusable == "error":
        return raw, roles, [], find_problems(raw, roles, choices)
    finite, notes = _without_infinite(raw, roles.features)
    asked = {name for name, role in roles.chosen if role == "use"}
    codes = {raw.columns[j]: "kind" for j in roles.features if j in raw.refused}
    readable = replace(roles, features=tuple(j for j in roles.features if j not in raw.refused))
    problems = find_problems(finite, readable, choices)
    codes |= {own.column: own.code for own in problems if own.code != "missing"}
    kept = tuple(
        j for j in roles.features if raw.columns[j] in asked or raw.columns[j] not in codes
    )
    if not kept:
        return raw, roles, [], find_problems(raw, roles, choices)
    for j in kept:
        raw.check_column(j)
    notes += [
        Note.of("tables.unusable", name, problem=code)
        for name, code in codes.items()
        if name not in asked
    ]
    names = {raw.columns[j] for j in kept}
    left = [own for own in problems if own.column in names]
    return finite, replace(roles, features=kept), notes, left


def _without_infinite(raw: RawTable, columns: Iterable[int]) -> tuple[RawTable, list[Note]]:
    """The table whose infinite numbers are missing values, and notes about them."""
    data, notes = list(raw.data), list[Note]()
    for j in columns:
        if raw.is_text(j) or not (is_wrong := np.isinf(data[j])).any():
            continue
        data[j] = np.where(is_wrong, np.nan, data[j])
        notes.append(Note.of("tables.infinite", raw.columns[j], n_cells=is_wrong.sum()))
    return replace(raw, data=tuple(data)), notes


def infinite_values(raw: RawTable, j: int, remedies: tuple[str, ...]) -> list[Problem]:
    """The problem of a column of numbers that contains infinite ones."""
    return _cells_problem(raw, j, "infinite", np.isinf(raw.data[j]), remedies)


def missing_values(
    raw: RawTable, j: int, is_gap: NDArray[np.bool_], remedies: tuple[str, ...]
) -> list[Problem]:
    """The problem of a column with missing values."""
    return _cells_problem(raw, j, "missing", is_gap, remedies)


def _cells_problem(
    raw: RawTable, j: int, code: str, is_wrong: NDArray[np.bool_], remedies: tuple[str, ...]
) -> list[Problem]:
    if not is_wrong.any():
        return []
    rows = np.flatnonzero(is_wrong)
    first = f"{'the first ' if len(rows) > 1 else ''}in {raw.place(rows[0])}"
    return [_problem(raw, j, code, f"{counted(len(rows), f'{code} value')}, {first}", remedies)]


def _problem(raw: RawTable, j: int, code: str, found: str, remedies: tuple[str, ...]) -> Problem:
    name = raw.columns[j]
    return Problem(name, code, f"column {shown(name)}: {found}", remedies)


def _texts(raw: RawTable, j: int, categories: str, used: set[str]) -> list[Problem]:
    """The problem of a column of text that has too many texts, or that must not be encoded."""
    n = n_texts(raw.data[j])
    is_encoded = n <= MAX_CATEGORIES and categories == "encode"
    if is_encoded and not used.intersection(fit_encoder([raw.columns[j]], [raw.data[j]]).outputs):
        return []
    present = [(row, cell) for row, cell in enumerate(raw.data[j].tolist()) if cell is not None]
    is_number = {cell: looks_like_number(cell) for cell in {cell for _, cell in present}}
    texts = [pair for pair in present if not is_number[pair[1]]]
    if not texts and (forms := _different_forms(present)):
        examples = " and ".join(f"{shown(cell)} in {raw.place(row)}" for row, cell in forms)
        found = f"its {len(present):,} cells are numbers in different forms: {examples}"
        return [_problem(raw, j, "forms", found, ("same form", "drop"))]
    are_numbers = bool(texts) and are_mostly_numbers([cell for _, cell in present])
    # A file with typed columns may store numbers as text.
    texts = texts or present
    row, cell = texts[0]
    verb = "is not a number:" if len(texts) == 1 else "are not numbers, the first is"
    found = f"{counted(len(texts), 'cell')} {verb} {shown(cell)} in {raw.place(row)}"
    if are_numbers and not is_encoded:
        return [_problem(raw, j, "text", found, ("correct", "drop"))]
    if n > MAX_CATEGORIES:
        found += f"; {n:,} different texts, and at most {MAX_CATEGORIES} can be encoded"
        return [_problem(raw, j, "many texts", found, ("drop", "id"))]
    if taken := used.intersection(fit_encoder([raw.columns[j]], [raw.data[j]]).outputs):
        found += f"; encoded, it would have the name of the column {shown(min(taken))}"
        return [_problem(raw, j, "taken name", found, ("drop", "rename"))]
    return [_problem(raw, j, "text", found, ("encode", "drop"))]


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


def table_error(source: str, problems: Sequence[Problem], words: Words) -> TableError:
    """The error that lists the problems."""
    first = problems[0]
    if len(problems) == 1:
        what, todo = f"{source}, {first.what}", problem_todo(first, words)
        return TableError(what, todo, (first,), source)
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
    todos = dict.fromkeys(problem_todo(problem, words) for problem in problems)
    return TableError(what, " ".join(list(todos)[:MAX_TODOS]), tuple(problems), source)
