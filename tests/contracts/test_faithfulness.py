"""Posterior means on the paper's benchmark sets are in the range of the paper's table."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import GammaGMM

SMALL = ["Arrhythmia", "Glass", "Lymphography", "Parkinson", "Pima"]
SMALL += ["Shuttle", "Stamps", "WBC", "WDBC", "WPBC"]
LARGE = [
    "Annthyroid",
    "Cardiotocography",
    "PageBlocks",
    "PenDigits",
    "SpamBase",
    "Waveform",
    "Wilt",
]


def posterior_means(scores, seeds=(0, 1)):
    fits = [GammaGMM("precomputed", random_state=seed, n_jobs=2).fit(scores) for seed in seeds]
    return [fit.posterior_.mean for fit in fits]


def test_means_on_small_sets_are_in_the_papers_range_and_stable_over_seeds(benchmark_scores):
    means = np.array([posterior_means(benchmark_scores(name)) for name in SMALL])
    assert means.min() > 0.03
    assert means.max() < 0.08
    assert np.abs(means[:, 0] - means[:, 1]).mean() < 0.02


@pytest.mark.slow
def test_means_on_all_sets_are_in_the_papers_range_and_stable_over_seeds(benchmark_scores):
    means = {name: posterior_means(benchmark_scores(name)) for name in SMALL + LARGE}
    outside = {name for name, seeds in means.items() if min(seeds) < 0.03 or max(seeds) > 0.08}
    # A finding, not a tolerance: the mean on SpamBase is 0.092, and 0.058 in the paper's table.
    assert outside == {"SpamBase"}
    differences = [abs(first - second) for first, second in means.values()]
    assert np.mean(differences) < 0.02
