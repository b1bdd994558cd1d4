"""Raw anomaly scores of the rows of a table: the only file that knows PyOD, or a sign.

All that it hands on is "higher = more anomalous". To add a PyOD detector, add it to `NAMES`.
"""

from __future__ import annotations

import copy
import inspect
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, clone
from threadpoolctl import threadpool_limits

from gammagmm.errors import DetectorError, DetectorWarning, Note

__all__ = ["DetectorInfo", "FittedDetectors", "fit_detectors", "resolve_detectors", "score_rows"]

FloatArray: TypeAlias = NDArray[np.float64]
Detectors: TypeAlias = str | Sequence[Any] | Mapping[str, Any]
Status: TypeAlias = Literal["ok", "failed", "constant"]

NAMES = ("KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD", "ECOD", "PCA")
PRESETS = {
    "classic": ("KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD"),
    "fast": ("IForest", "HBOS", "LODA", "COPOD", "ECOD", "PCA"),
}
LSCP_NEIGHBORS = (10, 20, 30, 40)
MIN_ROWS = 10


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
    """The detectors that gave usable scores, and the record of all."""

    detectors: dict[str, Any]  # name -> fitted detector, M of them
    scores: FloatArray  # (n, M) raw training scores, higher = more anomalous
    info: list[DetectorInfo]  # one for each detector asked for, those left out included


def resolve_detectors(
    detectors: Detectors, n_rows: int, n_features: int
) -> tuple[dict[str, Any], list[Note]]:
    """Fresh unfitted detectors by name, and a note for each parameter that had to change.

    Takes a preset, or names, PyOD detectors and scikit-learn outlier detectors in a list or as
    the values of a dict. Sizes that need more rows than there are get lowered, on our own copies.

    >>> detectors, notes = resolve_detectors(["KNN", "LOF"], n_rows=12, n_features=2)
    >>> list(detectors), notes[0].message
    (['KNN', 'LOF'], 'n_neighbors lowered from 20 to 11: the data have 12 rows')
    """
    choices = _name_choices(detectors)
    if n_rows < MIN_ROWS and any(isinstance(choice, str) for choice in choices.values()):
        raise ValueError(f"X has {n_rows} rows; the detectors need at least {MIN_ROWS}.")
    made = {
        name: _make(choice, n_features) if isinstance(choice, str) else _unfitted(choice)
        for name, choice in choices.items()
    }
    return made, [note for name in made for note in _adapt(name, made[name], n_rows)]


def fit_detectors(
    detectors: Mapping[str, Any], X: FloatArray, rng: np.random.Generator, n_jobs: int | None = None
) -> FittedDetectors:
    """Training scores (n, M) of the detectors that work, each fitted on its own copy of X (n, d).

    They are each detector's own scores of the rows it was fitted on, never re-scored. Seeds left
    unset come from `rng`; `n_jobs` changes no bit. What fails or scores all rows alike is left
    out with a `DetectorWarning`; fewer than two left, of two or more, is a `DetectorError`.
    """
    children = zip(detectors.items(), rng.spawn(len(detectors)), strict=True)
    jobs = [delayed(_fit_one)(*named, child, X) for named, child in children]
    # Here for workers that are threads of this process; `_fit_one` does it for the others.
    with threadpool_limits(limits=1):
        fits = Parallel(n_jobs=n_jobs)(jobs)
    info = [record for record, _, _ in fits]
    _check_enough(info)
    for record in info:
        if record.status != "ok":
            what = f"Detector {record.name} was left out: {record.reason}."
            warnings.warn(what, DetectorWarning, stacklevel=3)
    fitted = {record.name: detector for record, detector, _ in fits if record.status == "ok"}
    scores = np.column_stack([scores for record, _, scores in fits if record.status == "ok"])
    return FittedDetectors(fitted, scores, info)


def score_rows(detectors: Mapping[str, Any], X: FloatArray) -> FloatArray:
    """Raw scores (n, M) of new rows X (n, d) by fitted detectors, higher = more anomalous."""
    X = np.array(X, dtype=np.float64, order="C")
    return np.column_stack([_new_scores(detector, X) for detector in detectors.values()])


def _name_choices(detectors: Any) -> dict[str, Any]:
    """Each detector asked for, a known name or an object that looks right, under its own name."""
    if isinstance(detectors, str):
        if detectors not in PRESETS:
            raise ValueError(
                f"detectors={detectors!r} is not a preset. Presets: {', '.join(PRESETS)}. For "
                f"single detectors pass a list of names; known names: {', '.join(NAMES)}."
            )
        detectors = PRESETS[detectors]
    if not isinstance(detectors, Sequence | Mapping):
        raise TypeError(
            "detectors must be a preset, or a list or dict of detectors, got "
            f"{type(detectors).__name__}. Put a single detector into a list."
        )
    if not detectors:
        raise ValueError(f"detectors must hold at least one detector, got {detectors!r}.")
    choices = dict(detectors) if isinstance(detectors, Mapping) else _named_by_class(detectors)
    for name, choice in choices.items():
        _check_choice(name, choice)
    return choices


def _named_by_class(detectors: Sequence[Any]) -> dict[str, Any]:
    """Detectors by name or class name; one that comes again gets the suffix _2, _3, ..."""
    named: dict[str, Any] = {}
    for choice in detectors:
        base = name = choice if isinstance(choice, str) else type(choice).__name__
        count = 1
        while name in named:
            count += 1
            name = f"{base}_{count}"
        named[name] = choice
    return named


def _check_choice(name: Any, choice: Any) -> None:
    """Refuse what is neither a known name nor an object that looks like a detector."""
    if not isinstance(name, str):
        raise TypeError(f"detectors must have names as keys, got the key {name!r}.")
    if isinstance(choice, str):
        if choice not in NAMES:
            known = ", ".join(NAMES)
            raise ValueError(f"detectors: unknown detector name {choice!r}; known names: {known}.")
    elif isinstance(choice, type) or not (
        hasattr(choice, "fit")
        and (hasattr(choice, "decision_function") or isinstance(choice, OutlierMixin))
    ):
        raise TypeError(
            "detectors must be names, or objects that are PyOD detectors or scikit-learn outlier "
            f"detectors, got {choice!r} for {name!r}."
        )


def _make(name: str, n_features: int) -> Any:
    """PyOD's detector of that name, at PyOD's defaults."""
    model = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    if name != "LSCP":
        return model()
    lof = import_module("pyod.models.lof").LOF
    # At fit its default of 10 bins would become the number of detectors, with a warning.
    lscp = model([lof(n_neighbors=k) for k in LSCP_NEIGHBORS], n_bins=len(LSCP_NEIGHBORS))
    if n_features == 1:
        lscp._get_local_region = partial(_nearest_rows, lscp)
    return lscp


def _nearest_rows(lscp: Any, X: FloatArray) -> list[list[int]]:
    """LSCP's regions in the one subspace that one feature has: PyOD's, without its warnings."""
    from sklearn.neighbors import KDTree

    nearest = KDTree(lscp.X_train_norm_).query(X, lscp.local_region_size, return_distance=False)
    return [list(row) for row in nearest]


def _unfitted(value: Any) -> Any:
    """Unfitted copy of a detector, as scikit-learn's `clone` makes it."""
    from pyod.models.base import BaseDetector

    if isinstance(value, list | tuple):
        return type(value)(_unfitted(item) for item in value)
    if not isinstance(value, BaseDetector):
        return clone(value, safe=False)
    # PyOD's get_params, which `clone` calls, edits the warning filters of the whole process.
    parameters = inspect.signature(type(value)).parameters.values()
    if any(p.kind is p.VAR_KEYWORD or not hasattr(value, p.name) for p in parameters):
        return copy.deepcopy(value)
    return type(value)(**{p.name: _unfitted(getattr(value, p.name)) for p in parameters})


def _parts(value: Any) -> Iterator[Any]:
    """Walk over a detector and the estimators in its parameters, such as LSCP's detectors."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
    elif hasattr(value, "fit") and not isinstance(value, type):
        yield value
        for name in inspect.signature(type(value)).parameters:
            yield from _parts(getattr(value, name, None))


def _adapt(name: str, detector: Any, n_rows: int) -> Iterator[Note]:
    """Lower sizes that need more rows than there are, and let new rows be scored."""
    # LSCP scores its training rows anew, so that each counts itself among its neighbours.
    n_others = n_rows - 2 if hasattr(detector, "detector_list") else n_rows - 1
    for part in _parts(detector):
        for parameter, largest in (("n_neighbors", n_others), ("local_region_size", n_rows)):
            size = getattr(part, parameter, None)
            if isinstance(size, int | np.integer) and size > largest:
                setattr(part, parameter, largest)
                lowered = f"{parameter} lowered from {size} to {largest}"
                yield Note("detectors", name, f"{lowered}: the data have {n_rows} rows")
                if parameter == "local_region_size":
                    part.local_region_min = largest  # else LSCP warns of what the note says
        if getattr(part, "novelty", None) is False:
            part.novelty = True
            yield Note("detectors", name, "novelty set to True, so that it can score new rows")


def _seeded(detector: Any, rng: np.random.Generator) -> Any:
    """Copy of the detector in which every seed left unset comes from `rng`."""
    detector = copy.deepcopy(detector)
    for part in _parts(detector):
        if getattr(part, "random_state", 0) is None:
            part.random_state = int(rng.integers(2**31 - 1))
    return detector


def _fit_one(
    name: str, detector: Any, rng: np.random.Generator, X: FloatArray
) -> tuple[DetectorInfo, Any, Any]:
    """Record, fitted detector and training scores; of one left out, the record only."""
    start, trace = time.perf_counter(), ""
    X = np.array(X, dtype=np.float64, order="C")
    try:
        # Scores that are not finite are reported under the detector's name instead.
        with threadpool_limits(limits=1), np.errstate(all="ignore"):
            detector = _seeded(detector, rng)
            scores = _fit_scores(detector, X)
        status, reason = _judge(scores, len(X))
    except Exception as error:
        status, reason = "failed", f"{type(error).__name__}: {error}"
        trace = traceback.format_exc()
    info = DetectorInfo(name, status, reason, time.perf_counter() - start, len(X), trace)
    return (info, detector, scores) if status == "ok" else (info, None, None)


def _judge(scores: FloatArray, n_rows: int) -> tuple[Status, str]:
    """Status and reason for one detector's scores."""
    if scores.shape != (n_rows,):
        return "failed", f"scores of shape {scores.shape}, expected ({n_rows},)"
    if n_bad := n_rows - np.isfinite(scores).sum():
        return "failed", f"{n_bad} of {n_rows} scores are not finite"
    if np.ptp(scores) <= 1e-12 * np.abs(scores).max():  # equal but for rounding
        return "constant", "the same score for every row"
    return "ok", ""


def _check_enough(info: list[DetectorInfo]) -> None:
    """Refuse to go on with fewer than two detectors, or with none of one."""
    left_out = [record for record in info if record.status != "ok"]
    n_usable, n_needed = len(info) - len(left_out), min(2, len(info))
    if n_usable < n_needed:
        counts = f"{n_usable} of {len(info)} detectors gave usable scores, {n_needed} needed. "
        reasons = "; ".join(f"{record.name}: {record.reason}" for record in left_out)
        error = DetectorError(counts + f"Left out: {reasons}.")
        for trace in filter(None, (record.traceback for record in left_out)):
            error.add_note(trace)
        raise error


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
