"""Rows of the score space -> the statistics that the M-step needs; those of blocks can be added.

With phi(s) = [1, s, s_i s_j for i <= j] the expected log density of every component is linear in
phi(s): the responsibilities R are softmax(phi(s) . W), and the M-step needs only R' . phi(s).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from math import ceil
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = [
    "Statistics",
    "add_blocks",
    "block_size",
    "block_statistics",
    "features",
    "pairs",
    "row_blocks",
    "start_statistics",
    "summarise",
    "unpack_moments",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Moments of the responsibilities of a block of rows.

    Attributes
    ----------
    moments : ndarray of shape (n_components, n_features)
        Responsibilities times phi(s), summed over the rows.
    entropy : float
        -sum of r log r over rows and components.
    """

    moments: Array
    entropy: float

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(self.moments + other.moments, self.entropy + other.entropy)


def block_statistics(Z: Array, coefficients: Array) -> Statistics:
    """Statistics of the rows `Z` (n, M) under the responsibilities softmax(phi(s) . W).

    `coefficients` is W of shape (n_components, n_features).
    """
    return add_blocks([summarise(Z, max(len(Z), 1), coefficients)], coefficients)


def summarise(Z: Array, size: int, coefficients: Array) -> tuple[Array, Array]:
    """Moments (n_blocks, K, n_features) and entropies (n_blocks,) of blocks of `size` rows.

    It runs without the interpreter lock.
    """
    from gammagmm.mixture.kernel import accumulate

    weights = np.ascontiguousarray(coefficients.T)
    return accumulate(np.ascontiguousarray(Z), size, weights)


def add_blocks(parts: list[tuple[Array, Array]], coefficients: Array) -> Statistics:
    """Sum of the blocks in `parts`, added in their order."""
    moments, entropy = np.zeros(coefficients.shape), 0.0
    for part_moments, part_entropies in parts:
        for block_moments, block_entropy in zip(part_moments, part_entropies, strict=True):
            moments += block_moments
            entropy += float(block_entropy)
    return Statistics(moments, entropy)


def start_statistics(Z: Array, labels: NDArray[np.intp], n_components: int) -> Statistics:
    """Statistics of the hard assignment of each row to the component `labels` (n,)."""

    def assigned(rows: slice) -> Statistics:
        block, own = Z[rows], labels[rows]
        ones, columns = np.ones(len(block)), np.arange(len(block))
        shape = (n_components, len(block))
        return Statistics(csr_array((ones, (own, columns)), shape=shape) @ features(block), 0.0)

    return reduce(add, map(assigned, row_blocks(len(Z))))


def features(Z: Array) -> Array:
    """phi(s) = [1, s, s_i s_j for i <= j] of each row of `Z`, shape (n, n_features).

    >>> features(np.array([[2.0, 3.0]])).tolist()
    [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]
    """
    rows, columns = pairs(Z.shape[1])
    return np.concatenate([np.ones((len(Z), 1)), Z, Z[:, rows] * Z[:, columns]], axis=1)


@lru_cache
def pairs(n_detectors: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All pairs i <= j, in the order of the products in phi."""
    rows, columns = np.triu_indices(n_detectors)
    return rows, columns


def unpack_moments(moments: Array, n_detectors: int) -> tuple[Array, Array, Array]:
    """Counts (K,), sums (K, M) and sums of products (K, M, M) from moments of phi."""
    rows, columns = pairs(n_detectors)
    outer = np.empty((len(moments), n_detectors, n_detectors))
    outer[:, rows, columns] = outer[:, columns, rows] = moments[:, 1 + n_detectors :]
    return moments[:, 0], moments[:, 1 : 1 + n_detectors], outer


def block_size(n_rows: int) -> int:
    """Number of rows of a block, which does not depend on the number of threads.

    It aims at a multiple of four blocks, which divides evenly over a few threads.
    """
    wanted = min(max(n_rows // 16, 1024), 8192)
    n_blocks = 4 * ceil(n_rows / (4 * wanted)) if n_rows > wanted else 1
    return ceil(n_rows / n_blocks)


def row_blocks(n_rows: int) -> list[slice]:
    """Slices that cover `n_rows` rows, each of `block_size` rows but the last."""
    size = block_size(n_rows)
    return [slice(start, start + size) for start in range(0, n_rows, size)]
