"""Score space -> the start of a mixture: one k-means, of a random subset where rows are many."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gammagmm._support.deadlines import NEVER, Deadline

__all__ = [
    "START_ROWS",
    "count_distinct",
    "fit_kmeans",
    "nearest_centres",
    "start_labels",
    "start_rows",
]

Array = NDArray[np.float64]

START_ROWS = 200_000
"""The start of more rows than this is the k-means of a random subset of so many."""

_ONE_KMEANS = threading.Lock()


def start_labels(
    Z: Array, n_components: int, rng: np.random.Generator, deadline: Deadline = NEVER
) -> NDArray[np.intp]:
    """Cluster of each row by one k-means (n_init=1), with no more clusters than distinct rows."""
    Z = _comparable(Z)
    rows = start_rows(len(Z), rng)
    kmeans = fit_kmeans(Z if rows is None else Z[rows], n_components, rng, deadline)
    labels: NDArray[np.intp] = kmeans.labels_ if rows is None else nearest_centres(kmeans, Z)
    return labels


def start_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.intp] | None:
    """The rows that the start is fitted to; None: all."""
    # Deviation D12: past START_ROWS rows, k-means sees a random subset; the other rows go to the
    # nearest centre.
    return None if n_rows <= START_ROWS else rng.choice(n_rows, START_ROWS, replace=False)


def fit_kmeans(
    Z: Array, n_components: int, rng: np.random.Generator, deadline: Deadline = NEVER
) -> Any:
    """scikit-learn's k-means of the rows `Z` (n, M), fitted once.

    One that has begun is not interrupted; one whose turn comes after the `deadline` is an
    `OutOfTimeError`.
    """
    from sklearn.cluster import KMeans

    n_clusters = min(n_components, count_distinct(Z, n_components))
    seed = int(rng.integers(2**31 - 1))
    # One thread: the order in which threads add would decide ties between centres. One k-means at a
    # time: each sets the process's BLAS threads, and sets them back to what it found.
    with _ONE_KMEANS, threadpool_limits(limits=1, user_api="openmp"):
        deadline.check()
        return KMeans(n_clusters, n_init=1, random_state=seed).fit(Z)


def nearest_centres(kmeans: Any, Z: Array) -> NDArray[np.intp]:
    """Cluster of each row of `Z` (n, M), which `kmeans` need not have seen."""
    with _ONE_KMEANS, threadpool_limits(limits=1, user_api="openmp"):
        labels: NDArray[np.intp] = kmeans.predict(Z)
    return labels


def _comparable(Z: Array) -> Array:
    """`Z`, moved and scaled if the squares of its differences are no normal numbers."""
    spread = float(np.ptp(Z, axis=0).max())
    return Z if 1e-100 < spread < 1e100 or spread == 0.0 else (Z - Z[0]) / spread


def count_distinct(Z: Array, enough: int) -> int:
    """About the number of rows that k-means can tell apart, up to `enough`."""
    # k-means compares squared distances: nearer than 1e-7 of the spread, rows are the same to it.
    spread = float(np.ptp(Z, axis=0).max())
    cells = np.round((Z - Z[0]) / spread, 7) if spread > 0.0 else np.zeros_like(Z[:1])
    few = len(np.unique(cells[: 4 * enough], axis=0))
    return few if few >= enough else len(np.unique(cells, axis=0))
