"""A ranking -> the rows whose labels to ask for, spread evenly over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_falling_score", "spread_evenly", "spread_over_groups"]

Rows = NDArray[np.int_]

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


def by_falling_score(rows: Rows, scores: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """The `rows`, by falling score; rows with the same score are in a random order.

    In another order, what the rows have in common with their neighbours in the table would decide
    which of them are labelled.
    """
    if len(np.unique(scores)) == len(scores):
        return rows[np.argsort(-scores)]
    return rows[np.lexsort((rng.random(len(rows)), -scores))]


def spread_evenly(rows: Rows, rng: np.random.Generator) -> Rows:
    """All `rows` ordered so that every beginning is spread evenly over their order.

    Steps of the golden section stay evenly spaced however many are taken. They start at a random
    row, so that each row is as likely as any other to come first, or at any other place.
    """
    if not len(rows):
        return rows
    steps = np.argsort(np.argsort(_GOLDEN * np.arange(len(rows)) % 1.0, kind="stable"))
    return rows[(steps + rng.integers(len(rows))) % len(rows)]


def spread_over_groups(rows: Rows, groups: NDArray[Any], n: int, rng: np.random.Generator) -> Rows:
    """`n` of the `rows`, spread evenly over the `groups` (n_rows,) and over the order in each.

    The rows are put in the order of their groups, and every len(rows) / n-th of them is taken, from
    a random start. So every row is as likely as any other, a group has rows in proportion to its
    size, and a group of at least len(rows) / n rows has one. Every beginning of the answer is
    spread as well.
    """
    ordered = rows[np.argsort(groups, kind="stable")]
    places = np.floor((rng.random() + np.arange(n)) * (len(rows) / n)).astype(int)
    return spread_evenly(ordered[places], rng)
