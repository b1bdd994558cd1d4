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
from gammagmm.mixture.backends import Rows, check_backend, place_rows
from gammagmm.mixture.prior import MixturePrior, ResolvedPrior
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
    "fit_kmeans",
    "fit_mixture",
    "nearest_centres",
    "restore",
    "start_labels",
    "start_rows",
    "update",
]

Array = NDArray[np.float64]

START_ROWS = 200_000
"""Most rows that the k-means of a start is fitted to."""

_ONE_KMEANS = threading.Lock()


class MixtureConvergenceWarning(GammaGMMWarning, ConvergenceWarning):
    """A variational run stopped at ``max_iter`` before its bound converged.

    Examples
    --------
    >>> issubclass(MixtureConvergenceWarning, ConvergenceWarning)
    True
    """


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
    """Fitted parameters, with the bound that was reached and the number of iterations."""

    elbo: float
    n_iter: int
    converged: bool


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
    """Truncated stick-breaking mixture of `Z` (n, n_detectors), fitted from one k-means start.

    Coordinate ascent on the evidence lower bound. The iterates equal those of scikit-learn's
    ``BayesianGaussianMixture`` with full covariances, unless the prior's scale matrix is singular
    and has to be regularised.

    Parameters
    ----------
    Z : array-like of shape (n, n_detectors)
        The score space.
    n_components : int, default=100
        Number of components at which the stick-breaking process is truncated.
    prior : MixturePrior, default=None
        Prior; None is ``MixturePrior()``.
    max_iter, tol : int and float, default=1500 and 1e-3
        The ascent stops when the bound changes by less than `tol`, or after `max_iter` iterations.
    random_state : int, Generator, RandomState or None
        Seed or generator of the k-means start.
    backend : "numpy" or "torch", default="numpy"
        What computes the E-step: compiled code on the CPU, or PyTorch on `device`.
    device : str or torch.device, default=None
        Device of the torch backend; None is CUDA if it is available, else the CPU.

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
            f"The mixture did not converge: its bound still changed by more than tol={tol} after "
            f"max_iter={max_iter} iterations. Raise max_iter or tol.",
            MixtureConvergenceWarning,
            stacklevel=2,
        )
    return mixture


def start_labels(
    Z: Array, n_components: int, rng: np.random.Generator, deadline: Deadline = NEVER
) -> NDArray[np.intp]:
    """Cluster of each row of `Z` (n, M) by one k-means; no more clusters than distinct rows."""
    Z = _comparable(Z)
    rows = start_rows(len(Z), rng)
    kmeans = fit_kmeans(Z if rows is None else Z[rows], n_components, rng, deadline)
    labels: NDArray[np.intp] = kmeans.labels_ if rows is None else nearest_centres(kmeans, Z)
    return labels


def start_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.intp] | None:
    """Indices of the rows that k-means is fitted to; None means all rows."""
    # Deviation D12: above START_ROWS rows, k-means is fitted to a random subset; the other rows are
    # assigned to the nearest centre.
    return None if n_rows <= START_ROWS else rng.choice(n_rows, START_ROWS, replace=False)


def fit_kmeans(
    Z: Array, n_components: int, rng: np.random.Generator, deadline: Deadline = NEVER
) -> Any:
    """scikit-learn's k-means of the rows `Z` (n, M), fitted once (n_init=1).

    Raises `OutOfTimeError` if the `deadline` has passed before it starts; once started, it is not
    interrupted.
    """
    from sklearn.cluster import KMeans

    n_clusters = min(n_components, _count_distinct(Z, n_components))
    seed = int(rng.integers(2**31 - 1))
    # One thread: otherwise the order in which threads add would decide ties between centres. One
    # k-means at a time: each sets and then restores the number of BLAS threads of the process.
    with _ONE_KMEANS, threadpool_limits(limits=1, user_api="openmp"):
        deadline.check()
        return KMeans(n_clusters, n_init=1, random_state=seed).fit(Z)


def nearest_centres(kmeans: Any, Z: Array) -> NDArray[np.intp]:
    """Nearest centre of each row of `Z` (n, M), for a fitted `kmeans`."""
    with _ONE_KMEANS, threadpool_limits(limits=1, user_api="openmp"):
        labels: NDArray[np.intp] = kmeans.predict(Z)
    return labels


def _count_distinct(Z: Array, enough: int) -> int:
    """About how many rows of `Z` k-means can distinguish; counted up to `enough`, or a few more."""
    # k-means compares squared distances: it cannot distinguish rows closer than 1e-7 of the spread.
    spread = float(np.ptp(Z, axis=0).max())
    cells = np.round((Z - Z[0]) / spread, 7) if spread > 0.0 else np.zeros_like(Z[:1])
    few = len(np.unique(cells[: 4 * enough], axis=0))
    return few if few >= enough else len(np.unique(cells, axis=0))


def _comparable(Z: Array) -> Array:
    """`Z`, centred and scaled if squared differences between its rows would under- or overflow."""
    spread = float(np.ptp(Z, axis=0).max())
    return Z if 1e-100 < spread < 1e100 or spread == 0.0 else (Z - Z[0]) / spread


@dataclass(frozen=True)
class State:
    """Result of one step of the coordinate ascent."""

    parameters: Parameters
    coefficients: Array  # (K, n_features): expected log density is phi(s) . coefficients
    elbo: float


@dataclass(frozen=True)
class Ascent:
    """A coordinate ascent in progress; each step takes the statistics under its coefficients."""

    state: State
    prior: ResolvedPrior
    max_iter: int
    tol: float
    elbo: float = -np.inf
    n_iter: int = 0
    converged: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the bound has converged or `max_iter` iterations are done."""
        return self.converged or self.n_iter >= self.max_iter

    def step(self, statistics: Statistics) -> Ascent:
        """The ascent after one more iteration."""
        state = update(statistics, self.prior)
        if not np.isfinite(state.elbo):
            raise MixtureError(
                "The mixture's bound is not finite", "Scale the columns to similar ranges."
            )
        return replace(
            self,
            state=state,
            elbo=state.elbo,
            n_iter=self.n_iter + 1,
            converged=bool(abs(state.elbo - self.elbo) < self.tol),
        )

    def mixture(self) -> Mixture:
        """The mixture reached so far, in the coordinates of the score space."""
        parameters = vars(restore(self.state.parameters, self.prior))
        return Mixture(**parameters, elbo=self.elbo, n_iter=self.n_iter, converged=self.converged)


def begin(start: Statistics, prior: ResolvedPrior, max_iter: int, tol: float) -> Ascent:
    """The ascent from the statistics `start`, before its first step."""
    return Ascent(update(start, prior), prior, max_iter, tol)


def ascend(
    rows: Rows,
    start: Statistics,
    prior: ResolvedPrior,
    max_iter: int,
    tol: float,
    deadline: Deadline = NEVER,
) -> Mixture:
    """The mixture after coordinate ascent from the statistics `start`.

    `rows` and `start` belong to whitened rows; the mixture is in the coordinates of the score
    space. Raises `OutOfTimeError` if the `deadline` passes during the ascent.
    """
    ascent = begin(start, prior, max_iter, tol)
    while not ascent.is_done:
        deadline.check()
        ascent = ascent.step(rows.statistics(ascent.state.coefficients))
    return ascent.mixture()


def update(statistics: Statistics, prior: ResolvedPrior) -> State:
    """The M-step: parameters given `statistics`, and their bound.

    The parameters maximise the bound, apart from scikit-learn's `reg_covar`, which is not part of
    the model. Statistics and parameters are in whitened coordinates, the bound is in those of the
    score space.
    """
    from gammagmm.mixture.kernel import invert

    count, total, outer = unpack_moments(statistics.moments, len(prior.covariance))
    # scikit-learn adds this to avoid division by zero; the iterates must be the same.
    n_k = count + 10.0 * np.finfo(np.float64).eps
    parameters = _update_parameters(n_k, total / n_k[:, None], outer, prior)
    precision, log_det = invert(np.ascontiguousarray(parameters.covariances.transpose(1, 2, 0)))
    coefficients = _coefficients(parameters, precision, log_det)
    log_scale = np.log(np.diagonal(prior.factor)).sum()
    elbo = statistics.entropy + _bound(parameters, log_det - log_scale)
    return State(parameters, coefficients, elbo)


def restore(parameters: Parameters, prior: ResolvedPrior) -> Parameters:
    """The same `parameters` in the coordinates of the score space."""
    return replace(
        parameters,
        means=parameters.means @ prior.factor.T,
        covariances=prior.factor @ parameters.covariances @ prior.factor.T,
    )


def _update_parameters(n_k: Array, x_k: Array, outer: Array, prior: ResolvedPrior) -> Parameters:
    """Conjugate update from counts (K,), mean rows (K, M) and summed products (K, M, M)."""
    mean_precision = prior.mean_precision + n_k
    degrees_of_freedom = prior.degrees_of_freedom + n_k
    # Scatter about the mean plus scatter of the mean about the prior mean, which is 0: the two
    # terms in x x' add up to one.
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
        _expected_log_weights(parameters.weight_concentration)
        + _expected_log_norm(parameters, log_det)
        - 0.5 * np.einsum("ki,ki->k", linear, parameters.means)
    )
    rows, columns = pairs(len(precision))
    quadratic = precision[rows, columns] * np.where(rows == columns, -0.5, -1.0)[:, None]
    # The E-step multiplies by the transpose, which is contiguous here.
    return np.concatenate([constant[None], linear.T, quadratic]).T


def _expected_log_weights(weight_concentration: Array) -> Array:
    """E[log pi_k] of the stick-breaking weights, for Beta parameters of shape (2, K)."""
    a, b = weight_concentration
    log_rest = digamma(b) - digamma(a + b)
    return np.asarray(digamma(a) - digamma(a + b) + np.append(0.0, np.cumsum(log_rest)[:-1]))


def _expected_log_norm(parameters: Parameters, log_det: Array) -> Array:
    """Expected log normalisation constant of each Gaussian component, shape (K,)."""
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
    """The evidence lower bound without constants and the entropy of the responsibilities."""
    n_detectors = parameters.means.shape[1]
    nu = parameters.degrees_of_freedom
    log_det_wishart = log_det - 0.5 * n_detectors * np.log(nu)
    halves = 0.5 * (nu - np.arange(n_detectors)[:, None])
    log_wishart = nu * (log_det_wishart + 0.5 * n_detectors * np.log(2.0))
    log_wishart += gammaln(halves).sum(axis=0)
    log_mean = 0.5 * n_detectors * np.log(parameters.mean_precision)
    return float(np.sum(log_wishart - log_mean) + betaln(*parameters.weight_concentration).sum())
