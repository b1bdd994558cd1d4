"""Fitted runs -> the same runs with one part of the method changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit
from scipy.stats import beta

from gammagmm.posterior.assumptions import N_DRAWS, DrawnRun
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs, run_posterior
from gammagmm.posterior.link import (
    AveragedConditionals,
    Constraints,
    conditional_probabilities,
    count_candidates,
    draw_parameters,
    n_anomalous_pmf,
)
from gammagmm.posterior.runs import Run

DELTAS = (0.0, *-np.geomspace(0.1, 1e4, 60))
"""Values of delta between which a solution is looked for."""


def ordered_by_mean(runs: Sequence[Run], rng: np.random.Generator) -> list[DrawnRun]:
    """The runs with r the mean of a component alone, for the order and for the draws."""
    changed = []
    for run, child in zip(runs, rng.spawn(len(runs)), strict=True):
        means, _ = draw_parameters(run.components, N_DRAWS, child)
        r = run.components.means.mean(axis=1)
        order = np.argsort(-r, kind="stable")
        components = replace(run.components, anomalousness=r)[order]
        changed.append(DrawnRun(components, means.mean(axis=-1)[order]))
    return changed


def at_expected_values(drawn: Sequence[DrawnRun]) -> list[DrawnRun]:
    """The runs with the conditionals taken at E[r] instead of averaged over draws of r."""
    return [DrawnRun(run.components, run.components.anomalousness[:, None]) for run in drawn]


def with_p_high_met(
    drawn: Sequence[DrawnRun], constraints: Constraints, is_p0_averaged: bool
) -> tuple[GammaPosterior, int]:
    """The posterior if P(gamma >= high_gamma) of every run is p_high, not only at E[r].

    The first equation holds at E[r_1], as in the method itself, or, with `is_p0_averaged`, for the
    average of P(c_1) over the draws as well. Also the number of runs without a solution.
    """
    posteriors = []
    for run in drawn:
        q = _conditionals(run, constraints, is_p0_averaged)
        if q is not None:
            averaged = AveragedConditionals(q, np.zeros_like(q))
            posteriors.append(run_posterior(run.components, averaged, constraints.p0))
    return combine_runs(posteriors), len(drawn) - len(posteriors)


def _conditionals(
    run: DrawnRun, constraints: Constraints, is_p0_averaged: bool
) -> np.ndarray | None:
    """The averaged conditionals (K',) at which the posterior meets p_high; None if there are none.

    If p_high is above what the run can reach, delta is 0.
    """
    n_candidates = count_candidates(run.components, constraints.max_gamma)
    if n_candidates == 0:
        return None
    r, sums = run.r[:n_candidates], np.cumsum(run.components.alpha)
    tails = beta.sf(constraints.high_gamma, sums[:n_candidates], sums[-1] - sums[:n_candidates])

    def averaged(delta: float) -> np.ndarray:
        at_top = logit(constraints.p0) - delta * r[0]
        tau = logit(constraints.p0) - delta * run.components.anomalousness[0]
        if is_p0_averaged and delta < 0.0:
            # A little wider, since draws that do not differ have no bracket of their own.
            ends = at_top.min() - 1e-6, at_top.max() + 1e-6
            tau = brentq(lambda tau: _mean(r[0], tau, delta) - 1.0 + constraints.p0, *ends)
        return conditional_probabilities(r, tau, delta).mean(axis=1)

    def excess(delta: float) -> float:
        pmf = n_anomalous_pmf(averaged(delta))[1:]
        return float((1.0 - constraints.p0) * (pmf / pmf.sum()) @ tails) - constraints.p_high

    if excess(0.0) <= 0.0:
        return averaged(0.0)
    # P(gamma >= high_gamma) need not decrease all the way: the first crossing is taken.
    ends = next((pair for pair in pairwise(DELTAS) if excess(pair[1]) <= 0.0), None)
    return None if ends is None else averaged(brentq(excess, *ends[::-1], rtol=1e-9))


def _mean(r: np.ndarray, tau: float, delta: float) -> float:
    return float(conditional_probabilities(r, tau, delta).mean())
