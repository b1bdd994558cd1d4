"""Rows -> raw scores (n, M).

The detectors are fitted in parallel, and a failure does not affect the others.
"""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gammagmm._support.processes import (
    NEVER,
    Deadline,
    FirstHalf,
    OutOfTimeError,
    allowed_jobs,
    one_thread,
    run_alone,
    run_until,
    starts_processes,
)
from gammagmm._support.progress import Progress, quiet
from gammagmm.detectors.presets import (
    RowPlan,
    cost_rank,
    detector_parts,
    scores_batches,
    uses_torch,
)
from gammagmm.errors import DetectorError

__all__ = [
    "DetectorInfo",
    "FitSettings",
    "FittedDetectors",
    "Status",
    "fit_detectors",
    "given_scores",
    "n_needed",
    "score_rows",
]

FloatArray: TypeAlias = NDArray[np.float64]
Status: TypeAlias = Literal["ok", "failed", "timeout", "constant", "skipped"]

MAX_DISTANCE = 0.5
"""Largest Kolmogorov-Smirnov distance, besides chance, between fitted and new rows' scores."""

MAX_VALUES_HERE = 2_000_000
"""Most values of a table whose detectors are fitted in threads, not in worker processes.

The slow detectors of PyOD do their work outside Python's lock. Workers need about 3 s to start and
to import PyOD, which is more than the detectors inside the lock take on such a table: IForest, the
slowest, 0.6 s for 100,000 rows (benchmarks/results/cost.json).
"""


@dataclass(frozen=True)
class FitSettings:
    """How detectors are fitted."""

    rows: RowPlan | None = None  # how many each is fitted on; None: all
    timeout: float | None = None  # seconds for each detector
    n_jobs: int | None = None
    progress: Progress = quiet
    deadline: Deadline = NEVER  # for the whole fit, of which detectors have half, see FirstHalf


@dataclass(frozen=True)
class DetectorInfo:
    """Status of one detector; only those with the status "ok" enter the result.

    Attributes
    ----------
    name : str
        Name of the detector.
    status : "ok" or "failed" or "timeout" or "constant" or "skipped"
        How the fit ended; "constant" if all rows got the same score, "skipped" if the detector of
        a preset would have taken too long and was not fitted.
    reason : str
        Why it has no scores; empty if it has.
    seconds : float
        Wall time of its fit and scores.
    n_rows : int
        Number of rows it was fitted on.
    traceback : str, default=""
        Traceback of its exception.
    """

    name: str
    status: Status
    reason: str
    seconds: float
    n_rows: int
    traceback: str = field(default="", repr=False)


@dataclass(frozen=True)
class FittedDetectors:
    """The detectors that gave scores, and a record of all that were asked for."""

    detectors: dict[str, Any]  # name -> fitted detector, M of them
    scores: FloatArray  # (n, M) raw training scores, higher = more anomalous
    info: list[DetectorInfo]  # one for each detector asked for, also for those skipped

    def with_info(self, info: list[DetectorInfo]) -> FittedDetectors:
        """The detectors whose status in the new `info` is "ok"."""
        ok = {record.name for record in info if record.status == "ok"}
        is_kept = [name in ok for name in self.detectors]
        kept = {name: detector for name, detector in self.detectors.items() if name in ok}
        return FittedDetectors(kept, self.scores[:, is_kept], info)


def fit_detectors(
    detectors: Mapping[str, Any],
    X: FloatArray,
    rng: np.random.Generator,
    settings: FitSettings,
) -> FittedDetectors:
    """Training scores (n, M) of the detectors that ran, each fitted on its own copy of X (n, d).

    They are each detector's own scores of the rows it was fitted on; those rows are not scored a
    second time. Seeds left unset come from `rng`. `n_jobs` changes no bit, except for BLAS in a
    thread that is not the main one. A detector that fails or times out is skipped, with a record
    in ``info``; the others continue. A detector that kills its process is skipped in the same way
    if it runs in a worker: with ``n_jobs`` above 1, a ``timeout`` or a ``deadline``. On small
    tables, the detectors that have names run in this process, whatever ``n_jobs`` is. Detectors
    that have not finished in the first half of a ``deadline`` are skipped too, if two others have,
    or one where there is one.
    """
    # Deviation D1: the published script scores the training rows again, as if they were new.
    deadline = FirstHalf.of(settings.deadline, n_needed(len(detectors)))
    settings = replace(settings, deadline=deadline)
    tasks = _plan(detectors, X, rng, settings)
    outcomes = {outcome.info.name: outcome for outcome in _run_tasks(tasks, X, settings)}
    for name in detectors.keys() - outcomes.keys():
        info = DetectorInfo(name, "skipped", "it would take too long", 0.0, 0)
        outcomes[name] = _Outcome(info)
    ran = {name: outcomes[name] for name in detectors if outcomes[name].info.status == "ok"}
    columns = [np.empty((len(X), 0)), *(outcome.scores[:, None] for outcome in ran.values())]
    return FittedDetectors(
        {name: outcome.detector for name, outcome in ran.items()},
        np.concatenate(columns, axis=1),
        [outcomes[name].info for name in detectors],
    )


def n_needed(n_detectors: int) -> int:
    """Number of detectors, of `n_detectors`, without whose scores there is no result."""
    return min(2, n_detectors)


def given_scores(scores: FloatArray, names: Sequence[str] | None = None) -> FittedDetectors:
    """Precomputed scores (n, M), under `names` or score_1, score_2, ..."""
    n_rows, n_detectors = scores.shape
    named = [f"score_{j + 1}" for j in range(n_detectors)] if names is None else list(names)
    info = [DetectorInfo(name, "ok", "", 0.0, n_rows) for name in named]
    return FittedDetectors(dict.fromkeys(named), scores, info)


def score_rows(detectors: Mapping[str, Any], X: FloatArray) -> FloatArray:
    """Raw scores (n, M) of new rows X (n, d) by fitted detectors, higher = more anomalous.

    A detector that fails, or gives a score that is not finite, is a `DetectorError` that names it.
    """
    X = np.array(X, dtype=np.float64, order="C")
    return np.column_stack([_finite_scores(*named, X) for named in detectors.items()])


def _check_alike(own: FloatArray, new: FloatArray) -> None:
    """Refuse scores that separate the rows of the fit, a random sample, from the others."""
    from scipy.stats import ks_2samp

    distance = float(ks_2samp(own, new, method="asymp").statistic)
    chance = 2.0 * np.sqrt(1.0 / len(own) + 1.0 / len(new))
    if distance > MAX_DISTANCE + chance:
        raise ValueError(
            f"it scores the {len(own)} rows of its training sample differently from the other rows "
            f"(Kolmogorov-Smirnov distance {distance:.2f}): scale the columns, or set "
            "max_fit_rows=None"
        )


def _finite_scores(name: str, detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of new rows; a `DetectorError` says why there are none."""
    what = f"Detector {name} cannot score these rows"
    todo = "Check the rows, or fit without this detector."
    try:
        with np.errstate(all="ignore"):
            # Other networks than ours may change PyTorch's global random state.
            is_ours = type(detector).__module__ == "gammagmm.detectors.autoencoders"
            if uses_torch(detector) and not is_ours:
                scores = run_alone(_new_scores, detector, X, preload=detector)
            else:
                scores = _new_scores(detector, X)
    except Exception as error:
        raise DetectorError(f"{what}: {type(error).__name__}: {error}", todo) from error
    if scores.shape != (len(X),):
        shapes = f"it returned scores of shape {scores.shape}, expected ({len(X)},)"
        raise DetectorError(f"{what}: {shapes}", todo)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        many = f"{len(bad)} of {len(X)} scores are not finite, the first of them in row {bad[0]}"
        raise DetectorError(f"{what}: {many}", todo)
    return scores


def _new_scores(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of new rows X (n, d) by a fitted detector."""
    from sklearn.base import OutlierMixin

    if not isinstance(detector, OutlierMixin):
        return np.asarray(detector.decision_function(X), dtype=np.float64)
    score = getattr(detector, "score_samples", None) or detector.decision_function
    return -np.asarray(score(X), dtype=np.float64)  # scikit-learn scores anomalies low


@dataclass(frozen=True)
class _Task:
    """One detector to fit, and how."""

    name: str
    detector: Any
    rng: np.random.Generator
    rows: NDArray[np.intp] | None  # the rows to fit on; None: all
    n_fit: int  # how many they are
    is_alone: bool  # in a process of its own
    timeout: float | None
    deadline: Deadline

    def info(self, status: Status, reason: str, seconds: float) -> DetectorInfo:
        """Record of this detector."""
        return DetectorInfo(self.name, status, reason, seconds, self.n_fit)

    @property
    def too_long(self) -> str:
        """Reason of a detector that did not finish in time."""
        if isinstance(self.deadline, FirstHalf) and self.deadline.is_over:
            part = "" if self.deadline.whole.is_over else "half of "
            return f"it did not finish within {part}timeout={self.deadline.timeout} s"
        return f"it took longer than detector_timeout={self.timeout} s"


@dataclass(frozen=True)
class _Outcome:
    """Record, fitted detector and training scores; only the record of one that was skipped."""

    info: DetectorInfo
    detector: Any = None
    scores: Any = None  # (n,)


class _WorkersFailedError(Exception):
    """A worker died, or a detector could not be sent to one or back."""


def _plan(
    detectors: Mapping[str, Any],
    X: FloatArray,
    rng: np.random.Generator,
    settings: FitSettings,
) -> list[_Task]:
    """A task for each detector, the slowest first; the fastest first before a deadline.

    A slow detector then takes no time from those that would have finished. A detector that the
    settings skip has none.
    """
    sample_rng, *children = rng.spawn(1 + len(detectors))
    n_rows, n_drawn, n_fit = len(X), len(X), dict.fromkeys(detectors, len(X))
    if settings.rows is not None:
        n_drawn, n_fit = settings.rows.n_drawn, settings.rows.n_fit
    is_drawn = any(n < n_rows for n in n_fit.values())
    # A smaller sample is the first of these rows.
    places = sample_rng.choice(n_rows, n_drawn, replace=False) if is_drawn else np.arange(0)
    tasks = [
        _Task(
            name,
            detector,
            child,
            # Deviation D13: the paper fits every detector on all rows.
            np.sort(places[: n_fit[name]]) if n_fit[name] < n_rows else None,
            n_fit[name],
            is_alone=settings.timeout is not None or uses_torch(detector),
            timeout=settings.timeout,
            deadline=settings.deadline,
        )
        for (name, detector), child in zip(detectors.items(), children, strict=True)
        if name in n_fit
    ]
    if settings.deadline.timeout is not None:
        return sorted(tasks, key=_last_if_slow)
    return sorted(tasks, key=lambda task: cost_rank(task.detector))


def _last_if_slow(task: _Task) -> tuple[bool, int]:
    """Place of a task before a deadline: those that need a process of their own are the last."""
    return task.is_alone, -cost_rank(task.detector)


def _run_tasks(tasks: list[_Task], X: FloatArray, settings: FitSettings) -> list[_Outcome]:
    """Outcomes of the tasks on the rows X (n, d), in any order.

    If the workers fail, the unfinished tasks run again, each in a process of its own. Tasks that
    are not done at the deadline of the settings are given up.
    """
    done: list[_Outcome] = []
    began: dict[str, float] = {}
    try:
        for outcome in _outcomes(tasks, X, settings, began):
            done.append(outcome)
    except _WorkersFailedError:
        names = {outcome.info.name for outcome in done}
        again = [replace(task, is_alone=True) for task in tasks if task.name not in names]
        # A thread is enough to wait for a process, and takes detectors that cannot be pickled.
        done.extend(_outcomes(again, X, settings, began, prefer="threads"))
    names = {outcome.info.name for outcome in done}
    for task in tasks:
        if task.name not in names:
            seconds = time.perf_counter() - began[task.name] if task.name in began else 0.0
            done.append(_Outcome(task.info("timeout", task.too_long, seconds)))
            settings.progress(task.name, "timeout", seconds)
    return done


def _outcomes(
    tasks: list[_Task],
    X: FloatArray,
    settings: FitSettings,
    began: dict[str, float],
    prefer: str | None = None,
) -> Iterator[_Outcome]:
    """Outcomes as they come; `progress` is called for each task when a worker starts it.

    The time of that, by the name of the detector, is kept in `began`.
    """
    n_jobs = allowed_jobs(settings.n_jobs)
    waiting = iter(tasks)

    def tell_started(n_tasks: int) -> None:
        for task in islice(waiting, n_tasks):
            began[task.name] = time.perf_counter()
            settings.progress(task.name, "started", 0.0)

    with closing(_run_in_workers(tasks, X, n_jobs, settings.deadline, prefer)) as results:
        tell_started(effective_n_jobs(n_jobs))
        while True:
            try:
                outcome = next(results, None)
            except Exception as error:
                raise _WorkersFailedError from error
            if outcome is None:
                return
            if isinstance(settings.deadline, FirstHalf) and outcome.info.status == "ok":
                settings.deadline.done.append(outcome.info.name)
            settings.progress(outcome.info.name, outcome.info.status, outcome.info.seconds)
            tell_started(1)
            yield outcome


def _run_in_workers(
    tasks: list[_Task], X: FloatArray, n_jobs: int | None, deadline: Deadline, prefer: str | None
) -> Generator[_Outcome]:
    """Outcomes from workers, or from threads where the workers would only cost time.

    Before a deadline, tasks in processes of their own go last.
    """
    here: list[_Task] = []
    others: list[_Task] = []
    if prefer != "threads":
        if deadline.timeout is not None:
            others = [task for task in tasks if not task.is_alone]
        elif all(task.is_alone or _is_short(task, X) for task in tasks):
            here = [task for task in tasks if not task.is_alone]
    if here or others:
        tasks = [task for task in tasks if task.is_alone]
        prefer = "threads"  # enough to wait for a process
    if others:
        n_workers = min(effective_n_jobs(n_jobs), len(others))
        yield from run_until(deadline, n_workers, _fit_task, others, X)
    options = {"batch_size": 1, "pre_dispatch": "all", "return_as": "generator_unordered"}
    # Only threads see how many detectors have finished before a deadline.
    require = None if deadline.timeout is None else "sharedmem"
    n_workers = min(effective_n_jobs(n_jobs), max(len(tasks), 1))
    parallel = Parallel(n_workers, prefer=prefer, require=require, **options)
    with closing(parallel(delayed(_fit_task)(task, X) for task in tasks)) as results:
        yield from _in_threads(here, X, effective_n_jobs(n_jobs))
        yield from results


def _in_threads(tasks: list[_Task], X: FloatArray, n_threads: int) -> Iterator[_Outcome]:
    """Outcomes from threads of this process, as they come; one thread is the calling one."""
    if min(n_threads, len(tasks)) <= 1:
        yield from (_fit_task(task, X) for task in tasks)
        return
    limit = partial(threadpool_limits, limits=1, user_api="openmp")  # holds for a thread alone
    with one_thread(), ThreadPoolExecutor(n_threads, initializer=limit) as pool:
        futures = [pool.submit(_fit_task, task, X) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _is_short(task: _Task, X: FloatArray) -> bool:
    """Whether the task takes less time in a thread than in a worker, which has to start."""
    if task.is_alone or task.deadline.timeout is not None or not starts_processes():
        return False
    is_known = all(cost_rank(part) >= 0 for part in detector_parts(task.detector))
    return is_known and X.size <= MAX_VALUES_HERE


def _fit_task(task: _Task, X: FloatArray) -> _Outcome:
    """Outcome of one task, also of one that fails or whose process dies."""
    start = time.perf_counter()
    status: Status = "failed"
    try:
        if task.is_alone:
            limits: dict[str, Any] = {"timeout": task.timeout, "deadline": task.deadline}
            return run_alone(_fit_here, task, X, **limits, preload=task)
        return _fit_here(task, X)
    except OutOfTimeError:
        status, reason, trace = "timeout", task.too_long, traceback.format_exc()
    except BrokenProcessPool:
        reason, trace = "its process died, possibly out of memory", traceback.format_exc()
    except Exception as error:
        reason, trace = f"{type(error).__name__}: {error}", traceback.format_exc()
    info = task.info(status, reason, time.perf_counter() - start)
    return _Outcome(replace(info, traceback=trace))


def _fit_here(task: _Task, X: FloatArray) -> _Outcome:
    """Outcome of a task that succeeds, in this process."""
    start = time.perf_counter()
    X = np.array(X, dtype=np.float64, order="C")
    detector = _seeded(task.detector, task.rng)
    scores = _fit_all(detector, X) if task.rows is None else _fit_some(detector, X, task.rows)
    return _Outcome(task.info("ok", "", time.perf_counter() - start), detector, scores)


def _seeded(detector: Any, rng: np.random.Generator) -> Any:
    """Copy of the detector in which every unset seed comes from `rng`."""
    detector = copy.deepcopy(detector)
    for part in detector_parts(detector):
        if getattr(part, "random_state", 0) is None:
            part.random_state = int(rng.integers(2**31 - 1))
    return detector


def _fit_all(detector: Any, X: FloatArray) -> FloatArray:
    """Scores (n,) of the rows X (n, d), which the detector is fitted on here."""
    # Scores that are not finite are reported later, with the name of the detector.
    with one_thread(), np.errstate(all="ignore"):
        detector.fit(X)
        if hasattr(detector, "decision_scores_"):  # PyOD's
            scores = np.asarray(detector.decision_scores_, dtype=np.float64)
        elif hasattr(detector, "negative_outlier_factor_"):
            # As a new row, a training row of LocalOutlierFactor would be its own neighbour.
            scores = -np.asarray(detector.negative_outlier_factor_)
        else:
            scores = _new_scores(detector, X)
    if scores.shape != (len(X),):
        raise ValueError(f"it returned scores of shape {scores.shape}, expected ({len(X)},)")
    return scores


def _fit_some(detector: Any, X: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
    """Scores (n,) of all rows X by the detector fitted on `rows`; the others count as new."""
    if scores_batches(detector):
        raise ValueError(
            "its score for a row depends on the other rows in the same call, so it cannot be "
            "fitted on a sample: set max_fit_rows=None"
        )
    own = _fit_all(detector, X[rows])
    others = np.delete(np.arange(len(X)), rows)
    with one_thread(), np.errstate(all="ignore"):
        new = _new_scores(detector, X[others])
    _check_alike(own, new)
    scores = np.empty(len(X))
    scores[rows], scores[others] = own, new
    return scores
