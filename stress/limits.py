"""Seconds and memory of the command with files that are large, or that grow when they are read.

    python -m stress.limits

The files are made in a temporary folder, which needs 1.2 GB. Memory is the largest sum of the
resident memory of the command and the processes that it starts. The figures go to
stress/results/limits.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

RESULTS = Path(__file__).parent / "results" / "limits.json"
N_COLUMNS, N_ROWS = 100_000, 20
LINE_BYTES = 10**9
BLOCK_BYTES, N_BLOCKS, N_NUMBERS = 60_000_000, 100, 14_900


def growing(path: Path) -> None:
    """A .csv.gz of about 11.7 MB that grows to 6 GB."""
    rng = np.random.default_rng(0)
    numbers = b"".join(b"%.6f\n" % x for x in rng.random(N_NUMBERS))
    block = (numbers + b"1,2\n" * (BLOCK_BYTES // 4))[:BLOCK_BYTES]
    path.write_bytes(gzip.compress(block, 9, mtime=0) * N_BLOCKS)


def wide(path: Path) -> None:
    """A CSV file of 100,000 columns."""
    rows = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS)).round(3)
    names = ",".join(f"x{j}" for j in range(N_COLUMNS))
    np.savetxt(path, rows, "%g", ",", header=names, comments="")


def one_line(path: Path) -> None:
    """A CSV file of one line of 1 GB."""
    with path.open("wb") as file:
        for _ in range(LINE_BYTES // 10**7):
            file.write(b"1,2.5," * (10**7 // 6))


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a .csv.gz that grows to 6 GB": ("t.csv.gz", growing),
    "100,000 columns": ("t.csv", wide),
    "a line of 1 GB": ("t.csv", one_line),
}


def measured(path: Path) -> dict[str, float]:
    """Seconds, peak memory and exit code of the command with this file."""
    start, busy, peak = time.perf_counter(), _busy_seconds(), 0
    words = [sys.executable, "-m", "gammagmm.cli.main", "estimate", str(path), "--columns"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            peak = max(peak, _memory(psutil.Process(process.pid)))
            time.sleep(0.02)
        assert process.stderr is not None
        print(process.stderr.read().decode()[:500])
    seconds = time.perf_counter() - start
    return {
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(_busy_seconds() - busy, 1),
        "peak_mb": round(peak / 1e6),
        "exit_code": process.returncode,
    }


def _busy_seconds() -> float:
    """Seconds of a CPU that the processes which have ended have used; less than waiting for it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(process: psutil.Process) -> int:
    total = 0
    with suppress(psutil.Error):
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total += each.memory_info().rss
    return total


def main(arguments: list[str] | None = None) -> int:
    """Write the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    found = {}
    for name, (file, make) in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder, file))
            found[name] = measured(Path(folder, file))
        print(name, found[name], flush=True)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
