"""Wrong labels: coverage by enumeration, against simulation."""

import numpy as np

from experiments import label_error


def test_the_coverage_is_that_of_a_simulation(rng):
    n, share, error, n_repeats = 30, 0.1, 0.05, 4000
    ends = label_error.intervals(n, error)
    held, widths = label_error.of_shares(np.array([0.0, share]), ends, error)
    is_anomaly = rng.random((n_repeats, n)) < share
    found = (is_anomaly ^ (rng.random((n_repeats, n)) < error)).sum(axis=1)
    low, high = ends[found].T
    is_held = (low <= share) & (share <= high)
    assert abs(held[1] - is_held.mean()) < 4 * np.sqrt(0.25 / n_repeats)
    assert abs(widths[1] - (high - low).mean()) < 4 * (high - low).std() / np.sqrt(n_repeats)
    assert held[0] > 0.9


def test_without_the_rate_of_errors_the_interval_misses():
    ends = label_error.intervals(30, 0.0)
    held, _ = label_error.of_shares(np.array([0.0, 0.01]), ends, 0.1)
    assert (held < 0.5).all()
