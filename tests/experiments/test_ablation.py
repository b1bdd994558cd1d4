"""Fitted runs with one part of the method changed."""

import numpy as np
import pytest
from experiments.ablation import (
    _conditionals,
    at_expected_values,
    ordered_by_mean,
    with_p_high_met,
)

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.posterior.assumptions import DrawnRun, draw_runs, relink
from gammagmm.posterior.link import Constraints


@pytest.fixture(scope="module")
def runs():
    found = GammaGMM(n_runs=3, scale=None, random_state=0).fit(load_demo().X).fit_.runs
    # Otherwise the posterior would not depend on the link.
    assert all(run.status == "solved" and len(run.weights) >= 3 for run in found)
    return found


def test_ordered_by_mean_orders_and_draws_by_the_mean(runs):
    for run in ordered_by_mean(runs, np.random.default_rng(0)):
        means = run.components.means.mean(axis=1)
        np.testing.assert_array_equal(run.components.anomalousness, means)
        assert (np.diff(means) <= 0).all()
        np.testing.assert_allclose(run.r.mean(axis=1), means, atol=0.5)


def test_at_expected_values_has_one_draw_the_expected_value(runs):
    drawn = draw_runs(runs, np.random.default_rng(0))
    for run, changed in zip(runs, at_expected_values(drawn), strict=True):
        np.testing.assert_array_equal(changed.r[:, 0], run.components.anomalousness)
        assert changed.r.shape == (len(run.components), 1)


@pytest.mark.parametrize(("is_p0_averaged", "p_high"), [(False, 0.05), (True, 0.5)])
def test_p_high_is_met_by_the_posterior_itself(runs, is_p0_averaged, p_high):
    drawn, constraints = draw_runs(runs, np.random.default_rng(0)), Constraints(p_high=p_high)
    posterior, n_unsolved = with_p_high_met(drawn, constraints, is_p0_averaged)
    # With both equations averaged, some runs have no solution.
    assert n_unsolved == (2 if is_p0_averaged else 0)
    averaged = [_conditionals(run, constraints, is_p0_averaged) for run in drawn]
    first = [q[0] for q in averaged if q is not None]
    assert (np.abs(np.array(first) - (1.0 - constraints.p0)) < 1e-9).all() == is_p0_averaged
    assert posterior.prob_zero == pytest.approx(constraints.p0)
    assert posterior.prob_above(constraints.high_gamma) == pytest.approx(p_high, rel=1e-6)
    at_expected, _ = relink(drawn, constraints)
    assert at_expected.prob_above(constraints.high_gamma) != pytest.approx(p_high, rel=1e-2)


def test_without_draws_that_differ_p_high_is_met_as_the_method_meets_it(runs):
    drawn = draw_runs(runs, np.random.default_rng(0))
    fixed = [
        DrawnRun(run.components, np.repeat(run.r, 2, axis=1)) for run in at_expected_values(drawn)
    ]
    expected, _ = relink(fixed, Constraints())
    for is_p0_averaged in (False, True):
        posterior, _ = with_p_high_met(fixed, Constraints(), is_p0_averaged)
        assert posterior.mean == pytest.approx(expected.mean, rel=1e-6)
        assert posterior.std == pytest.approx(expected.std, rel=1e-6)


def test_a_p_high_that_no_run_can_reach_gives_delta_zero(runs):
    drawn = draw_runs(runs, np.random.default_rng(0))
    constraints = Constraints(p_high=0.999)
    posterior, n_unsolved = with_p_high_met(drawn, constraints, False)
    slack, _ = relink(drawn, constraints)
    assert n_unsolved == 0
    assert posterior.mean == pytest.approx(slack.mean, rel=1e-12)
