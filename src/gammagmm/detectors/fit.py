"""Rows -> raw scores (n, M): detectors side by side, each kept from harming the others."""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from gammagmm._support.processes import (
    NEVER,
    Deadline,
    OutOfTimeError,
    allowed_jobs,
    one_thread,
    run_alone,
    run_until,
)
from gammagmm._support.progress import Progress, quiet
from gammagmm.detectors.presets import (
    cost_rank,
    detector_parts,
    is_superlinear,
    scores_batches,
    uses_torch,
)
from gammagmm.errors import DetectorError

__all__ = [
    "DetectorInfo",
    "FitSettings",
    "FittedDetectors",
    "Outcome",
    "Status",
    "Task",
    "check_alike",
    "fit_detectors",
    "fit_scores",
    "fit_subset",
    "given_scores",
    "new_scores",
    "run_tasks",
    "score_rows",
    "seeded",
]

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


Status: TypeAlias = Literal["ok", "failed", "timeout", "constant"]


@dataclass(frozen=True)
class DetectorInfo:
    """What became of one detector; only those with the status "ok" enter the result."""

    name: str
    status: Status
    reason: str  # why it was left out; empty where it was not
    seconds: float  # wall time of its fit and scores
    n_rows: int  # rows it was fitted on
    traceback: str = field(default="", repr=False)  # where it raised


@dataclass(frozen=True)
class FitSettings:
    """How the detectors of a fit are run."""

    max_fit_rows: int | None = None  # most rows for a detector of superlinear cost
    timeout: float | None = None  # seconds for each detector
    n_jobs: int | None = None
    progress: Progress = quiet
    deadline: Deadline = NEVER  # of all of them


@dataclass(frozen=True)
class Task:
    """One detector to fit, and how."""

    name: str
    detector: Any
    rng: np.random.Generator
    rows: NDArray[np.intp] | None  # those to fit on; None: all
    is_alone: bool  # in a process of its own
    timeout: float | None
    deadline: Deadline


class _WorkersFailedError(Exception):
    """A worker died, or a detector could not be sent to one or back."""


@dataclass(frozen=True)
class Outcome:
    """Record, fitted detector and training scores; of one left out, the record only."""

    info: DetectorInfo
    detector: Any = None
    scores: Any = None  # (n,)


def run_tasks(tasks: list[Task], X: FloatArray, settings: FitSettings) -> list[Outcome]:
    """Outcomes of the tasks on the rows X (n, d), in any order.

    If the workers fail, the unfinished run again, each by itself; what the deadline of the settings
    finds under way, or not begun, is given up.
    """
    done: list[Outcome] = []
    try:
        for outcome in _outcomes(tasks, X, settings):
            done.append(outcome)
    except _WorkersFailedError:
        names = {outcome.info.name for outcome in done}
        again = [replace(task, is_alone=True) for task in tasks if task.name not in names]
        # A thread is enough to wait for a process, and takes what cannot be sent to a worker.
        done.extend(_outcomes(again, X, settings, prefer="threads"))
    return done + _give_up(tasks, done, X, settings.progress)


def _give_up(
    tasks: list[Task], done: list[Outcome], X: FloatArray, progress: Progress
) -> list[Outcome]:
    """Outcomes of the tasks that the deadline found under way, or not begun."""
    names, given_up = {outcome.info.name for outcome in done}, []
    for task in tasks:
        if task.name not in names:
            n_rows = len(X) if task.rows is None else len(task.rows)
            given_up.append(
                Outcome(DetectorInfo(task.name, "timeout", _too_long(task), 0.0, n_rows))
            )
            progress(task.name, "timeout", 0.0)
    return given_up


def _outcomes(
    tasks: list[Task], X: FloatArray, settings: FitSettings, prefer: str | None = None
) -> Iterator[Outcome]:
    """Outcomes as they come; `progress` hears of each task when a worker must have taken it."""
    n_jobs = allowed_jobs(settings.n_jobs)
    if settings.deadline.timeout is not None and prefer != "threads":
        results = _start_timed(tasks, X, n_jobs, settings.deadline)
    else:
        results = _start(tasks, X, n_jobs, prefer)
    waiting = iter(tasks)
    with closing(results):
        _tell_started(islice(waiting, effective_n_jobs(n_jobs)), settings.progress)
        while (outcome := _next(results)) is not None:
            settings.progress(outcome.info.name, outcome.info.status, outcome.info.seconds)
            _tell_started(islice(waiting, 1), settings.progress)
            yield outcome


def _start_timed(
    tasks: list[Task], X: FloatArray, n_jobs: int | None, deadline: Deadline
) -> Generator[Outcome]:
    """The same with processes that are ended at the deadline; those of one task each go first."""
    alone = [task for task in tasks if task.is_alone]
    others = [task for task in tasks if not task.is_alone]
    if alone:
        # A thread is enough to wait for a process.
        yield from _start(alone, X, n_jobs, "threads")
    if others:
        n_workers = min(effective_n_jobs(n_jobs), len(others))
        yield from run_until(deadline, n_workers, _fit_task, others, X)


def _start(
    tasks: list[Task], X: FloatArray, n_jobs: int | None, prefer: str | None
) -> Generator[Outcome]:
    """The tasks handed to workers; an iterator of their outcomes."""
    parallel = Parallel(
        n_jobs,
        prefer=prefer,
        batch_size=1,
        pre_dispatch="all",
        return_as="generator_unordered",
    )
    try:
        results: Generator[Outcome] = parallel(delayed(_fit_task)(task, X) for task in tasks)
    except Exception as error:
        raise _WorkersFailedError from error
    return results


def _next(results: Iterator[Outcome]) -> Outcome | None:
    """The next outcome; a worker that died, or what cannot be sent to one, fails them all."""
    try:
        return next(results, None)
    except Exception as error:
        raise _WorkersFailedError from error


def _tell_started(tasks: Iterable[Task], progress: Progress) -> None:
    for task in tasks:
        progress(task.name, "started", 0.0)


def _fit_task(task: Task, X: FloatArray) -> Outcome:
    """Outcome of one task, whatever becomes of the detector or of its process."""
    start, n_rows = time.perf_counter(), len(X) if task.rows is None else len(task.rows)
    status: Status = "failed"
    try:
        if task.is_alone:
            limits: dict[str, Any] = {"timeout": task.timeout, "deadline": task.deadline}
            return run_alone(_fit_here, task, X, **limits, preload=task)
        return _fit_here(task, X)
    except OutOfTimeError:
        status, reason = "timeout", _too_long(task)
        trace = traceback.format_exc()
    except BrokenProcessPool:
        reason, trace = "its process died, perhaps for want of memory", traceback.format_exc()
    except Exception as error:
        reason, trace = f"{type(error).__name__}: {error}", traceback.format_exc()
    seconds = time.perf_counter() - start
    return Outcome(DetectorInfo(task.name, status, reason, seconds, n_rows, trace))


def _too_long(task: Task) -> str:
    if task.deadline.is_over:
        return f"it was not done when timeout={task.deadline.timeout} s was over"
    return f"it took longer than detector_timeout={task.timeout} s"


def _fit_here(task: Task, X: FloatArray) -> Outcome:
    """Outcome of a task that succeeds, in this process."""
    start = time.perf_counter()
    X = np.array(X, dtype=np.float64, order="C")
    detector = seeded(task.detector, task.rng)
    scores = fit_scores(detector, X) if task.rows is None else fit_subset(detector, X, task.rows)
    n_rows = len(X) if task.rows is None else len(task.rows)
    info = DetectorInfo(task.name, "ok", "", time.perf_counter() - start, n_rows)
    return Outcome(info, detector, scores)


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
