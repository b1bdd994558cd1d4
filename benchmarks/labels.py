"""Times of the questions about labels, and of the command line with a kept fit.

    python benchmarks/labels.py

Writes benchmarks/results/labels.json.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from gammagmm import GammaGMM
from tables import make_rows
from timing import SOURCE, measure

N_LABELS = 30
N_TEACHING = 100


def questions(n_rows, n_times):
    """Median seconds for rows to label, the posterior with their labels, and the next width."""
    rng = np.random.default_rng(0)
    scores = np.exp(rng.normal(size=(n_rows, 8)) + rng.normal(size=(n_rows, 1)))
    settings = {"n_runs": 1, "max_mixture_rows": 1000, "random_state": 0, "learn": False}
    seconds = []
    for _ in range(n_times):
        fitted = GammaGMM("precomputed", **settings).fit(scores)
        start = time.perf_counter()
        rows = fitted.suggest(N_LABELS, random_state=0)
        chosen = time.perf_counter()
        fitted.update(rows, np.arange(N_LABELS) < 2)
        updated = time.perf_counter()
        fitted.labelled_rows_.expected_width(N_LABELS)
        seconds.append((chosen - start, updated - chosen, time.perf_counter() - updated))
    suggest, update, width = map(statistics.median, zip(*seconds, strict=True))
    return {"suggest_seconds": suggest, "update_seconds": update, "width_seconds": width}


def teaching(n_rows, n_times):
    """Median seconds of `update` with a learned ranking, and of new rows before and after it.

    The detectors are those of the preset with the fastest scores, which makes the difference large.
    """
    X, new = make_rows(n_rows), make_rows(n_rows)
    fitted = GammaGMM("fast", n_runs=1, max_mixture_rows=1000, random_state=0).fit(X)
    consensus = [seconds_of(fitted.decision_function, new) for _ in range(n_times)]
    rows = fitted.suggest(N_TEACHING, random_state=0)
    # Rows that are far away in one column are called anomalies.
    labels = X[rows, 0] >= np.sort(X[rows, 0])[-N_TEACHING // 10]
    before, updates = fitted.fit_, []
    for _ in range(n_times):
        updates.append(seconds_of(before.update, rows, labels))
    fitted.update(rows, labels)
    learned = [seconds_of(fitted.decision_function, new) for _ in range(n_times)]
    return {
        "teaching_labels": N_TEACHING,
        "ranking": fitted.fit_.ranking,
        "learn_seconds": statistics.median(updates),
        "consensus_seconds": statistics.median(consensus),
        "learned_seconds": statistics.median(learned),
    }


def seconds_of(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def commands(n_rows, n_times):
    """Median seconds of `label`, and of `estimate --labels` with the fit that it has kept."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        np.savetxt(here / "rows.csv", make_rows(n_rows), delimiter=",", fmt="%.6f")
        sheet, seconds = here / "to_label.csv", []
        for _ in range(n_times):
            first = run(here, "label", "rows.csv", "--sheet-only", "--force")
            lines = list(csv.reader(sheet.read_text().splitlines()))
            with sheet.open("w", newline="") as file:
                csv.writer(file).writerows([lines[0], *([*line[:-1], "0"] for line in lines[1:])])
            seconds.append((first, run(here, "estimate", "rows.csv", "--labels", sheet.name)))
            sheet.with_suffix(".fit").unlink()
    first, second = map(statistics.median, zip(*seconds, strict=True))
    return {"inspect_seconds": first, "inspected_seconds": second}


def run(folder, *arguments):
    """Seconds that a command takes."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "gammagmm.cli.main", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
    )
    return time.perf_counter() - start


def labels(quick):
    """All of it, for a large and for a middling table."""
    n_rows, n_command_rows, n_times = (2000, 300, 1) if quick else (100_000, 3000, 5)
    return {
        "rows": n_rows,
        "command_rows": n_command_rows,
        "times": n_times,
        **questions(n_rows, n_times),
        **teaching(n_rows, n_times),
        **commands(n_command_rows, n_times),
    }


if __name__ == "__main__":
    measure(__doc__, {"labels": labels})
