"""Tests of counts: exact where periods do not vary, wider where they do, and as large as stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, fisher_exact

from gammagmm.labels.exact_interval import p_between
from gammagmm.monitoring.alarms import EXACT_WEIGHTS, WEIGHTS, WINDOWS, Series
from gammagmm.monitoring.counts import Count
from gammagmm.monitoring.variation import (
    LEARNING_ICC,
    LEARNING_PERIODS,
    LONG,
    Sums,
    p_differs,
    p_higher,
    p_varying,
    variation,
)

NO_VARIATION = np.zeros(7)


def counts(n_each, beyond):
    return [Count(n_each, int(n)) for n in beyond]


def sums_of(periods):
    return Series(periods).between(0, len(periods)).total


@pytest.mark.parametrize(("x", "n", "k", "m"), [(4, 10, 1, 20), (0, 5, 3, 9), (58, 500, 80, 2000)])
def test_the_p_value_is_that_of_fishers_exact_test_and_of_the_urn(x, n, k, m):
    found = p_higher(Count(n, x), Count(m, k))
    table = [[x, n - x], [k, m - k]]
    assert found == pytest.approx(fisher_exact(table, alternative="greater").pvalue, rel=1e-9)
    # If the cut is the score of rank k + 1 among m scores, whatever their distribution is, the
    # number of new scores above it has this distribution.
    urn = betabinom(n, k + 1, m - k).pmf(np.arange(x, n + 1)).sum()
    assert found == pytest.approx(urn, rel=1e-9)


@pytest.mark.parametrize(("x", "n", "k", "m"), [(4, 10, 1, 20), (0, 5, 3, 9), (58, 500, 80, 2000)])
def test_without_variation_the_test_of_periods_is_fishers(x, n, k, m):
    window, base = Sums.of(Count(n, x)), Sums.of(Count(m, k))
    found = p_varying(window, base, NO_VARIATION)
    assert found == pytest.approx(p_higher(Count(n, x), Count(m, k)), rel=1e-6)
    assert p_varying(window, base, np.full(7, 0.01)) > min(found, 0.99)


@pytest.mark.parametrize("x", [1_399_000, 1_400_000, 1_402_000, 1_430_000])
def test_p_values_of_many_rows_are_those_of_the_whole_sum(x):
    # The mean is 1,400,000 and the standard deviation is about 430.
    count, base = Count(2_000_000, x), Count(3_000_000, 3_500_000 - x)
    whole = p_between(x, 2_000_000, 3_500_000, 2_000_000, 5_000_000)
    assert p_higher(count, base) == pytest.approx(whole, rel=1e-6)


def test_the_distribution_of_many_rows_is_close_to_the_exact_one():
    base, n_more = sums_of(counts(LONG, [160, 180, 170])), 25  # of which one lies above
    for icc, n_above in ((0.0, 200), (0.0, 240), (0.001, 240), (0.005, 350)):
        own = np.full(7, icc)
        exact = p_varying(Sums.of(Count(LONG, n_above)), base, own)
        close = p_varying(Sums.of(Count(LONG + n_more, n_above + 1)), base, own)
        assert 1e-7 < exact < 0.2
        # Without variation, the approximation is larger, and Fisher's test decides.
        assert 0.8 * exact < close < (1.25 if icc else 3.0) * exact


def test_the_variation_is_that_of_the_periods():
    rng, n, share = np.random.default_rng(0), 500, 0.05
    same = Series(counts(n, rng.binomial(n, share, size=4000)))
    shares = rng.beta(share * 199, (1 - share) * 199, size=4000)  # a correlation of 1 / 200
    varied = Series(counts(n, rng.binomial(n, shares)))
    newest = Sums.of(Count(n, 25))
    # With thousands of periods, the assumed ones do not matter.
    assert variation(same.between(0, 4000).total, newest) == pytest.approx(0.0, abs=2e-4)
    assert variation(varied.between(0, 4000).total, newest) == pytest.approx(0.005, rel=0.15)
    few = variation(varied.between(0, 30).total, newest)
    assert few[-1] > 2.0 * few[0]


def test_the_parts_of_the_levels_of_the_exact_tests_add_up_to_one():
    assert sum(EXACT_WEIGHTS) == 1.0
    assert len(WINDOWS) == len(WEIGHTS) == len(EXACT_WEIGHTS)


def changes_one_by_one(periods, reference, level):
    """The first window that shows a change, one test after another."""
    for t in range(len(periods)):
        for j, window in enumerate(WINDOWS):
            begin = t + 1 - window
            base = sums_of(periods[: max(begin, 0)])
            base += Sums.of(reference) if begin < LEARNING_PERIODS else Sums()
            if begin < 0 or not base.rows:
                continue
            newest, quiet = sums_of(periods[begin : t + 1]), sums_of(periods[:begin])
            icc = variation(quiet, newest)
            if begin < LEARNING_PERIODS:
                icc = np.maximum(icc, LEARNING_ICC)
                icc = icc if begin else np.full(7, icc[3])
            limits = level * WEIGHTS[j], level * EXACT_WEIGHTS[j]
            if is_clear(newest, base, icc, limits):
                return t, "raised", window, base.count.n_rows
            if is_clear(newest.mirrored(), base.mirrored(), icc, limits):
                return t, "fallen", window, base.count.n_rows
    return None


def is_clear(window, base, icc, limits):
    p_values = p_varying(window, base, icc), p_higher(window.count, base.count)
    return p_values[0] <= limits[0] and p_values[1] <= limits[1]


@pytest.mark.parametrize("seed", range(6))
def test_the_first_change_is_that_of_one_test_after_another(seed):
    rng = np.random.default_rng(seed)
    shares = np.repeat([0.08, 0.2 if seed % 2 else 0.02], [12 + 7 * seed, 14])
    rows = rng.integers(50, 400, size=len(shares))
    periods = [Count(int(n), int(x)) for n, x in zip(rows, rng.binomial(rows, shares), strict=True)]
    reference = Count(400, 32) if seed % 3 else Count(0, 0)
    levels = np.full(len(periods), 0.01)
    series = Series(periods)
    found = series.first_change(0, series.between(0, 0), Sums.of(reference), levels)
    place, change = found
    expected = changes_one_by_one(periods, reference, 0.01)
    assert (place, change.direction, change.window, change.base.n_rows) == expected


def test_a_difference_has_twice_the_smaller_p_value():
    few, many = Count(100, 2), Count(300, 30)
    expected = 2.0 * fisher_exact([[30, 270], [2, 98]], alternative="greater").pvalue
    assert p_differs(few, many) == pytest.approx(expected, rel=1e-9)
    assert p_differs(many, few) == pytest.approx(expected, rel=1e-9)
    assert p_differs(few, few) == 1.0
