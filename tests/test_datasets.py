"""The demo set, synthetic anomalies of each kind, and the benchmark readers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.mixture import GaussianMixture

from gammagmm.datasets import (
    Dataset,
    data_folder,
    load_benchmark,
    load_demo,
    make_contaminated,
    read_dami_arff,
    read_npz,
)
from gammagmm.errors import TableError

KINDS = ["global", "local", "clustered", "dependency"]
SEEDS = [0, 1, 2]

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


def split(dataset):
    """Inliers and anomalies."""
    return dataset.X[dataset.y == 0], dataset.X[dataset.y == 1]


class TestDemo:
    def test_is_the_bundled_data_without_most_malignant_rows(self):
        demo, bunch = load_demo(), load_breast_cancer()
        rows = [int(np.flatnonzero((bunch.data == row).all(axis=1))[0]) for row in demo.X]
        assert rows == sorted(rows)
        assert set(np.flatnonzero(bunch.target == 1)) <= set(rows)
        np.testing.assert_array_equal(demo.y, bunch.target[rows] == 0)
        assert demo.feature_names == tuple(bunch.feature_names)

    def test_counts_and_gamma(self):
        demo = load_demo()
        assert np.bincount(demo.y).tolist() == [357, 10]
        assert demo.gamma == 10 / 367

    def test_draw_is_frozen(self):
        assert np.flatnonzero(load_demo().y).tolist() == [0, 1, 2, 7, 27, 37, 103, 134, 229, 365]

    def test_repr(self):
        assert repr(load_demo()) == "Dataset('breast-cancer', 367 rows, 30 features, gamma=0.0272)"


class TestMakeContaminated:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        ("n", "gamma", "n_anomalies"), [(100, 0.037, 4), (50, 0, 0), (10, 0.5, 5)]
    )
    def test_exact_number_of_anomalies(self, kind, n, gamma, n_anomalies):
        dataset = make_contaminated(n, 3, gamma, kind, random_state=0)
        assert np.bincount(dataset.y, minlength=2).tolist() == [n - n_anomalies, n_anomalies]
        assert dataset.X.shape == (n, 3)
        assert np.isfinite(dataset.X).all()
        assert (dataset.name, dataset.feature_names) == (kind, ("x1", "x2", "x3"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_same_seed_same_rows(self, kind):
        first, again = (make_contaminated(60, 2, 0.1, kind, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(first.X, again.X)
        np.testing.assert_array_equal(first.y, again.y)
        other = make_contaminated(60, 2, 0.1, kind, random_state=4)
        assert not np.isin(first.X, other.X).any()

    def test_global_random_state_is_not_touched(self):
        before = np.random.get_state()[1].copy()
        make_contaminated(60, 2, 0.1, "local")
        np.testing.assert_array_equal(np.random.get_state()[1], before)

    def test_rows_are_shuffled(self):
        n, n_anomalies = 4000, 1000
        y = make_contaminated(n, 2, 0.25, "local", random_state=0).y
        standard_error = np.sqrt((n**2 - 1) / 12 / n_anomalies)
        assert abs(np.flatnonzero(y).mean() - (n - 1) / 2) < 4 * standard_error

    @pytest.mark.parametrize("seed", SEEDS)
    def test_inliers_are_correlated_within_clusters(self, seed):
        inliers, _ = split(make_contaminated(4000, 10, 0.0, "local", seed))
        mixture = GaussianMixture(3, n_init=3, random_state=0).fit(inliers)
        for covariance in mixture.covariances_:
            deviations = np.sqrt(np.diag(covariance))
            correlations = covariance / np.outer(deviations, deviations)
            n_cluster = 4000 * mixture.weights_.min()
            # The loadings are at least 0.6, so every correlation is at least 0.36.
            assert np.abs(correlations).min() > 0.36 - 4 / np.sqrt(n_cluster)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_global_anomalies_fill_a_wider_box_evenly(self, seed):
        inliers, anomalies = split(make_contaminated(4000, 3, 0.5, "global", seed))
        low, high = inliers.min(axis=0), inliers.max(axis=0)
        margin = 0.1 * (high - low)
        unit = (anomalies - low + margin) / (high - low + 2 * margin)
        assert unit.min() >= 0
        assert unit.max() <= 1
        n = len(anomalies)
        for column in unit.T:
            assert stats.kstest(column, "uniform").statistic < 2.2 / np.sqrt(n)  # p = 1e-4
        outside = ((anomalies < low) | (anomalies > high)).any(axis=1).mean()
        expected = 1 - (1 / 1.2) ** 3
        assert abs(outside - expected) < 4 * np.sqrt(expected * (1 - expected) / n)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_local_anomalies_have_the_same_centres_and_five_times_the_covariances(self, seed):
        d = 10
        inliers, anomalies = split(make_contaminated(12000, d, 0.25, "local", seed))
        mixture = GaussianMixture(3, n_init=3, random_state=0).fit(inliers)
        # In ten dimensions the clusters lie so far apart that the nearest one is a row's own.
        differences = anomalies[:, None] - mixture.means_
        distances = np.einsum("nki,kij,nkj->nk", differences, mixture.precisions_, differences)
        cluster = distances.argmin(axis=1)
        n = len(anomalies)
        standard_error = 5 * np.sqrt(2 * d / n)  # of the mean of 5 chi2(d)
        assert abs(distances.min(axis=1).mean() - 5 * d) < 4 * standard_error
        for k, (mean, covariance) in enumerate(
            zip(mixture.means_, mixture.covariances_, strict=True)
        ):
            members = anomalies[cluster == k]
            # The fitted mean errs too, by less than the members' mean does: hence the 2.
            standard_errors = np.sqrt(2 * 5 * np.diag(covariance) / len(members))
            assert (np.abs(members.mean(axis=0) - mean) < 4 * standard_errors).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_clustered_anomalies_are_one_tight_cluster_far_away(self, seed):
        inliers, anomalies = split(make_contaminated(4000, 4, 0.25, "clustered", seed))
        n, centre, deviations = len(anomalies), inliers.mean(axis=0), inliers.std(axis=0)
        spread = anomalies.std(axis=0, ddof=1)
        shift = np.abs(anomalies.mean(axis=0) - centre)
        assert (np.abs(shift - 3 * deviations) < 4 * spread / np.sqrt(n)).all()
        # Clusters have deviations of at most 1.5, so the tight one of at most 1.5 * sqrt(0.1).
        assert (spread < 1.5 * np.sqrt(0.1) * (1 + 4 / np.sqrt(2 * n))).all()
        assert (spread < deviations / 2).all()

    @pytest.mark.parametrize("seed", SEEDS)
    def test_dependency_anomalies_keep_the_marginals_and_lose_the_dependence(self, seed):
        inliers, anomalies = split(make_contaminated(8000, 4, 0.5, "dependency", seed))
        n = len(anomalies)
        for normal, anomalous in zip(inliers.T, anomalies.T, strict=True):
            distance = stats.ks_2samp(normal, anomalous).statistic
            assert distance < 2.2 * np.sqrt(2 / n)  # p = 1e-4
        off_diagonal = np.triu_indices(4, 1)
        kept = np.abs(stats.spearmanr(inliers).statistic[off_diagonal])
        lost = np.abs(stats.spearmanr(anomalies).statistic[off_diagonal])
        assert kept.max() > 0.3
        assert lost.max() < 4 / np.sqrt(n)
        # Squares are uncorrelated as well: independent, not merely uncorrelated.
        squares = stats.spearmanr((anomalies - anomalies.mean(axis=0)) ** 2).statistic
        assert np.abs(squares[off_diagonal]).max() < 4 / np.sqrt(n)

    @pytest.mark.parametrize("kind", ["global", "local", "clustered"])
    def test_one_feature_is_enough_for_the_other_kinds(self, kind):
        assert make_contaminated(20, 1, 0.1, kind, random_state=0).y.sum() == 2

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"kind": "strange"}, ValueError, "kind must be one of global, .*, got 'strange'"),
            ({"n": 9}, ValueError, "n must be at least 10, got 9"),
            ({"n": 20.0}, TypeError, "n must be a whole number, got 20.0"),
            ({"d": 0}, ValueError, "d must be at least 1, got 0"),
            ({"d": 1, "kind": "dependency"}, ValueError, "d must be at least 2, got 1"),
            ({"gamma": 0.51}, ValueError, "gamma must lie between 0 and 0.5, got 0.51"),
            ({"gamma": -0.1}, ValueError, "gamma must lie between 0 and 0.5, got -0.1"),
            ({"gamma": float("nan")}, ValueError, "gamma must lie between 0 and 0.5, got nan"),
            ({"gamma": "0.1"}, TypeError, "gamma must be a number, got '0.1'"),
            ({"random_state": -1}, ValueError, "random_state must be at least 0, got -1"),
        ],
    )
    def test_refusals(self, change, error, message):
        with pytest.raises(error, match=message):
            make_contaminated(**({"n": 20, "d": 2, "gamma": 0.1, "kind": "local"} | change))


class TestReadNpz:
    def test_values(self, tmp_path):
        X = np.array([[1.5, 2.0], [3.0, -4.0]], dtype=np.float32)
        np.savez(tmp_path / "made_up.npz", X=X, y=np.array([0, 1], dtype=np.int8), id=[7, 8])
        dataset = read_npz(tmp_path / "made_up.npz")
        assert dataset.X.tolist() == [[1.5, 2.0], [3.0, -4.0]]
        assert dataset.y.tolist() == [0, 1]
        assert (dataset.X.dtype, dataset.y.dtype) == (np.float64, np.int64)
        assert (dataset.name, dataset.feature_names) == ("made_up", ("x1", "x2"))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"X": [[1.0]]}, "must hold arrays X and y: it has no y"),
            ({"S": [[1.0]], "y": [0]}, "must hold arrays X and y: it has no X"),
            ({"X": [1.0, 2.0], "y": [0, 1]}, r"X of shape \(2,\) and type float64"),
            ({"X": [[1.0], [2.0]], "y": [0]}, r"X of shape \(2, 1\).*y of shape \(1,\)"),
            ({"X": [["a"]], "y": [0]}, "must hold numbers X .* type <U1"),
            ({"X": [[1.0], [np.nan]], "y": [0, 1]}, r"X\[1, 0\] is nan, not a finite number"),
            ({"X": [[1.0], [2.0]], "y": [1, 2]}, r"y must hold 0 and 1 only, got \[1, 2\]"),
            ({"X": np.empty((0, 3)), "y": []}, r"contains no rows or no features: .*\(0, 3\)"),
            ({"X": np.array([[{}]]), "y": [0]}, "array 'X', contains Python objects, which are n"),
        ],
    )
    def test_refusals(self, tmp_path, arrays, message):
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(TableError, match=message):
            read_npz(tmp_path / "bad.npz")

    def test_missing_file(self, tmp_path):
        with pytest.raises(TableError, match=r"no\.npz does not exist or is not a file"):
            read_npz(tmp_path / "no.npz")

    @pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x93NUMPY"])
    def test_other_content(self, tmp_path, content):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(TableError, match=r"is not an \.npz file\. Write it with numpy\.savez"):
            read_npz(tmp_path / "bad.npz")

    def test_damaged_file(self, tmp_path):
        path = tmp_path / "bad.npz"
        np.savez(path, X=np.zeros((100, 10)), y=np.zeros(100))
        content = bytearray(path.read_bytes())
        content[4000] ^= 1
        path.write_bytes(content)
        with pytest.raises(TableError, match="cannot be read: Bad CRC-32"):
            read_npz(path)


DAMI_TEXT = """\
% a comment, then a blank line

@RELATION 'made up'
@ATTRIBUTE 'id' string
@attribute 'Mean value' REAL
@ATTRIBUTE "size" numeric
@Attribute width integer [0, 9]
@ATTRIBUTE 'outlier' {'yes','no'}
@DATA
% another comment
'a, 1', 0.5, -1e3, 2, 'no'

"b", 1.5,2.5,3,'YES'
c,2.5,3.5,4,no
"""


class TestReadDamiArff:
    @pytest.fixture
    def write(self, tmp_path):
        def write_file(text):
            path = tmp_path / "made_up.arff"
            path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
            return path

        return write_file

    @pytest.mark.parametrize("text", [DAMI_TEXT, "\ufeff" + DAMI_TEXT.replace("\n", "\r\n")])
    def test_values(self, write, text):
        dataset = read_dami_arff(write(text))
        assert dataset.X.tolist() == [[0.5, -1000.0, 2.0], [1.5, 2.5, 3.0], [2.5, 3.5, 4.0]]
        assert dataset.y.tolist() == [0, 1, 0]
        assert dataset.feature_names == ("Mean value", "size", "width")
        assert dataset.name == "made_up"

    def test_label_first_and_no_id(self, write):
        dataset = read_dami_arff(
            write("@attribute OUTLIER{no,yes}\n@attribute a real\n@data\nyes,1\nno,2\n")
        )
        assert dataset.y.tolist() == [1, 0]
        assert dataset.X.tolist() == [[1.0], [2.0]]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("c,2.5,3.5,4,no", "{1 2.5, 4 no}", "line 14: sparse ARFF rows cannot be read"),
            ("c,2.5,3.5,4,no", "c,2.5,4,no", "line 14: found 4 cells .* for 5 attributes"),
            ("c,2.5", "c,?", "line 14, 'Mean value': a value is missing"),
            ("c,2.5", "c,inf", r"X\[2, 0\] is inf, not a finite number"),
            ("c,2.5", "c,red", "line 14, column 'Mean value': found 'red', which is not a number"),
            ("4,no", "4,maybe", "line 14, 'outlier': expected yes or no, found 'maybe'"),
            ("4,no", "4,?", r"line 14, 'outlier': expected yes or no, found '\?'"),
            ("numeric", "{red, blue}", "attribute 'size' contains text. Use the version"),
            ("'outlier'", "'class'", "needs exactly one attribute 'outlier', and has 0"),
            ("'id' string", "Outlier {yes,no}", "exactly one attribute 'outlier', and has 2"),
            ("@DATA", "", "contains no rows or no features"),
        ],
    )
    def test_refusals(self, write, old, new, message):
        assert old in DAMI_TEXT
        with pytest.raises(TableError, match=message):
            read_dami_arff(write(DAMI_TEXT.replace(old, new)))

    def test_wrong_encoding(self, write):
        with pytest.raises(TableError, match=r"is not UTF-8: byte 3 .*\. Save the file as UTF-8"):
            read_dami_arff(write(b"% \xe9"))

    def test_missing_file(self, tmp_path):
        with pytest.raises(TableError, match=r"no\.arff does not exist or is not a file"):
            read_dami_arff(tmp_path / "no.arff")


class TestDataFolder:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        (tmp_path / "paper").mkdir()
        np.savez(tmp_path / "paper" / "B.npz", X=[[1.0], [2.0]], y=[0, 1])
        (tmp_path / "paper" / "A.arff").write_text(DAMI_TEXT)
        (tmp_path / "paper" / "README.md").write_text("not a dataset")
        monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path))
        return tmp_path

    def test_environment_variable(self, folder):
        assert data_folder() == folder

    def test_environment_variable_that_names_no_folder(self, monkeypatch, tmp_path):
        monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path / "gone"))
        with pytest.raises(FileNotFoundError, match=r"GAMMAGMM_DATA is '.*gone', which is not a f"):
            data_folder()

    def test_empty_environment_variable(self, monkeypatch):
        monkeypatch.setenv("GAMMAGMM_DATA", "")
        assert data_folder() is None

    def test_no_other_folder_is_looked_for(self, tmp_path, monkeypatch):
        (tmp_path / "shared" / "data").mkdir(parents=True)
        (tmp_path / "work").mkdir()
        monkeypatch.delenv("GAMMAGMM_DATA", raising=False)
        monkeypatch.chdir(tmp_path / "work")
        assert data_folder() is None

    def test_loading(self, folder):
        assert load_benchmark("A").y.tolist() == [0, 1, 0]
        assert load_benchmark("B").X.tolist() == [[1.0], [2.0]]

    def test_unknown_name(self, folder):
        with pytest.raises(
            FileNotFoundError, match=r"no dataset 'C' in 'paper'\. Choose one of: A, B"
        ):
            load_benchmark("C")

    def test_unknown_collection(self, folder):
        with pytest.raises(FileNotFoundError, match=r"no collection 'pool' .* Set .* GAMMAGMM"):
            load_benchmark("A", "pool")

    def test_no_folder_at_all(self, monkeypatch):
        monkeypatch.delenv("GAMMAGMM_DATA", raising=False)
        message = (
            r"no collection 'paper' in any data folder\. Set the environment variable GAMMAGMM"
        )
        with pytest.raises(FileNotFoundError, match=message):
            load_benchmark("WDBC")


@pytest.mark.parametrize("name", PAPER_GAMMAS)
def test_benchmark_sets_have_the_contamination_of_the_paper(name):
    if data_folder() is None:
        pytest.skip("the benchmark data are not here: set GAMMAGMM_DATA")
    dataset = load_benchmark(name)
    assert isinstance(dataset, Dataset)
    assert abs(dataset.gamma - PAPER_GAMMAS[name]) <= 0.5e-4 + 1e-12  # printed to four digits
    assert len(dataset.feature_names) == dataset.X.shape[1]


def test_every_benchmark_set_of_the_paper_is_compared():
    if data_folder() is None:
        pytest.skip("the benchmark data are not here: set GAMMAGMM_DATA")
    files = (data_folder() / "paper").iterdir()
    assert {path.stem for path in files if path.suffix in (".npz", ".arff")} == set(PAPER_GAMMAS)
