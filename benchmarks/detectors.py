"""Our detectors compared with plain PyOD, one at a time: `fit`, then `decision_function`.

    python benchmarks/detectors.py [presets] [growth] [large] [whole] [subsets]

Each part writes its figures into benchmarks/results/detectors.json when it is done; without
arguments all five run, in about an hour. Each detector of PyOD runs in a separate process that is
stopped after LIMIT seconds. Compare ratios: absolute times vary on shared machines.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gammagmm import GammaGMM
from gammagmm._support.processes import OutOfTimeError, run_alone
from gammagmm.datasets import load_benchmark
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import NAMES, PRESETS, resolve_detectors
from gammagmm.estimator.parameters import AUTO_FIT_ROWS
from gammagmm.mixture.score_space import fit_scaler

RESULTS = Path(__file__).parent / "results" / "detectors.json"
LIMIT = 100.0
LABELLED = [("pool", "shuttle"), ("pool", "http"), ("paper", "ALOI"), ("paper", "PenDigits")]
SUBSET_ROWS = (8_000, 5_000)
PYOD_NAMES = {"AE": ("auto_encoder", "AutoEncoder")}


def make_rows(n_rows, n_features=10, seed=0):
    """Rows in eight clusters; 2% of the rows are spread over the whole space."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(8, n_features))
    X = centres[rng.integers(8, size=n_rows)] + rng.normal(size=(n_rows, n_features))
    is_anomaly = rng.random(n_rows) < 0.02
    X[is_anomaly] = rng.uniform(-10.0, 10.0, size=(int(is_anomaly.sum()), n_features))
    return X


def pyod_scores(name, X):
    """Training scores of PyOD's detector, and the seconds of fit and scoring.

    The detector is at its defaults and has the seed that `our_fit` gives to a single detector.
    """
    seed = int(np.random.default_rng(0).spawn(2)[1].integers(2**31 - 1))
    from importlib import import_module

    import torch

    torch.set_num_threads(1)
    module, cls = PYOD_NAMES.get(name, (name.lower(), name))
    model = getattr(import_module(f"pyod.models.{module}"), cls)
    if name == "LSCP":
        from pyod.models.lof import LOF

        detector = model(
            [LOF(n_neighbors=k) for k in (10, 20, 30, 40)], n_bins=4, random_state=seed
        )
    elif name in ("AE", "VAE"):
        detector = model(random_state=seed, verbose=0)
    else:
        detector = model(random_state=seed) if name in ("IForest", "LODA") else model()
    if name in ("HBOS", "COPOD", "ECOD"):
        model().fit(X).decision_function(X)  # compiles
    start = time.perf_counter()
    detector.fit(X)
    scores = detector.decision_scores_
    detector.decision_function(X)
    return scores, time.perf_counter() - start


def pyod_or_limit(name, X):
    try:
        return run_alone(pyod_scores, name, X, timeout=LIMIT)
    except OutOfTimeError:
        return None, None


def our_fit(detectors, X, n_jobs=1, max_fit_rows="auto"):
    """Fitted detectors and wall seconds, as GammaGMM runs them."""
    start = time.perf_counter()
    is_auto = max_fit_rows == "auto"
    limit = AUTO_FIT_ROWS if is_auto else max_fit_rows
    made, _ = resolve_detectors(detectors, len(X), limit, is_auto)
    settings = FitSettings(limit, n_jobs=n_jobs, is_by_cost=is_auto)
    fitted = fit_detectors(made, X, np.random.default_rng(0), settings)
    return fitted, time.perf_counter() - start


def compare(name, X):
    """One detector, ours and PyOD's: seconds, ratio and rank agreement."""
    our_fit([name], X[:200])  # compiles and imports
    fitted, _ = our_fit([name], X)
    theirs, pyod_seconds = pyod_or_limit(name, X)
    seconds = fitted.info[0].seconds
    row = {"detector": name, "ours": seconds, "rows_fitted": fitted.info[0].n_rows}
    row["pyod"] = pyod_seconds if pyod_seconds else f"> {LIMIT:.0f}"
    row["ratio"] = (pyod_seconds or LIMIT) / seconds
    row["spearman"] = None if theirs is None else spearmanr(fitted.scores[:, 0], theirs)[0]
    print(len(X), row, flush=True)
    return row


def presets():
    """PageBlocks: each detector, and each preset on two cores against PyOD's sum."""
    X = load_benchmark("PageBlocks").X
    rows = {name: compare(name, X) for name in NAMES}
    found = {"detectors": list(rows.values())}
    for preset, names in PRESETS.items():
        plain = sum(rows[name]["pyod"] for name in names)
        first = run_alone(seconds_of, preset, X)
        found[preset] = {"pyod": plain, "new_process": first[0], "second_fit": first[1]}
        found[preset] |= {"ratio_new_process": plain / first[0], "ratio": plain / first[1]}
        print(preset, found[preset], flush=True)
    return found


def seconds_of(preset, X):
    """Seconds of a fit in a new process, and of the shorter of two more fits."""
    first, *others = (our_fit(preset, X, n_jobs=2)[1] for _ in range(3))
    return first, min(others)


def growth():
    """Each detector at 1,000 to 100,000 rows of ten features."""
    found = {}
    for n_rows in (1_000, 5_000, 20_000, 100_000):
        X = make_rows(n_rows)
        found[n_rows] = [compare(name, X) for name in NAMES]
    return found


def large():
    """100,000 rows with `classic`, one million with `fast`: seconds and memory."""
    found = {}
    for preset, n_rows in (("classic", 100_000), ("fast", 1_000_000)):
        X = make_rows(n_rows)
        with Memory() as memory:
            fitted, seconds = our_fit(preset, X, n_jobs=2)
        found[f"{preset} {n_rows}"] = {
            "seconds": seconds,
            "peak_gigabytes": memory.peak / 1e9,
            "detectors": {info.name: info.seconds for info in fitted.info},
        }
        print(found[f"{preset} {n_rows}"], flush=True)
    return found


def whole():
    """A whole GammaGMM.fit with ten runs, and where its time goes."""
    found = {}
    for n_rows in (10_000, 100_000):  # the second takes a quarter of an hour or more
        X, events = make_rows(n_rows), []
        began = time.perf_counter()

        def hear(name, state, seconds, events=events, began=began):
            events.append((name, state, time.perf_counter() - began))

        estimator = GammaGMM(random_state=0, n_jobs=2, progress=hear).fit(X)
        seconds = time.perf_counter() - began
        found[n_rows] = {
            "seconds": seconds,
            "detectors": events[-1][2],
            "mixtures": seconds - events[-1][2],
            "each_detector": {info.name: info.seconds for info in estimator.detector_info_},
            "iterations": sum(run.n_iter for run in estimator.runs_),
            "posterior": repr(estimator.posterior_),
        }
        print(n_rows, found[n_rows], flush=True)
    return found


def subsets():
    """LSCP and OCSVM fitted on fewer rows: rank correlation with all rows, and areas under ROC.

    The consensus is that of `classic` with one detector fitted on fewer rows. A fit on all rows
    with another seed shows what chance does.
    """
    found = []
    for collection, name in LABELLED:
        data = load_benchmark(name, collection)
        fitted, _ = our_fit("classic", data.X, n_jobs=2, max_fit_rows=None)
        for detector in ("LSCP", "OCSVM"):
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
    return found


def seeded_fit(detector, X, n_fit, seed=0):
    """One detector fitted on random rows, or on all if `n_fit` is None."""
    made, _ = resolve_detectors([detector], len(X), n_fit)
    return fit_detectors(made, X, np.random.default_rng(seed), FitSettings(n_fit))


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


class Memory:
    """Peak memory of this process and its children, in bytes, inside the context."""

    def __enter__(self):
        self.peak, self._done = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        import psutil

        while not self._done.wait(0.1):
            total = 0
            own = psutil.Process()
            for process in (own, *own.children(recursive=True)):
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)


def main():
    parts = {"presets": presets, "growth": growth, "large": large, "whole": whole}
    parts["subsets"] = subsets
    for name in sys.argv[1:] or parts:
        found = parts[name]()
        figures = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(figures | {name: found}, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
