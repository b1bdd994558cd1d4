"""A mixture of Beta distributions, truncated to one range: the posterior without its atom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, betaincinv, betaln, xlog1py, xlogy

__all__ = ["BetaMixture"]

Array = NDArray[np.float64]

# Most cells (points x parts) that are evaluated at the same time.
_CHUNK_CELLS = 1 << 20
# From this many points on, `sf` finds first where the parts are neither 0 nor 1.
_MANY_POINTS = 1000


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """Parts Beta(a_j, b_j) with weights w_j, each truncated to [low, high].

    The weights need not sum to 1: `cdf` and `sf` add up to their total.
    """

    weights: Array
    a: Array
    b: Array
    low: float = 0.0
    high: float = 1.0

    def __len__(self) -> int:
        return len(self.weights)

    def moment(self, order: int) -> float:
        """Sum over the parts of w_j . E[x ** order]."""
        steps = np.arange(order)[:, None]
        untruncated = np.prod((self.a + steps) / (self.a + self.b + steps), axis=0)
        raised = _mass(self.a + order, self.b, self.low, self.high)
        return float(self.weights @ (untruncated * raised / self._total_mass()))

    def pdf(self, x: Array) -> Array:
        """Weighted density at `x`."""
        density = self._sum(x, lambda cells: np.exp(_log_density(cells, self.a, self.b)))
        return np.where((x >= self.low) & (x <= self.high), density, 0.0)

    def cdf(self, x: Array) -> Array:
        """Weight at or below `x`."""
        return self._sum(x, lambda cells: _mass(self.a, self.b, self.low, cells))

    def sf(self, x: Array) -> Array:
        """Weight above `x`, precise even if it is small."""
        if np.size(x) < _MANY_POINTS or self.low > 0.0 or self.high < 1.0:
            return self._sum(x, lambda cells: _mass(self.a, self.b, cells, self.high))
        ends = _ends(self.a, self.b)
        return self._sum(x, lambda cells: _upper_tail(self.a, self.b, cells, ends))

    def quantile(self, below: float, above: float) -> float:
        """The smallest x with the weight `below` at or below it, and `above` above it.

        It is solved in the smaller tail, where the difference keeps its digits.
        """

        def rising(x: float) -> float:
            point = np.array(x)
            return float(above - self.sf(point) if above < below else self.cdf(point) - below)

        if rising(self.low) >= 0.0:
            return self.low
        if rising(self.high) <= 0.0:
            return self.high
        return float(brentq(rising, self.low, self.high, xtol=1e-15, rtol=1e-14))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` draws: a part is drawn, then a value from it by inversion."""
        part = rng.choice(len(self), size=n, p=self.weights / self.weights.sum())
        a, b = self.a[part], self.b[part]
        below, above = (betainc(a, b, bound) for bound in (self.low, self.high))
        return np.asarray(betaincinv(a, b, below + rng.random(n) * (above - below)))

    def restrict(self, low: float, high: float) -> BetaMixture:
        """The mixture inside [low, high]; each weight is the probability of the part there."""
        low, high = max(low, self.low), min(high, self.high)
        if not low < high:
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
        deviation = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
        around = mean[:, None] + deviation[:, None] * np.linspace(-5.0, 5.0, 31)
        inside = np.clip(around.ravel(), self.low, self.high)
        even = np.linspace(self.low, self.high, 257)
        # Points closer than a tenth of the smallest standard deviation add nothing.
        points = np.sort(np.concatenate([inside, even]))
        gap = 0.1 * deviation.min()
        _, first = np.unique(np.floor(points / gap), return_index=True)
        return np.concatenate([points[first], [self.high]])

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        return self.low, self.high

    def _total_mass(self) -> Array:
        return _mass(self.a, self.b, self.low, self.high)

    def _sum(self, x: Array, parts: Callable[[Array], Array]) -> Array:
        """Sum over the parts of w_j / mass_j . parts(x)_j, for `x` of any shape."""
        scaled = self.weights / self._total_mass()
        flat = np.clip(x, self.low, self.high).reshape(-1, 1)
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
