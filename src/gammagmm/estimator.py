"""GammaGMM: the steps of the paper's algorithm in turn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gammagmm._checks import (
    as_generator,
    check_count,
    check_positive,
    check_probability,
    explain_rows,
)
from gammagmm.backends import check_backend
from gammagmm.detectors import fit_detectors, given_scores, score_rows
from gammagmm.errors import Note
from gammagmm.link import Constraints
from gammagmm.posterior import Contamination, combine_runs
from gammagmm.presets import resolve_detectors
from gammagmm.prior import MixturePrior
from gammagmm.runs import RunSettings, describe_runs, fit_runs, plan_runs, solved_posteriors
from gammagmm.scores import fit_scaler, keep_usable
from gammagmm.threshold import anomaly_probability, cost_cut, cut_off, is_anomaly

__all__ = ["GammaGMM"]

Array = NDArray[np.float64]
Labels = NDArray[np.int_]


class GammaGMM(BaseEstimator):
    """Posterior of the share of anomalies in unlabelled data, and labels by it.

    Implements gammaGMM (Perini, Bürkner, Klami: "Estimating the Contamination Factor's
    Distribution in Unsupervised Anomaly Detection", ICML 2023).

    Parameters
    ----------
    detectors : str, list or dict, default="classic"
        A preset ("classic" or "fast"), a list of names, PyOD or scikit-learn detectors, a dict from
        name to detector, or "precomputed": `X` is then the raw score matrix itself, one column a
        detector, higher for more anomalous.
    p0 : float, default=0.01
        How likely it is that there are no anomalies.
    p_high : float, default=0.01
        How likely it is that the share of anomalies is at least `high_gamma`.
    high_gamma, max_gamma : float, default=0.15 and 0.25
        What counts as a large share, and the bound on the expected weight of the components that
        may be anomalous; 0 < high_gamma < max_gamma <= 0.5.
    n_components : int, default=100
        Truncation of the mixture; one less than the rows where the rows are fewer.
    n_runs : int, default=10
        Variational runs, from different starts, whose posteriors are averaged.
    n_draws : int, default=1000
        Draws of each component's mean and covariance.
    max_restarts : int, default=100
        New starts, in all, for runs that cannot meet `p_high`.
    mixture_prior : MixturePrior, default=None
        Prior of the mixture; None is ``MixturePrior()``.
    max_iter, tol : int and float, default=1500 and 1e-3
        A run stops when its bound changes by less than `tol`, or after `max_iter` iterations.
    backend, device : str, default="numpy" and None
        Who fits the mixtures: "numpy" the processor's cores, "torch" PyTorch on `device` (None is
        CUDA where there is one).
    random_state : int, Generator, RandomState or None
        The one source of randomness; the same seed gives the same answer for any `n_jobs`.
    n_jobs : int, default=None
        Detectors and runs at work at the same time, as everywhere in joblib.

    Attributes
    ----------
    posterior_ : GammaPosterior
        Posterior of the contamination factor.
    contamination_ : Contamination
        Its mean, a float for PyOD's and scikit-learn's ``contamination``.
    scores_, score_space_ : ndarray of shape (n_rows, n_detectors)
        Raw scores of the training rows, and the same after logarithm and standardisation.
    decision_scores_, labels_ : ndarray of shape (n_rows,)
        Mean of the score space over detectors; 1 where it lies above `threshold_`, else 0.
    threshold_ : float
        The score that a share `contamination_` of the training rows exceeds.
    thresholds_ : dict
        Each detector's own raw-scale threshold at the estimate, by name.
    detectors_ : dict
        Fitted detectors by name; empty for precomputed scores.
    detector_names_ : list of str
        Names of the columns of `scores_`.
    detector_info_ : list of DetectorInfo
        Seconds, rows, status and reason of every detector, those left out included.
    runs_ : tuple of Run
        The variational runs.
    notes_ : list of Note
        Everything that was changed, left out or approximated on the way.

    Examples
    --------
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(load_demo().X)
    >>> estimator.posterior_
    GammaPosterior(mean=0.086, 90% interval 0.054 to 0.122)
    """

    def __init__(
        self,
        detectors: Any = "classic",
        *,
        p0: float = 0.01,
        p_high: float = 0.01,
        high_gamma: float = 0.15,
        max_gamma: float = 0.25,
        n_components: int = 100,
        n_runs: int = 10,
        n_draws: int = 1000,
        max_restarts: int = 100,
        mixture_prior: MixturePrior | None = None,
        max_iter: int = 1500,
        tol: float = 1e-3,
        backend: str = "numpy",
        device: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.detectors = detectors
        self.p0 = p0
        self.p_high = p_high
        self.high_gamma = high_gamma
        self.max_gamma = max_gamma
        self.n_components = n_components
        self.n_runs = n_runs
        self.n_draws = n_draws
        self.max_restarts = max_restarts
        self.mixture_prior = mixture_prior
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: Any = None) -> GammaGMM:
        """Score the rows of `X` (n_rows, n_features), fit the mixtures, derive the posterior.

        With ``detectors="precomputed"`` the columns of `X` are the raw scores; `y` is ignored.
        """
        constraints = self._check_parameters()
        X = self._check_rows(X, reset=True)
        detector_rng, run_rng = as_generator(self.random_state).spawn(2)
        self.scores_ = self._fit_scores(X, detector_rng)
        self.scaler_ = fit_scaler(self.scores_)
        self.score_space_ = self.scaler_.transform(self.scores_)
        settings = self._run_settings(constraints)
        budget = (self.n_runs, self.max_restarts)
        self.runs_ = fit_runs(self.score_space_, settings, budget, run_rng, self.n_jobs)
        self.posterior_ = combine_runs(solved_posteriors(self.runs_))
        self._report_runs(constraints)
        self._set_threshold()
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None) -> Labels:
        """Labels of the training rows: 1 anomaly, 0 normal."""
        return self.fit(X).labels_

    def decision_function(self, X: ArrayLike) -> Array:
        """Consensus score of each row: the mean over detectors of its place in score space.

        The training rows' minimum, mean and deviation are used; lower scores are clipped to that
        minimum.
        """
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        return self.scaler_.transform(self._raw_scores(X)).mean(axis=1)

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

    def _check_parameters(self) -> Constraints:
        for name, minimum in (("n_components", 1), ("n_runs", 1), ("n_draws", 2)):
            check_count(name, getattr(self, name), minimum)
        check_count("max_restarts", self.max_restarts, 0)
        check_count("max_iter", self.max_iter, 1)
        check_positive("tol", self.tol)
        check_backend(self.backend, self.device)
        if not isinstance(self.mixture_prior, MixturePrior | None):
            raise TypeError(
                f"mixture_prior must be a MixturePrior or None, got {self.mixture_prior!r}."
            )
        return Constraints(self.p0, self.p_high, self.high_gamma, self.max_gamma)

    def _check_rows(self, X: ArrayLike, *, reset: bool) -> Array:
        try:
            rows: Array = validate_data(
                self, X, reset=reset, dtype=np.float64, ensure_min_samples=2 if reset else 1
            )
        except (TypeError, ValueError) as error:
            raise explain_rows(X, error) from error
        return rows

    def _fit_scores(self, X: Array, rng: np.random.Generator) -> Array:
        """Raw scores of the training rows; who gave them goes into the fitted attributes."""
        if self._is_precomputed:
            notes: list[Note] = []
            fitted = given_scores(X, getattr(self, "feature_names_in_", None))
        else:
            made, notes = resolve_detectors(self.detectors, *X.shape)
            fitted = fit_detectors(made, X, rng, self.n_jobs)
        usable = keep_usable(fitted)
        self.detectors_ = {} if self._is_precomputed else usable.detectors
        self.detector_names_ = list(usable.detectors)
        self.detector_info_ = usable.info
        self.notes_ = notes + [
            Note("detectors", info.name, f"left out: {info.reason}")
            for info in usable.info
            if info.status != "ok"
        ]
        return usable.scores

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.detectors, str) and self.detectors == "precomputed"

    def _raw_scores(self, X: Array) -> Array:
        if not self._is_precomputed:
            return score_rows(self.detectors_, X)
        return X[:, [info.status == "ok" for info in self.detector_info_]]

    def _run_settings(self, constraints: Constraints) -> RunSettings:
        options = {
            name: getattr(self, name)
            for name in ("n_draws", "max_iter", "tol", "backend", "device")
        }
        prior = self.mixture_prior or MixturePrior()
        settings, notes = plan_runs(
            self.score_space_, constraints, prior, self.n_components, **options
        )
        self.notes_ += notes
        return settings

    def _set_threshold(self) -> None:
        """Cut the consensus, and each detector's own scores, at the posterior mean."""
        self.contamination_ = Contamination(self.posterior_)
        self.decision_scores_ = self.score_space_.mean(axis=1)
        self.threshold_ = float(cut_off(self.decision_scores_, self.contamination_))
        self.labels_ = is_anomaly(self.decision_scores_, self.threshold_)
        own = cut_off(self.scores_, self.contamination_)
        self.thresholds_ = dict(zip(self.detector_names_, own.tolist(), strict=True))

    def _report_runs(self, constraints: Constraints) -> None:
        for note, category in describe_runs(self.runs_, constraints, self.max_iter):
            self.notes_.append(note)
            if category is not None:
                warnings.warn(note.message, category, stacklevel=3)
