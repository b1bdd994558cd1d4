"""A mixture of Beta distributions truncated to one range: the posterior without its atom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, betaincinv, betaln, xlog1py, xlogy

__all__ = ["BetaMixture"]

Array = NDArray[np.float64]

# Cells (points x parts) that are evaluated at once.
_CHUNK_CELLS = 1 << 20


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
        """Weight above `x`, precise where it is small."""
        return self._sum(x, lambda cells: _mass(self.a, self.b, cells, self.high))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` draws, by inversion within a drawn part."""
        part = rng.choice(len(self), size=n, p=self.weights / self.weights.sum())
        a, b = self.a[part], self.b[part]
        below, above = betainc(a, b, self.low), betainc(a, b, self.high)
        return np.asarray(betaincinv(a, b, below + rng.random(n) * (above - below)))

    def restrict(self, low: float, high: float) -> BetaMixture:
        """The mixture inside [low, high]; the weights keep the probability they have there."""
        low, high = max(low, self.low), min(high, self.high)
        if not low < high:
            return BetaMixture(*(np.empty(0),) * 3)
        weights = self.weights * _mass(self.a, self.b, low, high) / self._total_mass()
        keep = weights > 0.0
        return BetaMixture(weights[keep], self.a[keep], self.b[keep], low, high)

    def scale(self, factor: float) -> BetaMixture:
        """The same mixture with every weight multiplied by `factor`."""
        return BetaMixture(self.weights * factor, self.a, self.b, self.low, self.high)

    def grid(self) -> Array:
        """Points, rising from `low` to `high`, close enough to resolve every part that matters."""
        major = self.weights > 1e-4 * self.weights.sum()
        a, b = self.a[major], self.b[major]
        mean = a / (a + b)
        deviation = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
        around = mean[:, None] + deviation[:, None] * np.linspace(-5.0, 5.0, 31)
        inside = np.clip(around.ravel(), self.low, self.high)
        even = np.linspace(self.low, self.high, 257)
        # Points nearer than a tenth of the narrowest deviation add nothing.
        points = np.sort(np.concatenate([inside, even]))
        gap = 0.1 * deviation.min()
        _, first = np.unique(np.floor(points / gap), return_index=True)
        return np.concatenate([points[first], [self.high]])

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
    """P(low < x <= high) for x ~ Beta(a, b), from whichever tail is the smaller."""
    is_upper = np.asarray(low) > a / (a + b)
    return np.where(
        is_upper,
        betaincc(a, b, low) - betaincc(a, b, high),
        betainc(a, b, high) - betainc(a, b, low),
    )


def _log_density(x: Array, a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))
