"""Intervals of the share by counts of labels, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm import LabelledRows
from gammagmm.labels.any_look import interval_at_any_look, share_at_any_look
from gammagmm.labels.labelled_share import LabelCounts
from gammagmm.labels.share_by_labels import any_look_shares, exact_shares, posterior_by_labels
from gammagmm.posterior.track_record import load_label_prior

RIGHT = 0.0, 0.0


def test_an_interval_that_ends_at_the_picked_anomalies_is_what_the_picks_leave():
    """Of 60 rows, 11 of 30 random ones and 18 of 18 picked ones are anomalies."""
    counts = LabelCounts(60, 30, 11, 0, 0, n_picked=18, n_picked_anomalies=18)
    assert exact_shares(LabelCounts(60, 30, 11, 0, 0), RIGHT, 0.9)[1] == 29 / 60
    assert exact_shares(counts, RIGHT, 0.9) == (29 / 60, 41 / 60)


def test_an_interval_of_one_number_stays_one():
    """990 of 1,000 random rows are normal: with 1 anomaly, one was seen with 99 %."""
    assert exact_shares(LabelCounts(1000, 990, 0, 0, 0), RIGHT, 0.9) == (0.0, 0.0)


@pytest.mark.parametrize("total", [0, 5, 18, 25, 29, 35, 45, 60])
@pytest.mark.parametrize("n_picked", [0, 10, 18, 25])
def test_the_exact_interval_holds_with_picks(total, n_picked):
    """By enumeration: the picks are the anomalies that the sample left, as far as they go."""
    n_rows, n = 60, 30
    held = 0.0
    for k in range(n + 1):
        p = stats.hypergeom.pmf(k, n_rows, total, n)
        if p == 0.0:
            continue
        found = min(n_picked, total - k)
        counts = LabelCounts(n_rows, n, k, 0, 0, n_picked, found)
        low, high = exact_shares(counts, RIGHT, 0.9)
        held += p * (low - 1e-12 <= total / n_rows <= high + 1e-12)
    assert held >= 0.9


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (30, 0), (30, 7), (300, 299), (2000, 3)])
def test_the_share_at_any_look_is_that_of_a_large_table(n, k):
    prior, n_rows = load_label_prior(), 10**9
    ends = interval_at_any_look(n_rows, n, k, 0.9, prior)
    np.testing.assert_allclose(
        share_at_any_look(n, k, 0.9, prior), np.array(ends) / n_rows, atol=1e-6
    )


def test_without_labels_every_share_is_possible():
    assert share_at_any_look(0, 0, 0.9, load_label_prior()) == (0.0, 1.0)
    assert any_look_shares(LabelCounts(50, 0, 0, 0, 0), (0.1, 0.1), 0.9) == (0.0, 1.0)


@pytest.mark.parametrize("error", [0.05, 0.0, (0.1, 0.2), [0.1, 0.2]])
def test_the_rates_of_errors_are_those_that_the_estimator_takes(error):
    rows = LabelledRows(np.zeros(50), label_error=error).update(range(20), np.arange(20) < 3)
    without = LabelledRows(np.zeros(50)).update(range(20), np.arange(20) < 3)
    if error:
        assert rows.posterior.summary() == without.posterior_if(error).summary()
    assert rows.label_error == tuple(np.broadcast_to(error, 2).tolist())


@pytest.mark.parametrize("error", [(0.6, 0.6), 0.5, -0.1, "often", None, (0.1,) * 3])
def test_other_rates_are_refused(error):
    with pytest.raises(ValueError, match="label_error must"):
        LabelledRows(np.zeros(50), label_error=error)


def test_the_two_intervals_share_a_number():
    """By enumeration: the posterior does not contradict the exact interval."""
    rng = np.random.default_rng(0)
    for n_rows, n in ((40, 30), (300, 30), (1000, 5), (10_000, 30), (1000, 200)):
        for k in range(0, n + 1, max(1, n // 40)):
            n_picked = int(rng.integers(0, n_rows - n))
            for found in (0, n_picked // 2, n_picked):
                counts = LabelCounts(n_rows, n, k, 0, 0, n_picked, found)
                low, high = posterior_by_labels(counts, RIGHT).interval()
                exact = exact_shares(counts, RIGHT, 0.9)
                assert max(low, exact[0]) <= min(high, exact[1]) + 1e-12
