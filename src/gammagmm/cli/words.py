"""The words for what happens to a column as options of the command line."""

from __future__ import annotations

import shlex

from gammagmm._support.text import MAX_SHOWN_CHARACTERS
from gammagmm.table.words import Words

__all__ = ["COMMAND", "column_option"]


def column_option(flag: str, name: str) -> str:
    """An option as the user can type it; NAME stands for a name that is hard to type."""
    is_short = name.isprintable() and len(name) <= MAX_SHOWN_CHARACTERS
    return f"{flag} {shlex.quote(name) if is_short else 'NAME'}"


class _Command:
    """The options of the commands that read files."""

    dates = "--dates encode"
    fill = "--missing impute"
    drop_rows = "--missing drop"
    encode = "--categories encode"

    def use(self, column: str) -> str:
        """--use COLUMN."""
        return column_option("--use", column)

    def drop(self, column: str) -> str:
        """--drop COLUMN."""
        return column_option("--drop", column)

    def id(self, column: str) -> str:
        """--id COLUMN."""
        return column_option("--id", column)

    def truth(self, column: str) -> str:
        """--truth COLUMN."""
        return column_option("--truth", column)


COMMAND: Words = _Command()
