"""One detector and rows -> its scores, higher for more anomalous whatever the library's sign."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from gammagmm._support.processes import one_thread
from gammagmm.detectors.presets import detector_parts, scores_batches

__all__ = ["check_alike", "fit_scores", "fit_subset", "new_scores", "seeded"]

FloatArray: TypeAlias = NDArray[np.float64]

MAX_DISTANCE = 0.5
"""Kolmogorov-Smirnov distance, chance aside, of a subset's own scores from the new rows'."""


def seeded(detector: Any, rng: np.random.Generator) -> Any:
    """Copy of the detector in which every seed left unset comes from `rng`."""
    detector = copy.deepcopy(detector)
    for part in detector_parts(detector):
        if getattr(part, "random_state", 0) is None:
            part.random_state = int(rng.integers(2**31 - 1))
    return detector


def fit_scores(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of the rows X (n, d) that the detector is fitted on here."""
    # Scores that are not finite are reported under the detector's name instead.
    with one_thread(), np.errstate(all="ignore"):
        detector.fit(X)
        scores = _own_scores(detector, X)
    if scores.shape != (len(X),):
        raise ValueError(f"scores of shape {scores.shape}, expected ({len(X)},)")
    return scores


def fit_subset(detector: Any, X: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
    """Scores (n,) of all rows X by the detector fitted on `rows`; the others count as new."""
    if scores_batches(detector):
        raise ValueError("it scores rows by their batch, not by a fit: set max_fit_rows=None")
    is_new = np.ones(len(X), dtype=bool)
    is_new[rows] = False
    scores = np.empty(len(X))
    scores[rows] = fit_scores(detector, X[rows])
    with one_thread(), np.errstate(all="ignore"):
        scores[is_new] = new_scores(detector, X[is_new])
    check_alike(scores[rows], scores[is_new])
    return scores


def new_scores(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of new rows X (n, d) by a fitted detector."""
    if not isinstance(detector, OutlierMixin):
        return np.asarray(detector.decision_function(X), dtype=np.float64)
    score = getattr(detector, "score_samples", None) or detector.decision_function
    return -np.asarray(score(X), dtype=np.float64)  # scikit-learn scores anomalies low


def _own_scores(detector: Any, X: FloatArray) -> FloatArray:
    """The detector's scores (n,) of the rows X it has been fitted on."""
    if hasattr(detector, "decision_scores_"):  # PyOD's
        return np.asarray(detector.decision_scores_, dtype=np.float64)
    # LocalOutlierFactor would otherwise take a training row for its own neighbour.
    factors = getattr(detector, "negative_outlier_factor_", None)
    return new_scores(detector, X) if factors is None else -np.asarray(factors)


def check_alike(own: FloatArray, new: FloatArray, limit: str = "set max_fit_rows=None") -> None:
    """Refuse scores that tell the rows fitted on from the others, which chance alone chose.

    `limit` says what to do about the number of rows fitted on.
    """
    from scipy.stats import ks_2samp

    distance = float(ks_2samp(own, new, method="asymp").statistic)
    chance = 2.0 * np.sqrt(1.0 / len(own) + 1.0 / len(new))
    if distance > MAX_DISTANCE + chance:
        told = f"its scores tell the {len(own)} rows it was fitted on from the others"
        mend = f"scale the columns, or {limit}"
        raise ValueError(f"{told} (Kolmogorov-Smirnov distance {distance:.2f}): {mend}")
