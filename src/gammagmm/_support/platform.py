"""What differs between Linux, macOS and Windows: signals that end a command, process groups.

Names that a platform lacks, such as ``signal.SIGHUP`` and ``os.killpg``, are looked up when they
are used, so this module can be imported everywhere.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Ended", "is_closed_pipe", "run_group"]

ENDING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Sent by Ctrl-C, a time limit, a terminal that closes, and a Windows console that closes."""

POLLING_SECONDS = 0.1


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    pid: int
    code: int  # negative: the signal that ended it, where a platform tells
    is_interrupted: bool  # it was killed because a signal asked this process to end


def run_group(command: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """The end of a command that runs in a process group of its own.

    A signal that ends a command, such as Ctrl-C, kills the whole group at once. A signal that is
    ignored stays ignored: ``nohup`` ignores the end of the terminal. Only the main thread may
    call this.
    """
    process: subprocess.Popen[bytes] | None = None
    is_interrupted = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        if process is not None:
            _kill_group(process)

    numbers = [getattr(signal, name) for name in ENDING_SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    heard = [number for number in numbers if before[number] is not signal.SIG_IGN]
    # Windows ignores sessions, and other platforms have no such flag.
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    try:
        for number in heard:
            signal.signal(number, interrupt)
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, creationflags=flags
        )
        if is_interrupted:  # while the process was starting
            _kill_group(process)
        code = _wait(process)
    finally:
        for number in heard:
            signal.signal(number, before[number] or signal.SIG_DFL)
    return Ended(process.pid, code, is_interrupted)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Exit code of the process; signals are handled meanwhile."""
    # On Windows, a wait without a timeout delays the handlers of signals until its end. Elsewhere
    # it does not, and such a wait ends as soon as the process does.
    timeout = None if hasattr(os, "killpg") else POLLING_SECONDS
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return
    tree = ["taskkill", "/PID", str(process.pid), "/T", "/F"]
    with suppress(OSError):  # without taskkill, only the process is killed
        subprocess.run(tree, capture_output=True, check=False)
    process.kill()


def is_closed_pipe(error: OSError) -> bool:
    """Whether a write failed because the reader has closed the pipe."""
    # Windows reports it as an invalid argument.
    kinds = (errno.EPIPE, errno.EINVAL) if sys.platform == "win32" else (errno.EPIPE,)
    return error.errno in kinds
