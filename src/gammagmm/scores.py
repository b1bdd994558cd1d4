"""Raw detector scores -> score space: comparable columns, mean 0 and deviation 1."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gammagmm._checks import warn_user
from gammagmm.detectors import DetectorInfo, FittedDetectors, Status
from gammagmm.errors import DetectorError, DetectorWarning, Note

__all__ = ["LOG_OFFSET", "ScoreScaler", "fit_scaler", "keep_usable", "left_out_notes"]

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


def keep_usable(fitted: FittedDetectors) -> FittedDetectors:
    """The detectors whose scores can be used, with the reason of each other in ``info``.

    Scores that are not finite, or the same in every row, are left out with a `DetectorWarning`;
    fewer than two left, of two or more, is a `DetectorError`.
    """
    judged = dict(zip(fitted.detectors, map(_judge, fitted.scores.T), strict=True))
    info = [
        replace(record, status=judged[record.name][0], reason=judged[record.name][1])
        if record.name in judged
        else record
        for record in fitted.info
    ]
    names = {record.name for record in info if record.status == "ok"}
    _check_enough(info)
    for record in info:
        if record.status != "ok":
            message = f"Detector {record.name} was left out: {record.reason}."
            warn_user(message, DetectorWarning)
    kept = {name: detector for name, detector in fitted.detectors.items() if name in names}
    return FittedDetectors(kept, fitted.scores[:, [n in names for n in fitted.detectors]], info)


def left_out_notes(info: list[DetectorInfo]) -> list[Note]:
    """A note for each detector that was left out."""
    left_out = [record for record in info if record.status != "ok"]
    return [Note("detectors", record.name, f"left out: {record.reason}") for record in left_out]


def _judge(scores: Array) -> tuple[Status, str]:
    """Status and reason for one detector's scores (n,)."""
    if n_bad := len(scores) - int(np.isfinite(scores).sum()):
        return "failed", f"{n_bad} of {len(scores)} scores are not finite"
    # Halved, since the range of finite scores need not be finite.
    half_range = 0.5 * scores.max() - 0.5 * scores.min()
    if half_range > 0.25 * np.finfo(np.float64).max:
        return "failed", f"the scores span {half_range:.1e}, more than a float can hold"
    if half_range <= 1e-12 * max(np.abs(scores).max(), LOG_OFFSET):  # equal but for rounding
        return "constant", "the same score for every row"
    return "ok", ""


def _check_enough(info: list[DetectorInfo]) -> None:
    """Refuse to go on with fewer than two usable detectors, or with none of one."""
    left_out = [record for record in info if record.status != "ok"]
    n_usable, n_needed = len(info) - len(left_out), min(2, len(info))
    if n_usable >= n_needed:
        return
    counts = f"{n_usable} of {len(info)} detectors gave usable scores, {n_needed} needed"
    reasons = "; ".join(f"{record.name}: {record.reason}" for record in left_out)
    error = DetectorError(f"{counts}. Left out: {reasons}.")
    error.add_note("\n".join(record.traceback for record in left_out))
    raise error


def _log_scores(scores: Array, minimum: Array) -> Array:
    logs: Array = np.log(np.maximum(scores - minimum, 0.0) + LOG_OFFSET)
    return logs
