"""Labels of single rows -> the posterior of gamma, from curves over the ranking."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit, ndtri
from scipy.stats import rankdata

from gammagmm.inspection.known_rows import KnownRows
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = [
    "Belief",
    "CellLabels",
    "CurvePrior",
    "Curves",
    "GammaPrior",
    "RankCells",
    "count_labels",
    "draw_curves",
    "labelled_posterior",
    "prior_belief",
    "rank_cells",
]

Array = NDArray[np.float64]
Counts = NDArray[np.int_]

N_CURVES = 1 << 13
# Rows whose ranks differ by less than this share of the rank belong to one cell.
_RESOLUTION = 0.02
# Curves are drawn again while the effective number of curves is smaller than this.
_MIN_EFFECTIVE = 200.0
_MAX_ROUNDS = 12
# Share of the redrawn curves that come from the prior.
_P_PRIOR = 0.25
# Steps of the function that gives gamma its prior.
_N_STEPS = 256
# Number of Betas in the posterior: curves of about the same share are put together.
_N_PARTS = 64


@dataclass(frozen=True)
class RankCells:
    """Rows of about the same rank, together: u is the share of rows that score higher."""

    log_u: Array  # (G,) rising
    counts: Counts  # (G,) rows of each cell
    of_row: Counts  # (n,) each row's cell

    @property
    def n_rows(self) -> int:
        """Rows in all cells."""
        return len(self.of_row)


def rank_cells(scores: Array) -> RankCells:
    """Cells of the rows with these consensus `scores` (n,); ties share a cell.

    Ranks are told apart to a fiftieth of themselves: every row by itself at the top, and
    log(n) / log(1.02) cells at most.
    """
    rank = rankdata(-scores) - 0.5
    step = np.floor(np.log(rank) / np.log1p(_RESOLUTION))
    _, of_row, counts = np.unique(step, return_inverse=True, return_counts=True)
    mean_rank = np.bincount(of_row, rank) / counts
    return RankCells(np.log(mean_rank / len(scores)), counts, of_row)


@dataclass(frozen=True)
class CurvePrior:
    """Prior distribution of a curve.

    rho(u) = low + (high - low) . sigmoid(-b . (log u - l)), with l uniform, log b, logit low and
    logit step normal, where step = (high - low) / (1 - low); a share `p_flat` of the curves has
    b = 0, since some rankings say nothing.
    """

    l_range: tuple[float, float] = (np.log(0.0003), np.log(0.8))
    mean: tuple[float, float, float] = (np.log(1.5), -3.0, 0.25)
    deviation: tuple[float, float, float] = (0.8, 2.0, 2.0)
    p_flat: float = 0.3
    # What a label counts for. Curves are simpler than real rankings: with labels at their full
    # weight, intervals on made-up rankings held the truth less often than they promise.
    label_weight: float = 0.75

    def log_density(self, curves: Curves) -> Array:
        """Log density of each curve's coordinates."""
        low, high = self.l_range
        standard = (curves.z[:, 1:] - self.mean) / self.deviation
        inside = (curves.z[:, 0] >= low) & (curves.z[:, 0] <= high)
        family = np.where(curves.is_flat, self.p_flat, 1.0 - self.p_flat)
        scale = (high - low) * np.prod(self.deviation) * (2.0 * np.pi) ** 1.5
        with np.errstate(divide="ignore"):
            log_scale = np.log(family / scale)
        return np.where(inside, log_scale - 0.5 * np.square(standard).sum(axis=1), -np.inf)


@dataclass(frozen=True)
class Curves:
    """Falling curves rho(u), by their coordinates."""

    z: Array  # (N, 4): l, log b, logit low, logit step
    is_flat: NDArray[np.bool_]  # (N,)

    def __len__(self) -> int:
        return len(self.is_flat)

    def at(self, log_u: Array) -> Array:
        """Chance of being an anomaly at each of `log_u` (G,), for each curve: shape (N, G)."""
        middle, log_b, logit_low, logit_step = self.z.T
        b = np.where(self.is_flat, 0.0, np.exp(log_b))
        low = expit(logit_low)
        rise = (1.0 - low) * expit(logit_step)
        falling = expit(-b[:, None] * (log_u - middle[:, None]))
        return low[:, None] + rise[:, None] * falling


def draw_curves(prior: CurvePrior, points: Array) -> Curves:
    """The curves at `points` (N, 5) of the unit cube, spread as the prior is."""
    low, high = prior.l_range
    middle = low + (high - low) * points[:, 0]
    rest = prior.mean + np.array(prior.deviation) * ndtri(points[:, 1:4])
    return Curves(np.column_stack([middle, rest]), points[:, 4] < prior.p_flat)


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
    """Number of known anomalies and known normal rows in each rank cell."""

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
    def n_at_random(self) -> int:
        """Known rows that were chosen without knowing what they are."""
        return int(self.anomalies.sum() + self.normals.sum())

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
    """Weighted curves: their distribution given the labels.

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
        """Whether enough curves have weight; False if the labels contradict all of them."""
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
        """The belief given all `labels`; curves are drawn again if too few remain."""
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


def count_labels(cells: RankCells, known: KnownRows) -> CellLabels:
    """How many known rows of each kind there are in each rank cell."""
    n_cells = len(cells.counts)
    counts = [
        np.bincount(
            cells.of_row[known.rows[(known.labels == label) & (known.at_random == at_random)]],
            minlength=n_cells,
        )
        for at_random in (True, False)
        for label in (1, 0)
    ]
    return CellLabels(*counts)


def labelled_posterior(belief: Belief) -> GammaPosterior:
    """Posterior of the share of anomalies among these rows, the known ones as they are.

    gamma = (known anomalies + those among the unknown rows) / n, where a curve expects
    sum rho anomalies among the unknown rows, with variance sum rho . (1 - rho). Curves of about
    the same share make up one Beta of their mean and variance, on the range that is left. A count
    takes up half a row to either side, but for what is known, which bounds it.
    """
    n_rows, labels = belief.cells.n_rows, belief.labels
    if not belief.unknown.any():
        return _certain(labels.n_anomalies / n_rows, labels.n_at_random)
    weights, mean, variance = _unknown_anomalies(belief)
    low = max(labels.n_anomalies - 0.5, 0.0) / n_rows
    span = 1.0 - max(labels.n_normals - 0.5, 0.0) / n_rows - low
    share = ((labels.n_anomalies + mean) / n_rows - low) / span
    spread = (variance + 1.0 / 12.0) / (n_rows * span) ** 2
    weights, share, spread = _put_together(weights, share, spread)
    bounds = (labels.n_anomalies / n_rows, 1.0 - labels.n_normals / n_rows)
    betas = BetaMixture(weights, *_beta_parameters(share, spread), 0.0, 1.0, low, span, *bounds)
    prob_zero = 0.0 if labels.n_anomalies else max(1.0 - float(weights.sum()), 0.0)
    error = GammaPosterior(prob_zero, betas).std / np.sqrt(belief.n_effective)
    return GammaPosterior(prob_zero, betas, standard_error=error, n_labels=labels.n_at_random)


def _certain(share: float, n_labels: int) -> GammaPosterior:
    """The point mass at `share`."""
    part = np.ones(1)
    betas = BetaMixture(float(share > 0.0) * part, part, part, origin=share, span=0.0)
    return GammaPosterior(float(share == 0.0), betas, standard_error=0.0, n_labels=n_labels)


def _unknown_anomalies(belief: Belief) -> tuple[Array, Array, Array]:
    """Weight of each curve, and mean and variance of its anomalies among the unknown rows.

    Where no anomaly is known, the chance that there is none is left to the atom at 0.
    """
    matters = belief.weights > 1e-12 * belief.weights.max()
    weights, rho, unknown = belief.weights[matters], belief.rho[matters], belief.unknown
    mean, variance = rho @ unknown, (rho * (1.0 - rho)) @ unknown
    if belief.labels.n_anomalies:
        return weights / weights.sum(), mean, variance
    some = -np.expm1(np.log1p(-rho) @ unknown)
    square = (variance + np.square(mean)) / some
    return weights * some, mean / some, np.maximum(square - np.square(mean / some), 0.0)


def _put_together(weights: Array, share: Array, spread: Array) -> tuple[Array, Array, Array]:
    """Weights, means and variances of `_N_PARTS` groups of curves, by their shares."""
    order = np.argsort(share)
    weights, share, spread = weights[order], share[order], spread[order]
    middle = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    _, group = np.unique(np.floor(middle * _N_PARTS), return_inverse=True)
    total = np.bincount(group, weights).astype(np.float64)
    mean = np.bincount(group, weights * share) / total
    between = np.square(share - mean[group])
    return total, mean, np.bincount(group, weights * (spread + between)) / total


def _beta_parameters(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Parameters a, b of the Betas with these means and, if such Betas exist, variances."""
    mean = np.clip(mean, 1e-9, 1.0 - 1e-9)
    size = np.maximum(mean * (1.0 - mean) / variance - 1.0, 1e-2)
    return mean * size, (1.0 - mean) * size
