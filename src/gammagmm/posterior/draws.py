"""Ordered components + link -> conditional probabilities, averaged over draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.posterior.components import Components
from gammagmm.posterior.link import Link, conditional_probabilities

__all__ = ["AveragedConditionals", "anomalousness", "average_conditionals", "draw_parameters"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AveragedConditionals:
    """q_k = E[P(c_k | c_k-1)] over draws of (mu_k, Sigma_k), and the variance of each q_k."""

    mean: Array
    error_variance: Array


def average_conditionals(
    components: Components, link: Link, n_draws: int, rng: np.random.Generator
) -> AveragedConditionals:
    """q_k of the first K' components, each from its own `n_draws` draws of (mu_k, Sigma_k)."""
    candidates = components[slice(0, link.n_candidates)]
    r = anomalousness(*draw_parameters(candidates, n_draws, rng))
    conditionals = conditional_probabilities(r, link.tau, link.delta)
    variance = conditionals.var(axis=1, ddof=1) if n_draws > 1 else np.full(len(candidates), np.nan)
    return AveragedConditionals(conditionals.mean(axis=1), variance / n_draws)


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
    # Deviation D4: the published script draws Sigma from a Wishart, mu with covariance I / lambda.
    scale = components.degrees_of_freedom[:, None, None] * components.covariances
    inverse = _inverse_lower(_bartlett(components, n_draws, rng))
    factor = np.linalg.cholesky(scale)[:, None] @ np.swapaxes(inverse, -1, -2)
    z = rng.standard_normal((*factor.shape[:-1], 1))
    spread = (factor @ z)[..., 0] / np.sqrt(components.mean_precision)[:, None, None]
    return components.means[:, None] + spread, np.square(factor).sum(axis=-1)


def _bartlett(components: Components, n_draws: int, rng: np.random.Generator) -> Array:
    """Lower-triangular factors A of standard Wishart draws A A', shape (K, n_draws, M, M)."""
    n_components, n_detectors = components.means.shape
    lower = np.tril(rng.standard_normal((n_components, n_draws, n_detectors, n_detectors)), -1)
    freedom = components.degrees_of_freedom[:, None] - np.arange(n_detectors)
    chi = np.sqrt(rng.chisquare(freedom[:, None], (n_components, n_draws, n_detectors)))
    diagonal = np.arange(n_detectors)
    lower[..., diagonal, diagonal] = chi
    return np.asarray(lower)


def _inverse_lower(lower: Array) -> Array:
    """Inverse of lower-triangular matrices (..., M, M), row by row for all of them at once."""
    inverse = np.zeros_like(lower)
    for i in range(lower.shape[-1]):
        row = -(lower[..., i, None, :i] @ inverse[..., :i, :])[..., 0, :]
        row[..., i] = 1.0
        inverse[..., i, :] = row / lower[..., i, i, None]
    return inverse
