"""Rows -> raw anomaly scores (n, M), higher for more anomalous whatever the library's sign."""

from __future__ import annotations

import copy
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from threadpoolctl import threadpool_limits

from gammagmm.presets import detector_parts

__all__ = ["DetectorInfo", "FittedDetectors", "fit_detectors", "given_scores", "score_rows"]

FloatArray: TypeAlias = NDArray[np.float64]
Status: TypeAlias = Literal["ok", "failed", "constant"]


@dataclass(frozen=True)
class DetectorInfo:
    """What became of one detector; only those with the status "ok" enter the result."""

    name: str
    status: Status
    reason: str  # why it was left out; empty where it was not
    seconds: float  # wall time of its fit
    n_rows: int  # rows it was fitted on
    traceback: str = field(default="", repr=False)  # where it raised


@dataclass(frozen=True)
class FittedDetectors:
    """The detectors that gave scores, and the record of all."""

    detectors: dict[str, Any]  # name -> fitted detector, M of them
    scores: FloatArray  # (n, M) raw training scores, higher = more anomalous
    info: list[DetectorInfo]  # one for each detector asked for, those left out included


def fit_detectors(
    detectors: Mapping[str, Any], X: FloatArray, rng: np.random.Generator, n_jobs: int | None = None
) -> FittedDetectors:
    """Training scores (n, M) of the detectors that ran, each fitted on its own copy of X (n, d).

    They are each detector's own scores of the rows it was fitted on, never re-scored. Seeds left
    unset come from `rng`; `n_jobs` changes no bit. A detector that raises keeps its record only.
    """
    # Deviation D1: the published script scores the training rows anew, as if they were new.
    children = zip(detectors.items(), rng.spawn(len(detectors)), strict=True)
    jobs = [delayed(_fit_one)(*named, child, X) for named, child in children]
    fits = Parallel(n_jobs=n_jobs)(jobs)
    ran = [fit for fit in fits if fit[0].status == "ok"]
    columns = [np.empty((len(X), 0)), *(scores[:, None] for _, _, scores in ran)]
    return FittedDetectors(
        {info.name: detector for info, detector, _ in ran},
        np.concatenate(columns, axis=1),
        [info for info, _, _ in fits],
    )


def given_scores(scores: FloatArray, names: Sequence[str] | None = None) -> FittedDetectors:
    """Scores (n, M) that come from elsewhere, under `names` or score_1, score_2, ..."""
    n_rows, n_detectors = scores.shape
    named = [f"score_{j + 1}" for j in range(n_detectors)] if names is None else list(names)
    info = [DetectorInfo(name, "ok", "", 0.0, n_rows) for name in named]
    return FittedDetectors(dict.fromkeys(named), scores, info)


def score_rows(detectors: Mapping[str, Any], X: FloatArray) -> FloatArray:
    """Raw scores (n, M) of new rows X (n, d) by fitted detectors, higher = more anomalous."""
    X = np.array(X, dtype=np.float64, order="C")
    return np.column_stack([_new_scores(detector, X) for detector in detectors.values()])


def _one_thread() -> AbstractContextManager[Any]:
    """BLAS and OpenMP on one thread, as in every worker process: the same bits for any `n_jobs`.

    The limit holds for the whole process, so that only its main thread may set it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return threadpool_limits(limits=1) if is_main else nullcontext()


def _seeded(detector: Any, rng: np.random.Generator) -> Any:
    """Copy of the detector in which every seed left unset comes from `rng`."""
    detector = copy.deepcopy(detector)
    for part in detector_parts(detector):
        if getattr(part, "random_state", 0) is None:
            part.random_state = int(rng.integers(2**31 - 1))
    return detector


def _fit_one(
    name: str, detector: Any, rng: np.random.Generator, X: FloatArray
) -> tuple[DetectorInfo, Any, Any]:
    """Record, fitted detector and training scores; of one left out, the record only."""
    start = time.perf_counter()
    X = np.array(X, dtype=np.float64, order="C")
    try:
        # Scores that are not finite are reported under the detector's name instead.
        with _one_thread(), np.errstate(all="ignore"):
            detector = _seeded(detector, rng)
            scores = _fit_scores(detector, X)
        if scores.shape != (len(X),):
            raise ValueError(f"scores of shape {scores.shape}, expected ({len(X)},)")
    except Exception as error:
        reason, seconds = f"{type(error).__name__}: {error}", time.perf_counter() - start
        trace = traceback.format_exc()
        return DetectorInfo(name, "failed", reason, seconds, len(X), trace), None, None
    seconds = time.perf_counter() - start
    return DetectorInfo(name, "ok", "", seconds, len(X)), detector, scores


def _fit_scores(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of the rows X that the detector is fitted on here."""
    detector.fit(X)
    if not isinstance(detector, OutlierMixin):
        return np.asarray(detector.decision_scores_, dtype=np.float64)
    # LocalOutlierFactor would otherwise take a training row for its own neighbour.
    factors = getattr(detector, "negative_outlier_factor_", None)
    return _new_scores(detector, X) if factors is None else -np.asarray(factors)


def _new_scores(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of new rows."""
    if not isinstance(detector, OutlierMixin):
        return np.asarray(detector.decision_function(X), dtype=np.float64)
    score = getattr(detector, "score_samples", None) or detector.decision_function
    return -np.asarray(score(X), dtype=np.float64)  # scikit-learn scores anomalies low
