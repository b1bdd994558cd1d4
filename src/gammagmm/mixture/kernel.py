"""The compiled inner loops of the mixture: the E-step without an (n, K) array, matrix inverses."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.compiled import compiled

__all__ = ["accumulate", "invert"]

Array = NDArray[np.float64]

# Numba compiles these functions when a machine uses them for the first time. Plain loops compile in
# half the time of whole-array expressions: for an assignment such as ``a[:] = b``, Numba compiles
# the code that formats its error message, which takes more than a second.

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
def accumulate(Z: Array, block_rows: int, weights: Array) -> tuple[Array, Array]:
    """Moments (n_blocks, K, n_features) and entropies (n_blocks,) of blocks of the rows `Z` (n, M).

    The responsibilities are softmax(phi(s) . W) with `weights` W of shape (n_features, K); both
    arrays are C-contiguous.
    """
    n_features, n_components = weights.shape
    n_blocks = (len(Z) + block_rows - 1) // block_rows
    moments = np.zeros((n_blocks, n_components, n_features))
    entropies = np.zeros(n_blocks)
    n_tile = min(max(_TILE_PRODUCTS // weights.size, 1), 256)
    phi = np.empty((n_tile, n_features))
    resp = np.empty((n_tile, n_components))
    part = np.empty((n_components, n_features))
    for block in range(n_blocks):
        stop = min((block + 1) * block_rows, len(Z))
        for start in range(block * block_rows, stop, n_tile):
            n_rows = min(n_tile, stop - start)
            _fill_features(Z[start : start + n_rows], phi)
            np.dot(phi[:n_rows], weights, resp[:n_rows])
            entropies[block] += _softmax(resp[:n_rows])
            np.dot(resp[:n_rows].T, phi[:n_rows], part)
            for k in range(n_components):
                for f in range(n_features):
                    moments[block, k, f] += part[k, f]
    return moments, entropies


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


@compiled()
def invert(matrices: Array) -> tuple[Array, Array]:
    """Inverses (M, M, K) and the logarithms of the square roots of their determinants (K,).

    `matrices` (M, M, K) are symmetric and positive definite. The last axis counts them, so that
    each step loops over all of them with vector instructions. A matrix that is not positive
    definite gives NaN.
    """
    size, _, n_matrices = matrices.shape
    upper = _inverse_factors(matrices)  # matrix^-1 = upper . upper'
    inverses = np.zeros(matrices.shape)
    log_det = np.zeros(n_matrices)
    for i in range(size):
        for k in range(n_matrices):
            log_det[k] += math.log(upper[i, i, k])
        for j in range(i + 1):
            for m in range(i, size):
                _subtract_product(inverses[i, j], upper[i, m], upper[j, m])
            for k in range(n_matrices):
                inverses[i, j, k] *= -1.0
                inverses[j, i, k] = inverses[i, j, k]
    return inverses, log_det


@compiled()
def _inverse_factors(matrices: Array) -> Array:
    """Upper-triangular L^-T (M, M, K) of the Cholesky factors L of `matrices` (M, M, K)."""
    size = len(matrices)
    lower = matrices.copy()  # L in its lower triangle; the rest is not used
    upper = np.zeros(matrices.shape)
    for j in range(size):
        for i in range(j, size):
            for m in range(j):
                _subtract_product(lower[i, j], lower[i, m], lower[j, m])
            if i == j:
                _fill_inverse_roots(lower[j, j], upper[j, j])
            _multiply(lower[i, j], upper[j, j])
        for i in range(j):
            for m in range(i, j):
                _subtract_product(upper[i, j], lower[j, m], upper[i, m])
            _multiply(upper[i, j], upper[j, j])
    return upper


@compiled(fastmath={"contract"}, inline="always")
def _subtract_product(total: Array, a: Array, b: Array) -> None:
    for k in range(len(total)):
        total[k] -= a[k] * b[k]


@compiled(inline="always")
def _multiply(total: Array, factors: Array) -> None:
    for k in range(len(total)):
        total[k] *= factors[k]


@compiled(inline="always")
def _fill_inverse_roots(values: Array, roots: Array) -> None:
    for k in range(len(values)):
        roots[k] = 1.0 / math.sqrt(values[k])
