"""The words for what happens to a column as options of the command line."""

from __future__ import annotations

import shlex

from gammagmm._support.text import MAX_SHOWN_CHARACTERS
from gammagmm.table.words import Words

__all__ = ["COMMAND"]


def _shell_word(name: str) -> str:
    """A name as the user can type it; NAME stands for one that is hard to type."""
    is_short = name.isprintable() and len(name) <= MAX_SHOWN_CHARACTERS
    return shlex.quote(name) if is_short else "NAME"


COMMAND = Words(
    dates="--dates encode",
    fill="--missing impute",
    drop_rows="--missing drop",
    encode="the command without --strict",
    missing_codes="--missing-codes {}",
    no_codes="--missing-codes none",
    roles={role: f"--{role} {{}}" for role in ("use", "drop", "id", "truth")},
    quote=_shell_word,
)
