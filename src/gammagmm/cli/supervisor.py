"""A command in a process of its own, that Ctrl-C ends at once whatever it is doing.

A detector's compiled loop does not look at signals for half a minute; the process that waits for it
does.
"""

from __future__ import annotations

import glob
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["INTERRUPTED", "is_supervised", "run_supervised"]

MARKER = "_GAMMAGMM_SUPERVISED"
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def is_supervised() -> bool:
    """Whether this process is the one that does the work."""
    return MARKER in os.environ


def run_supervised(arguments: list[str], outputs: Iterable[Path]) -> int:
    """Exit code of ``gammagmm`` with these arguments, run in a new session.

    On Ctrl-C the session is killed, and what it had begun to write to `outputs` is removed. A
    negative code is the signal that ended the work from elsewhere.
    """
    # Without -P, and the same for the workers, a module in the user's folder would be run as ours.
    command = [sys.executable, "-P", "-m", "gammagmm.cli.main", *arguments]
    environment = os.environ | {MARKER: "1", "PYTHONSAFEPATH": "1"}
    # Ended like Ctrl-C does: by a pipeline's time limit, or by the terminal that closes.
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is not signal.SIG_IGN:  # nohup ignores the terminal's end
            signal.signal(name, _interrupt)
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        _kill(process)
        code = INTERRUPTED
    if code < 0 or code == INTERRUPTED:
        _clear_parts(process.pid, outputs)
    return code


def _clear_parts(pid: int, outputs: Iterable[Path]) -> None:
    """Remove what a process that was ended had begun to write."""
    for path in outputs:
        for part in path.parent.glob(f".{glob.escape(path.name)}.{pid}-*.part"):
            if part.name.endswith("-old.part") and not path.exists():
                part.rename(path)  # ended between two renames
            elif part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
