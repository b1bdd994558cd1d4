"""Rows -> raw scores of the detectors -> score space -> variational runs, ranking and cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.progress import Progress, quiet
from gammagmm.detectors.fit import (
    FitSettings,
    FittedDetectors,
    fit_detectors,
    given_scores,
)
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import keep_usable, left_out_notes
from gammagmm.errors import Note
from gammagmm.estimator.parameters import Plan
from gammagmm.estimator.partial_fit import check_detectors, check_runs
from gammagmm.mixture.score_space import ScoreScaler, fit_scaler
from gammagmm.posterior.runs import Run, fit_runs, plan_runs
from gammagmm.table.scaling import ColumnScaler, constant_notes, fit_column_scaler
from gammagmm.table.table import Table

__all__ = ["Space", "fit_space_runs", "score_space", "score_training_rows"]

Array = NDArray[np.float64]


def score_training_rows(
    table: Table, plan: Plan, progress: Progress = quiet
) -> tuple[FittedDetectors, ColumnScaler | None, list[Note]]:
    """The detectors with the raw scores of the rows, or the rows themselves.

    The others are the map that scales the columns, None where they are not scaled, and notes.
    """
    notes: list[Note] = []
    column_scaler = None
    if plan.is_precomputed:
        fitted = given_scores(table.values, table.preparation.columns)
    else:
        rows = plan.rows(*table.values.shape)
        made, notes = resolve_detectors(plan.detectors, len(table.values), rows)
        if plan.scale is not None:
            column_scaler = fit_column_scaler(table.values, plan.scale)
        preparation = table.preparation
        names = preparation.outputs or None
        notes = constant_notes(column_scaler, preparation.n_outputs, names) + notes
        scaled = table.values if column_scaler is None else column_scaler.transform(table.values)
        settings = FitSettings(rows, plan.detector_timeout, plan.n_jobs, progress, plan.deadline)
        fitted = fit_detectors(made, scaled, plan.detector_rng, settings)
        check_detectors(plan, fitted)
    usable = keep_usable(fitted)
    return usable, column_scaler, [*notes, *left_out_notes(usable.info)]


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
    space: Space, fitted: FittedDetectors, plan: Plan, progress: Progress = quiet
) -> tuple[tuple[Run, ...], list[Note]]:
    """The variational runs, and what was changed for them."""
    prior = plan.prior.resolve(space.values)
    settings, notes = plan_runs(
        len(space), prior, plan.constraints, plan.n_components, **plan.run_options
    )
    settings = replace(settings, progress=progress)
    budget = (plan.n_runs, plan.max_restarts)
    runs = fit_runs(space.values, settings, budget, plan.run_rng, plan.n_jobs)
    return runs, notes + check_runs(plan, fitted, runs)
