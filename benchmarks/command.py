"""The time of the command line: around the fit of a large file, and in all for a small one.

    python benchmarks/command.py            both
    python benchmarks/command.py --small    only the small file

The large file is a CSV file of 100,000 rows and 20 columns. With the preset `fast` and two runs,
the fewest that a fit can reasonably have, the share of reading the file and of writing labels,
posterior and report is largest.

The small file has 300 rows and 8 columns. Its seconds are those from the start of the command to
its end: by default, with `--jobs 1`, and for the first time on a machine, when neither Python nor
Numba has compiled anything of this package. The shortest of five counts, two of the first time.

Writes benchmarks/results/command.json.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np

import gammagmm
from gammagmm.cli.estimate import file_writers, fit_rows
from gammagmm.cli.options import Method, Outputs, Reading, Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import read_rows
from gammagmm.datasets import make_contaminated

OUT = Path(__file__).parent / "results" / "command.json"
N_ROWS, N_COLUMNS = 100_000, 20
N_SMALL_ROWS, N_SMALL_COLUMNS = 300, 8


def write_rows(path, n_rows=N_ROWS, n_columns=N_COLUMNS):
    X = make_contaminated(n_rows, n_columns, 0.02, "global", random_state=0).X
    header = ",".join(f"x{j}" for j in range(n_columns))
    np.savetxt(path, X, delimiter=",", header=header, comments="", fmt="%.17g")


def measure(folder):
    """Seconds of each step, and sizes of the files."""
    path = folder / "rows.csv"
    write_rows(path)
    request = Request(
        reading=Reading(paths=[str(path)]),
        method=Method(detectors="fast", runs=2),
        outputs=Outputs(
            labels=folder / "labels.csv",
            report=folder / "report.html",
            posterior=folder / "posterior.json",
        ),
    )
    start = time.perf_counter()
    X, origin = read_rows(request.reading)
    read = time.perf_counter()
    fit = fit_rows(X, origin, request, partial(print, file=sys.stderr))
    fitted = time.perf_counter()
    with redirect_stdout(StringIO()):
        print(answer_text(fit, origin))
    for write in file_writers(X, origin, request, fit):
        write()
    written = time.perf_counter()
    return {
        "rows": N_ROWS,
        "columns": N_COLUMNS,
        "csv_bytes": path.stat().st_size,
        "reading_s": round(read - start, 2),
        "fit_s": round(fitted - read, 2),
        "writing_s": round(written - fitted, 2),
        "overhead_share": round((read - start + written - fitted) / (written - start), 3),
        "report_bytes": request.outputs.report.stat().st_size,
        "mean": round(fit.posterior.mean, 4),
    }


def seconds(source, *arguments):
    """Time of the command with these arguments, by the package in the folder `source`."""
    command = [sys.executable, "-P", "-m", "gammagmm.cli.main", *map(str, arguments)]
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(source)}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def measure_small(folder):
    """Seconds of the whole command for a small file, and for the first time on a machine."""
    path, package = folder / "small.csv", Path(gammagmm.__file__).parent
    write_rows(path, N_SMALL_ROWS, N_SMALL_COLUMNS)
    first = []
    for copy in (folder / "first", folder / "second"):
        shutil.copytree(package, copy / "gammagmm", ignore=shutil.ignore_patterns("__pycache__"))
        first.append(seconds(copy, "estimate", path))
    # In turns, so that what else the machine does meanwhile slows both.
    pairs = [
        (seconds(copy, "estimate", path), seconds(copy, "estimate", path, "--jobs", 1))
        for _ in range(5)
    ]
    default, one_job = (min(times) for times in zip(*pairs, strict=True))
    return {
        "rows": N_SMALL_ROWS,
        "columns": N_SMALL_COLUMNS,
        "default_s": round(default, 2),
        "one_job_s": round(one_job, 2),
        "first_time_s": round(min(first), 2),
    }


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = json.loads(OUT.read_text()) if "--small" in sys.argv else measure(Path(folder))
        found["small_file"] = measure_small(Path(folder))
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(found)


if __name__ == "__main__":
    main()
