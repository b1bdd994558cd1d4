"""The rows that the benchmarks make."""

from __future__ import annotations

import numpy as np

N_COLUMNS = 10


def make_rows(n_rows, n_columns=N_COLUMNS, n_binary=0, seed=0):
    """Rows in eight clusters, 2 % of them spread over the space; the last columns are binary."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(8, n_columns))
    X = centres[rng.integers(8, size=n_rows)] + rng.normal(size=(n_rows, n_columns))
    is_anomaly = rng.random(n_rows) < 0.02
    X[is_anomaly] = rng.uniform(-10.0, 10.0, size=(int(is_anomaly.sum()), n_columns))
    binary = rng.random((n_rows, n_binary)) < rng.uniform(0.05, 0.5, size=n_binary)
    return np.hstack([X, binary])
