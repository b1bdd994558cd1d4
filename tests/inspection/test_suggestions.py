"""Rows to label: spread evenly over the ranking, and over groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm.inspection.suggestions import spread_evenly, spread_over_groups


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
    GROUPS = np.repeat(["a", "b", "c", "d"], [600, 300, 97, 3])

    def test_each_group_is_looked_at_in_proportion(self):
        rows = np.random.default_rng(0).permutation(1000)
        chosen = spread_over_groups(rows, self.GROUPS[rows], 30, np.random.default_rng(1))
        assert len(set(chosen.tolist())) == 30
        names, counts = np.unique(self.GROUPS[chosen], return_counts=True)
        assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
            "a": 17,
            "b": 9,
            "c": 3,
            "d": 1,
        }

    def test_the_rows_of_a_group_are_spread_over_its_ranks(self):
        rows = np.arange(1000)
        chosen = spread_over_groups(rows, self.GROUPS, 60, np.random.default_rng(1))
        of_a = np.sort(chosen[self.GROUPS[chosen] == "a"])
        gaps = np.diff(np.append(of_a, of_a[0] + 600))
        assert gaps.max() <= 1 + 2.7 * 600 / len(of_a)

    def test_every_beginning_has_the_groups_in_proportion(self):
        chosen = spread_over_groups(np.arange(1000), self.GROUPS, 100, np.random.default_rng(1))
        for n in (20, 50, 80):
            share = (self.GROUPS[chosen[:n]] == "a").mean()
            assert abs(share - 0.6) <= 1.5 / n + 0.02

    def test_a_small_group_gives_all_its_rows(self):
        groups = np.repeat(["a", "b"], [2, 8])
        chosen = spread_over_groups(np.arange(10), groups, 10, np.random.default_rng(0))
        assert sorted(chosen.tolist()) == list(range(10))

    def test_fewer_rows_than_groups_are_refused(self):
        with pytest.raises(ValueError, match="n must be at least 4, the number of groups"):
            spread_over_groups(np.arange(1000), self.GROUPS, 3, np.random.default_rng(0))
