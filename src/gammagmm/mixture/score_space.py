"""Raw detector scores -> score space: comparable columns, mean 0 and deviation 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import warn_user
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors, Status
from gammagmm.errors import DetectorError, DetectorWarning, Note

__all__ = [
    "LOG_OFFSET",
    "LogMoments",
    "ScoreRange",
    "ScoreScaler",
    "fit_scaler",
    "judge_detectors",
    "keep_usable",
    "left_out_notes",
    "log_moments",
    "score_range",
]

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

    def consensus(self, scores: Array) -> Array:
        """Mean over detectors of the score space, for scores of shape (n, n_detectors)."""
        return self.transform(scores).mean(axis=1)


def fit_scaler(scores: Array) -> ScoreScaler:
    """Minimum, and mean and deviation after the logarithm, of each column of `scores` (n, M)."""
    minimum = scores.min(axis=0)
    logs = _log_scores(scores, minimum)
    return ScoreScaler(minimum, logs.mean(axis=0), logs.std(axis=0))


@dataclass(frozen=True)
class LogMoments:
    """Count, means (M,) and scatter (M, M) about them of log scores; blocks of rows add."""

    n_rows: int
    mean: Array
    scatter: Array

    def __add__(self, other: LogMoments) -> LogMoments:
        n_rows = self.n_rows + other.n_rows
        step = other.mean - self.mean
        between = np.outer(step, step) * (self.n_rows * other.n_rows / n_rows)
        mean = self.mean + step * (other.n_rows / n_rows)
        return LogMoments(n_rows, mean, self.scatter + other.scatter + between)

    def scaler(self, minimum: Array) -> ScoreScaler:
        """The map to the score space, for the smallest scores `minimum` (M,)."""
        return ScoreScaler(minimum, self.mean, np.sqrt(np.diagonal(self.scatter) / self.n_rows))

    @property
    def covariance(self) -> Array:
        """Covariance (M, M) of the score space."""
        scale = np.sqrt(np.diagonal(self.scatter) / self.n_rows)
        return self.scatter / np.outer(scale, scale) / (self.n_rows - 1)


def log_moments(scores: Array, minimum: Array) -> LogMoments:
    """Moments of log(s - minimum + 0.01) over the rows of `scores` (n, M)."""
    logs = _log_scores(scores, minimum)
    mean = logs.mean(axis=0)
    return LogMoments(len(logs), mean, (logs - mean).T @ (logs - mean))


@dataclass(frozen=True)
class ScoreRange:
    """Rows, scores that are not finite, and the extremes of those that are, of each column.

    Ranges of blocks of rows add.
    """

    n_rows: int
    n_bad: NDArray[np.intp]  # (M,)
    lowest: Array  # (M,)
    highest: Array  # (M,)

    def __getitem__(self, columns: Any) -> ScoreRange:
        chosen = (self.n_bad[columns], self.lowest[columns], self.highest[columns])
        return ScoreRange(self.n_rows, *chosen)

    def __add__(self, other: ScoreRange) -> ScoreRange:
        return ScoreRange(
            self.n_rows + other.n_rows,
            self.n_bad + other.n_bad,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )


def score_range(scores: Array) -> ScoreRange:
    """Range of each column of `scores` (n, M)."""
    is_bad = ~np.isfinite(scores)
    lowest = np.where(is_bad, np.inf, scores).min(axis=0, initial=np.inf)
    highest = np.where(is_bad, -np.inf, scores).max(axis=0, initial=-np.inf)
    return ScoreRange(len(scores), is_bad.sum(axis=0), lowest, highest)


def keep_usable(fitted: FittedDetectors) -> FittedDetectors:
    """The detectors whose scores can be used, with the reason of each other in ``info``."""
    info = judge_detectors(fitted, score_range(fitted.scores))
    names = {record.name for record in info if record.status == "ok"}
    kept = {name: detector for name, detector in fitted.detectors.items() if name in names}
    return FittedDetectors(kept, fitted.scores[:, [n in names for n in fitted.detectors]], info)


def judge_detectors(fitted: FittedDetectors, seen: ScoreRange) -> list[DetectorInfo]:
    """Records of all detectors, after a look at the range of the scores of those that gave any.

    Scores that are not finite, or the same in every row, are left out with a `DetectorWarning`;
    fewer than two left, of two or more, is a `DetectorError`.
    """
    verdicts = (_judge(seen, column) for column in range(len(fitted.detectors)))
    judged = dict(zip(fitted.detectors, verdicts, strict=True))
    info = [
        replace(record, status=judged[record.name][0], reason=judged[record.name][1])
        if record.name in judged
        else record
        for record in fitted.info
    ]
    _check_enough(info)
    for record in info:
        if record.status != "ok":
            message = f"Detector {record.name} was left out: {record.reason}."
            warn_user(message, DetectorWarning)
    return info


def left_out_notes(info: list[DetectorInfo]) -> list[Note]:
    """A note for each detector that was left out."""
    left_out = [record for record in info if record.status != "ok"]
    return [Note("detectors", record.name, f"left out: {record.reason}") for record in left_out]


def _judge(seen: ScoreRange, column: int) -> tuple[Status, str]:
    """Status and reason for the scores of one detector."""
    if n_bad := int(seen.n_bad[column]):
        return "failed", f"{n_bad} of {seen.n_rows} scores are not finite"
    lowest, highest = float(seen.lowest[column]), float(seen.highest[column])
    # Halved, since the range of finite scores need not be finite.
    half_range = 0.5 * highest - 0.5 * lowest
    if half_range > 0.25 * np.finfo(np.float64).max:
        return "failed", f"the scores span {half_range:.1e}, more than a float can hold"
    if half_range <= 1e-12 * max(abs(lowest), abs(highest), LOG_OFFSET):  # equal but for rounding
        told = "the same score for every row"
        return "constant", f"{told}, but for {2.0 * half_range:.1e}" if half_range else told
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
    with np.errstate(over="ignore"):
        above = np.maximum(scores - minimum, 0.0)
    logs: Array = np.log(above + LOG_OFFSET)
    # A new score may lie further above the minimum than a float can hold; half of that it can.
    is_far = np.isinf(above)
    if is_far.any():
        halves = np.log(0.5 * scores - 0.5 * minimum, where=is_far, out=np.zeros_like(logs))
        logs = np.where(is_far, halves + np.log(2.0), logs)
    return logs
