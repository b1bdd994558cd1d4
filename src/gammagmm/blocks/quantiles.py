"""Blocks of rows -> exact quantiles and ranks of their values, by counting.

A float's bits, read as a whole number with the sign bit flipped, sort as the floats do. The value
at a rank is found digit by digit: each pass counts how many rows lie in each of 4,096 cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.blocks.collection import Blocks
from gammagmm.mixture.score_space import ScoreScaler
from gammagmm.posterior.decisions import RankTable
from gammagmm.posterior.groups import Sighting, rows_beyond

__all__ = ["count_above", "count_beyond", "cut_offs", "rank_table"]

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]
Values = Callable[[Array], Array]
"""Values (n, C) of a block's rows (n, M)."""
# Number of bits below each digit, and number of bits of the digit: 64 in all.
DIGITS = ((52, 12), (40, 12), (28, 12), (16, 12), (4, 12), (0, 4))
SIGN = np.uint64(1 << 63)
MAX_EDGES = 20_000
SLICE_ROWS = 100_000


def cut_offs(blocks: Blocks, values: Values, gamma: float) -> Array:
    """Value that a share `gamma` of the rows exceeds, for each of the C columns of `values`.

    Equal to ``np.percentile(values, 100 . (1 - gamma), axis=0)`` of all rows, to the bit.
    """
    place = (blocks.n_rows - 1) * (100.0 * (1.0 - gamma) / 100.0)
    rank = int(min(max(np.floor(place), 0.0), blocks.n_rows - 1))
    lower, n_up_to = _value_at(blocks, values, rank)
    above = blocks.summarise(partial(_smallest_above, values), lower).least
    upper = np.where(n_up_to > rank + 1, lower, above)
    upper = np.where(np.isfinite(upper), upper, lower)
    return _between(lower, upper, place - rank)


def _between(lower: Array, upper: Array, share: float) -> Array:
    """NumPy's linear interpolation between two values, to the bit."""
    step = upper - lower
    return np.where(share >= 0.5, upper - step * (1.0 - share), lower + step * share)


def _value_at(blocks: Blocks, values: Values, rank: int) -> tuple[Array, NDArray[np.intp]]:
    """The value (C,) at `rank`, from 0, of each column, and how many rows do not exceed it."""
    prefix = np.zeros(0, dtype=np.uint64)
    n_below: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    for shift, bits in DIGITS:
        counts = blocks.summarise(partial(_digit_counts, values), prefix, shift, bits)
        if not len(prefix):
            prefix, n_below = np.zeros(len(counts), np.uint64), np.zeros(len(counts), np.intp)
        reached = n_below[:, None] + np.cumsum(counts, axis=1)
        digit = (reached <= rank).sum(axis=1)
        columns = np.arange(len(digit))
        n_below = reached[columns, digit] - counts[columns, digit]
        n_equal = counts[columns, digit]
        prefix = (prefix << np.uint64(bits)) | digit.astype(np.uint64)
    return _from_keys(prefix), n_below + n_equal


def _digit_counts(
    values: Values, rows: Array, prefix: Keys, shift: int, bits: int
) -> NDArray[np.intp]:
    """Rows in each cell (C, 2 ** bits) of the next digit, of those whose key begins with `prefix`.

    An empty prefix begins every key.
    """
    counts: Any = 0
    for part in _slices(rows):
        keys = _to_keys(values(part))
        counts = counts + np.stack(
            [_count_digits(own, prefix[j : j + 1], shift, bits) for j, own in enumerate(keys.T)]
        )
    return np.asarray(counts)


def _slices(rows: Array) -> Iterator[Array]:
    """Parts of the rows, since what is computed from them needs several times their memory."""
    for start in range(0, len(rows), SLICE_ROWS):
        yield rows[start : start + SLICE_ROWS]


def _count_digits(keys: Keys, prefix: Keys, shift: int, bits: int) -> NDArray[np.intp]:
    """Keys in each of 2 ** bits cells, of those that begin with `prefix`."""
    if len(prefix) and shift + bits < 64:
        keys = keys[keys >> np.uint64(shift + bits) == prefix[0]]
    cells = (keys >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
    return np.bincount(cells.astype(np.intp), minlength=1 << bits)


@dataclass(frozen=True)
class _Least:
    """Smallest values (C,); adding two takes the smaller ones."""

    least: Array

    def __add__(self, other: _Least) -> _Least:
        return _Least(np.minimum(self.least, other.least))


def _smallest_above(values: Values, rows: Array, lower: Array) -> _Least:
    least = np.full(len(lower), np.inf)
    for part in _slices(rows):
        own = values(part)
        least = np.minimum(least, np.where(own > lower, own, np.inf).min(axis=0))
    return _Least(least)


def _to_keys(values: Array) -> Keys:
    """Whole numbers in the same order as the floats."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def _from_keys(keys: Keys) -> Array:
    floats: Array = np.where(keys & SIGN, keys ^ SIGN, ~keys).view(np.float64)
    return floats


def count_above(rows: Array, values: Values, threshold: float) -> int:
    """Rows of a block whose first value lies strictly above `threshold`."""
    return sum(int((values(part)[:, 0] > threshold).sum()) for part in _slices(rows))


def count_beyond(rows: Array, scaler: ScoreScaler, sighting: Sighting) -> int:
    """Rows of a block, given their raw scores, that belong to the group that was sighted."""
    beyond = (rows_beyond(scaler.transform(part), sighting) for part in _slices(rows))
    return sum(int(part.sum()) for part in beyond)


def rank_table(blocks: Blocks, values: Values, some: Array) -> RankTable:
    """Table of the first column of `values`, with edges chosen from `some` of its values (n,)."""
    edges = np.unique(some)
    if len(edges) > MAX_EDGES:
        edges = edges[np.linspace(0, len(edges) - 1, MAX_EDGES).astype(np.intp)]
    from_edge, between = blocks.summarise(partial(_edge_counts, values), edges)
    n_at_least = np.cumsum(from_edge[::-1])[::-1][1:]
    return RankTable(edges, n_at_least, blocks.n_rows, between.max() / blocks.n_rows)


def _edge_counts(values: Values, rows: Array, edges: Array) -> NDArray[np.intp]:
    """Number of rows (2, E + 1) below the first edge, then from each edge to the next.

    The first line counts the rows at the lower edge, the second leaves them out.
    """
    scores = np.concatenate([values(part)[:, 0] for part in _slices(rows)])
    places = np.searchsorted(edges, scores, side="right")
    is_between = np.searchsorted(edges, scores, side="left") == places
    kinds = (places, places[is_between])
    return np.stack([np.bincount(kind, minlength=len(edges) + 1) for kind in kinds])
