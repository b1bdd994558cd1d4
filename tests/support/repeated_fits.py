"""Many fits in one process, and the memory, files and threads that it holds afterwards."""

from __future__ import annotations

import gc
import time
import warnings
from typing import Any

import numpy as np
import psutil

from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning
from tests.support.random_tables import grouped_scores

__all__ = ["fit_repeatedly"]


def fit_repeatedly(n_fits: int, n_warm_up: int) -> dict[str, Any]:
    """Resident memory in MiB after the first `n_warm_up` fits and after all `n_fits` fits.

    Both are medians over `n_warm_up` fits, because the fits differ in size and the allocator keeps
    a different amount of memory after each of them.
    """
    rng, process = np.random.default_rng(0), psutil.Process()
    began, curve = time.perf_counter(), []
    for _ in range(n_fits):
        fit_once(rng)
        gc.collect()
        curve.append(process.memory_info().rss / 2**20)
    first = float(np.median(curve[n_warm_up : 2 * n_warm_up]))
    last = float(np.median(curve[-n_warm_up:]))
    return {
        "fits": n_fits,
        "warm_up": n_warm_up,
        "seconds": round(time.perf_counter() - began, 1),
        "mib_after_warm_up": round(first, 1),
        "mib_at_the_end": round(last, 1),
        "growth": round(last / first - 1.0, 4),
        "curve": [round(size, 1) for size in curve[:: max(n_fits // 20, 1)]],
        "open_files": process.num_fds(),
        "threads": process.num_threads(),
    }


def fit_once(rng: np.random.Generator) -> None:
    """Fit on random rows or scores, and ask for every kind of answer."""
    X = grouped_scores(int(rng.integers(100, 500)), 4, rng)
    detectors = "precomputed" if rng.random() < 0.5 else "fast"
    parameters = {"n_components": 20, "n_runs": 2, "max_restarts": 2, "n_jobs": 2}
    estimator = GammaGMM(detectors, **parameters, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # Some runs have no solution, which does not matter here.
        warnings.simplefilter("ignore", GammaGMMWarning)
        estimator.fit(X)
    estimator.predict_proba(X[:50])
    estimator.posterior_.sample(1000, rng)
    estimator.posterior_.interval()
    estimator.summary()
