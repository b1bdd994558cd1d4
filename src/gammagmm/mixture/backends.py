"""Rows of the score space during a fit, on the CPU or on a device, and the E-step over them.

The E-step, two products and a softmax, and a few functions of arrays depend on the backend; the
M-step and the ascent, written with those functions, do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import lru_cache
from itertools import product
from math import isqrt
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import NDArray
from scipy.special import digamma, gammaln
from threadpoolctl import ThreadpoolController

from gammagmm._support.processes import allowed_jobs
from gammagmm.errors import MissingExtraError
from gammagmm.mixture.statistics import Statistics, block_size, matrix_places, pairs

__all__ = [
    "BACKENDS",
    "NumpyRows",
    "Rows",
    "TorchRows",
    "check_backend",
    "count_threads",
    "place_rows",
]

Array = NDArray[np.float64]

BACKENDS = ("numpy", "torch")


class Rows(Protocol):
    """The rows of several runs, prepared for one E-step an iteration.

    Arrays are those of the backend: NumPy's, or PyTorch's tensors on a device.
    """

    xp: Any
    """The module with the functions that NumPy and PyTorch have in common."""

    def statistics(self, coefficients: Any, is_used: Any = None) -> Statistics:
        """Statistics of each run's rows under the responsibilities softmax(phi(s) . W).

        `coefficients` is W of each run: shape (R, n_components, n_features). The rows are divided
        among the components in `is_used` (R, n_components); None means all.
        """

    def careful(self) -> Rows | None:
        """The rows with an E-step that takes longer and whose entropies are never NaN, or None.

        An entropy of a fast E-step is NaN if the log densities are outside of its range.
        """

    def select(self, places: Sequence[int]) -> Rows:
        """The rows of the runs at these places."""

    def to_backend(self, values: NDArray[Any]) -> Any:
        """A NumPy array as an array of the backend."""

    def to_numpy(self, values: Any) -> NDArray[Any]:
        """An array of the backend as a NumPy array."""

    def digamma(self, values: Any) -> Any:
        """Derivative of the logarithm of the gamma function."""

    def gammaln(self, values: Any) -> Any:
        """Logarithm of the gamma function."""

    def invert(self, matrices: Any) -> tuple[Any, Any]:
        """Inverses (..., n_pairs), and half the logarithm of their determinants (...).

        `matrices` (..., n_pairs) are symmetric, by their entries i <= j. One that is not positive
        definite gives NaN.
        """


def place_rows(Z: Array, backend: str, device: Any = None, n_threads: int = 1) -> Rows:
    """The rows `Z` (R, n, M) of R runs for `backend`; with R = 1 all runs have the same rows."""
    if backend == "torch":
        return TorchRows(Z, device)
    return NumpyRows(Z, n_threads)


def check_backend(backend: Any, device: Any = None) -> None:
    """Raise if the backend or device is unknown, or PyTorch is needed and not installed."""
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    if backend == "numpy":
        if device is not None:
            raise ValueError(f"device={device!r} needs backend='torch', got backend='numpy'.")
        return
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(f"device={device!r} needs PyTorch", "deep", name="torch") from error
    try:
        kind = torch.device("cpu" if device is None else device).type
    except RuntimeError as error:
        raise ValueError(f"device must be a PyTorch device, got {device!r}.") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} is not there: PyTorch finds no CUDA device.")


def count_threads(n_jobs: int | None = 1) -> int:
    """Threads of a fit: `n_jobs`, but at least those of BLAS and at most one for each core.

    Limits that are set for BLAS therefore apply here too. The jobs of joblib may be those of a
    cluster.
    """
    blas = ThreadpoolController().select(user_api="blas").info()
    n_threads = min(effective_n_jobs(allowed_jobs(n_jobs)), cpu_count())
    return max([n_threads, *(library["num_threads"] for library in blas)])


class NumpyRows:
    """Rows in memory, summarised in blocks by `n_threads` threads without the interpreter lock.

    The blocks and their order, and therefore the sums, do not depend on the number of threads.
    `block_rows` is the number of rows of a block; None chooses it by the number of rows.
    """

    xp: Any = np

    def __init__(self, Z: Array, n_threads: int = 1, block_rows: int | None = None) -> None:
        self._Z = np.ascontiguousarray(Z, dtype=np.float64)
        n_rows = self._Z.shape[1]
        self._size = block_rows or block_size(n_rows)
        self._starts = range(0, n_rows, self._size)
        self._n_threads = n_threads
        self._helpers = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def statistics(self, coefficients: Array, is_used: Any = None) -> Statistics:
        """Statistics of each run's rows under the responsibilities softmax(phi(s) . W)."""
        n_runs, n_blocks = len(coefficients), len(self._starts)
        used = [slice(None)] * n_runs if is_used is None else list(is_used)
        weights = [
            np.ascontiguousarray(W[own].T) for W, own in zip(coefficients, used, strict=True)
        ]
        parts = [np.zeros((n_blocks, *W.T.shape)) for W in weights]
        entropies = np.empty((n_runs, n_blocks))
        blocks = list(product(range(n_runs), enumerate(self._starts)))

        def summarise(thread: int) -> None:
            from gammagmm.mixture.kernel import accumulate

            for run, (block, start) in blocks[thread :: self._n_threads]:
                rows = self._Z[run if len(self._Z) > 1 else 0, start : start + self._size]
                entropies[run, block] = accumulate(rows, weights[run], parts[run][block])

        others = range(1, self._n_threads)
        asked = [self._helpers.submit(summarise, thread) for thread in others if self._helpers]
        summarise(0)
        for answer in asked:
            answer.result()
        moments = np.zeros_like(coefficients)
        for run, own in enumerate(used):
            moments[run, own] = _add_blocks(parts[run][None])[0]
        return Statistics(moments, _add_blocks(entropies))

    def careful(self) -> None:
        """None: the E-step has no limits."""

    def select(self, places: Sequence[int]) -> NumpyRows:
        """The rows of the runs at these places."""
        selected = copy(self)
        if len(self._Z) > 1:
            selected._Z = self._Z[places]
        return selected

    def to_backend(self, values: NDArray[Any]) -> NDArray[Any]:
        """The array itself."""
        return values

    def to_numpy(self, values: NDArray[Any]) -> NDArray[Any]:
        """The array itself."""
        return values

    def digamma(self, values: Array) -> Array:
        """Derivative of the logarithm of the gamma function."""
        return np.asarray(digamma(values))

    def gammaln(self, values: Array) -> Array:
        """Logarithm of the gamma function."""
        return np.asarray(gammaln(values))

    def invert(self, matrices: Array) -> tuple[Array, Array]:
        """Inverses (..., n_pairs), and half the logarithm of their determinants (...)."""
        shape, n_pairs = matrices.shape[:-1], matrices.shape[-1]
        inverses, log_det = _invert(matrices.reshape(-1, n_pairs).T)
        return inverses.T.reshape(*shape, n_pairs), log_det.reshape(shape)


def _invert(matrices: Array) -> tuple[Array, Array]:
    """Inverses (n_pairs, N) and half the logarithms of their determinants (N,).

    The last axis counts the matrices, so that every operation runs along all of them.
    """
    size = isqrt(2 * len(matrices))
    lower = matrices[matrix_places(size)]  # becomes the Cholesky factor L, below the diagonal
    upper = np.zeros_like(lower)  # becomes its inverse transposed: matrix^-1 = upper . upper'
    with np.errstate(invalid="ignore", divide="ignore"):
        for j in range(size):
            lower[j:, j] -= np.einsum("imk,mk->ik", lower[j:, :j], lower[j, :j])
            upper[j, j] = 1.0 / np.sqrt(lower[j, j])
            lower[j:, j] *= upper[j, j]
            upper[:j, j] = -np.einsum("mk,imk->ik", lower[j, :j], upper[:j, :j]) * upper[j, j]
        products = [np.einsum("mk,jmk->jk", upper[i, i:], upper[i:, i:]) for i in range(size)]
        return np.concatenate(products), np.log(np.einsum("iik->ik", upper)).sum(axis=0)


def _add_blocks(parts: Array) -> Array:
    """Sum over the second axis, in its order."""
    total = parts[:, 0].copy()
    for block in range(1, parts.shape[1]):
        total += parts[:, block]
    return total


class TorchRows:
    """Rows as float64 tensors on `device`, with their features: 8 . n_features bytes a row.

    The logits and responsibilities of one block need another 16 . n_components bytes a row.
    """

    # Rows of a block, over all runs: large blocks keep a GPU busy, small ones fit into a
    # processor's cache.
    BLOCK_ROWS = MappingProxyType({"cuda": 1 << 20, "cpu": 1 << 14})
    # Logit of the reference components, and the range of their log share in which it is a normal
    # number and too small to change any other share.
    REFERENCE = -600.0
    SHARES = (-700.0, -40.0)

    def __init__(self, Z: Array, device: Any = None) -> None:
        import torch

        self.xp = torch
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(device)
        self._phi = self._features(Z)
        self._block_rows = self.BLOCK_ROWS.get(self._device.type, 1 << 20)
        self._is_careful = False

    def statistics(self, coefficients: Any, is_used: Any = None) -> Statistics:
        """Statistics of each run's rows under the responsibilities softmax(phi(s) . W)."""
        n_runs, n_components, n_features = coefficients.shape
        weights = self._with_references(coefficients)
        if is_used is not None:
            weights[:, :n_components, 0].masked_fill_(~is_used, -self.xp.inf)
        moments, log_norm = self.xp.zeros_like(weights), self.xp.zeros_like(weights[:, 0, 0])
        size = max(self._block_rows // n_runs, 1)
        for start in range(0, self._phi.shape[1], size):
            block = self._phi[:, start : start + size]
            if len(block) == 1:  # all runs have the same rows: one product serves all
                logits = (block[0] @ weights.reshape(-1, n_features).T).reshape(
                    -1, n_runs, len(weights[0])
                )
                resp, block_norm = self._responsibilities(logits, n_components)
                moments += (resp.reshape(len(resp), -1).T @ block[0]).reshape(weights.shape)
                log_norm += block_norm.sum(0)
            else:
                resp, block_norm = self._responsibilities(block @ weights.mT, n_components)
                moments += resp.mT @ block
                log_norm += block_norm.sum(1)
        moments = moments[:, :n_components]
        # -sum of r log r, with log r = logits - log_norm and the logits linear in phi.
        return Statistics(moments, log_norm - (coefficients * moments).sum((1, 2)))

    def careful(self) -> TorchRows | None:
        """The rows with an E-step without reference components, see `_responsibilities`."""
        if self._is_careful:
            return None
        careful = copy(self)
        careful._is_careful = True
        return careful

    def select(self, places: Sequence[int]) -> TorchRows:
        """The rows of the runs at these places."""
        selected = copy(self)
        if len(self._phi) > 1:
            selected._phi = self._phi[places]
        return selected

    def to_backend(self, values: NDArray[Any]) -> Any:
        """A NumPy array as a tensor on the device."""
        return self.xp.as_tensor(values, device=self._device)

    def to_numpy(self, values: Any) -> NDArray[Any]:
        """A tensor as a NumPy array."""
        array: NDArray[Any] = values.cpu().numpy()
        return array

    def digamma(self, values: Any) -> Any:
        """Derivative of the logarithm of the gamma function."""
        return self.xp.special.digamma(values)

    def gammaln(self, values: Any) -> Any:
        """Logarithm of the gamma function."""
        return self.xp.special.gammaln(values)

    def invert(self, matrices: Any) -> tuple[Any, Any]:
        """Inverses (..., n_pairs), and half the logarithm of their determinants (...)."""
        torch = self.xp
        places, rows, columns, identity = _on_device(isqrt(2 * matrices.shape[-1]), self._device)
        lower, failed = torch.linalg.cholesky_ex(matrices[..., places])
        # cholesky_inverse would invert one matrix after another.
        roots = torch.linalg.solve_triangular(lower, identity, upper=False)
        inverses = (roots.mT @ roots)[..., rows, columns]
        log_det = -lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        is_bad = failed > 0
        nan = torch.nan
        return inverses.masked_fill(is_bad[..., None], nan), log_det.masked_fill(is_bad, nan)

    def _with_references(self, coefficients: Any) -> Any:
        """`coefficients` padded with reference components, of a tiny constant logit, to 8 . m."""
        n_runs, n_components, n_features = coefficients.shape
        padded = coefficients.new_zeros((n_runs, 8 * (n_components // 8 + 1), n_features))
        padded[:, :n_components] = coefficients
        padded[:, n_components:, 0] = self.REFERENCE
        return padded

    def _responsibilities(self, logits: Any, n_components: int) -> tuple[Any, Any]:
        """Softmax of each row, with the reference components, and log sum exp of each row.

        The latter is computed from the share of a reference component. Its logit, the same in
        every row, is too small to change the other shares and large enough to have a share itself.
        This saves two passes over the logits. If the share is out of range, log sum exp is NaN;
        nothing here waits for the device. Careful rows have no reference components.
        """
        torch = self.xp
        if self._is_careful:
            logits[..., n_components:] = -torch.inf
            return torch.softmax(logits, dim=-1), torch.logsumexp(logits, dim=-1)
        resp = torch.softmax(logits, dim=-1)
        log_share = resp[..., n_components].log()
        smallest, largest = self.SHARES
        is_measured = (log_share > smallest) & (log_share < largest)
        return resp, torch.where(is_measured, self.REFERENCE - log_share, torch.nan)

    def _features(self, Z: Array) -> Any:
        torch = self.xp
        rows = torch.as_tensor(Z, dtype=torch.float64, device=self._device)
        i, j = (torch.as_tensor(index, device=self._device) for index in pairs(rows.shape[-1]))
        return torch.cat([torch.ones_like(rows[..., :1]), rows, rows[..., i] * rows[..., j]], -1)


@lru_cache
def _on_device(n_detectors: int, device: Any) -> tuple[Any, Any, Any, Any]:
    """`matrix_places`, the rows and columns of `pairs`, and the identity matrix, on the device."""
    import torch

    arrays = (matrix_places(n_detectors), *pairs(n_detectors), np.eye(n_detectors))
    places, rows, columns, identity = (torch.as_tensor(array, device=device) for array in arrays)
    return places, rows, columns, identity
