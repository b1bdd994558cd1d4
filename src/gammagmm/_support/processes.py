"""A function in a process of its own, and the moment by which work must be over."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import TIMEOUT_MAX
from typing import Any, TypeVar

import joblib
from threadpoolctl import threadpool_limits

__all__ = [
    "NEVER",
    "Deadline",
    "OutOfTimeError",
    "allowed_jobs",
    "one_thread",
    "run_alone",
    "run_until",
]


class OutOfTimeError(TimeoutError):
    """Work was given up because its time was over."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the machine's monotonic clock, which its processes share."""

    timeout: float | None = None  # the seconds that were given; None for any number
    moment: float = float("inf")

    @classmethod
    def after(cls, timeout: float | None) -> Deadline:
        """The moment that is `timeout` seconds from now."""
        return NEVER if timeout is None else cls(timeout, time.monotonic() + timeout)

    @property
    def is_over(self) -> bool:
        """Whether the moment has come."""
        return time.monotonic() >= self.moment

    def check(self) -> None:
        """Raise `OutOfTimeError` if the moment has come."""
        if self.is_over:
            raise OutOfTimeError(f"timeout={self.timeout} s is over")

    def left(self, limit: float | None = None) -> float | None:
        """Seconds until the moment, `limit` at most; None for any number."""
        if self.timeout is None and limit is None:
            return None
        longest = min(TIMEOUT_MAX, float("inf") if limit is None else limit)
        return min(max(self.moment - time.monotonic(), 0.0), longest)


NEVER = Deadline()
Result = TypeVar("Result")
STARTING = 120.0
"""Seconds that a new process may take to import what it needs."""


def run_alone(
    function: Callable[..., Result],
    *args: Any,
    timeout: float | None = None,
    deadline: Deadline = NEVER,
    preload: Any = None,
) -> Result:
    """What ``function(*args)`` returns or raises in a new process, which is ended afterwards.

    Whatever the function does to the process's state, or to the process, stays there: one that
    dies raises `BrokenProcessPool`, one that takes more than `timeout` seconds or is not done at
    the `deadline` an `OutOfTimeError`. The imports that `preload` brings along are no part of the
    `timeout`, if they take less than STARTING. Inside a worker of ``multiprocessing.Pool``, which
    may have no children, it is a RuntimeError.

    >>> run_alone(divmod, 7, 3)
    (2, 1)
    """
    deadline.check()
    executor, calls = _new_processes(1), []
    try:
        calls.append(executor.submit(_prepare, preload))
        _wait(calls[0], deadline.left(STARTING + timeout if timeout else None))
        calls.append(executor.submit(function, *args))
        result: Result = _wait(calls[1], deadline.left(timeout))
    finally:
        _end(executor, calls)
    return result


def run_until(
    deadline: Deadline,
    n_workers: int,
    function: Callable[..., Result],
    tasks: Iterable[Any],
    shared: Any,
) -> Iterator[Result]:
    """``function(task, shared)`` of each task, as they come, from `n_workers` new processes.

    At the `deadline` the processes are ended, and no more comes. One that dies raises
    `BrokenProcessPool`.

    >>> sorted(run_until(NEVER, 1, pow, [2, 3], 10))
    [1024, 59049]
    """
    if deadline.is_over:
        return
    with TemporaryDirectory() as folder:
        # Each process maps what is shared, instead of a copy.
        path = joblib.dump(shared, Path(folder, "shared"))[0]
        executor = _new_processes(n_workers, initializer=_share, initargs=(path,))
        yield from _results(executor, deadline, n_workers, function, tasks)


def _results(
    executor: Any,
    deadline: Deadline,
    n_workers: int,
    function: Callable[..., Result],
    tasks: Iterable[Any],
) -> Iterator[Result]:
    """Results as they come; the executor's processes are ended with the last, or before."""
    calls = (executor.submit(_call, function, task) for task in tasks)
    waiting = set(islice(calls, n_workers))
    try:
        while waiting and not deadline.is_over:
            done, waiting = wait(waiting, deadline.left(), FIRST_COMPLETED)
            waiting |= set(islice(calls, len(done)))
            for call in done:
                yield call.result()
        # What was done while the caller was at work counts, however late it is asked for.
        for call in wait(waiting, 0.0).done:
            yield call.result()
    finally:
        _end(executor, waiting)


_shared: list[Any] = []
"""In a process of `run_until`: what its tasks share."""


def _share(path: str) -> None:
    _shared.append(joblib.load(path, mmap_mode="r"))


def _call(function: Callable[..., Result], task: Any) -> Result:
    _prepare(task)
    return function(task, _shared[-1])


def _new_processes(n_workers: int, **options: Any) -> Any:
    """An executor with processes that nothing else uses."""
    if _is_childless():
        raise RuntimeError("it needs a process of its own, which a daemonic worker may not start")
    # Python's own pools would run the user's main module anew in the new process.
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=n_workers, **options)


def _end(executor: Any, calls: Iterable[Future[Any]]) -> None:
    """End the processes at once, whatever the `calls` that they were given."""
    # loky's thread raises, on standard error, over one that it has not sent yet.
    while not all(call.running() or call.done() for call in calls):
        time.sleep(0.001)
    executor.shutdown(kill_workers=True)


def _wait(future: Future[Result], timeout: float | None) -> Result:
    if not wait([future], timeout).done:
        raise OutOfTimeError(f"no result after {timeout} s")
    return future.result()


def _prepare(preload: Any) -> None:
    """Make the new process ready; `preload` has been loaded by then."""
    # The semaphore of tqdm's lock between processes would outlive a process that is ended.
    if "tqdm" in sys.modules:
        sys.modules["tqdm"].tqdm.set_lock(threading.RLock())


def allowed_jobs(n_jobs: int | None) -> int | None:
    """`n_jobs`, or 1 inside a worker that may have none of its own."""
    return 1 if _is_childless() else n_jobs


def _is_childless() -> bool:
    return multiprocessing.current_process().daemon


def one_thread() -> AbstractContextManager[Any]:
    """BLAS and OpenMP on one thread, as in every worker process: the same bits for any `n_jobs`.

    The limit holds for the whole process, so that only its main thread may set it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return threadpool_limits(limits=1) if is_main else nullcontext()
