"""Our detectors compared with PyOD's, one at a time, and the work of the slow ones.

    python benchmarks/detectors.py            each detector on PageBlocks and 20,000 × 40 rows
    python benchmarks/detectors.py --large    slow ones there; LSCP and OCSVM with fewer rows

Writes benchmarks/results/same_process.json and costs.json, with --large slow_detectors.json and
subsets.json.
"""

from __future__ import annotations

import os
import time
from functools import partial
from importlib import import_module
from statistics import median

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gammagmm._support.processes import one_thread
from gammagmm.datasets import make_contaminated
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import (
    LEAST_FIT_ROWS,
    MORE_COLUMNS,
    PRESETS,
    plan_rows,
    resolve_detectors,
)
from gammagmm.mixture.score_space import fit_scaler
from tables import make_rows
from timing import measure

LABELLED = [("pool", "shuttle"), ("pool", "http"), ("paper", "ALOI"), ("paper", "PenDigits")]
SUBSET_ROWS = (8_000, 5_000)
PYOD_NAMES = {"AE": ("auto_encoder", "AutoEncoder")}
N_REPEATS = 5
LARGE_SHAPE = (20_000, 40)
SLOW = ("OCSVM", "LSCP")
"""Those that are fitted once to the large table, in the part `slow_detectors`."""
COSTS = {
    "KNN": ((20_000, 10), (50_000, 10), (20_000, 40), (20_000, 100)),
    "LSCP": ((2_000, 50), (5_000, 10), (5_000, 40), (10_000, 10), (10_000, 20), (50_000, 3)),
}
COSTS |= {"LOF": COSTS["KNN"], "OCSVM": COSTS["KNN"]}
"""Sizes of the tables for which the slow detectors are measured."""


def pyod_detector(name):
    """A function that makes PyOD's detector, with the seed that `our_fit` gives to a single one."""
    seed = int(np.random.default_rng(0).spawn(2)[1].integers(2**31 - 1))
    module, cls = PYOD_NAMES.get(name, (name.lower(), name))
    model = getattr(import_module(f"pyod.models.{module}"), cls)
    if name == "LSCP":
        from pyod.models.lof import LOF

        lofs = [LOF(n_neighbors=k) for k in (10, 20, 30, 40)]
        return partial(model, lofs, n_bins=4, random_state=seed)
    if name in ("AE", "VAE"):
        return partial(model, random_state=seed, verbose=0)
    return partial(model, random_state=seed) if name in ("IForest", "LODA") else model


def our_fit(detectors, X, n_jobs=1, max_fit_rows="auto"):
    """Fitted detectors, and the seconds of the processor, as GammaGMM runs them."""
    start = time.process_time()
    rows = plan_rows(detectors, *X.shape, max_fit_rows)
    made, _ = resolve_detectors(detectors, len(X), rows)
    settings = FitSettings(rows, n_jobs=n_jobs)
    fitted = fit_detectors(made, X, np.random.default_rng(0), settings)
    return fitted, time.process_time() - start


def same_process(quick):
    """Each detector of `classic` and `fast`, ours and PyOD's in turns, on one thread: medians.

    Both only fit, which gives the scores of the training rows. IForest, LODA and PCA are PyOD's.
    What a fit of `GammaGMM` does around each detector, such as copying the rows, is not counted.
    """
    from experiments.datasets import load_benchmark

    n_repeats = 1 if quick else N_REPEATS
    large = (150, 3) if quick else LARGE_SHAPE
    tables = [make_rows(150) if quick else load_benchmark("PageBlocks").X]
    tables.append(make_rows(large[0], n_columns=large[1]))
    names = dict.fromkeys(["KNN", "HBOS"] if quick else PRESETS["classic"] + PRESETS["fast"])
    found = []
    for X in tables:
        for name in names:
            if name not in SLOW or len(X) < large[0]:
                found.append(in_turns(name, X, n_repeats))
                print(found[-1], flush=True)
    return {"n_repeats": n_repeats, "detectors": found}


def slow_detectors(quick):
    """The detectors that take long on the large table, ours and PyOD's: one fit each."""
    n_rows, n_columns = (150, 3) if quick else LARGE_SHAPE
    X, found = make_rows(n_rows, n_columns=n_columns), []
    for name in SLOW:
        in_turns(name, X[:150], 1)  # compiles
        found.append(in_turns(name, X, 1, n_first=0))
        print(found[-1], flush=True)
    return {"n_repeats": 1, "detectors": found}


def in_turns(name, X, n_repeats, n_first=1):
    """Median seconds of our fit and of PyOD's, after `n_first`, and how far the scores differ.

    On one thread, the processor's time is that of the clock on a machine that does nothing else.
    """
    make, ours, theirs = pyod_detector(name), [], []
    with one_thread():
        for _ in range(n_first + n_repeats):
            our, their = resolve_detectors([name], len(X))[0][name], make()
            if hasattr(their, "random_state"):
                our.random_state = their.random_state
            for detector, times in ((our, ours), (their, theirs)):
                start = time.process_time()
                detector.fit(X)
                times.append(time.process_time() - start)
    seconds = {"ours": median(ours[n_first:]), "pyod": median(theirs[n_first:])}
    shape = {"detector": name, "n_rows": len(X), "n_columns": X.shape[1]}
    difference = float(np.abs(our.decision_scores_ - their.decision_scores_).max())
    return shape | seconds | {"ratio": seconds["pyod"] / seconds["ours"], "difference": difference}


def costs(quick):
    """What `presets.plan_rows` assumes: seconds of each slow detector, and of a unit of its work.

    They are seconds of the processor on one thread. The unit is a column of a pair of rows, in
    nanoseconds; of LSCP, a value of a scored row, in microseconds; of OCSVM also a column of a pair
    of rows in its training.
    """
    found = []
    for name, shapes in {"KNN": ((150, 3),)}.items() if quick else COSTS.items():
        n_fit = 100 if quick else LEAST_FIT_ROWS
        our_fit([name], make_rows(LEAST_FIT_ROWS), max_fit_rows=None)  # compiles and imports
        for n_rows, n_columns in shapes:
            X = make_rows(n_rows, n_columns=n_columns)
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            limit = None if name == "LSCP" else n_fit
            seconds = our_fit([name], X, max_fit_rows=limit)[1]
            row = {"detector": name, "n_rows": n_rows, "n_columns": n_columns, "seconds": seconds}
            width = n_columns + MORE_COLUMNS
            if name == "LSCP":
                row["unit"] = 1e6 * seconds / X.size
            elif name == "OCSVM":
                fit = our_fit([name], X[:n_fit], max_fit_rows=None)[1]
                row["unit"] = 1e9 * (seconds - fit) / ((n_rows - n_fit) * n_fit * width)
                row["training_unit"] = 1e9 * fit / (n_fit**2 * width)
            else:
                row["unit"] = 1e9 * seconds / (n_rows * n_fit * width)
            found.append(row)
            print(row, flush=True)
    return {"rows_fitted": n_fit, "rows": found}


def subsets(quick):
    """LSCP and OCSVM fitted on fewer rows: rank correlation with all rows, and areas under ROC.

    The consensus is that of `classic` with one detector fitted on fewer rows. A fit on all rows
    with another seed shows what chance does.
    """
    found = []
    for name, data in [("made", made_dataset())] if quick else labelled_datasets():
        preset, slow = (["KNN", "OCSVM"], ["OCSVM"]) if quick else ("classic", ["LSCP", "OCSVM"])
        fitted, _ = our_fit(preset, data.X, n_jobs=os.cpu_count(), max_fit_rows=None)
        for detector in slow:
            whole = seeded_fit(detector, data.X, None)
            seeds = {"all rows": (None, 0), "all rows, another seed": (None, 1)}
            seeds |= {str(n_fit): (n_fit, 0) for n_fit in SUBSET_ROWS}
            for rows_fitted, (n_fit, seed) in seeds.items():
                row = {"dataset": name, "rows": len(data.X), "detector": detector}
                row["rows_fitted"] = rows_fitted
                is_whole = rows_fitted == "all rows"
                part = whole if is_whole else seeded_fit(detector, data.X, n_fit, seed)
                found.append(row | ranking(fitted, data.y, whole, part))
                print(found[-1], flush=True)
    return {"rows": found}


def labelled_datasets():
    from experiments.datasets import load_benchmark

    return [(name, load_benchmark(name, collection)) for collection, name in LABELLED]


def made_dataset():
    return make_contaminated(150, 3, 0.1, "global", random_state=0)


def seeded_fit(detector, X, n_fit, seed=0):
    """One detector fitted on random rows, or on all if `n_fit` is None."""
    rows = plan_rows([detector], *X.shape, n_fit)
    made, _ = resolve_detectors([detector], len(X), rows)
    return fit_detectors(made, X, np.random.default_rng(seed), FitSettings(rows))


def ranking(classic, y, whole, part):
    """Figures of the detector of `part` beside `whole`, and of the consensus with it."""
    if not part.detectors:
        return {"skipped": part.info[0].reason}
    (name,), column = part.detectors, part.scores[:, 0]
    scores = classic.scores.copy()
    scores[:, list(classic.detectors).index(name)] = column
    consensus = fit_scaler(scores).transform(scores).mean(axis=1)
    return {
        "spearman": spearmanr(column, whole.scores[:, 0])[0],
        "auc": roc_auc_score(y, column),
        "auc_consensus": roc_auc_score(y, consensus),
    }


if __name__ == "__main__":
    large = {"slow_detectors": slow_detectors, "subsets": subsets}
    measure(__doc__, {"same_process": same_process, "costs": costs}, large)
