"""A fit -> one file without pickles, and back to the bit; any other file is refused.

The file has the parameters, the training rows and their raw scores, the runs, the evidence, the
labels of known rows and the notes. The rest of the fit follows from them and is computed when it is
loaded. The detectors are not saved: `refit_detectors` fits them again.

Nothing here imports scikit-learn, so that a fit is loaded in a fraction of the time of a fit. Only
a ranking that was learned from labels needs it.
"""

from __future__ import annotations

import io
from ast import literal_eval
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.archives import Archive, archive_bytes, open_archive
from gammagmm._support.checks import warn_user
from gammagmm._support.documents import Form, Reader, Writer, to_text
from gammagmm._support.files import write_document
from gammagmm.detectors.fit import DetectorInfo
from gammagmm.detectors.presets import MIN_ROWS, NAMES, PRESETS, named_detectors
from gammagmm.detectors.usable import judge_scores, score_range
from gammagmm.errors import Note, SavedFileError, SavedFitWarning, SaveError
from gammagmm.estimator.fit_result import Fit, cut_rows
from gammagmm.estimator.frames import Container
from gammagmm.estimator.parameters import Plain, Plan, check_parameters
from gammagmm.estimator.refit import version_words
from gammagmm.estimator.saved_parts import SavedIndex, SavedPrior, SavedSeed
from gammagmm.estimator.space import score_space
from gammagmm.estimator.summary import installed_versions
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.sample import Sample
from gammagmm.posterior.components import Components
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, solved_posteriors
from gammagmm.posterior.storage import posterior_of, posterior_to_data
from gammagmm.table.preparation import Preparation
from gammagmm.table.scaling import ColumnScaler

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = ["LoadedFit", "load_fit", "read_fit", "save_fit"]

Array = NDArray[np.float64]

FORM = Form("gammagmm/saved-fit", 3, "saved fit", "Fit the rows again.")
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
    mixture_prior : SavedPrior or None
        The parameter of this name.
    preparation : Preparation
        How the columns of the training rows became numbers.
    index : SavedIndex or None
        Index of the data frame that the rows came in.
    column_scaler : ColumnScaler or None
        The map that scales the columns for the detectors.
    detectors : tuple of DetectorInfo
        Record of every detector; those with the status "ok" are the columns of `scores`.
    choices : tuple of str or None
        The name by which each of them was asked for; None for a user's own object. Empty for
        precomputed scores.
    detector_seed : SavedSeed
        Where the random numbers of the detectors come from.
    learning_seed : int
        Seed of what is learned from labels.
    scores : ndarray of shape (n_held, n_detectors)
        Raw scores of the training rows and, of a sampled table, of other rows that are held.
    rows : ndarray of shape (n_held, n_numbers)
        These rows as numbers, which are scores themselves if they were precomputed.
    n_table, n_sampled : int
        Number of rows of the table, and of the training rows.
    numbers : ndarray of shape (n_held,) or None
        Their numbers in the table; None if all rows are held.
    runs : tuple of Run
        The variational runs, with their components and posteriors.
    evidence : Evidence
        What the estimate rests on.
    known_rows : KnownRows
        The rows, with their labels, that `update` was given.
    learned_scores : ndarray of shape (n_held,) or None
        Scores of these rows by a ranking that was learned from labels.
    notes : tuple of Note
        Everything that was changed, skipped or approximated, but for what the labels changed.
    """

    key: str
    versions: dict[str, str]
    parameters: dict[str, Plain]
    mixture_prior: SavedPrior | None
    preparation: Preparation
    index: SavedIndex | None
    column_scaler: ColumnScaler | None
    detectors: tuple[DetectorInfo, ...]
    choices: tuple[str | None, ...]
    detector_seed: SavedSeed
    learning_seed: int
    scores: Array
    rows: Array
    n_table: int
    n_sampled: int
    numbers: NDArray[np.int64] | None
    runs: tuple[Run, ...]
    evidence: Evidence
    known_rows: KnownRows
    learned_scores: Array | None
    notes: tuple[Note, ...]

    @property
    def sample(self) -> Sample:
        """Which rows of the table are held."""
        numbers = None if self.numbers is None else self.numbers.astype(np.intp)
        return Sample(self.n_table, self.n_sampled, numbers)

    @property
    def detector_names(self) -> list[str]:
        """Names of the detectors whose scores are used."""
        return [info.name for info in self.detectors if info.status == "ok"]


@dataclass(frozen=True, eq=False)
class LoadedFit:
    """A fit from a file, without its detectors, and what else the file has.

    `versions` are those with which it was saved, `mixture_prior` the parameter of the estimator,
    and `source` the record of where the rows came from, or None.
    """

    fit: Fit
    versions: dict[str, str]
    mixture_prior: Any
    source: Any = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the estimator; what a file cannot hold has its default."""
        plan = self.fit.plan
        device = plan.parameters["device"]
        return plan.parameters | {
            "detectors": plan.detectors,
            "mixture_prior": self.mixture_prior,
            "columns": _columns_of(plan.parameters),
            "random_state": plan.seed,
            "progress": None,
            "device": None if str(device).startswith("device(") else device,
        }


def save_fit(
    fit: Fit, path: Any, key: str = "", overwrite: bool = False, source: Any = None
) -> None:
    """Write a fit to `path`, completely or not at all; `source` is a record that is saved with it.

    An existing file is replaced with `overwrite`, and raises FileExistsError without it. A fit that
    a file cannot hold raises `SaveError`. A `SavedFitWarning` says that some detectors are the
    user's own objects, which are not saved.
    """
    saved = _saved(fit, key)
    writer = FitWriter()
    data = FORM.header | writer.record(saved)
    data["source"] = None if source is None else writer.record(source, "source")
    content = archive_bytes(to_text(data), writer.arrays)
    # Nothing is written that could not be read back.
    kind = None if source is None else type(source)
    loaded = _read(io.BytesIO(content), "The data to write", key, kind)
    if loaded is None or not _is_same(fit, loaded.fit):
        raise SaveError(
            "The fit cannot be saved: its parts do not follow from scores and runs",
            "Fit the rows again.",
        )
    write_document(content, path, overwrite)
    own = [
        info.name for info, name in zip(saved.detectors, saved.choices, strict=False) if not name
    ]
    if own:
        warn_user(
            f"The detectors {', '.join(own)} are your own objects and are not saved: the loaded "
            "fit has all answers for the training rows, but cannot score new rows.",
            SavedFitWarning,
        )


def load_fit(path: Any, key: str) -> Fit | None:
    """The fit that `save_fit` wrote to `path`, or None if it was written with another key.

    A file that is damaged, that `save_fit` did not write or that another version wrote raises
    `SavedFileError`; nothing in it is executed.
    """
    with Path(path).open("rb") as file:
        loaded = _read(file, str(path), key)
    return None if loaded is None else loaded.fit


def read_fit(path: Any, source: type | None = None) -> LoadedFit:
    """The fit in the file at `path`, with any key, and its source, a record of the type `source`.

    The detectors are not fitted again; see `refit_detectors`. Raises as `load_fit` does.
    """
    with Path(path).open("rb") as file:
        loaded = _read(file, str(path), source=source)
    return cast("LoadedFit", loaded)


def _saved(fit: Fit, key: str) -> SavedFit:
    """What the file of a fit has."""
    plan = fit.plan
    has_prior = plan.parameters["mixture_prior"] is not None
    is_learned = fit.ranking == "learned"
    return SavedFit(
        key=key,
        versions=installed_versions(),
        parameters=plan.parameters,
        mixture_prior=SavedPrior.of(plan.prior) if has_prior else None,
        preparation=fit.preparation,
        index=SavedIndex.of(fit.container.index),
        column_scaler=fit.column_scaler,
        detectors=fit.detector_info,
        choices=() if plan.is_precomputed else tuple(named_detectors(plan.detectors).values()),
        detector_seed=SavedSeed.of(plan.detector_rng),
        learning_seed=plan.learning_seed,
        scores=fit.space.scores,
        rows=fit.rows,
        n_table=fit.sample.n_rows,
        n_sampled=fit.sample.n_sampled,
        numbers=None if fit.sample.is_whole else fit.sample.number(fit.sample.all_places),
        runs=fit.runs,
        evidence=fit.evidence,
        known_rows=fit.known,
        learned_scores=fit.space.decision_scores if is_learned else None,
        notes=tuple(note for note in fit.notes if note.step != "labels"),
    )


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
        if (dtype := _dtype_of(kind)) is not None:
            return self._array(name, value, dtype)
        return super().value(name, value, kind)

    def _posterior(self, name: str, value: Any) -> GammaPosterior:
        try:
            return posterior_of(value, name)
        except SavedFileError as error:
            self.refuse(error.what)

    def _array(self, name: str, value: Any, kind: np.dtype[Any]) -> NDArray[Any]:
        """The array that the text `value` names, with the type `kind` and finite numbers."""
        array = self.archive.array(self.plain(name, value, str))
        if array.dtype != kind or not np.isfinite(array).all():
            self.refuse(f"{name} must be an array of finite numbers of the type {kind}")
        return array


def _dtype_of(kind: Any) -> np.dtype[Any] | None:
    """The type of the numbers of ``NDArray[...]``; None for other types."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is NDArray:  # an alias of its own since NumPy 2.5
        return np.dtype(args[0])
    return np.dtype(get_args(args[1])[0]) if origin is np.ndarray else None


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


def _read(
    file: IO[bytes], where: str, key: str | None = None, source: type | None = None
) -> LoadedFit | None:
    """The fit in `file`, or None if it has another key; `where` names the file in errors."""
    reader = Reader(FORM, where)
    with open_archive(file, reader) as archive:
        data = archive.document()
        reader.check_header(data)
        if key is not None and reader.plain("key", data.get("key"), str) != key:
            return None
        inside = FitReader(FORM, where, archive)
        fields = {name: value for name, value in data.items() if name not in FORM.header}
        origin = fields.pop("source", None)
        saved = inside.record(SavedFit, "fit", fields)
        is_wanted = source is not None and origin is not None
        found = inside.record(cast("type", source), "source", origin) if is_wanted else None
    plan, prior = _plan_of(saved, reader)
    for check in (_check_columns, _check_scores, _check_rows, _check_known, _check_choices):
        check(saved, plan, reader)
    if len(saved.runs) != plan.n_runs:
        reader.refuse(f"it has {len(saved.runs)} runs instead of {plan.n_runs}")
    for run in saved.runs:
        _check_run(run, saved.scores.shape[1], plan, reader)
    _check_evidence(saved, plan, reader)
    return LoadedFit(_fit_of(saved, plan, reader), saved.versions, prior, found)


class _Parameters(SimpleNamespace):
    """The parameters of an estimator, without scikit-learn."""

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Every parameter by name."""
        return dict(vars(self))


def _plan_of(saved: SavedFit, reader: Reader) -> tuple[Plan, Any]:
    """The plan of a fit that is over, and the parameter `mixture_prior`."""
    parameters = saved.parameters
    # What a machine without PyTorch would refuse, and what ended with the fit.
    over: dict[str, Any] = dict.fromkeys(("progress", "timeout", "device")) | {"backend": "numpy"}
    if not isinstance(parameters.get("random_state"), int):
        over["random_state"] = None  # a generator, whose seed is not known
    try:
        over["columns"] = _columns_of(parameters)
        prior = saved.mixture_prior and saved.mixture_prior.prior(len(saved.detector_names))
        over |= {"mixture_prior": prior, "detectors": _detectors_of(saved)}
        plan = check_parameters(cast("GammaGMM", _Parameters(**(parameters | over))))
    except (
        *(AttributeError, ImportError, LookupError, RuntimeError),
        *(SyntaxError, TypeError, ValueError),
    ) as error:
        reader.refuse(f"its parameters are not valid: {error}")
    if parameters["backend"] not in ("numpy", "torch"):
        reader.refuse(f"its parameters are not valid: backend={parameters['backend']!r}")
    if not 0 <= saved.learning_seed < 2**32:
        reader.refuse("its learning_seed must lie between 0 and 2**32")
    plan = replace(
        plan,
        given=tuple(sorted(parameters.items())),
        backend=parameters["backend"],
        detector_rng=saved.detector_seed.generator(),
        learning_seed=saved.learning_seed,
    )
    return plan, prior


def _columns_of(parameters: dict[str, Plain]) -> Any:
    """The parameter `columns`, of which the file has the `repr`."""
    given = parameters["columns"]
    return None if given is None else literal_eval(str(given))


def _detectors_of(saved: SavedFit) -> Any:
    """The parameter `detectors`; a user's own object is None."""
    given, names = saved.parameters["detectors"], [info.name for info in saved.detectors]
    if given in ("precomputed", *PRESETS):
        return given
    if len(names) != len(saved.choices):
        raise ValueError(f"there are {len(names)} detectors, but {len(saved.choices)} choices")
    listed = list(saved.choices)
    is_list = None not in listed and list(named_detectors(listed)) == names
    return listed if is_list else dict(zip(names, listed, strict=True))


def _fit_of(saved: SavedFit, plan: Plan, reader: Reader) -> Fit:
    """The fit, with everything that follows from what was saved."""
    detectors: dict[str, Any] = dict.fromkeys(saved.detector_names)
    container = Container(index=None if saved.index is None else saved.index.index())
    _, scaler = score_space(saved.scores[: saved.n_sampled])
    space, _ = score_space(saved.scores, scaler)
    posterior, known = combine_runs(solved_posteriors(saved.runs)), KnownRows.none()
    if not 0.0 <= posterior.mean <= 1.0:
        reader.refuse(f"the mean of the posterior must lie between 0 and 1, got {posterior.mean!r}")
    fit = Fit(
        plan=plan.without_progress(),
        preparation=saved.preparation,
        column_scaler=saved.column_scaler,
        detectors=detectors,
        detector_info=saved.detectors,
        scaler=scaler,
        rows=saved.rows,
        space=space,
        sample=saved.sample,
        container=container,
        runs=saved.runs,
        posterior=posterior,
        fitted_posterior=posterior,
        known=known,
        learning=None,
        evidence=saved.evidence,
        cut=cut_rows(space, saved.sample, known, posterior.mean, list(detectors)),
        notes=saved.notes,
    )
    return _with_labels(fit, saved)


def _with_labels(fit: Fit, saved: SavedFit) -> Fit:
    """The fit with the labels of the known rows; the ranking is learned from them again."""
    if not len(saved.known_rows):
        return fit
    labelled = replace(fit.labelled_rows, known_rows=saved.known_rows)
    fit = fit.with_labels(labelled)
    is_learned, before = fit.ranking == "learned", saved.learned_scores
    scores = fit.space.decision_scores
    is_same = not is_learned if before is None else np.array_equal(scores, before)
    if is_same:
        return fit
    note = Note.of("load.ranking", "ranking", versions=version_words(saved.versions))
    warn_user(f"The ranking {note.message}.", SavedFitWarning)
    return replace(fit, notes=(*fit.notes, note))


def _check_columns(saved: SavedFit, plan: Plan, reader: Reader) -> None:
    """Refuse names and scales that do not belong to the columns."""
    preparation, scaler = saved.preparation, saved.column_scaler
    n_features = preparation.n_columns
    if n_features < 1 or (plan.is_precomputed and preparation.encoder is not None):
        reader.refuse("its preparation does not fit to its parameters")
    if scaler is None:
        return
    n_numbers = preparation.n_outputs
    shapes = {array.shape for array in vars(scaler).values()}
    is_right = len(shapes) == 1 and _are_places(scaler.kept, n_numbers)
    if not is_right or not (scaler.spread > 0.0).all():
        reader.refuse(f"its column_scaler does not fit to {n_features} columns")


def _are_places(places: NDArray[np.intp], n: int) -> bool:
    """Whether `places` has at least one number, rising, from 0 to `n` - 1."""
    if places.ndim != 1 or not len(places):
        return False
    is_rising = bool((places[1:] > places[:-1]).all())
    return is_rising and bool(places[0] >= 0) and bool(places[-1] < n)


def _check_scores(saved: SavedFit, plan: Plan, reader: Reader) -> None:
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
    """Refuse training rows, or an index, that do not belong to the scores and the columns."""
    n_rows = len(saved.scores)
    if saved.rows.shape != (n_rows, saved.preparation.n_outputs):
        reader.refuse("its training rows do not fit to its scores and columns")
    if saved.index is not None and len(saved.index) != saved.n_sampled:
        reader.refuse(f"its index does not fit to {saved.n_sampled} rows")
    sampled = saved.n_sampled
    if saved.numbers is None:
        is_right = n_rows == sampled == saved.n_table
    else:
        numbers = saved.numbers
        is_right = numbers.shape == (n_rows,) and 2 <= sampled <= n_rows <= saved.n_table
        is_right = is_right and _are_places(numbers[:sampled], saved.n_table)
        is_right = is_right and _are_places(np.sort(numbers), saved.n_table)
    if not is_right:
        reader.refuse("its sample does not fit to its rows")


def _check_known(saved: SavedFit, plan: Plan, reader: Reader) -> None:
    """Refuse labels of rows that are not in the fit, and learned scores without labels."""
    known, n_rows = saved.known_rows, len(saved.scores)
    shapes = {array.shape for array in vars(known).values()}
    is_right = len(shapes) == 1 and bool(np.isin(known.labels, (0, 1)).all())
    is_right = is_right and not (known.at_random & known.picked).any()
    is_right = is_right and (shapes == {(0,)} or _are_places(known.rows, n_rows))
    learned = saved.learned_scores
    is_right = is_right and (learned is None or (learned.shape == (n_rows,) and shapes != {(0,)}))
    if not is_right:
        reader.refuse(f"its known rows do not fit to {n_rows} rows")


def _check_choices(saved: SavedFit, plan: Plan, reader: Reader) -> None:
    """Refuse names of detectors that are unknown or do not belong to the parameters."""
    n_choices = 0 if plan.is_precomputed else len(saved.detectors)
    is_right = len(saved.choices) == n_choices and set(saved.choices) <= {None, *NAMES}
    is_right = is_right and (not any(saved.choices) or len(saved.scores) >= MIN_ROWS)
    if isinstance(plan.detectors, str) and plan.detectors in PRESETS:
        names = [info.name for info in saved.detectors]
        is_right = is_right and list(saved.choices) == names == list(PRESETS[plan.detectors])
    if not is_right:
        reader.refuse("its choices do not fit to its detectors")


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
    rows, n_rows = group.rows, saved.n_sampled
    is_right = rows is not None and _are_places(rows, n_rows) and len(rows) == group.n_rows
    if not is_right or not set(group.detectors) <= set(saved.detector_names):
        reader.refuse("the group in its evidence has rows or detectors that are not in the fit")
