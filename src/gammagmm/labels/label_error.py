"""Labels that may be wrong -> the share of anomalies, and how often labels are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln, logsumexp, xlog1py, xlogy

from gammagmm.labels.exact_interval import binomial_interval
from gammagmm.labels.known_rows import check_labels
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "NO_ERROR",
    "Agreement",
    "agreement",
    "check_label_error",
    "p_anomaly",
    "posterior_with_errors",
    "without_errors",
]

NO_ERROR = 0.0, 0.0
"""The two probabilities of labels that are right.

They are those that a normal row is called an anomaly, and that an anomaly is called normal.
"""

UNLIKELY = 1e-12
"""Parts of the posterior of a smaller weight are left out."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """How often two labels of the same rows agree, and how often labels are wrong then.

    If each label is wrong with the same probability e, independently, two labels differ with the
    probability 2 e (1 - e). Errors that both make are not seen.

    Attributes
    ----------
    n_rows : int
        Number of rows with two labels.
    n_agree : int
        Number of these rows whose labels are the same.
    label_error : float
        The probability e that a label is wrong, at most 0.5.
    low : float
        Lower end of the exact 90 % confidence interval of e.
    high : float
        Upper end of this interval.
    """

    n_rows: int
    n_agree: int
    label_error: float
    low: float
    high: float


def posterior_with_errors(
    n_drawn: int, n_found: int, prior: BetaMixture, error: tuple[float, float]
) -> GammaPosterior:
    """Posterior of the share if labels of random rows are wrong with known probabilities.

    `n_found` of `n_drawn` labels say "anomaly". `error` has the probability that a normal row is
    called an anomaly, and that an anomaly is called normal. The number t of true anomalies among
    the rows follows from theta, the share, and the labels from t:

        P(labels | theta) = sum over t of c_t theta^t (1 - theta)^(n_drawn - t),

    where c_t is the sum, over the choices of the t rows that are anomalies, of the probability of
    the labels. So each part Beta(a, b) of the prior becomes parts Beta(a + t, b + n_drawn - t). No
    row is known for sure, so the share is that of the rows from which the table was drawn. The
    interval starts at 0 where the exact one does: without anomalies, at least so many labels would
    say "anomaly" with a probability of 5 % or more.
    """
    n = n_drawn
    true = np.arange(n + 1)[:, None]
    a, b = prior.a + true, prior.b + n - true
    logs = _log_sums(n, n_found, error)[:, None] + betaln(a, b) - betaln(prior.a, prior.b)
    with np.errstate(divide="ignore"):
        logs = logs + np.log(prior.weights)
    weights = np.exp(logs - logsumexp(logs))
    kept = weights > UNLIKELY
    weights = weights[kept] / weights[kept].sum()
    betas = BetaMixture(weights, a[kept], b[kept])
    may_be_zero = n > 0 and bool(binomial_interval(n, n_found, 0.9)[0] <= error[0])
    return GammaPosterior(
        0.0, betas, standard_error=0.0, n_labels=n, is_model=False, may_be_zero=may_be_zero
    )


def check_label_error(label_error: Any) -> tuple[float, float]:
    """The two probabilities that a label is wrong, or a ValueError."""
    try:
        rates = np.atleast_1d(np.asarray(label_error, dtype=float))
    except (TypeError, ValueError):
        rates = np.full(1, np.nan)
    if rates.shape not in ((1,), (2,)) or not np.all((rates >= 0.0) & (rates < 0.5)):
        raise ValueError(
            "label_error must be a probability below 0.5, or two of them: that a normal row is "
            f"called an anomaly, and that an anomaly is called normal; got {label_error!r}."
        )
    return float(rates[0]), float(rates[-1])


def without_errors(share: float, error: tuple[float, float]) -> float:
    """The share of anomalies, if this share of the rows would be called anomalies."""
    false_alarm, miss = error
    return float(np.clip((share - false_alarm) / (1.0 - false_alarm - miss), 0.0, 1.0))


def p_anomaly(
    probability: NDArray[np.float64], labels: NDArray[np.int_], error: tuple[float, float]
) -> NDArray[np.float64]:
    """P(anomaly) of rows with labels, by Bayes' theorem; it was `probability` (n,) before."""
    false_alarm, miss = error
    is_called = labels == 1
    if_anomaly = probability * np.where(is_called, 1.0 - miss, miss)
    if_normal = (1.0 - probability) * np.where(is_called, false_alarm, 1.0 - false_alarm)
    total = if_anomaly + if_normal
    return np.asarray(np.divide(if_anomaly, total, where=total > 0.0, out=labels.astype(float)))


def agreement(first: ArrayLike, second: ArrayLike) -> Agreement:
    """How often two labels of the same rows agree, and how often labels are wrong then.

    >>> found = agreement([0, 0, 1, 0, 0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 1, 1, 0, 0, 0, 0])
    >>> round(found.label_error, 3)
    0.053
    """
    one, other = check_labels(first), check_labels(second)
    if len(one) != len(other) or not len(one):
        raise ValueError("The two labels must be those of the same rows, of at least one.")
    n, n_agree = len(one), int((one == other).sum())
    low, high = binomial_interval(n, n - n_agree)
    differing = np.array([1.0 - n_agree / n, float(low), float(high)])
    rates = 0.5 * (1.0 - np.sqrt(np.maximum(1.0 - 2.0 * differing, 0.0)))
    return Agreement(n, n_agree, *rates.tolist())


def _log_sums(n: int, s: int, error: tuple[float, float]) -> Array:
    """Log of c_t for t = 0, ..., n, if `s` of `n` labels say "anomaly".

    If theta were the share, c_t theta^t (1 - theta)^(n - t) / P(labels | theta) would be the
    probability of t anomalies: those among the rows that are called anomalies, and those among the
    others, both binomial. It underflows where t is far from what theta expects. So several theta
    are tried; c_t is a sum, of which underflow loses parts, so the largest is right.
    """
    false_alarm, miss = error
    true = np.arange(n + 1.0)
    found = np.full(n + 1, -np.inf)
    n_tried = 1 + int(np.sqrt(n) / 16.0)
    # So close to one another that at most e^-300 is reached halfway between two of them.
    for theta in np.sin(0.5 * np.pi * (np.arange(n_tried) + 0.5) / n_tried) ** 2:
        p_called, p_other = p_anomaly(np.full(2, theta), np.array([1, 0]), error)
        first, called = _binomial(s, p_called)
        first_other, others = _binomial(n - s, p_other)
        place = first + first_other + np.arange(len(called) + len(others) - 1)
        called_anomaly = theta * (1.0 - miss) + (1.0 - theta) * false_alarm
        log_p_labels = xlogy(s, called_anomaly) + xlog1py(n - s, -called_anomaly)
        p_true = np.convolve(called, others)
        p_true[p_true < np.finfo(float).tiny] = 0.0  # these may have been rounded up
        with np.errstate(divide="ignore"):
            logs = np.log(p_true) + log_p_labels
        logs -= xlogy(true, theta)[place] + xlog1py(n - true, -theta)[place]
        found[place] = np.maximum(found[place], logs)
    return found


def _binomial(n: int, p: float) -> tuple[int, Array]:
    """The first number that has a probability above 0, and the probabilities from there on."""
    k = np.arange(n + 1.0)
    log_choose = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    probabilities = np.exp(log_choose + xlogy(k, p) + xlog1py(n - k, -p))
    possible = np.flatnonzero(probabilities > np.finfo(float).tiny)
    return int(possible[0]), probabilities[possible[0] : possible[-1] + 1]
