"""Alarms: exact tests, levels that add up, no more false alarms than stated, and few misses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, fisher_exact, hypergeom

from gammagmm.labels.exact_interval import p_between
from gammagmm.monitoring.alarms import (
    HALF_SPENT,
    WINDOW_WEIGHTS,
    WINDOWS,
    find_rings,
    p_differs,
    p_higher,
    period_levels,
)
from gammagmm.monitoring.counts import Count, Period
from gammagmm.monitoring.history import History

N_SIMULATIONS = 1000


def counts(n_each, beyond):
    return [Count(n_each, int(n)) for n in beyond]


def first_alarm(history):
    """Place of the first period that rings, or the number of periods."""
    return next((t for t, ring in enumerate(history.rings) if ring), len(history.periods))


def history_of(reference, n_each, beyond):
    periods = [Period(str(t), one) for t, one in enumerate(counts(n_each, beyond))]
    return History("", reference, periods=tuple(periods))


@pytest.mark.parametrize(("x", "n", "k", "m"), [(4, 10, 1, 20), (0, 5, 3, 9), (58, 500, 80, 2000)])
def test_the_p_value_is_that_of_fishers_exact_test_and_of_the_urn(x, n, k, m):
    found = p_higher(Count(n, x), Count(m, k))
    table = [[x, n - x], [k, m - k]]
    assert found == pytest.approx(fisher_exact(table, alternative="greater").pvalue, rel=1e-9)
    # If the cut is the score of rank k + 1 among m scores, whatever their distribution is, the
    # number of new scores above it has this distribution.
    urn = betabinom(n, k + 1, m - k).pmf(np.arange(x, n + 1)).sum()
    assert found == pytest.approx(urn, rel=1e-9)


@pytest.mark.parametrize("x", [1_399_000, 1_400_000, 1_402_000, 1_430_000])
def test_p_values_of_many_rows_are_those_of_the_whole_sum(x):
    # The mean is 1,400,000 and the standard deviation is about 430.
    count, base = Count(2_000_000, x), Count(3_000_000, 3_500_000 - x)
    whole = p_between(x, 2_000_000, 3_500_000, 2_000_000, 5_000_000)
    assert p_higher(count, base) == pytest.approx(whole, rel=1e-6)


def test_levels_add_up_to_alpha():
    levels = period_levels(0.05, 100_000)
    assert levels.sum() == pytest.approx(0.05 * 100_000 / (100_000 + HALF_SPENT), rel=1e-12)
    assert (np.diff(levels) < 0.0).all()
    assert len(WINDOWS) == len(WINDOW_WEIGHTS)
    assert sum(WINDOW_WEIGHTS) == pytest.approx(1.0)


def rings_one_by_one(periods, base, levels):
    """The windows that ring, by SciPy's hypergeometric distribution, one test after another."""
    rings, start, base_end = {}, 0, len(periods)
    for t in range(len(periods)):
        for window, weight in zip(WINDOWS, WINDOW_WEIGHTS, strict=True):
            begin = t + 1 - window
            if begin < start:
                continue
            newest = periods[begin : t + 1]
            before = [base, *periods[: min(begin, base_end)]]
            n, x = sum(c.n_rows for c in newest), sum(c.n_beyond for c in newest)
            m, k = sum(c.n_rows for c in before), sum(c.n_beyond for c in before)
            if x and m and hypergeom(n + m, k + x, n).sf(x - 1) <= weight * levels[t]:
                rings[t] = (window, m, k)
                start, base_end = t + 1, min(base_end, begin)
                break
    return rings


@pytest.mark.parametrize("seed", range(4))
def test_the_rings_are_those_of_one_test_after_another(seed):
    rng = np.random.default_rng(seed)
    shares = np.repeat([0.04, 0.1, 0.04, 0.07], 12)
    rows = rng.integers(20, 300, size=len(shares))
    periods = [Count(int(n), int(x)) for n, x in zip(rows, rng.binomial(rows, shares), strict=True)]
    levels = period_levels(0.5, len(periods))
    base = Count(400, 16) if seed % 2 else Count(0, 0)
    found = find_rings(periods, base, levels)
    expected = rings_one_by_one(periods, base, levels)
    rung = {t: (r.window, r.base.n_rows, r.base.n_beyond) for t, r in enumerate(found) if r}
    assert rung == expected
    assert rung


def test_a_single_day_rings_once_and_a_lasting_rise_again():
    spike = counts(500, [20] * 10 + [80] + [20] * 10)
    levels = period_levels(0.05, len(spike))
    rings = find_rings(spike, Count(500, 20), levels)
    assert [t for t, ring in enumerate(rings) if ring] == [10]
    lasting = counts(500, [20] * 10 + [80] * 11)
    rings = find_rings(lasting, Count(500, 20), levels)
    assert [t for t, ring in enumerate(rings) if ring] == list(range(10, 21))
    assert rings[15].base == Count(5500, 220)


def test_a_window_that_is_not_complete_is_not_tested():
    # Three periods together would ring at the level of four, and neither one nor two of them do.
    periods, base = counts(500, [32, 32, 32]), Count(5000, 200)
    levels = period_levels(0.05, 3)
    assert p_higher(Count(1500, 96), base) < WINDOW_WEIGHTS[2] * levels[2]
    assert find_rings(periods, base, levels) == [None] * 3


def test_a_difference_has_twice_the_smaller_p_value():
    few, many = Count(100, 2), Count(300, 30)
    expected = 2.0 * fisher_exact([[30, 270], [2, 98]], alternative="greater").pvalue
    assert p_differs(few, many) == pytest.approx(expected, rel=1e-9)
    assert p_differs(many, few) == pytest.approx(expected, rel=1e-9)
    assert p_differs(few, few) == 1.0


def test_without_rows_before_them_no_period_rings():
    assert find_rings(counts(100, [100]), Count(0, 0), period_levels(0.5, 1)) == [None]
    assert find_rings([], Count(100, 4), period_levels(0.5, 0)) == []


@pytest.mark.parametrize("n_train", [50, 500])
def test_scores_of_one_distribution_ring_at_most_as_often_as_stated(n_train):
    # 100 periods; the cut is drawn in each simulation, so its own uncertainty is included.
    rng, n_each, alpha = np.random.default_rng(n_train), 40, 0.05
    k, n_alarms, n_of_histories = round(0.04 * n_train), 0, 0
    levels = period_levels(alpha, 100)
    for _ in range(N_SIMULATIONS):
        training = np.sort(rng.random(n_train))
        beyond = (rng.random((100, n_each)) > training[-k - 1]).sum(axis=1)
        reference = Count(n_train, k)
        n_alarms += any(find_rings(counts(n_each, beyond), reference, levels))
        n_of_histories += any(history_of(reference, n_each, beyond).rings)
    assert n_alarms <= alpha * N_SIMULATIONS
    assert n_of_histories <= alpha * N_SIMULATIONS  # with half of the training rows


def test_a_share_that_doubles_is_seen_within_two_days():
    # 30 quiet days of 500 rows with 4 % beyond the cut, then 8 %; 2,000 training rows.
    rng, seen = np.random.default_rng(0), 0
    shares = np.repeat([0.04, 0.08], [30, 2])
    for _ in range(N_SIMULATIONS):
        reference = Count(2000, int(rng.binomial(2000, 0.04)))
        history = history_of(reference, 500, rng.binomial(500, shares))
        seen += 30 <= first_alarm(history) <= 31
    assert seen >= 0.9 * N_SIMULATIONS
