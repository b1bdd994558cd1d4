"""The compiled inner loop of the mixture: the E-step, without an (n, K) array.

Plain loops over scalars compile fastest: a single assignment of a slice adds a second or two.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.compiled import compiled

__all__ = ["accumulate"]

Array = NDArray[np.float64]

# OpenBLAS computes products of at most 262,144 multiplications on the calling thread, so it adds no
# threads to ours. Tiles of this size also fit into the processor's cache.
_TILE_PRODUCTS = 250_000

_LOG2_E = 1.4426950408889634
# log 2 in two parts: the product of the first part and an integer below 2 ** 11 is exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = (
    1.0 / math.factorial(power) for power in range(2, 13)
)
# Lower bound of the logits relative to the largest in the row: such a share is negligible beside 1,
# and its products are still normal numbers, for which processors are fast.
_LOWEST = -80.0

# Sums may be reordered to use vector instructions; nothing here relies on NaN or infinity.
_REORDER = {"contract", "reassoc", "nsz", "nnan", "ninf", "arcp"}


@compiled()
def accumulate(Z: Array, weights: Array, moments: Array) -> float:
    """Add the moments (K, n_features) of the rows `Z` (n, M) to `moments`; returns their entropy.

    The responsibilities are softmax(phi(s) . W) with `weights` W of shape (n_features, K); all
    arrays are C-contiguous.
    """
    n_features, n_components = weights.shape
    n_tile = min(max(_TILE_PRODUCTS // weights.size, 1), 256)
    phi = np.empty((n_tile, n_features))
    resp = np.empty((n_tile, n_components))
    part = np.empty((n_components, n_features))
    entropy = 0.0
    for start in range(0, len(Z), n_tile):
        n_rows = min(n_tile, len(Z) - start)
        _fill_features(Z[start : start + n_rows], phi)
        np.dot(phi[:n_rows], weights, resp[:n_rows])
        entropy += _softmax(resp[:n_rows])
        np.dot(resp[:n_rows].T, phi[:n_rows], part)
        for k in range(n_components):
            for f in range(n_features):
                moments[k, f] += part[k, f]
    return entropy


@compiled()
def _fill_features(Z: Array, phi: Array) -> None:
    """Write phi(s) = [1, s, s_i s_j for i <= j] of each row of `Z` into `phi`."""
    n_detectors = Z.shape[1]
    for n in range(len(Z)):
        phi[n, 0] = 1.0
        for i in range(n_detectors):
            phi[n, 1 + i] = Z[n, i]
        column = 1 + n_detectors
        for i in range(n_detectors):
            for j in range(i, n_detectors):
                phi[n, column] = Z[n, i] * Z[n, j]
                column += 1


@compiled(fastmath=_REORDER)
def _softmax(logits: Array) -> float:
    """Replace each row of `logits` by its softmax; returns -sum of r log r."""
    entropy = 0.0
    for n in range(len(logits)):
        row = logits[n]
        top = row[0]
        for k in range(len(row)):
            top = max(top, row[k])
        norm = 0.0
        tilt = 0.0
        for k in range(len(row)):
            x = max(row[k] - top, _LOWEST)
            value = _exp(x)
            norm += value
            tilt += value * x
            row[k] = value
        scale = 1.0 / norm
        for k in range(len(row)):
            row[k] *= scale
        entropy += math.log(norm) - tilt * scale
    return entropy


@compiled(fastmath=_REORDER, inline="always")
def _exp(x: float) -> float:
    """exp(x) for -80 <= x <= 0 to 1e-14, in a form that compiles to vector instructions.

    x = n log 2 + r with |r| <= log(2) / 2; a polynomial for exp(r), and n into the exponent bits.
    """
    n = np.floor(x * _LOG2_E + 0.5)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = _C12 * r + _C11
    p = p * r + _C10
    p = p * r + _C9
    p = p * r + _C8
    p = p * r + _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = (p * r + 1.0) * r + 1.0
    power_of_two: float = np.int64((np.int64(n) + 1023) << 52).view(np.float64)
    return p * power_of_two
