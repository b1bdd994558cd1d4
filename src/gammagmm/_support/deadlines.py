"""Seconds that a fit may take -> the moment at which it must be over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import TIMEOUT_MAX

__all__ = ["NEVER", "Deadline", "OutOfTimeError"]


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
