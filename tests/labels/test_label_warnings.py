"""Rows that are not what they are said to be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from gammagmm import LabelledRows
from gammagmm.errors import LabelsWarning


def n_warned(rows, samples):
    """The number of samples of rows that are noticed as rows from the top."""
    found = 0
    for chosen in samples:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LabelsWarning)
            rows.update(chosen, np.zeros(len(chosen)))
        found += bool(caught)
    return found


@pytest.mark.parametrize(("n_rows", "n_top"), [(300, 7), (300, 10), (1000, 5), (10_000, 5)])
def test_a_few_rows_from_the_top_among_thirty_are_noticed(n_rows, n_top):
    rows, rng = LabelledRows(-np.arange(float(n_rows))), np.random.default_rng(0)
    top = np.arange(n_top)
    for spread in (True, False):
        samples = [rows.suggest(30, spread=spread, random_state=rng) for _ in range(40)]
        assert n_warned(rows, samples) == 0
        assert n_warned(rows, [np.union1d(top, each) for each in samples]) == 40


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_top"), [(300, 7), (300, 10), (1000, 5), (10_000, 5)])
def test_two_thousand_mixed_samples_are_noticed_and_honest_ones_are_not(n_rows, n_top):
    rows, rng = LabelledRows(-np.arange(float(n_rows))), np.random.default_rng(1)
    top = np.arange(n_top)
    for spread in (True, False):
        samples = [rows.suggest(30, spread=spread, random_state=rng) for _ in range(1000)]
        assert n_warned(rows, samples) <= 1
        assert n_warned(rows, [np.union1d(top, each) for each in samples]) == 1000


@pytest.mark.parametrize("error", [0.1, (0.1, 0.0), (0.02, 0.2)])
@pytest.mark.parametrize("n_rows", [30, 100])
def test_labels_that_contradict_their_error_are_noticed(n_rows, error):
    """They do if no share of anomalies gives them a probability of 5 %."""
    false_alarm, miss = np.broadcast_to(error, 2)
    every = LabelledRows(np.zeros(1000), label_error=error)
    for k in range(n_rows + 1):
        too_few = stats.binom.cdf(k, n_rows, false_alarm) < 0.05
        too_many = stats.binom.sf(k - 1, n_rows, 1.0 - miss) < 0.05
        labels = np.arange(n_rows) < k
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", LabelsWarning)
            rows = every.update(np.arange(n_rows), labels)
            LabelledRows(np.zeros(1000), label_error=error).update(
                np.arange(n_rows), labels, purpose="find"
            )
        assert [each.category for each in caught] == [LabelsWarning] * bool(too_few or too_many)
        for interval in (rows.exact_interval, rows.interval_at_any_look):
            low, high = interval()
            assert low < high
            # Where there is no false alarm or no miss, the share is that of the right labels.
            assert low <= k / n_rows / (1.0 - miss) or low == 0.0
            assert high >= (k / n_rows - false_alarm) / (1.0 - false_alarm)


def test_rows_to_find_that_have_the_same_score_are_in_a_random_order():
    rows = LabelledRows(np.repeat([0.0, 1.0], [50, 50]))
    found = [rows.suggest(20, purpose="find", random_state=seed) for seed in range(40)]
    assert all(np.isin(each, np.arange(50, 100)).all() for each in found)
    assert set(np.concatenate(found).tolist()) == set(range(50, 100))
    again = rows.suggest(20, purpose="find", random_state=3)
    np.testing.assert_array_equal(again, found[3])
