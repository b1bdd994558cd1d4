"""Raw scores -> the detectors whose scores can be used, and why the others are skipped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import warn_user
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors, Status, n_needed
from gammagmm.errors import DetectorError, DetectorWarning, Note

__all__ = ["LOG_OFFSET", "judge_scores", "keep_usable", "left_out_notes"]

Array = NDArray[np.float64]

LOG_OFFSET = 0.01
"""The paper's offset in log(s - min(S) + 0.01), the scale on which small scores differ."""


def keep_usable(fitted: FittedDetectors) -> FittedDetectors:
    """The detectors whose scores can be used; ``info`` has the reason for each of the others.

    A detector whose scores are not finite, or the same for every row, is skipped with a
    `DetectorWarning`. Fewer than two usable detectors (fewer than one if there is one) are a
    `DetectorError`.
    """
    scores_of = dict(zip(fitted.detectors, fitted.scores.T, strict=True))
    info = list(fitted.info)
    for i, record in enumerate(info):
        if record.name in scores_of:
            status, reason = judge_scores(scores_of[record.name])
            info[i] = replace(record, status=status, reason=reason)
    skipped = _skipped(info)
    n_usable, n_least = sum(record.status == "ok" for record in info), n_needed(len(info))
    if n_usable < n_least:
        counts = f"Only {n_usable} of {len(info)} detectors gave usable scores"
        needed = f"but {n_least} {'is' if n_least == 1 else 'are'} needed"
        reasons = "; ".join(f"{record.name}: {record.reason}" for record in skipped)
        error = DetectorError(
            f"{counts}, {needed}. Skipped: {reasons}",
            "Choose other detectors, or check that the columns vary.",
        )
        error.add_note("\n".join(record.traceback for record in skipped))
        raise error
    for record in skipped:
        warn_user(f"Detector {record.name} was skipped: {record.reason}.", DetectorWarning)
    return fitted.with_info(info)


def judge_scores(scores: Array) -> tuple[Status, str]:
    """Status and reason for the scores (n,) of one detector."""
    if n_bad := int((~np.isfinite(scores)).sum()):
        return "failed", f"{n_bad} of {len(scores)} scores are not finite"
    lowest, highest = float(scores.min()), float(scores.max())
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
    return [
        Note.of("detectors.skipped", record.name, reason=record.reason) for record in _skipped(info)
    ]


def _skipped(info: list[DetectorInfo]) -> list[DetectorInfo]:
    """Records of the detectors that were fitted, or should have been, and have no usable scores."""
    return [record for record in info if record.status not in ("ok", "skipped")]
