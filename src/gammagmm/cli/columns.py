"""The columns of a file: what each is taken for, what is done with it, and what is wrong."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gammagmm._support.text import MAX_SHOWN_CHARACTERS, aligned, counted, one_line
from gammagmm.cli.words import COMMAND
from gammagmm.errors import Problem, TableError
from gammagmm.readers.raw_table import RawTable, written
from gammagmm.table.encoder import n_texts
from gammagmm.table.guesses import Guess
from gammagmm.table.preparation import column_problems, prepare
from gammagmm.table.roles import Choices, assign_roles
from gammagmm.table.words import problem_todo

__all__ = ["MAX_PROBLEMS", "columns_text", "problem_lines", "working_command", "working_options"]

MAX_PROBLEMS = 20
"""Further problems of a file are only counted."""
FLAG = "--columns"
HEAD = ("column", "taken for", "missing", "different", "first value", "what is done")
CHOSEN = {
    "id": ("id", "names the rows (--id)"),
    "truth": ("labels", "compared with the estimate (--truth)"),
    "drop": ("", "left out (--drop)"),
}
GROUPS = "groups (--by)"
MAX_OPTIONS = 600
"""Characters of options above which no command is suggested."""


def columns_text(raw: RawTable, choices: Choices, by: str | None = None) -> str:
    """A line for each column, how the file was read, the problems, and the command that works.

    `by` is the column that groups the rows.
    """
    roles = assign_roles(raw, choices)
    problems = column_problems(raw, roles, choices)
    with_problems = {problem.column for problem in problems}
    chosen, dates = dict(roles.chosen), dict(roles.dates)
    guesses = {guess.column: guess for guess in roles.guesses}
    uses = []
    for j, name in enumerate(raw.columns):
        kind = "text" if raw.is_text(j) else "number"
        own, use = _use(kind, chosen.get(name), guesses.get(name), name in dates)
        is_wrong = name in with_problems and chosen.get(name) not in CHOSEN
        uses.append((own, _with_groups("see the problems" if is_wrong else use, name == by)))
    lines = [HEAD, *(_line(raw, j, *use) for j, use in enumerate(uses))]
    text = [aligned(lines, n_words=len(HEAD))]
    if raw.notes:
        said = [f"  {one_line(note.subject)}: {one_line(note.message)}" for note in raw.notes]
        text += ["", f"{counted(len(said), 'note')}:", *said]
    if problems:
        text += ["", f"{counted(len(problems), 'problem')}:", *problem_lines(problems)]
        options = working_options(raw, choices, problems)
        text += [f"This command works: {working_command(options)}"] if options else []
    return "\n".join(text)


def _line(raw: RawTable, j: int, kind: str, use: str) -> tuple[str, ...]:
    data, gaps = raw.data[j], raw.is_gap(j)
    present = data[~gaps]
    n_different = n_texts(data) if raw.is_text(j) else len(np.unique(present))
    cells = present[:1].tolist() if raw.is_text(j) else written(present[:1].tolist())
    first = next((str(cell) for cell in cells), "")
    first = first if len(first) <= MAX_SHOWN_CHARACTERS else first[:MAX_SHOWN_CHARACTERS] + "..."
    numbers = (f"{int(gaps.sum()):,}", f"{n_different:,}")
    return one_line(raw.columns[j]), kind, *numbers, one_line(first), one_line(use)


def _use(kind: str, option: str | None, guess: Guess | None, is_date: bool) -> tuple[str, str]:
    """What a column is taken for, and what is done with it."""
    if option in CHOSEN:
        own, use = CHOSEN[option]
        return own or kind, use
    if guess is not None and guess.is_left_out:
        return guess.kind, guess.message(COMMAND)
    if is_date:
        return "date", "used, encoded as numbers"
    if kind == "text":
        return kind, "used, encoded as columns of 0 and 1"
    return kind, "used" if guess is None else guess.message(COMMAND)


def _with_groups(use: str, is_by: bool) -> str:
    """What is done with a column, which may also group the rows."""
    if not is_by:
        return use
    return GROUPS if use == CHOSEN["drop"][1] else f"{use}; {GROUPS}"


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """A line for each problem; if there are many, the first ones and a count."""
    first = problems[:MAX_PROBLEMS]
    lines = [f"  {one_line(own.what)}. {one_line(problem_todo(own, COMMAND))}" for own in first]
    n_more = len(problems) - MAX_PROBLEMS
    return [*lines, f"  {n_more:,} more"] if n_more > 0 else lines


def working_command(options: Sequence[str]) -> str:
    """The command that the user gave, with these options, as it can be typed in a shell."""
    words = [word for word in sys.argv[1:] if word != FLAG]
    end = words.index("--") if "--" in words else len(words)
    return one_line(shlex.join(["gammagmm", *words[:end], *options, *words[end:]]))


def working_options(
    raw: RawTable, choices: Choices, problems: Sequence[Problem]
) -> tuple[str, ...]:
    """Options that were tried and with which the table is prepared; empty where there are none."""
    added: dict[str, Any] = {}
    fixes = {"fill": ("missing", "impute"), "encode": ("categories", "encode")}
    found = [next((fix for fix in fixes if fix in own.remedies), "drop") for own in problems]
    dropped = dict.fromkeys(
        own.column for own, fix in zip(problems, found, strict=True) if fix == "drop"
    )
    for problem, fix in zip(problems, found, strict=True):
        if fix == "drop" and (problem.code == "truth" or "drop" not in problem.remedies):
            return ()
        if fix != "drop" and problem.column not in dropped:
            added |= [fixes[fix]]
    pairs = [*added.items(), *(("drop", column) for column in dropped)]
    options = tuple(word for name, value in pairs for word in (f"--{name}", value))
    if len(shlex.join(options)) > MAX_OPTIONS or not all(map(str.isprintable, options)):
        return ()
    try:
        prepare(raw, replace(choices, **added, drop=(*choices.drop, *dropped)), COMMAND)
    except TableError:
        return ()
    return options
