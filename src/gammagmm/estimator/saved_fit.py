"""A fit -> one file without pickles, and back to the bit; any other file is refused.

The file has the parameters, the training rows and their raw scores, the detectors that have names,
the runs, the evidence, the labels of known rows and the notes. The rest of the fit follows from
them and is computed when it is loaded; nothing is fitted again.

Nothing here imports scikit-learn, so that a fit is loaded in a fraction of the time of a fit. Only
the detectors, which are made when they are first asked for, and a ranking that was learned from
labels need it.
"""

from __future__ import annotations

import io
from ast import literal_eval
from collections.abc import Mapping
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
from gammagmm.detectors.fit import DetectorInfo, score_rows
from gammagmm.detectors.presets import NAMES, PRESETS, named_detectors
from gammagmm.detectors.stored import (
    StoredDetectors,
    Training,
    check_name,
    even_places,
    to_bytes,
)
from gammagmm.detectors.usable import judge_scores
from gammagmm.errors import (
    DetectorError,
    MissingExtraError,
    Note,
    SavedFileError,
    SavedFitWarning,
    SaveError,
)
from gammagmm.estimator.fit_result import Fit, cut_rows
from gammagmm.estimator.parameters import Plain, Plan, check_parameters
from gammagmm.estimator.saved_parts import SavedIndex, SavedPrior, SavedTexts, index_notes
from gammagmm.estimator.space import score_space
from gammagmm.estimator.summary import installed_versions
from gammagmm.labels.known_rows import KnownRows
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, solved_posteriors
from gammagmm.posterior.storage import posterior_of, posterior_to_data
from gammagmm.table.container import Container
from gammagmm.table.preparation import Preparation
from gammagmm.table.sample import Sample
from gammagmm.table.scaling import ColumnScaler
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = ["LoadedFit", "load_fit", "read_fit", "save_fit"]

Array = NDArray[np.float64]

FORM = Form("gammagmm/saved-fit", 6, "saved fit", "Fit the rows again.")
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
    name : str or None
        Name of the file that the rows came from; None for rows in memory.
    digest : str
        SHA-256 of the file; empty for rows in memory.
    index : SavedIndex or None
        Index of the rows held, if they came in a data frame that has one.
    ids : SavedTexts or None
        Names of the rows held by a column of ids; None without it.
    places : ndarray of shape (n_held,) or None
        Their places in the file, if these are not 0, 1, ...
    truth : ndarray of shape (n_sampled,) or None
        Labels that the method did not use.
    column_scaler : ColumnScaler or None
        The map that scales the columns for the detectors.
    detectors : tuple of DetectorInfo
        Record of every detector; those with the status "ok" are the columns of `scores`.
    choices : tuple of str or None
        The name by which each of them was asked for; None for a user's own object. Empty for
        precomputed scores.
    states : tuple of ndarray or None
        The bytes of each detector whose scores are used; None for a user's own object.
    new_scores : tuple of ndarray or None
        Scores of some training rows, as new rows, by each of these detectors.
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
    table_notes, notes : tuple of Note
        What was changed, skipped or approximated when the rows were prepared, and by the fit, but
        for what the labels changed.
    """

    key: str
    versions: dict[str, str]
    parameters: dict[str, Plain]
    mixture_prior: SavedPrior | None
    preparation: Preparation
    name: str | None
    digest: str
    index: SavedIndex | None
    ids: SavedTexts | None
    places: NDArray[np.int64] | None
    truth: NDArray[np.int64] | None
    column_scaler: ColumnScaler | None
    detectors: tuple[DetectorInfo, ...]
    choices: tuple[str | None, ...]
    states: tuple[NDArray[np.uint8] | None, ...]
    new_scores: tuple[Array | None, ...]
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
    table_notes: tuple[Note, ...]
    notes: tuple[Note, ...]

    @property
    def detector_names(self) -> list[str]:
        """Names of the detectors whose scores are used."""
        return [info.name for info in self.detectors if info.status == "ok"]


@dataclass(frozen=True, eq=False)
class LoadedFit:
    """A fit from a file, and what else the file has.

    `versions` are those with which it was saved, and `mixture_prior` is the parameter of the
    estimator.
    """

    fit: Fit
    versions: dict[str, str]
    mixture_prior: Any

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
            "progress": False,
            "device": None if str(device).startswith("device(") else device,
        }

    def checked(self, own: Mapping[str, Any] | None = None) -> Fit:
        """The fit, with the user's `own` fitted detectors, to score new rows.

        These detectors score some training rows again, and so do the others if other versions of
        the packages saved them. A detector that scores them differently, or that cannot be made, is
        named in a `SavedFitWarning` and a note.
        """
        detectors, own = self.fit.detectors, dict(own or {})
        stored = detectors.stored if isinstance(detectors, StoredDetectors) else {}
        lacking = [name for name, part in stored.items() if part is None]
        if unknown := sorted(own.keys() - set(lacking)):
            raise DetectorError(
                f"The file does not lack a detector of the name {', '.join(unknown)}",
                f"It lacks {', '.join(lacking) or 'none'}.",
            )
        if not isinstance(detectors, StoredDetectors):
            return self.fit
        detectors.made.update(own)
        is_other = self.versions != installed_versions()
        tried = [name for name, part in stored.items() if name in own or (part and is_other)]
        notes = [note for name in tried for note in _changes(detectors, name, self.versions)]
        for note in notes:
            warn_user(f"Detector {note.subject} {note.message}.", SavedFitWarning)
        return replace(self.fit, own_notes=(*self.fit.own_notes, *notes))


def _changes(detectors: StoredDetectors, name: str, versions: Mapping[str, str]) -> list[Note]:
    """A note if a detector is not what it was."""
    try:
        n_changed, n_tried = detectors.n_changed(name)
    except MissingExtraError:  # scoring new rows will say so
        return []
    except (DetectorError, SavedFileError) as error:
        if detectors.stored[name] is None:
            raise
        detectors.made[name] = None
        values = {"versions": version_words(versions), "reason": error.what}
        return [Note.of("load.missing", name, **values)]
    if not n_changed:
        return []
    counts = {"n_changed": n_changed, "n_rows": n_tried}
    return [Note.of("load.other scores", name, **counts, versions=version_words(versions))]


def version_words(versions: Mapping[str, str]) -> str:
    """The versions that have changed since the fit was saved."""
    present = installed_versions()
    changed = [
        f"{name} {versions.get(name, 'none')}, now {present.get(name, 'none')}"
        for name in sorted({*versions, *present})
        if versions.get(name) != present.get(name)
    ]
    return f"saved with {'; '.join(changed)}" if changed else "saved with the same versions"


def save_fit(fit: Fit, path: Any, key: str = "", overwrite: bool = False) -> None:
    """Write a fit to `path`, completely or not at all.

    An existing file is replaced with `overwrite`, and raises FileExistsError without it. A fit that
    a file cannot hold raises `SaveError`. A `SavedFitWarning` says that some detectors are the
    user's own objects, which are not saved.
    """
    saved = _saved(fit, key)
    writer = FitWriter()
    data = FORM.header | writer.record(saved)
    content = archive_bytes(to_text(data), writer.arrays)
    # Nothing is written that could not be read back.
    loaded = _read(io.BytesIO(content), "The data to write", key)
    if loaded is None or not _is_same(fit, loaded.fit):
        raise SaveError(
            "The fit cannot be saved: its parts do not follow from scores and runs",
            "Fit the rows again.",
        )
    write_document(content, path, overwrite)
    own = [
        name
        for name, state in zip(saved.detector_names, saved.states, strict=False)
        if state is None
    ]
    if own:
        warn_user(
            f"The detectors {', '.join(own)} are your own objects and are not saved: the loaded "
            "fit has all answers for the training rows, but scores new rows only if you give "
            "these detectors to GammaGMM.load.",
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


def read_fit(path: Any) -> LoadedFit:
    """The fit in the file at `path`, with any key.

    `LoadedFit.checked` gives the fit that scores new rows. Raises as `load_fit` does.
    """
    with Path(path).open("rb") as file:
        loaded = _read(file, str(path))
    return cast("LoadedFit", loaded)


def _saved(fit: Fit, key: str) -> SavedFit:
    """What the file of a fit has."""
    plan, table = fit.plan, fit.table
    choices = {} if plan.is_precomputed else named_detectors(plan.detectors)
    states, new_scores = _stored(fit, choices)
    has_prior = plan.parameters["mixture_prior"] is not None
    is_learned = fit.ranking == "learned"
    return SavedFit(
        key=key,
        versions=installed_versions(),
        parameters=plan.parameters,
        mixture_prior=SavedPrior.of(plan.prior) if has_prior else None,
        preparation=table.preparation,
        name=table.name,
        digest=table.digest,
        index=SavedIndex.of(table.container.index),
        ids=None if table.ids is None else SavedTexts.of(table.ids),
        places=None if table.places is None else table.places.astype(np.int64),
        truth=None if table.truth is None else table.truth.astype(np.int64),
        column_scaler=fit.column_scaler,
        detectors=fit.detector_info,
        choices=tuple(choices.values()),
        states=states,
        new_scores=new_scores,
        learning_seed=plan.learning_seed,
        scores=fit.space.scores,
        rows=table.values,
        n_table=table.sample.n_rows,
        n_sampled=table.sample.n_sampled,
        numbers=table.sample.numbers,
        runs=fit.runs,
        evidence=fit.evidence,
        known_rows=fit.known,
        learned_scores=fit.space.decision_scores if is_learned else None,
        table_notes=(*table.notes, *index_notes(table.container.index)),
        notes=tuple(note for note in fit.own_notes if note.step != "labels"),
    )


def _stored(
    fit: Fit, choices: Mapping[str, str | None]
) -> tuple[tuple[NDArray[np.uint8] | None, ...], tuple[Array | None, ...]]:
    """The bytes of each detector, and its scores of some training rows as new rows."""
    columns, detectors = fit.detector_columns, fit.detectors
    if columns is None:
        return (), ()
    if isinstance(detectors, StoredDetectors):
        kept = tuple(part and part[1] for part in detectors.stored.values())
        return kept, tuple(detectors.new_scores.values())
    rows, places = np.ascontiguousarray(columns), even_places(len(columns))
    states: list[NDArray[np.uint8] | None] = []
    new_scores: list[Array | None] = []
    for (name, detector), scores in zip(detectors.items(), fit.scores.T, strict=True):
        choice = choices[name]
        content = None if choice is None else to_bytes(choice, detector, Training(rows, scores))
        try:
            tried: Array | None = score_rows({name: detector}, rows[places])[:, 0]
        except DetectorError:  # it will not be tried
            tried = None
        states.append(None if content is None else np.frombuffer(content, dtype=np.uint8))
        new_scores.append(tried)
    return tuple(states), tuple(new_scores)


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


def _read(file: IO[bytes], where: str, key: str | None = None) -> LoadedFit | None:
    """The fit in `file`, or None if it has another key; `where` names the file in errors."""
    reader = Reader(FORM, where)
    with open_archive(file, reader) as archive:
        data = archive.document()
        reader.check_header(data)
        if key is not None and reader.plain("key", data.get("key"), str) != key:
            return None
        inside = FitReader(FORM, where, archive)
        fields = {name: value for name, value in data.items() if name not in FORM.header}
        saved = inside.record(SavedFit, "fit", fields)
    plan, prior = _plan_of(saved, reader)
    for part, fits in _CHECKS.items():
        if not fits(saved, plan):
            reader.refuse(f"its {part} do not fit to its other parts")
    try:
        fit = _fit_of(saved, plan, where)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reader.refuse(f"its parts do not fit together: {error}")
    return LoadedFit(fit, saved.versions, prior)


class _Parameters(SimpleNamespace):
    """The parameters of an estimator, without scikit-learn."""

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Every parameter by name."""
        return dict(vars(self))


def _plan_of(saved: SavedFit, reader: Reader) -> tuple[Plan, Any]:
    """The plan of a fit that is over, and the parameter `mixture_prior`."""
    parameters = saved.parameters
    # What a machine without PyTorch would refuse, and what ended with the fit.
    over: dict[str, Any] = dict.fromkeys(("progress", "timeout", "device"))
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
    plan = replace(
        plan,
        given=tuple(sorted(parameters.items())),
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


def _fit_of(saved: SavedFit, plan: Plan, where: str) -> Fit:
    """The fit, with everything that follows from what was saved."""
    table = _table_of(saved)
    _, scaler = score_space(saved.scores[: saved.n_sampled])
    space, _ = score_space(saved.scores, scaler)
    posterior, known = combine_runs(solved_posteriors(saved.runs)), KnownRows.none()
    if not 0.0 <= posterior.mean <= 1.0:
        raise ValueError(f"the mean of the posterior is {posterior.mean!r}")
    fit = Fit(
        plan=plan.without_progress(),
        table=table,
        column_scaler=saved.column_scaler,
        detectors=dict.fromkeys(saved.detector_names),
        detector_info=saved.detectors,
        scaler=scaler,
        space=space,
        runs=saved.runs,
        posterior=posterior,
        fitted_posterior=posterior,
        known=known,
        learning=None,
        evidence=saved.evidence,
        cut=cut_rows(space, table.sample, known, posterior.mean, saved.detector_names),
        own_notes=saved.notes,
    )
    fit = _with_labels(fit, saved)
    return fit if plan.is_precomputed else replace(fit, detectors=_detectors_in(saved, fit, where))


def _table_of(saved: SavedFit) -> Table:
    """The rows and what is known of them."""
    container = Container(index=None if saved.index is None else saved.index.index())
    numbers = None if saved.numbers is None else saved.numbers.astype(np.intp)
    return Table(
        saved.rows,
        saved.preparation,
        Sample(saved.n_table, saved.n_sampled, numbers),
        name=saved.name,
        digest=saved.digest,
        container=container,
        ids=None if saved.ids is None else saved.ids.texts,
        places=None if saved.places is None else saved.places.astype(np.intp),
        truth=saved.truth,
        notes=saved.table_notes,
    )


def _detectors_in(saved: SavedFit, fit: Fit, where: str) -> StoredDetectors:
    """The detectors, of which the file has the names that were asked for."""
    choices = dict(zip([info.name for info in saved.detectors], saved.choices, strict=True))
    stored: dict[str, tuple[str, NDArray[np.uint8]] | None] = {}
    for name, state in zip(saved.detector_names, saved.states, strict=True):
        choice = choices[name]
        stored[name] = None if choice is None or state is None else (choice, state)
        if choice is not None and state is not None:
            check_name(choice, state.tobytes())
    new_scores = dict(zip(saved.detector_names, saved.new_scores, strict=True))
    rows = np.ascontiguousarray(fit.detector_columns)
    return StoredDetectors(stored, new_scores, rows, fit.scores, where)


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
    return replace(fit, own_notes=(*fit.own_notes, note))


def _are_places(places: NDArray[np.intp], n: int) -> bool:
    """Whether `places` has at least one number, rising, from 0 to `n` - 1."""
    if places.ndim != 1 or not len(places):
        return False
    is_rising = bool((places[1:] > places[:-1]).all())
    return is_rising and bool(places[0] >= 0) and bool(places[-1] < n)


def _have_columns(saved: SavedFit, plan: Plan) -> bool:
    """Whether preparation and scales belong to the columns."""
    preparation, scaler = saved.preparation, saved.column_scaler
    is_right = preparation.n_columns >= 1
    is_right = is_right and not (plan.is_precomputed and preparation.encoder is not None)
    if not is_right or scaler is None:
        return is_right
    is_right = len({array.shape for array in vars(scaler).values()}) == 1
    is_right = is_right and _are_places(scaler.kept, preparation.n_outputs)
    return is_right and bool((scaler.spread > 0.0).all())


def _have_scores(saved: SavedFit, plan: Plan) -> bool:
    """Whether the scores can be used and belong to the detectors."""
    names, shape = [info.name for info in saved.detectors], saved.scores.shape
    n_detectors = len(saved.detector_names)
    is_right = len(shape) == 2 and shape[0] >= 2 and shape[1] == n_detectors >= 1
    if not is_right or len(set(names)) < len(names):
        return False
    return all(judge_scores(scores)[0] == "ok" for scores in saved.scores.T)


def _have_rows(saved: SavedFit, plan: Plan) -> bool:
    """Whether the rows, their numbers and their index belong to the scores and the columns."""
    n_rows, sampled, numbers = len(saved.scores), saved.n_sampled, saved.numbers
    is_right = saved.rows.shape == (n_rows, saved.preparation.n_outputs)
    is_right = is_right and (saved.index is None or len(saved.index) == n_rows)
    is_right = is_right and (saved.ids is None or len(saved.ids) == n_rows)
    if (places := saved.places) is not None:
        differ = len(np.unique(places)) == n_rows and bool((places >= 0).all())
        is_right = is_right and places.shape == (n_rows,) and differ
        is_right = is_right and bool((np.diff(places[:sampled]) > 0).all())
    if (truth := saved.truth) is not None:
        is_label = bool(np.isin(truth, (0, 1)).all())
        is_right = is_right and truth.shape == (sampled,) and is_label
    if numbers is None:
        return is_right and n_rows == sampled == saved.n_table
    is_right = is_right and numbers.shape == (n_rows,) and 2 <= sampled <= n_rows
    is_right = is_right and _are_places(numbers[:sampled], saved.n_table)
    return is_right and _are_places(np.sort(numbers), saved.n_table)


def _have_labels(saved: SavedFit, plan: Plan) -> bool:
    """Whether the known rows are in the fit, and learned scores are of its rows."""
    known, n_rows, learned = saved.known_rows, len(saved.scores), saved.learned_scores
    shapes = {array.shape for array in vars(known).values()}
    is_right = len(shapes) == 1 and bool(np.isin(known.labels, (0, 1)).all())
    is_right = is_right and not (known.at_random & known.picked).any()
    is_right = is_right and (shapes == {(0,)} or _are_places(known.rows, n_rows))
    return is_right and (learned is None or learned.shape == (n_rows,))


def _have_detectors(saved: SavedFit, plan: Plan) -> bool:
    """Whether the stored detectors are those of the parameters."""
    if plan.is_precomputed:
        return not saved.choices and not saved.states
    n_used = len(saved.detector_names)
    tried = {len(even_places(saved.n_sampled))}
    is_right = len(saved.states) == len(saved.new_scores) == n_used
    is_right = is_right and {each.size for each in saved.new_scores if each is not None} <= tried
    is_right = is_right and set(saved.choices) <= {None, *NAMES}
    named = [(name, choice) for name, choice in named_detectors(plan.detectors).items()]
    names = [info.name for info in saved.detectors]
    return is_right and named == list(zip(names, saved.choices, strict=False))


def _have_runs(saved: SavedFit, plan: Plan) -> bool:
    """Whether there are as many runs as there should be, each with parts that belong together."""
    n_detectors = saved.scores.shape[1]
    return len(saved.runs) == plan.n_runs and all(
        _is_run(run, n_detectors, plan.constraints.p0) for run in saved.runs
    )


def _is_run(run: Run, m: int, p0: float) -> bool:
    """Whether the parts of a run over `m` detectors belong together."""
    n, posterior = run.components.alpha.size, run.posterior
    shapes = [array.shape for array in vars(run.components).values()]
    is_right = n >= 1 and shapes == [(n,), (n, m), (n, m, m), (n,), (n,), (n,)]
    is_right = is_right and bool((run.components.alpha > 0.0).all())
    solution = np.array([run.tau, run.delta, run.reached])
    if posterior is None:
        return is_right and run.status == "unsolved" and run.weights.shape == (0,)
    n_parts = len(posterior.betas)
    is_right = is_right and run.status != "unsolved" and bool(np.isfinite(solution).all())
    is_right = is_right and run.weights.shape == (n_parts,) and 1 <= n_parts <= n
    # The error of a share is below 1 for each part, and may be NaN.
    return is_right and posterior.prob_zero == p0 and not posterior.standard_error > n_parts


def _have_evidence(saved: SavedFit, plan: Plan) -> bool:
    """Whether the evidence is about the rows, detectors and parameters of the fit."""
    separate = saved.evidence.separate_rows
    is_right = saved.evidence.constraints == plan.constraints
    if separate is None:
        return is_right
    rows = separate.rows
    is_right = is_right and rows is not None and _are_places(rows, saved.n_sampled)
    is_right = is_right and len(cast("Any", rows)) == separate.n_rows
    return is_right and set(separate.detectors) <= set(saved.detector_names)


_CHECKS = {
    "columns": _have_columns,
    "scores": _have_scores,
    "rows": _have_rows,
    "known rows": _have_labels,
    "detectors": _have_detectors,
    "runs": _have_runs,
    "evidence": _have_evidence,
}
"""What the parts of a file must be for the rest of the fit to follow from them."""
