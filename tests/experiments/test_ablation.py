"""Fitted runs with one part of the method changed."""

import numpy as np
import pytest
from experiments.ablation import at_expected_values, ordered_by_mean

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.posterior.sensitivity import draw_runs


@pytest.fixture(scope="module")
def runs():
    X = make_contaminated(300, 4, 0.05, "global", random_state=2).X
    return GammaGMM(["KNN", "LOF", "HBOS", "COPOD"], n_runs=3, random_state=0).fit(X).runs_


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
