"""GammaGMM: the steps of the paper's algorithm in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.checks import as_generator, warn_user
from gammagmm._support.processes import Deadline
from gammagmm._support.progress import tell
from gammagmm.blocks.collection import is_blocks
from gammagmm.detectors.fit import FitSettings, FittedDetectors, fit_detectors, given_scores
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.detectors.usable import keep_usable, left_out_notes
from gammagmm.errors import Note
from gammagmm.estimator.blockwise import Blockwise
from gammagmm.estimator.frames import index_of
from gammagmm.estimator.parameters import check_parameters, fit_rows
from gammagmm.estimator.rollback import undone_on_failure
from gammagmm.estimator.unfinished import check_runs, check_time
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.gamma_posterior import combine_runs
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import (
    Run,
    RunSettings,
    describe_runs,
    fit_runs,
    plan_runs,
    solved_posteriors,
)

__all__ = ["GammaGMM"]

Array = NDArray[np.float64]
Labels = NDArray[np.int_]


class GammaGMM(Blockwise):
    """Posterior of the share of anomalies in unlabelled data, and labels by it.

    Implements gammaGMM (Perini, Bürkner, Klami: "Estimating the Contamination Factor's
    Distribution in Unsupervised Anomaly Detection", ICML 2023).

    Parameters
    ----------
    detectors : str, list or dict, default="classic"
        A preset ("classic", "paper" or "fast"), a list of names, PyOD or scikit-learn detectors, a
        dict from name to detector, or "precomputed": `X` is then the raw score matrix itself, one
        column a detector, higher for more anomalous. "paper" needs the extra ``deep``.
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
    max_fit_rows : "auto", int or None, default="auto"
        Most rows that a detector of superlinear cost (neighbours, kernels) is fitted on: a random
        subset, the other rows then being scored as new ones. "auto" is 20,000, None any number.
    detector_timeout : float, default=None
        Seconds after which a detector is given up and left out; each then has its own process.
    timeout : float, default=None
        Seconds for the whole fit. One that is not done by then ends with a `FitTimeoutError`, whose
        ``so_far`` has what was. Detectors then run in processes of their own, which are ended; a
        mixture's k-means and a pass on Dask are not interrupted.
    backend, device : str, default="numpy" and None
        Who fits the mixtures: "numpy" the processor's cores, "torch" PyTorch on `device` (None is
        CUDA where there is one).
    random_state : int, Generator, RandomState or None
        The one source of randomness; the same seed gives the same answer for any `n_jobs`.
    trust : float, default=0.1
        How far the fitted posterior is believed once labels are given: it makes up this share of
        what `update` starts from, and a broad Beta the rest.
    n_jobs : int, default=None
        Detectors and runs at work at the same time, as everywhere in joblib.
    progress : callable, default=None
        Called with a detector's name, "started" or its status, and its seconds; then with each run
        ("run 1", ...), its status and the seconds since the first began, and "started" once more
        where it is started anew.
    verbose : int, default=0
        1 shows progress bars (tqdm).

    Attributes
    ----------
    posterior_, fitted_posterior_ : GammaPosterior
        Posterior of the contamination factor, after the labels that `update` was given and before.
    contamination_ : Contamination
        Its mean, a float for PyOD's and scikit-learn's ``contamination``.
    scores_, score_space_ : ndarray of shape (n_rows, n_detectors)
        Raw scores of the training rows, and the same after logarithm and standardisation.
    decision_scores_, labels_ : ndarray of shape (n_rows,)
        Mean of the score space over detectors; 1 where it lies above `threshold_`, else 0, and the
        label of a known row.
    known_rows_ : KnownRows
        The rows, with their labels, that `update` was given.
    threshold_ : float
        The score that a share `contamination_` of the training rows exceeds; of those that are not
        known, what `contamination_` leaves for them.
    thresholds_ : dict
        Each detector's own raw-scale threshold at the estimate, by name.
    detectors_ : dict
        Fitted detectors by name; empty for precomputed scores.
    detector_names_ : list of str
        Names of the columns of `scores_`.
    detector_info_ : list of DetectorInfo
        Seconds, rows, status and reason of every detector, those left out included.
    index_ : pandas.Index or None
        Index of the DataFrame it was fitted on.
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
        max_fit_rows: int | str | None = "auto",
        detector_timeout: float | None = None,
        timeout: float | None = None,
        backend: str = "numpy",
        device: Any = None,
        random_state: Any = None,
        trust: float = 0.1,
        n_jobs: int | None = None,
        progress: Any = None,
        verbose: int = 0,
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
        self.max_fit_rows = max_fit_rows
        self.detector_timeout = detector_timeout
        self.timeout = timeout
        self.backend = backend
        self.device = device
        self.random_state = random_state
        self.trust = trust
        self.n_jobs = n_jobs
        self.progress = progress
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: Any = None) -> GammaGMM:
        """Score the rows of `X` (n_rows, n_features), fit the mixtures, derive the posterior.

        With ``detectors="precomputed"`` the columns of `X` are the raw scores; `y` is ignored. `X`
        may be a dask array or data frame: every detector is then fitted on a sample of
        `max_fit_rows` rows, and the rows and their scores stay where Dask has them.

        A fit that fails leaves the estimator as it was.
        """
        constraints, deadline = check_parameters(self), Deadline.after(self.timeout)
        with undone_on_failure(self):
            self._fit(X, constraints, deadline)
        return self

    def _fit(self, X: Any, constraints: Constraints, deadline: Deadline) -> None:
        """Set the fitted attributes, all of them."""
        fit_rows = self._fit_blocks if is_blocks(X) else self._fit_memory
        self.runs_ = fit_rows(X, constraints, deadline)
        self.posterior_ = self.fitted_posterior_ = combine_runs(solved_posteriors(self.runs_))
        self.known_rows_ = KnownRows.none()
        self._report_runs(constraints)
        self._set_threshold()
        self.index_ = None if is_blocks(X) else index_of(X)

    def _fit_memory(
        self, X: ArrayLike, constraints: Constraints, deadline: Deadline
    ) -> tuple[Run, ...]:
        """Scores, score space and runs of the rows of `X`, all of them in memory."""
        X = self._check_rows(X, reset=True)
        self._blocks = self._ranks = self._counts = None
        detector_rng, run_rng = as_generator(self.random_state).spawn(2)
        fitted = self._fit_scores(X, detector_rng, deadline)
        self.scores_ = fitted.scores
        self.scaler_ = fit_scaler(self.scores_)
        self.score_space_ = self.scaler_.transform(self.scores_)
        self.decision_scores_ = self.score_space_.mean(axis=1)
        settings = self._run_settings(constraints)
        budget = (self.n_runs, self.max_restarts)
        with tell(self.progress, self.verbose, "mixtures", self.n_runs) as progress:
            settings = replace(settings, progress=progress, deadline=deadline)
            runs = fit_runs(self.score_space_, settings, budget, run_rng, self.n_jobs)
        check_runs(deadline, fitted, budget, runs)
        return runs

    def fit_predict(self, X: ArrayLike, y: Any = None) -> Labels:
        """Labels of the training rows: 1 anomaly, 0 normal."""
        return self.fit(X).labels_

    def _fit_scores(
        self, X: Array, rng: np.random.Generator, deadline: Deadline
    ) -> FittedDetectors:
        """Raw scores of the training rows; who gave them goes into the fitted attributes."""
        notes: list[Note] = []
        if self._is_precomputed:
            fitted = given_scores(X, getattr(self, "feature_names_in_", None))
        else:
            limit = fit_rows(self.max_fit_rows)
            made, notes = resolve_detectors(self.detectors, len(X), limit)
            with tell(self.progress, self.verbose, "detectors", len(made)) as progress:
                limits = (limit, self.detector_timeout, self.n_jobs)
                settings = FitSettings(*limits, progress, deadline)
                fitted = fit_detectors(made, X, rng, settings)
            check_time(deadline, fitted, self.n_runs)
        usable = keep_usable(fitted)
        self.detectors_ = {} if self._is_precomputed else usable.detectors
        self.detector_names_ = list(usable.detectors)
        self.detector_info_ = usable.info
        self.notes_ = notes + left_out_notes(usable.info)
        return usable

    def _run_settings(self, constraints: Constraints) -> RunSettings:
        prior = self.mixture_prior or MixturePrior()
        settings, notes = plan_runs(
            self.score_space_, constraints, prior, self.n_components, **self._run_options()
        )
        self.notes_ += notes
        return settings

    def _report_runs(self, constraints: Constraints) -> None:
        for note, category in describe_runs(self.runs_, constraints, self.max_iter):
            self.notes_.append(note)
            if category is not None:
                warn_user(note.message, category)
