"""Ranks and labels of rows -> the calibrated probability that each row is an anomaly.

With q, the share of the training rows that score at least as high as a row, and z = Phi^-1(1 - q)::

    P(anomaly) = expit(a + b z)

The slope b says how good the ranking is: 0 for a random one, large for a perfect one. Its prior
comes from labelled real tables (`ReferenceSlopes`), and the labels of rows that were chosen blindly
give its likelihood. For each slope, the intercept a is solved so that the probabilities of the rows
that are left add up to the expected number of anomalies among them. The probability is the average
over the slopes, so it has the same sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, logsumexp, ndtri

from gammagmm.posterior.decisions import RankTable, new_row_ranks

__all__ = ["Calibration", "calibrate", "log_likelihoods", "normal_scores", "solve_intercepts"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """The probability of a row by its score, as a mixture of S logistic curves.

    `ranks` turns scores into q; `slopes`, `intercepts` and `weights` (S,) are those of the curves.
    """

    ranks: RankTable
    slopes: Array
    intercepts: Array
    weights: Array

    # Deviation D18: the quantity of the posterior is `LabelledRows.rank_probability`.
    def __call__(self, scores: Array) -> Array:
        """P(anomaly) for each of `scores` (n,), which may repeat."""
        shares, place = np.unique(self.ranks.shares_at_least(scores), return_inverse=True)
        z, probability = -ndtri(shares), np.zeros(len(shares))
        curves = zip(self.slopes, self.intercepts, self.weights, strict=True)
        for slope, intercept, weight in curves:
            probability += weight * expit(intercept + slope * z)
        return np.minimum(probability, 1.0)[place]


def calibrate(
    training: Array,
    left: Array,
    share: float,
    known: tuple[Array, NDArray[np.int_]],
    prior: tuple[Array, Array],
    error: tuple[float, float] = (0.0, 0.0),
) -> Calibration:
    """The calibration whose probabilities have the mean `share` over the rows that are left.

    `training` (n,) are the scores among which a row is ranked, and `left` (m,) those of the rows
    that are left. `known` are scores and labels of rows that were chosen blindly, and `prior` has
    the slopes and their weights. `error` has the probability that a normal row is labelled an
    anomaly, and that an anomaly is labelled normal.
    """
    ranks, (slopes, weights) = new_row_ranks(training), prior
    intercepts = solve_intercepts(normal_scores(ranks, left), slopes, share)
    if 0.0 < share < 1.0:
        z, labels = normal_scores(ranks, known[0]), known[1]
        fitting = log_likelihoods(z, labels, slopes, intercepts, error)
        with np.errstate(divide="ignore"):
            logs = np.log(weights) + fitting
        weights = np.exp(logs - logsumexp(logs))
    return Calibration(ranks, slopes, intercepts, weights)


def normal_scores(ranks: RankTable, scores: Array) -> Array:
    """Z (n,) of rows with these `scores`."""
    return np.asarray(-ndtri(ranks.shares_at_least(scores)))


def solve_intercepts(z: Array, slopes: Array, share: float) -> Array:
    """The intercept (S,) for each slope at which the probabilities of the rows have this mean.

    A share of 0 or 1 has the intercepts -inf or inf.
    """
    start = float(logit(share))
    if not np.isfinite(start):
        return np.full(len(slopes), start)
    distinct, counts = np.unique(z, return_counts=True)
    frequencies = counts / len(z)

    def excess(intercept: float, slope: float) -> float:
        return float(frequencies @ expit(intercept + slope * distinct)) - share

    # The row with the largest z has at least the mean probability, that with the smallest at most.
    ends = [(start - b * distinct[-1] - 1.0, start - b * distinct[0] + 1.0) for b in slopes]
    pairs = zip(slopes, ends, strict=True)
    return np.array([brentq(excess, low, high, args=(slope,)) for slope, (low, high) in pairs])


def log_likelihoods(
    z: Array,
    labels: NDArray[np.int_],
    slopes: Array,
    intercepts: Array,
    error: tuple[float, float] = (0.0, 0.0),
) -> Array:
    """Log-likelihood (S,) of the labels (n,) of rows with these `z` (n,) under each curve."""
    logits = intercepts[:, None] + slopes[:, None] * z
    is_called = labels == 1
    false_alarm, miss = error
    if_anomaly = np.where(is_called, 1.0 - miss, miss)
    if_normal = np.where(is_called, false_alarm, 1.0 - false_alarm)
    with np.errstate(divide="ignore"):
        terms = log_expit(logits) + np.log(if_anomaly), log_expit(-logits) + np.log(if_normal)
    return np.asarray(np.logaddexp(*terms).sum(axis=1))
