"""Counts of rows -> an interval of the share that is valid however often it is checked."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincc, betaln, gammaln, xlog1py, xlogy

from gammagmm.labels.exact_interval import first_true
from gammagmm.posterior.betas import BetaMixture

__all__ = ["interval_at_any_look", "least_precision", "share_at_any_look"]


def interval_at_any_look(
    n_rows: int, n_drawn: int, n_found: int, mass: float, prior: BetaMixture
) -> tuple[int, int]:
    """Ends of a confidence interval for the number of anomalies, valid at all checks together.

    Rows are drawn one after the other in simple random order; so far, `n_found` of `n_drawn` are
    anomalies. With any distribution of the number K before the first look, which does not know the
    labels, the interval (Waudby-Smith, Ramdas 2020) has all K with

        prior(K) / posterior(K) = P(n_found) / P(n_found | K) < 1 / (1 - mass).

    The ratio is a martingale for the true K, so that the probability that it ever reaches
    1 / (1 - mass) is at most 1 - mass. So all intervals together contain the true number with at
    least the probability `mass`, and one may stop at any row. The prior matters for the width only.
    K has mixed Beta-binomial distributions, so that P(n_found) does not depend on `n_rows`.

    >>> one = np.ones(1)
    >>> interval_at_any_look(10_000, 30, 3, 0.9, BetaMixture(one, 0.5 * one, 4.5 * one))
    (143, 2968)
    """
    n, s = n_drawn, n_found
    least_log_p = np.log1p(-mass) + _log_choose(n, s) + _log_predicted(n, s, prior)
    whole = _log_choose(n_rows, n)

    def is_inside(total: int) -> bool:
        log_p = _log_choose(total, s) + _log_choose(n_rows - total, n - s) - whole
        return bool(log_p > least_log_p)

    low, high = s, n_rows - (n - s)
    # The likelihood rises up to here and falls from here on, where it is above its mean over K.
    mode = int(np.clip(s * (n_rows + 1) // max(n, 1), low, high))
    lower = first_true(is_inside, low, mode)
    return lower, first_true(lambda total: not is_inside(total), mode + 1, high + 1) - 1


def share_at_any_look(
    n_drawn: int, n_found: int, mass: float, prior: BetaMixture
) -> tuple[float, float]:
    """The same for the share of anomalies in a table without an end.

    >>> one = np.ones(1)
    >>> low, high = share_at_any_look(30, 3, 0.9, BetaMixture(one, 0.5 * one, 4.5 * one))
    >>> round(low, 4), round(high, 4)
    (0.0141, 0.2971)
    """
    n, s = n_drawn, n_found
    least_log_p = np.log1p(-mass) + _log_predicted(n, s, prior)

    def excess(share: float) -> float:
        return float(xlogy(s, share) + xlog1py(n - s, -share) - least_log_p)

    ends = []
    for end, is_certain in ((0.0, s == 0), (1.0, s == n)):
        inner = np.clip(s / max(n, 1), 1e-15, 1.0 - 1e-15)
        outer = min(max(end, 1e-300), 1.0 - 1e-16)
        ends.append(end if is_certain else float(brentq(excess, outer, inner, xtol=1e-15)))
    return ends[0], ends[1]


def least_precision(n_drawn: int, n_found: int, mass: float) -> float:
    """A lower end for the share among the first rows of a ranking, at all numbers of rows at once.

    Each row is labelled with the same probability, independently; of the labelled ones among the
    first rows, which are `n_drawn`, `n_found` are anomalies. For p and q > p, the likelihood ratio

        (q / p)^n_found ((1 - q) / (1 - p))^(n_drawn - n_found)

    is at most a martingale of the number of rows where the true share is at most p, and so is its
    mean over q, from p to 1. So with at least the probability `mass`, this mean stays below
    1 / (1 - mass) at all numbers of rows at which the share is at most p. The lower end is the p
    at which it has this value; 0 if no label is an anomaly.

    >>> [round(least_precision(n, k, 0.9), 3) for n, k in ((5, 5), (30, 15), (30, 0))]
    [0.506, 0.272, 0.0]
    """
    s, m = n_found, n_drawn
    if s == 0:
        return 0.0
    log_needed = -np.log1p(-mass) - betaln(s + 1.0, m - s + 1.0)

    def excess(p: float) -> float:
        mean = np.log(betaincc(s + 1.0, m - s + 1.0, p)) - np.log1p(-p)
        return float(mean - xlogy(s, p) - xlog1py(m - s, -p) - log_needed)

    return float(brentq(excess, 1e-9, min(s / m, 1.0 - 1e-9)))


def _log_predicted(n: int, s: int, prior: BetaMixture) -> float:
    """Log of the probability of `s` anomalies among `n` rows in a given order."""
    parts = betaln(prior.a + s, prior.b + n - s) - betaln(prior.a, prior.b)
    return float(np.log(prior.weights @ np.exp(parts - parts.max())) + parts.max())


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
