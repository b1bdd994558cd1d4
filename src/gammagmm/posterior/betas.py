"""A mixture of Beta distributions, truncated to one range: the posterior without its atom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, betaincinv, betaln, xlog1py, xlogy

__all__ = ["BetaMixture"]

Array = NDArray[np.float64]

# Most cells (points x parts) that are evaluated at the same time.
_CHUNK_CELLS = 1 << 20
# From this many points on, `sf` finds first where the parts are neither 0 nor 1.
_MANY_POINTS = 1000


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """Parts origin + span . Beta(a_j, b_j) with weights w_j, each truncated to [low, high].

    The weights need not sum to 1: `cdf` and `sf` add up to their total. A `span` of 0 is the
    point mass at `origin`. Values below `least` are set to `least`, and values above `most` to
    `most`, so the distribution has atoms there; `moment` ignores this.
    """

    weights: Array
    a: Array
    b: Array
    low: float = 0.0
    high: float = 1.0
    origin: float = 0.0
    span: float = 1.0
    least: float = 0.0
    most: float = 1.0

    def __len__(self) -> int:
        return len(self.weights)

    def moment(self, order: int) -> float:
        """Sum over the parts of w_j . E[x ** order]."""
        # The binomial expansion of (origin + span . y) ** order.
        return sum(
            comb(order, i) * self.origin ** (order - i) * self.span**i * self._beta_moment(i)
            for i in range(order + 1)
        )

    def pdf(self, x: Array) -> Array:
        """Weighted density at `x`."""
        if self.span == 0.0:
            return np.zeros(np.shape(x))
        density = self._sum(x, lambda cells: np.exp(_log_density(cells, self.a, self.b)))
        low, high = self.support
        return np.where((x >= low) & (x <= high), density / self.span, 0.0)

    def cdf(self, x: Array) -> Array:
        """Weight at or below `x`."""
        below = self._sum(x, lambda cells: _mass(self.a, self.b, self._bounds[0], cells))
        total = self.weights.sum()
        return np.where(x < self.least, 0.0, np.where(x >= self.most, total, below))

    def sf(self, x: Array) -> Array:
        """Weight above `x`, precise even if it is small."""
        bounds = self._bounds
        if np.size(x) < _MANY_POINTS or bounds[0] > 0.0 or bounds[1] < 1.0:
            above = self._sum(x, lambda cells: _mass(self.a, self.b, cells, bounds[1]))
        else:
            ends = _ends(self.a, self.b)
            above = self._sum(x, lambda cells: _upper_tail(self.a, self.b, cells, ends))
        total = self.weights.sum()
        return np.where(x < self.least, total, np.where(x >= self.most, 0.0, above))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` draws: a part is drawn, then a value from it by inversion."""
        part = rng.choice(len(self), size=n, p=self.weights / self.weights.sum())
        a, b = self.a[part], self.b[part]
        below, above = (betainc(a, b, bound) for bound in self._bounds)
        inside = betaincinv(a, b, below + rng.random(n) * (above - below))
        return np.clip(self.origin + self.span * inside, self.least, self.most)

    def restrict(self, low: float, high: float) -> BetaMixture:
        """The mixture inside [low, high]; each weight is the probability of the part there."""
        if high < self.least or low > self.most:
            return BetaMixture(*(np.empty(0),) * 3)
        # An atom at `least` or `most` is inside if its place is.
        low = self.low if low <= self.least else max(low, self.low)
        high = self.high if high >= self.most else min(high, self.high)
        if self.span == 0.0 and low <= self.origin <= high:
            return self
        if self.span == 0.0 or not low < high:
            return BetaMixture(*(np.empty(0),) * 3)
        inside = replace(self, low=low, high=high)
        weights = self.weights * inside._total_mass() / self._total_mass()
        keep = weights > 0.0
        return replace(inside, weights=weights[keep], a=self.a[keep], b=self.b[keep])

    def scale(self, factor: float) -> BetaMixture:
        """The same mixture with every weight multiplied by `factor`."""
        return replace(self, weights=self.weights * factor)

    def grid(self) -> Array:
        """Rising points from `low` to `high`, dense enough to resolve every part that matters."""
        major = self.weights > 1e-4 * self.weights.sum()
        a, b = self.a[major], self.b[major]
        mean = a / (a + b)
        deviation = self.span * np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
        mean = self.origin + self.span * mean
        around = mean[:, None] + deviation[:, None] * np.linspace(-5.0, 5.0, 31)
        low, high = self.support
        if self.span == 0.0:
            return np.array([self.origin])
        inside = np.clip(around.ravel(), low, high)
        even = np.linspace(low, high, 257)
        # Points closer than a tenth of the smallest standard deviation add nothing.
        points = np.sort(np.concatenate([inside, even]))
        gap = 0.1 * deviation.min()
        _, first = np.unique(np.floor(points / gap), return_index=True)
        return np.concatenate([points[first], [high]])

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        low, high = max(self.low, self.origin), min(self.high, self.origin + self.span)
        return max(low, self.least), min(high, self.most)

    @property
    def _bounds(self) -> tuple[Array, Array]:
        """`low` and `high` on the scale of the Betas."""
        if self.span == 0.0:
            return np.array(0.0), np.array(1.0)
        return self._inner(np.array(self.low)), self._inner(np.array(self.high))

    def _inner(self, x: Array) -> Array:
        """`x` on the scale of the Betas, from 0 to 1."""
        if self.span == 0.0:
            return np.where(x >= self.origin, 1.0, 0.0)
        return np.clip((x - self.origin) / self.span, 0.0, 1.0)

    def _beta_moment(self, order: int) -> float:
        """Sum over the parts of w_j . E[y ** order], y on the scale of the Betas."""
        steps = np.arange(order)[:, None]
        untruncated = np.prod((self.a + steps) / (self.a + self.b + steps), axis=0)
        raised = _mass(self.a + order, self.b, *self._bounds)
        return float(self.weights @ (untruncated * raised / self._total_mass()))

    def _total_mass(self) -> Array:
        return _mass(self.a, self.b, *self._bounds)

    def _sum(self, x: Array, parts: Callable[[Array], Array]) -> Array:
        """Sum over the parts of w_j / mass_j . parts(x)_j, for `x` of any shape."""
        scaled = self.weights / self._total_mass()
        flat = self._inner(np.clip(x, self.low, self.high)).reshape(-1, 1)
        total = np.zeros(len(flat))
        rows = max(_CHUNK_CELLS // max(len(self), 1), 1)
        for start in range(0, len(flat), rows):
            chunk = slice(start, start + rows)
            total[chunk] = parts(flat[chunk]) @ scaled
        return total.reshape(np.shape(x))


def _mass(a: Array, b: Array, low: Array | float, high: Array | float) -> Array:
    """P(low < x <= high) for x ~ Beta(a, b), computed in the smaller tail."""
    is_upper = np.asarray(low) > a / (a + b)
    # Often all are on one side, and these functions take most of the time of a quantile.
    if not is_upper.any():
        return np.asarray(betainc(a, b, high) - betainc(a, b, low))
    return np.where(
        is_upper,
        betaincc(a, b, low) - betaincc(a, b, high),
        betainc(a, b, high) - betainc(a, b, low),
    )


def _ends(a: Array, b: Array) -> tuple[Array, Array]:
    """Points below and above which P(y > x), for y ~ Beta(a, b), is 1 - 1e-18 and 1e-300 or less.

    On either side of the mode, the density only falls and bounds the tail behind it.
    """
    with np.errstate(invalid="ignore"):
        mode = (a - 1.0) / (a + b - 2.0)
    ends = []
    # A density without a mode inside (0, 1) does not fall on both sides.
    is_hump = (a > 1.0) & (b > 1.0)
    for end, log_tail in ((0.0, np.log(1e-18)), (1.0, np.log(1e-300))):
        outer, inner = np.full(len(a), end), np.where(is_hump, mode, end)
        for _ in range(30):
            middle = 0.5 * (outer + inner)
            is_beyond = _log_density(middle, a, b) < log_tail
            outer, inner = np.where(is_beyond, middle, outer), np.where(is_beyond, inner, middle)
        ends.append(np.where(is_hump, outer, end))
    return ends[0], ends[1]


def _upper_tail(a: Array, b: Array, x: Array, ends: tuple[Array, Array]) -> Array:
    """P(y > x) for y ~ Beta(a, b), to 1e-15 of itself, or to 1e-300."""
    tail = np.where(x <= ends[0], 1.0, 0.0)
    point, part = np.nonzero((x > ends[0]) & (x < ends[1]))
    tail[point, part] = betaincc(a[part], b[part], x[point, 0])
    return tail


def _log_density(x: Array, a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))
