"""A function of numbers and arrays -> the same, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled"]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Numba's decorator, kept on disk where a folder for that can be written."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            made = njit(nogil=True, error_model="numpy", cache=True, **options)(function)
        except RuntimeError:  # no folder to keep it in
            made = njit(nogil=True, error_model="numpy", **options)(function)
        result: Callable[..., Any] = made
        return result

    return decorate
