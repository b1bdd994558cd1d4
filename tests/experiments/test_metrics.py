"""The measures of quality, against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score

from experiments import metrics
from gammagmm import GammaPosterior
from gammagmm.posterior.betas import BetaMixture

POSTERIOR = GammaPosterior(0.1, BetaMixture(*np.array([[0.5, 0.4], [5.0, 30.0], [95.0, 170.0]])))


@pytest.mark.parametrize("truth", [0.0, 0.03, 0.15, 0.6])
def test_crps_is_expected_distance_less_half_the_spread(truth, rng):
    n = 400_000
    first, second = POSTERIOR.sample(n, rng), POSTERIOR.sample(n, rng)
    terms = np.abs(first - truth) - 0.5 * np.abs(first - second)
    found = metrics.crps(POSTERIOR, truth)
    assert found == pytest.approx(terms.mean(), abs=4 * terms.std() / np.sqrt(n))


def test_crps_of_a_point_is_its_distance():
    assert metrics.crps(GammaPosterior.degenerate(), 0.07) == pytest.approx(0.07)


def test_evaluate_agrees_with_scikit_learn(rng):
    S, y = rng.normal(size=(500, 3)), (rng.random(500) < 0.1).astype(int)
    S[:, 1] += 2.0 * y
    found = metrics.evaluate(S, y, 0.08)
    for j in range(3):
        labels = S[:, j] > np.percentile(S[:, j], 92.0)
        _, fp, fn, _ = confusion_matrix(y, labels).ravel()
        assert found["f1"][j] == pytest.approx(f1_score(y, labels))
        assert found["false_alarms"][j] == fp / 500
        assert found["misses"][j] == fn / 500
    assert metrics.evaluate(S, y, 0.0)["f1"] == [0.0, 0.0, 0.0]


def test_needed_is_the_mass_of_the_smallest_central_interval():
    for truth in (0.02, 0.08, 0.2):
        needed = metrics.posterior_figures(POSTERIOR, truth)["needed"]
        inside = POSTERIOR.interval(min(needed + 1e-6, 1 - 1e-9))
        outside = POSTERIOR.interval(needed - 1e-6)
        assert inside[0] <= truth <= inside[1]
        assert not outside[0] <= truth <= outside[1]


def test_reliability_counts_every_row_once(rng):
    probability, y = np.append(rng.random(99), 1.0), rng.integers(0, 2, 100)
    found = metrics.reliability(probability, y)
    assert sum(found["rows"]) == 100
    assert sum(found["anomalies"]) == y.sum()
    inside = (probability >= 0.9) & (probability <= 1.0)
    assert found["rows"][9] == inside.sum()
    assert found["probability"][9] == pytest.approx(probability[inside].sum())


def test_the_prior_has_the_moments_of_the_shares():
    shares = np.array([0.01, 0.03, 0.05, 0.12])
    prior = metrics.beta_prior(shares)
    assert prior.mean == pytest.approx(shares.mean())
    assert prior.std == pytest.approx(shares.std(ddof=1))


def test_f1_is_that_of_the_detectors_that_are_best_at_the_truth():
    found = metrics.relative_f1([0.1, 0.4, 0.4], [0.9, 0.2, 0.6])
    np.testing.assert_allclose(found, [-0.5, 0.5])
    assert metrics.relative_f1([0.0, 0.0], [0.1, 0.2]) is None


def test_a_calibrated_method_is_off_by_chance():
    few, many = (metrics.calibrated_by_chance(n, 0)["mean_off"] for n in (20, 2000))
    # E|B / n - p| of a binomial B is about sqrt(2 p (1 - p) / (pi n)).
    p = np.arange(1, 100) / 100
    for n, found in ((20, few), (2000, many)):
        expected = np.sqrt(2.0 * p * (1.0 - p) / (np.pi * n)).mean()
        assert found.mean() == pytest.approx(expected, rel=0.03)
