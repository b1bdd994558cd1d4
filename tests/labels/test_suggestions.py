"""Rows to label: spread evenly over the ranking, and over groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm.labels.suggestions import spread_evenly, spread_over_groups


@pytest.mark.parametrize("n_rows", [700, 891, 1000, 1598])
def test_every_beginning_is_spread_evenly_and_every_row_comes_once(n_rows):
    order = spread_evenly(np.arange(n_rows)[::-1], np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(n_rows))
    for n in (2, 5, 10, 30, 100):
        taken = np.sort(order[:n])
        gaps = np.diff(np.append(taken, taken[0] + n_rows))
        # Plain random rows have gaps from 0 to several times the mean.
        assert gaps.max() <= 1 + 2.7 * n_rows / n
        assert gaps.min() >= 0.3 * n_rows / n - 1


def test_each_row_is_as_likely_to_come_first_and_third():
    rng = np.random.default_rng(0)
    orders = np.array([spread_evenly(np.arange(20), rng) for _ in range(4000)])
    for place in (0, 2):
        counts = np.bincount(orders[:, place], minlength=20)
        assert stats.chisquare(counts).pvalue > 1e-4


class TestGroups:
    GROUPS = np.repeat(["a", "b", "c", "d"], [600, 300, 70, 30])

    def choose(self, n, seed=1):
        rows = np.random.default_rng(0).permutation(1000)
        return spread_over_groups(rows, self.GROUPS[rows], n, np.random.default_rng(seed))

    def test_each_group_is_looked_at_in_proportion(self):
        chosen = self.choose(40)
        assert len(set(chosen.tolist())) == 40
        counts = np.array([(self.GROUPS[chosen] == name).sum() for name in "abcd"])
        assert (np.abs(counts - [24, 12, 2.8, 1.2]) <= 1).all()
        assert counts.min() >= 1

    def test_every_row_is_as_likely_as_any_other(self):
        """So the labels are a sample of the whole table too, whatever the groups are."""
        taken = np.zeros(1000)
        for seed in range(400):
            taken[self.choose(40, seed)] += 1
        for name in "abcd":
            own = taken[name == self.GROUPS]
            expected = 400 * 40 / 1000
            # The number of rows of a group varies by at most one from draw to draw.
            assert own.mean() == pytest.approx(expected, abs=4 * np.sqrt(400 / 4) / len(own))

    def test_the_rows_of_a_group_are_spread_over_its_ranks(self):
        chosen = spread_over_groups(np.arange(1000), self.GROUPS, 60, np.random.default_rng(1))
        of_a = np.sort(chosen[self.GROUPS[chosen] == "a"])
        assert np.diff(of_a).max() <= 1 + 1000 / 60

    def test_every_beginning_has_the_groups_in_proportion(self):
        chosen = self.choose(100)
        for n in (20, 50, 80):
            share = (self.GROUPS[chosen[:n]] == "a").mean()
            assert abs(share - 0.6) <= 2.7 / n + 0.02

    def test_all_rows_can_be_chosen(self):
        groups = np.repeat(["a", "b"], [2, 8])
        chosen = spread_over_groups(np.arange(10), groups, 10, np.random.default_rng(0))
        assert sorted(chosen.tolist()) == list(range(10))


def test_no_gap_is_larger_than_that_of_the_golden_section():
    """Of all steps, those of the golden section have the smallest largest gap: 1 + 2 / sqrt(5)."""
    order = spread_evenly(np.arange(1000), np.random.default_rng(3))
    for n in range(2, 300):
        taken = np.sort(order[:n])
        gaps = np.diff(np.append(taken, taken[0] + 1000))
        assert gaps.max() <= 1.0 + (1.0 + 2.0 / np.sqrt(5.0)) * 1000 / n
    assert spread_evenly(np.arange(0), np.random.default_rng(0)).tolist() == []
