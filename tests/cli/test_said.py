"""What was done to a table is said in a few lines, the most important first."""

from __future__ import annotations

import re

from gammagmm.cli.said import MAX_LINES, said_lines, said_together
from gammagmm.errors import Note

FILLED = [Note.of("tables.filled", f"c{j}", n_cells=2, value=1.5, is_new=False) for j in range(9)]
UNUSABLE = [Note.of("tables.unusable", f"t{j}", problem="many texts") for j in range(3)]
NUMBERS = [Note.of("tables.numbers", f"n{j}", words="read with decimal commas") for j in range(20)]
ALONE = [Note.of("tables.encoding", f"{j}.csv", encoding="Latin-1") for j in range(7)]


def test_notes_of_one_kind_are_one_line():
    said = said_together([*NUMBERS, *UNUSABLE, *FILLED])
    assert [(each.kind, len(each.notes)) for each in said] == [
        ("read", 20),
        ("not used", 3),
        ("filled", 9),
    ]
    assert len(said_lines([*NUMBERS, *UNUSABLE, *FILLED])) == 3


def test_the_lines_are_few_and_the_last_one_counts_the_rest():
    notes = [*ALONE, *NUMBERS, *FILLED, *UNUSABLE]
    lines = said_lines(notes)
    assert len(lines) == MAX_LINES
    # What was left out and filled comes before two of the files; the rest is counted.
    assert lines[2].startswith("9 columns filled")
    assert lines[3].startswith("3 columns not used")
    assert lines[-1].startswith(f"{len(ALONE) - 2 + len(NUMBERS)} more notes")


def test_one_note_that_is_not_shown_is_one_note():
    assert said_lines(ALONE[:6], more="")[-1] == "2 more notes"
    assert said_lines(ALONE[:6], 6, more="") == said_lines(ALONE[:6], 7, more="")


def test_words_in_cells_are_counted_where_there_are_some():
    counts = [(3, 0), (0, 2), (3, 2)]
    notes = [Note.of("tables.words", "c", n_numbers=n, n_gaps=m, texts="'x'") for n, m in counts]
    assert [re.findall(r"\d+", note.message) for note in notes] == [["3"], ["2"], ["3", "2"]]


def test_a_note_about_many_columns_counts_as_many():
    many = Note.of("tables.guesses", "t.csv", kind="date", words="", n_columns=8, columns="")
    [line] = said_lines([many, *UNUSABLE])
    assert line.startswith("11 columns not used")


def test_columns_that_are_not_used_name_the_option_that_says_why():
    kinds = [
        Note.of("tables.guesses", "t.csv", kind=kind, words="", n_columns=8, columns="")
        for kind in ("date", "id")
    ]
    assert "--columns" in said_lines(UNUSABLE)[0]
    assert "--columns" not in said_lines(kinds)[0]  # the line names the kinds
