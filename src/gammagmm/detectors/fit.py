"""Rows -> raw anomaly scores (n, M), higher for more anomalous whatever the library's sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.processes import run_alone
from gammagmm.detectors.fitting import DetectorInfo, FitSettings, Status, Task, run_tasks
from gammagmm.detectors.presets import cost_rank, is_superlinear, uses_torch
from gammagmm.detectors.scoring import new_scores
from gammagmm.errors import DetectorError

__all__ = [
    "DetectorInfo",
    "FitSettings",
    "FittedDetectors",
    "Status",
    "fit_detectors",
    "given_scores",
    "score_rows",
]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class FittedDetectors:
    """The detectors that gave scores, and the record of all."""

    detectors: dict[str, Any]  # name -> fitted detector, M of them
    scores: FloatArray  # (n, M) raw training scores, higher = more anomalous
    info: list[DetectorInfo]  # one for each detector asked for, those left out included


def fit_detectors(
    detectors: Mapping[str, Any], X: FloatArray, rng: np.random.Generator, settings: FitSettings
) -> FittedDetectors:
    """Training scores (n, M) of the detectors that ran, each fitted on its own copy of X (n, d).

    They are each detector's own scores of the rows it was fitted on, never re-scored. Seeds left
    unset come from `rng`; `n_jobs` changes no bit, but for BLAS in a thread that is not the main
    one. A detector that raises or outlasts its time keeps its record only; so does one that dies,
    if it has a worker to die in: with ``n_jobs`` above 1, a ``timeout`` or a ``deadline``.
    """
    # Deviation D1: the published script scores the training rows anew, as if they were new.
    tasks = _plan(detectors, len(X), rng, settings)
    outcomes = {outcome.info.name: outcome for outcome in run_tasks(tasks, X, settings)}
    ran = {name: outcomes[name] for name in detectors if outcomes[name].info.status == "ok"}
    columns = [np.empty((len(X), 0)), *(outcome.scores[:, None] for outcome in ran.values())]
    return FittedDetectors(
        {name: outcome.detector for name, outcome in ran.items()},
        np.concatenate(columns, axis=1),
        [outcomes[name].info for name in detectors],
    )


def given_scores(scores: FloatArray, names: Sequence[str] | None = None) -> FittedDetectors:
    """Scores (n, M) that come from elsewhere, under `names` or score_1, score_2, ..."""
    n_rows, n_detectors = scores.shape
    named = [f"score_{j + 1}" for j in range(n_detectors)] if names is None else list(names)
    info = [DetectorInfo(name, "ok", "", 0.0, n_rows) for name in named]
    return FittedDetectors(dict.fromkeys(named), scores, info)


def score_rows(detectors: Mapping[str, Any], X: FloatArray) -> FloatArray:
    """Raw scores (n, M) of new rows X (n, d) by fitted detectors, higher = more anomalous.

    A detector that raises, or gives a score that is not finite, is a `DetectorError` that names it.
    """
    X = np.array(X, dtype=np.float64, order="C")
    return np.column_stack([_finite_scores(*named, X) for named in detectors.items()])


def _finite_scores(name: str, detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of new rows, or the reason why there are none."""
    told = f"Detector {name} cannot score these rows"
    try:
        with np.errstate(all="ignore"):
            scores = _score_safely(detector, X)
    except Exception as error:
        raise DetectorError(f"{told}: {type(error).__name__}: {error}") from error
    if scores.shape != (len(X),):
        raise DetectorError(f"{told}: scores of shape {scores.shape}, expected ({len(X)},).")
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        many = f"{len(bad)} of {len(X)} scores are not finite"
        raise DetectorError(f"{told}: {many}, the first of them in row {bad[0]}.")
    return scores


def _score_safely(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of new rows; networks that are not ours may move PyTorch's random state."""
    is_ours = type(detector).__module__ == "gammagmm.detectors.autoencoders"
    if uses_torch(detector) and not is_ours:
        return run_alone(new_scores, detector, X, preload=detector)
    return new_scores(detector, X)


def _plan(
    detectors: Mapping[str, Any], n_rows: int, rng: np.random.Generator, settings: FitSettings
) -> list[Task]:
    """A task for each detector, those that take longest first."""
    sample_rng, *children = rng.spawn(1 + len(detectors))
    sample = None
    if settings.max_fit_rows is not None and n_rows > settings.max_fit_rows:
        sample = np.sort(sample_rng.choice(n_rows, settings.max_fit_rows, replace=False))
    tasks = [
        Task(
            name,
            detector,
            child,
            # Deviation D13: the paper fits every detector on all rows.
            sample if is_superlinear(detector) else None,
            is_alone=settings.timeout is not None or uses_torch(detector),
            timeout=settings.timeout,
            deadline=settings.deadline,
        )
        for (name, detector), child in zip(detectors.items(), children, strict=True)
    ]
    return sorted(tasks, key=lambda task: cost_rank(task.detector))
