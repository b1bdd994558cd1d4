"""Labels of single rows -> the posterior of the share of anomalies, and the value of more labels.

The share theta among the rows that nobody has looked at has a mixture of Beta distributions as its
prior (`prior_of`). Labels of rows that were chosen blindly have a binomial
likelihood, so the posterior of theta is such a mixture again, and the number of anomalies among the
rows that are left has a mixture of Beta-binomial distributions. Known rows count as themselves.

Rows that were picked from the top of the ranking are among the rows that are left by the sample:
their labels bound the number of anomalies there from below and from above. The distribution is
clipped to these bounds: what lies beyond a bound is put on it. So an interval is the one without
these labels, clipped to what is possible, and contains the truth at least as often. Nothing else
follows from these labels without assumptions about the ranking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln, gammaln, logsumexp

from gammagmm.labels.exact_interval import first_true
from gammagmm.labels.known_rows import KnownRows
from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.track_record import (
    UNIFORM_PART,
    load_label_prior,
    load_reference,
    with_uniform_part,
)

__all__ = [
    "LabelCounts",
    "count_labels",
    "expected_width",
    "labelled_posterior",
    "n_for_width",
    "prior_of",
    "updated",
]

Array = NDArray[np.float64]

N_OUTCOMES = 512
"""Most outcomes of the next labels for which `expected_width` finds the interval."""
N_BISECTIONS = 40
LITTLE_INSIDE = 0.05
"""Probability off a bound below which the clipped 90 % interval would have no width."""
FAR = 1e15
"""Beta(1, FAR) is at the share 0, and Beta(FAR, 1) at 1, for every table."""


@dataclass(frozen=True)
class LabelCounts:
    """How many rows there are, and how many of them have which label."""

    n_rows: int
    n_drawn: int  # chosen blindly
    n_found: int  # the anomalies among those
    n_told: int  # in a list of the user's own
    n_told_anomalies: int
    n_picked: int = 0  # from the top of the ranking
    n_picked_anomalies: int = 0

    @property
    def n_anomalies(self) -> int:
        """Rows known to be anomalies."""
        return self.n_found + self.n_told_anomalies + self.n_picked_anomalies

    @property
    def as_picked(self) -> LabelCounts:
        """The same with lists among the rows that only bound the number of anomalies."""
        return replace(
            self,
            n_told=0,
            n_told_anomalies=0,
            n_picked=self.n_picked + self.n_told,
            n_picked_anomalies=self.n_picked_anomalies + self.n_told_anomalies,
        )

    @property
    def n_outside(self) -> int:
        """Rows that are neither in the sample nor in a list."""
        return self.n_rows - self.n_drawn - self.n_told

    @property
    def n_left(self) -> int:
        """Rows without a label."""
        return self.n_outside - self.n_picked


def count_labels(known: KnownRows, n_rows: int) -> LabelCounts:
    """The counts for a table of `n_rows` rows, of which `known` have labels."""
    drawn = known.labels[known.at_random]
    told, picked = known.labels[known.listed], known.labels[known.picked]
    return LabelCounts(
        n_rows,
        len(drawn),
        int(drawn.sum()),
        len(told),
        int(told.sum()),
        len(picked),
        int(picked.sum()),
    )


def prior_of(counts: LabelCounts) -> BetaMixture:
    """The prior of the share for a table with these `counts` of labels.

    Without labels of rows that were chosen blindly, it is the distribution of the share in labelled
    real tables as it was measured. With them, it has a part Beta(1, 1), see `load_label_prior`.
    """
    return load_label_prior() if counts.n_drawn > 0 else load_reference()


def labelled_posterior(counts: LabelCounts, prior: BetaMixture) -> GammaPosterior:
    """Posterior of the share of anomalies in a table with these `counts` of labels.

    Without rows that were chosen blindly, a list bounds the number of anomalies as picked rows do:
    then the prior describes all rows, and known anomalies need not be further ones.
    """
    if counts.n_drawn == 0:
        counts = counts.as_picked
    n_outside, least = counts.n_outside, counts.n_picked_anomalies
    n_apart, most = counts.n_anomalies - least, least + counts.n_left
    if counts.n_left > 0:
        parts = updated(prior, counts.n_drawn, np.array([counts.n_found]))
        weights, a, b = (part[0] for part in parts)
    else:  # the number of anomalies is known, whatever the parts are
        weights, a, b = np.ones((3, 1))
    bounds = (least, most) if counts.n_picked > 0 else None
    mixture = BetaBinomialMixture(
        weights, a, b, counts.n_rows, n_apart, n_outside, least, most, bounds
    )
    if counts.n_left and counts.n_picked:
        mixture = _possible(mixture, counts)
    is_none_found, prob_zero = counts.n_anomalies == 0, 0.0
    if is_none_found:
        prob_zero = float(mixture.pmf[0])
        mixture = mixture.restrict(1.0 / counts.n_rows, 1.0)
    return GammaPosterior(
        prob_zero,
        mixture,
        standard_error=0.0,
        n_labels=counts.n_drawn,
        is_model=False,
        may_be_zero=is_none_found and counts.n_drawn > 0,
    )


def _possible(mixture: BetaBinomialMixture, counts: LabelCounts) -> BetaBinomialMixture:
    """The clipped `mixture` with more probability between its bounds, if nearly all is on one.

    Without rows that were chosen blindly, the reference has next to none between them: as it loses
    it, a part Beta(1, 1) comes in, which has at most its usual weight there. As less and less is
    between the bounds, the mixture passes from the clipped to the truncated one. Both steps are
    continuous, so that one more anomaly changes little.
    """
    if counts.n_drawn == 0 and (inside := _inside(mixture)) < UNIFORM_PART:
        of_uniform = counts.n_left / (counts.n_outside + 1)
        weight = UNIFORM_PART / max(of_uniform, UNIFORM_PART) * (1.0 - inside / UNIFORM_PART)
        prior = with_uniform_part(load_reference(), weight)
        mixture = replace(mixture, weights=prior.weights, a=prior.a, b=prior.b)
    clipped = _inside(mixture) / (LITTLE_INSIDE if counts.n_drawn else UNIFORM_PART)
    if clipped >= 1.0:
        return mixture
    beyond = _beyond(mixture) * clipped
    within = mixture.truncated().scale(1.0 - sum(beyond))
    return replace(
        within,
        weights=np.append(within.weights, beyond),
        a=np.append(within.a, [1.0, FAR]),
        b=np.append(within.b, [FAR, 1.0]),
    )


def _inside(mixture: BetaBinomialMixture) -> float:
    """Probability off the more probable end."""
    return float(min(mixture.pmf[1:].sum(), mixture.pmf[:-1].sum()))


def _beyond(mixture: BetaBinomialMixture) -> Array:
    """Probability below and above what is possible, which is put on the ends."""
    whole = replace(mixture, first=0, last=mixture.n_left, bounds=None).pmf
    return np.array([whole[: mixture.first].sum(), whole[mixture.last + 1 :].sum()])


def expected_width(counts: LabelCounts, prior: BetaMixture, n: int, mass: float) -> float:
    """Mean width of the interval of probability `mass` once `n` more rows have labels.

    The mean is over the number of anomalies among the `n` rows, which has a mixture of
    Beta-binomial distributions. The number among the rows left after that is treated as continuous:
    their share has the Beta distribution with the mean and variance of each part. Rows that were
    picked are among them, and their labels bound the interval.
    """
    n_left = counts.n_outside - n
    if n_left == 0:
        return 0.0
    found, p_found = _outcomes(counts, prior, n)
    weights, a, b = updated(prior, counts.n_drawn + n, counts.n_found + found)
    size = (n_left - 1.0) / (a + b + n_left)
    # One row that is left is an anomaly or not, as the Beta distribution is in the limit.
    a, b = a * np.maximum(size, 1e-6), b * np.maximum(size, 1e-6)
    low, high = (_quantiles(weights, a, b, q) for q in (0.5 * (1.0 - mass), 0.5 * (1.0 + mass)))
    least, n_unknown = counts.n_picked_anomalies, counts.n_left
    low, high = (np.clip(found + end * n_left, least, least + n_unknown) for end in (low, high))
    if counts.n_anomalies == 0 and counts.n_drawn + n > 0:
        low = np.where(found == 0, 0.0, low)  # as the interval of the posterior does
    return float(p_found @ (high - low)) / counts.n_rows


def n_for_width(counts: LabelCounts, prior: BetaMixture, width: float, mass: float) -> int:
    """The smallest number of further labels whose expected width is at most `width`."""

    def is_enough(n: int) -> bool:
        return expected_width(counts, prior, n, mass) <= width

    too_few, enough = -1, 0
    while enough < counts.n_outside and not is_enough(enough):
        too_few, enough = enough, min(2 * enough + 1, counts.n_outside)
    return first_true(is_enough, too_few + 1, enough)


def updated(prior: BetaMixture, n: int, found: NDArray[np.int_]) -> tuple[Array, Array, Array]:
    """Weights, a and b (S, J) of the mixture of theta for `found` (S,) anomalies among `n` rows."""
    a = prior.a + found[:, None]
    b = prior.b + (n - found)[:, None]
    with np.errstate(divide="ignore"):
        log_weights = np.log(prior.weights) + betaln(a, b) - betaln(prior.a, prior.b)
    weights = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
    return weights, a, b


def _outcomes(counts: LabelCounts, prior: BetaMixture, n: int) -> tuple[NDArray[np.int_], Array]:
    """Numbers of anomalies among the next `n` rows, with their probabilities.

    If there are more than `N_OUTCOMES`, these are quantiles of the number, which are equally
    probable: the width changes little from one quantile to the next.
    """
    found = np.arange(n + 1)
    log_p = _log_predictive(counts, prior, n, found)
    p_found = np.exp(log_p - logsumexp(log_p))
    if n < N_OUTCOMES:
        return found, p_found
    middles = (np.arange(N_OUTCOMES) + 0.5) / N_OUTCOMES
    places = np.minimum(np.searchsorted(np.cumsum(p_found), middles), n)
    found, n_times = np.unique(places, return_counts=True)
    return found, n_times / N_OUTCOMES


def _log_predictive(
    counts: LabelCounts, prior: BetaMixture, n: int, found: NDArray[np.int_]
) -> Array:
    """Log probability of `found` anomalies among the next `n` rows, up to a constant."""
    weights, a, b = (part[0] for part in updated(prior, counts.n_drawn, np.array([counts.n_found])))
    fitting = betaln(a + found[:, None], b + (n - found)[:, None]) - betaln(a, b)
    log_choose = -gammaln(found + 1.0) - gammaln(n - found + 1.0)
    return np.asarray(log_choose + logsumexp(fitting, b=weights, axis=1))


def _quantiles(weights: Array, a: Array, b: Array, q: float) -> Array:
    """The quantile `q` of each of S mixtures of J Beta distributions, by bisection."""
    ends = betaincinv(a, b, q)  # it lies between the quantiles of the parts
    low, high = ends.min(axis=1), ends.max(axis=1)
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        is_below = (weights * betainc(a, b, middle[:, None])).sum(axis=1) < q
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return 0.5 * (low + high)
