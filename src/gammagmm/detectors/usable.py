"""Raw scores -> the detectors whose scores can be used, and why the others are skipped."""

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
    "ScoreRange",
    "judge_detectors",
    "judge_scores",
    "keep_usable",
    "left_out_notes",
    "score_range",
]

Array = NDArray[np.float64]

LOG_OFFSET = 0.01
"""The paper's offset in log(s - min(S) + 0.01), the scale on which small scores differ."""


@dataclass(frozen=True)
class ScoreRange:
    """Number of rows, and for each column of bad scores and the extremes of the others."""

    n_rows: int
    n_bad: NDArray[np.intp]  # (M,)
    lowest: Array  # (M,)
    highest: Array  # (M,)

    def __getitem__(self, columns: Any) -> ScoreRange:
        chosen = (self.n_bad[columns], self.lowest[columns], self.highest[columns])
        return ScoreRange(self.n_rows, *chosen)


def score_range(scores: Array) -> ScoreRange:
    """Range of each column of `scores` (n, M)."""
    is_bad = ~np.isfinite(scores)
    lowest = np.where(is_bad, np.inf, scores).min(axis=0, initial=np.inf)
    highest = np.where(is_bad, -np.inf, scores).max(axis=0, initial=-np.inf)
    return ScoreRange(len(scores), is_bad.sum(axis=0), lowest, highest)


def keep_usable(fitted: FittedDetectors) -> FittedDetectors:
    """The detectors whose scores can be used; ``info`` has the reason for each of the others."""
    return fitted.with_info(judge_detectors(fitted, score_range(fitted.scores)))


def judge_detectors(fitted: FittedDetectors, seen: ScoreRange) -> list[DetectorInfo]:
    """Records of all detectors, updated by the range of the scores of those that gave any.

    A detector whose scores are not finite, or the same for every row, is skipped with a
    `DetectorWarning`. Fewer than two usable detectors (fewer than one if there is one) are a
    `DetectorError`.
    """
    columns = {name: column for column, name in enumerate(fitted.detectors)}
    info = list(fitted.info)
    for i, record in enumerate(info):
        if record.name in columns:
            status, reason = judge_scores(seen, columns[record.name])
            info[i] = replace(record, status=status, reason=reason)
    skipped = [record for record in info if record.status != "ok"]
    n_usable, n_needed = len(info) - len(skipped), min(2, len(info))
    if n_usable < n_needed:
        counts = f"Only {n_usable} of {len(info)} detectors gave usable scores"
        needed = f"but {n_needed} {'is' if n_needed == 1 else 'are'} needed"
        reasons = "; ".join(f"{record.name}: {record.reason}" for record in skipped)
        error = DetectorError(
            f"{counts}, {needed}. Skipped: {reasons}",
            "Choose other detectors, or check that the columns vary.",
        )
        error.add_note("\n".join(record.traceback for record in skipped))
        raise error
    for record in skipped:
        warn_user(f"Detector {record.name} was skipped: {record.reason}.", DetectorWarning)
    return info


def judge_scores(seen: ScoreRange, column: int) -> tuple[Status, str]:
    """Status and reason for the scores of one detector."""
    if n_bad := int(seen.n_bad[column]):
        return "failed", f"{n_bad} of {seen.n_rows} scores are not finite"
    lowest, highest = float(seen.lowest[column]), float(seen.highest[column])
    # Halved, since the range of finite scores need not be finite.
    half_range = 0.5 * highest - 0.5 * lowest
    if half_range > 0.25 * np.finfo(np.float64).max:
        wide = f"the scores range from {lowest:.1e} to {highest:.1e}"
        return "failed", f"{wide}, which is too wide for float arithmetic"
    # Scores that differ by rounding alone count as equal.
    if half_range <= 1e-12 * max(abs(lowest), abs(highest), LOG_OFFSET):
        reason = "every row has the same score"
        rounding = f", up to differences of {2.0 * half_range:.1e}" if half_range else ""
        return "constant", reason + rounding
    return "ok", ""


def left_out_notes(info: list[DetectorInfo]) -> list[Note]:
    """A note for each detector that was skipped."""
    skipped = [record for record in info if record.status != "ok"]
    return [Note.of("detectors.skipped", record.name, reason=record.reason) for record in skipped]
