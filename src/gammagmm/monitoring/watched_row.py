"""A row above the threshold, as a page shows it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WatchedRow"]


@dataclass(frozen=True)
class WatchedRow:
    """A row above the threshold.

    Attributes
    ----------
    name : str
        Name or number of the row.
    period : str
        Name of its period.
    score : float
        Its score.
    reasons : str
        The columns in which it is unusual, in words.
    """

    name: str
    period: str
    score: float
    reasons: str
