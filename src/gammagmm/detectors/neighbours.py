"""Nearest training rows for KNN, LOF and LSCP: scikit-learn's neighbours in less time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KDTree, LocalOutlierFactor

from gammagmm.detectors.lscp_search import Tree, find_nearest, searchable

__all__ = ["QuickLocalOutlierFactor", "Search", "search_quickly"]

# scikit-learn searches fewer rows in the time that loading our search takes, about 0.1 seconds.
_LEAST_ROWS = 5_000
# Distances (n, k) and row numbers (n, k), nearest first.
Found: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]


@dataclass
class _Shared:
    """The rows X (n, d) whose neighbours several models ask for, and what was found for them."""

    search: Search
    X: NDArray[np.float64]
    found: Found | None = None


# Of the current thread: a fitted model may score several batches at the same time.
_SHARED: ContextVar[_Shared | None] = ContextVar("_SHARED", default=None)


class Search:
    """The k-d tree of a scikit-learn model with our search.

    Several models of the same rows can share one search, see `shared`.
    """

    def __init__(self, n_most: int = 0) -> None:
        self.n_most = n_most  # most neighbours that any of the models needs
        self.tree: Any = None  # scikit-learn's
        self.copy: Tree | KDTree | None = None

    def adopt(self, tree: KDTree) -> None:
        """Search `tree`; models that share a search have the same tree."""
        if self.tree is None:
            self.tree, self.copy = tree, searchable(tree)

    @contextmanager
    def shared(self, X: NDArray[np.float64]) -> Iterator[None]:
        """Find the neighbours of the rows X (n, d) once, for all models that ask here."""
        token = _SHARED.set(_Shared(self, X))
        try:
            yield
        finally:
            _SHARED.reset(token)

    def query(self, X: Any, k: int = 1, return_distance: bool = True) -> Any:
        """Distances and row numbers (n, k) of the nearest rows, as from scikit-learn's tree."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        shared = _SHARED.get()
        if shared is not None and shared.search is self and _is_same(X, shared.X):
            found = self._first(shared, X, k)
        else:
            found = find_nearest(self.copy, X, k)
        return found if return_distance else found[1]

    def query_radius(self, *args: Any, **kwargs: Any) -> Any:
        """Rows within a radius, from scikit-learn's tree."""
        return self.tree.query_radius(*args, **kwargs)

    def _first(self, shared: _Shared, X: NDArray[np.float64], k: int) -> Found:
        """The first k neighbours of those that the shared search found."""
        if shared.found is None:
            # One more for the row itself, one more to see which distances are tied.
            shared.found = find_nearest(self.copy, X, min(self.n_most + 2, len(self.tree.data)))
        all_distances, all_rows = shared.found
        distances, rows = all_distances[:, :k].copy(), all_rows[:, :k].copy()
        if k < all_distances.shape[1]:
            # Of several rows at the k-th distance, a search for k rows may find others.
            is_tied = all_distances[:, k - 1] == all_distances[:, k]
            if is_tied.any():
                distances[is_tied], rows[is_tied] = find_nearest(self.copy, X[is_tied], k)
        return distances, rows


def _is_same(X: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return X.shape == other.shape and np.may_share_memory(X, other)


def search_quickly(model: Any, search: Search | None = None) -> None:
    """Replace the search of a fitted scikit-learn model, if its tree and metric allow it.

    A `search` that the model shares with others is always used, its own only for many rows.
    """
    tree = getattr(model, "_tree", None)
    is_worth = search is not None or model.n_samples_fit_ >= _LEAST_ROWS
    if is_worth and isinstance(tree, KDTree) and model.effective_metric_ == "euclidean":
        search = Search() if search is None else search
        search.adopt(tree)
        model._tree = search


class QuickLocalOutlierFactor(LocalOutlierFactor):
    """scikit-learn's LocalOutlierFactor with our search, which others may share."""

    search: Search | None = None

    def _fit(self, X: Any, y: Any = None) -> Any:
        fitted = super()._fit(X, y)
        search_quickly(self, self.search)
        return fitted
