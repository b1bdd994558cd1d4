"""Rows -> raw scores of the detectors -> score space -> variational runs, ranking and cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gammagmm.detectors.fit import (
    FitSettings,
    FittedDetectors,
    fit_detectors,
    given_scores,
    score_rows,
)
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import keep_usable, left_out_notes
from gammagmm.errors import Note
from gammagmm.estimator.parameters import Plan
from gammagmm.estimator.partial_fit import check_runs, check_time
from gammagmm.labels.learned_ranking import Inputs, LearnedRanking
from gammagmm.mixture.score_space import ScoreScaler, fit_scaler
from gammagmm.posterior.runs import Run, fit_runs, plan_runs
from gammagmm.table.scaling import (
    ColumnScaler,
    column_moments,
    constant_notes,
    robust_scaler,
    standard_scaler,
)
from gammagmm.table.table import Table

__all__ = ["Scores", "Scoring", "Space", "fit_space_runs", "score_space", "score_training_rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Raw scores of the training rows, and the detectors that gave them."""

    fitted: FittedDetectors
    notes: tuple[Note, ...]
    column_scaler: ColumnScaler | None  # None where the columns are not scaled


def score_training_rows(table: Table, plan: Plan) -> Scores:
    """Raw scores of the rows by the plan's detectors, or the rows themselves."""
    notes: list[Note] = []
    column_scaler = None
    if plan.is_precomputed:
        fitted = given_scores(table.values, table.preparation.columns)
    else:
        limits = plan.max_fit_rows, plan.is_fit_by_cost
        made, notes = resolve_detectors(plan.detectors, len(table.values), *limits)
        column_scaler = _fit_column_scaler(table, plan)
        preparation = table.preparation
        names = preparation.outputs or None
        notes = constant_notes(column_scaler, preparation.n_outputs, names) + notes
        scaled = table.values if column_scaler is None else column_scaler.transform(table.values)
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
    usable = keep_usable(fitted)
    return Scores(usable, (*notes, *left_out_notes(usable.info)), column_scaler)


def _fit_column_scaler(table: Table, plan: Plan) -> ColumnScaler | None:
    """The map that scales the columns for the detectors."""
    if plan.scale is None:
        return None
    moments = column_moments(table.values)
    if plan.scale == "standard":
        return standard_scaler(moments)
    return robust_scaler(moments, table.values)


@dataclass(frozen=True, eq=False, repr=False)
class Space:
    """Raw scores and score space (n, M) of rows, and their scores (n,) by the ranking in use."""

    scores: Array
    values: Array
    consensus: Array
    decision_scores: Array
    honest_scores: Array  # the same without what was learned from a row's own label

    def __len__(self) -> int:
        return len(self.scores)

    def __add__(self, other: Space) -> Space:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Space(*(_joined(*pair) for pair in pairs))


def _joined(first: Array, more: Array) -> Array:
    """Both arrays as one with the layout of the first, on which the last bits of sums depend."""
    layout: Literal["C", "F"] = "C" if first.flags.c_contiguous else "F"
    return np.concatenate([first, np.asarray(more, order=layout)])


def score_space(scores: Array, scaler: ScoreScaler | None = None) -> tuple[Space, ScoreScaler]:
    """The scores after logarithm and standardisation, ranked by their mean, and the map to that."""
    scaler = fit_scaler(scores) if scaler is None else scaler
    values = scaler.transform(scores)
    consensus = values.mean(axis=1)
    return Space(scores, values, consensus, consensus, consensus), scaler


def fit_space_runs(
    space: Space, fitted: FittedDetectors, plan: Plan
) -> tuple[tuple[Run, ...], list[Note]]:
    """The variational runs, and what was changed for them."""
    prior = plan.prior.resolve(space.values)
    settings, notes = plan_runs(
        len(space), prior, plan.constraints, plan.n_components, **plan.run_options
    )
    with plan.tell("mixtures", plan.n_runs) as progress:
        settings = replace(settings, progress=progress)
        budget = (plan.n_runs, plan.max_restarts)
        runs = fit_runs(space.values, settings, budget, plan.run_rng, plan.n_jobs)
    check_runs(plan, fitted, runs)
    return runs, notes


@dataclass(frozen=True)
class Scoring:
    """Score (n,) of new rows (n, d), from each row and the fit alone.

    `detectors` are None where the rows are raw scores, of which the columns `used` count.
    `column_scaler` scales the columns for the detectors, and `scaler` the scores. The score is that
    of the `ranking`, or the consensus if it is None.
    """

    detectors: dict[str, Any] | None
    used: NDArray[np.intp]
    column_scaler: ColumnScaler | None
    scaler: ScoreScaler
    ranking: LearnedRanking | None = None

    def __call__(self, rows: Array) -> Array:
        """Score of each of `rows`."""
        return self.combine(*self.raw(rows))

    def raw(self, rows: Array) -> tuple[Array, Array | None]:
        """Raw scores (n, M) of `rows`, and the rows as the detectors have them."""
        if self.detectors is None:
            return rows[:, self.used], None
        columns = rows if self.column_scaler is None else self.column_scaler.transform(rows)
        return score_rows(self.detectors, columns), columns

    def combine(self, scores: Array, columns: Array | None) -> Array:
        """Score (n,) of rows with these raw scores."""
        if self.ranking is None:
            return self.scaler.consensus(scores)
        space = self.scaler.transform(scores)
        return self.ranking.scores(Inputs(space, space.mean(axis=1), columns))
