"""What the guide says about nonconform's selections holds on many tables."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from gammagmm.datasets import make_contaminated

if sys.version_info < (3, 12):
    pytest.skip("nonconform needs Python 3.12", allow_module_level=True)

from nonconform import ConformalDetector, Split

LEVEL = 0.1
N_TABLES = 20


@pytest.fixture(scope="module")
def outcomes():
    """Selected rows, and wrongly selected ones, with a clean and with an unlabelled reference."""
    found = {"clean": [], "unlabelled": []}
    for seed in range(N_TABLES):
        data = make_contaminated(1500, 5, 0.05, "clustered", random_state=seed)
        old, new, truth = data.X[:1200], data.X[1200:], data.y[1200:]
        references = {"clean": old[data.y[:1200] == 0], "unlabelled": old}
        for kind, reference in references.items():
            forest = IsolationForest(n_estimators=50, random_state=seed)
            detector = ConformalDetector(forest, strategy=Split(n_calib=0.5), seed=seed)
            selected = detector.fit(reference).select(new, alpha=LEVEL)
            found[kind].append((selected.sum(), selected[truth == 0].sum(), truth.sum()))
    return {kind: np.array(each) for kind, each in found.items()}


def test_a_clean_reference_keeps_the_false_discoveries_at_the_chosen_level(outcomes):
    selected, wrong, _ = outcomes["clean"].T
    rates = wrong / np.maximum(selected, 1)
    assert rates.mean() <= LEVEL + 4 * rates.std(ddof=1) / np.sqrt(N_TABLES)
    assert (selected > 0).mean() > 0.5


def test_an_unlabelled_reference_hides_the_anomalies(outcomes):
    (clean, _, truth), (mixed, *_) = outcomes["clean"].T, outcomes["unlabelled"].T
    assert mixed.sum() < 0.2 * clean.sum()
    assert mixed.sum() < 0.2 * truth.sum()
