"""Score space -> truncated Dirichlet-process Gaussian mixture, by variational inference."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from gammagmm._support.checks import as_generator, check_count, check_positive, check_rows
from gammagmm._support.processes import NEVER, Deadline
from gammagmm.errors import GammaGMMWarning, MixtureError
from gammagmm.mixture.prior import MixturePrior, ResolvedPrior
from gammagmm.mixture.rows import Rows, check_backend, place_rows
from gammagmm.mixture.statistics import Statistics, pairs, start_statistics, unpack_moments

__all__ = [
    "START_ROWS",
    "Ascent",
    "Mixture",
    "MixtureConvergenceWarning",
    "Parameters",
    "State",
    "ascend",
    "begin",
    "count_distinct",
    "fit_kmeans",
    "fit_mixture",
    "nearest_centres",
    "restore",
    "start_labels",
    "start_rows",
    "update",
]


class MixtureConvergenceWarning(GammaGMMWarning, ConvergenceWarning):
    """A variational run stopped at ``max_iter`` before its bound settled.

    Examples
    --------
    >>> issubclass(MixtureConvergenceWarning, ConvergenceWarning)
    True
    """


START_ROWS = 200_000
"""The start of more rows than this is the k-means of a random subset of so many."""
_ONE_KMEANS = threading.Lock()


def start_labels(
    Z: Array, n_components: int, rng: np.random.Generator, deadline: Deadline = NEVER
) -> NDArray[np.intp]:
    """Cluster of each row by one k-means (n_init=1), with no more clusters than distinct rows."""
    Z = _comparable(Z)
    rows = start_rows(len(Z), rng)
    kmeans = fit_kmeans(Z if rows is None else Z[rows], n_components, rng, deadline)
    labels: NDArray[np.intp] = kmeans.labels_ if rows is None else nearest_centres(kmeans, Z)
    return labels


def start_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.intp] | None:
    """The rows that the start is fitted to; None: all."""
    # Deviation D12: past START_ROWS rows, k-means sees a random subset; the other rows go to the
    # nearest centre.
    return None if n_rows <= START_ROWS else rng.choice(n_rows, START_ROWS, replace=False)


def fit_kmeans(
    Z: Array, n_components: int, rng: np.random.Generator, deadline: Deadline = NEVER
) -> Any:
    """scikit-learn's k-means of the rows `Z` (n, M), fitted once.

    One that has begun is not interrupted; one whose turn comes after the `deadline` is an
    `OutOfTimeError`.
    """
    from sklearn.cluster import KMeans

    n_clusters = min(n_components, count_distinct(Z, n_components))
    seed = int(rng.integers(2**31 - 1))
    # One thread: the order in which threads add would decide ties between centres. One k-means at a
    # time: each sets the process's BLAS threads, and sets them back to what it found.
    with _ONE_KMEANS, threadpool_limits(limits=1, user_api="openmp"):
        deadline.check()
        return KMeans(n_clusters, n_init=1, random_state=seed).fit(Z)


def nearest_centres(kmeans: Any, Z: Array) -> NDArray[np.intp]:
    """Cluster of each row of `Z` (n, M), which `kmeans` need not have seen."""
    with _ONE_KMEANS, threadpool_limits(limits=1, user_api="openmp"):
        labels: NDArray[np.intp] = kmeans.predict(Z)
    return labels


def _comparable(Z: Array) -> Array:
    """`Z`, moved and scaled if the squares of its differences are no normal numbers."""
    spread = float(np.ptp(Z, axis=0).max())
    return Z if 1e-100 < spread < 1e100 or spread == 0.0 else (Z - Z[0]) / spread


def count_distinct(Z: Array, enough: int) -> int:
    """About the number of rows that k-means can tell apart, up to `enough`."""
    # k-means compares squared distances: nearer than 1e-7 of the spread, rows are the same to it.
    spread = float(np.ptp(Z, axis=0).max())
    cells = np.round((Z - Z[0]) / spread, 7) if spread > 0.0 else np.zeros_like(Z[:1])
    few = len(np.unique(cells[: 4 * enough], axis=0))
    return few if few >= enough else len(np.unique(cells, axis=0))


Array = NDArray[np.float64]


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


@dataclass(frozen=True)
class Ascent:
    """A coordinate ascent under way: each step takes the statistics of its coefficients."""

    state: State
    prior: ResolvedPrior
    max_iter: int
    tol: float
    elbo: float = -np.inf
    n_iter: int = 0
    converged: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the bound has settled, or the iterations are spent."""
        return self.converged or self.n_iter >= self.max_iter

    def step(self, statistics: Statistics) -> Ascent:
        """The ascent after one more iteration."""
        state = update(statistics, self.prior)
        if not np.isfinite(state.elbo):
            raise MixtureError("The mixture's bound is not finite: scale the columns alike.")
        return replace(
            self,
            state=state,
            elbo=state.elbo,
            n_iter=self.n_iter + 1,
            converged=bool(abs(state.elbo - self.elbo) < self.tol),
        )

    def mixture(self) -> Mixture:
        """What has been reached, in the coordinates of the score space."""
        parameters = vars(restore(self.state.parameters, self.prior))
        return Mixture(**parameters, elbo=self.elbo, n_iter=self.n_iter, converged=self.converged)


def fit_mixture(
    Z: Array,
    n_components: int = 100,
    *,
    prior: MixturePrior | None = None,
    max_iter: int = 1500,
    tol: float = 1e-3,
    random_state: Any = None,
    backend: str = "numpy",
    device: Any = None,
) -> Mixture:
    """Truncated stick-breaking mixture of `Z` (n, n_detectors) from one k-means start.

    Coordinate ascent on the evidence lower bound until it changes by less than `tol`; the same
    iterates as scikit-learn's ``BayesianGaussianMixture`` with full covariances, unless the
    prior's scale matrix is singular and has to be made regular.

    Parameters
    ----------
    Z : array-like of shape (n, n_detectors)
        The score space.
    n_components : int, default=100
        Truncation of the stick-breaking process.
    prior : MixturePrior, default=None
        Prior; None is ``MixturePrior()``.
    max_iter, tol : int and float, default=1500 and 1e-3
        The ascent stops when the bound changes by less than `tol`, or after `max_iter` iterations.
    random_state : int, Generator, RandomState or None
        Source of the start's randomness.
    backend : "numpy" or "torch", default="numpy"
        Who does the E-step: the processor's cores, or PyTorch on `device`.
    device : str or torch.device, default=None
        Device of the torch backend; None is CUDA where there is one, else the processor.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(200, 2))
    >>> fit_mixture(Z, 5, random_state=0).weight_concentration.shape
    (2, 5)
    """
    Z = check_rows("Z", Z)
    check_count("n_components", n_components, 1)
    check_count("max_iter", max_iter, 1)
    check_positive("tol", tol)
    check_backend(backend, device)
    if not isinstance(prior, MixturePrior | None):
        raise TypeError(f"prior must be a MixturePrior or None, got {prior!r}.")
    resolved = (prior or MixturePrior()).resolve(Z)
    labels = start_labels(Z, n_components, as_generator(random_state))
    rows = place_rows(resolved.whiten(Z), backend, device)
    start = start_statistics(rows.Z, labels, n_components)
    mixture = ascend(rows, start, resolved, max_iter, tol)
    if not mixture.converged:
        warnings.warn(
            f"The mixture's bound still changed by more than tol={tol} after max_iter={max_iter} "
            "iterations: raise max_iter or tol.",
            MixtureConvergenceWarning,
            stacklevel=2,
        )
    return mixture


def ascend(
    rows: Rows,
    start: Statistics,
    prior: ResolvedPrior,
    max_iter: int,
    tol: float,
    deadline: Deadline = NEVER,
) -> Mixture:
    """Coordinate ascent from the statistics of a start, until the bound settles.

    One that the `deadline` finds under way is an `OutOfTimeError`.

    `rows` and `start` are of whitened rows; the mixture is in the coordinates of the score space.
    """
    ascent = begin(start, prior, max_iter, tol)
    while not ascent.is_done:
        deadline.check()
        ascent = ascent.step(rows.statistics(ascent.state.coefficients))
    return ascent.mixture()


def begin(start: Statistics, prior: ResolvedPrior, max_iter: int, tol: float) -> Ascent:
    """The ascent from the statistics of a start, before its first step."""
    return Ascent(update(start, prior), prior, max_iter, tol)


def restore(parameters: Parameters, prior: ResolvedPrior) -> Parameters:
    """The same `parameters` in the coordinates of the score space."""
    return replace(
        parameters,
        means=parameters.means @ prior.factor.T,
        covariances=prior.factor @ parameters.covariances @ prior.factor.T,
    )


def update(statistics: Statistics, prior: ResolvedPrior) -> State:
    """Parameters given `statistics`, and the bound they reach.

    They maximise the bound but for scikit-learn's `reg_covar`, which is no part of the model.

    Statistics and parameters are in the fit's coordinates, the bound in those of the score space.
    """
    from gammagmm.mixture.kernel import invert

    count, total, outer = unpack_moments(statistics.moments, len(prior.covariance))
    # scikit-learn's guard against division by zero, kept so that the iterates are the same.
    n_k = count + 10.0 * np.finfo(np.float64).eps
    parameters = _update_parameters(n_k, total / n_k[:, None], outer, prior)
    precision, log_det = invert(np.ascontiguousarray(parameters.covariances.transpose(1, 2, 0)))
    coefficients = _coefficients(parameters, precision, log_det)
    log_scale = np.log(np.diagonal(prior.factor)).sum()
    elbo = statistics.entropy + _bound(parameters, log_det - log_scale)
    return State(parameters, coefficients, elbo)


def _update_parameters(n_k: Array, x_k: Array, outer: Array, prior: ResolvedPrior) -> Parameters:
    """Conjugate update from counts (K,), mean rows (K, M) and summed products (K, M, M)."""
    mean_precision = prior.mean_precision + n_k
    degrees_of_freedom = prior.degrees_of_freedom + n_k
    # The scatter about the mean, and that of the mean about the prior's, are one multiple of x x'.
    scatter = outer - np.einsum("k,ki,kj->kij", n_k**2 / mean_precision, x_k, x_k)
    scatter += n_k[:, None, None] * prior.ridge
    np.einsum("kii->ki", scatter)[...] += 1.0
    scatter /= degrees_of_freedom[:, None, None]
    later = np.append(np.cumsum(n_k[::-1])[-2::-1], 0.0)
    return Parameters(
        weight_concentration=np.stack([1.0 + n_k, prior.concentration + later]),
        means=x_k * (n_k / mean_precision)[:, None],
        covariances=scatter,
        mean_precision=mean_precision,
        degrees_of_freedom=degrees_of_freedom,
    )


def _coefficients(parameters: Parameters, precision: Array, log_det: Array) -> Array:
    """Expected log weight plus log density of each component, as coefficients of phi(s).

    `precision` (M, M, K) holds the inverses of the covariances.
    """
    linear = np.einsum("ijk,kj->ki", precision, parameters.means)
    constant = (
        expected_log_weights(parameters.weight_concentration)
        + _expected_log_norm(parameters, log_det)
        - 0.5 * np.einsum("ki,ki->k", linear, parameters.means)
    )
    rows, columns = pairs(len(precision))
    quadratic = precision[rows, columns] * np.where(rows == columns, -0.5, -1.0)[:, None]
    # The transpose, as the products of the E-step take it, is the array in memory.
    return np.concatenate([constant[None], linear.T, quadratic]).T


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
