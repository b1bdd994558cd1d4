"""Numba's compiler, with a cache on disk where one can be written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit

__all__ = ["compiled"]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that compiles a function and caches it on disk where that is possible."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        compiler = partial(njit, nogil=True, error_model="numpy", **options)
        try:
            return compiler(cache=True)(function)
        except RuntimeError:  # no folder for the cache
            return compiler()(function)

    return decorate
