"""Moments of the responsibilities -> mixtures: their parameters, coefficients and bounds.

All runs of a fit are updated together: the first axis of every array counts them. The arrays are
those of the backend.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.mixture.backends import Rows
from gammagmm.mixture.prior import ResolvedPrior
from gammagmm.mixture.statistics import matrix_places, pairs

__all__ = ["MStep", "Parameters", "State"]

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
class State:
    """The mixtures of R runs, in whitened coordinates.

    Attributes
    ----------
    weight_concentration, means, mean_precision, degrees_of_freedom : arrays
        As in `Parameters`, of each run.
    covariances : array of shape (R, K, n_pairs)
        Their entries i <= j.
    coefficients : array of shape (R, K, n_features)
        The expected log density of a component, with its log weight and without the constant
        that all have in common, is phi(s) . coefficients.
    bound : array of shape (R,)
        If the moments were those of responsibilities, the evidence lower bound without constants
        and without the entropy of the responsibilities.
    divergence : array of shape (R,)
        Kullback-Leibler divergence of the parameters from their prior, without constants. The
        sum of log sum exp of phi(s) . coefficients over the rows minus this is the lower bound
        of the parameters, whatever the moments.
    """

    weight_concentration: Any
    means: Any
    covariances: Any
    mean_precision: Any
    degrees_of_freedom: Any
    coefficients: Any
    bound: Any
    divergence: Any

    def select(self, places: list[int]) -> State:
        """The mixtures of the runs at these places."""
        return State(**{name: value[places] for name, value in vars(self).items()})


@dataclass(frozen=True)
class _Gaussians:
    """The components without their weights; the first axes of all arrays count them."""

    counts: Any
    total: Any
    products: Any
    mean_precision: Any
    degrees_of_freedom: Any
    means: Any
    covariances: Any
    precision: Any
    log_det: Any  # NaN if the covariance is not positive definite

    def put(self, places: Any, others: _Gaussians) -> _Gaussians:
        """These components, with the `others` at their places; the arrays are changed in place."""
        for own, other in zip(vars(self).values(), vars(others).values(), strict=True):
            own[places] = other
        return self


class MStep:
    """The M-step under a `prior`, with the functions of the backend of `rows`.

    The parameters maximise the bound, apart from scikit-learn's `reg_covar`, which is not part of
    the model. Moments and parameters are in whitened coordinates, densities and bounds in those
    of the score space.
    """

    def __init__(self, rows: Rows, prior: ResolvedPrior) -> None:
        n_detectors = len(prior.covariance)
        i, j = pairs(n_detectors)
        self._rows, self._prior, self._n_detectors = rows, prior, n_detectors
        self._pairs = rows.to_backend(i), rows.to_backend(j)
        self._places = rows.to_backend(matrix_places(n_detectors))
        self._identity = rows.to_backend(np.eye(n_detectors)[i, j])
        self._ridge = rows.to_backend(prior.ridge[i, j])
        # Coefficients of the products in -0.5 s' P s, in which those with i < j occur twice.
        self._factors = rows.to_backend(np.where(i == j, -0.5, -1.0))
        self._numbers = rows.to_backend(np.arange(n_detectors, dtype=np.float64))
        self._log_scale = float(np.log(np.diagonal(prior.factor)).sum())

    def __call__(self, moments: Any) -> State:
        """The mixtures of `moments` (R, K, n_features)."""
        return self._state(self._gaussians(moments))

    def nearest(self, further: Any, reached: Any) -> State:
        """The mixtures of the moments `further`; those of `reached` where a component has none.

        A component has none if its count is negative or its covariance not positive definite.
        """
        xp = self._rows.xp
        gaussians = self._gaussians(xp.where((further[..., 0] > 0.0)[..., None], further, reached))
        has_none = ~xp.isfinite(gaussians.log_det)
        if has_none.any():
            gaussians = gaussians.put(has_none, self._gaussians(reached[has_none]))
        return self._state(gaussians)

    def _gaussians(self, moments: Any) -> _Gaussians:
        """The components of `moments` (..., n_features)."""
        prior = self._prior
        i, j = self._pairs
        # scikit-learn adds this to avoid division by zero; the iterates must be the same.
        n_k = moments[..., 0] + 10.0 * np.finfo(np.float64).eps
        total = moments[..., 1 : 1 + self._n_detectors]
        products = moments[..., 1 + self._n_detectors :] + n_k[..., None] * self._ridge
        mean_precision = prior.mean_precision + n_k
        degrees_of_freedom = prior.degrees_of_freedom + n_k
        means = total / mean_precision[..., None]
        # Scatter about the mean plus scatter of the mean about the prior mean, which is 0.
        scatter = products - total[..., i] * means[..., j] + self._identity
        covariances = scatter / degrees_of_freedom[..., None]
        precision, log_det = self._rows.invert(covariances)
        return _Gaussians(
            counts=n_k,
            total=total,
            products=products,
            mean_precision=mean_precision,
            degrees_of_freedom=degrees_of_freedom,
            means=means,
            covariances=covariances,
            precision=precision,
            log_det=log_det - self._log_scale,
        )

    def _state(self, gaussians: _Gaussians) -> State:
        """The mixtures of the components (R, K)."""
        xp, own = self._rows.xp, gaussians
        at_least = xp.flip(xp.cumsum(xp.flip(own.counts, (-1,)), -1), (-1,))
        later = xp.concatenate([at_least[..., 1:], xp.zeros_like(own.counts[..., :1])], -1)
        sticks = xp.stack([1.0 + own.counts, self._prior.concentration + later], 1)
        linear = (own.precision[..., self._places] * own.means[..., None, :]).sum(-1)
        constant = self._log_weights(sticks) - 0.5 * (linear * own.means).sum(-1)
        of_normal = own.mean_precision, own.degrees_of_freedom, own.log_det
        constant = constant + self._log_norms(*of_normal)
        squares = own.precision * self._factors
        coefficients = xp.concatenate([constant[..., None], linear, squares], -1)
        bound = self._bound(sticks, *of_normal)
        used = xp.concatenate([own.counts[..., None], own.total, own.products], -1)
        return State(
            weight_concentration=sticks,
            means=own.means,
            covariances=own.covariances,
            mean_precision=own.mean_precision,
            degrees_of_freedom=own.degrees_of_freedom,
            coefficients=coefficients,
            bound=bound,
            divergence=(coefficients * used).sum((1, 2)) - bound,
        )

    def _log_weights(self, sticks: Any) -> Any:
        """E[log pi_k] (R, K) of the stick-breaking weights, for Beta parameters (R, 2, K)."""
        xp, digamma = self._rows.xp, self._rows.digamma
        whole = digamma(sticks.sum(1))
        log_own, log_rest = digamma(sticks[:, 0]) - whole, digamma(sticks[:, 1]) - whole
        earlier = xp.cumsum(log_rest, -1)[..., :-1]
        return log_own + xp.concatenate([xp.zeros_like(whole[..., :1]), earlier], -1)

    def _log_norms(self, mean_precision: Any, degrees_of_freedom: Any, log_det: Any) -> Any:
        """Expected log normalisation constant (R, K) of each component, without that of pi."""
        log_lambda = self._rows.digamma(self._halves(degrees_of_freedom)).sum(-1)
        log_scale = self._rows.xp.log(0.5 * degrees_of_freedom) + 1.0 / mean_precision
        return log_det + 0.5 * (log_lambda - self._n_detectors * log_scale)

    def _bound(
        self, sticks: Any, mean_precision: Any, degrees_of_freedom: Any, log_det: Any
    ) -> Any:
        """The bound (R,) without constants and the entropy of the responsibilities."""
        xp, gammaln = self._rows.xp, self._rows.gammaln
        log_scale = log_det - 0.5 * self._n_detectors * xp.log(0.5 * degrees_of_freedom)
        log_wishart = degrees_of_freedom * log_scale
        log_wishart = log_wishart + gammaln(self._halves(degrees_of_freedom)).sum(-1)
        log_mean = 0.5 * self._n_detectors * xp.log(mean_precision)
        log_beta = gammaln(sticks).sum(1) - gammaln(sticks.sum(1))
        return (log_wishart - log_mean + log_beta).sum(-1)

    def _halves(self, degrees_of_freedom: Any) -> Any:
        """(nu - m) / 2 for m = 0, ..., M - 1, shape (R, K, M)."""
        return 0.5 * (degrees_of_freedom[..., None] - self._numbers)

    def parameters(self, state: State, run: int) -> Parameters:
        """The parameters of one run, in the coordinates of the score space."""
        own = {name: self._rows.to_numpy(getattr(state, name)[run]) for name in _NAMES}
        factor, full = self._prior.factor, own["covariances"][..., matrix_places(self._n_detectors)]
        own["means"] = own["means"] @ factor.T
        own["covariances"] = factor @ full @ factor.T
        return Parameters(**own)


_NAMES = tuple(field.name for field in fields(Parameters))
