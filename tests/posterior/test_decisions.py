import numpy as np
import pytest
from pyod.models.knn import KNN

from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.decisions import anomaly_probability, cost_cut, cut_off, is_anomaly
from gammagmm.posterior.gamma_posterior import GammaPosterior


@pytest.mark.parametrize("gamma", [0.01, 0.0437, 0.1, 0.5])
def test_cut_and_labels_are_pyods_to_the_bit(gamma, rng):
    X = rng.normal(size=(137, 3))
    detector = KNN(contamination=gamma).fit(X)
    threshold = cut_off(detector.decision_scores_, gamma)
    assert float(threshold) == detector.threshold_
    labels = is_anomaly(detector.decision_scores_, threshold)
    np.testing.assert_array_equal(labels, detector.labels_)


def test_probability_is_that_gamma_exceeds_the_share_scored_at_least_as_high(rng):
    posterior = GammaPosterior(0.05, BetaMixture(*np.array([[0.95], [3.0], [40.0]])))
    training = np.round(rng.normal(size=200), 1)  # with ties
    scores = np.array([-9.0, 0.3, 1.5, 9.0])
    expected = [posterior.prob_above(np.mean(training >= score)) for score in scores]
    np.testing.assert_allclose(anomaly_probability(posterior, scores, training), expected)
    assert expected[-1] == pytest.approx(0.95)


def test_costs_cut_where_an_alarm_costs_less_than_silence():
    assert cost_cut((1.0, 1.0)) == 0.5
    assert cost_cut([2, 6]) == 0.25


@pytest.mark.parametrize(
    ("costs", "error"), [((0.0, 1.0), ValueError), ((1.0,), ValueError), (3.0, TypeError)]
)
def test_bad_costs_are_refused(costs, error):
    with pytest.raises(error, match=r"costs must be two positive numbers \(false_alarm, miss\)"):
        cost_cut(costs)
