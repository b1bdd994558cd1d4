"""Raw detector scores -> score space: comparable columns, mean 0 and deviation 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOG_OFFSET", "ScoreScaler", "fit_scaler", "is_constant"]

Array = NDArray[np.float64]

LOG_OFFSET = 0.01
"""The paper's offset in log(s - min(S) + 0.01)."""


@dataclass(frozen=True)
class ScoreScaler:
    """Map from raw scores to the score space, with the training rows' statistics.

    Attributes
    ----------
    minimum : ndarray of shape (n_detectors,)
        Smallest training score of each detector.
    mean, deviation : ndarray of shape (n_detectors,)
        Mean and standard deviation of log(s - minimum + 0.01) over the training rows.
    """

    minimum: Array
    mean: Array
    deviation: Array

    def transform(self, scores: Array) -> Array:
        """(log(s - minimum + 0.01) - mean) / deviation, for scores of shape (n, n_detectors).

        Scores below the training minimum are clipped to it.

        >>> scaler = fit_scaler(np.array([[0.0], [0.99]]))
        >>> scaler.transform(np.array([[-5.0], [0.99]])).ravel().round(6).tolist()
        [-1.0, 1.0]
        """
        return (_log_scores(scores, self.minimum) - self.mean) / self.deviation


def fit_scaler(scores: Array) -> ScoreScaler:
    """Minimum, and mean and deviation after the logarithm, of each column of `scores` (n, M)."""
    minimum = scores.min(axis=0)
    logs = _log_scores(scores, minimum)
    return ScoreScaler(minimum, logs.mean(axis=0), logs.std(axis=0))


def is_constant(scores: Array) -> NDArray[np.bool_]:
    """Whether each column of `scores` (n, M) is the same in every row, up to rounding."""
    logs = _log_scores(scores, scores.min(axis=0))
    rounding = 10.0 * np.finfo(np.float64).eps * np.abs(logs).max(axis=0)
    return np.ptp(logs, axis=0) <= rounding


def _log_scores(scores: Array, minimum: Array) -> Array:
    logs: Array = np.log(np.maximum(scores - minimum, 0.0) + LOG_OFFSET)
    return logs
