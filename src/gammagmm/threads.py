"""Threads: ours take the place of BLAS's while the work lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

__all__ = ["single_threaded_blas"]


@contextmanager
def single_threaded_blas() -> Iterator[int]:
    """Keep BLAS to one thread; gives the number of threads it would have used, which are free."""
    controller = ThreadpoolController().select(user_api="blas")
    n_threads = max((library["num_threads"] for library in controller.info()), default=1)
    with controller.limit(limits=1):
        yield n_threads
