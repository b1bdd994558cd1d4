"""Datasets from the data folder."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import data


@pytest.fixture
def turbines(tmp_path):
    """Two minutes normal, one failing, one unknown; a sensor reading every 20 s."""
    lines = ["time,wind_speed,power,group"]
    times = [f"2015-11-01 20:{minute:02d}:{s:02d}" for minute in range(4) for s in (0, 20, 40)]
    lines += [f"{t},{i},{10 * i},1" for i, t in enumerate(times)]
    (tmp_path / "15_data.csv").write_text("\n".join(lines) + "\n")
    intervals = {
        "normal": "2015-11-01 20:00:00,2015-11-01 20:02:10",
        "failure": "2015-11-01 20:02:15,2015-11-01 20:02:59",
    }
    for name, interval in intervals.items():
        (tmp_path / f"15_{name}Info.csv").write_text(f"startTime,endTime\n{interval}\n")
    return tmp_path


def test_turbine_rows_are_minutes_labelled_by_interval(turbines):
    found = data.read_turbine(turbines, 15)
    assert found.name == "T15"
    assert found.feature_names == ("wind_speed", "power")
    # Readings 0 to 2, 3 to 5, then 6 (still normal), and 7 and 8 (failing); the rest unknown.
    np.testing.assert_array_equal(found.X[:, 0], [1.0, 4.0, 6.0, 7.5])
    np.testing.assert_array_equal(found.X[:, 1], 10 * found.X[:, 0])
    assert found.y.tolist() == [0, 0, 0, 1]


def test_missing_data_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path))
    (tmp_path / "paper").mkdir()
    with pytest.raises(data.MissingDataError, match=r"^no paper/Glass in the data folder$"):
        data.load("paper", "Glass")
    with pytest.raises(data.MissingDataError, match=r"^no turbines/15_data.csv in the data folder"):
        data.load("paper", "T15")


def test_without_a_data_folder_the_error_names_the_variable(monkeypatch):
    monkeypatch.delenv("GAMMAGMM_DATA", raising=False)
    with pytest.raises(RuntimeError, match=r"GAMMAGMM_DATA is not set\. Set it to the folder"):
        data.load("paper", "Glass")


def test_seeds_change_only_the_detectors_that_use_random_numbers(tmp_path, monkeypatch, rng):
    monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path))
    monkeypatch.setattr("experiments.data.CACHE", tmp_path / "cache")
    (tmp_path / "paper").mkdir()
    X, y = rng.normal(size=(80, 3)), np.arange(80) < 4
    np.savez(tmp_path / "paper" / "Glass.npz", X=X, y=y.astype(int))
    part = {"preset": "classic", "max_fit_rows": "all"}
    first, second = (data.seeded_scores("paper", "Glass", part, seed) for seed in (0, 1))
    names = ["KNN", "IForest", "LOF", "OCSVM", "LSCP", "HBOS", "LODA", "COPOD"]
    assert first.names == second.names == names
    changed = [not np.array_equal(a, b) for a, b in zip(first.S.T, second.S.T, strict=True)]
    assert {name for name, is_new in zip(names, changed, strict=True) if is_new} == {
        *("IForest", "LSCP", "LODA")
    }
    alone = data.scores_of(X, y, part, 1)
    fixed = [names.index(name) for name in ("KNN", "LOF", "OCSVM", "HBOS", "COPOD")]
    np.testing.assert_array_equal(alone.S[:, fixed], second.S[:, fixed])
    again = data.seeded_scores("paper", "Glass", part, 1)
    np.testing.assert_array_equal(again.S, second.S)
