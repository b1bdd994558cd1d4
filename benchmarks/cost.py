"""Seconds of each detector and of a variational run, for the time that progress bars show.

    python benchmarks/cost.py        1,000 to 100,000 rows with 5 and 20 columns

Each time is that of one process; imports and compilation are not counted. The seconds are
described as in gammagmm/estimator/cost.py, by least squares of the logarithms; the columns of a
run are its detectors. Writes benchmarks/results/cost.json, whose table is that of the package: a
test compares the two.
"""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np

from gammagmm import GammaGMM
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import NAMES, resolve_detectors
from gammagmm.estimator.cost import MANY_ROWS
from gammagmm.estimator.parameters import AUTO_FIT_ROWS
from timing import measure

ROWS, COLUMNS = (1_000, 5_000, 20_000), (5, 20)
LARGE = (100_000, 5)
N_RUNS = 2
NETWORKS = ("AE", "VAE")
NETWORK_ROWS = (1_000, 4_000)
"""Networks take linear time in the rows."""


def make_rows(n_rows, n_columns, seed=0):
    """Rows in eight clusters; 2% of the rows are spread over the whole space."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(8, n_columns))
    X = centres[rng.integers(8, size=n_rows)] + rng.normal(size=(n_rows, n_columns))
    is_anomaly = rng.random(n_rows) < 0.02
    X[is_anomaly] = rng.uniform(-10.0, 10.0, size=(int(is_anomaly.sum()), n_columns))
    return X


def fit_one(name, X):
    """Seconds of a detector, and its scores (n, 1)."""
    made, _ = resolve_detectors([name], len(X), AUTO_FIT_ROWS, X.shape[1])
    settings = FitSettings(AUTO_FIT_ROWS, n_jobs=1, is_by_cost=True)
    fitted = fit_detectors(made, X, np.random.default_rng(0), settings)
    return fitted.info[0].seconds, fitted.scores


def run_seconds(scores):
    """Seconds of one of N_RUNS variational runs, which are fitted together."""
    estimator = GammaGMM(
        "precomputed", n_runs=N_RUNS, max_restarts=0, random_state=0, max_mixture_rows=None
    )
    began = time.perf_counter()
    estimator.fit(scores)
    return (time.perf_counter() - began) / N_RUNS


def power_law(seconds):
    """The description of `seconds`, which are triples of rows, columns and seconds."""
    rows, columns, took = np.array(seconds).T
    few, many = np.minimum(rows, MANY_ROWS) / 1_000, np.maximum(rows / MANY_ROWS, 1.0)
    logs = np.log([np.full(len(rows), np.e), few, columns / 10, many]).T
    if not logs[:, -1].any():
        logs = logs[:, :-1]
    solved = np.linalg.lstsq(logs, np.log(took), rcond=None)[0]
    names = ("factor", "rows", "columns", "many_rows")
    found = dict(zip(names, (np.exp(solved[0]), *solved[1:]), strict=False))
    # What was not measured with many rows grows as it does with few.
    found.setdefault("many_rows", found["rows"])
    return {name: float(f"{value:.2g}") for name, value in found.items()}


def detector_seconds(names, sizes):
    """Triples of rows, columns and seconds for each detector, and the scores for each size."""
    seconds, scores = {name: [] for name in names}, {}
    for name in names:
        for n_columns in COLUMNS:
            fit_one(name, make_rows(sizes[0][0], n_columns))  # compiles
        for n_rows, n_columns in sizes:
            took, found = fit_one(name, make_rows(n_rows, n_columns))
            seconds[name].append([n_rows, n_columns, took])
            scores.setdefault((n_rows, n_columns), []).append(found)
    return seconds, scores


def cost(quick):
    """The description of each detector and of a run, and the seconds that it is fitted to."""
    sizes, network_sizes = (
        list(product((300, 600) if quick else rows, COLUMNS)) for rows in (ROWS, NETWORK_ROWS)
    )
    others = [name for name in NAMES if name not in NETWORKS][: 2 if quick else None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, scores = detector_seconds(others, sizes if quick else [*sizes, LARGE])
        seconds |= {} if quick else detector_seconds(NETWORKS, network_sizes)[0]
        seconds["run"] = []
        for size in sizes:
            columns = np.column_stack(scores[size])
            for some in (columns[:, : columns.shape[1] // 2], columns):
                seconds["run"].append([size[0], some.shape[1], run_seconds(some)])
    return {"table": {name: power_law(s) for name, s in seconds.items()}, "seconds": seconds}


if __name__ == "__main__":
    measure(__doc__, {"cost": cost})
