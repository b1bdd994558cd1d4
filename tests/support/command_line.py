"""The command ``gammagmm``: as users run it, and without the start of its two processes."""

from __future__ import annotations

import contextlib
import csv
import gc
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from gammagmm.cli.main import main
from gammagmm.cli.supervisor import MARKER

COMMAND = str(Path(sys.executable).with_name("gammagmm"))
QUICK = ("--detectors", "KNN,LOF", "--runs", "2", "--jobs", "1")


def gammagmm(*arguments, cwd=None, stdin=None, env=None):
    """The finished process of ``gammagmm`` with these arguments."""
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=stdin, env=env)


def gammagmm_here(*arguments, cwd=None, stdin=""):
    """The same, done in this process as in the one that the command starts for its work.

    What belongs to processes is not tested by this: the supervisor, signals, imports, a terminal.
    """
    words = list(map(str, arguments))
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with (
        patch.object(sys, "argv", [COMMAND, *words]),
        patch.object(sys, "stdin", given),
        patch.dict(os.environ, {MARKER: "1"}),
        contextlib.chdir(cwd or os.getcwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:  # what the command does because its process ends soon
            gc.enable()
            gc.unfreeze()
    printed = []
    for stream in (out, err):
        stream.flush()
        printed.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(words, code, *printed)


def on_terminal(command):
    """What a command shows on a terminal, its standard error, and what it prints."""
    import pty

    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while block := os.read(ours, 4096):
            shown += block
    os.close(ours)
    printed = process.communicate()[0]
    assert process.returncode == 0
    return shown.decode(), printed.decode()


def write_csv(path, columns):
    """A CSV file of named columns; returns its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path
