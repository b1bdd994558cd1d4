"""The trials of the detectors, on synthetic rows."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.plan import Trial, load_plan
from scipy.stats import spearmanr

from experiments import detectors
from gammagmm.datasets import make_contaminated
from gammagmm.detectors.presets import PRESETS


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A set named Glass in a data folder of its own."""
    made = make_contaminated(120, 4, 0.05, "global", random_state=3)
    (tmp_path / "paper").mkdir()
    np.savez(tmp_path / "paper" / "Glass.npz", X=made.X, y=made.y)
    monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path))
    return made


@pytest.mark.long
def test_the_scores_are_pyods_to_the_bit(dataset):
    found = detectors.pyod_agreement(Trial("pyod_agreement", "paper", "Glass", "all"), load_plan())
    assert (found["rows"], found["features"]) == dataset.X.shape
    rows = {row["detector"]: row for row in found["detectors"]}
    assert set(rows) == set(PRESETS["paper"])
    assert {row["status"] for row in rows.values()} == {"ok"}
    for name, row in rows.items():
        if name in detectors.NETWORKS:
            assert "pyod_status" not in row
        else:
            assert row["rows_equal_to_the_bit"] == row["rows_fitted"] == len(dataset.X)
            assert row["largest_difference"] == row["rows_beyond_1e-9"] == 0


def test_a_detector_of_pyod_that_takes_too_long_is_recorded(rng):
    X = rng.normal(size=(30, 2))
    found = detectors._beside_pyod("KNN", np.zeros(30), X, seed=0, limit=1e-6)
    assert found == {"pyod_status": "longer than 0 s"}


def test_other_scores_are_counted_as_different(rng):
    X = rng.normal(size=(30, 2))
    theirs = detectors._pyod_scores("KNN", X, seed=0)
    ours = theirs + np.where(np.arange(30) < 4, 0.5, 0.0)
    found = detectors._beside_pyod("KNN", ours, X, seed=0, limit=120)
    assert found["rows_equal_to_the_bit"] == 26
    assert found["rows_beyond_1e-9"] == 4
    assert found["largest_difference"] == pytest.approx(0.5)


@pytest.mark.long
def test_our_auto_encoder_ranks_as_pyods(dataset):
    found = detectors.deep_agreement(Trial("deep_agreement", "paper", "Glass", "AE"), load_plan())
    assert found["ours_vs_pyod_seed_0"] == pytest.approx(1.0, abs=1e-4)
    assert found["pyod_scored_twice"] == pytest.approx(1.0, abs=1e-12)
    assert found["ours_seed_0_vs_1"] < 1.0
    assert found["times_faster"] == found["seconds_pyod"] / found["seconds_ours"]


def test_the_fitted_rows_are_those_that_the_detectors_saw(dataset):
    names, X = ["KNN", "LOF"], dataset.X
    scores, is_fitted = detectors._fit_subset(X, names, 60, seed=1)
    assert is_fitted.sum() == 60
    exact, all_fitted = detectors._fit_subset(X, names, len(X), seed=1)
    assert all_fitted.all()
    assert spearmanr(scores[:, 0], exact[:, 0]).statistic > 0.5
    # KNN's training score leaves a row out of its own neighbours: fitted on those rows alone it is
    # the distance to the fifth nearest of the others.
    fitted = X[is_fitted]
    distances = np.sort(np.linalg.norm(fitted[:, None] - fitted, axis=2), axis=1)
    np.testing.assert_allclose(scores[is_fitted, 0], distances[:, 5])
