"""Notes about a table -> at most five lines for the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gammagmm._support.text import counted, listed, one_line
from gammagmm.errors import Note

__all__ = ["MAX_LINES", "Said", "said_lines", "said_together"]

MAX_LINES = 5
"""Most lines about what was done to a table."""
SUBJECTS = {
    "rows": ("tables.rows",),
    "codes": ("tables.likely code",),
    "clear codes": ("tables.clear code", "tables.codes"),
    "not used": ("tables.unusable", "tables.one text", "tables.equal dates", "tables.implied text"),
    "filled": ("tables.filled", "tables.gap text", "tables.filled date", "tables.infinite"),
    "encoded": ("tables.encoded", "tables.dates"),
    "assumed": ("tables.assumed",),
    "words": ("tables.words", "tables.missing words"),
    "read": ("tables.numbers", "tables.durations"),
}
"""Codes of notes that are said together, by what was done."""
ORDER = (
    *("assumed", "not used", "filled", "rows", "clear codes", "codes", "words", ""),
    *("encoded", "read"),
)
"""Which of them are said first where there are too many lines."""
DONE = {
    "codes": "with a value that may mark gaps",
    "clear codes": "with a value that is read as missing",
    "not used": "not used",
    "filled": "filled where cells are missing",
    "encoded": "encoded as numbers",
    "assumed": "{manner}, which is an assumption (--decimal {other} changes it)",
    "words": "with words that are read as the number beside them or as missing",
    "read": "read as numbers",
}
OF_GUESS = {"whole numbers": "", "category": "encoded"}
"""The same of columns that look like something and are used."""
KIND_OF = {code: kind for kind, codes in SUBJECTS.items() for code in codes}
MAX_NAMES = 4
MORE = "; --columns shows all, most of them beside their columns"
"""Where the notes are that are not shown."""


@dataclass(frozen=True)
class Said:
    """Notes that are said in one line.

    Attributes
    ----------
    kind : str
        A key of `DONE`; empty for a note that is said alone.
    notes : tuple of Note
        The notes.
    """

    kind: str
    notes: tuple[Note, ...]

    @property
    def line(self) -> str:
        """The notes in one line."""
        first = self.notes[0]
        if len(self.notes) == 1:
            return f"{one_line(first.subject)}: {one_line(first.message)}"
        if self.kind == "rows":
            counts = [f"{n.fields['kind']} ({n.fields['n_rows']:,})" for n in self.notes]
            n_rows = sum(note.fields["n_rows"] for note in self.notes)
            return one_line(
                f"{first.subject}: {counted(n_rows, 'row')} not used: {', '.join(counts)}"
            )
        alone = [note.subject for note in self.notes if note.code != "tables.guesses"]
        names = dict.fromkeys(alone)
        others = [note for note in self.notes if note.code == "tables.guesses"]
        n_columns = len(names) + sum(note.fields["n_columns"] for note in others)
        shown = [listed(list(names)[:MAX_NAMES])] if names else []
        shown += [
            f"{note.fields['n_columns']:,} of the kind {note.fields['kind']}" for note in others
        ]
        n_more = len(names) - MAX_NAMES
        more = f" and {n_more:,} more" if n_more > 0 and not others else ""
        done = DONE[self.kind].format_map(first.fields)
        if self.kind == "not used" and names:
            done += " (estimate --columns says why)"
        return one_line(f"{counted(n_columns, 'column')} {done}: {', '.join(shown)}{more}")


def said_together(notes: Iterable[Note]) -> list[Said]:
    """The notes, with those of one kind in one group, in the order of the first of each."""
    groups, places = defaultdict[tuple[str, int], list[Note]](list), dict[tuple[str, Any], int]()
    for i, note in enumerate(notes):
        kind = kind_of(note)
        manner = note.fields["manner"] if kind == "assumed" else None
        place = places.setdefault((kind, manner), i) if kind else i
        groups[kind, place].append(note)
    return [Said(kind, tuple(found)) for (kind, _), found in groups.items()]


def kind_of(note: Note) -> str:
    """What the note says was done to a column; empty for other notes."""
    if note.code in ("tables.guess", "tables.guesses"):
        return OF_GUESS.get(note.fields["kind"], "not used")
    return KIND_OF.get(note.code, "")


def said_lines(notes: Sequence[Note], n_lines: int = MAX_LINES, more: str = MORE) -> list[str]:
    """At most `n_lines` lines; the last one counts the notes that are not shown, with `more`."""
    said = said_together(notes)
    if len(said) <= n_lines:
        return [each.line for each in said]
    first = sorted(said, key=lambda each: ORDER.index(each.kind))[: n_lines - 1]
    kept = [each for each in said if each in first]
    n_more = len(notes) - sum(len(each.notes) for each in kept)
    return [*(each.line for each in kept), f"{counted(n_more, 'more note')}{more}"]
