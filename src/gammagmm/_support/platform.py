"""What differs between Linux, macOS and Windows: signals that end a command, process groups.

Names that a platform lacks, such as ``signal.SIGHUP`` and ``os.killpg``, are looked up when they
are used, so this module can be imported everywhere.
"""

from __future__ import annotations

import errno
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Ended",
    "end_group",
    "is_closed_pipe",
    "memory_limit",
    "physical_memory",
    "processor_limit",
    "run_group",
]

ENDING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Sent by Ctrl-C, a time limit, a terminal that closes, and a Windows console that closes."""

POLLING_SECONDS = 0.1
ENDING_SECONDS = 3.0
"""Time that a process group has to clean up before it is killed."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    pid: int
    code: int  # negative: the signal that ended it, where a platform tells
    is_interrupted: bool  # it was killed because a signal asked this process to end


def run_group(
    command: Sequence[str],
    environment: Mapping[str, str],
    started: Callable[[int], None] = lambda pid: None,
) -> Ended:
    """The end of a command that runs in a process group of its own.

    A signal that ends a command, such as Ctrl-C, ends the whole group at once. A signal that is
    ignored stays ignored: ``nohup`` ignores the end of the terminal. Whatever else the group has
    ends with the command. `started` is called with the number of its process. Only the main thread
    may call this.
    """
    process: subprocess.Popen[bytes] | None = None
    is_interrupted = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        if process is not None:
            _interrupt_group(process)

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
        started(process.pid)
        if is_interrupted:  # while the process was starting
            _interrupt_group(process)
        code = _wait(process)
        if hasattr(os, "killpg"):
            # What is left of a command that ended by itself needs no time to clean up.
            if code < 0 or is_interrupted:
                end_group(process.pid)
            else:
                _signal_group(process.pid, signal.SIGTERM)
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


def _interrupt_group(process: subprocess.Popen[bytes]) -> None:
    """End the process and everything that it started, of which trackers of resources may stay."""
    if hasattr(os, "killpg"):
        _signal_group(process.pid, signal.SIGTERM)
    else:
        _kill_tree(process.pid)
        process.kill()


def end_group(pid: int) -> None:
    """End the process `pid` and what is left of its group; on Windows, what it has started.

    The group first gets SIGTERM, which ends Python at once, even in compiled code. The trackers of
    multiprocessing and loky ignore it: they remove semaphores and shared memory when the other
    processes are gone. What remains after `ENDING_SECONDS` is killed.
    """
    if not hasattr(os, "killpg"):
        _kill_tree(pid)
        return
    is_left = _signal_group(pid, signal.SIGTERM)
    moment = time.monotonic() + ENDING_SECONDS
    while is_left and time.monotonic() < moment:
        time.sleep(0.005)
        is_left = _signal_group(pid, 0)
    if is_left:
        _signal_group(pid, signal.SIGKILL)


def _signal_group(pid: int, number: int) -> bool:
    """Send a signal to the group of the process `pid`; False if it has no process any more."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS, for a group of processes that have ended
        return False
    return True


def _kill_tree(pid: int) -> None:
    tree = ["taskkill", "/PID", str(pid), "/T", "/F"]
    with suppress(OSError):  # without taskkill, only the process itself can be killed
        subprocess.run(tree, capture_output=True, check=False)


def is_closed_pipe(error: OSError) -> bool:
    """Whether a write failed because the reader has closed the pipe."""
    # Windows reports it as an invalid argument.
    kinds = (errno.EPIPE, errno.EINVAL) if sys.platform == "win32" else (errno.EPIPE,)
    return error.errno in kinds


@contextmanager
def memory_limit(n_bytes: int) -> Iterator[None]:
    """At most `n_bytes` more memory for this process meanwhile, on Linux; elsewhere no limit.

    An allocation beyond it is a MemoryError; a library that does not check for it may end the
    process.
    """
    n_held = _data_bytes()
    try:
        import resource
    except ImportError:
        n_held = None
    if n_held is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [own for own in (n_held + n_bytes, soft, hard) if own != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """The system ends this process if it computes longer meanwhile; no limit on Windows.

    It also ends a library that never returns to Python.
    """
    try:
        import resource
    except ImportError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limits = [math.ceil(time.process_time() + seconds), soft, hard]
    allowed = min(own for own in limits if own != resource.RLIM_INFINITY)
    no_core, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # no copy of the memory on the disk
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (no_core, most))


def physical_memory() -> int:
    """Memory of this machine in bytes; a very large number where it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no such function
        return sys.maxsize


def _data_bytes() -> int | None:
    """Memory of this process that counts for its limit; None where Linux does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmData:"):
                return 1024 * int(line.split()[1])
    return None
