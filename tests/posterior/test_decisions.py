import numpy as np
import pytest
from pyod.models.knn import KNN
from scipy.stats import binom

from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.decisions import (
    cost_cut,
    cut_off,
    exact_ranks,
    is_anomaly,
    is_far_above,
    probability_at,
    ranks_left,
)
from gammagmm.posterior.gamma_posterior import GammaPosterior

POSTERIOR = GammaPosterior(0.05, BetaMixture(*np.array([[0.95], [3.0], [40.0]])))


@pytest.mark.parametrize("gamma", [0.01, 0.0437, 0.1, 0.5])
def test_cut_and_labels_are_pyods_to_the_bit(gamma, rng):
    X = rng.normal(size=(137, 3))
    detector = KNN(contamination=gamma).fit(X)
    threshold = cut_off(detector.decision_scores_, gamma)
    assert float(threshold) == detector.threshold_
    labels = is_anomaly(detector.decision_scores_, threshold)
    np.testing.assert_array_equal(labels, detector.labels_)


def test_probability_is_that_gamma_exceeds_the_share_scored_at_least_as_high(rng):
    training = np.round(rng.normal(size=200), 1)  # with ties
    scores = np.array([-9.0, 0.3, 1.5, 9.0])
    ranks = exact_ranks(training)
    expected = [POSTERIOR.prob_above(np.mean(training >= score)) for score in scores]
    found = probability_at(POSTERIOR, ranks.shares_at_least(scores))
    np.testing.assert_allclose(found, expected)
    assert expected[-1] == pytest.approx(0.95)


def test_ranks_among_the_rows_that_are_left_come_after_the_known_anomalies(rng):
    left = np.round(rng.normal(size=50), 1)  # with ties
    ranks = ranks_left(left, 4, 60)
    expected = [(4 + max(np.sum(left >= score), 1) - 0.5) / 60 for score in [*left, 9.0]]
    np.testing.assert_allclose(ranks.shares_at_least(np.append(left, 9.0)), expected)


def test_rows_are_flagged_above_the_ratio_of_the_costs():
    assert cost_cut((1.0, 1.0)) == 0.5
    assert cost_cut([2, 6]) == 0.25


@pytest.mark.parametrize(
    ("costs", "error"), [((0.0, 1.0), ValueError), ((1.0,), ValueError), (3.0, TypeError)]
)
def test_bad_costs_are_refused(costs, error):
    with pytest.raises(error, match=r"costs must be two positive numbers \(false_alarm, miss\)"):
        cost_cut(costs)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.2, 0.33, 0.4])
@pytest.mark.parametrize("n_rows", [1, 3, 40, 500])
def test_far_above_is_beyond_what_three_times_the_share_explains(n_rows, share):
    p_flagged = min(3.0 * share, 1.0)
    for n_flagged in range(n_rows + 1):
        p_at_least = 1.0 if n_flagged == 0 else binom(n_rows, p_flagged).sf(n_flagged - 1)
        assert is_far_above(n_flagged, n_rows, share) == (p_at_least < 0.001)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_each_cost_alone_must_be_positive_and_finite(bad):
    for costs in ((1.0, bad), (bad, 1.0)):
        with pytest.raises(ValueError, match="costs must be two positive numbers"):
            cost_cut(costs)


def test_one_flagged_row_is_enough_where_hardly_any_is_expected():
    assert is_far_above(1, 1000, 1e-7)  # 1 - (1 - 3e-7)^1000 = 0.0003
    assert not is_far_above(1, 1000, 1e-6)
    assert not is_far_above(0, 1000, 1e-7)
    assert not is_far_above(10, 10, 0.5)  # every row is flagged with probability 1


def test_each_row_of_a_sample_stands_for_the_same_number_of_rows(rng):
    left = np.round(rng.normal(size=50), 1)  # with ties
    ranks = ranks_left(left, 4, 1060, 1050)
    expected = [(4 + 21 * np.sum(left >= score) - 0.5) / 1060 for score in left]
    np.testing.assert_allclose(ranks.shares_at_least(left), expected)
    # A score above all of the sample may be the first of the table.
    assert ranks.shares_at_least(np.array([9.0])) == pytest.approx(4.5 / 1060)
    whole, same = ranks_left(left, 4, 60), ranks_left(left, 4, 60, 50)
    np.testing.assert_array_equal(whole.shares_at_least(left), same.shares_at_least(left))
