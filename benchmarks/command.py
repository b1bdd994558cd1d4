"""The time of the command line: in all for a small file, and around the fit of a large one.

    python benchmarks/command.py            a CSV file of 300 rows and 8 columns
    python benchmarks/command.py --large    a CSV file of 100,000 rows and 20 columns

The seconds of the small file are those from the start of the command to its end: by default, with
`--jobs 1`, and for the first time on a machine, when neither Python nor Numba has compiled anything
of this package. With the large file, the preset "fast" and two runs, the share of reading the file
and of writing labels, posterior and report is largest.

Writes benchmarks/results/command.json, with --large command_large.json.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from gammagmm.cli.estimate import file_writers
from gammagmm.cli.fitting import fit_rows
from gammagmm.cli.options import Method, Outputs, Reading, Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import read_rows
from gammagmm.datasets import make_contaminated
from timing import SOURCE, best_seconds, measure


def write_rows(path, n_rows, n_columns):
    X = make_contaminated(n_rows, n_columns, 0.02, "global", random_state=0).X
    header = ",".join(f"x{j}" for j in range(n_columns))
    np.savetxt(path, X, delimiter=",", header=header, comments="", fmt="%.17g")


def run(source, caches, *arguments):
    """Run the command of the package in the folder `source`, with Numba's cache in `caches`."""
    command = [sys.executable, "-P", "-m", "gammagmm.cli.main", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(caches)}
    subprocess.run(command, env=environment, check=True, capture_output=True)


def first_time(folder, path):
    """Seconds of the command where nothing of the package is compiled; leaves it compiled."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "gammagmm", folder / "src" / "gammagmm", ignore=ignored)
    return best_seconds(partial(run, folder / "src", folder / "caches", "estimate", path))[0]


def command(quick):
    """Seconds of the whole command for a small file."""
    n_rows, n_columns, n_times = (60, 3, 1) if quick else (300, 8, 5)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "small.csv"
        write_rows(path, n_rows, n_columns)
        first = [first_time(folder / place, path) for place in ("a", "b")[: 1 if quick else 2]]
        usual = partial(run, folder / "a" / "src", folder / "a" / "caches", "estimate", path)
        # In turns, so that what else the machine does meanwhile slows both.
        pairs = [
            (best_seconds(usual)[0], best_seconds(partial(usual, "--jobs", 1))[0])
            for _ in range(n_times)
        ]
    default, one_job = (min(times) for times in zip(*pairs, strict=True))
    return {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "default_seconds": default,
        "one_job_seconds": one_job,
        "first_time_seconds": min(first),
    }


def command_large(quick):
    """Seconds of each step for a large file, and sizes of the files."""
    n_rows, n_columns = (200, 3) if quick else (100_000, 20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "rows.csv"
        write_rows(path, n_rows, n_columns)
        outputs = Outputs(
            out=folder / "labels.csv",
            report=folder / "report.html",
            posterior=folder / "posterior.json",
        )
        method = Method(detectors="fast", runs=2)
        request = Request(reading=Reading(paths=[str(path)]), method=method, outputs=outputs)
        start = time.perf_counter()
        table = read_rows(request.reading)
        read = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two runs of a trial may have no solution
            fit = fit_rows(table, request)
        fitted = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            print(answer_text(fit))
        for write in file_writers(request, fit):
            write()
        written = time.perf_counter()
        return {
            "n_rows": n_rows,
            "n_columns": n_columns,
            "csv_megabytes": path.stat().st_size / 1e6,
            "reading_seconds": read - start,
            "fit_seconds": fitted - read,
            "writing_seconds": written - fitted,
            "report_megabytes": outputs.report.stat().st_size / 1e6,
            "posterior_mean": fit.posterior.mean,
        }


if __name__ == "__main__":
    measure(__doc__, {"command": command}, {"command_large": command_large})
