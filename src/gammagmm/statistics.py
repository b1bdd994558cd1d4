"""Rows of the score space -> what the mixture's M-step needs of them; blocks of rows add.

With phi(s) = [1, s, s_i s_j for i <= j] the expected log density of every component is linear in
phi(s): the responsibilities are softmax(phi(s) . W), and all the M-step needs is R' . phi(s).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import ceil
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = [
    "Statistics",
    "add_statistics",
    "block_statistics",
    "features",
    "pairs",
    "row_blocks",
    "start_statistics",
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


def add_statistics(blocks: Iterable[Statistics]) -> Statistics:
    """Sum over `blocks`, in their order."""
    return reduce(add, blocks)


def block_statistics(Z: Array, coefficients: Array) -> Statistics:
    """Statistics of the rows `Z` (n, M) under the responsibilities softmax(phi(s) . W).

    `coefficients` is W of shape (n_components, n_features).
    """
    from gammagmm.kernel import accumulate

    weights = np.ascontiguousarray(coefficients.T)
    return Statistics(*accumulate(np.ascontiguousarray(Z), weights))


def start_statistics(Z: Array, labels: NDArray[np.intp], n_components: int) -> Statistics:
    """Statistics of the hard assignment of each row to the component `labels` (n,)."""

    def assigned(rows: slice) -> Statistics:
        block, own = Z[rows], labels[rows]
        ones, columns = np.ones(len(block)), np.arange(len(block))
        shape = (n_components, len(block))
        return Statistics(csr_array((ones, (own, columns)), shape=shape) @ features(block), 0.0)

    return add_statistics(assigned(rows) for rows in row_blocks(len(Z)))


def features(Z: Array) -> Array:
    """phi(s) = [1, s, s_i s_j for i <= j] of each row of `Z`, shape (n, n_features).

    >>> features(np.array([[2.0, 3.0]])).tolist()
    [[1.0, 2.0, 3.0, 4.0, 6.0, 9.0]]
    """
    rows, columns = pairs(Z.shape[1])
    return np.concatenate([np.ones((len(Z), 1)), Z, Z[:, rows] * Z[:, columns]], axis=1)


@lru_cache
def pairs(n_detectors: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All i <= j, in the order of the products in phi."""
    rows, columns = np.triu_indices(n_detectors)
    return rows, columns


def unpack_moments(moments: Array, n_detectors: int) -> tuple[Array, Array, Array]:
    """Counts (K,), sums (K, M) and sums of products (K, M, M) from moments of phi."""
    rows, columns = pairs(n_detectors)
    outer = np.empty((len(moments), n_detectors, n_detectors))
    outer[:, rows, columns] = outer[:, columns, rows] = moments[:, 1 + n_detectors :]
    return moments[:, 0], moments[:, 1 : 1 + n_detectors], outer


def row_blocks(n_rows: int) -> list[slice]:
    """Slices of equal size, but for the last, that cover `n_rows` rows.

    They depend on nothing else; a multiple of four of them share out well over a few threads.
    """
    wanted = min(max(n_rows // 16, 512), 8192)
    n_blocks = 4 * ceil(n_rows / (4 * wanted)) if n_rows > wanted else 1
    size = ceil(n_rows / n_blocks)
    return [slice(start, start + size) for start in range(0, n_rows, size)]
