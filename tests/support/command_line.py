"""The command ``gammagmm`` as users run it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("gammagmm"))
QUICK = ("--detectors", "KNN,LOF", "--runs", "2", "--jobs", "1")


def gammagmm(*arguments, cwd=None, stdin=None, env=None):
    """The finished process of ``gammagmm`` with these arguments."""
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=stdin, env=env)


def write_csv(path, columns):
    """A CSV file of named columns; returns its path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path
