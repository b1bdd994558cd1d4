"""Fitted detectors that have names <-> bytes, without pickles.

The attributes of a detector are numbers, texts, lists, arrays, and objects that have such
attributes. What follows from other attributes, or is in the fit already, is left out: trees of
neighbours, compiled forms, training rows and scores. The class of a detector comes from its name,
those of its objects from a list, and no constructor is called: bytes can only set attributes.
Attributes are enough to do harm: compiled code would follow wrong numbers out of its arrays, so
what it gets is computed here or checked.
"""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.archives import Archive, archive_bytes, open_archive
from gammagmm._support.documents import MAX_REASON, Form, Reader
from gammagmm.detectors.fit import score_rows
from gammagmm.detectors.presets import NAMES, detector_class
from gammagmm.errors import MissingExtraError, SavedFileError

__all__ = ["StoredDetectors", "Training", "check_types", "even_places", "from_bytes", "to_bytes"]

Array: TypeAlias = NDArray[np.float64]
State: TypeAlias = dict[str, Any]

READER = Reader(Form("", 1, "detector"), "The state of a detector")

PLAIN = ("dict", "tuple", "array", "number")
"""The types that every detector may have, besides those of JSON; a number is one of NumPy."""

OBJECTS = {
    "KNN": {"NearestNeighbors": "sklearn.neighbors"},
    "IForest": {"IsolationForest": "sklearn.ensemble", "ExtraTreeRegressor": "sklearn.tree"},
    "LOF": {"QuickLocalOutlierFactor": "gammagmm.detectors.neighbours"},
    "OCSVM": {"OneClassSVM": "sklearn.svm"},
    "LSCP": {
        "LOF": "gammagmm.detectors.pyod_subclasses",
        "QuickLocalOutlierFactor": "gammagmm.detectors.neighbours",
    },
    "PCA": {"PCA": "sklearn.decomposition", "StandardScaler": "sklearn.preprocessing"},
}
"""Classes of which a detector of this name has objects, and their modules; others need none."""

_FOLLOWING = {"labels_", "threshold_", "_mu", "_sigma"}
"""Attributes that PyOD computes from the training scores."""

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
    if name in _NETWORKS:
        state = _network_state(detector)
    else:
        state = {key: value for key, value in vars(detector).items() if key not in _FOLLOWING}
        if name in _REDUCERS:
            _REDUCERS[name](state, training)
    state["decision_scores_"] = _unless_same(detector.decision_scores_, training.scores)
    arrays: dict[str, NDArray[Any]] = {}
    return archive_bytes(json.dumps(_to_data(state, arrays)), arrays)


def from_bytes(name: str, content: bytes, training: Training) -> Any:
    """The detector that `to_bytes` wrote; any error means that it cannot be made of them."""
    check_types(name, content)
    with open_archive(io.BytesIO(content), READER) as archive:
        state = _from_data(archive.document(), name, archive)
    scores = state.pop("decision_scores_")
    if name in _NETWORKS:
        detector = _network(detector_class(name), state, training)
    else:
        detector = object.__new__(detector_class(name))
        vars(detector).update(state)
        if hasattr(detector, "n_features_"):
            detector.n_features_ = training.rows.shape[1]
        if name in _COMPLETERS:
            _COMPLETERS[name](detector, training)
    detector.decision_scores_ = training.scores if scores is None else scores
    detector._process_decision_scores()
    return detector


def check_types(name: str, content: bytes) -> None:
    """Raise ValueError if the bytes have a type that a detector of this name does not need.

    Nothing is imported or made.
    """
    if name not in NAMES:
        raise ValueError(f"there is no detector {name}")
    with open_archive(io.BytesIO(content), READER) as archive:
        waiting = [archive.document()]
    while waiting:
        data = waiting.pop()
        if isinstance(data, list):
            waiting.extend(data)
        elif isinstance(data, dict):
            READER.check_fields(data, {"type", "content"}, "a part")
            if data["type"] not in (*PLAIN, *OBJECTS.get(name, ())):
                kind = str(data["type"])[:100]
                raise ValueError(f"the detector {name} does not need the type {kind}")
            waiting.append(data["content"])


def _to_data(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The value as JSON; arrays and numbers of NumPy go to `arrays`, under the names in the data.

    What JSON does not have is an object with a type and a content; attributes are pairs.
    """
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, list):
        return [_to_data(item, arrays) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        kind = "array" if isinstance(value, np.ndarray) else "number"
        content: Any = str(len(arrays))
        arrays[content] = np.asarray(value)
    elif isinstance(value, tuple):
        kind, content = "tuple", _to_data(list(value), arrays)
    else:
        is_dict = isinstance(value, dict)
        kind, own = ("dict", value) if is_dict else (type(value).__name__, vars(value))
        content = [[key, _to_data(item, arrays)] for key, item in own.items()]
    return {"type": kind, "content": content}


def _from_data(data: Any, name: str, archive: Archive) -> Any:
    """The value of which `_to_data` made the data, for a detector of this name."""
    if isinstance(data, list):
        return [_from_data(item, name, archive) for item in data]
    if not isinstance(data, dict):
        return data
    kind, content = data["type"], _from_data(data["content"], name, archive)
    if kind in ("array", "number"):
        return archive.array(content) if kind == "array" else archive.array(content)[()]
    if kind in ("dict", "tuple"):
        return dict(content) if kind == "dict" else tuple(content)
    made = object.__new__(getattr(import_module(OBJECTS[name][kind]), kind))
    vars(made).update(content)
    return made


def _unless_same(array: Any, known: Array) -> Any:
    """None for an array that is `known` already."""
    return None if np.array_equal(array, known) else array


def _reduce_knn(state: State, training: Training) -> None:
    """Without the trees of the training rows."""
    del state["tree_"]
    state["neigh_"] = _without_tree(state["neigh_"], training)


def _complete_knn(detector: Any, training: Training) -> None:
    from gammagmm.detectors.neighbours import search_quickly

    model = detector.neigh_
    _with_tree(model, training)
    detector.tree_ = model if model._tree is None else model._tree
    search_quickly(model)


def _without_tree(model: Any, training: Training) -> Any:
    """scikit-learn's model of neighbours without its tree, and without rows that are known."""
    model = copy(model)
    model._tree = None
    model._fit_X = _unless_same(model._fit_X, training.rows)
    return model


def _with_tree(model: Any, training: Training) -> None:
    rows = training.rows if model._fit_X is None else model._fit_X
    if rows.dtype != np.float64 or rows.shape[1:] != training.rows.shape[1:]:
        raise ValueError("its rows do not have the columns of the fit")
    model._fit(rows)


def _reduce_lof(state: State, training: Training) -> None:
    """Without the tree; of the distances to neighbours, only the largest is used for new rows."""
    model = _without_tree(state["detector_"], training)
    vars(model).pop("search", None)
    model._distances_fit_X_ = model._distances_fit_X_[:, -1].copy()
    state["detector_"] = model


def _complete_lof(detector: Any, training: Training, search: Any = None) -> None:
    model = detector.detector_
    model.search = search
    _with_tree(model, training)
    shape = model.n_samples_fit_, model.n_neighbors_
    model._distances_fit_X_ = np.broadcast_to(model._distances_fit_X_[:, None], shape)


def _reduce_lscp(state: State, training: Training) -> None:
    """Without what `LSCP.prepare_regions` computes; the rows of its detectors are its own."""
    rows = state["X_train_norm_"]
    for name in ("trees_", "search_", "ensemble_", "scaler_", "training_pseudo_label_"):
        del state[name]
    del state["train_scores_"]
    reduced = [copy(detector) for detector in state["detectors_"]]
    for detector in reduced:
        for name in _FOLLOWING:
            del vars(detector)[name]
        _reduce_lof(vars(detector), Training(rows, training.scores))
    state["detectors_"] = reduced
    state["X_train_norm_"] = _unless_same(rows, training.rows)


def _complete_lscp(detector: Any, training: Training) -> None:
    from gammagmm.detectors.pyod_subclasses import LOF, make_search

    detectors, width = detector.detectors_, training.rows.shape[1]
    if detector.X_train_norm_ is None:
        detector.X_train_norm_ = training.rows
    rows = detector.X_train_norm_
    if rows.ndim != 2 or rows.shape[1] != width or {type(each) for each in detectors} != {LOF}:
        raise ValueError("its rows or detectors are not those of the fit")
    detector.check_parameters(len(rows))
    detector.search_ = make_search(detectors)
    for each in detectors:
        _complete_lof(each, Training(rows, each.decision_scores_), detector.search_)
        each.n_features_ = width
        each._process_decision_scores()
    detector.prepare_regions()


def _reduce_ocsvm(state: State, training: Training) -> None:
    """Without the form of the support vectors that our compiled function needs."""
    del state["rbf_"]


def _complete_ocsvm(detector: Any, training: Training) -> None:
    svm, width = detector.detector_, training.rows.shape[1]
    n_support = len(svm.support_)
    shapes = [
        (svm.support_vectors_, (n_support, width), np.float64),
        (svm.dual_coef_, (1, n_support), np.float64),
        (svm._dual_coef_, (1, n_support), np.float64),
        (svm.support_, (n_support,), np.int32),
        (svm.intercept_, (1,), np.float64),
        (svm._intercept_, (1,), np.float64),
        (svm._probA, (0,), np.float64),
        (svm._probB, (0,), np.float64),
    ]
    # libsvm reads as far as these arrays promise.
    is_right = all(part.shape == shape and part.dtype == kind for part, shape, kind in shapes)
    is_right = is_right and svm._n_support.shape == (2,) and svm._n_support.dtype == np.int32
    is_right = is_right and int(svm._n_support[0]) == n_support > 0
    if not is_right or svm._sparse or svm.kernel not in _KERNELS or svm._impl != "one_class":
        raise ValueError("its support vectors do not fit together")
    detector.prepare_kernel()


_KERNELS = ("linear", "poly", "rbf", "sigmoid")


def _reduce_iforest(state: State, training: Training) -> None:
    """With the nodes of all trees in a few arrays."""
    forest = copy(state["detector_"])
    trees = [estimator.tree_.__getstate__() for estimator in forest.estimators_]
    state["trees"] = {
        "depths": [int(tree["max_depth"]) for tree in trees],
        "sizes": [len(tree["nodes"]) for tree in trees],
        "nodes": np.concatenate([tree["nodes"] for tree in trees]),
        "values": np.concatenate([tree["values"] for tree in trees]),
    }
    forest.estimators_ = [copy(estimator) for estimator in forest.estimators_]
    for estimator in forest.estimators_:
        del estimator.tree_
    state["detector_"] = forest


def _complete_iforest(detector: Any, training: Training) -> None:
    from sklearn.ensemble import IsolationForest
    from sklearn.tree import ExtraTreeRegressor

    forest, width = detector.detector_, training.rows.shape[1]
    made = {type(each) for each in forest.estimators_}
    if type(forest) is not IsolationForest or made != {ExtraTreeRegressor}:
        raise ValueError("it is no forest")
    forest.n_features_in_ = forest._max_features = width
    parts = vars(detector).pop("trees")
    ends = np.cumsum(parts["sizes"])[:-1]
    nodes, values = (np.split(parts[name], ends) for name in ("nodes", "values"))
    trees = zip(forest.estimators_, parts["depths"], nodes, values, strict=True)
    for estimator, depth, own_nodes, own_values in trees:
        estimator.tree_ = _tree(depth, own_nodes, own_values, width)


def _tree(depth: int, nodes: NDArray[Any], values: Array, width: int) -> Any:
    """scikit-learn's tree; it follows nodes without a check, so wrong ones are refused here."""
    from sklearn.tree._tree import Tree

    left, right, tested = nodes["left_child"], nodes["right_child"], nodes["feature"]
    places, is_leaf = np.arange(len(nodes)), left == -1
    inside = places[~is_leaf]
    is_right = len(nodes) > 0 and bool((right[is_leaf] == -1).all())
    for child in (left[inside], right[inside]):
        is_right = is_right and bool(((child > inside) & (child < len(nodes))).all())
    if not is_right or not ((tested[inside] >= 0) & (tested[inside] < width)).all():
        raise ValueError("a tree of its forest has nodes that lead nowhere")
    tree = Tree(width, np.ones(1, dtype=np.intp), 1)
    state = {"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values}
    tree.__setstate__(state)
    return tree


def _reduce_tails(state: State, training: Training) -> None:
    """Without what follows from the training rows."""
    for name in ("sorted_columns_", "tails_", "_outlyingness"):
        state.pop(name, None)
    state["X_train"] = _unless_same(state["X_train"], training.rows)


def _complete_tails(detector: Any, training: Training) -> None:
    if detector.X_train is None:
        detector.X_train = training.rows
    detector.prepare_tails()


_REDUCERS = {
    "KNN": _reduce_knn,
    "IForest": _reduce_iforest,
    "LOF": _reduce_lof,
    "LSCP": _reduce_lscp,
    "OCSVM": _reduce_ocsvm,
    "COPOD": _reduce_tails,
    "ECOD": _reduce_tails,
}
_COMPLETERS: dict[str, Any] = {
    "KNN": _complete_knn,
    "LOF": _complete_lof,
    "LSCP": _complete_lscp,
    "OCSVM": _complete_ocsvm,
    "IForest": _complete_iforest,
    "COPOD": _complete_tails,
    "ECOD": _complete_tails,
}
_NETWORKS = ("AE", "VAE")
_LEARNED = ("X_mean", "X_std", "data_num", "feature_size", "_classes")
"""Attributes of a fitted network besides its parameters and weights."""


def _network_state(detector: Any) -> State:
    """Parameters, moments of the columns and weights of a network."""
    names = [*inspect.signature(type(detector)).parameters, *_LEARNED]
    state = {name: getattr(detector, name) for name in names}
    weights = {name: each.numpy() for name, each in detector.model.state_dict().items()}
    return {"attributes": state, "weights": weights}


def _network(made: Any, state: State, training: Training) -> Any:
    """The network with these weights; imports PyTorch."""
    attributes = state["attributes"]
    learned = {name: attributes.pop(name) for name in _LEARNED}
    detector = made(**attributes)
    vars(detector).update(learned)
    width = training.rows.shape[1]
    if detector.feature_size != width or {learned[x].shape for x in _LEARNED[:2]} != {(width,)}:
        raise ValueError("it does not have the columns of the fit")
    detector.set_weights(state["weights"])
    return detector


@dataclass(eq=False, repr=False)
class StoredDetectors(Mapping[str, Any]):
    """The detectors of a fit that was loaded, by name; each is made when it is first asked for.

    A user's own object is not stored: it is None, unless it was put in `made`.
    """

    stored: dict[str, tuple[str, NDArray[np.uint8]] | None]  # choice and bytes of each, by name
    new_scores: dict[str, Array | None]  # what each gave the rows at `even_places` as new rows
    rows: Array  # (n, d) the training rows as the detectors have them
    scores: Array  # (n, M) their scores
    where: str  # names the file in messages
    made: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        part = self.stored[name]
        if part is not None and name not in self.made:
            self.made[name] = self._make(name, *part)
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
        now, before = score_rows({name: self[name]}, tried)[:, 0], self.new_scores[name]
        if before is None:
            return 0, 0
        rounding = CLOSE * float(np.abs(before).max())
        return int((~np.isclose(now, before, rtol=CLOSE, atol=rounding)).sum()), len(tried)

    def _make(self, name: str, choice: str, content: NDArray[np.uint8]) -> Any:
        training = Training(self.rows, self.scores[:, list(self.stored).index(name)])
        try:
            return from_bytes(choice, content.tobytes(), training)
        except MissingExtraError:
            raise
        except Exception as error:  # the libraries raise any on attributes that do not fit
            what = f"{self.where} cannot be read as a saved fit: its detector {name} cannot be made"
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
            raise SavedFileError(f"{what} ({reason})", "Fit the rows again.") from error
