"""Columns of rows -> how many rows lie in each part of the range of a column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Parts", "count_parts", "training_parts"]

Array = NDArray[np.float64]

QUANTILES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98)
"""Shares of the training rows at or below the ends of the parts of a column."""
MAX_MANY, QUANTILES_OF_MANY = 100, (0.1, 0.3, 0.5, 0.7, 0.9)
"""The same for tables with more columns."""


@dataclass(frozen=True)
class Parts:
    """The training rows in each part of the range of a column.

    Attributes
    ----------
    ends : tuple of float
        Upper ends of all parts but the last, rising; a value at an end lies below it.
    counts : tuple of int
        Number of training rows in each part.
    is_text : bool, default=False
        Whether the column is 1 for the rows with one text, and 0 for the others.
    """

    ends: tuple[float, ...]
    counts: tuple[int, ...]
    is_text: bool = False

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.ends) + 1 or min(self.counts) < 0:
            raise ValueError("a column must have a count for each part")


def training_parts(
    rows: Array, names: Sequence[str], texts: Collection[str] = ()
) -> dict[str, Parts]:
    """The parts of each column of the training rows (n, d); a constant column has two.

    `texts` are the names of the columns that stand for a text.

    >>> training_parts(np.array([[0.0, 3.0], [0.0, 4.0], [1.0, 5.0]]), ["a", "b"])["b"]
    Parts(ends=(3.0, 4.0), counts=(1, 1, 1), is_text=False)
    """
    shares = QUANTILES if len(names) <= MAX_MANY else QUANTILES_OF_MANY
    parts = {}
    for name, column in zip(names, np.asarray(rows).T, strict=True):
        ends = np.unique(np.quantile(column, shares, method="inverted_cdf"))
        ends = ends[ends < column.max()]
        own = tuple(ends.tolist()) or (float(column.min()),)
        parts[name] = Parts(own, _counts(column, own), name in texts)
    return parts


def count_parts(rows: Array, parts: Mapping[str, Parts]) -> dict[str, tuple[int, ...]]:
    """Number of rows (n, d) in each part of each column.

    >>> count_parts(np.array([[0.0], [0.5], [7.0]]), {"a": Parts((0.0, 1.0), (9, 0, 1))})
    {'a': (1, 1, 1)}
    """
    pairs = zip(parts.items(), np.asarray(rows).T, strict=True)
    return {name: _counts(column, own.ends) for (name, own), column in pairs}


def _counts(column: Array, ends: tuple[float, ...]) -> tuple[int, ...]:
    places = np.searchsorted(ends, column, side="left")
    return tuple(np.bincount(places, minlength=len(ends) + 1).tolist())
