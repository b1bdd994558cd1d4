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
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.archives import Archive, archive_bytes, open_archive
from gammagmm._support.checks import warn_user
from gammagmm._support.documents import Form, Plain, Reader, Writer, to_text
from gammagmm._support.files import write_document
from gammagmm.detectors.fit import DetectorInfo
from gammagmm.detectors.presets import NAMES, PRESETS, named_detectors
from gammagmm.detectors.stored import (
    StoredDetector,
    StoredDetectors,
    Training,
    check_name,
    even_places,
    store,
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
from gammagmm.estimator.parameters import Plan, check_parameters
from gammagmm.estimator.space import score_space
from gammagmm.estimator.summary import installed_versions
from gammagmm.labels.known_rows import KnownRows
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs
from gammagmm.posterior.runs import Run, solved_posteriors
from gammagmm.posterior.storage import posterior_of, posterior_to_data
from gammagmm.table.container import Container, is_default
from gammagmm.table.preparation import Preparation
from gammagmm.table.roles import Choices
from gammagmm.table.sample import Sample
from gammagmm.table.scaling import ColumnScaler
from gammagmm.table.table import Table

__all__ = ["LoadedFit", "load_fit", "read_fit", "save_fit"]

Array = NDArray[np.float64]

FORM = Form("gammagmm/saved-fit", 9, "saved fit", "Fit the rows again.")


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
        Every parameter of the estimator, see `Plan`.
    choices : Choices
        What the parameter `columns` says.
    mixture_prior : dict or None
        The parameter of this name, without a covariance that is an array.
    covariance : ndarray of shape (n_detectors, n_detectors) or None
        This array.
    preparation : Preparation
        How the columns of the training rows became numbers.
    name : str or None
        Name of the file that the rows came from; None for rows in memory.
    digest : str
        SHA-256 of the file; empty for rows in memory.
    index : SavedIndex or None
        Index of the rows held, if they came in a data frame that has one.
    ids : ndarray or None
        Names of the rows held by a column of ids, as `_texts_to_bytes` writes them; None without
        it.
    places : ndarray of shape (n_held,) or None
        Their places in the file, if these are not 0, 1, ...
    truth : ndarray of shape (n_sampled,) or None
        Labels that the method did not use.
    column_scaler : ColumnScaler or None
        The map that scales the columns for the detectors.
    detectors : tuple of DetectorInfo
        Record of every detector; those with the status "ok" are the columns of `scores`.
    stored : tuple of StoredDetector
        The name, state and new scores of each of them; empty for precomputed scores.
    learning_seed : int
        Seed of what is learned from labels.
    scores : ndarray of shape (n_held, n_detectors)
        Raw scores of the training rows and, of a sampled table, of other rows that are held.
    rows : ndarray of shape (n_held, n_numbers)
        These rows as numbers, which are scores themselves if they were precomputed.
    sample : Sample
        Which rows of the table they are.
    runs : tuple of Run
        The variational runs, with their components and posteriors.
    evidence : Evidence
        What speaks for and against the estimate.
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
    choices: Choices
    mixture_prior: dict[str, Plain] | None
    covariance: Array | None
    preparation: Preparation
    name: str | None
    digest: str
    index: SavedIndex | None
    ids: NDArray[np.uint8] | None
    places: NDArray[np.intp] | None
    truth: NDArray[np.int64] | None
    column_scaler: ColumnScaler | None
    detectors: tuple[DetectorInfo, ...]
    stored: tuple[StoredDetector, ...]
    learning_seed: int
    scores: Array
    rows: Array
    sample: Sample
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

    @property
    def used(self) -> dict[str, StoredDetector]:
        """What is stored of these detectors; empty for precomputed scores."""
        pairs = zip(self.detectors, self.stored, strict=False)
        return {info.name: part for info, part in pairs if info.status == "ok"}


@dataclass(frozen=True)
class LoadedFit:
    """A fit from a file, and the versions with which it was saved."""

    fit: Fit
    versions: dict[str, str]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the estimator; what a file cannot hold has its default."""
        plan = self.fit.plan
        return plan.parameters | {
            "detectors": plan.detectors,
            "mixture_prior": None if plan.parameters["mixture_prior"] is None else plan.prior,
            "columns": plan.choices.columns,
            "random_state": plan.seed,
            "progress": False,
        }

    def checked(self, own: Mapping[str, Any] | None = None) -> Fit:
        """The fit, with the user's `own` fitted detectors, to score new rows.

        These detectors score some training rows again, and so do the others if other versions of
        the packages saved them. A detector that scores them differently, or that cannot be made, is
        named in a `SavedFitWarning` and a note.
        """
        detectors, own = self.fit.detectors, dict(own or {})
        stored = detectors.stored if isinstance(detectors, StoredDetectors) else {}
        lacking = [name for name, part in stored.items() if part.state is None]
        if unknown := sorted(own.keys() - set(lacking)):
            raise DetectorError(
                f"The file does not lack a detector of the name {', '.join(unknown)}",
                f"It lacks {', '.join(lacking) or 'none'}.",
            )
        if not isinstance(detectors, StoredDetectors):
            return self.fit
        detectors.made.update(own)
        is_other = self.versions != installed_versions()
        tried = [
            name
            for name, part in stored.items()
            if name in own or (is_other and name not in lacking)
        ]
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
        if detectors.stored[name].state is None:
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
    loaded = cast("LoadedFit", _read(io.BytesIO(content), "The data to write")).fit
    is_same = np.array_equal(loaded.decision_scores, fit.decision_scores)
    if not is_same or loaded.digest != fit.digest:
        raise SaveError(
            "The fit cannot be saved: its parts do not follow from scores and runs",
            "Fit the rows again.",
        )
    write_document(content, path, overwrite)
    own = [name for name, part in saved.used.items() if part.state is None]
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
    prior = None if plan.parameters["mixture_prior"] is None else dict(vars(plan.prior))
    covariance = None if prior is None else prior["covariance"]
    if prior is not None and not isinstance(covariance, str):
        prior["covariance"] = None
    is_learned = fit.ranking == "learned"
    return SavedFit(
        key=key,
        versions=installed_versions(),
        parameters=plan.parameters,
        choices=plan.choices,
        mixture_prior=prior,
        covariance=None if isinstance(covariance, str | None) else np.asarray(covariance, float),
        preparation=table.preparation,
        name=table.name,
        digest=table.digest,
        index=SavedIndex.of(table.container.index),
        ids=None if table.ids is None else _texts_to_bytes(table.ids),
        places=table.places,
        truth=None if table.truth is None else table.truth.astype(np.int64),
        column_scaler=fit.column_scaler,
        detectors=fit.detector_info,
        stored=() if plan.is_precomputed else _stored(fit),
        learning_seed=plan.learning_seed,
        scores=fit.space.scores,
        rows=table.values,
        sample=table.sample,
        runs=fit.runs,
        evidence=fit.evidence,
        known_rows=fit.known,
        learned_scores=fit.space.decision_scores if is_learned else None,
        table_notes=(*table.notes, *_index_notes(table.container.index)),
        notes=tuple(note for note in fit.own_notes if note.step != "labels"),
    )


def _stored(fit: Fit) -> tuple[StoredDetector, ...]:
    """The bytes of each detector, and its scores of some training rows as new rows."""
    choices, detectors = named_detectors(fit.plan.detectors), fit.detectors
    if isinstance(detectors, StoredDetectors):
        known = dict(detectors.stored)
    else:
        rows = np.ascontiguousarray(fit.detector_columns)
        pairs = zip(detectors.items(), fit.scores.T, strict=True)
        known = {
            name: store(choices[name], detector, Training(rows, scores))
            for (name, detector), scores in pairs
        }
    return tuple(
        known.get(name, StoredDetector(choice, None, None)) for name, choice in choices.items()
    )


@dataclass(frozen=True, eq=False)
class SavedIndex:
    """An index of pandas: whole numbers or texts, and its name.

    Of any other index, such as one of dates, these are the names of the rows, see `_index_notes`.
    """

    name: str | None
    numbers: NDArray[np.int64] | None
    texts: NDArray[np.uint8] | None

    @classmethod
    def of(cls, index: Any) -> SavedIndex | None:
        """The record of an index; None for none and for the default index, which show the same."""
        if index is None or is_default(index):
            return None
        name = None if index.name is None else str(index.name)
        if index.dtype == np.int64 and name == index.name:
            return cls(name, index.to_numpy(dtype=np.int64), None)
        return cls(name, None, _texts_to_bytes(map(str, index)))

    def index(self) -> Any:
        """The index."""
        import pandas as pd

        values = self.numbers if self.texts is None else list(_texts_of_bytes(self.texts))
        return pd.Index(values, name=self.name)


def _index_notes(index: Any) -> list[Note]:
    """A note if the record of an index is not what the index is, but texts."""
    saved = SavedIndex.of(index)
    if saved is None or saved.numbers is not None:
        return []
    are_texts = index.nlevels == 1 and all(isinstance(each, str) for each in index)
    if are_texts and saved.name == index.name:
        return []
    return [Note.of("load.index", "index", kind=f"{type(index).__name__}, {index.dtype}")]


def _texts_to_bytes(texts: Iterable[str]) -> NDArray[np.uint8]:
    """Texts as the bytes of a list in JSON, which may be longer than a document."""
    return np.frombuffer(json.dumps(list(texts)).encode("ascii"), dtype=np.uint8)


def _texts_of_bytes(content: NDArray[np.uint8]) -> tuple[str, ...]:
    """The texts; ValueError if there are none."""
    texts = json.loads(content.tobytes())
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("the names of its rows are no list of texts")
    return tuple(texts)


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
    """Reader of the arrays and posteriors as well."""

    archive: Archive

    def value(self, name: str, value: Any, kind: Any) -> Any:
        """A value of the type `kind`, which is the type of a field of a dataclass."""
        if kind is GammaPosterior:
            try:
                return posterior_of(value, name)
            except SavedFileError as error:
                self.refuse(error.what)
        if (dtype := _dtype_of(kind)) is None:
            return super().value(name, value, kind)
        array = self.archive.array(self.plain(name, value, str))
        if array.dtype != dtype or not np.isfinite(array).all():
            self.refuse(f"{name} must be an array of finite numbers of the type {dtype}")
        return array


def _dtype_of(kind: Any) -> np.dtype[Any] | None:
    """The type of the numbers of ``NDArray[...]``; None for other types."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is NDArray:  # an alias of its own since NumPy 2.5
        return np.dtype(args[0])
    return np.dtype(get_args(args[1])[0]) if origin is np.ndarray else None


def _read(file: IO[bytes], where: str, key: str | None = None) -> LoadedFit | None:
    """The fit in `file`, or None if it has another key; `where` names the file in errors."""
    reader = Reader(FORM, where)
    with open_archive(file, reader) as archive:
        data = archive.document()
        body = reader.body(data)
        if key is not None and reader.plain("key", body.get("key"), str) != key:
            return None
        inside = FitReader(FORM, where, archive)
        saved = inside.record(SavedFit, "fit", body)
    plan = _plan_of(saved, reader)
    try:
        _check_parts(saved, plan)
        fit = _fit_of(saved, plan, where)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        reader.refuse(f"its parts do not fit together: {error}")
    return LoadedFit(fit, saved.versions)


def _plan_of(saved: SavedFit, reader: Reader) -> Plan:
    """The plan of a fit that is over."""
    parameters = saved.parameters
    # What a machine without PyTorch would refuse, and what ended with the fit.
    over: dict[str, Any] = dict.fromkeys(("progress", "timeout", "device"))
    if not isinstance(parameters.get("random_state"), int):
        over["random_state"] = None  # a generator, whose seed is not known
    over["columns"] = saved.choices.columns
    try:
        over |= {"mixture_prior": _prior_of(saved), "detectors": _detectors_of(saved)}
        plan = check_parameters(parameters | over)
    except (
        *(AttributeError, ImportError, LookupError, RuntimeError),
        *(TypeError, ValueError),
    ) as error:
        reader.refuse(f"its parameters are not valid: {error}")
    return replace(plan, parameters=parameters, learning_seed=saved.learning_seed)


def _prior_of(saved: SavedFit) -> MixturePrior | None:
    """The parameter `mixture_prior`."""
    if saved.mixture_prior is None:
        return None
    prior = MixturePrior(**cast("Any", saved.mixture_prior))
    if prior.covariance is None:
        prior = replace(prior, covariance=saved.covariance)
    prior.resolve_covariance(np.eye(len(saved.detector_names)))  # it checks the numbers
    return prior


def _detectors_of(saved: SavedFit) -> Any:
    """The parameter `detectors`; a user's own object is None."""
    given, names = saved.parameters["detectors"], [info.name for info in saved.detectors]
    if given in ("precomputed", *PRESETS):
        return given
    listed = [part.choice for part in saved.stored]
    is_list = None not in listed and list(named_detectors(listed)) == names
    return listed if is_list else dict(zip(names, listed, strict=True))


def _fit_of(saved: SavedFit, plan: Plan, where: str) -> Fit:
    """The fit, with everything that follows from what was saved."""
    table = _table_of(saved)
    _, scaler = score_space(saved.scores[: saved.sample.n_sampled])
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
        own_notes=saved.notes,
        **cut_rows(space, table.sample, known, posterior.mean, saved.detector_names),
    )
    fit = _with_labels(fit, saved)
    if plan.is_precomputed:
        return fit
    rows = np.ascontiguousarray(fit.detector_columns)
    return replace(fit, detectors=StoredDetectors(saved.used, rows, fit.scores, where))


def _table_of(saved: SavedFit) -> Table:
    """The rows and what is known of them."""
    return Table(
        saved.rows,
        saved.preparation,
        saved.sample,
        name=saved.name,
        digest=saved.digest,
        container=Container(index=None if saved.index is None else saved.index.index()),
        ids=None if saved.ids is None else _texts_of_bytes(saved.ids),
        places=saved.places,
        truth=saved.truth,
        notes=saved.table_notes,
    )


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


def _check_parts(saved: SavedFit, plan: Plan) -> None:
    """Raise an error unless the parts are such that the rest of the fit follows from them."""
    preparation, scaler, sample = saved.preparation, saved.column_scaler, saved.sample
    names, used = [info.name for info in saved.detectors], saved.detector_names
    n_rows, n_detectors = saved.scores.shape
    _need("columns", preparation.n_columns >= 1)
    _need("columns", not (plan.is_precomputed and preparation.encoder is not None))
    if scaler is not None:
        _need("columns", len({array.shape for array in vars(scaler).values()}) == 1)
        _need("columns", _are_places(scaler.kept, preparation.n_outputs))
        _need("columns", (scaler.spread > 0.0).all())
    _need("scores", n_rows >= 2, n_detectors == len(used) >= 1, len(set(names)) == len(names))
    _need("scores", *(judge_scores(scores)[0] == "ok" for scores in saved.scores.T))
    _need("rows", saved.rows.shape == (n_rows, preparation.n_outputs))
    if sample.numbers is None:
        _need("rows", n_rows == sample.n_sampled == sample.n_rows)
    else:
        _need("rows", sample.numbers.shape == (n_rows,), 2 <= sample.n_sampled <= n_rows)
        _need("rows", _are_places(sample.numbers[: sample.n_sampled], sample.n_rows))
        _need("rows", _are_places(np.sort(sample.numbers), sample.n_rows))
    _check_facts_of_rows(saved)
    _check_detectors(saved, plan)
    is_timed = plan.parameters["timeout"] is not None  # it may have interrupted runs
    n_least = 1 if is_timed else plan.n_runs
    _need("runs", n_least <= len(saved.runs) <= plan.n_runs)
    for run in saved.runs:
        _check_run(run, n_detectors, plan.constraints.p0)
    _need("evidence", saved.evidence.constraints == plan.constraints)
    if (separate := saved.evidence.separate_rows) is not None:
        rows = cast("NDArray[np.intp]", separate.rows)
        _need("evidence", _are_places(rows, sample.n_sampled), len(rows) == separate.n_rows)
        _need("evidence", set(separate.detectors) <= set(used))


def _check_facts_of_rows(saved: SavedFit) -> None:
    """Check what is known of the rows: names, places and labels."""
    n_rows, n_sampled, known = len(saved.scores), saved.sample.n_sampled, saved.known_rows
    if saved.index is not None:
        _need("rows", len(saved.index.index()) == n_rows)
    if saved.ids is not None:
        _need("rows", len(_texts_of_bytes(saved.ids)) == n_rows)
    if (places := saved.places) is not None:
        _need("rows", places.shape == (n_rows,), len(np.unique(places)) == n_rows)
        _need("rows", (places >= 0).all(), (np.diff(places[:n_sampled]) > 0).all())
    if (truth := saved.truth) is not None:
        _need("rows", truth.shape == (n_sampled,), np.isin(truth, (0, 1)).all())
    shapes = {array.shape for array in vars(known).values()}
    _need("known rows", len(shapes) == 1, np.isin(known.labels, (0, 1)).all())
    _need("known rows", not (known.at_random & known.picked).any())
    _need("known rows", shapes == {(0,)} or _are_places(known.rows, n_rows))
    if saved.learned_scores is not None:
        _need("known rows", saved.learned_scores.shape == (n_rows,))


def _check_detectors(saved: SavedFit, plan: Plan) -> None:
    """Check that the stored detectors are those of the parameters."""
    if plan.is_precomputed:
        _need("detectors", not saved.stored)
        return
    n_tried = len(even_places(saved.sample.n_sampled))
    named = [
        (info.name, part.choice) for info, part in zip(saved.detectors, saved.stored, strict=True)
    ]
    _need("detectors", named == list(named_detectors(plan.detectors).items()))
    for part in saved.stored:
        _need("detectors", part.choice in {None, *NAMES})
        if part.new_scores is not None:
            _need("detectors", part.new_scores.shape == (n_tried,))
        if part.state is not None:
            check_name(cast("str", part.choice), part.state.tobytes())


def _need(part: str, *facts: Any) -> None:
    """Raise ValueError unless all `facts` about a `part` of the file hold."""
    if not all(facts):
        raise ValueError(f"its {part} do not fit to its other parts")


def _are_places(places: NDArray[np.intp], n: int) -> bool:
    """Whether `places` has at least one number, rising, from 0 to `n` - 1."""
    is_column = places.ndim == 1 and len(places) > 0
    return is_column and places[0] >= 0 and places[-1] < n and bool((np.diff(places) > 0).all())


def _check_run(run: Run, m: int, p0: float) -> None:
    """Check that the parts of a run over `m` detectors belong together."""
    n, posterior = run.components.alpha.size, run.posterior
    shapes = [array.shape for array in vars(run.components).values()]
    _need("runs", n >= 1, shapes == [(n,), (n, m), (n, m, m), (n,), (n,), (n,)])
    _need("runs", (run.components.alpha > 0.0).all())
    if posterior is None:
        _need("runs", run.status == "unsolved", run.weights.shape == (0,))
        return
    n_parts = len(posterior.betas)
    _need("runs", run.status != "unsolved", np.isfinite([run.tau, run.delta, run.reached]).all())
    _need("runs", run.weights.shape == (n_parts,), 1 <= n_parts <= n)
    # The error of a share is below 1 for each part, and may be NaN.
    _need("runs", posterior.prob_zero == p0, not posterior.standard_error > n_parts)
