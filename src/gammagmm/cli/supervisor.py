"""Run a command in a process of its own, which Ctrl-C ends at once.

The compiled loop of a detector can ignore Ctrl-C for half a minute. The process that waits for it
does not. A third process, the guard, only waits for the end of the waiting one: if that is killed,
the guard ends the work and removes what it has left.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gammagmm._support.platform import end_group, run_group

__all__ = ["INTERRUPTED", "MARKER", "READ_NOW", "Work", "guard", "is_supervised", "run_supervised"]

MARKER = "_GAMMAGMM_SUPERVISED"
"""Variable of the environment that only the process that does the work has: its own folder."""
READ_NOW = "file-being-read"
"""File in this folder with the name of the file that the process reads."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
GUARD = "import sys; sys.path.insert(0, sys.argv[1]); from gammagmm.cli import supervisor as s; "
GUARD += "s.guard(sys.stdin)"
PACKAGES = str(Path(__file__).parents[2])
QUIET_TRACKERS = "ignore:resource_tracker:UserWarning"
"""Python's filter of the warnings about what an interrupted process has left, which is removed."""


@dataclass(frozen=True)
class Remains:
    """What a process can leave if it is ended: parts of `outputs`, and a `folder` of its own."""

    outputs: tuple[str, ...]
    folder: str

    def unread(self) -> str | None:
        """The file that the process read when it ended; None if it read none."""
        with suppress(OSError):
            return os.fsdecode(Path(self.folder, READ_NOW).read_bytes()) if self.folder else None
        return None

    def clear(self, pid: int) -> None:
        """Remove what the ended process `pid` has left."""
        for path in map(Path, self.outputs):
            _clear_parts(pid, path)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Work:
    """How the work ended: its exit code, and the file that it read then, if any.

    A negative code is the signal that ended it from outside.
    """

    code: int
    unread: str | None = None


def is_supervised() -> bool:
    """Whether this process is the one that does the work."""
    return MARKER in os.environ


def run_supervised(arguments: list[str], outputs: Iterable[Path]) -> Work:
    """The end of ``gammagmm`` with these arguments, run in a process group of its own.

    However the work or this process ends, nothing of the group goes on, and its temporary files and
    the unfinished parts of `outputs` are removed.
    """
    remains = Remains(tuple(str(path.absolute()) for path in outputs), _new_folder())
    watcher = _start_guard(remains)
    filters = filter(None, (os.environ.get("PYTHONWARNINGS"), QUIET_TRACKERS))
    environment = os.environ | {
        MARKER: remains.folder or "1",
        # Without it, and -P below, a module in the user's folder would be run as ours.
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": ",".join(filters),
    }
    with suppress(OSError):  # on a machine without room for it, the usual places are used
        os.mkdir(remains.folder, mode=0o700)
        environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), remains.folder)
    command = [sys.executable, "-P", "-m", "gammagmm.cli.main", *arguments]
    try:
        ended = run_group(command, environment, lambda pid: _tell(watcher, str(pid)))
        unread = remains.unread()
        remains.clear(ended.pid)
        _tell(watcher, "done")  # otherwise, the guard cleans up
    finally:
        watcher.communicate()
    return Work(INTERRUPTED) if ended.is_interrupted else Work(ended.code, unread)


def _new_folder() -> str:
    """Name of a folder for temporary files that does not exist; empty where there is no place."""
    with suppress(OSError):
        return str(Path(tempfile.gettempdir(), f"gammagmm-{secrets.token_hex(8)}"))
    return ""


def _start_guard(remains: Remains) -> subprocess.Popen[bytes]:
    """The process that ends the work if this process is killed."""
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", GUARD, PACKAGES],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    _tell(watcher, json.dumps([remains.outputs, remains.folder]))
    return watcher


def _tell(watcher: subprocess.Popen[bytes], line: str) -> None:
    """Write a line to the guard, which may have been killed."""
    if watcher.stdin is not None:
        with suppress(OSError):
            watcher.stdin.write(f"{line}\n".encode("utf-8", "surrogatepass"))
            watcher.stdin.flush()


def guard(lines: Iterable[str]) -> None:
    """Wait for the end of the process that writes `lines`, and clean up if it was killed.

    Its lines are what the work can leave, the number of the working process, and "done".
    """
    outputs, folder, *told = [], "", *()
    for number, line in enumerate(lines):
        if number == 0:
            outputs, folder = json.loads(line)
        else:
            told.append(line.strip())
    if "done" in told:
        return
    pid = int(told[0]) if told else 0
    if pid:
        end_group(pid)
    Remains(tuple(outputs), folder).clear(pid)


def _clear_parts(pid: int, path: Path) -> None:
    """Remove the parts of the output `path` that the ended process `pid` had begun to write."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.{pid}-*.part"):
        if part.name.endswith("-old.part") and not path.exists():
            part.rename(path)  # ended between two renames
        elif part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)
