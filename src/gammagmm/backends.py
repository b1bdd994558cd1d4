"""Where the rows of the score space live while a mixture is fitted: in memory, or on a device.

A backend supplies the E-step: two products and a softmax. The M-step is the same for all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from gammagmm.statistics import Statistics, add_statistics, block_statistics, row_blocks

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
    """The rows `Z` of a score space, ready to be summarised again and again."""

    Z: Array

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""


class NumpyRows:
    """Rows in memory, summarised in blocks by `n_threads` threads without the interpreter lock.

    The blocks and their order do not depend on the number of threads, so that the sums do not.
    """

    def __init__(self, Z: Array, n_threads: int = 1) -> None:
        self.Z = np.ascontiguousarray(Z, dtype=np.float64)
        self._blocks = [self.Z[rows] for rows in row_blocks(len(Z))]
        self._n_threads = min(n_threads, len(self._blocks))
        self._threads = ThreadPoolExecutor(self._n_threads) if self._n_threads > 1 else None

    def __reduce__(self) -> tuple[Any, ...]:
        return NumpyRows, (self.Z, self._n_threads)

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""

        def share(first: int) -> list[Statistics]:
            own = self._blocks[first :: self._n_threads]
            return [block_statistics(block, coefficients) for block in own]

        if self._threads is None:
            return add_statistics(share(0))
        shares = list(self._threads.map(share, range(self._n_threads)))
        rounds = zip_longest(*shares)
        return add_statistics(block for blocks in rounds for block in blocks if block is not None)


class TorchRows:
    """Rows as float64 tensors on `device`, with their features: 8 . n_features bytes a row."""

    # Rows whose responsibilities are on the device at the same time.
    BLOCK_ROWS = 1 << 20
    # Logit of a reference component, and the log share at which it would begin to count.
    REFERENCE = -600.0
    LARGEST_SHARE = -40.0

    def __init__(self, Z: Array, device: Any = None) -> None:
        import torch

        self.Z = Z
        self._torch = torch
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(device)
        starts = range(0, len(Z), self.BLOCK_ROWS)
        self._blocks = [self._features(Z[start : start + self.BLOCK_ROWS]) for start in starts]

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchRows, (self.Z, self._device)

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""
        torch = self._torch
        n_components = len(coefficients)
        weights = torch.as_tensor(self._with_references(coefficients), device=self._device)
        moments = torch.zeros_like(weights)
        log_norm = torch.zeros((), dtype=weights.dtype, device=self._device)
        for phi in self._blocks:
            logits = phi @ weights.T
            resp = torch.softmax(logits, dim=1)
            log_norm += self._log_norm(logits, resp[:, n_components])
            moments += resp.T @ phi
        # -sum of r log r, with log r = logits - log_norm and the logits linear in phi.
        entropy = log_norm - (weights * moments)[:n_components].sum()
        packed = torch.cat([moments[:n_components].ravel(), entropy[None]]).cpu().numpy()
        return Statistics(packed[:-1].reshape(coefficients.shape), float(packed[-1]))

    def _with_references(self, coefficients: Array) -> Array:
        """`coefficients` and, up to a multiple of eight, components with a tiny constant logit."""
        n_components, n_features = coefficients.shape
        padded = np.zeros((8 * (n_components // 8 + 1), n_features))
        padded[:n_components] = coefficients
        padded[n_components:, 0] = self.REFERENCE
        return padded

    def _log_norm(self, logits: Any, share: Any) -> Any:
        """Sum over the rows of log sum exp(logits), from the `share` of a reference component.

        Its logit, the same in every row, is too small to change another's share and large enough
        to have one itself. That saves two passes over the logits, unless some row leaves the range
        where it holds.
        """
        torch = self._torch
        log_share = share.log()
        is_sound = (log_share.amax() < self.LARGEST_SHARE) & torch.isfinite(log_share.amin())
        if bool(is_sound):
            return (self.REFERENCE - log_share).sum()
        return torch.logsumexp(logits, dim=1).sum()

    def _features(self, Z: Array) -> Any:
        torch = self._torch
        rows = torch.as_tensor(Z, dtype=torch.float64, device=self._device)
        i, j = torch.triu_indices(rows.shape[1], rows.shape[1], device=self._device)
        ones = torch.ones_like(rows[:, :1])
        return torch.cat([ones, rows, rows[:, i] * rows[:, j]], dim=1)


def check_backend(backend: Any) -> None:
    """Refuse an unknown backend, and torch where it is not installed."""
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    if backend == "torch":
        try:
            import torch  # noqa: F401
        except ImportError as error:
            message = "backend='torch' needs PyTorch: pip install 'gammagmm[deep]'"
            raise ImportError(message) from error


def count_threads() -> int:
    """Threads that a fit may use: as many as BLAS would, so that limits set for it hold for us."""
    blas = ThreadpoolController().select(user_api="blas").info()
    return max((library["num_threads"] for library in blas), default=1)


def place_rows(Z: Array, backend: str, device: Any = None, n_threads: int = 1) -> Rows:
    """The rows of `Z` (n, M), where `backend` works on them."""
    return TorchRows(Z, device) if backend == "torch" else NumpyRows(Z, n_threads)
