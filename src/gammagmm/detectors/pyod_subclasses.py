"""PyOD's detectors with the same training scores; new rows are scored by the fitted model alone.

The score of a new row depends only on that row and the fit (for LSCP, if that holds for its
detectors). Fitting changes no parameter and no global state, and replaces an earlier fit.
"""

from __future__ import annotations

import copy
import inspect
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyod.models import hbos, knn, lof, lscp, ocsvm
from pyod.utils.utility import (
    check_detector,
    check_parameter,
    generate_bagging_indices,
    get_optimal_n_bins,
    invert_order,
    standardizer,
)
from sklearn.base import BaseEstimator
from sklearn.neighbors import KDTree
from sklearn.svm import OneClassSVM
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from gammagmm.detectors.lscp_search import Ensemble, find_nearest, local_scores, searchable
from gammagmm.detectors.neighbours import QuickLocalOutlierFactor, Search, search_quickly
from gammagmm.detectors.support_vectors import copy_rbf, rbf_decisions

__all__ = ["HBOS", "KNN", "LOF", "LSCP", "OCSVM", "Frozen", "make_search", "model_for"]

FloatArray: TypeAlias = NDArray[np.float64]

# Rows whose neighbours in all subspaces are in memory at the same time.
_BLOCK_ROWS = 1_000
# Megabytes of libsvm's cache of kernel values. More saves no time: 20 columns are computed as fast
# as they are found in memory.
_CACHE_MEGABYTES = 50
# With fewer support vectors libsvm is fast enough, and the scores are PyOD's to the last bit.
_MANY_SUPPORT_VECTORS = 1_000
# Up to this number of edges, counting those below each value is faster than a search: five times
# for HBOS's eleven.
_MANY_EDGES = 50


class Frozen:
    """Parameters and checks that the detectors share."""

    # PyOD's method changes the warning filters of the whole process.
    get_params = BaseEstimator.get_params

    def _check_training(self, X: Any, y: Any) -> NDArray[Any]:
        """Training rows (n, d) as an array."""
        X = check_array(X)
        self._set_n_classes(y)  # type: ignore[attr-defined]
        self.n_features_ = X.shape[1]
        return X

    def _check_new(self, X: Any) -> NDArray[Any]:
        """New rows (n, d) as an array, with as many features as the training rows."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        X = check_array(X)
        if X.shape[1] != self.n_features_:
            raise ValueError(f"X has {X.shape[1]} features, expected {self.n_features_}.")
        return X


def model_for(detector: Any, cls: type) -> Any:
    """scikit-learn's unfitted model with the parameters that the detector has, too."""
    names = [name for name in inspect.signature(cls).parameters if hasattr(detector, name)]
    return cls(**{name: getattr(detector, name) for name in names})


class KNN(Frozen, knn.KNN):
    """PyOD's KNN with a faster search."""

    def fit(self, X: Any, y: Any = None) -> KNN:
        """Fitted detector, on the rows X (n, d); y is ignored."""
        X = self._check_training(X, y)
        self.prepare_search(X)
        distances, _ = self.neigh_.kneighbors(n_neighbors=self.n_neighbors)
        self.decision_scores_ = self._get_dist_by_method(distances).ravel()
        self._process_decision_scores()
        return self

    def prepare_search(self, X: NDArray[Any]) -> None:
        """Make the search for neighbours among the training rows X (n, d)."""
        self.neigh_.fit(X)
        self.tree_ = self.neigh_ if self.neigh_._tree is None else self.neigh_._tree
        search_quickly(self.neigh_)


class LOF(Frozen, lof.LOF):
    """PyOD's LOF with a faster search."""

    def fit(self, X: Any, y: Any = None) -> LOF:
        """Fitted detector, on the rows X (n, d); y is ignored."""
        return self.fit_shared(X, y, None)

    def fit_shared(self, X: Any, y: Any, search: Search | None) -> LOF:
        """Fitted detector that shares its search with others; None for a search of its own."""
        X = self._check_training(X, y)
        self.detector_ = model_for(self, QuickLocalOutlierFactor)
        self.detector_.search = search
        self.detector_.fit(X=X, y=y)
        self.decision_scores_ = invert_order(self.detector_.negative_outlier_factor_)
        self._process_decision_scores()
        return self


class LSCP(Frozen, lscp.LSCP):
    """PyOD's LSCP, compiled, with subspaces that are drawn once.

    PyOD draws new subspaces at every call. Here the fit draws `subspaces_` and keeps `trees_`,
    the trees of the training rows in them. The detectors in `detector_list` are not changed; the
    fitted ones are `detectors_`. If all of them are our `LOF`, they share `search_`, one search
    for the largest number of neighbours.
    """

    def fit(self, X: Any, y: Any = None) -> LSCP:
        """Fitted detector, on the rows X (n, d); y is ignored."""
        X = self._check_training(X, y)
        self.check_parameters(len(X))
        self.X_train_norm_ = X
        # They are copied together, since they may share a generator.
        self.detectors_, random_state = copy.deepcopy((self.detector_list, self.random_state))
        self.search_ = make_search(self.detectors_)
        with self._search_once(X):
            for detector in self.detectors_:
                if self.search_ is None:
                    detector.fit(X)
                else:
                    detector.fit_shared(X, None, self.search_)
            self.subspaces_ = self._draw_subspaces(random_state)
            self.prepare_regions()
            self.decision_scores_ = self._score(X)
        self._process_decision_scores()
        return self

    def prepare_regions(self) -> None:
        """Compute what follows from the training rows, the subspaces and the fitted detectors."""
        X = self.X_train_norm_
        self.train_scores_ = np.column_stack([d.decision_scores_ for d in self.detectors_])
        keys = [tuple(features.tolist()) for features in self.subspaces_]
        self.trees_ = {key: searchable(KDTree(X[:, list(key)])) for key in dict.fromkeys(keys)}
        self._freeze(np.array([list(self.trees_).index(key) for key in keys]))

    def decision_function(self, X: Any) -> FloatArray:
        """Scores (n,) of the rows X (n, d), higher for more anomalous."""
        X = self._check_new(X)
        with self._search_once(X):
            return self._score(X)

    def _search_once(self, X: NDArray[Any]) -> AbstractContextManager[None]:
        """Inside it, the detectors share one search for the neighbours of X, if they can."""
        return nullcontext() if self.search_ is None else self.search_.shared(X)

    def check_parameters(self, n_rows: int) -> None:
        """Refuse detectors and sizes that allow no local region."""
        if len(self.detector_list) < 2:
            n_detectors = len(self.detector_list)
            raise ValueError(f"detector_list needs 2 detectors or more, got {n_detectors}.")
        for detector in self.detector_list:
            check_detector(detector)
        if not 1 <= self.local_region_size <= n_rows:
            given = f"local_region_size={self.local_region_size}"
            raise ValueError(f"{given} must lie between 1 and the number of rows, {n_rows}.")
        n_bins = min(self.n_bins, len(self.detector_list))
        if not 1 <= self.n_selected <= n_bins:
            given = f"n_selected={self.n_selected}"
            raise ValueError(f"{given} must lie between 1 and the number of bins, {n_bins}.")

    def _draw_subspaces(self, random_state: Any) -> list[NDArray[np.intp]]:
        """Features of each subspace, drawn as PyOD draws them for its training rows."""
        n_features, n_draws = self.n_features_, self.local_region_iterations
        greatest = min(self.local_max_features, 1.0)
        least = self.local_min_features if n_features * self.local_min_features >= 1 else 1.0
        if least == greatest:
            return [np.arange(n_features)] * n_draws
        sizes = int(n_features * least), int(n_features * greatest)
        if sizes[0] >= sizes[1]:
            given = f"local_max_features={self.local_max_features}"
            raise ValueError(f"{given} is too small for subspaces of {n_features} features.")
        # Not NumPy's global generator.
        rng = np.random.RandomState() if random_state is None else check_random_state(random_state)
        return [generate_bagging_indices(rng, False, n_features, *sizes) for _ in range(n_draws)]

    def _freeze(self, tree_of: NDArray[np.intp]) -> None:
        """Keep what is needed of the training scores to score new rows."""
        scores, self.scaler_ = standardizer(self.train_scores_, keep_scalar=True)
        self.training_pseudo_label_ = scores.max(axis=1, keepdims=True)
        self.n_nearest_ = self.local_region_size
        self.ensemble_ = Ensemble(
            self.training_pseudo_label_.ravel(),
            np.ascontiguousarray(scores),
            tree_of,
            self.local_region_threshold,
            min(self.n_bins, len(self.detectors_)),
            self.n_selected,
        )

    def _score(self, X: NDArray[Any]) -> FloatArray:
        """Scores (n,) of rows that have been checked."""
        raw = np.column_stack([detector.decision_function(X) for detector in self.detectors_])
        scores = np.ascontiguousarray(self.scaler_.transform(check_array(raw)))
        result = np.empty(len(X))
        for start in range(0, len(X), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            result[block] = local_scores(self.ensemble_, self._nearest(X[block]), scores[block])
        if np.isnan(result).any():
            n_nearest = f"local_region_size={self.n_nearest_}"
            row = f"row {int(np.isnan(result).argmax())} has no local region"
            reason = "no two rows are near it in more than one subspace"
            raise ValueError(f"{row}: {reason}. Raise {n_nearest}.")
        return result

    def _nearest(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Numbers (n_trees, n, n_nearest) of the training rows nearest to X in each subspace."""
        queries = [np.array(X[:, key], dtype=np.float64, order="C") for key in self.trees_]
        searches = zip(self.trees_.values(), queries, strict=True)
        return np.stack([find_nearest(*search, self.n_nearest_)[1] for search in searches])


def make_search(detectors: list[Any]) -> Search | None:
    """A search that the detectors of an LSCP can share; None if they would not have the same."""
    if not all(type(detector) is LOF for detector in detectors):
        return None
    if len({detector.leaf_size for detector in detectors}) > 1:
        return None
    return Search(max(detector.n_neighbors for detector in detectors))


class OCSVM(Frozen, ocsvm.OCSVM):
    """PyOD's OCSVM, without its draw from NumPy's global generator.

    With an RBF kernel and many support vectors, scores differ from PyOD's by rounding.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> OCSVM:
        """Fitted detector, on the rows X (n, d); y is ignored."""
        X = self._check_training(X, y)
        self.detector_ = model_for(self, OneClassSVM)
        # If it is unset, scikit-learn draws it from the global generator. libsvm uses it only to
        # split rows for probability estimates, which a one-class SVM does not have.
        self.detector_.random_state = 0
        self.detector_.cache_size = min(self.cache_size, _CACHE_MEGABYTES)
        self.detector_.fit(X=X, y=y, sample_weight=sample_weight, **params)
        self.prepare_kernel()
        self.decision_scores_ = self._score(X)
        self._process_decision_scores()
        return self

    def prepare_kernel(self) -> None:
        """Copy the support vectors for our compiled function if there are many."""
        is_large = self.kernel == "rbf" and len(self.detector_.support_) >= _MANY_SUPPORT_VECTORS
        self.rbf_ = copy_rbf(self.detector_) if is_large else None

    def decision_function(self, X: Any) -> FloatArray:
        """Scores (n,) of the rows X (n, d), higher for more anomalous."""
        return self._score(self._check_new(X))

    def _score(self, X: NDArray[Any]) -> FloatArray:
        """Scores (n,) of rows that have been checked."""
        if self.rbf_ is None:
            scores: FloatArray = invert_order(self.detector_.decision_function(X))
            return scores
        return -rbf_decisions(self.rbf_, X)


class HBOS(Frozen, hbos.HBOS):
    """PyOD's HBOS, without the function that every process would have to compile."""

    def fit(self, X: Any, y: Any = None) -> HBOS:
        """Fitted detector, on the rows X (n, d); y is ignored."""
        X = self._check_training(X, y)
        is_auto = isinstance(self.n_bins, str) and self.n_bins.lower() == "auto"
        if not is_auto:
            check_parameter(self.n_bins, low=2, high=np.inf)
        columns = np.ascontiguousarray(X.T)
        sizes = [get_optimal_n_bins(x) if is_auto else self.n_bins for x in columns]
        bins = zip(columns, sizes, strict=True)
        heights, edges = zip(*(np.histogram(x, n, density=True) for x, n in bins), strict=True)
        self.hist_ = list(heights) if is_auto else np.column_stack(heights)
        self.bin_edges_ = list(edges) if is_auto else np.column_stack(edges).astype(np.float64)
        self.prepare_scores()
        self.decision_scores_ = self._score(X)
        self._process_decision_scores()
        return self

    def prepare_scores(self) -> None:
        """Compute the score of each bin from its height."""
        is_auto = isinstance(self.hist_, list)
        # PyOD's compiled logarithm is that of the C library; NumPy's differs in the last bit.
        log2 = np.log2 if is_auto else np.vectorize(math.log2, otypes=[np.float64])
        heights = self.hist_ if isinstance(self.hist_, list) else self.hist_.T
        self.bin_scores_ = [log2(height + self.alpha) for height in heights]

    def decision_function(self, X: Any) -> FloatArray:
        """Scores (n,) of the rows X (n, d), higher for more anomalous."""
        return self._score(self._check_new(X))

    def _score(self, X: NDArray[Any]) -> FloatArray:
        """Scores (n,) of rows that have been checked."""
        scores = np.empty(X.shape)
        all_edges = self.bin_edges_ if isinstance(self.bin_edges_, list) else self.bin_edges_.T
        columns = np.array(X.T, order="C")
        for j, (edges, heights) in enumerate(zip(all_edges, self.bin_scores_, strict=True)):
            x = columns[j]
            # A value outside the bins has the score of the first or the last one,
            by_place = np.concatenate([heights[:1], heights, heights[-1:]])
            scores[:, j] = by_place.take(_places(edges, x))
            # unless it is far from them.
            if x.min() < edges[0]:
                is_far = edges[0] - x > (edges[1] - edges[0]) * self.tol
                scores[is_far, j] = heights.min()
            if x.max() > edges[-1]:
                is_far = x - edges[-1] > (edges[-1] - edges[-2]) * self.tol
                scores[is_far, j] = heights.min()
        return invert_order(scores.sum(axis=1))


def _places(edges: FloatArray, x: FloatArray) -> NDArray[Any]:
    """Number of `edges` below each value of x (n,), as np.searchsorted finds it."""
    if len(edges) > _MANY_EDGES:
        return np.searchsorted(edges, x)
    places = np.zeros(len(x), np.uint8)
    for edge in edges:
        places += x > edge
    return places
