"""Functions that run in processes of their own, and deadlines for them."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import TIMEOUT_MAX
from typing import Any, TypeVar

import joblib
from joblib.parallel import LokyBackend, get_active_backend
from threadpoolctl import ThreadpoolController

__all__ = [
    "NEVER",
    "Deadline",
    "FirstHalf",
    "OutOfTimeError",
    "allowed_jobs",
    "one_thread",
    "run_alone",
    "run_until",
    "starts_processes",
]


Result = TypeVar("Result")

STARTING_SECONDS = 120.0
"""Time that a new process may take to import what it needs."""


class OutOfTimeError(TimeoutError):
    """The work exceeded its time limit."""


@dataclass(frozen=True)
class Deadline:
    """A moment on the machine's monotonic clock, which its processes share."""

    timeout: float | None = None  # the seconds that were given; None: no limit
    moment: float = float("inf")

    @classmethod
    def after(cls, timeout: float | None) -> Deadline:
        """The moment `timeout` seconds from now."""
        return NEVER if timeout is None else cls(timeout, time.monotonic() + timeout)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.moment

    def check(self) -> None:
        """Raise `OutOfTimeError` if the deadline has passed."""
        if self.is_over:
            raise OutOfTimeError(f"timeout={self.timeout} s is over")

    def left(self, limit: float | None = None) -> float | None:
        """Seconds until the moment, `limit` at most; None where there is no limit."""
        if self.timeout is None and limit is None:
            return None
        longest = min(TIMEOUT_MAX, float("inf") if limit is None else limit)
        return min(max(self.moment - time.monotonic(), 0.0), longest)


NEVER = Deadline()

POLLING_SECONDS = 0.05
"""How often work that waits for other results looks whether there are enough of them."""


@dataclass(frozen=True)
class FirstHalf(Deadline):
    """The first half of the time of another deadline, or more until there are enough results.

    It is over at the half if `done` has `n_enough` results then, otherwise as soon as it has them,
    and with the other deadline at the latest.
    """

    whole: Deadline = NEVER
    n_enough: int = 1
    done: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, whole: Deadline, n_enough: int) -> Deadline:
        """The first half of the time of `whole`, which is endless if that is."""
        if whole.timeout is None:
            return whole
        return cls(whole.timeout, whole.moment - 0.5 * whole.timeout, whole, n_enough)

    @property
    def is_over(self) -> bool:
        """Whether the time has passed, and there are enough results or no time is left."""
        is_enough = len(self.done) >= self.n_enough
        return self.whole.is_over or (is_enough and super().is_over)

    def left(self, limit: float | None = None) -> float | None:
        """Seconds until the half, and a short time after it; `limit` at most."""
        longest = max(self.moment - time.monotonic(), POLLING_SECONDS)
        return self.whole.left(longest if limit is None else min(longest, limit))


def run_alone(
    function: Callable[..., Result],
    *args: Any,
    timeout: float | None = None,
    deadline: Deadline = NEVER,
    preload: Any = None,
) -> Result:
    """What ``function(*args)`` returns or raises in a new process, which is ended afterwards.

    The function cannot change the state of the calling process.

    Parameters
    ----------
    function : callable
        What to call; it is pickled with cloudpickle.
    *args : object
        What it is called with.
    timeout : float, default=None
        Seconds that the call may take.
    deadline : Deadline, default=NEVER
        When the call must be done.
    preload : object, default=None
        Sent to the process first. Importing what it needs does not count towards `timeout`,
        unless it takes more than STARTING_SECONDS.

    Returns
    -------
    object
        What the function returned.

    Raises
    ------
    OutOfTimeError
        The call exceeded `timeout` or `deadline`.
    BrokenProcessPool
        The process died.
    RuntimeError
        This process is a worker of ``multiprocessing.Pool``, which may not have children.

    Examples
    --------
    >>> run_alone(divmod, 7, 3)
    (2, 1)
    """
    deadline.check()
    executor, calls = _new_processes(1), []
    try:
        calls.append(executor.submit(_prepare, preload))
        _wait(calls[0], deadline, STARTING_SECONDS + timeout if timeout else None)
        calls.append(executor.submit(function, *args))
        result: Result = _wait(calls[1], deadline, timeout)
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
    """``function(task, shared)`` of each task, in the order they finish, from new processes.

    At the `deadline` the processes are ended, and no more results come. A process that dies
    raises `BrokenProcessPool`.

    >>> sorted(run_until(NEVER, 1, pow, [2, 3], 10))
    [1024, 59049]
    """
    if deadline.is_over:
        return
    # Windows cannot delete a file that an ended process still maps.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Each process maps what is shared, instead of a copy.
        path = joblib.dump(shared, Path(folder, "shared"))[0]
        executor = _new_processes(n_workers, initializer=_share, initargs=(path,))
        calls = (executor.submit(_call, function, task) for task in tasks)
        waiting = set(islice(calls, n_workers))
        try:
            while waiting and not deadline.is_over:
                done, waiting = wait(waiting, deadline.left(), FIRST_COMPLETED)
                waiting |= set(islice(calls, len(done)))
                for call in done:
                    yield call.result()
            # Results that came while the caller was at work count, even after the deadline.
            for call in wait(waiting, 0.0).done:
                yield call.result()
        finally:
            _end(executor, waiting)


def allowed_jobs(n_jobs: int | None) -> int | None:
    """`n_jobs`, or 1 inside a worker that may not have workers."""
    return 1 if _is_childless() else n_jobs


def starts_processes() -> bool:
    """Whether joblib's workers are processes on this machine, which have to start first.

    They are, unless the user has chosen another backend: threads, or a Dask cluster.

    >>> with joblib.parallel_config(backend="threading"):
    ...     starts_processes()
    False
    """
    return isinstance(get_active_backend()[0], LokyBackend)


def one_thread() -> AbstractContextManager[Any]:
    """BLAS and OpenMP on one thread, as in every worker process: the same bits for any `n_jobs`.

    The limit holds for the whole process, so only its main thread sets it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    limits: AbstractContextManager[Any] = (
        _thread_pools(len(sys.modules)).limit(limits=1) if is_main else nullcontext()
    )
    return limits


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """The libraries of this process that have threads, found again after imports.

    The search takes 4 ms, as long as some detectors take for thousands of rows.
    """
    return ThreadpoolController()


_shared: list[Any] = []
"""In a process of `run_until`: what its tasks share."""


def _share(path: str) -> None:
    _shared.append(joblib.load(path, mmap_mode="r"))


def _call(function: Callable[..., Result], task: Any) -> Result:
    _prepare(task)
    return function(task, _shared[-1])


def _prepare(preload: Any) -> None:
    """Make the new process ready; unpickling `preload` has imported what it needs."""
    # The semaphore of tqdm's lock between processes would outlive a process that is ended.
    if "tqdm" in sys.modules:
        sys.modules["tqdm"].tqdm.set_lock(threading.RLock())


def _new_processes(n_workers: int, **options: Any) -> Any:
    """An executor whose processes nothing else uses."""
    if _is_childless():
        raise RuntimeError(
            "it must run in a separate process, but a daemonic worker cannot start one"
        )
    # Python's own pools would run the user's main module again in the new process.
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=n_workers, **options)


def _is_childless() -> bool:
    return multiprocessing.current_process().daemon


def _wait(future: Future[Result], deadline: Deadline, timeout: float | None) -> Result:
    end = time.monotonic() + (float("inf") if timeout is None else timeout)
    while not wait([future], deadline.left(max(end - time.monotonic(), 0.0))).done:
        deadline.check()
        if time.monotonic() >= end:
            raise OutOfTimeError(f"no result after {timeout} s")
    return future.result()


def _end(executor: Any, calls: Iterable[Future[Any]]) -> None:
    """End the processes at once, even while they work on `calls`."""
    # loky's thread prints a traceback about a call that it has not sent yet.
    while not all(call.running() or call.done() for call in calls):
        time.sleep(0.001)
    executor.shutdown(kill_workers=True)
