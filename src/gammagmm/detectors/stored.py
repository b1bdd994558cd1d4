"""Fitted detectors that have names <-> bytes, without pickles.

The bytes have the name of the detector and arrays of what it learned. The detector is made as for a
fit of as many rows, so its class and its parameters are ours; only the seed comes from the bytes.
What follows from other arrays, or is in the fit already, is left out: trees of neighbours, compiled
forms, training rows and scores. Compiled code would follow wrong numbers out of its arrays, so each
array must have the type and the shape that the detector needs, its floats must be finite, and
numbers of rows, columns and nodes must be in range.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gammagmm._support.archives import Archive, archive_bytes, open_archive
from gammagmm._support.documents import MAX_REASON, Form, Reader
from gammagmm.detectors.fit import score_rows
from gammagmm.detectors.presets import NAMES, resolve_detectors
from gammagmm.errors import DetectorError, MissingExtraError, SavedFileError

__all__ = [
    "StoredDetector",
    "StoredDetectors",
    "Training",
    "check_name",
    "even_places",
    "from_bytes",
    "store",
    "to_bytes",
]

Array: TypeAlias = NDArray[np.float64]
State: TypeAlias = dict[str, Any]

READER = Reader(Form("", 1, "detector"), "The state of a detector")

MAX_TRIED = 200
"""Most training rows that are scored as new rows, to see whether a detector has changed."""
CLOSE = 1e-9
"""Relative difference of scores that is a matter of rounding."""


def even_places(n_rows: int) -> NDArray[np.intp]:
    """Places of the training rows, evenly spread, that are scored as new rows."""
    return np.unique(np.linspace(0, n_rows - 1, MAX_TRIED).astype(np.intp))


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows (n, d) as the detectors have them, and the scores (n,) that one gave them."""

    rows: Array
    scores: Array


def to_bytes(name: str, detector: Any, training: Training) -> bytes:
    """The fitted `detector`, which has this name among those of the presets; the same each time."""
    arrays = {key: np.asarray(value) for key, value in _DETECTORS[name][0](detector).items()}
    arrays["scores"] = detector.decision_scores_
    if getattr(detector, "random_state", None) is not None:
        arrays["random_state"] = np.asarray(detector.random_state, dtype=np.int64)
    for key, known in vars(training).items():
        if key in arrays and np.array_equal(arrays[key], known):
            del arrays[key]
    return archive_bytes(json.dumps({"detector": name}), arrays)


@dataclass(frozen=True, eq=False)
class StoredDetector:
    """What a file has of a fitted detector.

    `choice` is the name by which it was asked for, None for a user's own object, and `state` what
    `to_bytes` wrote, None for such an object and for a detector that is not used. `new_scores` are
    those of the training rows at `even_places` as new rows; None if it cannot score them.
    """

    choice: str | None
    state: NDArray[np.uint8] | None
    new_scores: Array | None


def store(choice: str | None, detector: Any, training: Training) -> StoredDetector:
    """What a file has of the fitted `detector`."""
    tried = training.rows[even_places(len(training.rows))]
    new_scores: Array | None = None
    with suppress(DetectorError):  # then it will not be tried
        new_scores = score_rows({"": detector}, tried)[:, 0]
    if choice is None:
        return StoredDetector(None, None, new_scores)
    state = np.frombuffer(to_bytes(choice, detector, training), dtype=np.uint8)
    return StoredDetector(choice, state, new_scores)


def from_bytes(name: str, content: bytes, training: Training) -> Any:
    """The detector that `to_bytes` wrote; any error means that it cannot be made of them."""
    from gammagmm.detectors.pyod_subclasses import Frozen

    with open_archive(io.BytesIO(content), READER) as archive:
        _check_document(name, archive)
        parts = _Parts(archive, training)
        scores = parts.array("scores", None)
        n_rows, width = len(scores), training.rows.shape[1]
        detector = resolve_detectors([name], n_rows)[0][name]
        if "random_state" in parts:
            detector.random_state = int(parts.array("random_state", kind=np.int64))
        detector._set_n_classes(None)
        if isinstance(detector, Frozen):
            detector.n_features_ = width
        detector.decision_scores_ = scores
        _DETECTORS[name][1](detector, parts, n_rows, width)
    detector._process_decision_scores()
    return detector


def check_name(name: str, content: bytes) -> None:
    """Raise `SavedFileError` if the bytes are damaged or have no detector of this name."""
    with open_archive(io.BytesIO(content), READER) as archive:
        _check_document(name, archive)


def _check_document(name: str, archive: Archive) -> None:
    document = archive.document()
    READER.check_fields(document, {"detector"}, "a detector")
    if name not in NAMES or document["detector"] != name:
        READER.refuse(f"it is no detector {name}")


@dataclass(frozen=True, eq=False)
class _Parts:
    """The arrays of a detector; those that are not stored are those of the training."""

    archive: Archive
    training: Training

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self.archive.members

    def array(
        self,
        name: str,
        *shape: int | None,
        kind: DTypeLike = np.float64,
        is_finite: bool = True,
    ) -> NDArray[Any]:
        """The array of this shape, where None is any size, and type; floats must be finite."""
        known = vars(self.training)
        is_known = name in known and name not in self
        array: NDArray[Any] = known[name] if is_known else self.archive.array(name)
        is_right = array.dtype == kind and array.ndim == len(shape)
        is_right = is_right and all(
            size in (None, own) for size, own in zip(shape, array.shape, strict=True)
        )
        is_finite = is_finite and array.dtype.kind == "f"
        if not is_right or (is_finite and not np.isfinite(array).all()):
            raise ValueError(f"its part {name} is not what the detector needs")
        return array

    def set_attributes(self, detector: Any, shapes: Mapping[str, tuple[int | None, ...]]) -> None:
        """Set the attributes of these names, perhaps of an inner object, to arrays."""
        for name, shape in shapes.items():
            place, _, last = name.rpartition(".")
            target = attrgetter(place)(detector) if place else detector
            setattr(target, last, self.array(name, *shape))


def _attributes(*names: str, **others: str) -> Callable[[Any], State]:
    """A function that gives these attributes of a detector; `others` have other names there."""
    places = dict.fromkeys(names) | others
    return lambda detector: {
        name: attrgetter(place or name)(detector) for name, place in places.items()
    }


def _complete_knn(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    detector.prepare_search(parts.array("rows", n_rows, width))


def _learned_lof(detector: Any) -> State:
    """Of the distances to neighbours, only the largest is used for new rows."""
    model = detector.detector_
    distances = model._distances_fit_X_[:, -1]
    return {"rows": model._fit_X, "densities": model._lrd, "distances": distances}


def _complete_lof(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    rows = parts.array("rows", n_rows, width)
    learned = (parts.array(name, n_rows) for name in ("densities", "distances"))
    _fill_lof(detector, rows, *learned)


def _fill_lof(
    detector: Any, rows: Array, densities: Array, distances: Array, search: Any = None
) -> None:
    """Give the LOF, which has its scores, the model that was fitted on the rows."""
    from gammagmm.detectors.neighbours import QuickLocalOutlierFactor
    from gammagmm.detectors.pyod_subclasses import model_for

    model = detector.detector_ = model_for(detector, QuickLocalOutlierFactor)
    model.search = search
    model._fit(rows)
    model.n_neighbors_ = model.n_neighbors
    model._lrd = densities
    model._distances_fit_X_ = np.broadcast_to(distances[:, None], (len(rows), model.n_neighbors))
    model.negative_outlier_factor_ = -detector.decision_scores_
    percent = 100.0 * model.contamination
    model.offset_ = np.percentile(model.negative_outlier_factor_, percent)


def _learned_lscp(detector: Any) -> State:
    """What each LOF learned is in a row of an array; a subspace ends where the columns are -1."""
    rows, lofs = detector.X_train_norm_, detector.detectors_
    subspaces = np.full((len(detector.subspaces_), rows.shape[1]), -1, dtype=np.int64)
    for row, features in zip(subspaces, detector.subspaces_, strict=True):
        row[: len(features)] = features
    learned = [_learned_lof(each) | {"lof_scores": each.decision_scores_} for each in lofs]
    names = ("lof_scores", "densities", "distances")
    stacked = {name: np.stack([each[name] for each in learned]) for name in names}
    return {"rows": rows, "subspaces": subspaces} | stacked


def _complete_lscp(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    from gammagmm.detectors.pyod_subclasses import make_search

    rows = detector.X_train_norm_ = parts.array("rows", n_rows, width)
    lofs = detector.detectors_ = deepcopy(detector.detector_list)
    names = ("lof_scores", "densities", "distances")
    learned = [parts.array(name, len(lofs), n_rows) for name in names]
    detector.search_ = make_search(lofs)
    for lof, scores, densities, distances in zip(lofs, *learned, strict=True):
        lof._set_n_classes(None)
        lof.n_features_, lof.decision_scores_ = width, scores
        _fill_lof(lof, rows, densities, distances, detector.search_)
        lof._process_decision_scores()
    subspaces = parts.array("subspaces", detector.local_region_iterations, width, kind=np.int64)
    if not ((subspaces >= -1) & (subspaces < width)).all() or (subspaces < 0).all(axis=1).any():
        raise ValueError("its subspaces have columns that the rows do not have")
    detector.subspaces_ = [features[features >= 0] for features in subspaces]
    detector.prepare_regions()


_SUPPORT = {
    "support": "detector_.support_",
    "vectors": "detector_.support_vectors_",
    "coefficients": "detector_.dual_coef_",
    "intercept": "detector_.intercept_",
}


def _complete_ocsvm(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    from sklearn.svm import OneClassSVM

    from gammagmm.detectors.pyod_subclasses import model_for

    svm = detector.detector_ = model_for(detector, OneClassSVM)
    svm.random_state = 0
    support = svm.support_ = parts.array("support", None, kind=np.int32)
    n_support = len(support)
    if not n_support or not ((support >= 0) & (support < n_rows)).all():
        raise ValueError("its support vectors are not training rows")
    svm.support_vectors_ = parts.array("vectors", n_support, width)
    svm.dual_coef_ = parts.array("coefficients", 1, n_support)
    svm.intercept_ = parts.array("intercept", 1)
    svm._dual_coef_, svm._intercept_, svm.offset_ = svm.dual_coef_, svm.intercept_, -svm.intercept_
    svm._n_support = np.full(2, n_support, dtype=np.int32)
    svm._probA, svm._probB, svm._sparse = np.empty(0), np.empty(0), False
    svm._gamma, svm.n_features_in_, svm.shape_fit_ = 1.0 / width, width, (n_rows, width)
    detector.prepare_kernel()


def _learned_iforest(detector: Any) -> State:
    """The nodes of all trees are in a few arrays."""
    forest = detector.detector_
    trees = [estimator.tree_.__getstate__() for estimator in forest.estimators_]
    seeds = [estimator.random_state for estimator in forest.estimators_]
    return {
        "offset": forest.offset_,
        "seeds": np.array([forest._seeds, seeds], dtype=np.int64),
        "sizes": np.array([len(tree["nodes"]) for tree in trees], dtype=np.int64),
        "nodes": np.concatenate([tree["nodes"] for tree in trees]),
        "values": np.concatenate([tree["values"] for tree in trees]),
    }


def _complete_iforest(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    from numpy.lib.recfunctions import repack_fields
    from sklearn.ensemble import IsolationForest
    from sklearn.ensemble._iforest import _average_path_length
    from sklearn.tree._tree import NODE_DTYPE

    from gammagmm.detectors.pyod_subclasses import model_for

    forest = detector.detector_ = model_for(detector, IsolationForest)
    forest.offset_ = parts.array("offset")[()]
    n_trees = forest.n_estimators
    forest._seeds, seeds = parts.array("seeds", 2, n_trees, kind=np.int64)
    sizes = parts.array("sizes", n_trees, kind=np.int64)
    nodes = parts.array("nodes", None, kind=repack_fields(NODE_DTYPE))
    values = parts.array("values", len(nodes), 1, 1)
    if not ((sizes >= 1) & (sizes <= len(nodes))).all() or sizes.sum() != len(nodes):
        raise ValueError("its trees do not have the sizes of its nodes")
    if not ((nodes["n_node_samples"] >= 1) & (nodes["n_node_samples"] <= n_rows)).all():
        raise ValueError("its nodes have no rows, or more than the fit")
    ends = np.cumsum(sizes)[:-1]
    split = zip(np.split(nodes, ends), np.split(values, ends), strict=True)
    trees = [_tree(*part, width) for part in split]
    n_drawn = int(nodes["n_node_samples"][0])  # a root has all rows that were drawn for its tree
    forest.max_samples_ = forest._max_samples = n_drawn
    forest._n_samples, forest._sample_weight = n_rows, None
    forest.n_features_in_ = forest._max_features = width
    forest.estimators_features_ = [np.arange(width)] * n_trees
    first = forest.estimator_ = forest._get_estimator()
    first.max_depth = int(np.ceil(np.log2(max(n_drawn, 2))))
    forest.estimators_ = [copy(first) for _ in trees]
    for estimator, tree, seed in zip(forest.estimators_, trees, seeds.tolist(), strict=True):
        estimator.tree_, estimator.random_state = tree, seed
        estimator.n_features_in_, estimator.n_outputs_, estimator.max_features_ = width, 1, 1
    forest._decision_path_lengths = [tree.compute_node_depths() for tree in trees]
    forest._average_path_length_per_tree = [
        _average_path_length(tree.n_node_samples) for tree in trees
    ]


def _tree(nodes: NDArray[Any], values: Array, width: int) -> Any:
    """scikit-learn's tree; it follows nodes without a check, so wrong ones are refused here."""
    from sklearn.tree._tree import Tree

    places, is_leaf = np.arange(len(nodes)), nodes["left_child"] == -1
    inside = nodes[~is_leaf]
    children = np.stack([inside["left_child"], inside["right_child"]])
    # Every node but the first is the child of one node, which is before it.
    is_right = np.array_equal(np.sort(children, axis=None), places[1:])
    is_right = is_right and bool((children > places[~is_leaf]).all())
    is_right = is_right and bool((nodes["right_child"][is_leaf] == -1).all())
    is_right = is_right and bool(((inside["feature"] >= 0) & (inside["feature"] < width)).all())
    if not is_right or not np.isfinite(nodes["threshold"]).all():
        raise ValueError("a tree of its forest has nodes that lead nowhere")
    tree = Tree(width, np.ones(1, dtype=np.intp), 1)
    state = {"max_depth": 0, "node_count": len(nodes), "nodes": nodes, "values": values}
    tree.__setstate__(state)
    depth = int(tree.compute_node_depths().max()) - 1  # it counts nodes, the first among them
    tree.__setstate__(state | {"max_depth": depth})
    return tree


def _complete_hbos(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    n_bins = detector.n_bins
    parts.set_attributes(detector, {"hist_": (n_bins, width), "bin_edges_": (n_bins + 1, width)})
    detector.prepare_scores()


def _complete_loda(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    n_cuts, n_bins = detector.n_random_cuts, detector.n_bins
    shapes = {"histograms_": (n_cuts, n_bins), "limits_": (n_cuts, n_bins + 1)}
    parts.set_attributes(detector, {"projections_": (n_cuts, width)} | shapes)


def _complete_tails(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    detector.X_train = parts.array("rows", n_rows, width)
    parts.set_attributes(detector, {"skewness_": (width,)})
    detector.prepare_tails()


_MOMENTS = tuple(f"scaler_.{name}" for name in ("mean_", "var_", "scale_"))
_SPECTRUM = tuple(
    f"detector_.{name}"
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_")
)


def _complete_pca(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    from gammagmm.detectors.pyod_subclasses import model_for

    scaler = detector.scaler_ = StandardScaler()
    pca = detector.detector_ = model_for(detector, PCA)
    n_components = min(n_rows, width)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_MOMENTS, (width,))
    shapes |= dict.fromkeys(_SPECTRUM, (n_components,))
    shapes |= {"detector_.mean_": (width,), "detector_.components_": (n_components, width)}
    parts.set_attributes(detector, shapes)
    scaler.n_features_in_ = pca.n_features_in_ = width
    scaler.n_samples_seen_ = pca.n_samples_ = n_rows
    pca.noise_variance_ = 0.0  # no component is left out
    pca.n_components_ = detector.n_components_ = detector.n_selected_components_ = n_components
    detector.components_ = detector.selected_components_ = pca.components_
    detector.w_components_ = detector.selected_w_components_ = pca.explained_variance_ratio_


def _learned_network(detector: Any) -> State:
    weights = {name: each.numpy() for name, each in detector.model.state_dict().items()}
    return {"X_mean": detector.X_mean, "X_std": detector.X_std} | weights


def _complete_network(detector: Any, parts: _Parts, n_rows: int, width: int) -> None:
    detector.data_num, detector.feature_size = n_rows, width
    detector.X_mean = parts.array("X_mean", width)
    # Of a column whose squares are too large for a float, the deviation is infinite.
    detector.X_std = parts.array("X_std", width, is_finite=False)
    detector.set_weights(lambda name, shape, kind: parts.array(name, *shape, kind=kind))


_DETECTORS: dict[str, tuple[Callable[[Any], State], Callable[[Any, _Parts, int, int], None]]] = {
    "KNN": (_attributes(rows="neigh_._fit_X"), _complete_knn),
    "IForest": (_learned_iforest, _complete_iforest),
    "LOF": (_learned_lof, _complete_lof),
    "OCSVM": (_attributes(**_SUPPORT), _complete_ocsvm),
    "LSCP": (_learned_lscp, _complete_lscp),
    "HBOS": (_attributes("hist_", "bin_edges_"), _complete_hbos),
    "LODA": (_attributes("projections_", "histograms_", "limits_"), _complete_loda),
    "COPOD": (_attributes("skewness_", rows="X_train"), _complete_tails),
    "AE": (_learned_network, _complete_network),
    "VAE": (_learned_network, _complete_network),
    "ECOD": (_attributes("skewness_", rows="X_train"), _complete_tails),
    "PCA": (
        _attributes(*_MOMENTS, "detector_.mean_", "detector_.components_", *_SPECTRUM),
        _complete_pca,
    ),
}
"""What a detector of this name learned besides its scores, and the function that gives it to a new
detector, for so many rows and columns."""


@dataclass(eq=False, repr=False)
class StoredDetectors(Mapping[str, Any]):
    """The detectors of a fit that was loaded, by name; each is made when it is first asked for.

    A user's own object is not stored: it is None, unless it was put in `made`.
    """

    stored: Mapping[str, StoredDetector]
    rows: Array  # (n, d) the training rows as the detectors have them
    scores: Array  # (n, M) their scores
    where: str  # names the file in messages
    made: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        part = self.stored[name]
        if part.choice is not None and part.state is not None and name not in self.made:
            self.made[name] = self._make(name, part.choice, part.state.tobytes())
        return self.made.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __repr__(self) -> str:
        return f"StoredDetectors({', '.join(self)})"

    def n_changed(self, name: str) -> tuple[int, int]:
        """How many of the rows that were tried the detector scores differently now, of how many."""
        tried = self.rows[even_places(len(self.rows))]
        now, before = score_rows({name: self[name]}, tried)[:, 0], self.stored[name].new_scores
        if before is None:
            return 0, 0
        rounding = CLOSE * float(np.abs(before).max())
        return int((~np.isclose(now, before, rtol=CLOSE, atol=rounding)).sum()), len(tried)

    def _make(self, name: str, choice: str, content: bytes) -> Any:
        training = Training(self.rows, self.scores[:, list(self.stored).index(name)])
        try:
            return from_bytes(choice, content, training)
        except MissingExtraError:
            raise
        except Exception as error:  # the libraries raise any on attributes that do not fit
            what = f"{self.where} cannot be read as a saved fit: its detector {name} cannot be made"
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
            raise SavedFileError(f"{what} ({reason})", "Fit the rows again.") from error
