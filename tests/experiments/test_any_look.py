"""How often intervals miss at some look: the chain, against its closed form and simulation."""

import numpy as np
from scipy import stats

from experiments import any_look

N, N_ROWS = any_look.N_LABELS, 400


def ends_that_hold(is_held):
    """Ends that contain every number where `is_held` (n, k) says so, and none elsewhere."""
    n, k = np.indices((N + 1, N + 1))
    return np.where(is_held(n, k)[..., None], [0, N_ROWS], [N_ROWS + 1, N_ROWS + 1])


def test_an_interval_that_holds_without_anomalies_misses_with_the_first_one():
    ends = ends_that_hold(lambda n, k: k == 0)
    expected = 1.0 - stats.hypergeom.pmf(0, N_ROWS, 12, N)
    assert abs(any_look.missed(ends, N_ROWS, 12 / N_ROWS) - expected) < 1e-12


def test_a_miss_at_any_look_counts(rng):
    """It misses if more than a tenth of the labels so far are anomalies."""
    ends, n_repeats = ends_that_hold(lambda n, k: k <= 0.1 * n), 4000
    y = np.arange(N_ROWS) < 20
    orders = rng.permuted(np.tile(y, (n_repeats, 1)), axis=1)[:, :N]
    is_missed = (np.cumsum(orders, axis=1) > 0.1 * np.arange(1, N + 1)).any(axis=1)
    found = any_look.missed(ends, N_ROWS, 0.05)
    assert abs(found - is_missed.mean()) < 4 * np.sqrt(0.25 / n_repeats)


def test_every_start_of_the_spread_is_tried():
    ends = ends_that_hold(lambda n, k: k == 0)
    assert any_look.missed_by_spread(ends, np.zeros(N_ROWS, dtype=int)) == 0.0
    one = (np.arange(N_ROWS) == 7).astype(int)
    # Each row is among the first ones from as many starts as there are labels.
    assert any_look.missed_by_spread(ends, one) == N / N_ROWS


def test_patterns_have_their_share():
    for pattern in any_look.PATTERNS.values():
        assert abs(pattern(1000, 0.5).mean() - 0.5) < 0.02
