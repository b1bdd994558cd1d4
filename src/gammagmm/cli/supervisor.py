"""Run a command in a process of its own, which Ctrl-C ends at once.

The compiled loop of a detector can ignore signals for half a minute. The process that waits for it
does not.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from gammagmm._support.platform import run_group

__all__ = ["INTERRUPTED", "is_supervised", "run_supervised"]

MARKER = "_GAMMAGMM_SUPERVISED"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def is_supervised() -> bool:
    """Whether this process is the one that does the work."""
    return MARKER in os.environ


def run_supervised(arguments: list[str], outputs: Iterable[Path]) -> int:
    """Exit code of ``gammagmm`` with these arguments, run in a process group of its own.

    Ctrl-C, or a signal that ends this process, kills the group and removes the unfinished parts
    of `outputs`. A negative code is the signal that ended the work from outside.
    """
    # Without -P, and the same for the workers, a module in the user's folder would be run as ours.
    command = [sys.executable, "-P", "-m", "gammagmm.cli.main", *arguments]
    ended = run_group(command, os.environ | {MARKER: "1", "PYTHONSAFEPATH": "1"})
    if ended.code != 0:  # Windows does not tell a process that was killed from one that failed
        _clear_parts(ended.pid, outputs)
    return INTERRUPTED if ended.is_interrupted else ended.code


def _clear_parts(pid: int, outputs: Iterable[Path]) -> None:
    """Remove the parts of `outputs` that the ended process `pid` had begun to write."""
    for path in outputs:
        for part in path.parent.glob(f".{glob.escape(path.name)}.{pid}-*.part"):
            if part.name.endswith("-old.part") and not path.exists():
                part.rename(path)  # ended between two renames
            elif part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)
