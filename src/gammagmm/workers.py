"""A function and its arguments -> its result from a process of its own, or within a time limit."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

__all__ = ["OutOfTimeError", "allowed_jobs", "one_thread", "run_alone"]

Result = TypeVar("Result")


STARTING = 120.0
"""Seconds that a new process may take to import what it needs."""


class OutOfTimeError(TimeoutError):
    """The function did not return in time, and its process was ended."""


def run_alone(
    function: Callable[..., Result], *args: Any, timeout: float | None = None, preload: Any = None
) -> Result:
    """What ``function(*args)`` returns or raises in a new process, which is ended afterwards.

    Whatever the function does to the process's state, or to the process, stays there: one that
    dies raises `BrokenProcessPool`, one that takes more than `timeout` seconds `OutOfTimeError`.
    The imports that `preload` brings along are not timed, if they take less than STARTING. Inside a
    worker of ``multiprocessing.Pool``, which may have no children, it is a RuntimeError.

    >>> run_alone(divmod, 7, 3)
    (2, 1)
    """
    if _is_childless():
        raise RuntimeError("it needs a process of its own, which a daemonic worker may not start")
    # Python's own pools would run the user's main module anew in the new process.
    from joblib.externals.loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(max_workers=1)
    try:
        _wait(executor.submit(_prepare, preload), STARTING + timeout if timeout else None)
        result: Result = _wait(executor.submit(function, *args), timeout)
    finally:
        executor.shutdown(kill_workers=True)
    return result


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
