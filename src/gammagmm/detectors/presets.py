"""Presets, names and users' objects -> new detectors with sizes that suit the data."""

from __future__ import annotations

import copy
import inspect
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, count
from typing import Any, Literal, TypeAlias

import numpy as np

from gammagmm.errors import DetectorError, MissingExtraError, Note

__all__ = [
    "AUTO_FIT_ROWS",
    "MIN_ROWS",
    "NAMES",
    "PRESETS",
    "MaxFitRows",
    "RowPlan",
    "cost_rank",
    "detector_class",
    "detector_parts",
    "is_superlinear",
    "name_choices",
    "named_detectors",
    "plan_rows",
    "resolve_detectors",
    "scores_batches",
    "uses_torch",
]

Detectors: TypeAlias = str | Sequence[Any] | Mapping[str, Any]
MaxFitRows: TypeAlias = int | Literal["auto"] | None
"""Most rows that a slow detector is fitted on; "auto" limits its time as well, None nothing."""

OURS = {
    "KNN": ("pyod_subclasses", "pyod.models.knn.KNN"),
    "LOF": ("pyod_subclasses", "pyod.models.lof.LOF"),
    "OCSVM": ("pyod_subclasses", "pyod.models.ocsvm.OCSVM"),
    "LSCP": ("pyod_subclasses", "pyod.models.lscp.LSCP"),
    "HBOS": ("pyod_subclasses", "pyod.models.hbos.HBOS"),
    "COPOD": ("tail_detectors", "pyod.models.copod.COPOD"),
    "ECOD": ("tail_detectors", "pyod.models.ecod.ECOD"),
    "AE": ("autoencoders", "pyod.models.auto_encoder.AutoEncoder"),
    "VAE": ("autoencoders", "pyod.models.vae.VAE"),
}
"""Our subclasses, by name: their modules here, and the PyOD classes that they replace.

The other detectors that have names are PyOD's own.
"""

PRESETS = {
    "classic": ("KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD"),
    "paper": ("KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD", "AE", "VAE"),
    "fast": ("IForest", "HBOS", "LODA", "COPOD", "ECOD", "PCA"),
}
NAMES = (*PRESETS["paper"], "ECOD", "PCA")
LSCP_NEIGHBORS = (10, 20, 30, 40)
MIN_ROWS = 10

LONGEST_FIRST = ("VAE", "LSCP", "OCSVM", "AE", "KNN", "LOF", "IForest", "LODA", "HBOS", "ECOD")
SUPERLINEAR = {
    *("KNN", "LOF", "LSCP", "OCSVM", "LocalOutlierFactor", "OneClassSVM"),
    *("ABOD", "COF", "FeatureBagging", "HDBSCAN", "KDE", "KPCA", "LMDD", "LOCI", "LUNAR"),
    *("QMCD", "ROD", "RGraph", "SOD", "SOS"),
}
"""Class names of detectors whose time or memory grows faster than the rows."""

KERNELS = {"OCSVM", "OneClassSVM"}
"""Class names of those that take longer to train on pairs of rows than to score them."""

MANY_SEARCHES = {"LSCP"}
"""Class names of those that search for the neighbours of a row in many subspaces.

Fewer fitted rows save them little time.
"""

AUTO_FIT_ROWS = 20_000
"""What ``max_fit_rows="auto"`` means for detectors that do not take too long with it."""

MOST_SECONDS = 2.5
"""Seconds on a core of its own that a slow detector may take with ``max_fit_rows="auto"``.

Other detectors on the other cores slow it down by up to a third. It then takes a third of a fit
of ten seconds.
"""

LEAST_FIT_ROWS = 5_000
"""Rows that a slow detector is fitted on at least.

With fewer, neighbours would be too far away; benchmarks/results/subsets.json has the ranking of
LSCP and OCSVM with as many.
"""

MORE_COLUMNS = 16
"""What the rest of the work for a pair of rows costs, in columns.

With it, the work of a pair in benchmarks/results/costs.json grows as its columns do.
"""

# Measured by the part `costs` of benchmarks/detectors.py.
_VALUE_SECONDS = 6e-11  # to compare a fitted row and a scored row in one column
_KERNEL_PAIRS = 10  # scored pairs that take as long as a pair in the training of a kernel
_CELL_SECONDS = 1.5e-5  # to score a value of a row with many searches

BATCHES = {"COF", "LMDD", "LOCI", "ROD", "RGraph", "SOD", "SOS"}
"""Class names of PyOD's detectors that score each batch of rows by itself, without the fit."""


@dataclass(frozen=True)
class RowPlan:
    """How many rows of a table each detector is fitted on.

    Attributes
    ----------
    n_rows, n_columns : int
        The size of the table.
    n_drawn : int
        Number of rows of the random sample, of which a detector is fitted on the first.
    n_fit : dict of str to int
        Number of rows, by the name of the detector. A detector that is skipped has none.
    """

    n_rows: int
    n_columns: int
    n_drawn: int
    n_fit: dict[str, int]


def plan_rows(
    detectors: Detectors, n_rows: int, n_columns: int, max_fit_rows: MaxFitRows = None
) -> RowPlan:
    """How many rows of a table each detector is fitted on.

    A detector of superlinear cost is fitted on `max_fit_rows` at most. With "auto", it is fitted
    on as many as it can learn from, and score all rows with, in about MOST_SECONDS, but on
    LEAST_FIT_ROWS at least. If it belongs to a preset and fewer rows save it little time, it is
    skipped where it would take longer.

    >>> for n_rows in (20_000, 100_000, 1_000_000):
    ...     plan_rows(["KNN", "OCSVM"], n_rows, 10, "auto").n_fit
    {'KNN': 20000, 'OCSVM': 12659}
    {'KNN': 16025, 'OCSVM': 12659}
    {'KNN': 5000, 'OCSVM': 5000}
    >>> ["LSCP" in plan_rows("classic", n_rows, 10, "auto").n_fit for n_rows in (10_000, 20_000)]
    [True, False]
    """
    choices = name_choices(detectors)
    n_drawn = AUTO_FIT_ROWS if max_fit_rows == "auto" else max_fit_rows
    n_drawn = n_rows if n_drawn is None else min(n_rows, n_drawn)
    n_fit = {}
    for name, choice in choices.items():
        if max_fit_rows is None or not is_superlinear(choice):
            n_fit[name] = n_rows
            continue
        affordable = n_rows
        if max_fit_rows == "auto":
            affordable = _affordable_rows(choice, n_rows, n_columns)
        is_optional = isinstance(detectors, str) and _is_one_of(choice, MANY_SEARCHES)
        if affordable >= n_rows or not is_optional:
            n_fit[name] = min(n_drawn, max(affordable, LEAST_FIT_ROWS))
    return RowPlan(n_rows, n_columns, n_drawn, n_fit)


def resolve_detectors(
    detectors: Detectors, n_rows: int, rows: RowPlan | None = None
) -> tuple[dict[str, Any], list[Note]]:
    """New unfitted detectors by name, and a note for each change to them.

    Takes a preset, or names, PyOD detectors and scikit-learn outlier detectors in a list or as
    the values of a dict. Sizes that need more rows than there are get lowered, in copies; of
    `n_rows` rows, a detector is fitted on as many as `rows` says, or on all. A note says which
    detectors `rows` skips.

    >>> detectors, notes = resolve_detectors(["KNN", "LOF"], n_rows=12)
    >>> list(detectors)
    ['KNN', 'LOF']
    >>> notes[0].message
    'n_neighbors was lowered from 20 to 11 because the detector is fitted on 12 rows'
    """
    choices = name_choices(detectors)
    if n_rows < MIN_ROWS and any(isinstance(choice, str) for choice in choices.values()):
        raise ValueError(f"X has {n_rows} rows; the detectors need at least {MIN_ROWS}.")
    made = {name: _make(choice) for name, choice in choices.items()}
    notes = []
    for name, detector in made.items():
        if rows is not None and name not in rows.n_fit:
            sizes = {"n_rows": n_rows, "n_columns": rows.n_columns}
            notes.append(Note.of("detectors.too slow", name, **sizes))
            continue
        n_fit = n_rows if rows is None else rows.n_fit[name]
        if n_fit < n_rows:
            notes.append(Note.of("detectors.sampled", name, n_fit=n_fit, n_rows=n_rows))
        notes.extend(_adapt(name, detector, n_fit))
    return made, notes


def named_detectors(detectors: Detectors) -> dict[str, str | None]:
    """The name that each detector was asked for by; None for a user's own object.

    >>> named_detectors(["KNN", "KNN"]), named_detectors({"mine": object()})
    ({'KNN': 'KNN', 'KNN_2': 'KNN'}, {'mine': None})
    """
    if isinstance(detectors, str):
        detectors = PRESETS[detectors]
    choices = detectors if isinstance(detectors, Mapping) else _named_by_class(detectors)
    return {name: each if isinstance(each, str) else None for name, each in choices.items()}


def _affordable_rows(detector: Any, n_rows: int, n_columns: int) -> int:
    """Rows that a detector of superlinear cost can be fitted on in MOST_SECONDS."""
    if _is_one_of(detector, MANY_SEARCHES):
        return int(MOST_SECONDS / (_CELL_SECONDS * n_columns))
    n_pairs = MOST_SECONDS / (_VALUE_SECONDS * (n_columns + MORE_COLUMNS))
    affordable = n_pairs / n_rows
    if _is_one_of(detector, KERNELS):
        affordable = min(affordable, math.sqrt(n_pairs / _KERNEL_PAIRS))
    return int(affordable)


def _is_one_of(choice: Any, names: set[str]) -> bool:
    """Whether a detector has one of the names, or its class or one that it derives from."""
    return not names.isdisjoint(_class_names(choice))


def _class_names(choice: Any) -> set[str]:
    """The name of a detector asked for by it; the names of an object's classes."""
    return {choice} if isinstance(choice, str) else {cls.__name__ for cls in type(choice).__mro__}


def is_superlinear(choice: Any) -> bool:
    """Whether the detector, or one inside it, is known to take more than linear time."""
    parts = [choice] if isinstance(choice, str) else detector_parts(choice)
    return any(_is_one_of(part, SUPERLINEAR) for part in parts)


def scores_batches(detector: Any) -> bool:
    """Whether the detector scores new rows by their batch, not by its fit."""
    return _is_one_of(detector, BATCHES)


def cost_rank(detector: Any) -> int:
    """Place in the order in which detectors start: unknown ones first, then the slowest."""
    name = type(detector).__name__
    if name in LONGEST_FIRST:
        return LONGEST_FIRST.index(name)
    return len(LONGEST_FIRST) if name in NAMES else -1


def uses_torch(detector: Any) -> bool:
    """Whether a part of the detector was written with PyTorch, whose random state is global."""
    modules = {cls.__module__ for part in detector_parts(detector) for cls in type(part).__mro__}
    return any(
        getattr(value, "__name__", "").split(".")[0] == "torch"
        for name in modules & sys.modules.keys()
        for value in vars(sys.modules[name]).values()
        if inspect.ismodule(value)
    )


def detector_parts(value: Any) -> Iterator[Any]:
    """Walk over a detector and the estimators in its parameters, such as LSCP's detectors."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from detector_parts(item)
    elif hasattr(value, "fit") and not isinstance(value, type):
        yield value
        cls: Any = type(value)
        for name in _parameter_names(cls):
            yield from detector_parts(getattr(value, name, None))


@lru_cache
def _parameter_names(cls: type) -> tuple[str, ...]:
    """Names of a class's parameters; reading its signature takes as long as a short fit."""
    return tuple(inspect.signature(cls).parameters)


def name_choices(detectors: Any) -> dict[str, Any]:
    """Each detector asked for, a known name or an object with the right methods, by its name."""
    if isinstance(detectors, str):
        if detectors not in PRESETS:
            raise DetectorError(
                f"detectors={detectors!r} is not a preset",
                f"Use one of {', '.join(PRESETS)}, or pass a list of these names: "
                f"{', '.join(NAMES)}.",
            )
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
    """Detectors by name or class name; repeated names get the suffix _2, _3, ..."""
    named: dict[str, Any] = {}
    for choice in detectors:
        base = choice if isinstance(choice, str) else type(choice).__name__
        names = chain([base], (f"{base}_{number}" for number in count(2)))
        named[next(name for name in names if name not in named)] = choice
    return named


def _check_choice(name: Any, choice: Any) -> None:
    """Refuse everything but known names and objects with the methods of a detector."""
    if not isinstance(name, str):
        raise TypeError(f"The keys of detectors must be strings, got {name!r}.")
    from sklearn.base import OutlierMixin

    can_score = hasattr(choice, "decision_function") or isinstance(choice, OutlierMixin)
    if isinstance(choice, str):
        if choice not in NAMES:
            what = f"detectors: there is no detector of the name {choice!r}"
            raise DetectorError(what, f"Use some of these names: {', '.join(NAMES)}.")
    elif isinstance(choice, type) or not (hasattr(choice, "fit") and can_score):
        expected = "names, or objects that are PyOD detectors or scikit-learn outlier detectors"
        raise TypeError(f"detectors must be {expected}, got {choice!r} for {name!r}.")


def _make(choice: Any) -> Any:
    """Unfitted copy of the user's detector, or the named detector with PyOD's defaults."""
    if not isinstance(choice, str):
        return _unfitted(choice)
    if choice != "LSCP":
        return detector_class(choice)()
    lofs = [_our_class("LOF")(n_neighbors=k) for k in LSCP_NEIGHBORS]
    return _our_class(choice)(lofs, n_bins=len(lofs))


def detector_class(name: str) -> Any:
    """The class of the detector `name`."""
    if name in OURS:
        return _our_class(name)
    return getattr(import_module(f"pyod.models.{name.lower()}"), name)


def _our_class(name: str) -> Any:
    """Our subclass of PyOD's detector `name`."""
    module = OURS[name][0]
    missing = [extra for extra in ("torch", "tqdm") if find_spec(extra) is None]
    if module == "autoencoders" and missing:
        needs = f"The detector {name} needs {' and '.join(missing)}"
        raise MissingExtraError(needs, "deep", name=missing[0])
    return getattr(import_module(f"gammagmm.detectors.{module}"), name)


def _unfitted(value: Any) -> Any:
    """Unfitted copy of a detector, as `clone` makes it; our subclass in place of PyOD's class."""
    from pyod.models.base import BaseDetector
    from sklearn.base import clone

    if isinstance(value, list | tuple):
        return type(value)(_unfitted(item) for item in value)
    if not isinstance(value, BaseDetector):
        return clone(value, safe=False)
    replaced = f"{type(value).__module__}.{type(value).__qualname__}"
    ours = next((name for name, (_, of) in OURS.items() if of == replaced), None)
    # PyOD's get_params, which `clone` calls, changes the warning filters of the whole process;
    # the constructors of its networks set every random seed of the process.
    parameters = inspect.signature(type(value)).parameters.values()
    is_plain = all(p.kind is not p.VAR_KEYWORD and hasattr(value, p.name) for p in parameters)
    if not is_plain or (ours is None and uses_torch(value)):
        return copy.deepcopy(value)
    make = type(value) if ours is None else _our_class(ours)
    return make(**{p.name: _unfitted(getattr(value, p.name)) for p in parameters})


def _adapt(name: str, detector: Any, n_rows: int) -> Iterator[Note]:
    """Lower sizes that need more rows than there are, and allow scores of new rows."""
    # LSCP scores its training rows as new ones, so each row is one of its own neighbours.
    n_others = n_rows - 2 if hasattr(detector, "detector_list") else n_rows - 1
    limits = {"n_neighbors": n_others, "local_region_size": n_rows, "batch_size": n_rows}
    for part in detector_parts(detector):
        has_bins = type(part).__name__ in ("HBOS", "LODA")  # LSCP's bins hold detectors
        for parameter, largest in (limits | {"n_bins": n_rows} if has_bins else limits).items():
            size = getattr(part, parameter, None)
            if isinstance(size, int | np.integer) and size > largest:
                setattr(part, parameter, largest)
                sizes = {"parameter": parameter, "before": size, "after": largest}
                yield Note.of("detectors.lowered", name, **sizes, n_rows=n_rows)
        if getattr(part, "novelty", None) is False:
            part.novelty = True
            yield Note.of("detectors.novelty", name)
