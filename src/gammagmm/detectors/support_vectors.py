"""Decision function of a one-class SVM with an RBF kernel; libsvm's takes ten times as long."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.compiled import compiled

__all__ = ["RBF", "copy_rbf", "rbf_decisions"]

FloatArray: TypeAlias = NDArray[np.float64]

# The support vectors are padded to a multiple of this, so that vector instructions leave no
# remainder. Each lane has a sum of its own.
_LANES = 16
# Support vectors whose squares stay in the fastest cache, a multiple of the lanes.
_PART = 512
# Kernel values in memory at the same time.
_BLOCK_VALUES = 2**17


class RBF(NamedTuple):
    """f(x) = sum_i weights_i exp(-gamma |x - support_i|^2) + intercept."""

    support: FloatArray  # (d, n_support)
    weights: FloatArray  # (n_support,)
    gamma: float
    intercept: float


def copy_rbf(svm: Any) -> RBF:
    """The decision function of scikit-learn's fitted one-class SVM."""
    n_support, n_features = svm.support_vectors_.shape
    n_places = -(-n_support // _LANES) * _LANES
    support, weights = np.zeros((n_features, n_places)), np.zeros(n_places)
    support[:, :n_support] = svm.support_vectors_.T
    weights[:n_support] = svm.dual_coef_[0]
    return RBF(support, weights, float(svm._gamma), float(svm.intercept_[0]))


def rbf_decisions(rbf: RBF, X: NDArray[Any]) -> FloatArray:
    """Values (n,) of the decision function at the rows X (n, d), each independent of the others."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    decisions = np.empty(len(X))
    n_block = max(_BLOCK_VALUES // len(rbf.weights), 1)
    for start in range(0, len(X), n_block):
        block = X[start : start + n_block]
        exponents = np.empty((len(block), len(rbf.weights)))
        _fill_exponents(rbf.support, rbf.gamma, block, exponents)
        # NumPy's exp computes several values at once; compiled code calls the C library for each.
        kernel = np.exp(exponents, out=exponents)
        _add_up(kernel, rbf.weights, decisions[start : start + n_block])
    return decisions + rbf.intercept


@compiled()
def _fill_exponents(
    support: FloatArray, gamma: float, X: FloatArray, exponents: FloatArray
) -> None:
    """Write -gamma |x - support_i|^2 to `exponents` (n, n_support)."""
    for i in range(len(X)):
        for start in range(0, support.shape[1], _PART):
            part = exponents[i, start : start + _PART]
            part[:] = 0.0
            for j in range(len(support)):
                value, feature = X[i, j], support[j, start : start + _PART]
                for s in range(len(part)):
                    gap = value - feature[s]
                    part[s] += gap * gap
            for s in range(len(part)):
                part[s] *= -gamma


@compiled()
def _add_up(kernel: FloatArray, weights: FloatArray, sums: FloatArray) -> None:
    """Write the weighted sum of each row of `kernel` (n, n_support) to `sums` (n,)."""
    lanes = np.empty(_LANES)
    for i in range(len(kernel)):
        lanes[:] = 0.0
        for start in range(0, len(weights), _LANES):
            for lane in range(_LANES):
                lanes[lane] += kernel[i, start + lane] * weights[start + lane]
        sums[i] = lanes.sum()
