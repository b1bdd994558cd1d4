"""A whole fit in a new process, by the present code or by that of an earlier commit.

This module imports only what both have.
"""

from __future__ import annotations

import os
import time
import warnings

import numpy as np

from gammagmm import GammaGMM


def whole_fit(rows, detectors, scores=None, n_runs=10):
    """In a new process: seconds of a fit in all and by phase; keeps the raw scores in a file."""
    X, ends, each = np.load(rows), {"detectors": 0.0, "mixtures": 0.0}, [0.0]

    def hear(subject, state, seconds):
        phase = "mixtures" if subject.startswith("run ") else "detectors"
        ends[phase] = time.perf_counter() - began
        if phase == "detectors":
            each.append(seconds)

    estimator = GammaGMM(
        detectors, n_runs=n_runs, random_state=0, n_jobs=os.cpu_count(), progress=hear
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        estimator.fit(X)
        seconds = time.perf_counter() - began
    if scores is not None:
        np.save(scores, estimator.scores_)
    return {
        "seconds": seconds,
        "detectors_seconds": ends["detectors"],
        "longest_detector_seconds": max(each),
        "mixtures_seconds": ends["mixtures"] - ends["detectors"],
        "iterations": sum(run.n_iter for run in estimator.fit_.runs),
        "not_converged": sum(not run.converged for run in estimator.fit_.runs),
        "posterior_mean": estimator.posterior_.mean,
    }
