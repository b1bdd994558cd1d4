"""Rows on Dask -> their scores -> their score space: the steps of `rows.py` on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.progress import Progress
from gammagmm.blocks.collection import Blocks, check_collection, map_rows, open_blocks
from gammagmm.blocks.parquet import write_parquet
from gammagmm.blocks.quantiles import count_above, count_beyond, cut_offs, rank_table
from gammagmm.blocks.scoring import (
    consensus_and_own,
    fit_sample,
    given_blocks,
    keep_usable_blocks,
    random_rows,
    sample_rows,
    score_all,
)
from gammagmm.detectors.fit import FitSettings, FittedDetectors
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import ScoreRange, left_out_notes
from gammagmm.errors import Note
from gammagmm.estimator.fit_result import Fit, check_runs, check_time
from gammagmm.estimator.frames import Container, block_frame
from gammagmm.estimator.parameters import AUTO_FIT_ROWS, AUTO_MIXTURE_ROWS, Plan
from gammagmm.estimator.protocols import Columns, Cut
from gammagmm.estimator.scaling import (
    ColumnScaler,
    column_moments,
    constant_notes,
    robust_scaler,
    standard_scaler,
)
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.mixture.score_space import LogMoments, ScoreScaler, log_moments
from gammagmm.posterior.decisions import RankTable, is_anomaly
from gammagmm.posterior.groups import Group, sight_group
from gammagmm.posterior.runs import Run, choose_rows, fit_spaces, plan_runs

__all__ = ["DaskRows", "DaskSpace", "open_dask_rows", "open_new_dask_rows"]

Array = NDArray[np.float64]


def open_dask_rows(X: Any, plan: Plan) -> DaskRows:
    """The rows of a dask array or data frame, checked."""
    limits = {"max_mixture_rows": (plan.max_mixture_rows, AUTO_MIXTURE_ROWS)}
    if not plan.is_precomputed:
        limits["max_fit_rows"] = (plan.max_fit_rows, AUTO_FIT_ROWS)
    for name, (limit, auto) in limits.items():
        if limit is None:
            raise ValueError(
                f"{name}=None would load all rows on Dask into memory: give a number, or 'auto' "
                f"for {auto}."
            )
    blocks = open_blocks(X)
    names = list(getattr(X, "columns", []))
    has_names = bool(names) and all(isinstance(name, str) for name in names)
    named = np.array(names, dtype=object) if has_names else None
    return DaskRows(blocks, Columns(blocks.n_columns, named))


@dataclass(frozen=True)
class DaskRows:
    """Rows in blocks on Dask."""

    blocks: Blocks
    columns: Columns

    def scale_columns(self, plan: Plan) -> tuple[ColumnScaler | None, list[Note]]:
        """The map that scales the columns for the detectors, and what was changed for it."""
        if plan.scale is None:
            return None, []
        moments = self.blocks.summarise(column_moments)
        notes: list[Note] = []
        if plan.scale == "standard":
            scaler = standard_scaler(moments)
        else:
            n_rows = self.blocks.n_rows
            rows = sample_rows(n_rows, plan.max_fit_rows, plan.detector_rng)
            scaler = robust_scaler(moments, self.blocks.take(rows))
            if len(rows) < n_rows:
                message = (
                    f"medians and interquartile ranges come from a random sample of {len(rows)} "
                    f"of {n_rows} rows"
                )
                notes.append(Note("columns", "scale", message))
        return scaler, constant_notes(scaler, self.columns.n_features, self.columns.names) + notes

    def fit_detectors(self, plan: Plan) -> DaskScores:
        """Raw scores of all rows, by detectors that were fitted on a sample."""
        # A third stream, beside those of the detectors and of the runs.
        some = random_rows(self.blocks.n_rows, plan.rng.spawn(1)[0])
        notes: list[Note] = []
        column_scaler = None
        if plan.is_precomputed:
            scored = given_blocks(self.blocks, self.columns.names)
        else:
            n_rows, limit = self.blocks.n_rows, plan.max_fit_rows
            n_fit = n_rows if limit is None else min(n_rows, limit)
            made, notes = resolve_detectors(plan.detectors, n_fit)
            column_scaler, scale_notes = self.scale_columns(plan)
            notes = scale_notes + notes
            blocks = self.blocks
            if column_scaler is not None:
                n_kept = len(column_scaler.kept)
                blocks = blocks.lazily(_scale, column_scaler, n_columns=n_kept)
            with plan.tell("detectors", len(made)) as progress:
                settings = FitSettings(
                    limit,
                    plan.detector_timeout,
                    plan.n_jobs,
                    progress,
                    plan.deadline,
                    plan.is_fit_by_cost,
                )
                fitted, sample = fit_sample(blocks, made, plan.detector_rng, settings)
                # Scores of a sample are not those of the rows.
                check_time(plan, replace(fitted, scores=fitted.scores[:0]))
                scored = score_all(blocks, fitted, sample)
            if (n_fitted := len(sample)) < n_rows:
                message = (
                    f"every detector was fitted on a random sample of {n_fitted} of {n_rows} rows"
                )
                notes.append(Note("detectors", "max_fit_rows", message))
                for name, detector in made.items():
                    if (n_fewer := settings.n_fit(detector, n_rows)) < n_fitted:
                        message = f"fitted on {n_fewer} random rows of that sample"
                        notes.append(Note("detectors", name, message))
        scored, score_range = keep_usable_blocks(scored, some)
        fitted = replace(scored.fitted, scores=scored.scores.array())
        check_time(plan, fitted)
        notes += left_out_notes(fitted.info)
        return DaskScores(fitted, notes, column_scaler, scored.scores, score_range, some)


def _scale(rows: Array, column_scaler: ColumnScaler) -> Array:
    return column_scaler.transform(rows)


@dataclass(frozen=True)
class DaskScores:
    """Raw scores in blocks, kept on the workers; `fitted.scores` is a lazy dask array."""

    fitted: FittedDetectors
    notes: list[Note]
    column_scaler: ColumnScaler | None
    blocks: Blocks
    score_range: ScoreRange  # of each detector's scores
    random_rows: NDArray[np.intp]  # their numbers

    def score_space(self) -> DaskSpace:
        """The scores after logarithm and standardisation, and the table of their ranks."""
        minimum, maximum = self.score_range.lowest, self.score_range.highest
        moments = self.blocks.summarise(log_moments, minimum)
        scaler = moments.scaler(minimum, maximum)
        values = partial(consensus_and_own, scaler=scaler)
        ranks = rank_table(
            self.blocks, values, scaler.consensus(self.blocks.take(self.random_rows))
        )
        scores: Any = self.fitted.scores
        return DaskSpace(
            fitted=self.fitted,
            scores=scores,
            values=scores.map_blocks(scaler.transform, dtype=np.float64),
            consensus=map_rows(scores, scaler.consensus),
            scaler=scaler,
            rank_table=ranks,
            moments=moments,
            random_rows=self.random_rows,
            blocks=self.blocks,
        )


@dataclass(frozen=True, eq=False, repr=False)
class DaskSpace:
    """Score space in blocks: lazy arrays, of scores that stay on the workers.

    A copy (pickle, deepcopy) has no rows: its `blocks` and lazy arrays are None.
    """

    fitted: FittedDetectors
    scores: Any
    values: Any
    consensus: Any
    scaler: ScoreScaler
    rank_table: RankTable
    moments: LogMoments
    random_rows: Any  # their numbers, shape (n,)
    blocks: Blocks | None
    columns: None = None
    rows: None = None
    container: Container = field(default_factory=Container)
    is_in_memory: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rank_table.n_rows

    @property
    def notes(self) -> list[Note]:
        """How exact the ranks are, and which rows the group was looked for in."""
        notes = []
        if self.rank_table.error > 0.0:
            error = f"{self.rank_table.error:.1e}"
            message = (
                f"the ranks come from a table; the error of a share of rows is at most {error}"
            )
            notes.append(Note("threshold", "probabilities", message))
        if self.random_rows is not None and len(self.random_rows) < self.n_rows:
            sample = f"a random sample of {len(self.random_rows)} of {self.n_rows} rows"
            message = f"looked for in {sample}"
            notes.append(Note("evidence", "group", message))
        return notes

    def fit_runs(self, plan: Plan) -> tuple[tuple[Run, ...], list[Note]]:
        """The variational runs, and what was changed for them."""
        prior = plan.prior.resolve_covariance(self.moments.covariance)
        settings, notes = plan_runs(
            self.n_rows, prior, plan.constraints, plan.n_components, **plan.run_options
        )
        streams = plan.run_rng.spawn(plan.n_runs)
        rows = choose_rows(self.n_rows, settings.max_rows, streams)
        spaces = self._take_spaces(np.arange(self.n_rows)[None] if rows is None else rows)
        with plan.tell("mixtures", plan.n_runs) as progress:
            settings = replace(settings, progress=progress)
            runs = fit_spaces(spaces, settings, plan.max_restarts, streams, plan.n_jobs)
        check_runs(plan, self.fitted, runs)
        return runs, notes

    def _take_spaces(self, rows: NDArray[np.intp]) -> Array:
        """The score space (R, n, M) of the rows with the numbers `rows` (R, n), in memory."""
        wanted, places = np.unique(rows, return_inverse=True)
        taken = self.scaler.transform(self._present("fit_runs").take(wanted))
        return taken[places.reshape(rows.shape)]

    def find_group(self, names: list[str]) -> Group | None:
        """The rows that visibly stand apart: seen in a sample of the rows, counted in all."""
        blocks = self._present("find_group")
        sighting = sight_group(self.scaler.transform(blocks.take(self.random_rows)))
        if sighting is None:
            return None
        n_beyond = int(blocks.summarise(count_beyond, self.scaler, sighting))
        return sighting.group(n_beyond, self.n_rows, names)

    def ranks(self, known: KnownRows) -> RankTable:
        """How many rows score at least as high as any score; no rows on Dask are known."""
        return self.rank_table

    @property
    def decision_scores(self) -> Any:
        """Scores of the ranking: the consensus."""
        return self.consensus

    def learn(self, known: KnownRows, seed: int) -> tuple[DaskSpace, None]:
        """The same rows: no rows on Dask are known."""
        return self, None

    def cut(self, names: list[str], gamma: float, known: KnownRows) -> Cut:
        """The rows cut at the share `gamma`; no rows on Dask are known."""
        blocks, values = self._present("cut"), partial(consensus_and_own, scaler=self.scaler)
        threshold, *own = cut_offs(blocks, values, gamma).tolist()
        n_flagged = int(blocks.summarise(count_above, values, threshold))
        thresholds = dict(zip(names, own, strict=True))
        return Cut(threshold, thresholds, is_anomaly(self.consensus, threshold), n_flagged)

    def labels_at(self, gamma: float, known: KnownRows) -> Any:
        """Labels of the rows if the share of anomalies were `gamma`; no rows on Dask are known."""
        values = partial(consensus_and_own, scaler=self.scaler)
        threshold = float(cut_offs(self._present("labels_at"), values, gamma)[0])
        return is_anomaly(self.consensus, threshold)

    def frame(self, fit: Fit) -> Any:
        """The answer for each row as a lazy dask DataFrame."""
        answers = (self.scaler, self.rank_table, fit.posterior, fit.threshold)
        return self._present("to_frame").frame(block_frame, *answers, fit.detector_names)

    def check_rows_present(self, question: str) -> None:
        """Refuse a `question` about rows that a copy of the estimator does not have."""
        self._present(question)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._present("to_parquet").parts)

    def write(self, fit: Fit, folder: Any, overwrite: bool, progress: Progress) -> None:
        """Write the rows of `frame` to a folder of Parquet files, whole or not at all."""
        client = self._present("to_parquet").client
        write_parquet(self.frame(fit), folder, overwrite, progress, client)

    def _present(self, question: str) -> Blocks:
        if self.blocks is None:
            raise NotImplementedError(
                f"{question} needs the training rows. A copied or unpickled estimator does not "
                "have them: use the original estimator."
            )
        return self.blocks

    def __getstate__(self) -> dict[str, Any]:
        """The state without the rows on the cluster."""
        names = ("scores", "values", "consensus", "blocks", "fitted", "random_rows")
        on_cluster = dict.fromkeys(names)
        return vars(self) | on_cluster


@dataclass(frozen=True)
class NewDaskRows:
    """New rows of a dask array or data frame."""

    X: Any

    def map(self, function: Callable[[Array], Array], n_columns: int | None = None) -> Any:
        """Lazy dask array of what `function` gives for the rows."""
        return map_rows(self.X, _call, function, n_columns=n_columns)


def _call(rows: Array, function: Callable[[Array], Array]) -> Array:
    # As an argument, the function with its detectors is sent once, not with every task.
    return function(rows)


def open_new_dask_rows(X: Any, columns: Columns) -> NewDaskRows:
    """New rows with the `columns` of the fit."""
    check_collection(X)
    n_columns, names = X.shape[1], list(getattr(X, "columns", []))
    fitted = [] if columns.names is None else list(columns.names)
    if n_columns != columns.n_features:
        raise ValueError(
            f"X has {n_columns} columns, but the estimator was fitted with {columns.n_features}."
        )
    if names and fitted and names != fitted:
        raise ValueError(f"X must have the columns of the fit, in their order: {fitted}.")
    return NewDaskRows(X)
