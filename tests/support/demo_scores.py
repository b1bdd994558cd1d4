"""Raw scores of the bundled demo data, so that tests on real scores run everywhere."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from gammagmm.datasets import load_demo
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import resolve_detectors

__all__ = ["demo_scores"]

DETECTORS = ["KNN", "LOF", "HBOS", "COPOD", "ECOD", "PCA", "IForest", "OCSVM", "LSCP"]


@cache
def demo_scores() -> NDArray[np.float64]:
    """Scores (367, 9) of detectors that take little time."""
    X = load_demo().X
    made, _ = resolve_detectors(DETECTORS, len(X))
    return fit_detectors(made, X, np.random.default_rng(0), FitSettings()).scores
