"""What differs between Linux, macOS and Windows: signals that end a command, process groups.

Names that a platform lacks, such as ``signal.SIGHUP`` and ``os.killpg``, are looked up when they
are used, so this module can be imported everywhere.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

__all__ = ["interrupt_on_ending_signals", "kill_group", "start_group", "wait_for"]

ENDING_SIGNALS = ("SIGTERM", "SIGHUP", "SIGBREAK")
"""Sent by a time limit, by a terminal that closes, and by a Windows console that closes."""

POLLING_SECONDS = 0.1


def interrupt_on_ending_signals() -> None:
    """Raise KeyboardInterrupt, as Ctrl-C does, on every signal that ends a command.

    A signal that is ignored stays ignored: ``nohup`` ignores the end of the terminal.
    """
    for name in ENDING_SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def start_group(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A new process in a group of its own, which Ctrl-C in this terminal does not reach."""
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # Windows ignores new sessions
    return subprocess.Popen(command, env=environment, start_new_session=True, creationflags=flags)


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """Exit code of the process; signals interrupt the wait."""
    # On Windows, Ctrl-C does not interrupt a wait without a timeout. Elsewhere it does, and such
    # a wait ends at once when the process does.
    timeout = None if _has_groups() else POLLING_SECONDS
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything that it started, and wait for its end."""
    if _has_groups():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        tree = ["taskkill", "/PID", str(process.pid), "/T", "/F"]
        with suppress(OSError):  # without taskkill, the process alone is ended
            subprocess.run(tree, capture_output=True, check=False)
        process.kill()
    process.wait()


def _has_groups() -> bool:
    return hasattr(os, "killpg")
