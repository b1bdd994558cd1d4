"""The columns of a file: what each is taken for, what is done with it, and what is wrong."""

from __future__ import annotations

import shlex
import sys
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gammagmm._support.text import MAX_SHOWN_CHARACTERS, aligned, counted, one_line
from gammagmm.cli.said import said_lines
from gammagmm.cli.words import COMMAND
from gammagmm.errors import Note, Problem, TableError
from gammagmm.readers.raw_table import RawTable, written
from gammagmm.table.encoder import n_texts
from gammagmm.table.guesses import Guess
from gammagmm.table.preparation import prepare, truth_problems
from gammagmm.table.problems import without_unusable
from gammagmm.table.roles import Choices, Roles, assign_roles
from gammagmm.table.words import problem_todo

__all__ = [
    "MAX_PROBLEMS",
    "columns_text",
    "command_without_strict",
    "is_answered",
    "problem_lines",
]

MAX_NOTES = 15
"""Most lines about what was done to a table as a whole."""
TOLD = ("tables.guess", "tables.unusable", "tables.encoded", "tables.dates")
"""Notes that say what a column is taken for, as the table does itself."""
UNUSABLE = "tables.unusable"
MAX_PROBLEMS = 20
"""Further problems of a file are only counted."""
FLAG, STRICT = "--columns", "--strict"
HEAD = ("column", "taken for", "missing", "different", "first value", "what is done")
CHOSEN = {
    "id": ("id", "names the rows (--id)"),
    "truth": ("labels", "compared with the estimate (--truth)"),
    "drop": ("", "not used (--drop)"),
}
GROUPS = "groups (--by)"


def columns_text(raw: RawTable, choices: Choices, by: str | None = None) -> str:
    """A line for each column, how the file was read, the problems, and the command that works.

    `by` is the column that groups the rows.
    """
    roles = assign_roles(raw, choices)
    notes, problems = _findings(raw, roles, choices)
    left_out = {note.subject: note.message for note in notes if note.code == UNUSABLE}
    own_notes = defaultdict[str, list[str]](list)
    for note in notes:
        if note.code not in TOLD:
            own_notes[note.subject].append(note.message)
    with_problems = {problem.column for problem in problems}
    chosen, dates = dict(roles.chosen), dict(roles.dates)
    guesses = {guess.column: guess for guess in roles.guesses}
    uses = []
    for j, name in enumerate(raw.columns):
        kind = "text" if raw.is_text(j) else "number"
        own, use = _use(kind, chosen.get(name), guesses.get(name), name in dates)
        use = left_out.get(name, use)
        is_wrong = name in with_problems and chosen.get(name) not in CHOSEN
        use = _with_groups("see the problems" if is_wrong else use, name == by)
        uses.append((own, "; ".join([use, *own_notes[name]])))
    lines = [HEAD, *(_line(raw, j, *use) for j, use in enumerate(uses))]
    text = [aligned(lines, n_words=len(HEAD))]
    names = set(raw.columns)
    others = [note for note in notes if note.subject not in names]
    if others:
        said = [f"  {line}" for line in said_lines(others, MAX_NOTES, more="")]
        text += ["", f"{counted(len(others), 'note')}:", *said]
    if problems:
        text += ["", f"{counted(len(problems), 'problem')}:", *problem_lines(problems)]
        if is_answered(raw, choices):
            text.append(f"This command works: {command_without_strict()}")
    return "\n".join(text)


def _findings(
    raw: RawTable, roles: Roles, choices: Choices
) -> tuple[tuple[Note, ...], list[Problem]]:
    """What is said about the table, or about reading it where it is refused, and its problems."""
    try:
        return prepare(raw, choices, COMMAND, roles=roles).notes, []
    except TableError:
        _, _, unusable, problems = without_unusable(raw, roles, choices)
        return (*raw.notes, *unusable), [*truth_problems(raw, choices), *problems]


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
    if guess is not None and guess.is_text:
        return "code", guess.message(COMMAND)
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


def command_without_strict() -> str:
    """The command that the user gave without ``--strict``, as it can be typed in a shell."""
    words = [word for word in sys.argv[1:] if word not in (FLAG, STRICT)]
    return one_line(shlex.join(["gammagmm", *words]))


def is_answered(raw: RawTable, choices: Choices) -> bool:
    """Whether a table that was refused is answered without ``--strict``."""
    if choices.unusable == "drop":
        return False
    try:
        prepare(raw, choices.with_strict(False), COMMAND)
    except TableError:
        return False
    return True
