"""Scores of rows, with anomalies that rank high."""

from __future__ import annotations

import numpy as np


def planted(n_rows=1000, n_anomalies=60, noise=1.0, seed=0):
    """Scores in which anomalies are high, with noise, and the truth."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) < n_anomalies).astype(int)
    return 2.0 * y + noise * rng.normal(size=n_rows), y
