"""One detector's scores -> threshold and labels: the object that PyOD and PyThresh take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from gammagmm._support.checks import check_rows, time_type, warn_user
from gammagmm._support.data_frames import as_cells, as_column
from gammagmm.errors import NoSolutionWarning
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.posterior.contamination import Contamination
from gammagmm.posterior.decisions import cut_off, is_anomaly
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["GammaThreshold"]

Array = NDArray[np.float64]
Labels = NDArray[np.int_]


class GammaThreshold(BaseEstimator):
    """Threshold of one detector's scores at the contamination factor that gammaGMM estimates.

    PyOD takes it as a thresholder, ``KNN(contamination=GammaThreshold())``, and it has PyThresh's
    ``eval``. PyOD's IForest and LOF take only numbers: pass them the result of
    `estimate_contamination`, or a fitted estimator's ``contamination_``.

    Each detector needs its own object. PyOD passes scores without naming the detector, and the
    object holds the threshold of the scores it was fitted to last.

    The page "PyOD and PyThresh" of the documentation shows it in use.

    Parameters
    ----------
    source : GammaGMM or GammaPosterior or None, default=None
        Where the contamination factor comes from: the scores themselves, a fitted estimator, or a
        posterior. The scores of one detector often have no solution: then a `NoSolutionWarning` is
        raised and no row is an anomaly. An estimator fitted with several detectors is the better
        source. A clone shares the source.
    p0 : float, default=0.01
        Prior probability that there are no anomalies. This parameter and those below are as in
        `GammaGMM`, for ``source=None``.
    p_high : float, default=0.01
        Prior probability that the share of anomalies is at least `high_gamma`.
    high_gamma : float, default=0.15
        The share of anomalies that counts as high; 0 < high_gamma < max_gamma.
    max_gamma : float, default=0.25
        Bound on the expected total weight of the components that may be anomalous; at most 0.5.
    n_runs : int, default=10
        Number of variational runs from different starts, whose posteriors are averaged.
    max_restarts : "auto" or int, default="auto"
        Total number of new starts for runs that cannot meet `p_high`. "auto" means as many
        as there are runs, and 100 as long as no run has a solution.
    n_jobs : int or None, default=None
        Number of threads of the mixtures, as in joblib.
    random_state : int or Generator or RandomState or None, default=None
        The only source of randomness.

    Attributes
    ----------
    thresh_ : float
        An anomaly is a score strictly above it. It is on the scale of the scores and never 0,
        which PyOD would replace by the share of anomalies.
    labels_ : ndarray of shape (n_rows,)
        1 for an anomaly, 0 for a normal row.
    posterior_ : GammaPosterior
        The posterior of the contamination factor.
    contamination_ : Contamination
        Mean of the posterior.
    confidence_interval_ : list of two floats
        The ends of the posterior's `interval`. Without labels, this is a model range, which is
        rarely right.

    Examples
    --------
    >>> from pyod.models.knn import KNN
    >>> from gammagmm.datasets import load_demo
    >>> threshold = GammaThreshold(n_runs=2, random_state=0)
    >>> detector = KNN(contamination=threshold).fit(load_demo().X)
    >>> int(detector.labels_.sum()), round(float(threshold.contamination_), 3)
    (32, 0.086)
    """

    def __init__(
        self,
        source: GammaGMM | GammaPosterior | None = None,
        *,
        p0: float = 0.01,
        p_high: float = 0.01,
        high_gamma: float = 0.15,
        max_gamma: float = 0.25,
        n_runs: int = 10,
        max_restarts: int | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.source = source
        self.p0 = p0
        self.p_high = p_high
        self.high_gamma = high_gamma
        self.max_gamma = max_gamma
        self.n_runs = n_runs
        self.max_restarts = max_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, scores: ArrayLike, y: Any = None) -> GammaThreshold:
        """Find the threshold of the training scores.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Scores of one detector; a higher score is more anomalous.
        y : object, default=None
            Ignored.

        Returns
        -------
        GammaThreshold
            This object, fitted.
        """
        column = check_rows("scores", _as_column(scores)[:, None])[:, 0]
        posterior = self._find_posterior(column)
        if self.source is not None and posterior.is_degenerate:
            message = "The posterior of the source is the point mass at 0, so no row is flagged."
            warn_user(message, NoSolutionWarning)
        self.posterior_ = posterior
        self.contamination_ = Contamination(self.posterior_)
        self.confidence_interval_ = list(self.posterior_.interval())
        threshold = float(cut_off(column, self.contamination_))
        self.thresh_ = threshold or float(np.nextafter(0.0, 1.0))
        self.labels_ = is_anomaly(column, self.thresh_)
        return self

    def eval(self, scores: ArrayLike) -> Labels:
        """Labels of the training scores, after `fit`.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Scores of one detector; a higher score is more anomalous.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for an anomaly, 0 for a normal row.
        """
        return self.fit(scores).labels_

    def predict(self, scores: ArrayLike) -> Labels:
        """Labels of new scores, by the threshold of the last fit.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Scores of the same detector.

        Returns
        -------
        ndarray of shape (n_rows,)
            1 for a score above the threshold, 0 elsewhere.
        """
        check_is_fitted(self)
        column = _as_column(scores)
        if n_bad := int(np.isnan(column).sum()):
            raise ValueError(
                f"scores must be numbers, but {n_bad} of {len(column)} values are NaN."
            )
        return is_anomaly(column, self.thresh_)

    def __sklearn_clone__(self) -> GammaThreshold:
        """An unfitted copy that shares the fitted source."""
        own = self.get_params(deep=False)
        source = own.pop("source")
        return type(self)(source, **{name: clone(own[name], safe=False) for name in own})

    def _find_posterior(self, column: Array) -> GammaPosterior:
        if self.source is None:
            parameters = self.get_params(deep=False)
            del parameters["source"]
            return GammaGMM("precomputed", **parameters).fit(column[:, None]).posterior_
        if isinstance(self.source, GammaPosterior):
            return self.source
        if isinstance(self.source, GammaGMM):
            check_is_fitted(self.source)
            return self.source.posterior_
        raise TypeError(
            "source must be None, a fitted GammaGMM or a GammaPosterior, got "
            f"{type(self.source).__name__}."
        )


def _as_column(scores: ArrayLike) -> Array:
    """The scores as float64 of shape (n,); dates, texts and several columns are refused."""
    if hasattr(scores, "toarray"):
        raise TypeError("scores must be dense: pass scores.toarray().")
    if isinstance(scores, np.ma.MaskedArray) and np.ma.is_masked(scores):
        raise ValueError("scores has masked values, which are missing: leave their rows out.")
    values = as_column(scores)
    if values.dtype == object and values.ndim == 1:
        values = as_cells(values)
    if kind := time_type(values):
        raise TypeError(f"scores must be numbers, got the type {kind}.")
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"scores must be numbers: {error}.") from None
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(
            f"scores must have shape (n,), got {column.shape}. For the scores of several "
            'detectors, use GammaGMM("precomputed").'
        )
    return column
