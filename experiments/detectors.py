"""Every detector of the preset `paper` on every benchmark set, beside PyOD's own scores.

    python experiments/detectors.py

Writes experiments/results/detectors.csv, a row for each dataset and detector, as it goes; a run
that was stopped goes on where it ended. PyOD's own detector gets the same rows, the same seed and
at most LIMIT seconds.
AE and VAE are compared in deep_agreement.py.
"""

from __future__ import annotations

import csv
import time
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

from gammagmm._support.processes import OutOfTimeError, run_alone
from gammagmm.datasets import data_folder, load_benchmark
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import PRESETS, is_superlinear, resolve_detectors
from gammagmm.estimator.parameters import AUTO_FIT_ROWS

OUT = Path(__file__).parent / "results" / "detectors.csv"
COLUMNS = (
    *("dataset", "rows", "features", "detector", "status", "rows_fitted", "seconds"),
    *("pyod_seconds", "rows_equal_to_the_bit", "largest_difference", "rows_beyond_1e-9"),
)
SEED = 0
LIMIT = 120.0  # seconds for PyOD's own detector


def datasets():
    """Names of the benchmark sets, the smallest first."""
    paths = (data_folder() / "paper").glob("*.npz")
    return sorted((path.stem for path in paths), key=lambda name: load_benchmark(name).X.size)


def pyod_detector(name, seed):
    """PyOD's own detector at its defaults."""
    model = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    if name == "LSCP":
        lof = import_module("pyod.models.lof").LOF
        lofs = [lof(n_neighbors=k) for k in (10, 20, 30, 40)]
        return model(lofs, n_bins=len(lofs), random_state=seed)
    return model(random_state=seed) if name in ("IForest", "LODA") else model()


def our_rows(made, X):
    """The rows that our superlinear detectors are fitted on, and each detector's seed."""
    sample_rng, *children = np.random.default_rng(SEED).spawn(1 + len(made))
    rows = np.arange(len(X))
    if len(X) > AUTO_FIT_ROWS:
        rows = np.sort(sample_rng.choice(len(X), AUTO_FIT_ROWS, replace=False))
    seeds = [int(child.integers(2**31 - 1)) for child in children]
    return rows, dict(zip(made, seeds, strict=True))


def pyod_scores(name, X, seed):
    """PyOD's own training scores of the rows X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyOD's, whose cause our own classes do without
        return pyod_detector(name, seed).fit(X).decision_scores_


def compare(name, ours, X, seed):
    """How far our scores of the rows X, on which both were fitted, are from PyOD's."""
    start = time.perf_counter()
    try:
        theirs = run_alone(pyod_scores, name, X, seed, timeout=LIMIT)
    except OutOfTimeError:
        return {"pyod_seconds": f"> {LIMIT:.0f}"}
    difference = np.abs(ours - theirs)
    return {
        "pyod_seconds": round(time.perf_counter() - start, 2),
        "rows_equal_to_the_bit": int((ours == theirs).sum()),
        "largest_difference": float(difference.max()),
        "rows_beyond_1e-9": int((difference > 1e-9 * np.maximum(1.0, np.abs(theirs))).sum()),
    }


def study(dataset, done):
    """Rows of the table for one dataset that are not yet in it."""
    X = load_benchmark(dataset).X
    names = PRESETS["paper"]
    if all((dataset, name) in done for name in names):
        return
    made, _ = resolve_detectors("paper", len(X), AUTO_FIT_ROWS)
    settings = FitSettings(AUTO_FIT_ROWS, n_jobs=2)
    fitted = fit_detectors(made, X, np.random.default_rng(SEED), settings)
    sample, seeds = our_rows(made, X)
    columns = dict(zip(fitted.detectors, fitted.scores.T, strict=True))
    for info in fitted.info:
        if (dataset, info.name) in done:
            continue
        row = {"dataset": dataset, "rows": len(X), "features": X.shape[1], "detector": info.name}
        row |= {
            "status": info.status,
            "rows_fitted": info.n_rows,
            "seconds": round(info.seconds, 2),
        }
        if info.name not in ("AE", "VAE") and info.status == "ok":
            rows = sample if is_superlinear(made[info.name]) else np.arange(len(X))
            row |= compare(info.name, columns[info.name][rows], X[rows], seeds[info.name])
        yield row


def main():
    done = set()
    if OUT.exists():
        with OUT.open(newline="") as file:
            done = {(row["dataset"], row["detector"]) for row in csv.DictReader(file)}
    with OUT.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for dataset in datasets():
            for row in study(dataset, done):
                writer.writerow(row)
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()
