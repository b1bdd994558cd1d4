"""A mixture of Beta-binomial distributions: the share of anomalies if some rows have labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp

__all__ = ["BetaBinomialMixture"]

Array = NDArray[np.float64]

N_GRID = 2048
"""Most steps of `grid`."""
# A share times the number of rows is a whole number up to this rounding, relative to the latter.
_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class BetaBinomialMixture:
    """Shares (n_anomalies + R) / n_rows, where R is mixed from Beta-binomial distributions.

    R counts the anomalies among `n_left` rows. Part j is BetaBinomial(n_left, a_j, b_j), truncated
    to first <= R <= last, and has the weight w_j. The weights need not sum to 1: `cdf` and `sf`
    add up to their total. There are no parts left where `first` exceeds `last`.

    With `bounds`, every R below the first bound counts as the first bound, and every R above the
    second as the second, before it is truncated.
    """

    weights: Array
    a: Array
    b: Array
    n_rows: int
    n_anomalies: int
    n_left: int
    first: int
    last: int
    bounds: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def moment(self, order: int) -> float:
        """Sum over the shares of probability . share ** order."""
        return float(self.pmf @ self.shares**order)

    def pdf(self, x: Array) -> Array:
        """Density at `x` if the probability of each share is spread evenly over one row."""
        place = np.rint(np.asarray(x) * self.n_rows) - self.n_anomalies - self.first
        is_inside = (place >= 0) & (place < len(self.pmf))
        padded = np.append(self.pmf, 0.0) * self.n_rows
        return padded[np.where(is_inside, place, -1).astype(int)]

    def cdf(self, x: Array) -> Array:
        """Weight at or below `x`."""
        return np.append(0.0, np.cumsum(self.pmf))[self._n_at_most(x)]

    def sf(self, x: Array) -> Array:
        """Weight above `x`, precise even if it is small."""
        return np.append(np.cumsum(self.pmf[::-1])[::-1], 0.0)[self._n_at_most(x)]

    def quantile(self, below: float, above: float) -> float:
        """The smallest share with the weight `below` at or below it, and `above` above it."""
        if above < below:
            tails = np.cumsum(self.pmf[::-1])[::-1]
            place = int(np.searchsorted(-tails, -above)) - 1
        else:
            place = int(np.searchsorted(np.cumsum(self.pmf), below))
        return float(self.shares[np.clip(place, 0, len(self.pmf) - 1)])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """`n` draws."""
        cumulative = np.cumsum(self.pmf)
        place = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        return self.shares[np.minimum(place, len(self.pmf) - 1)]

    def restrict(self, low: float, high: float) -> BetaBinomialMixture:
        """The mixture inside [low, high]; each weight is the probability of the part there."""
        first = max(self.first, int(np.ceil((low - _ROUNDING) * self.n_rows)) - self.n_anomalies)
        last = min(self.last, int(np.floor((high + _ROUNDING) * self.n_rows)) - self.n_anomalies)
        inside = slice(first - self.first, max(last - self.first + 1, first - self.first))
        weights = self.weights * self._parts[:, inside].sum(axis=1)
        return replace(self, weights=weights, first=first, last=last)

    def truncated(self) -> BetaBinomialMixture:
        """The mixture given that R lies between its bounds, so that nothing is put on them.

        The weights sum to 1, however little lies between the bounds.
        """
        inside = logsumexp(self._log_parts(self.first, self.last), axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) + inside - betaln(self.a, self.b)
        return replace(self, weights=np.exp(logs - logsumexp(logs)), bounds=None)

    def scale(self, factor: float) -> BetaBinomialMixture:
        """The same mixture with every weight multiplied by `factor`."""
        return replace(self, weights=self.weights * factor)

    def grid(self) -> Array:
        """Rising shares that are likely, in steps of whole rows."""
        likely = np.flatnonzero(self.pmf > 1e-12 * self.pmf.max(initial=0.0))
        if not len(likely):
            return np.empty(0)
        steps = np.linspace(likely[0], likely[-1], N_GRID + 1)
        return self.shares[np.unique(np.rint(steps).astype(int))]

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest possible share."""
        ends = np.array([self.first, self.last]) + self.n_anomalies
        low, high = (ends / self.n_rows).tolist()
        return low, high

    @property
    def shares(self) -> Array:
        """The possible shares, in rising order."""
        return (self.n_anomalies + np.arange(self.first, self.last + 1)) / self.n_rows

    @cached_property
    def pmf(self) -> Array:
        """Probability of each of the shares."""
        return np.asarray(self.weights @ self._parts)

    @cached_property
    def _parts(self) -> Array:
        """Probability of each of the shares in each part, (n_parts, n_shares)."""
        if self.bounds is None:
            return self._probabilities(self.first, self.last)
        least, most = self.bounds
        every = self._probabilities(0, self.n_left)
        inside = every[:, least : most + 1].copy()
        inside[:, 0] += every[:, :least].sum(axis=1)
        inside[:, -1] += every[:, most + 1 :].sum(axis=1)
        kept = inside[:, self.first - least : self.last + 1 - least]
        total = kept.sum(axis=1, keepdims=True)
        return np.asarray(kept / np.where(total > 0.0, total, 1.0))

    def _probabilities(self, first: int, last: int) -> Array:
        """P(R = k) in each part for k = first, ..., last, truncated to these."""
        log_parts = self._log_parts(first, last)
        parts = np.exp(log_parts - log_parts.max(axis=1, initial=-np.inf, keepdims=True))
        return np.asarray(parts / np.maximum(parts.sum(axis=1, keepdims=True), 1.0))

    def _log_parts(self, first: int, last: int) -> Array:
        """Log of B(a, b) / n_left! P(R = k) in each part for k = first, ..., last."""
        count = np.arange(first, last + 1)
        log_choose = -gammaln(count + 1.0) - gammaln(self.n_left - count + 1.0)
        fitting = betaln(self.a[:, None] + count, self.b[:, None] + (self.n_left - count))
        return np.asarray(log_choose + fitting)

    def _n_at_most(self, x: Array) -> NDArray[np.int_]:
        """Number of the shares that are at most `x`."""
        place = np.floor((np.asarray(x) + _ROUNDING) * self.n_rows) - self.n_anomalies - self.first
        return np.clip(place + 1, 0, len(self.pmf)).astype(int)
