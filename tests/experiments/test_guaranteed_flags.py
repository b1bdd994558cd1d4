import json

import numpy as np
import pytest
from experiments.labels import default_inputs
from scipy.stats import false_discovery_control

from experiments import guaranteed_flags


def test_p_values_are_the_share_of_the_reference_and_the_row_itself_that_is_as_high(rng):
    reference, scores = rng.integers(9, size=20), rng.integers(9, size=7)
    found = guaranteed_flags.conformal_p_values(scores, reference)
    expected = [np.mean(np.append(reference, score) >= score) for score in scores]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("rate", guaranteed_flags.RATES)
def test_selected_are_those_whose_adjusted_p_value_is_at_most_the_rate(rate, rng):
    for _ in range(20):
        p_values = rng.random(30) ** 3
        found = guaranteed_flags.benjamini_hochberg(p_values, rate)
        np.testing.assert_array_equal(found, false_discovery_control(p_values) <= rate)


def test_the_anomalies_among_the_highest_scores_are_removed():
    reference, y = np.array([5.0, 1.0, 4.0, 3.0, 2.0]), np.array([1, 1, 0, 1, 1])
    found = guaranteed_flags.trimmed(reference, y, 3)
    assert found.tolist() == [1.0, 4.0, 2.0]


def test_without_labels_rows_are_selected_at_most_as_often_as_the_rate(rng):
    """Reference and tested rows have the same distribution, anomalies included."""
    n_draws, rate, n_selected = 2000, 0.2, 0
    for _ in range(n_draws):
        scores = rng.normal(size=80) + 5.0 * (rng.random(80) < 0.1)
        p_values = guaranteed_flags.conformal_p_values(scores[:20], scores[20:])
        n_selected += guaranteed_flags.benjamini_hochberg(p_values, rate).any()
    assert n_selected / n_draws <= rate + 4 * np.sqrt(rate * (1 - rate) / n_draws)


def test_labels_of_the_reference_make_a_selection_possible(rng):
    """10 anomalies far away among 200 tested rows, and 8 among the 600 of the reference."""
    y = np.zeros(800, dtype=int)
    y[:8] = y[-10:] = 1
    X = rng.normal(size=(800, 4)) + 10.0 * y[:, None] * rng.normal(size=(800, 4))
    found = guaranteed_flags.large_design(default_inputs(X, 0), y, 600, rng)
    power = {name: each["0.1"]["power"] for name, each in found.items()}
    assert power["large, no labels"] == 0.0
    assert power["large, 30 labels"] > 0.5
    assert found["large, 30 labels"]["0.1"]["fdp"] < 0.5


def test_means_over_tables():
    """A table with two draws, one of which has no anomaly among the tested rows, and another."""
    drawn = [
        [{"flagged": 4, "fdp": 0.5, "power": 0.2}, {"flagged": 0, "fdp": 0.0, "power": None}],
        [{"flagged": 0, "fdp": 0.0, "power": 0.0}],
    ]
    tables = [[{"clean": {"0.1": each}} for each in draws] for draws in drawn]
    assert guaranteed_flags._means(tables, "clean", "0.1") == {
        "fdp": 0.125,
        "fdp_error": round(0.125 / np.sqrt(2), 4),
        "fdp_if_any": 0.5,
        "power": 0.1,
        "nothing": 0.75,
    }


def test_the_page_has_the_table_of_the_experiment():
    found = json.loads(guaranteed_flags.FLAGS.read_text(encoding="utf-8"))
    assert guaranteed_flags.section(found) in guaranteed_flags.PAGE.read_text(encoding="utf-8")


def test_the_measured_false_discovery_proportion_keeps_the_bound():
    found = json.loads(guaranteed_flags.FLAGS.read_text(encoding="utf-8"))
    for collection in guaranteed_flags.COLLECTIONS:
        for reference in guaranteed_flags.REFERENCES:
            for rate in guaranteed_flags.RATES:
                assert found[collection][reference][str(rate)]["fdp"] <= rate
