"""Rows of the score space during a fit, in memory or on a device, and the E-step over them.

The E-step, two products and a softmax, depends on the backend; the M-step does not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from gammagmm.errors import MissingExtraError
from gammagmm.mixture.statistics import Statistics, add_blocks, block_size, pairs, summarise

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
    """The rows `Z` of a score space, prepared for one E-step an iteration."""

    Z: Array

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""


def place_rows(Z: Array, backend: str, device: Any = None, n_callers: int = 1) -> Rows:
    """The rows of `Z` (n, M) for `backend`, used by up to `n_callers` fits at the same time."""
    if backend == "torch":
        return TorchRows(Z, device)
    return NumpyRows(Z, max(count_threads() // n_callers, 1), n_callers)


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
        raise MissingExtraError("backend='torch' needs PyTorch", "deep", name="torch") from error
    try:
        torch.device("cpu" if device is None else device)
    except RuntimeError as error:
        raise ValueError(f"device must be a PyTorch device, got {device!r}.") from error


def count_threads() -> int:
    """Number of threads of a fit: that of BLAS, so that limits set for BLAS apply here too."""
    blas = ThreadpoolController().select(user_api="blas").info()
    return max((library["num_threads"] for library in blas), default=1)


class NumpyRows:
    """Rows in memory, summarised in blocks by `n_threads` threads without the interpreter lock.

    The blocks and their order, and therefore the sums, do not depend on the number of threads.
    Up to `n_callers` threads may call `statistics` at the same time, each with `n_threads` threads.
    """

    def __init__(self, Z: Array, n_threads: int = 1, n_callers: int = 1) -> None:
        self.Z = np.ascontiguousarray(Z, dtype=np.float64)
        self._size = block_size(len(Z))
        shares = np.array_split(np.arange(0, len(Z), self._size), n_threads)
        ends = [int(share[-1]) + self._size for share in shares if len(share)]
        self._shares = [self.Z[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self._n_callers = n_callers
        n_helpers = (len(self._shares) - 1) * n_callers
        self._helpers = ThreadPoolExecutor(n_helpers) if n_helpers else None

    def __reduce__(self) -> tuple[Any, ...]:
        return NumpyRows, (self.Z, len(self._shares), self._n_callers)

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""
        work = partial(summarise, size=self._size, coefficients=coefficients)
        own, *others = self._shares
        if self._helpers is None:
            return add_blocks([work(own)], coefficients)
        asked = [self._helpers.submit(work, share) for share in others]
        return add_blocks([work(own), *(answer.result() for answer in asked)], coefficients)


class TorchRows:
    """Rows as float64 tensors on `device`, with their features: 8 . n_features bytes a row.

    The logits and responsibilities of one block need another 16 . n_components bytes a row.
    """

    # Rows of a block: large blocks keep a GPU busy, small ones fit into a processor's cache.
    BLOCK_ROWS = MappingProxyType({"cuda": 1 << 20, "cpu": 1 << 14})
    # Logit of the reference components, and the range of their log share in which it is a normal
    # number and too small to change any other share.
    REFERENCE = -600.0
    SHARES = (-700.0, -40.0)

    def __init__(self, Z: Array, device: Any = None) -> None:
        import torch

        self.Z = Z
        self._torch = torch
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(device)
        size = self.BLOCK_ROWS.get(self._device.type, 1 << 20)
        self._blocks = [self._features(Z[i : i + size]) for i in range(0, len(Z), size)]

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchRows, (self.Z, self._device)

    def statistics(self, coefficients: Array) -> Statistics:
        """Statistics of all rows under the responsibilities softmax(phi(s) . W)."""
        torch = self._torch
        n_components = len(coefficients)
        weights = torch.as_tensor(self._with_references(coefficients), device=self._device)
        moments = torch.zeros_like(weights)[:n_components]
        log_norm = torch.zeros((), dtype=weights.dtype, device=self._device)
        for phi in self._blocks:
            resp, block_norm = self._responsibilities(phi @ weights.T, n_components)
            log_norm += block_norm
            moments += resp.T[:n_components] @ phi
        # -sum of r log r, with log r = logits - log_norm and the logits linear in phi.
        entropy = log_norm - (weights[:n_components] * moments).sum()
        packed = torch.cat([moments.ravel(), entropy[None]]).cpu().numpy()
        return Statistics(packed[:-1].reshape(coefficients.shape), float(packed[-1]))

    def _with_references(self, coefficients: Array) -> Array:
        """`coefficients` padded with reference components, of a tiny constant logit, to 8 . m."""
        n_components, n_features = coefficients.shape
        padded = np.zeros((8 * (n_components // 8 + 1), n_features))
        padded[:n_components] = coefficients
        padded[n_components:, 0] = self.REFERENCE
        return padded

    def _responsibilities(self, logits: Any, n_components: int) -> tuple[Any, Any]:
        """Softmax of each row, and the sum over the rows of log sum exp.

        The sum is computed from the share of a reference component. Its logit, the same in every
        row, is too small to change the other shares and large enough to have a share itself. This
        saves two passes over the logits. If the share of some row is out of range, the block is
        computed without reference components.
        """
        torch = self._torch
        resp = torch.softmax(logits, dim=1)
        log_share = resp[:, n_components].log()
        smallest, largest = self.SHARES
        if bool((log_share.amin() > smallest) & (log_share.amax() < largest)):
            return resp, (self.REFERENCE - log_share).sum()
        logits = logits[:, :n_components]
        return torch.softmax(logits, dim=1), torch.logsumexp(logits, dim=1).sum()

    def _features(self, Z: Array) -> Any:
        torch = self._torch
        rows = torch.as_tensor(Z, dtype=torch.float64, device=self._device)
        i, j = (torch.as_tensor(index, device=self._device) for index in pairs(rows.shape[1]))
        ones = torch.ones_like(rows[:, :1])
        return torch.cat([ones, rows, rows[:, i] * rows[:, j]], dim=1)
