"""Mixture -> active components, most anomalous first."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import MixtureError
from gammagmm.mixture.m_step import Parameters

__all__ = ["Components", "active_components", "expected_anomalousness", "order_components"]

Array = NDArray[np.float64]

# Nodes of the trapezoidal rule in t = sqrt(a) * log(g / a) for g ~ Gamma(a), a >= 1/2. The
# integrand is analytic and decays at least like exp(sqrt(a) * t) to the left, and faster than
# exponentially to the right.
_NODES = np.arange(-45.0, 12.0, 0.25)


@dataclass(frozen=True)
class Components:
    """Posterior of K mixture components over M detectors.

    Attributes
    ----------
    alpha : ndarray of shape (K,)
        Dirichlet parameters of the weights.
    means, covariances, mean_precision, degrees_of_freedom : ndarray
        Normal-Inverse-Wishart parameters, shapes (K, M), (K, M, M), (K,), (K,).
    anomalousness : ndarray of shape (K,)
        E[r], the representative value by which the components are ordered.
    """

    alpha: Array
    means: Array
    covariances: Array
    mean_precision: Array
    degrees_of_freedom: Array
    anomalousness: Array

    def __len__(self) -> int:
        return len(self.alpha)

    def __getitem__(self, index: NDArray[np.intp] | slice) -> Components:
        return Components(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @property
    def cumulative_alpha(self) -> Array:
        """A_k = alpha_1 + ... + alpha_k."""
        return np.cumsum(self.alpha)


def order_components(mixture: Parameters) -> Components:
    """The active components of the mixture, in order of decreasing E[r]."""
    components = active_components(mixture)
    return components[np.argsort(-components.anomalousness, kind="stable")]


def active_components(mixture: Parameters) -> Components:
    """Components with an expected number of members N_k of at least one.

    The mass of the inactive components is divided evenly among the active ones:
    alpha_k = 1 + N_k + sum over the inactive (1 + N_j) / (number of active), so that the alphas
    sum to N + K.
    """
    # Deviation D5: stick-breaking weights are generalised Dirichlet; the paper treats them as
    # Dirichlet.
    concentration = mixture.weight_concentration[0]
    active = concentration >= 2.0
    if not active.any():
        raise MixtureError(
            "Every component is expected to contain less than one row",
            "Fit fewer components than rows.",
        )
    alpha = concentration[active] + concentration[~active].sum() / active.sum()
    means, covariances = mixture.means[active], mixture.covariances[active]
    degrees_of_freedom = mixture.degrees_of_freedom[active]
    return Components(
        alpha=alpha,
        means=means,
        covariances=covariances,
        mean_precision=mixture.mean_precision[active],
        degrees_of_freedom=degrees_of_freedom,
        anomalousness=expected_anomalousness(means, covariances, degrees_of_freedom),
    )


def expected_anomalousness(means: Array, covariances: Array, degrees_of_freedom: Array) -> Array:
    """E[r_k], r = (1 / M) sum_j mu_j / (1 + sigma_j) (Equation 1), for K components.

    mu_j given Sigma has mean m_j, so E[r_k] is the mean over j of m_kj . E[1 / (1 + sigma_kj)] with
    sigma^2_kj ~ InverseGamma((nu_k - M + 1) / 2, nu_k . cov_kjj / 2).
    """
    n_detectors = means.shape[1]
    shape = 0.5 * (degrees_of_freedom - n_detectors + 1.0)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    scale = 0.5 * degrees_of_freedom[:, None] * variances
    return np.asarray((means * expected_shrinkage(shape[:, None], scale)).mean(axis=1))


def expected_shrinkage(shape: Array, scale: Array) -> Array:
    """E[1 / (1 + sigma)] for sigma^2 ~ InverseGamma(shape, scale), by quadrature in log g.

    sigma^2 = scale / g with g ~ Gamma(shape); the arguments broadcast.
    """
    log_ratio = _NODES / np.sqrt(shape)[..., None]  # log(g / shape)
    log_weight = shape[..., None] * (log_ratio - np.expm1(log_ratio))
    weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    sigma = np.sqrt((scale / shape)[..., None] * np.exp(-log_ratio))
    expectation: Array = (weight / (1.0 + sigma)).sum(axis=-1) / weight.sum(axis=-1)
    return expectation
