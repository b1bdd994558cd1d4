"""What a fitted estimator answers: scores, labels, probabilities, decisions, pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gammagmm._support.checks import check_probability, check_table, explain_rows
from gammagmm.detectors.fit import score_rows
from gammagmm.estimator.frames import row_frame
from gammagmm.estimator.summary import FitSummary, summarise
from gammagmm.posterior.decisions import anomaly_probability, cost_cut, cut_off, is_anomaly

__all__ = ["Answers"]

Array = NDArray[np.float64]
Labels = NDArray[np.int_]


class Answers(BaseEstimator):
    """The questions that a fitted `GammaGMM` takes; what it was fitted to are its attributes."""

    # Set by `GammaGMM`, in __init__ and in fit.
    detectors: Any
    detectors_: dict[str, Any]
    detector_info_: list[Any]
    scaler_: Any
    posterior_: Any
    decision_scores_: Array
    threshold_: float
    labels_: Labels

    def decision_function(self, X: ArrayLike) -> Array:
        """Consensus score of each row: the mean over detectors of its place in score space.

        The training rows' minimum, mean and deviation are used; lower scores are clipped to that
        minimum.
        """
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        return self.scaler_.consensus(self._raw_scores(X))

    def predict(self, X: ArrayLike, costs: tuple[float, float] | None = None) -> Labels:
        """Labels of the rows of `X`: 1 anomaly, 0 normal.

        Without `costs` the rows above `threshold_`, the cut at the posterior mean. With `costs` =
        (false_alarm, miss) the rows whose probability exceeds false_alarm / (false_alarm + miss);
        equal costs cut at the posterior median.
        """
        if costs is None:
            return is_anomaly(self.decision_function(X), self.threshold_)
        return is_anomaly(self.predict_proba(X)[:, 1], cost_cut(costs))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of normal and anomaly, shape (n_rows, 2).

        The second column is P(gamma > share of training rows scored at least as high): the
        posterior probability that the row lies inside the anomalous share *if the consensus
        ranking is right*.
        """
        scores = self.decision_function(X)
        p_anomaly = anomaly_probability(self.posterior_, scores, self.decision_scores_)
        return np.column_stack([1.0 - p_anomaly, p_anomaly])

    def labels_at(self, gamma: float) -> Labels:
        """Labels of the training rows if the share of anomalies were `gamma`."""
        check_is_fitted(self)
        check_probability("gamma", gamma)
        return is_anomaly(self.decision_scores_, cut_off(self.decision_scores_, gamma))

    def plot(self, ax: Any = None) -> Any:
        """Draw the posterior; returns the axes."""
        check_is_fitted(self)
        return self.posterior_.plot(ax)

    def plot_steps(self, axes: Any = None) -> Any:
        """Draw the four steps of the paper's Figure 1; returns the four axes."""
        from gammagmm.report.plots import plot_steps

        self._check_rows_here("plot_steps")
        return plot_steps(self, axes)

    def report(self, path: Any, X: ArrayLike | None = None, *, overwrite: bool = False) -> None:
        """Write a report to `path`: one HTML file that needs no other, for a reader without Python.

        With `X`, the training rows, it says in which columns the most anomalous rows stand out. An
        existing file is replaced only with `overwrite`, and is a FileExistsError otherwise.
        """
        from gammagmm.report.page import write_report

        self._check_rows_here("report")
        write_report(self, path, self._training_rows(X), overwrite=overwrite)

    def _check_rows_here(self, question: str) -> None:
        """Refuse a `question` that needs the training rows in memory where they are not."""
        check_is_fitted(self)
        if not isinstance(getattr(self, "decision_scores_", None), np.ndarray):
            raise NotImplementedError(
                f"{question} needs the training rows in memory, and they are in blocks on Dask: "
                "fit on a sample of them for that."
            )

    def _training_rows(self, X: ArrayLike | None) -> Array | None:
        """`X` checked against the rows that were fitted."""
        if X is None:
            return None
        rows = self._check_rows(X, reset=False)
        if len(rows) != len(self.decision_scores_):
            raise ValueError(
                f"X must hold the {len(self.decision_scores_)} training rows, got {len(rows)}."
            )
        return rows

    def to_frame(self) -> Any:
        """The training rows as a pandas DataFrame, with the index they came with.

        Columns: score (the consensus), probability, label, and score_NAME for each detector.
        """
        check_is_fitted(self)
        return row_frame(self)

    def row_counts(self) -> tuple[int, int]:
        """How many training rows there are, and how many of them have the label 1."""
        check_is_fitted(self)
        return len(self.labels_), int(self.labels_.sum())

    def summary(self) -> FitSummary:
        """What the fit found and how, as plain values that can be saved as JSON.

        Parameters, posterior, thresholds, detectors, runs, notes and versions; the rows, their
        scores and the fitted detectors are not in it.
        """
        check_is_fitted(self)
        return summarise(self)

    def _check_rows(self, X: ArrayLike, *, reset: bool) -> Array:
        check_table(X)
        n_needed = 2 if reset else 1
        try:
            # scikit-learn adds all cells up to see whether one is infinite.
            with np.errstate(invalid="ignore"):
                rows: Array = validate_data(
                    self, X, reset=reset, dtype=np.float64, ensure_min_samples=n_needed
                )
        except (TypeError, ValueError) as error:
            raise explain_rows(X, error) from error
        return rows

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.detectors, str) and self.detectors == "precomputed"

    def _raw_scores(self, X: Array) -> Array:
        if not self._is_precomputed:
            return score_rows(self.detectors_, X)
        return X[:, [info.status == "ok" for info in self.detector_info_]]
