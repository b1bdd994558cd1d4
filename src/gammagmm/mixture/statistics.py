"""Rows of the score space -> the statistics that the M-step needs; those of blocks can be added.

With phi(s) = [1, s, s_i s_j for i <= j] the expected log density of every component is linear in
phi(s): the responsibilities R are softmax(phi(s) . W), and the M-step needs only R' . phi(s).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = [
    "Statistics",
    "block_size",
    "features",
    "matrix_places",
    "pairs",
    "start_moments",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Moments of the responsibilities in each of R runs.

    Attributes
    ----------
    moments : ndarray or tensor of shape (R, n_components, n_features)
        Responsibilities times phi(s), summed over the rows of the run.
    entropy : ndarray or tensor of shape (R,)
        -sum of r log r over rows and components.
    """

    moments: Any
    entropy: Any


def start_moments(Z: Array, labels: NDArray[np.intp], n_components: int) -> Array:
    """Moments (n_components, n_features) of the assignment of each row to component `labels`."""
    moments = np.zeros((n_components, len(features(Z[:1]).T)))
    size = block_size(len(Z))
    for start in range(0, len(Z), size):
        block, own = Z[start : start + size], labels[start : start + size]
        shape = (n_components, len(block))
        assigned = csr_array((np.ones(len(block)), (own, np.arange(len(block)))), shape=shape)
        moments += assigned @ features(block)
    return moments


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


@lru_cache
def matrix_places(n_detectors: int) -> NDArray[np.intp]:
    """Place of the entry i, j of a symmetric matrix (M, M) among the pairs i <= j.

    >>> matrix_places(2).tolist()
    [[0, 1], [1, 2]]
    """
    rows, columns = pairs(n_detectors)
    places = np.empty((n_detectors, n_detectors), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return places


def block_size(n_rows: int) -> int:
    """Number of rows of a block, which does not depend on the number of threads.

    It aims at a multiple of four blocks, which divides evenly over a few threads.
    """
    wanted = min(max(n_rows // 16, 1024), 8192)
    n_blocks = 4 * ceil(n_rows / (4 * wanted)) if n_rows > wanted else 1
    return ceil(n_rows / n_blocks)
