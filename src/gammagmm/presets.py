"""Presets, names and users' objects -> fresh detectors that fit the size of the data."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, count
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, clone

from gammagmm.errors import Note

__all__ = ["MIN_ROWS", "NAMES", "PRESETS", "detector_parts", "resolve_detectors"]

FloatArray: TypeAlias = NDArray[np.float64]
Detectors: TypeAlias = str | Sequence[Any] | Mapping[str, Any]

NAMES = ("KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD", "ECOD", "PCA")
PRESETS = {
    "classic": ("KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD"),
    "fast": ("IForest", "HBOS", "LODA", "COPOD", "ECOD", "PCA"),
}
LSCP_NEIGHBORS = (10, 20, 30, 40)
MIN_ROWS = 10


def resolve_detectors(
    detectors: Detectors, n_rows: int, n_features: int
) -> tuple[dict[str, Any], list[Note]]:
    """Fresh unfitted detectors by name, and a note for each parameter that had to change.

    Takes a preset, or names, PyOD detectors and scikit-learn outlier detectors in a list or as
    the values of a dict. Sizes that need more rows than there are get lowered, on our own copies.

    >>> detectors, notes = resolve_detectors(["KNN", "LOF"], n_rows=12, n_features=2)
    >>> list(detectors), notes[0].message
    (['KNN', 'LOF'], 'n_neighbors lowered from 20 to 11: the data have 12 rows')
    """
    choices = _name_choices(detectors)
    if n_rows < MIN_ROWS and any(isinstance(choice, str) for choice in choices.values()):
        raise ValueError(f"X has {n_rows} rows; the detectors need at least {MIN_ROWS}.")
    made = {name: _make(choice) for name, choice in choices.items()}
    for part in detector_parts(list(made.values())):
        _mend(part, n_features)
    return made, [note for name in made for note in _adapt(name, made[name], n_rows)]


def detector_parts(value: Any) -> Iterator[Any]:
    """Walk over a detector and the estimators in its parameters, such as LSCP's detectors."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from detector_parts(item)
    elif hasattr(value, "fit") and not isinstance(value, type):
        yield value
        for name in inspect.signature(type(value)).parameters:
            yield from detector_parts(getattr(value, name, None))


def _name_choices(detectors: Any) -> dict[str, Any]:
    """Each detector asked for, a known name or an object that looks right, under its own name."""
    if isinstance(detectors, str):
        if detectors not in PRESETS:
            presets = f"detectors={detectors!r} is not a preset; presets: {', '.join(PRESETS)}. "
            raise ValueError(presets + f"Or pass a list; known names: {', '.join(NAMES)}.")
        detectors = PRESETS[detectors]
    if not isinstance(detectors, Sequence | Mapping):
        expected = "detectors must be a preset, or a list or dict of detectors"
        raise TypeError(f"{expected}, got {detectors!r}. Put a single detector into a list.")
    if not detectors:
        raise ValueError(f"detectors must hold at least one detector, got {detectors!r}.")
    choices = detectors if isinstance(detectors, Mapping) else _named_by_class(detectors)
    for name, choice in choices.items():
        _check_choice(name, choice)
    return dict(choices)


def _named_by_class(detectors: Sequence[Any]) -> dict[str, Any]:
    """Detectors by name or class name; one that comes again gets the suffix _2, _3, ..."""
    named: dict[str, Any] = {}
    for choice in detectors:
        base = choice if isinstance(choice, str) else type(choice).__name__
        names = chain([base], (f"{base}_{number}" for number in count(2)))
        named[next(name for name in names if name not in named)] = choice
    return named


def _check_choice(name: Any, choice: Any) -> None:
    """Refuse what is neither a known name nor an object that looks like a detector."""
    if not isinstance(name, str):
        raise TypeError(f"detectors must have names as keys, got the key {name!r}.")
    can_score = hasattr(choice, "decision_function") or isinstance(choice, OutlierMixin)
    if isinstance(choice, str):
        if choice not in NAMES:
            raise ValueError(f"detectors: unknown name {choice!r}; known: {', '.join(NAMES)}.")
    elif isinstance(choice, type) or not (hasattr(choice, "fit") and can_score):
        expected = "names, or objects that are PyOD detectors or scikit-learn outlier detectors"
        raise TypeError(f"detectors must be {expected}, got {choice!r} for {name!r}.")


def _make(choice: Any) -> Any:
    """Unfitted copy of the user's detector, or PyOD's of that name at PyOD's defaults."""
    if not isinstance(choice, str):
        return _unfitted(choice)
    model = getattr(import_module(f"pyod.models.{choice.lower()}"), choice)
    if choice != "LSCP":
        return model()
    lof = import_module("pyod.models.lof").LOF
    # At fit its default of 10 bins would become the number of detectors, with a warning.
    return model([lof(n_neighbors=k) for k in LSCP_NEIGHBORS], n_bins=len(LSCP_NEIGHBORS))


def _unfitted(value: Any) -> Any:
    """Unfitted copy of a detector, as scikit-learn's `clone` makes it."""
    from pyod.models.base import BaseDetector

    if isinstance(value, list | tuple):
        return type(value)(_unfitted(item) for item in value)
    if not isinstance(value, BaseDetector):
        return clone(value, safe=False)
    # PyOD's get_params, which `clone` calls, edits the warning filters of the whole process.
    parameters = inspect.signature(type(value)).parameters.values()
    if any(p.kind is p.VAR_KEYWORD or not hasattr(value, p.name) for p in parameters):
        return copy.deepcopy(value)
    return type(value)(**{p.name: _unfitted(getattr(value, p.name)) for p in parameters})


def _mend(part: Any, n_features: int) -> None:
    """Give our copy of a PyOD detector a better method that leaves its scores the same."""
    if type(part).__module__ == "pyod.models.ocsvm":
        part.random_state, part.fit = None, partial(_fit_ocsvm, part)
    elif type(part).__module__ == "pyod.models.lscp" and n_features == 1:
        part._get_local_region = partial(_nearest_rows, part)


def _fit_ocsvm(ocsvm: Any, X: FloatArray) -> Any:
    """Fit as PyOD does, but for the number that libsvm would draw from NumPy's global state."""
    from sklearn.svm import OneClassSVM

    names = inspect.signature(OneClassSVM).parameters
    ocsvm.detector_ = OneClassSVM(**{name: getattr(ocsvm, name) for name in names})
    ocsvm.detector_.random_state = ocsvm.random_state
    ocsvm.decision_scores_ = -ocsvm.detector_.fit(X).decision_function(X)
    return ocsvm._set_n_classes(None)._process_decision_scores()


def _nearest_rows(lscp: Any, X: FloatArray) -> list[list[int]]:
    """LSCP's regions in the one subspace that one feature has: PyOD's, without its warnings."""
    from sklearn.neighbors import KDTree

    nearest = KDTree(lscp.X_train_norm_).query(X, lscp.local_region_size, return_distance=False)
    return [list(row) for row in nearest]


def _adapt(name: str, detector: Any, n_rows: int) -> Iterator[Note]:
    """Lower sizes that need more rows than there are, and let new rows be scored."""
    # LSCP scores its training rows anew, so that each counts itself among its neighbours.
    n_others = n_rows - 2 if hasattr(detector, "detector_list") else n_rows - 1
    for part in detector_parts(detector):
        for parameter, largest in (("n_neighbors", n_others), ("local_region_size", n_rows)):
            size = getattr(part, parameter, None)
            if isinstance(size, int | np.integer) and size > largest:
                setattr(part, parameter, largest)
                lowered = f"{parameter} lowered from {size} to {largest}"
                yield Note("detectors", name, f"{lowered}: the data have {n_rows} rows")
                if parameter == "local_region_size":
                    part.local_region_min = largest  # else LSCP warns of what the note says
        if getattr(part, "novelty", None) is False:
            part.novelty = True
            yield Note("detectors", name, "novelty set to True, so that it can score new rows")
