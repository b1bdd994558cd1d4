"""The time that reading a file and writing labels, posterior and report add to a fit.

    python benchmarks/command.py

A CSV file of 100,000 rows and 20 columns, the preset `fast` and two runs, the fewest that a fit can
reasonably have: the share of the overhead is largest. Writes benchmarks/results/command.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np

from gammagmm.cli.estimate import file_writers, fit_rows
from gammagmm.cli.options import Method, Outputs, Reading, Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import read_rows
from gammagmm.datasets import make_contaminated

OUT = Path(__file__).parent / "results" / "command.json"
N_ROWS, N_COLUMNS = 100_000, 20


def write_rows(path):
    X = make_contaminated(N_ROWS, N_COLUMNS, 0.02, "global", random_state=0).X
    header = ",".join(f"x{j}" for j in range(N_COLUMNS))
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


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(found)


if __name__ == "__main__":
    main()
