"""What a command writes: its answer to standard output, notes and warnings to standard error."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from gammagmm._support.platform import is_closed_pipe
from gammagmm._support.text import one_line
from gammagmm.cli.options import Request
from gammagmm.cli.said import said_lines
from gammagmm.errors import Note

__all__ = ["Echo", "print_answer", "tell", "warnings_as_lines"]

Echo: TypeAlias = Callable[[str], None]
"""Writes a line to standard error."""


def tell(notes: Iterable[Note], request: Request, echo: Echo) -> None:
    """Write the notes to standard error in a few lines, unless the user wants quiet."""
    if not request.running.quiet:
        for line in said_lines(list(notes)):
            echo(f"note: {line}")


@contextmanager
def warnings_as_lines(echo: Echo) -> Iterator[None]:
    """Write each warning to standard error as one line, at the end or before an error."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        for warning in caught:
            echo(f"warning: {one_line(' '.join(str(warning.message).split()))}")


def print_answer(text: str) -> None:
    """Write to standard output; a reader that has closed it is not an error."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        # Python flushes standard output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not is_closed_pipe(error):
            raise OSError(error.errno, error.strerror, "standard output") from error
