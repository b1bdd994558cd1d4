"""Detectors to fit -> what became of each: side by side, in time, whatever one of them does."""

from __future__ import annotations

import time
import traceback
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from gammagmm._support.deadlines import NEVER, Deadline, OutOfTimeError
from gammagmm._support.processes import allowed_jobs, run_alone, run_until
from gammagmm._support.progress import Progress, quiet
from gammagmm.detectors.scoring import fit_scores, fit_subset, seeded

__all__ = ["DetectorInfo", "FitSettings", "Outcome", "Status", "Task", "run_tasks"]

FloatArray: TypeAlias = NDArray[np.float64]
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
