"""A fit whose rows stay in blocks on Dask, and what the fitted estimator answers about them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gammagmm._support.checks import as_generator, check_probability
from gammagmm._support.processes import Deadline
from gammagmm._support.progress import tell
from gammagmm.blocks.collection import Blocks, check_collection, is_blocks, map_rows, open_blocks
from gammagmm.blocks.mixtures import open_score_space
from gammagmm.blocks.parquet import write_parquet
from gammagmm.blocks.quantiles import count_above, cut_offs, rank_table
from gammagmm.blocks.scoring import (
    Scored,
    consensus_and_own,
    fit_sample,
    given_blocks,
    keep_usable_blocks,
    random_rows,
    score_all,
)
from gammagmm.detectors.fit import FitSettings, score_rows
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import left_out_notes
from gammagmm.errors import Note
from gammagmm.estimator.frames import block_frame
from gammagmm.estimator.inspecting import Inspecting
from gammagmm.estimator.parameters import check_blocks, fit_rows
from gammagmm.estimator.unfinished import check_time
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import ScoreScaler, log_moments
from gammagmm.posterior.contamination import Contamination
from gammagmm.posterior.decisions import RankTable, exact_ranks, is_anomaly, probability_at
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import Run, settle_runs, start_runs

__all__ = ["Blockwise"]

Array = NDArray[np.float64]

OF_ROWS = ("scores_", "score_space_", "decision_scores_", "labels_", "_blocks")
"""What lives on the cluster, and does not travel with the estimator."""


class Blockwise(Inspecting):
    """The steps of `GammaGMM.fit` on a dask array or data frame, and its answers in blocks."""

    # Set by `GammaGMM`, in __init__ and in fit.
    n_runs: int
    max_restarts: int
    n_components: int
    max_fit_rows: Any
    detector_timeout: float | None
    mixture_prior: MixturePrior | None
    random_state: Any
    n_jobs: int | None
    progress: Any
    verbose: int
    runs_: tuple[Run, ...]
    # Where the rows are in blocks: their raw scores (`Blocks`), and their ranks (`RankTable`).
    _blocks: Any = None
    _ranks: Any = None
    _counts: Any = None  # of rows, and of those with the label 1

    def _fit_blocks(self, X: Any, constraints: Constraints, deadline: Deadline) -> tuple[Run, ...]:
        """Scores, score space and runs of the rows of `X`; ends where posteriors are combined."""
        check_blocks(self)
        detector_rng, run_rng, pick_rng = as_generator(self.random_state).spawn(3)
        rows = self._open(X)
        some = random_rows(rows.n_rows, pick_rng)
        scored = self._score_blocks(rows, detector_rng, deadline)
        scored, minimum = keep_usable_blocks(scored, some)
        fitted = replace(scored.fitted, scores=scored.scores.array())
        check_time(deadline, fitted, self.n_runs)
        moments = scored.scores.summarise(log_moments, minimum)
        self._keep_scores(scored, moments.scaler(minimum))
        prior = (self.mixture_prior or MixturePrior()).resolve_covariance(moments.covariance)
        settings, notes = settle_runs(
            rows.n_rows, prior, constraints, self.n_components, **self._run_options()
        )
        self.notes_ += notes
        space = open_score_space(scored.scores, self.scaler_, prior)
        with tell(self.progress, self.verbose, "mixtures", self.n_runs) as progress:
            settings = replace(settings, progress=progress, deadline=deadline)
            budget = (self.n_runs, self.max_restarts)
            runs = start_runs(space.fit_starts, settings, budget, run_rng)
        check_time(deadline, fitted, self.n_runs, runs)
        self._keep_ranks(scored.scores.take(some))
        check_time(deadline, fitted, self.n_runs, runs)
        return runs

    def _run_options(self) -> dict[str, Any]:
        """The parameters that every run has."""
        names = ("n_draws", "max_iter", "tol", "backend", "device")
        return {name: getattr(self, name) for name in names}

    def _open(self, X: Any) -> Blocks:
        """The rows of `X`, whose columns go into the fitted attributes as scikit-learn has them."""
        rows = open_blocks(X)
        self.n_features_in_ = rows.n_columns
        self.__dict__.pop("feature_names_in_", None)
        names = list(getattr(X, "columns", []))
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return rows

    def _score_blocks(self, rows: Blocks, rng: np.random.Generator, deadline: Deadline) -> Scored:
        """Raw scores in blocks, by detectors that were fitted on a sample."""
        self.notes_ = []
        if self._is_precomputed:
            return given_blocks(rows, getattr(self, "feature_names_in_", None))
        limit = fit_rows(self.max_fit_rows)
        n_fit = rows.n_rows if limit is None else min(rows.n_rows, limit)
        made, self.notes_ = resolve_detectors(self.detectors, n_fit)
        with tell(self.progress, self.verbose, "detectors", len(made)) as progress:
            limits = (limit, self.detector_timeout, self.n_jobs)
            settings = FitSettings(*limits, progress, deadline)
            fitted, sample = fit_sample(rows, made, rng, settings)
            check_time(deadline, replace(fitted, scores=fitted.scores[:0]), self.n_runs)
            scored = score_all(rows, fitted, sample)
        if (n_fitted := len(scored.sample)) < rows.n_rows:
            message = f"every detector fitted on {n_fitted} of {rows.n_rows} rows, at random"
            self.notes_.append(Note("detectors", "max_fit_rows", message))
        return scored

    def _keep_scores(self, scored: Scored, scaler: ScoreScaler) -> None:
        """The fitted attributes of scores: lazy dask arrays, of scores that stay on the workers."""
        fitted, self._blocks, self.scaler_ = scored.fitted, scored.scores, scaler
        self.detectors_ = {} if self._is_precomputed else fitted.detectors
        self.detector_names_ = list(fitted.detectors)
        self.detector_info_ = fitted.info
        self.notes_ += left_out_notes(fitted.info)
        scores = self.scores_ = scored.scores.array()
        self.score_space_ = scores.map_blocks(scaler.transform, dtype=np.float64)
        self.decision_scores_ = map_rows(scores, scaler.consensus)

    def _keep_ranks(self, some: Array) -> None:
        """The table by which a score finds its rank; `some` are raw scores of random rows."""
        some_consensus = self.scaler_.consensus(some)
        self._ranks = rank_table(self._blocks, self._cut_values(), some_consensus)
        if self._ranks.error > 0.0:
            message = f"ranks from a table: shares of rows off by {self._ranks.error:.1e} at most"
            self.notes_.append(Note("threshold", "probabilities", message))

    def _set_threshold(self) -> None:
        if self._blocks is None:
            super()._set_threshold()
            return
        self.contamination_ = Contamination(self.posterior_)
        cuts = self._cut_blocks(float(self.contamination_)).tolist()
        self.threshold_ = cuts[0]
        n_flagged = self._blocks.summarise(count_above, self._cut_values(), self.threshold_)
        self._counts = (self._blocks.n_rows, int(n_flagged))
        self.labels_ = is_anomaly(self.decision_scores_, cuts[0])
        self.thresholds_ = dict(zip(self.detector_names_, cuts[1:], strict=True))

    def _cut_blocks(self, gamma: float) -> Array:
        """Cut-off of the consensus, then of each detector's own scores, at the share `gamma`."""
        return cut_offs(self._blocks, self._cut_values(), gamma)

    def _cut_values(self) -> Any:
        """The function that gives what is cut of a block: the consensus and the raw scores."""
        return partial(consensus_and_own, scaler=self.scaler_)

    def labels_at(self, gamma: float) -> Any:
        """Labels of the training rows if the share of anomalies were `gamma`."""
        if self._counts is None:
            return super().labels_at(gamma)
        self._check_rows_at_hand("labels_at")
        check_probability("gamma", gamma)
        return is_anomaly(self.decision_scores_, float(self._cut_blocks(gamma)[0]))

    def decision_function(self, X: Any) -> Any:
        """Consensus score of each row: the mean over detectors of its place in score space.

        The training rows' minimum, mean and deviation are used; lower scores are clipped to that
        minimum. Of a dask collection, a lazy dask array.
        """
        if not is_blocks(X):
            return super().decision_function(X)
        check_is_fitted(self)
        return map_rows(self._matching(X), *self._new_consensus())

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of normal and anomaly, shape (n_rows, 2).

        The second column is P(gamma > share of training rows scored at least as high): the
        posterior probability that the row lies inside the anomalous share *if the consensus
        ranking is right*. Of a dask collection, a lazy dask array.
        """
        if not is_blocks(X) and self._ranks is None:
            return super().predict_proba(X)
        check_is_fitted(self)
        ranks = self._ranks or exact_ranks(self.decision_scores_)
        if not is_blocks(X):
            return _both_probabilities(self.decision_function(X), ranks, self.posterior_)
        told = (ranks, self.posterior_, *self._new_consensus())
        return map_rows(self._matching(X), _new_probabilities, *told, n_columns=2)

    def _new_consensus(self) -> tuple[Any, ...]:
        """The function that gives the consensus scores (n,) of rows, and what it is to be given."""
        if self._is_precomputed:
            used = np.flatnonzero([info.status == "ok" for info in self.detector_info_])
            return _given_consensus, used, self.scaler_
        return _detected_consensus, self.detectors_, self.scaler_

    def _matching(self, X: Any) -> Any:
        """`X`, once it has been seen to have the columns of the fit."""
        check_collection(X)
        n_columns, names = X.shape[1], list(getattr(X, "columns", []))
        fitted = list(getattr(self, "feature_names_in_", []))
        if n_columns != self.n_features_in_:
            raise ValueError(f"X has {n_columns} columns, the fit had {self.n_features_in_}.")
        if names and fitted and names != fitted:
            raise ValueError(f"X must have the columns of the fit, in their order: {fitted}.")
        return X

    def to_frame(self) -> Any:
        """The training rows as a pandas DataFrame, with the index they came with.

        Columns: score (the consensus), probability, label, and score_NAME for each detector. After
        a fit on Dask, a lazy dask DataFrame.
        """
        if self._counts is None:
            return super().to_frame()
        self._check_rows_at_hand("to_frame")
        answers = (self.scaler_, self._ranks, self.posterior_, self.threshold_)
        return self._blocks.frame(block_frame, *answers, self.detector_names_)

    def to_parquet(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write the rows of `to_frame` to a folder of Parquet files, whole or not at all.

        After a fit on Dask; `progress` hears of each block. What exists is replaced only with
        `overwrite`, and is a FileExistsError otherwise.
        """
        check_is_fitted(self)
        if self._counts is None:
            raise NotImplementedError("to_parquet is for a fit on Dask: to_frame().to_parquet().")
        self._check_rows_at_hand("to_parquet")
        with tell(self.progress, self.verbose, "blocks", len(self._blocks.parts)) as progress:
            write_parquet(self.to_frame(), folder, overwrite, progress, self._blocks.client)

    def row_counts(self) -> tuple[int, int]:
        """How many training rows there are, and how many of them have the label 1."""
        return super().row_counts() if self._counts is None else self._counts

    def _check_rows_at_hand(self, question: str) -> None:
        """Refuse a `question` about rows that a copy left on the cluster."""
        if self._blocks is None:
            words = "a copy leaves them on the cluster: ask the estimator that was fitted"
            raise NotImplementedError(f"{question} needs the training rows, and {words}.")

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what lives on a cluster: the copy takes new rows, and has none itself."""
        state: dict[str, Any] = super().__getstate__()
        if self._blocks is None:
            return state
        return {name: value for name, value in state.items() if name not in OF_ROWS}


def _both_probabilities(scores: Array, ranks: RankTable, posterior: Any) -> Array:
    p_anomaly = probability_at(posterior, ranks.shares_at_least(scores))
    return np.column_stack([1.0 - p_anomaly, p_anomaly])


def _new_probabilities(
    rows: Array, ranks: RankTable, posterior: Any, function: Any, *told: Any
) -> Array:
    return _both_probabilities(function(rows, *told), ranks, posterior)


def _given_consensus(rows: Array, used: NDArray[np.intp], scaler: ScoreScaler) -> Array:
    return scaler.consensus(rows[:, used])


def _detected_consensus(rows: Array, detectors: dict[str, Any], scaler: ScoreScaler) -> Array:
    return scaler.consensus(score_rows(detectors, rows))
