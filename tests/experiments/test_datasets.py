"""The benchmark datasets in the data folder."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.datasets import MissingDataError, data_folder, load_benchmark

# True contamination of the sets, from the table in the paper's supplement.
PAPER_GAMMAS = {
    "ALOI": 0.0304,
    "Annthyroid": 0.0749,
    "Arrhythmia": 0.0996,
    "Cardiotocography": 0.0496,
    "Glass": 0.0421,
    "InternetAds": 0.0499,
    "KDDCup99": 0.0042,
    "Lymphography": 0.0405,
    "PageBlocks": 0.1023,
    "Parkinson": 0.0943,
    "PenDigits": 0.0020,
    "Pima": 0.0494,
    "Shuttle": 0.0128,
    "SpamBase": 0.0500,
    "Stamps": 0.0912,
    "WBC": 0.0448,
    "WDBC": 0.0272,
    "WPBC": 0.0562,
    "Waveform": 0.0290,
    "Wilt": 0.0200,
}

ARFF = """\
@RELATION 'made up'
@ATTRIBUTE 'id' string
@attribute 'Mean value' REAL
@Attribute width integer [0, 9]
@ATTRIBUTE 'outlier' {'yes','no'}
@DATA
'a, 1', 0.5, 2, 'no'
"b", 1.5,3,'YES'
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "paper").mkdir()
    X = np.array([[1.5, 2.0], [3.0, -4.0]], dtype=np.float32)
    np.savez(tmp_path / "paper" / "B.npz", X=X, y=np.array([0, 1], dtype=np.int8))
    (tmp_path / "paper" / "A.arff").write_text(ARFF)
    monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path))
    return tmp_path


def test_datasets_by_name(folder):
    first, second = load_benchmark("A"), load_benchmark("B")
    assert first.X.tolist() == [[0.5, 2.0], [1.5, 3.0]]
    assert (first.name, first.feature_names) == ("A", ("Mean value", "width"))
    assert second.X.tolist() == [[1.5, 2.0], [3.0, -4.0]]
    assert (second.X.dtype, second.y.dtype, second.feature_names) == (float, int, ("x1", "x2"))
    assert first.y.tolist() == second.y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("X", "y"), [([[1.0], [np.nan]], [0, 1]), ([[1.0], [2.0]], [1, 2]), ([[1.0], [2.0]], [0])]
)
def test_wrong_numbers_are_refused(folder, X, y):
    np.savez(folder / "paper" / "bad.npz", X=X, y=y)
    with pytest.raises(ValueError, match="finite numbers and one label"):
        load_benchmark("bad")


@pytest.mark.parametrize(("name", "collection"), [("C", "paper"), ("A", "pool")])
def test_unknown_names_are_refused(folder, name, collection):
    with pytest.raises(MissingDataError):
        load_benchmark(name, collection)


def test_the_folder_is_that_of_the_environment_variable_alone(folder, monkeypatch):
    assert data_folder() == folder
    monkeypatch.setenv("GAMMAGMM_DATA", "")
    assert data_folder() is None
    monkeypatch.setenv("GAMMAGMM_DATA", str(folder / "gone"))
    with pytest.raises(FileNotFoundError):
        data_folder()


@pytest.mark.parametrize("name", PAPER_GAMMAS)
def test_benchmark_sets_have_the_contamination_of_the_paper(name):
    if data_folder() is None:
        pytest.skip("the benchmark data are not here: set GAMMAGMM_DATA")
    dataset = load_benchmark(name)
    assert abs(dataset.gamma - PAPER_GAMMAS[name]) <= 0.5e-4 + 1e-12  # printed to four digits
    assert len(dataset.feature_names) == dataset.X.shape[1]


def test_every_benchmark_set_of_the_paper_is_compared():
    if data_folder() is None:
        pytest.skip("the benchmark data are not here: set GAMMAGMM_DATA")
    files = (data_folder() / "paper").iterdir()
    assert {path.stem for path in files if path.suffix in (".npz", ".arff")} == set(PAPER_GAMMAS)
