"""Rows with a few anomalies, a fit of detectors on them, and detectors that fail."""

from __future__ import annotations

import os
import time

import numpy as np
from sklearn.base import BaseEstimator

from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import plan_rows, resolve_detectors
from gammagmm.detectors.usable import keep_usable
from tests.support.needs import KILL


def make_X(n_rows=120, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[: n_rows // 20] += 6.0
    return X


def fit(detectors, X, seed=0, n_jobs=None, max_fit_rows=None, **settings):
    rows = plan_rows(detectors, *X.shape, max_fit_rows)
    made, _ = resolve_detectors(detectors, len(X), rows)
    settings = FitSettings(rows, n_jobs=n_jobs, **settings)
    return keep_usable(fit_detectors(made, X, np.random.default_rng(seed), settings))


class Broken(BaseEstimator):
    """PyOD-like detector that fails when it is fitted, in the way that `how` says."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y=None):
        n = len(X)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "raise":
            raise RuntimeError("the disk is full")
        if self.how == "die":
            os.kill(os.getpid(), KILL)
        if self.how == "sleep":
            time.sleep(60)
        self.decision_scores_ = {
            "nan": np.where(np.arange(n) < 3, np.nan, 1.0 * np.arange(n)),
            "shape": np.arange(2.0 * n).reshape(n, 2),
            "short": np.arange(n - 1.0),
            "text": np.full(n, "high"),
            "constant": np.full(n, 0.1),
            "nearly": 0.3 + 1e-17 * np.arange(n),
            "writes": X[:, 0].copy(),
        }[self.how]
        if self.how == "writes":
            X[:] = 0.0
        return self

    def decision_function(self, X):
        return X[:, 0]
