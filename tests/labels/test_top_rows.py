"""The test for rows from the top of a ranking among random ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm.labels.suggestions import spread_evenly
from gammagmm.labels.top_rows import p_top_rows


@pytest.mark.parametrize(("n", "n_rows"), [(1, 5), (5, 5), (12, 300), (40, 1000)])
def test_it_is_the_smallest_tail_times_the_number_of_places(n, n_rows):
    ranks = np.random.default_rng(n).permutation(n_rows)[:n] + 1
    rising = np.sort(ranks)
    tails = [stats.hypergeom.sf(k, n_rows, rising[k], n) for k in range(n)]
    assert p_top_rows(ranks, n_rows) == pytest.approx(min(n * min(tails), 1.0), rel=1e-9)


def test_many_rows_are_compared_at_some_places_only():
    rng = np.random.default_rng(0)
    assert p_top_rows(rng.permutation(100_000)[:5000] + 1, 100_000) > 1e-4
    assert p_top_rows(np.arange(5000) + 1, 100_000) == 0.0


def test_it_tells_mixed_from_honest_rows():
    """2,000 tables each, as the labels of 30 spread rows, alone and with the ten first rows."""
    rng, rows = np.random.default_rng(0), np.arange(1000)
    spread = np.array([spread_evenly(rows, rng)[:30] for _ in range(2000)])
    honest = np.array([p_top_rows(each + 1, 1000) for each in spread])
    simple = np.array([p_top_rows(rng.permutation(1000)[:30] + 1, 1000) for _ in range(2000)])
    mixed = np.array([p_top_rows(np.union1d(rows[:10], each) + 1, 1000) for each in spread])
    assert mixed.max() < 1e-6 < min(honest.min(), simple.min())
    # It is a bound: simple random rows are at most p with a probability of at most p.
    for p in (0.01, 0.1, 0.5):
        assert (simple <= p).mean() <= p + 4 * np.sqrt(p / 2000)
