"""Raw detector scores -> score space: comparable columns with mean 0 and standard deviation 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.detectors.usable import LOG_OFFSET

__all__ = ["ScoreScaler", "fit_scaler"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreScaler:
    """Map from raw scores to the score space, with statistics of the training rows.

    Attributes
    ----------
    minimum, maximum : ndarray of shape (n_detectors,)
        Smallest and largest training score of each detector.
    mean, deviation : ndarray of shape (n_detectors,)
        Mean and standard deviation of log(s - minimum + 0.01) over the training rows.
    """

    minimum: Array
    maximum: Array
    mean: Array
    deviation: Array

    def transform(self, scores: Array) -> Array:
        """(log(s - minimum + 0.01) - mean) / deviation, for scores of shape (n, n_detectors).

        Scores outside the range of the training scores are clipped to it. Otherwise a detector
        whose training scores hardly vary, and whose deviation is therefore tiny, would decide alone
        about new rows.

        >>> scaler = fit_scaler(np.array([[0.0], [0.99]]))
        >>> scaler.transform(np.array([[-5.0], [0.99], [800.0]])).ravel().round(6).tolist()
        [-1.0, 1.0, 1.0]
        """
        inside = np.clip(scores, self.minimum, self.maximum)
        return (_log_scores(inside, self.minimum) - self.mean) / self.deviation

    def consensus(self, scores: Array) -> Array:
        """Mean over detectors of the score space, for scores of shape (n, n_detectors)."""
        return self.transform(scores).mean(axis=1)


def fit_scaler(scores: Array) -> ScoreScaler:
    """The map to the score space, fitted to the training scores `scores` (n, M)."""
    minimum = scores.min(axis=0)
    logs = _log_scores(scores, minimum)
    return ScoreScaler(minimum, scores.max(axis=0), logs.mean(axis=0), logs.std(axis=0))


def _log_scores(scores: Array, minimum: Array) -> Array:
    logs: Array = np.log(scores - minimum + LOG_OFFSET)
    return logs
