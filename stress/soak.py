"""Many fits in one process: the memory it holds after the first of them and after the last.

python -m stress.soak
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gammagmm import GammaGMM
from gammagmm.errors import GammaGMMWarning
from stress.starts import grouped_scores

RESULTS = Path(__file__).parent / "results" / "soak.json"
N_FITS, N_WARM_UP = 300, 30
MAX_GROWTH = 0.05


def fit_once(rng: np.random.Generator) -> None:
    """A fit, from rows or from scores in turn, and every kind of answer."""
    X = grouped_scores(int(rng.integers(100, 500)), 4, rng)
    detectors = "precomputed" if rng.random() < 0.5 else "fast"
    parameters = {"n_components": 20, "n_runs": 2, "max_restarts": 2, "n_jobs": 2}
    estimator = GammaGMM(detectors, **parameters, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # Runs without a solution are no matter here.
        warnings.simplefilter("ignore", GammaGMMWarning)
        estimator.fit(X)
    estimator.predict_proba(X[:50])
    estimator.posterior_.sample(1000, rng)
    estimator.posterior_.interval()
    estimator.summary()


def soak(n_fits: int, n_warm_up: int, seed: int = 0) -> dict[str, Any]:
    """Resident memory, in MiB, after the warm-up and at the end of `n_fits` fits.

    Each is the median over as many fits as the warm-up has: the fits differ in size, and so does
    what the allocator keeps from one to the next.
    """
    rng, process = np.random.default_rng(seed), psutil.Process()
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


def main(arguments: list[str] | None = None) -> int:
    """Write what was found; 1 where memory grew by more than MAX_GROWTH."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=N_FITS)
    parser.add_argument("--warm-up", type=int, default=N_WARM_UP)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    found = soak(options.fits, options.warm_up)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(json.dumps(found))
    return int(found["growth"] > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
