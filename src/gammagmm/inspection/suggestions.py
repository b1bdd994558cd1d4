"""A ranking -> the rows whose labels to ask for, spread evenly over it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["spread_evenly", "spread_over_groups"]

Rows = NDArray[np.int_]

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)


def spread_evenly(rows: Rows, rng: np.random.Generator) -> Rows:
    """All `rows` ordered so that every beginning is spread evenly over their order.

    Steps of the golden section stay evenly spaced however many are taken. They start at a random
    row, so that each row is as likely as any other to come first, or at any other place.
    """
    if not len(rows):
        return rows
    steps = np.argsort(np.argsort(_GOLDEN * np.arange(len(rows)) % 1.0, kind="stable"))
    return rows[(steps + rng.integers(len(rows))) % len(rows)]


def spread_over_groups(rows: Rows, groups: Any, n: int, rng: np.random.Generator) -> Rows:
    """`n` of the `rows` from all `groups` (n_rows,), in proportion to their rows.

    Each group has at least one row. The rows of a group are spread evenly over its order, and every
    beginning of the answer has rows of the groups in about the same proportions.
    """
    names, place = np.unique(np.asarray(groups), return_inverse=True)
    counts = np.bincount(place, minlength=len(names))
    if n < len(names):
        raise ValueError(
            f"n must be at least {len(names)}, the number of groups with rows to label, got {n}."
        )
    allotted = _allot(counts, n)
    chosen, turn = [], []
    for group, size in enumerate(allotted):
        chosen.append(spread_evenly(rows[place == group], rng)[:size])
        turn.append((np.arange(size) + rng.random()) / size)
    order = np.argsort(np.concatenate(turn), kind="stable")
    return np.concatenate(chosen)[order]


def _allot(counts: Rows, n: int) -> Rows:
    """`n` split in proportion to `counts`, with at least 1 and at most the count for each.

    >>> _allot(np.array([900, 95, 5]), 10)
    array([8, 1, 1])
    """
    allotted = np.ones(len(counts), dtype=int)
    for _ in range(n - len(counts)):
        # Of the groups with rows left, the one that is furthest below its share (Webster).
        allotted[np.argmax(np.where(allotted < counts, counts / (allotted + 0.5), -1.0))] += 1
    return allotted
