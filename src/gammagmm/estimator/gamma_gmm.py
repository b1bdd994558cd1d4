"""GammaGMM: the steps of the paper's algorithm in turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gammagmm._support.checks import check_count
from gammagmm._support.data_frames import as_column
from gammagmm.distributed.collection import in_memory, is_collection
from gammagmm.errors import SavedFileError
from gammagmm.estimator.cost import expected_seconds
from gammagmm.estimator.fit_result import Fit, complete_fit
from gammagmm.estimator.parameters import Plan, check_parameters
from gammagmm.estimator.rows import map_new_rows, open_rows, period_table
from gammagmm.estimator.saved_fit import read_fit, save_fit
from gammagmm.estimator.space import fit_space_runs, score_space, score_training_rows
from gammagmm.estimator.summary import FitSummary, summarise
from gammagmm.labels.known_rows import Purpose
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.mixture.prior import MixturePrior
from gammagmm.monitoring.counts import ScoredRows
from gammagmm.monitoring.history import History
from gammagmm.posterior.contamination import Contamination
from gammagmm.posterior.decisions import cost_cut, is_anomaly
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.table.table import Table

__all__ = ["GammaGMM"]

Array = NDArray[np.float64]


class GammaGMM(BaseEstimator):
    """Estimate the posterior of the share of anomalies in unlabelled data, and label the rows.

    Implements gammaGMM (Perini, Bürkner, Klami: "Estimating the Contamination Factor's
    Distribution in Unsupervised Anomaly Detection", ICML 2023).

    The pages "Five minutes" and "The method" of the documentation introduce it.

    Parameters
    ----------
    detectors : str or list or dict, default="classic"
        A preset ("classic", "paper" or "fast"), a list of names, PyOD or scikit-learn detectors, a
        dict from name to detector, or "precomputed": `X` is then the raw score matrix, with one
        column for each detector and higher scores for more anomalous rows. "paper" needs the extra
        ``deep``.
    scale : "standard" or "robust" or None, default="standard"
        How the columns are scaled for the detectors, which makes the result independent of their
        units. "standard" gives each column mean 0 and standard deviation 1. "robust" uses the
        median and the interquartile range / 1.349, or the standard deviation where that range is
        0. Both use the figures of the training rows, for new rows too, and leave constant columns
        out. None passes `X` to the detectors as it is, as the paper does. Precomputed scores are
        never scaled.
    learn : bool, default=True
        Whether the labels that `update` is given change the ranking of the rows too, and with it
        `decision_scores_`, `labels_`, the probabilities and `predict`. The posterior of the share
        is the same either way.
    label_error : float or tuple of two floats, default=0.0
        Probability that a label is wrong, below 0.5. Two numbers are those that a normal row is
        called an anomaly, and that an anomaly is called normal. Two labels of each row show how
        often labels are wrong, see the page "Labels for the ranking, groups and batches". With it,
        the share is that of the rows from which the labelled random rows were drawn.
    p0 : float, default=0.01
        Prior probability that there are no anomalies.
    p_high : float, default=0.01
        Prior probability that the share of anomalies is at least `high_gamma`.
    high_gamma : float, default=0.15
        The share of anomalies that counts as high; 0 < high_gamma < max_gamma.
    max_gamma : float, default=0.25
        Bound on the expected total weight of the components that may be anomalous; at most 0.5.
    n_components : int, default=100
        Number of components at which the mixture is truncated. With fewer rows it is the number of
        rows less one.
    n_runs : int, default=10
        Number of variational runs from different starts, whose posteriors are averaged.
    n_draws : int, default=1000
        Number of draws of each component's mean and covariance.
    max_restarts : "auto" or int, default="auto"
        Total number of new starts for runs that cannot meet `p_high`. "auto" means as many
        as there are runs, and 100 as long as no run has a solution.
    mixture_prior : MixturePrior or None, default=None
        Prior of the mixture; None means ``MixturePrior()``.
    max_iter : int, default=1500
        A run stops after this number of iterations.
    tol : "auto" or float, default="auto"
        A run stops when its bound changes by less than this. "auto" makes accelerated steps and
        stops after two changes below 0.4 in a row. A number makes plain steps, as scikit-learn
        does, and stops at the first change below it.
    max_rows : int or None, default=200000
        Most rows of a Dask collection that are loaded into memory: a larger one is sampled
        uniformly, and the sample is fitted as a table in memory is. None means any number. Tables
        in memory are never sampled as a whole.
    max_fit_rows : "auto" or int or None, default="auto"
        Most rows that a slow detector (neighbours, kernels) trains on. With more rows it trains on
        a random sample and scores the other rows as new ones. "auto" means 20,000, or fewer, but
        at least 5,000, if the detector would take longer than about 2.5 seconds; LSCP is skipped
        of a preset if it would. A number or None (any number of rows) leaves out no detector.
    max_mixture_rows : "auto" or int or None, default="auto"
        Most rows that one variational run is fitted to, each run to its own random rows. "auto"
        means 5,000, None any number. Scores, thresholds and labels always use all rows.
    detector_timeout : float, default=None
        Seconds after which a detector is skipped; each detector then has its own process.
    timeout : float, default=None
        Seconds for the whole fit. The detectors have half of them: those that take longer are
        skipped with a `DetectorWarning`, once two have finished (one if there is one). The rest of
        the time is for the mixtures: runs that take longer do not enter the posterior, and `notes_`
        says how many. Without two detectors, or a run with a solution, the fit raises a
        `FitTimeoutError`, which names the detectors it waited for; its ``so_far`` holds what is
        finished. Detectors then run in their own processes, which are killed; a k-means and the
        sampling of a Dask collection are not interrupted.
    device : str or torch.device, default=None
        Where the mixtures are fitted: None means NumPy on the processor's cores, and "cuda" or
        another device of PyTorch means there.
    random_state : int or Generator or RandomState or None, default=None
        The only source of randomness. The same seed gives the same answer for any `n_jobs`.
    n_jobs : int, default=None
        Number of detectors that work at the same time, as in joblib; on tables of at most two
        million values, those of the presets work in threads, without worker processes. The
        mixtures use as many threads, or as many as BLAS if that is more.
    progress : bool or callable, default=False
        True shows one bar for the whole fit, in a terminal on standard error or in a notebook, with
        the time left if the fit is expected to take more than ten seconds; where there is neither,
        it writes a line for each step to standard error. A function is called as
        ``progress(subject, state, seconds)``: with each detector's name, "started" and later its
        status; then with each run ("run 1", ...) and its status. A run that is restarted is
        reported as "started", and again with its status.
    columns : dict or None, default=None
        What the named columns of a data frame are: ``{"id": name}`` has the names of the rows,
        ``{"truth": name}`` known labels, which the method does not use, and ``{"drop": [names]}``
        leaves columns out; names may be patterns such as "x_*". Columns that look like ids, codes,
        known labels or dates, and columns with one value, are not used, which a `ColumnsWarning`
        says of the former; ``{"use": [names]}`` keeps them, and ``{"dates": "encode"}`` turns dates
        into numbers. ``{"missing_codes": [-1]}`` has values that count as missing; by default,
        numbers of nines such as -999 do if they repeat and are far from all others. New rows have
        the same columns; those that are not used may be absent. The columns of arrays are used as
        they are.
    strict : bool or None, default=None
        Whether missing values, columns of text and columns that cannot be used are rejected. By
        default (None), they are rejected in arrays, as in scikit-learn, and not in data frames.
        Where they are not rejected, missing values (NaN, None, ``pandas.NA``) in numbers are filled
        with the median of the column and are a text of their own in texts, and a column of text
        becomes a column of 0 and 1 for each text of the training rows but the most frequent one.
        Columns that cannot be used, such as those with more than 20 texts, are not used; `notes_`
        says which. New rows get the figures of the training rows. For another text in new rows, all
        of these columns are 0, with a `NewRowsWarning`.

    Attributes
    ----------
    fit_ : Fit
        Everything that was found, as one frozen value; the attributes below are parts of it. It
        also has the variational runs, the score space and what is known of the detectors.
    posterior_ : GammaPosterior
        Posterior of the contamination factor, with the labels that `update` was given.
    evidence_ : Evidence
        What speaks for and against the estimate without labels: rows that are separate from the
        rest, the estimate under other answers to the two questions, how many starts had no
        solution, and the method's track record.
    contamination_ : Contamination
        Mean of the posterior, a float for PyOD's and scikit-learn's ``contamination``.
    scores_ : ndarray of shape (n_rows, n_detectors)
        Raw scores of the training rows.
    decision_scores_ : ndarray of shape (n_rows,)
        Score of each training row by the ranking in use: the consensus, which is the mean of the
        score space over the detectors, or a blend of it with what the labels taught. The learned
        score of a known row knows its label: leave known rows out of an evaluation.
    labels_ : ndarray of shape (n_rows,)
        1 for the training rows at the top of the ranking, else 0. A known row has its own label,
        and the other rows are cut at the share that is left for them.
    labelled_rows_ : LabelledRows
        The training rows with the labels that `update` was given. It answers the questions about
        labels: `exact_interval`, `interval_at_any_look`, `expected_width`, `n_for_width`, `left`,
        `certify`, `precision_at`, `n_for_precision`, `threshold_at`, `labels_at`, `by_group`,
        `posterior_if` and `agreement`.
    known_rows_ : KnownRows
        The rows, with their labels, that `update` was given.
    threshold_ : float
        The score above which `predict` flags a new row. A share `contamination_` of the training
        rows exceeds it. Known rows count as well, each ranked without its own label; rows that
        `update` was given with ``at_random=False`` do not.
    thresholds_ : dict
        Each detector's raw-scale threshold at the estimate, by name.
    detectors_ : mapping
        Fitted detectors by name; empty for precomputed scores. Those of a loaded fit are made when
        they are first asked for. They take rows that are scaled:
        ``fit_.column_scaler.transform(rows)``.
    n_features_in_ : int
        Number of columns of the training rows.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of these columns, if all of them are texts.
    n_iter_ : int
        Number of iterations of the longest run.
    classes_ : ndarray of shape (2,)
        The labels, 0 and 1, in the order of the columns of `predict_proba`.
    notes_ : list of Note
        Everything that was changed, skipped or approximated.

    Examples
    --------
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> estimator = estimator.fit(load_demo().X)
    >>> estimator.posterior_
    GammaPosterior(mean=0.102, model range 0.076 to 0.129)
    """

    def __init__(
        self,
        detectors: Any = "classic",
        *,
        scale: str | None = "standard",
        learn: bool = True,
        label_error: float | tuple[float, float] = 0.0,
        p0: float = 0.01,
        p_high: float = 0.01,
        high_gamma: float = 0.15,
        max_gamma: float = 0.25,
        n_components: int = 100,
        n_runs: int = 10,
        n_draws: int = 1000,
        max_restarts: int | str = "auto",
        mixture_prior: MixturePrior | None = None,
        max_iter: int = 1500,
        tol: float | str = "auto",
        max_rows: int | None = 200_000,
        max_fit_rows: int | str | None = "auto",
        max_mixture_rows: int | str | None = "auto",
        detector_timeout: float | None = None,
        timeout: float | None = None,
        device: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: Any = False,
        columns: Any = None,
        strict: bool | None = None,
    ) -> None:
        self.detectors = detectors
        self.scale = scale
        self.learn = learn
        self.label_error = label_error
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
        self.max_rows = max_rows
        self.max_fit_rows = max_fit_rows
        self.max_mixture_rows = max_mixture_rows
        self.detector_timeout = detector_timeout
        self.timeout = timeout
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.columns = columns
        self.strict = strict

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may pass to `fit`, and that its scorers may use the scores."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "outlier_detector"
        is_answered = self.strict is not None and not self.strict
        tags.input_tags.allow_nan = tags.input_tags.string = is_answered
        return tags

    def fit(self, X: ArrayLike, y: Any = None) -> GammaGMM:
        """Score the rows of `X`, fit the mixtures and derive the posterior.

        A fit that fails leaves the estimator as it was.

        The page "Detectors" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows without labels: an array, or a data frame of any kind that Narwhals knows, among
            them pandas, polars, pyarrow, Modin and cuDF. Lazy frames of polars and relations of
            DuckDB are collected into memory. With ``detectors="precomputed"``, the columns are the
            raw scores of the detectors. Of a dask array or data frame with more than `max_rows`
            rows, a uniform sample is fitted. Attributes such as `labels_` and `scores_` are then
            those of the sample; `predict`, `to_frame` and the other methods that take `X` map the
            fit over all parts of the collection.
        y : object, default=None
            Ignored.

        Returns
        -------
        GammaGMM
            This estimator, fitted.

        Raises
        ------
        DetectorError
            Too few detectors gave usable scores.
        FitTimeoutError
            The fit took longer than `timeout`, and too little is finished for a result.
        """
        plan = check_parameters(self.get_params(deep=False))
        return self._fit_table(open_rows(X, self, plan), plan)

    def _fit_table(self, table: Table, plan: Plan) -> GammaGMM:
        """Fit rows that are prepared, with the checked parameters."""
        with plan.tell(expected_seconds(plan, *table.values.shape)) as progress:
            fitted, column_scaler, notes = score_training_rows(table, plan, progress)
            space, scaler = score_space(fitted.scores)
            runs, more = fit_space_runs(space, fitted, plan, progress)
        notes += more
        return self._keep(
            complete_fit(plan, table, fitted, column_scaler, space, scaler, runs, notes)
        )

    def _keep(self, fit: Fit) -> GammaGMM:
        """Set all fitted attributes; no other method sets one."""
        self.fit_ = fit
        self.n_features_in_ = fit.preparation.n_columns
        if fit.preparation.columns is not None:
            self.feature_names_in_ = np.array(fit.preparation.columns, dtype=object)
        else:  # those of an earlier fit
            self.__dict__.pop("feature_names_in_", None)
        self.classes_ = np.array([0, 1])
        self.detectors_ = {} if fit.plan.is_precomputed else fit.detectors
        self.scores_ = fit.scores
        self.decision_scores_ = fit.decision_scores
        self.n_iter_ = max(run.n_iter for run in fit.runs)
        self.posterior_ = fit.posterior
        self.known_rows_ = fit.known_rows
        self.labelled_rows_ = fit.labelled_rows
        self.evidence_ = fit.evidence
        self.contamination_ = Contamination(fit.posterior)
        self.threshold_ = fit.threshold
        self.thresholds_ = fit.thresholds
        self.labels_ = fit.labels
        self.notes_ = list(fit.notes)
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None) -> Any:
        """Labels of the training rows, which are `labels_`.

        ``fit(X).predict(X)`` may differ, because `predict` scores the rows as new ones: KNN and
        LOF, for example, then count each row as its own nearest neighbour. Rows whose scores tie
        with `threshold_` may change sides by rounding alone. For training rows, use these labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows without labels, as in `fit`.
        y : object, default=None
            Ignored.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for an anomaly, 0 for a normal row.
        """
        return self.fit(X).labels_

    def decision_function(self, X: ArrayLike) -> Any:
        """Score of each row by the ranking in use, which is the consensus or learned from labels.

        The consensus is the mean over detectors of a row's scores in score space. Scores are
        standardised with the training rows' minimum, mean and deviation. Scores outside the range
        of the training rows' scores are clipped to it, so that no detector decides alone.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, with the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores; a higher score is more anomalous. A dask collection gives a lazy dask array.
        """
        check_is_fitted(self)
        return map_new_rows(X, self.fit_.preparation, self.fit_.answering.scores)

    def predict(self, X: ArrayLike, costs: tuple[float, float] | None = None) -> Any:
        """Labels of new rows.

        For the training rows, use `labels_` or `fit_predict`. This method scores every row as a new
        one, so it may label training rows differently, see `fit_predict`.

        A `NewRowsWarning` says that the rows may have been prepared differently: it is raised if
        significantly more than three times `contamination_` of them are flagged, by a binomial
        test at the level 0.001. There is no warning with `costs`, which may ask for many flagged
        rows, and none for a dask collection.

        The page "New rows, costs and reasons" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, with the columns of the training rows.
        costs : tuple of two floats, default=None
            The costs (false_alarm, miss). Rows whose probability exceeds false_alarm / (false_alarm
            + miss) are then anomalies, see `predict_proba`. None means rows above `threshold_`, the
            cut at the posterior mean.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for an anomaly, 0 for a normal row. A dask collection gives a lazy dask array.
        """
        if costs is not None:
            return is_anomaly(self.predict_proba(X)[:, 1], cost_cut(costs))
        labels: Any = is_anomaly(self.decision_function(X), self.fit_.threshold)
        if isinstance(labels, np.ndarray):
            self.fit_.check_flagged(int(labels.sum()), len(labels))
        return labels

    def predict_proba(self, X: ArrayLike) -> Any:
        """Calibrated probabilities of normal and anomaly.

        The second column is the probability that the row is an anomaly, by its rank among the
        training rows. It is calibrated on labelled real tables, and after `update` by the labels:
        those of rows that were chosen at random show how good the ranking is. The probabilities of
        the training rows, ``fit_.probability``, add up to the expected number of anomalies: with
        labels that of `posterior_`, and without labels that of ``GammaPosterior.reference()``,
        because the rows alone do not show the share. So the number of rows that `predict` flags
        without labels, which follows from `posterior_`, differs from that sum.

        ``labelled_rows_.rank_probability`` has P(gamma > share of training rows scored at least as
        high), which is the probability of an anomaly if the ranking is right.

        The page "New rows, costs and reasons" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, with the columns of the training rows.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            Probability of normal, and of anomaly. A dask collection gives a lazy dask array.
        """
        check_is_fitted(self)
        return map_new_rows(X, self.fit_.preparation, self.fit_.answering.probabilities, 2)

    def suggest(
        self,
        n: int = 30,
        *,
        purpose: Purpose = "share",
        spread: bool = True,
        by: ArrayLike | None = None,
        random_state: Any = None,
    ) -> NDArray[np.int_]:
        """Positions of training rows to label, ordered so that you can stop after any row.

        The page "Labelling a few rows" of the documentation shows it in use.

        Parameters
        ----------
        n : int, default=30
            Number of rows.
        purpose : "share" or "find", default="share"
            "share" spreads the rows evenly over the ranking from a random start, which is better
            than a simple random sample if the detectors are good, and as good if they are not. Rows
            that `update` was given are skipped, except those with the purpose "find", without
            which the sample would be biased: pass the labels of such rows again. "find" gives the
            first rows of the ranking. Label some rows with the purpose "share" before that: the
            ranking learns from them, and only they can show the share. The consensus of the
            detectors is tried beside a ranking that was learned, and followed once it finds more.
        spread : bool, default=True
            Pass False for simple random rows in a random order, without regard to the ranking:
            ``labelled_rows_.interval_at_any_look`` is proved for these. Only for the purpose
            "share", without groups.
        by : array-like of shape (n_rows,), default=None
            Groups of the rows, for example a column of the table: each group then has rows in
            proportion to its size, and `n` must be large enough for one row of each. Only for the
            purpose "share".
        random_state : int or Generator or RandomState or None, default=None
            Chooses the random start of the purpose "share", and the order of rows with the same
            score.

        Returns
        -------
        ndarray of shape (n,)
            Positions of rows, from 0; those of a large table on Dask are positions in the table.

        Raises
        ------
        ValueError
            There are fewer than `n` rows to choose from, or `n` is too small for the groups.
        """
        check_is_fitted(self)
        rows = self.fit_.labelled_rows
        if purpose == "find" and by is None and spread:
            check_count("n", n, 1)
            n_left = self.fit_.sample.n_rows - len(self.fit_.known)
            if n > n_left:
                raise ValueError(
                    f"n must be at most {n_left}, the number of rows without a label, got {n}."
                )
            return self.fit_.rows_to_find(n, random_state)
        return rows.suggest(n, purpose=purpose, spread=spread, by=by, random_state=random_state)

    def update(
        self,
        rows: ArrayLike,
        labels: ArrayLike,
        *,
        at_random: bool = True,
        purpose: Purpose = "share",
    ) -> GammaPosterior:
        """Replace the posterior by one from the labels of some training rows.

        Labels accumulate: the order of the calls does not matter, and one call with all labels
        gives the same result, except that a label replaces an earlier one of the same row, with a
        note. A row of "find" whose label is corrected stays one. `posterior_`, `contamination_`,
        the thresholds, `labels_` and the probabilities change; known rows keep their label, and
        the others are ranked and cut among themselves.

        The share among the other rows has the distribution of the share in labelled real tables
        (`GammaPosterior.reference`) as its prior, with a part Beta(1, 1) of 10 %, and the labels
        have a binomial likelihood. The mixtures are not used.

        With ``learn=True``, the ranking of the rows is learned from all labels as well, see
        ``fit_.learning``. It moves scores, labels and probabilities, not the posterior.

        The page "Labelling a few rows" of the documentation shows it in use.

        Parameters
        ----------
        rows : array-like of shape (n,)
            Positions of training rows, from 0.
        labels : array-like of shape (n,)
            1 for an anomaly, 0 for a normal row.
        at_random : bool, default=True
            Pass False for rows that were not chosen blindly, such as known incidents and flagged
            rows that were reviewed: they count as themselves and do not say anything about other
            rows, because treating them as a sample would bias the estimate. Pass such a list
            completely, with rows that `suggest` has chosen as well.
        purpose : "share" or "find", default="share"
            Pass "find" for rows that ``suggest(purpose="find")`` has chosen; `at_random` does not
            matter then.

        Returns
        -------
        GammaPosterior
            The new `posterior_`.

        Raises
        ------
        ValueError
            A row is given twice with both labels, or does not exist.
        TableError
            A row of a large table is neither in the sample nor can it be read from the table.
        """
        check_is_fitted(self)
        fit = self.fit_.update(rows, labels, at_random=at_random, purpose=purpose)
        return self._keep(fit).posterior_

    def label(
        self,
        n: int = 30,
        *,
        purpose: Purpose = "share",
        person: str = "",
        random_state: Any = None,
    ) -> Any:
        """A widget for notebooks that shows one training row after the other, to be labelled.

        Every answer is a label of this estimator at once, as if `update` had been called with all
        answers. The widget works in Jupyter, VS Code and marimo, and needs the extra ``notebook``.

        The page "Labelling a few rows" of the documentation shows it in use.

        Parameters
        ----------
        n : int, default=30
            Number of rows; a button adds more.
        purpose : "share" or "find", default="share"
            What rows are asked for at first, see `suggest`. Rows for the share are in simple random
            order.
        person : str, default=""
            Name of the person who answers, if several people do.
        random_state : int or Generator or RandomState or None, default=None
            Chooses the rows for the share.

        Returns
        -------
        anywidget.AnyWidget
            The widget.

        Raises
        ------
        MissingExtraError
            anywidget is not installed.
        """
        from gammagmm.report.label_widget import label_widget

        check_is_fitted(self)
        return label_widget(self, n, purpose, person, random_state)

    def batch(self, X: ArrayLike) -> LabelledRows:
        """New rows, scored by the fitted detectors, whose own share labels can show.

        The page "Labels for the ranking, groups and batches" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, with the columns of the training rows.

        Returns
        -------
        LabelledRows
            The rows of `X` with their scores. It has the same methods as the estimator (`suggest`,
            `expected_width`, `exact_interval`, ...) for these rows, and its `update` returns a new
            value. Labels of the training rows are not used, because the share may have changed.
        """
        scores = in_memory(self.decision_function(X))
        return LabelledRows(scores, label_error=self.fit_.plan.label_error)

    def monitor(
        self,
        X: ArrayLike,
        periods: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        history: History | None = None,
        *,
        name: str | None = None,
        alpha: float | None = None,
        replace: bool = False,
        labels: ArrayLike | None = None,
    ) -> History:
        """Count the new rows above the threshold, and say whether their share has changed.

        The result speaks of rows above `threshold_`, not of the share of anomalies, which only
        labels show.

        The page "Monitoring new rows" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            New rows, with the columns of the training rows.
        periods : array-like of shape (n_rows,), default=None
            The period of each row. Periods are added in sorted order, so name them in the order of
            time, for example 2026-03-01. None means that all rows are one period. Of days, those
            between that have no rows are added as well if they are not the majority.
        groups : array-like of shape (n_rows,), default=None
            The group of each row; each group has its own tests.
        history : History, default=None
            The earlier periods; None starts a new history.
        name : str, default=None
            Name of the period if `periods` is None; None means its number.
        alpha : float, default=None
            Probability of a false alarm in 100 periods. None means that of the `history`, or 0.05
            for a new one. It cannot change within a history.
        replace : bool, default=False
            Whether the new counts replace those of the same rows or periods.
        labels : array-like of shape (n_rows,), default=None
            1 for an anomaly, 0 for a normal row, and NaN for a row without a label. The labelled
            rows of a period must have been chosen at random.

        Returns
        -------
        History
            The `history` with these rows added.

        Raises
        ------
        HistoryError
            The rows were counted already, a period exists, or the history belongs to another fit.
        """
        check_is_fitted(self)
        fit = self.fit_
        score = fit.answering.scores_and_digests
        if is_collection(X):
            rows, n_gaps = None, None
            found = in_memory(map_new_rows(X, fit.preparation, score, 2))
        else:
            table = period_table(X, fit.preparation)
            rows, n_gaps = table.values, table.n_gaps
            found = score(rows) if len(rows) else np.empty((0, 2))
        scores, digests = np.asarray(found, dtype=np.float64).T
        return fit.monitor(
            ScoredRows(scores, digests, n_gaps),
            in_memory(periods),
            in_memory(groups),
            history,
            name=name,
            alpha=alpha,
            replace=replace,
            rows=rows,
            labels=in_memory(labels),
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the posterior.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        check_is_fitted(self)
        return self.posterior_.plot(ax)

    def report(
        self,
        path: Any,
        *,
        by: ArrayLike | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a report: a single HTML file for readers without Python.

        The page "Reports" of the documentation shows it in use.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.
        by : array-like of shape (n_rows,), default=None
            The group of each training row; with it, the report shows the groups of `by_group`.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Raises
        ------
        FileExistsError
            The file exists and `overwrite` is False.
        """
        from gammagmm.report.page import write_report

        check_is_fitted(self)
        fit = self.fit_ if by is None else self.fit_.grouped(as_column(by))
        write_report(fit, path, overwrite)

    def to_frame(self, X: Any = None) -> Any:
        """The answers for rows as a data frame of the kind that the rows came in.

        The page "Data frames" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), default=None
            New rows; None means the training rows. For a Dask collection, the answers are lazy;
            `to_frame` of the collection that was fitted has the answers of the fit for the training
            rows, and scores the others as new rows.

        Returns
        -------
        DataFrame
            Columns: score (of the ranking in use), probability, label, and score_NAME for each
            detector. It is of the package of the rows and has their index, if they have one.
            Arrays and loaded fits give a pandas DataFrame, relations of DuckDB a pyarrow table, and
            Dask collections a lazy dask DataFrame.
        """
        check_is_fitted(self)
        return self.fit_.frame() if X is None else self.fit_.frame_of(X)

    def reasons(self, X: ArrayLike | None = None) -> Any:
        """In which columns each row is unusual, in words.

        These are at most three columns whose value lies outside the usual range of the training
        rows, the farthest first. They describe the row and not how the detectors work.

        The page "New rows, costs and reasons" of the documentation shows it in use.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), default=None
            New rows; None means the training rows.

        Returns
        -------
        list of str
            A text for each row, such as "amount 5,400 is far above the usual 20 to 80". It is empty
            if there is no such column: the detectors also see unusual combinations of usual values.
            A Dask collection gives a lazy dask Series.
        """
        check_is_fitted(self)
        return self.fit_.reasons(X)

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the fit to a file: training rows, detectors, scores, posterior and labels.

        The file has no pickles, and `load` executes nothing in it. Detectors that are your own
        objects are named, but not saved; a `SavedFitWarning` says so.

        The page "Saving a fit" of the documentation shows it in use.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Raises
        ------
        FileExistsError
            The file exists and `overwrite` is False.
        SaveError
            The fit cannot be saved.
        """
        check_is_fitted(self)
        save_fit(self.fit_, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: Any, *, detectors: Mapping[str, Any] | None = None) -> GammaGMM:
        """The estimator whose fit `save` or ``gammagmm estimate --save`` wrote; nothing is fitted.

        If other versions of the packages wrote the file, some training rows are scored again. A
        detector that then gives other scores, beyond rounding, is named in a `SavedFitWarning` and
        in ``notes_``. `random_state` is None if it was not a number, and `progress` is False.

        The page "Saving a fit" of the documentation shows it in use.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file.
        detectors : dict, default=None
            Your own fitted detectors, which the file only names, by these names. Without them,
            scoring new rows raises a `DetectorError`.

        Returns
        -------
        GammaGMM
            The fitted estimator.

        Raises
        ------
        SavedFileError
            The file is damaged, or `save` did not write it.
        DetectorError
            One of `detectors` is not fitted, or the file does not name it.
        """
        loaded = read_fit(path)
        if unknown := sorted(set(loaded.parameters) - set(cls._get_param_names())):
            raise SavedFileError(
                f"{path} has parameters that {cls.__name__} does not have: {', '.join(unknown)}",
                "Fit the rows again.",
            )
        fit, parameters = loaded.checked(detectors), loaded.parameters
        if detectors:
            parameters["detectors"] = parameters["detectors"] | dict(detectors)
        return cls(**parameters)._keep(fit)

    def summary(self) -> FitSummary:
        """What the fit found and how, as plain values for JSON.

        The page "Saving a fit" of the documentation shows it in use.

        Returns
        -------
        FitSummary
            Parameters, posterior, thresholds, detectors, runs, notes and versions; the rows, their
            scores and the fitted detectors are not in it.
        """
        check_is_fitted(self)
        return summarise(self.fit_)

    def _repr_html_inner(self) -> str:
        """The answer after a fit, and scikit-learn's diagram of the parameters before it."""
        if hasattr(self, "fit_"):
            from gammagmm.report.notebook import answer_html

            return answer_html(self.fit_)
        return str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows; no HTML if scikit-learn is set to show text."""
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return shown | {"text/html": self._repr_html_inner()} if "text/html" in shown else shown
