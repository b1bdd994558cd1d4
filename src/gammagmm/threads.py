"""Threads: ours take the place of BLAS's while the work lasts."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["single_threaded_blas"]


class _BlasLimit:
    """Context in which BLAS runs on one thread; gives the number of threads it had before.

    The limit holds for the whole process, so that contexts of several Python threads share it: the
    first sets it and the last takes it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._n_threads = 1
        self._limiter: Any = None

    def __enter__(self) -> int:
        with self._lock:
            if self._depth == 0:
                controller = ThreadpoolController().select(user_api="blas")
                self._n_threads = max((lib["num_threads"] for lib in controller.info()), default=1)
                self._limiter = controller.limit(limits=1)
            self._depth += 1
            return self._n_threads

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._limiter.restore_original_limits()


single_threaded_blas = _BlasLimit()
