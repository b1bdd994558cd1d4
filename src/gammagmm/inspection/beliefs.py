"""Curves + a prior of gamma + labels of rows -> weighted curves, exact up to their number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri

from gammagmm.inspection.curves import CurvePrior, Curves, RankCells, draw_curves
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["Belief", "CellLabels", "GammaPrior", "prior_belief"]

Array = NDArray[np.float64]
Counts = NDArray[np.int_]

N_CURVES = 1 << 13
# New curves are drawn around the mass while fewer than these would do as well.
_MIN_EFFECTIVE = 200.0
_MAX_ROUNDS = 12
# Of the redrawn curves, those that still come from the prior.
_P_PRIOR = 0.25
_N_STEPS = 256


@dataclass(frozen=True)
class GammaPrior:
    """The fitted posterior, tempered: believed to the share `trust`, the rest a broad Beta(a, b).

    A fit without solution is not believed at all.
    """

    fitted: GammaPosterior
    trust: float
    a: float = 0.4
    b: float = 2.5

    @property
    def p_zero(self) -> float:
        """Probability that there are no anomalies."""
        return self._weight * self.fitted.prob_zero

    def cdf(self, x: Array) -> Array:
        """P(0 < gamma <= x)."""
        fitted = self._weight * (self.fitted.cdf(x) - self.fitted.prob_zero)
        return np.asarray(fitted + (1.0 - self._weight) * betainc(self.a, self.b, x))

    @property
    def _weight(self) -> float:
        return 0.0 if self.fitted.is_degenerate else self.trust


@dataclass(frozen=True)
class CellLabels:
    """How many rows of each rank cell are known to be what."""

    anomalies: Counts  # (G,) labelled rows that were chosen without knowing what they are
    normals: Counts
    told_anomalies: Counts  # (G,) known from elsewhere: they tell of themselves alone
    told_normals: Counts

    @classmethod
    def none(cls, n_cells: int) -> CellLabels:
        """No row is known."""
        return cls(*(np.zeros(n_cells, dtype=int),) * 4)

    @property
    def n_anomalies(self) -> int:
        """Rows known to be anomalies."""
        return int(self.anomalies.sum() + self.told_anomalies.sum())

    @property
    def n_normals(self) -> int:
        """Rows known to be normal."""
        return int(self.normals.sum() + self.told_normals.sum())

    @property
    def known(self) -> Counts:
        """Rows of each cell that are known."""
        known: Counts = self.anomalies + self.normals + self.told_anomalies + self.told_normals
        return known

    def log_likelihood(self, rho: Array) -> Array:
        """Log probability of the labels for each curve, a row of `rho` (N, G)."""
        cells = np.flatnonzero(self.anomalies + self.normals)
        at = rho[:, cells]
        found: Array = np.log(at) @ self.anomalies[cells] + np.log1p(-at) @ self.normals[cells]
        return found


@dataclass(frozen=True)
class GammaReweighting:
    """What makes the curves' own distribution of gamma the chosen prior: a step function."""

    edges: Array  # (B - 1,) of gamma
    log_ratio: Array  # (B,)

    def __call__(self, gamma: Array) -> Array:
        """Log weight of a curve whose share of anomalies is `gamma`."""
        return self.log_ratio[np.searchsorted(self.edges, gamma, side="right")]


@dataclass(frozen=True)
class Belief:
    """Weighted curves: what is thought of the ranking after the labels.

    Attributes
    ----------
    rho : ndarray of shape (N, G)
        Each curve's chance of an anomaly in each rank cell.
    log_base : ndarray of shape (N,)
        Log of each curve's prior density over the density that it was drawn from.
    """

    cells: RankCells
    prior: GammaPrior
    curve_prior: CurvePrior
    reweighting: GammaReweighting
    curves: Curves
    rho: Array
    log_base: Array
    labels: CellLabels

    @property
    def weights(self) -> Array:
        """Posterior probability of each curve; they and `p_zero` sum to 1."""
        return self._probabilities[:-1]

    @property
    def p_zero(self) -> float:
        """Posterior probability that there are no anomalies whatever the curve."""
        return float(self._probabilities[-1])

    @property
    def p_flat(self) -> float:
        """Posterior probability that the ranking says nothing."""
        return float(self.weights[self.curves.is_flat].sum() / self.weights.sum())

    @property
    def n_effective(self) -> float:
        """How many equally weighted curves would be as precise."""
        return _effective(self.weights)

    @property
    def is_precise(self) -> bool:
        """Whether enough curves carry the answer; not so where labels contradict all of them."""
        return self.n_effective >= _MIN_EFFECTIVE

    @property
    def unknown(self) -> Counts:
        """Rows of each cell whose label is not known."""
        left: Counts = self.cells.counts - self.labels.known
        return left

    @cached_property
    def gamma(self) -> Array:
        """Share of anomalies that each curve expects, the known rows as they are: shape (N,)."""
        return (self.labels.n_anomalies + self.rho @ self.unknown) / self.cells.n_rows

    def given(self, labels: CellLabels) -> Belief:
        """The belief after `labels`, which are all there are; redrawn where few curves are left."""
        belief = replace(self, labels=labels)
        for _ in range(_MAX_ROUNDS):
            if belief.is_precise:
                break
            belief = _redraw(belief)
        return belief

    def tempered(self, power: float) -> Array:
        """Weights of the curves if the likelihood counted to this power."""
        return _normalise(self._log_prior + power * self._log_likelihood)

    @cached_property
    def _probabilities(self) -> Array:
        with np.errstate(divide="ignore"):
            log_zero = np.log(0.0 if self.labels.n_anomalies else self.prior.p_zero)
        return _normalise(np.append(self._log_prior + self._log_likelihood, log_zero))

    @cached_property
    def _log_prior(self) -> Array:
        expected = self.rho @ self.cells.counts / self.cells.n_rows
        return self.log_base + self.reweighting(expected)

    @cached_property
    def _log_likelihood(self) -> Array:
        return self.curve_prior.label_weight * self.labels.log_likelihood(self.rho)


def _normalise(log_weights: Array) -> Array:
    scaled = np.exp(log_weights - log_weights.max())
    return np.asarray(scaled / scaled.sum())


def _effective(weights: Array) -> float:
    return float(weights.sum() ** 2 / np.square(weights).sum())


def prior_belief(
    cells: RankCells, prior: GammaPrior, curve_prior: CurvePrior | None = None
) -> Belief:
    """The belief before any label: gamma has the distribution `prior`."""
    curve_prior = CurvePrior() if curve_prior is None else curve_prior
    curves = draw_curves(curve_prior, unit_points(N_CURVES))
    rho = curves.at(cells.log_u)
    return Belief(
        cells=cells,
        prior=prior,
        curve_prior=curve_prior,
        reweighting=_reweighting(rho @ cells.counts / cells.n_rows, prior),
        curves=curves,
        rho=rho,
        log_base=np.full(N_CURVES, -np.log(N_CURVES)),
        labels=CellLabels.none(len(cells.counts)),
    )


def unit_points(n: int) -> Array:
    """`n` points spread evenly over the unit cube of five dimensions, the same ones every time."""
    from scipy.stats import qmc  # takes a while to import

    # Unscrambled Sobol points start at 0; half a step in, none lies on a face.
    return np.asarray(qmc.Sobol(5, scramble=False).random(n) + 0.5 / n)


def _reweighting(gamma: Array, prior: GammaPrior) -> GammaReweighting:
    """Weights by steps of `gamma`, which hold equally many curves, with the prior's mass each."""
    edges = np.quantile(gamma, np.linspace(0.0, 1.0, _N_STEPS + 1)[1:-1])
    mass = np.diff(prior.cdf(np.concatenate([[0.0], edges, [1.0]])))
    share = np.bincount(np.searchsorted(edges, gamma, side="right"), minlength=_N_STEPS)
    with np.errstate(divide="ignore"):
        return GammaReweighting(edges, np.log(mass) - np.log(share / len(gamma)))


def _redraw(belief: Belief) -> Belief:
    """New curves where the old ones have their weight, and some from the prior.

    Drawn from p_prior . prior + (1 - p_prior) . normal, with twice the covariance of the weighted
    curves, for the flat ones and for the others apart. The weights are tempered until enough
    curves have some, so that far away masses are reached in several rounds.
    """
    points = unit_points(N_CURVES)
    n_prior = int(_P_PRIOR * N_CURVES)
    fresh = draw_curves(belief.curve_prior, points[:n_prior])
    weights = _enough(belief)
    p_flat = float(np.clip(weights[belief.curves.is_flat].sum(), 0.02, 0.98))
    is_flat = np.append(fresh.is_flat, points[n_prior:, 4] < p_flat)
    z = np.concatenate([fresh.z, ndtri(points[n_prior:, :4])])
    log_normal = np.empty(N_CURVES)
    for family, share in ((False, 1.0 - p_flat), (True, p_flat)):
        mean, root = _spread(belief.curves, weights, belief.curves.is_flat == family)
        drawn = (is_flat == family) & (np.arange(N_CURVES) >= n_prior)
        z[drawn] = mean + z[drawn] @ root.T
        own = is_flat == family
        standard = np.linalg.solve(root, (z[own] - mean).T)
        log_scale = np.log(share) - np.log(np.diag(root)).sum() - 2.0 * np.log(2.0 * np.pi)
        log_normal[own] = log_scale - 0.5 * np.square(standard).sum(axis=0)
    curves = Curves(z, is_flat)
    log_prior = belief.curve_prior.log_density(curves)
    mixed = np.logaddexp(np.log(_P_PRIOR) + log_prior, np.log1p(-_P_PRIOR) + log_normal)
    base = log_prior - mixed - np.log(N_CURVES)
    return replace(belief, curves=curves, rho=curves.at(belief.cells.log_u), log_base=base)


def _enough(belief: Belief) -> Array:
    """Weights by the highest power of the likelihood, up to 1, that leaves enough curves."""
    low, high = 0.0, 1.0
    if _effective(belief.tempered(1.0)) >= _MIN_EFFECTIVE:
        return belief.tempered(1.0)
    for _ in range(20):
        middle = 0.5 * (low + high)
        is_enough = _effective(belief.tempered(middle)) >= _MIN_EFFECTIVE
        low, high = (middle, high) if is_enough else (low, middle)
    return belief.tempered(low)


def _spread(curves: Curves, weights: Array, own: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Mean, and the root of twice the covariance, of the weighted coordinates of `own` curves."""
    z, weights = curves.z[own], weights[own] + 1e-300
    weights = weights / weights.sum()
    mean = weights @ z
    centred = z - mean
    covariance = 2.0 * (centred.T * weights) @ centred
    return mean, np.asarray(np.linalg.cholesky(covariance + 1e-6 * np.eye(z.shape[1])), float)
