"""Rows in memory -> their scores -> their score space.

Only `open_rows` and `open_new_rows` know whether rows are in memory or on Dask.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import check_array_kind, explain_rows
from gammagmm._support.data_frames import as_frame, frame_numbers, open_frame
from gammagmm._support.progress import Progress
from gammagmm._support.text import listed
from gammagmm.blocks.collection import is_blocks
from gammagmm.detectors.fit import (
    FitSettings,
    FittedDetectors,
    fit_detectors,
    given_scores,
)
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import keep_usable, left_out_notes
from gammagmm.errors import Note
from gammagmm.estimator.dask_rows import open_dask_rows, open_new_dask_rows
from gammagmm.estimator.encoding import encode_new_rows, encode_rows
from gammagmm.estimator.fit_result import Fit, check_runs, check_time
from gammagmm.estimator.frames import Container, row_columns
from gammagmm.estimator.parameters import Plan
from gammagmm.estimator.protocols import Columns, Cut, NewRows, Rows
from gammagmm.estimator.scaling import (
    ColumnScaler,
    column_moments,
    constant_notes,
    robust_scaler,
    standard_scaler,
)
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.labelled_rows import LabelledRows
from gammagmm.inspection.learned_ranking import Inputs, Learning, learn_ranking
from gammagmm.mixture.score_space import ScoreScaler, fit_scaler
from gammagmm.posterior.decisions import (
    RankTable,
    cut_off,
    exact_ranks,
)
from gammagmm.posterior.groups import Group, find_group
from gammagmm.posterior.runs import Run, fit_runs, plan_runs

if TYPE_CHECKING:
    from gammagmm.estimator.gamma_gmm import GammaGMM

__all__ = [
    "MemoryRows",
    "open_new_rows",
    "open_rows",
    "validate_rows",
]

Array = NDArray[np.float64]

_COLLECTED = Note("tables", "X", "is a lazy frame, whose rows were collected into memory")


def open_rows(X: Any, estimator: GammaGMM, plan: Plan) -> Rows:
    """The rows of `X`, checked, wherever they are."""
    if is_blocks(X):
        if plan.is_encoded:
            raise ValueError(
                'missing="impute" and categories="encode" need rows in memory, got a dask '
                "collection: fill and encode it before the fit."
            )
        return open_dask_rows(X, plan)
    given = as_frame(X)
    frame = open_frame(given)
    notes = () if frame is given else (_COLLECTED,)
    container, table = Container.of(frame), X if frame is None else frame
    # scikit-learn sets the columns on the estimator that it is given. It is given a copy, because a
    # fit that fails must leave the estimator as it was.
    probe = copy(estimator)
    if plan.is_encoded:
        encoded, encoder = encode_rows(probe, table)
        names = getattr(probe, "feature_names_in_", None)
        columns = Columns(probe.n_features_in_, names, encoder)
        return MemoryRows(encoded.values, columns, container, (*notes, *encoded.notes), True)
    values = _validate(probe, table, reset=True)
    columns = Columns(values.shape[1], getattr(probe, "feature_names_in_", None))
    return MemoryRows(values, columns, container, notes, frame is not None)


def validate_rows(estimator: GammaGMM, X: Any) -> Array:
    """Finite rows (n, d) of `X`, which must have the columns of the fit."""
    encoder = estimator.fit_.encoder
    if encoder is not None:
        return encode_new_rows(estimator, X, encoder)
    return _validate(estimator, X, reset=False)


def _validate(estimator: GammaGMM, X: Any, *, reset: bool) -> Array:
    """Finite rows (n, d) of `X` by scikit-learn, which sets the columns on `estimator`."""
    from sklearn.utils.validation import check_array, validate_data

    frame = open_frame(X)
    check_array_kind(X)
    options = {"dtype": np.float64, "ensure_min_samples": 2 if reset else 1}
    try:
        # scikit-learn adds all cells up to see whether one is infinite.
        with np.errstate(invalid="ignore"):
            if frame is None:
                return validate_data(estimator, X, reset=reset, **options)
            validate_data(estimator, frame.to_native(), reset=reset, skip_check_array=True)
            rows = frame_numbers(frame)
            return check_array(rows, estimator=estimator, input_name="X", **options)
    except (TypeError, ValueError) as error:
        if not reset and (made := _prepared_names(estimator, X)):
            raise ValueError(
                f"X does not have the columns {listed(made)} of the fit. If `gammagmm fit` saved "
                "it, it takes the columns of numbers that the command prepared: give X with these "
                "columns, or use `gammagmm predict` for a file with the original ones."
            ) from error
        raise explain_rows(X, error) from error


def _prepared_names(estimator: GammaGMM, X: Any) -> list[str]:
    """The columns of the fit that the encoder of tables could have made from columns of `X`."""
    frame = as_frame(X)
    given = set() if frame is None else set(map(str, frame.collect_schema().names()))
    starts = tuple(f"{name}{end}" for name in given for end in ("=", " "))
    names = map(str, getattr(estimator, "feature_names_in_", ()))
    return [name for name in names if name not in given and name.startswith(starts)]


@dataclass(frozen=True, eq=False, repr=False)
class MemoryRows:
    """Rows (n, d) in memory."""

    values: Array
    columns: Columns
    container: Container  # the kind of data frame that they came in
    notes: tuple[Note, ...] = ()  # what was collected, filled or encoded
    is_copy: bool = False  # whether the values are not those of the user's own table

    def scale_columns(self, plan: Plan) -> tuple[ColumnScaler | None, list[Note]]:
        """The map that scales the columns for the detectors, and what was changed for it."""
        if plan.scale is None:
            return None, []
        moments = column_moments(self.values)
        if plan.scale == "standard":
            scaler = standard_scaler(moments)
        else:
            scaler = robust_scaler(moments, self.values)
        return scaler, constant_notes(scaler, self.columns.n_numbers, self.columns.number_names)

    def fit_detectors(self, plan: Plan) -> MemoryScores:
        """Raw scores of the rows by the plan's detectors, or the rows themselves."""
        notes: list[Note] = []
        column_scaler = None
        if plan.is_precomputed:
            fitted = given_scores(self.values, self.columns.names)
        else:
            limits = plan.max_fit_rows, plan.is_fit_by_cost
            made, notes = resolve_detectors(plan.detectors, len(self.values), *limits)
            column_scaler, scale_notes = self.scale_columns(plan)
            notes = scale_notes + notes
            scaled = self.values if column_scaler is None else column_scaler.transform(self.values)
            with plan.tell("detectors", len(made)) as progress:
                settings = FitSettings(
                    plan.max_fit_rows,
                    plan.detector_timeout,
                    plan.n_jobs,
                    progress,
                    plan.deadline,
                    plan.is_fit_by_cost,
                )
                fitted = fit_detectors(made, scaled, plan.detector_rng, settings)
            check_time(plan, fitted)
        notes = [*self.notes, *notes]
        usable = keep_usable(fitted)
        notes += left_out_notes(usable.info)
        # The user may change the table.
        rows = self.values if self.is_copy else self.values.copy()
        is_scored = plan.is_precomputed
        return MemoryScores(usable, notes, column_scaler, rows, self.container, is_scored)


@dataclass(frozen=True, eq=False, repr=False)
class MemoryScores:
    """Raw scores in memory."""

    fitted: FittedDetectors
    notes: list[Note]
    column_scaler: ColumnScaler | None
    rows: Array  # as they were given
    container: Container
    is_precomputed: bool = False  # whether the rows are scores themselves

    def score_space(self) -> MemorySpace:
        """The scores after logarithm and standardisation."""
        scores = self.fitted.scores
        scaler = fit_scaler(scores)
        values = scaler.transform(scores)
        consensus = values.mean(axis=1)
        return MemorySpace(
            self.fitted,
            scores,
            values,
            consensus,
            decision_scores=consensus,
            honest_scores=consensus,
            scaler=scaler,
            column_scaler=self.column_scaler,
            rows=self.rows,
            container=self.container,
            is_precomputed=self.is_precomputed,
        )


@dataclass(frozen=True, eq=False, repr=False)
class MemorySpace:
    """Score space in memory."""

    fitted: FittedDetectors
    scores: Array
    values: Array
    consensus: Array
    decision_scores: Array
    honest_scores: Array  # the same without what was learned from a row's own label
    scaler: ScoreScaler
    column_scaler: ColumnScaler | None
    rows: Array  # as they were given
    container: Container
    is_precomputed: bool  # whether the rows are scores themselves
    is_in_memory: bool = True
    n_blocks: int = 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def columns(self) -> Array | None:
        """The rows as the detectors have them; None for precomputed scores."""
        if self.is_precomputed:
            return None
        scaler = self.column_scaler
        return self.rows if scaler is None else scaler.transform(self.rows)

    @property
    def notes(self) -> list[Note]:
        """Nothing is approximated in memory."""
        return []

    def ranks(self, known: KnownRows) -> RankTable:
        """How many of the rows outside lists score at least as high as any score of a new row."""
        if not len(known):
            return exact_ranks(self.decision_scores)
        return known.rows_outside_lists(self.n_rows).ranks(self.honest_scores)

    def fit_runs(self, plan: Plan) -> tuple[tuple[Run, ...], list[Note]]:
        """The variational runs, and what was changed for them."""
        prior = plan.prior.resolve(self.values)
        settings, notes = plan_runs(
            self.n_rows, prior, plan.constraints, plan.n_components, **plan.run_options
        )
        with plan.tell("mixtures", plan.n_runs) as progress:
            settings = replace(settings, progress=progress)
            budget = (plan.n_runs, plan.max_restarts)
            runs = fit_runs(self.values, settings, budget, plan.run_rng, plan.n_jobs)
        check_runs(plan, self.fitted, runs)
        return runs, notes

    def find_group(self, names: list[str]) -> Group | None:
        """The rows that visibly stand apart."""
        return find_group(self.values, names)

    def learn(self, known: KnownRows, seed: int) -> tuple[MemorySpace, Learning]:
        """The rows ranked by what the labels of known rows teach, and what that is."""
        inputs = Inputs(self.values, self.consensus, self.columns)
        learning = learn_ranking(inputs, known, seed)
        scores, honest_scores = learning.scores, learning.honest_scores
        return replace(self, decision_scores=scores, honest_scores=honest_scores), learning

    def cut(self, names: list[str], gamma: float, known: KnownRows) -> Cut:
        """The rows cut at the share `gamma`.

        A known row keeps its label; the other rows are cut at the share that is left for them. New
        rows are like the rows outside lists, labelled or not, and are cut as these would be.
        """
        labels = self.labels_at(gamma, known)
        outside = known.rows_outside_lists(self.n_rows)
        share = outside.share(gamma)
        threshold = float(cut_off(self.honest_scores[outside.rows], share))
        own = cut_off(self.scores[outside.rows], share).tolist()
        thresholds = dict(zip(names, own, strict=True))
        return Cut(threshold, thresholds, labels, int(labels.sum()))

    def labels_at(self, gamma: float, known: KnownRows) -> NDArray[np.int_]:
        """Labels of the rows if the share of anomalies were `gamma`; known rows keep theirs."""
        return LabelledRows(self.decision_scores, known).labels_at(gamma)

    def frame(self, fit: Fit) -> Any:
        """The answer for each row as a data frame of the kind that the rows came in."""
        answers = (self.decision_scores, fit.probability, fit.cut.labels)
        columns = row_columns(answers, self.scores, fit.detector_names)
        return self.container.frame(columns, "to_frame")

    def check_rows_present(self, question: str) -> None:
        """Nothing to refuse: a copy of the estimator has the rows too."""

    def write(self, fit: Fit, folder: Any, overwrite: bool, progress: Progress) -> None:
        """Raise an error: rows in memory are written with to_frame().to_parquet()."""
        raise NotImplementedError(
            "to_parquet needs a fit on Dask. For rows in memory, call to_frame().to_parquet(path)."
        )


@dataclass(frozen=True)
class NewMemoryRows:
    """New rows (n, d) in memory."""

    values: Array

    def map(self, function: Callable[[Array], Array], n_columns: int | None = None) -> Array:
        """What `function` gives for the rows."""
        return function(self.values)


def open_new_rows(X: Any, estimator: GammaGMM) -> NewRows:
    """New rows with the columns of the fit, wherever they are."""
    if is_blocks(X):
        names = getattr(estimator, "feature_names_in_", None)
        return open_new_dask_rows(X, Columns(estimator.n_features_in_, names))
    return NewMemoryRows(validate_rows(estimator, X))
