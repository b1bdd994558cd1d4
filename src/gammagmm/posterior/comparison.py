"""Two posteriors -> their means and intervals, and the probability that one share is larger."""

from __future__ import annotations

from typing import Any

import numpy as np

from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["NO_ESTIMATE", "NO_LABELS", "compare_posteriors"]

NO_ESTIMATE, NO_LABELS = "no estimate", "no labels"
"""Why two posteriors cannot be compared: one of them has no estimate, or does not use labels."""


def compare_posteriors(first: GammaPosterior, second: GammaPosterior) -> dict[str, Any]:
    """Means and intervals of two posteriors, and the probability that one share is larger.

    P(B > A) is the integral of P(B > x) over the distribution of A, where A and B are independent.
    The probabilities are None, and "reason" says why, unless both posteriors use labels.
    """
    data: dict[str, Any] = {}
    for letter, posterior in (("a", first), ("b", second)):
        is_missing = not posterior.has_estimate
        name = "model_range" if posterior.is_model else "interval_90"
        data |= {
            f"no_answer_{letter}": is_missing,
            f"mean_{letter}": None if is_missing else posterior.mean,
            f"{name}_{letter}": None if is_missing else list(posterior.interval()),
            f"n_labels_{letter}": posterior.n_labels,
        }
    reason = _why_not_comparable(first, second)
    if reason is not None:
        names = ("prob_b_above_a", "prob_a_above_b", "prob_equal")
        return data | dict.fromkeys(names) | {"reason": reason}
    exceeds = _probability_above(second, first)
    equal = _probability_equal(first, second)
    return data | {
        "prob_b_above_a": exceeds,
        "prob_a_above_b": max(0.0, 1.0 - equal - exceeds),
        "prob_equal": equal,
        "reason": None,
    }


def _why_not_comparable(first: GammaPosterior, second: GammaPosterior) -> str | None:
    """Why the two say nothing about which share is larger; None if they do."""
    if not (first.has_estimate and second.has_estimate):
        return NO_ESTIMATE
    return None if first.n_labels > 0 and second.n_labels > 0 else NO_LABELS


def _probability_above(upper: GammaPosterior, lower: GammaPosterior) -> float:
    """P(upper > lower): the atoms of `lower`, and a density by the trapezoid rule."""
    at_zero = float(lower.prob_zero * upper.prob_above(0.0))
    if isinstance(lower.betas, BetaBinomialMixture):
        return float(at_zero + lower.betas.pmf @ upper.sf(lower.betas.shares))
    edges = np.unique(np.concatenate([lower.betas.grid(), upper.betas.grid(), [0.0, 1.0]]))
    mass, survival = np.diff(lower.cdf(edges)), upper.sf(edges)
    return float(at_zero + mass @ (0.5 * (survival[1:] + survival[:-1])))


def _probability_equal(first: GammaPosterior, second: GammaPosterior) -> float:
    """P(first = second), which is above 0 if both have shares of whole rows, or atoms at 0."""
    equal = float(first.prob_zero * second.prob_zero)
    ours, theirs = first.betas, second.betas
    if isinstance(ours, BetaBinomialMixture) and isinstance(theirs, BetaBinomialMixture):
        _, place, other = np.intersect1d(ours.shares, theirs.shares, return_indices=True)
        equal += float(ours.pmf[place] @ theirs.pmf[other])
    return equal
