"""Ordered components + the user's two answers -> P(component k is anomalous)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaincc, expit, logit

from gammagmm._support.checks import check_probability
from gammagmm.posterior.components import Components

__all__ = [
    "AveragedConditionals",
    "Constraints",
    "Link",
    "anomalousness",
    "average_conditionals",
    "conditional_probabilities",
    "count_candidates",
    "draw_parameters",
    "n_anomalous_pmf",
    "solve_link",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constraints:
    """The user's answers to the paper's two questions, and the two shares that they refer to.

    Attributes
    ----------
    p0 : float, default=0.01
        Probability that there are no anomalies.
    p_high : float, default=0.01
        Probability that the share of anomalies is at least `high_gamma`.
    high_gamma : float, default=0.15
        The share that counts as large, the paper's t.
    max_gamma : float, default=0.25
        Components can be anomalous only while their expected total weight is below this.
    """

    p0: float = 0.01
    p_high: float = 0.01
    high_gamma: float = 0.15
    max_gamma: float = 0.25

    def __post_init__(self) -> None:
        for name in ("p0", "p_high", "high_gamma", "max_gamma"):
            check_probability(name, getattr(self, name))
        if not self.high_gamma < self.max_gamma <= 0.5:
            raise ValueError(
                "high_gamma and max_gamma must satisfy 0 < high_gamma < max_gamma <= 0.5, got "
                f"high_gamma={self.high_gamma!r} and max_gamma={self.max_gamma!r}."
            )


@dataclass(frozen=True)
class Link:
    """The sigmoid P(c_k | c_k-1) = 1 / (1 + exp(tau + delta . r_k)), and whether it is a solution.

    Attributes
    ----------
    tau, delta : float
        Parameters of the sigmoid; NaN if there is no solution.
    status : "solved" or "slack" or "unsolved"
        "slack": `p_high` is above the `reachable` range, so that the constraint does not bind and
        delta is 0. "unsolved": `p_high` is below the range, or no component is a candidate.
    n_candidates : int
        The paper's K': how many of the most anomalous components have an expected total weight
        below `max_gamma`.
    reachable : tuple of two floats
        The smallest and the largest P(gamma >= high_gamma) over delta <= 0.
    """

    tau: float
    delta: float
    status: Literal["solved", "slack", "unsolved"]
    n_candidates: int
    reachable: tuple[float, float]


def solve_link(components: Components, constraints: Constraints) -> Link:
    """Tau and delta at which both of the user's answers hold at the representative values E[r].

    The first answer gives tau = logit(p0) - delta . r_1. P(gamma >= high_gamma) then increases with
    delta <= 0, and a bracketed root makes it equal to p_high.
    """
    n_candidates = count_candidates(components, constraints.max_gamma)
    prob_high = _prob_high_function(components, max(n_candidates, 1), constraints)
    reachable = prob_high(-np.inf), prob_high(0.0)
    if n_candidates == 0 or constraints.p_high < reachable[0]:
        return Link(np.nan, np.nan, "unsolved", n_candidates, reachable)
    # Deviation D8: the paper does not discuss a p_high that the mixture cannot reach.
    is_slack = constraints.p_high > reachable[1]
    # Deviation D7: a bracketed root; the paper uses least squares.
    delta = 0.0 if is_slack else _solve_delta(prob_high, constraints.p_high)
    tau = float(logit(constraints.p0) - delta * components.anomalousness[0])
    return Link(tau, delta, "slack" if is_slack else "solved", n_candidates, reachable)


def count_candidates(components: Components, max_gamma: float) -> int:
    """K': how many of the first components have an expected total weight below `max_gamma`."""
    # Deviation D10: the published script discards draws of gamma above 0.25 instead.
    cumulative = components.cumulative_alpha
    return int(np.searchsorted(cumulative / cumulative[-1], max_gamma, side="left"))


def _prob_high_function(
    components: Components, n_first: int, constraints: Constraints
) -> Callable[[float], float]:
    """P(gamma >= high_gamma) as a function of delta, with tau such that P(c_1) = 1 - p0."""
    gaps = components.anomalousness[:n_first] - components.anomalousness[0]
    at_top = float(logit(constraints.p0))
    # P(pi_1 + ... + pi_k >= high_gamma) for k = 1..n_first, from the Beta distribution of each sum.
    # All components together have b = 0, for which SciPy before 1.16 returns NaN.
    cumulative = components.cumulative_alpha
    a, b = cumulative[:n_first], cumulative[-1] - cumulative[:n_first]
    tails = np.where(b > 0.0, betaincc(a, b, constraints.high_gamma), 1.0)

    def prob_high(delta: float) -> float:
        # Only gaps below 0 are multiplied: at delta = -inf a component that ties with the first
        # keeps the first one's probability.
        slope = np.multiply(delta, gaps, out=np.zeros_like(gaps), where=gaps < 0.0)
        return float(n_anomalous_pmf(expit(-(at_top + slope)))[1:] @ tails)

    return prob_high


def _solve_delta(prob_high: Callable[[float], float], p_high: float) -> float:
    """The delta <= 0 at which the increasing function `prob_high` equals `p_high`."""
    low = -1.0
    while prob_high(low) > p_high:
        low *= 2.0
    xtol = 1e-15 * abs(low)
    return float(brentq(lambda delta: prob_high(delta) - p_high, low, 0.0, xtol=xtol, rtol=1e-15))


def n_anomalous_pmf(p_anomalous: Array) -> Array:
    """P(exactly the k most anomalous components are anomalous) (Equation 3), k = 0..K.

    >>> n_anomalous_pmf(np.array([0.5, 0.5])).tolist()
    [0.5, 0.25, 0.25]
    """
    return np.append(1.0, np.cumprod(p_anomalous)) * np.append(1.0 - p_anomalous, 1.0)


@dataclass(frozen=True)
class AveragedConditionals:
    """q_k = E[P(c_k | c_k-1)] over draws of (mu_k, Sigma_k), and its Monte Carlo variance."""

    mean: Array
    error_variance: Array


def average_conditionals(
    components: Components, link: Link, n_draws: int, rng: np.random.Generator
) -> AveragedConditionals:
    """q_k of the first K' components, each from `n_draws` draws of its (mu_k, Sigma_k)."""
    candidates = components[slice(0, link.n_candidates)]
    r = anomalousness(*draw_parameters(candidates, n_draws, rng))
    conditionals = conditional_probabilities(r, link.tau, link.delta)
    variance = conditionals.var(axis=1, ddof=1) if n_draws > 1 else np.full(len(candidates), np.nan)
    return AveragedConditionals(conditionals.mean(axis=1), variance / n_draws)


def conditional_probabilities(r: Array, tau: float, delta: float) -> Array:
    """P(c_k | c_k-1) = 1 / (1 + exp(tau + delta . r_k)) (Equation 2), of the shape of `r`."""
    return np.asarray(expit(-(tau + delta * r)))


def anomalousness(means: Array, variances: Array) -> Array:
    """R = mean over detectors of mu / (1 + sigma) (Equation 1); the last axis is averaged out."""
    return np.asarray((means / (1.0 + np.sqrt(variances))).mean(axis=-1))


def draw_parameters(
    components: Components, n_draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draws of mu and of the diagonal of Sigma, each of shape (K, n_draws, M).

    Sigma = B B' with B = C A^-T, C the Cholesky factor of the scale matrix nu . cov and A the
    Bartlett factor of a standard Wishart with nu degrees of freedom; mu = m + B z / sqrt(lambda).
    """
    # Deviation D4: the published script draws Sigma from a Wishart distribution, and mu with
    # covariance I / lambda.
    scale = components.degrees_of_freedom[:, None, None] * components.covariances
    bartlett = _bartlett(components, n_draws, rng)
    z = rng.standard_normal(bartlett.shape[:-1])
    means, variances = np.empty_like(z), np.empty_like(z)
    for k, upper in enumerate(np.linalg.cholesky(scale).swapaxes(1, 2)):
        # Draws last, so that every operation runs along them.
        solved = _solve_lower(np.ascontiguousarray(bartlett[k].transpose(1, 2, 0)), upper)  # B'
        spread = np.einsum("imn,ni->nm", solved, z[k]) / np.sqrt(components.mean_precision[k])
        means[k] = components.means[k] + spread
        variances[k] = np.square(solved).sum(axis=0).T
    return means, variances


def _bartlett(components: Components, n_draws: int, rng: np.random.Generator) -> Array:
    """Lower-triangular factors A of standard Wishart draws A A', shape (K, n_draws, M, M).

    Entries above the diagonal mean nothing.
    """
    n_components, n_detectors = components.means.shape
    lower = rng.standard_normal((n_components, n_draws, n_detectors, n_detectors))
    freedom = components.degrees_of_freedom[:, None] - np.arange(n_detectors)
    chi = np.sqrt(rng.chisquare(freedom[:, None], (n_components, n_draws, n_detectors)))
    diagonal = np.arange(n_detectors)
    lower[..., diagonal, diagonal] = chi
    return np.asarray(lower)


def _solve_lower(lower: Array, right: Array) -> Array:
    """X with A X = `right` (M, M) for each of n lower-triangular A: shape (M, M, n).

    `lower` (M, M, n) holds the matrices A; entries above their diagonals are not used.
    """
    solved = np.empty_like(lower)
    for i, row in enumerate(lower):
        known = np.einsum("jn,jmn->mn", row[:i], solved[:i])
        np.divide(right[i][:, None] - known, row[i], out=solved[i])
    return solved
