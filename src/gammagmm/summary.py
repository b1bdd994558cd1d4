"""The module of `FitSummary` in version 0.1; it will be removed in version 0.3."""

from typing import Any

from gammagmm._support.deprecation import moved_name


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, "FitSummary")
