"""Where the rows of the score space live while a mixture is fitted: in memory, or on a device.

A backend supplies the E-step: two products and a softmax. The M-step is the same for all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gammagmm.statistics import Statistics, add_statistics, block_statistics, row_blocks

__all__ = ["BACKENDS", "NumpyRows", "Rows", "TorchRows", "check_backend", "place_rows"]

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

    def __init__(self, Z: Array, device: Any = None) -> None:
        import torch

        self.Z = Z
        self._torch = torch
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(device)
        self._blocks = [
            self._features(Z[start : start + self.BLOCK_ROWS])
            for start in range(0, len(Z), self.BLOCK_ROWS)
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchRows, (self.Z, self._device)

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""
        torch = self._torch
        weights = torch.as_tensor(coefficients, device=self._device)
        moments = torch.zeros_like(weights)
        log_norm = torch.zeros((), dtype=weights.dtype, device=self._device)
        for phi in self._blocks:
            logits = phi @ weights.T
            log_norm += torch.logsumexp(logits, dim=1).sum()
            moments += torch.softmax(logits, dim=1).T @ phi
        # -sum of r log r, with log r = logits - log_norm and the logits linear in phi.
        entropy = log_norm - (weights * moments).sum()
        return Statistics(moments.cpu().numpy(), float(entropy))

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


def place_rows(Z: Array, backend: str, device: Any = None, n_threads: int = 1) -> Rows:
    """The rows of `Z` (n, M), where `backend` works on them."""
    return TorchRows(Z, device) if backend == "torch" else NumpyRows(Z, n_threads)
