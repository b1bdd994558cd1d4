"""A fit -> one file without pickles, and back to the bit; any other file is refused.

The file has the parameters, the raw scores, the training rows if they are kept for learning, the
runs, the evidence and the notes. The rest of the fit follows from them and is computed when it is
loaded. The detectors are not saved: a loaded fit cannot score new rows.

Nothing here imports scikit-learn, so that a fit is loaded in a fraction of the time of a fit.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.archives import Archive, archive_bytes, open_archive
from gammagmm._support.documents import Form, Reader, Writer, to_text
from gammagmm._support.files import write_document
from gammagmm.detectors.fit import DetectorInfo, FittedDetectors
from gammagmm.detectors.usable import judge_scores, score_range
from gammagmm.errors import Note, SavedFileError
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.parameters import Plain, Plan, check_parameters
from gammagmm.estimator.protocols import Columns
from gammagmm.estimator.rows import MemoryScores
from gammagmm.estimator.scaling import ColumnScaler
from gammagmm.estimator.summary import installed_versions
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.posterior.components import Components
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, solved_posteriors
from gammagmm.posterior.storage import posterior_of, posterior_to_data

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = ["load_fit", "save_fit"]

Array = NDArray[np.float64]

FORM = Form("gammagmm/saved-fit", 2, "saved fit", "Fit the rows again.")
CAN_BE_NAN = {"tau", "delta", "reached", "mean"}
"""Fields that are NaN where there is no solution."""


@dataclass(frozen=True, eq=False)
class SavedFit:
    """What the file of a fit has; `Writer` and `Reader` go through these fields.

    Attributes
    ----------
    key : str
        What the caller compares, for example a digest of the rows and the parameters.
    versions : dict
        Versions of Python and of the packages that the answer depends on.
    parameters : dict
        Every parameter of the estimator; a value that JSON does not have is its `repr`.
    n_features, feature_names
        The columns of the training rows.
    column_scaler : ColumnScaler or None
        The map that scales the columns for the detectors.
    detectors : tuple of DetectorInfo
        Record of every detector; those with the status "ok" are the columns of `scores`.
    scores : ndarray of shape (n_rows, n_detectors)
        Raw scores of the training rows.
    columns : ndarray of shape (n_rows, n_columns) or None
        The training rows as the detectors have them, if they are kept for learning from labels.
    runs : tuple of Run
        The variational runs, with their components and posteriors.
    evidence : Evidence
        What the estimate rests on.
    notes : tuple of Note
        Everything that was changed, skipped or approximated.
    """

    key: str
    versions: dict[str, str]
    parameters: dict[str, Plain]
    n_features: int
    feature_names: tuple[str, ...] | None
    column_scaler: ColumnScaler | None
    detectors: tuple[DetectorInfo, ...]
    scores: Array
    columns: Array | None
    runs: tuple[Run, ...]
    evidence: Evidence
    notes: tuple[Note, ...]

    @property
    def detector_names(self) -> list[str]:
        """Names of the detectors whose scores are used."""
        return [info.name for info in self.detectors if info.status == "ok"]


def save_fit(fit: Fit, path: Any, key: str, overwrite: bool) -> None:
    """Write a fit without known rows to `path`, completely or not at all.

    An existing file is replaced with `overwrite`, and raises FileExistsError without it. The
    default index of a data frame is not saved, because rows without an index are shown in the same
    way; a fit whose rows have another index raises ValueError.
    """
    _check_supported(fit)
    names = fit.columns.names
    saved = SavedFit(
        key=key,
        versions=installed_versions(),
        parameters=fit.plan.parameters,
        n_features=fit.columns.n_features,
        feature_names=None if names is None else tuple(names.tolist()),
        column_scaler=fit.column_scaler,
        detectors=fit.detector_info,
        scores=fit.scores,
        columns=fit.space.columns,
        runs=fit.runs,
        evidence=fit.evidence,
        notes=fit.notes,
    )
    writer = FitWriter()
    text = to_text(FORM.header | writer.record(saved))
    content = archive_bytes(text, writer.arrays)
    # Nothing is written that could not be read back.
    loaded = _read_fit(io.BytesIO(content), "The data to write", key)
    if loaded is None or not _is_same(fit, loaded):
        raise ValueError("The fit cannot be saved: its parts do not follow from scores and runs.")
    write_document(content, path, overwrite)


def load_fit(path: Any, key: str) -> Fit | None:
    """The fit that `save_fit` wrote to `path`, or None if it was written with another key.

    A file that is damaged, that `save_fit` did not write or that a later version wrote raises
    `SavedFileError`; nothing in it is executed.
    """
    with Path(path).open("rb") as file:
        return _read_fit(file, str(path), key)


class FitWriter(Writer):
    """Writer that collects the arrays: in their place, the document has their names."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def value(self, name: str, value: Any) -> Any:
        """The `value` of the field with this `name`."""
        if isinstance(value, np.ndarray):
            self.arrays[name] = value
            return name
        if isinstance(value, GammaPosterior):
            return posterior_to_data(value)
        return super().value(name, value)


@dataclass(frozen=True)
class FitReader(Reader):
    """Reader of the arrays and posteriors as well; only some numbers can be NaN."""

    archive: Archive

    def value(self, name: str, value: Any, kind: Any) -> Any:
        """A value of the type `kind`, which is the type of a field of a dataclass."""
        if kind is GammaPosterior:
            return self._posterior(name, value)
        if kind is float and name.rpartition(".")[2] not in CAN_BE_NAN:
            return self.number(name, value)
        if kind == Plain:
            return self._plain_value(name, value)
        if get_origin(kind) is np.ndarray:
            return self._array(name, value, np.dtype(get_args(get_args(kind)[1])[0]))
        return super().value(name, value, kind)

    def _posterior(self, name: str, value: Any) -> GammaPosterior:
        try:
            return posterior_of(value, name)
        except SavedFileError as error:
            self.refuse(error.what)

    def _plain_value(self, name: str, value: Any) -> Plain:
        """A text, a finite number, a boolean or None."""
        if value is None or type(value) in (str, bool):
            return cast("Plain", value)
        self.number(name, value)
        return cast("Plain", value)

    def _array(self, name: str, value: Any, kind: np.dtype[Any]) -> NDArray[Any]:
        """The array that the text `value` names, with the type `kind` and finite numbers."""
        array = self.archive.array(self.plain(name, value, str))
        if array.dtype != kind or not np.isfinite(array).all():
            self.refuse(f"{name} must be an array of finite numbers of the type {kind}")
        return array


def _check_supported(fit: Fit) -> None:
    """Refuse a fit that a file cannot hold."""
    if not fit.space.is_in_memory:
        raise ValueError("save_fit saves fits of rows in memory, and these rows are on Dask.")
    if fit.plan.parameters["mixture_prior"] is not None:
        raise ValueError("save_fit saves fits with mixture_prior=None.")
    if len(fit.known_rows):
        raise ValueError("save_fit saves fits without labels: save the fit before its update.")
    index = fit.space.index
    if index is not None and not _is_default(index):
        raise ValueError(
            "save_fit saves rows without an index: call reset_index(drop=True) before the fit."
        )


def _is_default(index: Any) -> bool:
    """Whether an index of pandas has the numbers from 0 and no name."""
    import pandas as pd

    is_range = isinstance(index, pd.RangeIndex) and index.name is None
    return is_range and (index.start, index.step) == (0, 1)


def _is_same(fit: Fit, loaded: Fit) -> bool:
    """Whether what was computed from the file is what the fit has, to the bit."""
    arrays = [
        (fit.score_space, loaded.score_space),
        (fit.space.consensus, loaded.space.consensus),
        (fit.decision_scores, loaded.decision_scores),
        (fit.labels, loaded.labels),
    ]
    pairs = [
        (posterior_to_data(fit.posterior), posterior_to_data(loaded.posterior)),
        (fit.threshold, loaded.threshold),
        (fit.thresholds, loaded.thresholds),
    ]
    return all(np.array_equal(*each) for each in arrays) and all(a == b for a, b in pairs)


def _read_fit(file: IO[bytes], where: str, key: str) -> Fit | None:
    """The fit in `file`, or None if it has another key; `where` names the file in errors."""
    reader = Reader(FORM, where)
    with open_archive(file, reader) as archive:
        data = archive.document()
        reader.check_header(data)
        if reader.plain("key", data.get("key"), str) != key:
            return None
        fields = {name: value for name, value in data.items() if name not in FORM.header}
        saved = FitReader(FORM, where, archive).record(SavedFit, "fit", fields)
    plan = _plan_of(saved.parameters, reader)
    _check_columns(saved, reader)
    _check_scores(saved, reader)
    _check_rows(saved, plan, reader)
    if len(saved.runs) != plan.n_runs:
        reader.refuse(f"it has {len(saved.runs)} runs instead of {plan.n_runs}")
    for run in saved.runs:
        _check_run(run, saved.scores.shape[1], plan, reader)
    _check_evidence(saved, plan, reader)
    return _fit_of(saved, plan, reader)


class _Parameters(SimpleNamespace):
    """The parameters of an estimator, without scikit-learn."""

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Every parameter by name."""
        return dict(vars(self))


def _plan_of(parameters: dict[str, Plain], reader: Reader) -> Plan:
    """The plan of a fit with these parameters, which is over and has no deadline."""
    over: dict[str, Any] = {"progress": None, "timeout": None, "device": None}
    if not isinstance(parameters.get("random_state"), int):
        over["random_state"] = None  # a generator, whose seed is not known
    try:
        plan = check_parameters(cast("GammaGMM", _Parameters(**(parameters | over))))
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError) as error:
        reader.refuse(f"its parameters are not valid: {error}")
    return replace(plan, given=tuple(sorted(parameters.items())))


def _fit_of(saved: SavedFit, plan: Plan, reader: Reader) -> Fit:
    """The fit, with everything that follows from what was saved."""
    detectors: dict[str, Any] = dict.fromkeys(saved.detector_names)
    fitted = FittedDetectors(detectors, saved.scores, list(saved.detectors))
    space = MemoryScores(fitted, [], saved.column_scaler, saved.columns, None).score_space()
    posterior, known = combine_runs(solved_posteriors(saved.runs)), KnownRows.none()
    if not 0.0 <= posterior.mean <= 1.0:
        reader.refuse(f"the mean of the posterior must lie between 0 and 1, got {posterior.mean!r}")
    names = saved.feature_names
    return Fit(
        plan=plan.without_progress(),
        # As scikit-learn has the names.
        columns=Columns(saved.n_features, None if names is None else np.array(names, dtype=object)),
        column_scaler=saved.column_scaler,
        detectors=detectors,
        detector_info=saved.detectors,
        space=space,
        runs=saved.runs,
        posterior=posterior,
        fitted_posterior=posterior,
        known_rows=known,
        learning=None,
        evidence=saved.evidence,
        cut=space.cut(list(detectors), posterior.mean, known),
        notes=saved.notes,
    )


def _check_columns(saved: SavedFit, reader: Reader) -> None:
    """Refuse names and scales that do not belong to the columns."""
    n_features, names, scaler = saved.n_features, saved.feature_names, saved.column_scaler
    if n_features < 1 or (names is not None and len(names) != n_features):
        reader.refuse(f"its feature_names do not fit to {n_features} columns")
    if scaler is None:
        return
    shapes = {array.shape for array in vars(scaler).values()}
    is_right = len(shapes) == 1 and _are_places(scaler.kept, n_features)
    if not is_right or not (scaler.spread > 0.0).all():
        reader.refuse(f"its column_scaler does not fit to {n_features} columns")


def _are_places(places: NDArray[np.intp], n: int) -> bool:
    """Whether `places` has at least one number, rising, from 0 to `n` - 1."""
    if places.ndim != 1 or not len(places):
        return False
    is_rising = bool((places[1:] > places[:-1]).all())
    return is_rising and bool(places[0] >= 0) and bool(places[-1] < n)


def _check_scores(saved: SavedFit, reader: Reader) -> None:
    """Refuse scores that do not belong to the detectors."""
    names, shape = [info.name for info in saved.detectors], saved.scores.shape
    n_detectors = len(saved.detector_names)
    if len(shape) != 2 or shape[0] < 2 or shape[1] != n_detectors or n_detectors < 1:
        reader.refuse(f"its scores have the shape {shape}, but {n_detectors} detectors are used")
    if len(set(names)) < len(names) or min(info.n_rows for info in saved.detectors) < 0:
        reader.refuse("its detectors have repeated names or negative numbers of rows")
    seen = score_range(saved.scores)
    for column, name in enumerate(saved.detector_names):
        status, reason = judge_scores(seen, column)
        if status != "ok":
            reader.refuse(f"the scores of {name} cannot be used: {reason}")


def _check_rows(saved: SavedFit, plan: Plan, reader: Reader) -> None:
    """Refuse training rows that do not belong to the scores and the columns."""
    scaler = saved.column_scaler
    n_columns = saved.n_features if scaler is None else len(scaler.kept)
    shape = (len(saved.scores), n_columns) if plan.learn and not plan.is_precomputed else None
    if shape != (None if saved.columns is None else saved.columns.shape):
        reader.refuse("its training rows do not fit to its scores, columns and parameters")


def _check_run(run: Run, n_detectors: int, plan: Plan, reader: Reader) -> None:
    """Refuse a run whose parts do not belong together."""
    _check_components(run.components, n_detectors, reader)
    solution = [run.tau, run.delta, run.reached]
    posterior, n_parts = run.posterior, 0
    is_right = bool(np.isnan(solution).all()) and run.status == "unsolved"
    if posterior is not None:
        n_parts = len(posterior.betas)
        is_right = bool(np.isfinite(solution).all()) and run.status != "unsolved"
        is_right = is_right and 1 <= n_parts <= len(run.components)
        is_right = is_right and posterior.prob_zero == plan.constraints.p0
        # The error of a share is below 1 for each part, and may be NaN.
        is_right = is_right and not posterior.standard_error > n_parts
    if not is_right or run.weights.shape != (n_parts,) or min(run.n_iter, run.n_restarts) < 0:
        reader.refuse("the solution, the weights and the posterior of a run do not fit together")


def _check_components(components: Components, n_detectors: int, reader: Reader) -> None:
    """Refuse components that are no Normal-Inverse-Wishart distributions over the detectors."""
    n, m = components.alpha.size, n_detectors
    shapes = [array.shape for array in vars(components).values()]
    if n < 1 or shapes != [(n,), (n, m), (n, m, m), (n,), (n,), (n,)]:
        reader.refuse(f"the components of a run have shapes that do not fit together: {shapes}")
    positive = [components.alpha, components.mean_precision]
    positive.append(components.degrees_of_freedom - (m - 1))
    is_right = bool((np.concatenate(positive) > 0.0).all())
    try:
        np.linalg.cholesky(components.covariances)
    except np.linalg.LinAlgError:
        is_right = False
    if not is_right:
        reader.refuse("the components of a run have parameters that are not positive")


def _check_evidence(saved: SavedFit, plan: Plan, reader: Reader) -> None:
    """Refuse evidence about other rows, detectors or parameters."""
    if saved.evidence.constraints != plan.constraints:
        reader.refuse(f"it was fitted with {saved.evidence.constraints}, not {plan.constraints}")
    group = saved.evidence.group
    if group is None:
        return
    rows, n_rows = group.rows, len(saved.scores)
    is_right = rows is not None and _are_places(rows, n_rows) and len(rows) == group.n_rows
    if not is_right or not set(group.detectors) <= set(saved.detector_names):
        reader.refuse("the group in its evidence has rows or detectors that are not in the fit")
