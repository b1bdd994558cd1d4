"""Seconds of each detector and of a variational run, for the time that progress bars show.

    python benchmarks/cost.py        1,000 to a million rows with 5 to 20 columns

Each time is that of the processor on one thread, of networks that of the clock; imports
and compilation are not counted. The seconds are described as in gammagmm/estimator/cost.py, by
least squares of the logarithms; the
columns of a run are its detectors. Writes benchmarks/results/cost.json, whose table is that of the
package: a test compares the two.
"""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np

from gammagmm import GammaGMM
from gammagmm._support.processes import one_thread
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import AUTO_FIT_ROWS, NAMES, plan_rows, resolve_detectors
from tables import make_rows
from timing import measure

ROWS, COLUMNS = (1_000, 5_000, 20_000), (5, 20)
LARGE = ((100_000, 5), (100_000, 20), (1_000_000, 10))
N_RUNS = 2
NETWORKS = ("AE", "VAE")
NETWORK_ROWS = (1_000, 4_000)
"""Networks take linear time in the rows."""


def standardised_rows(n_rows, n_columns):
    X = make_rows(n_rows, n_columns)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def rows_fitted(name, n_rows, n_columns):
    return plan_rows([name], n_rows, n_columns, "auto").n_fit[name]


def fit_one(name, X):
    """Processor seconds of a detector on one thread, and its scores (n, 1)."""
    rows = plan_rows([name], *X.shape, "auto")
    made, _ = resolve_detectors([name], len(X), rows)
    began = time.process_time()
    fitted = fit_detectors(made, X, np.random.default_rng(0), FitSettings(rows, n_jobs=1))
    took = time.process_time() - began
    # Networks train in a process of their own.
    return fitted.info[0].seconds if name in NETWORKS else took, fitted.scores


def run_seconds(scores):
    """Processor seconds of one of N_RUNS variational runs, which are fitted together."""
    estimator = GammaGMM(
        "precomputed", n_runs=N_RUNS, max_restarts=0, random_state=0, max_mixture_rows=None
    )
    began = time.process_time()
    estimator.fit(scores)
    return (time.process_time() - began) / N_RUNS


def power_law(seconds):
    """The description of `seconds`: tuples of rows, columns, fitted rows and seconds."""
    rows, columns, fitted, took = np.array(seconds).T
    few = np.minimum(fitted, AUTO_FIT_ROWS)
    logs = np.log([np.full(len(rows), np.e), few / 1_000, columns / 10, rows / few]).T
    if not logs[:, -1].any():
        logs = logs[:, :-1]
    solved = np.linalg.lstsq(logs, np.log(took), rcond=None)[0]
    names = ("factor", "rows", "columns", "more_rows")
    found = dict(zip(names, (np.exp(solved[0]), *solved[1:]), strict=False))
    # What was not measured with many rows grows as it does with few.
    found.setdefault("more_rows", found["rows"])
    return {name: float(f"{value:.2g}") for name, value in found.items()}


def detector_seconds(names, sizes, large=()):
    """Rows, columns, fitted rows and seconds for each detector, and the scores for each size."""
    seconds, scores = {name: [] for name in names}, {}
    for name in names:
        for n_columns in COLUMNS:
            fit_one(name, standardised_rows(sizes[-1][0], n_columns))  # compiles
        for n_rows, n_columns in (*sizes, *large[: 1 if name == "LSCP" else None]):
            took, found = fit_one(name, standardised_rows(n_rows, n_columns))
            n_fit = rows_fitted(name, n_rows, n_columns)
            seconds[name].append([n_rows, n_columns, n_fit, took])
            print(name, *seconds[name][-1], flush=True)
            scores.setdefault((n_rows, n_columns), []).append(found)
    return seconds, scores


def cost(quick):
    """The description of each detector and of a run, and the seconds that it is fitted to."""
    sizes, network_sizes = (
        list(product((300, 600) if quick else rows, COLUMNS)) for rows in (ROWS, NETWORK_ROWS)
    )
    others = [name for name in NAMES if name not in NETWORKS][: 2 if quick else None]
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        seconds, scores = detector_seconds(others, sizes, () if quick else LARGE)
        seconds |= {} if quick else detector_seconds(NETWORKS, network_sizes)[0]
        seconds["run"] = []
        for size in sizes:
            columns = np.column_stack(scores[size])
            for some in (columns[:, : columns.shape[1] // 2], columns):
                seconds["run"].append([size[0], some.shape[1], size[0], run_seconds(some)])
    return {"table": {name: power_law(s) for name, s in seconds.items()}, "seconds": seconds}


if __name__ == "__main__":
    measure(__doc__, {"cost": cost})
