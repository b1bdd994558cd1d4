"""Score space -> truncated Dirichlet-process Gaussian mixture, by variational inference.

With phi(s) = [1, s, s_i s_j for i <= j], the expected log density of every component is linear in
phi(s), so the E-step is softmax(phi(s) . W) and the M-step needs only the responsibilities' moments
R' . phi(s). Both add over blocks of rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from gammagmm._checks import as_generator, check_count, check_positive
from gammagmm.errors import MixtureConvergenceWarning
from gammagmm.prior import MixturePrior, ResolvedPrior

__all__ = [
    "Mixture",
    "Parameters",
    "State",
    "Statistics",
    "ascend",
    "block_statistics",
    "fit_mixture",
    "start_labels",
    "start_statistics",
    "update",
]

Array = NDArray[np.float64]

BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Statistics:
    """What the M-step needs of a block of rows; blocks add.

    Attributes
    ----------
    moments : ndarray of shape (n_components, n_features)
        Responsibilities times phi(s), summed over the rows.
    entropy : float
        -sum of r log r over rows and components.
    """

    moments: Array
    entropy: float

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(self.moments + other.moments, self.entropy + other.entropy)


@dataclass(frozen=True)
class Parameters:
    """Variational parameters of the K components over M detectors.

    ``weight_concentration`` (2, K) holds the Beta parameters of the sticks; component k has
    Sigma ~ InverseWishart(nu_k, nu_k . covariances_k) and mu given Sigma ~ N(means_k, Sigma /
    mean_precision_k), nu being ``degrees_of_freedom``.
    """

    weight_concentration: Array
    means: Array
    covariances: Array
    mean_precision: Array
    degrees_of_freedom: Array


@dataclass(frozen=True)
class Mixture(Parameters):
    """Fitted parameters with the bound that was reached and how."""

    elbo: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class State:
    """One step of the coordinate ascent: parameters, their linear form and the bound."""

    parameters: Parameters
    coefficients: Array  # (K, n_features): expected log density is phi(s) . coefficients
    elbo: float


def fit_mixture(
    Z: Array,
    n_components: int = 100,
    *,
    prior: MixturePrior | None = None,
    max_iter: int = 1500,
    tol: float = 1e-3,
    random_state: Any = None,
) -> Mixture:
    """Truncated stick-breaking mixture of `Z` (n, n_detectors) from one k-means start.

    Coordinate ascent on the evidence lower bound until it changes by less than `tol`; the same
    iterates as scikit-learn's ``BayesianGaussianMixture`` with full covariances.

    >>> Z = np.random.default_rng(0).normal(size=(200, 2))
    >>> fit_mixture(Z, 5, random_state=0).weight_concentration.shape
    (2, 5)
    """
    check_count("n_components", n_components, 1)
    check_count("max_iter", max_iter, 1)
    check_positive("tol", tol)
    resolved = (MixturePrior() if prior is None else prior).resolve(Z)
    labels = start_labels(Z, n_components, as_generator(random_state))
    mixture = ascend(Z, start_statistics(Z, labels, n_components), resolved, max_iter, tol)
    if not mixture.converged:
        warnings.warn(
            f"The mixture's bound still changed by more than tol={tol} after max_iter={max_iter} "
            "iterations: raise max_iter or tol.",
            MixtureConvergenceWarning,
            stacklevel=2,
        )
    return mixture


def ascend(
    Z: Array, statistics: Statistics, prior: ResolvedPrior, max_iter: int, tol: float
) -> Mixture:
    """Coordinate ascent from the statistics of a start, until the bound settles."""
    state = update(statistics, prior)
    for n_iter in range(1, max_iter + 1):
        previous = -np.inf if n_iter == 1 else state.elbo
        state = update(e_step(Z, state.coefficients), prior)
        converged = abs(state.elbo - previous) < tol
        if converged:
            break
    return Mixture(**vars(state.parameters), elbo=state.elbo, n_iter=n_iter, converged=converged)


def start_labels(Z: Array, n_components: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Cluster of each row by one k-means (n_init=1); never more clusters than distinct rows."""
    from sklearn.cluster import KMeans

    n_clusters = min(n_components, len(np.unique(Z, axis=0)))
    seed = int(rng.integers(2**31 - 1))
    labels: NDArray[np.intp] = KMeans(n_clusters, n_init=1, random_state=seed).fit(Z).labels_
    return labels


def start_statistics(Z: Array, labels: NDArray[np.intp], n_components: int) -> Statistics:
    """Statistics of the hard assignment of each row to the component `labels` (n,)."""
    moments = np.zeros((n_components, _n_features(Z.shape[1])))
    for rows in _row_blocks(len(Z)):
        np.add.at(moments, labels[rows], features(Z[rows]))
    return Statistics(moments, 0.0)


def e_step(Z: Array, coefficients: Array) -> Statistics:
    """Statistics of all rows, summed in the order of their blocks."""
    blocks = (block_statistics(Z[rows], coefficients) for rows in _row_blocks(len(Z)))
    total = next(blocks)
    for block in blocks:
        total += block
    return total


def block_statistics(Z: Array, coefficients: Array) -> Statistics:
    """Statistics of a block of rows under the responsibilities softmax(phi(s) . W)."""
    phi = features(Z)
    log_resp = phi @ coefficients.T
    log_resp -= log_resp.max(axis=1, keepdims=True)
    resp = np.exp(log_resp)
    norm = resp.sum(axis=1, keepdims=True)
    resp /= norm
    log_resp -= np.log(norm)
    return Statistics(resp.T @ phi, -float(np.vdot(resp, log_resp)))


def update(statistics: Statistics, prior: ResolvedPrior) -> State:
    """Parameters that maximise the bound given `statistics`, and the bound they reach."""
    count, total, outer = _unpack(statistics.moments, len(prior.covariance))
    # scikit-learn's guard against division by zero, kept so that the iterates are the same.
    n_k = count + 10.0 * np.finfo(np.float64).eps
    parameters = _update_parameters(n_k, total / n_k[:, None], outer, prior)
    factor = np.linalg.inv(np.linalg.cholesky(parameters.covariances))
    log_det = np.log(np.einsum("kii->ki", factor)).sum(axis=1)
    return State(
        parameters,
        _coefficients(parameters, factor, log_det),
        statistics.entropy + _bound(parameters, log_det),
    )


def _update_parameters(n_k: Array, x_k: Array, outer: Array, prior: ResolvedPrior) -> Parameters:
    """Conjugate update from counts (K,), mean rows (K, M) and summed products (K, M, M)."""
    mean_precision = prior.mean_precision + n_k
    degrees_of_freedom = prior.degrees_of_freedom + n_k
    outer_mean = x_k[:, :, None] * x_k[:, None, :]
    shrinkage = n_k * prior.mean_precision / mean_precision
    scatter = outer - n_k[:, None, None] * outer_mean + shrinkage[:, None, None] * outer_mean
    scatter += prior.covariance + prior.reg_covar * n_k[:, None, None] * np.eye(x_k.shape[1])
    later = np.append(np.cumsum(n_k[::-1])[-2::-1], 0.0)
    return Parameters(
        weight_concentration=np.stack([1.0 + n_k, prior.concentration + later]),
        means=n_k[:, None] * x_k / mean_precision[:, None],
        covariances=scatter / degrees_of_freedom[:, None, None],
        mean_precision=mean_precision,
        degrees_of_freedom=degrees_of_freedom,
    )


def _coefficients(parameters: Parameters, factor: Array, log_det: Array) -> Array:
    """Expected log weight plus log density of each component, as coefficients of phi(s)."""
    n_detectors = parameters.means.shape[1]
    precision = factor.transpose(0, 2, 1) @ factor
    linear = np.einsum("kij,kj->ki", precision, parameters.means)
    constant = (
        expected_log_weights(parameters.weight_concentration)
        + _expected_log_norm(parameters, log_det)
        - 0.5 * np.einsum("ki,ki->k", linear, parameters.means)
    )
    rows, columns = np.triu_indices(n_detectors)
    quadratic = precision[:, rows, columns] * np.where(rows == columns, -0.5, -1.0)
    return np.concatenate([constant[:, None], linear, quadratic], axis=1)


def expected_log_weights(weight_concentration: Array) -> Array:
    """E[log pi_k] of the stick-breaking weights, for Beta parameters of shape (2, K)."""
    a, b = weight_concentration
    log_rest = digamma(b) - digamma(a + b)
    return np.asarray(digamma(a) - digamma(a + b) + np.append(0.0, np.cumsum(log_rest)[:-1]))


def _expected_log_norm(parameters: Parameters, log_det: Array) -> Array:
    """Expected log normalising constant of each Gaussian component."""
    n_detectors = parameters.means.shape[1]
    nu = parameters.degrees_of_freedom
    halves = 0.5 * (nu - np.arange(n_detectors)[:, None])
    log_lambda = n_detectors * np.log(2.0) + digamma(halves).sum(axis=0)
    return np.asarray(
        log_det
        - 0.5 * n_detectors * np.log(2.0 * np.pi * nu)
        + 0.5 * (log_lambda - n_detectors / parameters.mean_precision)
    )


def _bound(parameters: Parameters, log_det: Array) -> float:
    """The evidence lower bound without the entropy of the responsibilities and constants."""
    n_detectors = parameters.means.shape[1]
    nu = parameters.degrees_of_freedom
    log_det_wishart = log_det - 0.5 * n_detectors * np.log(nu)
    halves = 0.5 * (nu - np.arange(n_detectors)[:, None])
    log_wishart = nu * (log_det_wishart + 0.5 * n_detectors * np.log(2.0))
    log_wishart += gammaln(halves).sum(axis=0)
    log_mean = 0.5 * n_detectors * np.log(parameters.mean_precision)
    return float(np.sum(log_wishart - log_mean) + betaln(*parameters.weight_concentration).sum())


def features(Z: Array) -> Array:
    """phi(s) = [1, s, s_i s_j for i <= j] of each row of `Z`, shape (n, n_features)."""
    rows, columns = np.triu_indices(Z.shape[1])
    return np.concatenate([np.ones((len(Z), 1)), Z, Z[:, rows] * Z[:, columns]], axis=1)


def _unpack(moments: Array, n_detectors: int) -> tuple[Array, Array, Array]:
    """Counts (K,), sums (K, M) and sums of products (K, M, M) from moments of phi."""
    rows, columns = np.triu_indices(n_detectors)
    outer = np.empty((len(moments), n_detectors, n_detectors))
    outer[:, rows, columns] = outer[:, columns, rows] = moments[:, 1 + n_detectors :]
    return moments[:, 0], moments[:, 1 : 1 + n_detectors], outer


def _n_features(n_detectors: int) -> int:
    return 1 + n_detectors + n_detectors * (n_detectors + 1) // 2


def _row_blocks(n_rows: int) -> list[slice]:
    return [slice(start, start + BLOCK_ROWS) for start in range(0, n_rows, BLOCK_ROWS)]
