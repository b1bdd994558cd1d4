"""Frozen detectors: PyOD's training scores, and scores of new rows that nothing else moves."""

from __future__ import annotations

import math
import os
import pickle
import random
import warnings

import numpy as np
import pytest
import scipy
from experiments.datasets import data_folder, load_benchmark
from numpy.testing import assert_allclose, assert_array_equal
from packaging.version import Version
from pyod.models.copod import COPOD as PyodCOPOD
from pyod.models.ecod import ECOD as PyodECOD
from pyod.models.hbos import HBOS as PyodHBOS
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.models.lof import LOF
from pyod.models.lscp import LSCP as PyodLSCP
from pyod.models.ocsvm import OCSVM as PyodOCSVM
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KDTree

from gammagmm.detectors.lscp_search import (
    Ensemble,
    _bin_counts,
    copy_tree,
    find_nearest,
    local_scores,
    nearest,
    searchable,
)
from gammagmm.detectors.pyod_subclasses import HBOS, LSCP, OCSVM
from gammagmm.detectors.tail_detectors import COPOD, ECOD

SMALL = ["Glass", "WDBC", "Stamps", "Lymphography", "Cardiotocography", "PageBlocks"]


def benchmark(name, n_rows=400):
    if data_folder() is None:
        pytest.skip("the benchmark data are not here: set GAMMAGMM_DATA")
    return load_benchmark(name).X[:n_rows]


def make_X(n_rows=150, n_features=5, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    X[: n_rows // 15] += 4.0
    return X


def make_duplicates(n_rows=200, n_features=5, n_values=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_values, size=(n_rows, n_features)).astype(float)


def lofs():
    return [LOF(n_neighbors=k) for k in (10, 20, 30, 40)]


def mixed():
    return [LOF(n_neighbors=7), KNN(), IForest(n_estimators=20, random_state=1), KNN(method="mean")]


class Column(BaseEstimator):
    """Detector that takes one feature for its score."""

    def __init__(self, index=0):
        self.index = index

    def fit(self, X, y=None):
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X):
        return X[:, self.index]


class RecordingLSCP(PyodLSCP):
    """PyOD's LSCP, which keeps the correlations that it selects detectors by."""

    def _get_competent_detectors(self, scores):
        self.__dict__.setdefault("correlations", []).append(np.nan_to_num(scores))
        return super()._get_competent_detectors(scores)

    def scores_in_the_subspaces_of_the_fit(self, X, seed):
        self.random_state = np.random.RandomState(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.decision_function(X)


def is_ambiguous(correlations, n_bins, tolerance=1e-12):
    """Rows where rounding decides: correlations that tie with each other or with an inner edge."""
    ordered = np.sort(correlations, axis=1)
    low, high = ordered[:, :1], ordered[:, -1:]
    inner = low + (high - low) * np.arange(1, n_bins) / n_bins
    at_edge = np.abs(correlations[:, :, None] - inner[:, None, :]) < tolerance
    gaps = np.diff(ordered, axis=1)
    at_edge &= (low < high)[:, :, None]
    return at_edge.any(axis=(1, 2)) | ((gaps < tolerance) & (gaps > 0)).any(axis=1)


def fit_pyod(detector, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detector.fit(X)


def make_pair(X, detectors=lofs, attributes=(), **parameters):
    """Our LSCP and PyOD's, fitted on the same rows."""
    parameters = {"n_bins": 4, "random_state": 3} | parameters
    pair = LSCP(detectors(), **parameters), RecordingLSCP(detectors(), **parameters)
    for detector in pair:
        for name, value in dict(attributes).items():
            setattr(detector, name, value)
    return pair[0].fit(X), fit_pyod(pair[1], X)


def assert_same_scores(ours, oracle, new=None, seed=3):
    """Equal scores of training and new rows, all but those where rounding decides."""
    theirs = [oracle.decision_scores_]
    scores = [ours.decision_scores_]
    if new is not None:
        theirs.append(oracle.scores_in_the_subspaces_of_the_fit(new, seed))
        scores.append(ours.decision_function(new))
    n_bins = min(oracle.n_bins, oracle.n_clf)
    is_clear = ~is_ambiguous(np.array(oracle.correlations), n_bins)
    assert is_clear.mean() > 0.97
    difference = np.concatenate(scores) - np.concatenate(theirs)
    assert_allclose(difference[is_clear], 0.0, atol=1e-9)
    assert_allclose(ours.threshold_, oracle.threshold_, atol=1e-9)


def global_state():
    return {
        "numpy": pickle.dumps(np.random.get_state()),
        "random": random.getstate(),
        "environment": dict(os.environ),
        "warnings": list(warnings.filters),
        "floats": np.geterr(),
    }


MAKERS = {
    "LSCP": lambda: LSCP([LOF(n_neighbors=8), KNN(), KNN(method="mean")], random_state=0),
    "COPOD": COPOD,
    "ECOD": ECOD,
    "OCSVM": OCSVM,
    "HBOS": HBOS,
    "HBOS-auto": lambda: HBOS(n_bins="auto"),
}
every_detector = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class TestEveryDetector:
    @every_detector
    def test_a_row_alone_scores_as_in_any_batch(self, make):
        X, new = make_X(), make_X(40, seed=1) * 1.5
        detector = make().fit(X)
        scores = detector.decision_function(new)
        alone = [detector.decision_function(row[None])[0] for row in new]
        order = np.random.default_rng(2).permutation(len(new))
        assert_array_equal(alone, scores)
        assert_array_equal(detector.decision_function(new[order]), scores[order])
        assert_array_equal(detector.decision_function(np.vstack([X, new]))[len(X) :], scores)
        assert_array_equal(detector.decision_function(new), scores)

    @every_detector
    def test_training_rows_score_as_at_the_fit(self, make):
        X = make_X()
        detector = make().fit(X)
        assert_array_equal(detector.decision_function(X), detector.decision_scores_)
        assert_array_equal(detector.predict(X), detector.labels_)

    @every_detector
    def test_fitting_again_forgets_the_earlier_fit(self, make):
        first, second, new = make_X(seed=1), make_X(90, 3, seed=2), make_X(20, 3, seed=3)
        detector = make().fit(first)
        detector.decision_function(first)
        detector.fit(second)
        fresh = make().fit(second)
        assert_array_equal(detector.decision_scores_, fresh.decision_scores_)
        assert_array_equal(detector.decision_function(new), fresh.decision_function(new))

    @every_detector
    def test_pickle_and_clone(self, make):
        X, new = make_X(), make_X(20, seed=1)
        detector = make().fit(X)
        scores = detector.decision_function(new)
        assert_array_equal(pickle.loads(pickle.dumps(detector)).decision_function(new), scores)
        copied = clone(detector)
        assert not hasattr(copied, "decision_scores_")
        assert_array_equal(copied.fit(X).decision_function(new), scores)

    @every_detector
    def test_fit_leaves_the_parameters_alone(self, make):
        detector = make()
        before = dict(vars(detector))
        detector.fit(make_X()).decision_function(make_X(10, seed=1))
        after = vars(detector)
        assert {name: after[name] for name in before} == before
        assert not any(
            vars(part).keys() & {"decision_scores_"} for part in before.get("detector_list", [])
        )
        new_names = after.keys() - before.keys() - {"O", "U_l", "U_r", "U_skew", "X_train"}
        assert all(name.endswith("_") or name.startswith("_") for name in new_names)

    @every_detector
    def test_the_state_of_the_process_stays(self, make):
        detector = make()
        if "random_state" in vars(detector):
            detector.random_state = None
        X = make_X()
        # PyOD's get_params would take this entry out.
        with warnings.catch_warnings():
            warnings.simplefilter("always", DeprecationWarning)
            before = global_state()
            detector.fit(X).decision_function(X)
            detector.get_params()
            assert global_state() == before

    @every_detector
    def test_what_cannot_be_scored_is_refused(self, make):
        with pytest.raises(NotFittedError):
            make().decision_function(make_X())
        detector = make().fit(make_X())
        with pytest.raises(ValueError, match=r"X has 4 features, .*expect\w+ 5"):
            detector.decision_function(make_X(10, 4))


def refuses_bins_of_rounding():
    """Whether NumPy has no bins narrower than rounding; that of 2.0 makes them."""
    try:
        np.histogram([1.0, np.nextafter(1.0, 2.0)], bins=3)
    except ValueError:
        return True
    return False


class TestLSCP:
    @pytest.mark.parametrize("name", SMALL)
    def test_scores_are_pyods_on_benchmark_data(self, name):
        X = benchmark(name)
        is_new = np.arange(len(X)) % 5 == 2
        assert_same_scores(*make_pair(X[~is_new]), X[is_new])

    def test_scores_are_pyods_for_other_detectors_and_many_bins(self):
        ours, oracle = make_pair(make_X(), mixed, n_bins=10)
        assert_same_scores(ours, oracle, make_X(60, seed=1))
        assert ours.n_bins == 10

    @pytest.mark.parametrize("seed", range(3))
    def test_scores_are_pyods_among_duplicated_rows(self, seed):
        X, new = make_duplicates(seed=seed), make_duplicates(60, seed=seed + 10)
        assert_same_scores(*make_pair(X, lambda: [KNN(), KNN(n_neighbors=9), LOF()]), new)

    @pytest.mark.parametrize(
        "parameters",
        [
            {"local_max_features": 0.8},
            {"local_max_features": 2.0},
            {"local_max_features": 0.5},
            {"local_region_size": 12},
            {"n_bins": 2},
            {"n_bins": 1},
        ],
    )
    def test_scores_are_pyods_with_other_parameters(self, parameters):
        ours, oracle = make_pair(make_X(100, 10), mixed, **parameters)
        assert_same_scores(ours, oracle, make_X(40, 10, seed=1))

    def test_attributes_set_by_the_caller_are_used(self):
        attributes = {
            "n_selected": 2,
            "local_region_iterations": 7,
            "local_region_threshold": 5,
            "local_min_features": 0.3,
        }
        X = make_X(100, 10)
        ours, oracle = make_pair(X, mixed, attributes)
        assert_same_scores(ours, oracle, make_X(40, 10, seed=1))
        assert len(ours.subspaces_) == 7
        assert np.abs(ours.decision_scores_ - make_pair(X, mixed)[0].decision_scores_).max() > 0.1

    def test_the_threshold_falls_where_few_rows_recur(self):
        X, new = make_X(120, 14), make_X(60, 14, seed=1)
        ours, oracle = make_pair(X, mixed, local_region_size=5)
        assert_same_scores(ours, oracle, new)
        oracle.random_state = np.random.RandomState(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sizes = [len(region) for region in oracle._get_local_region(new)]
        assert sizes.count(2) > 10  # two rows, whose correlation is 1 or -1 exactly

    @pytest.mark.parametrize("n_features", [1, 2, 3])
    def test_few_features(self, n_features):
        X, new = make_X(80, n_features), make_X(40, n_features, seed=1)
        ours, oracle = make_pair(X, lambda: [LOF(), KNN(), KNN(n_neighbors=9)], n_bins=10)
        assert_same_scores(ours, oracle, new)
        assert len(ours.subspaces_) == 20
        assert len(ours.trees_) == len({tuple(features) for features in ours.subspaces_})

    def test_ten_rows(self):
        X = make_X(10, 3)
        ours, oracle = make_pair(X, lambda: [LOF(n_neighbors=4), KNN()], local_region_size=10)
        assert_same_scores(ours, oracle, make_X(10, 3, seed=1))

    def test_constant_columns_and_constant_detectors(self):
        X = make_X(80, 5)
        X[:, 2] = 7.0
        ours, oracle = make_pair(X, lambda: [Column(2), Column(0), KNN(), Column(1)])
        assert_same_scores(ours, oracle, make_X(40, 5, seed=1))

    def test_correlations_equal_but_for_rounding_select_every_detector(self):
        x, new = make_X(60, 1), make_X(40, 3, seed=1)
        X = np.hstack([x, 3.0 * x + 0.1, 7.0 * x - 0.3])
        detectors = [Column(0), Column(1), Column(2)]
        scores = LSCP(detectors, n_bins=3, random_state=0).fit(X).decision_function(new)
        assert_allclose(scores, ((new - X.mean(axis=0)) / X.std(axis=0)).mean(axis=1))
        if refuses_bins_of_rounding():  # PyOD's histogram is NumPy's
            with pytest.raises(ValueError, match="Too many bins for data range"):
                fit_pyod(PyodLSCP(detectors, n_bins=3, random_state=0), X)

    def test_attributes_that_pyods_users_read(self):
        X = make_X()
        ours, oracle = make_pair(X)
        assert_array_equal(ours.train_scores_, oracle.train_scores_)
        assert_array_equal(ours.X_train_norm_, X)
        assert_array_equal(ours.training_pseudo_label_, oracle.training_pseudo_label_)
        assert_array_equal(ours.labels_, oracle.labels_)
        assert ours.n_features_ == 5

    def test_the_seed_may_be_a_generator_which_stays_as_it_is(self):
        X = make_X()
        scores = [
            detector.fit(X).decision_scores_
            for detector in (
                LSCP(lofs(), random_state=11, n_bins=4),
                LSCP(lofs(), random_state=np.random.RandomState(11), n_bins=4),
            )
        ]
        assert_array_equal(*scores)
        generator = np.random.RandomState(11)
        LSCP(lofs(), random_state=generator).fit(X)
        assert generator.randint(10**9) == np.random.RandomState(11).randint(10**9)
        unseeded = [LSCP(lofs()).fit(X).subspaces_ for _ in range(2)]
        assert any(not np.array_equal(*pair) for pair in zip(*unseeded, strict=True))

    def test_blocks_do_not_matter(self):
        detector = LSCP([KNN(), KNN(n_neighbors=9)], random_state=0).fit(make_X(100, 3))
        new = make_X(4_100, 3, seed=1)
        parts = [detector.decision_function(part) for part in np.array_split(new, 13)]
        assert_array_equal(detector.decision_function(new), np.concatenate(parts))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"detector_list": [LOF()]}, "detector_list needs 2 detectors or more, got 1"),
            ({"local_region_size": 151}, "local_region_size=151 must lie between 1 and the .*150"),
            ({"local_region_size": 0}, "local_region_size=0 must lie between"),
            ({"n_bins": 0}, "n_selected=1 must lie between 1 and the number of bins, 0"),
            ({"local_max_features": 0.55}, "=0.55 is too small for subspaces of 5 features"),
            ({"local_region_size": 1}, "row 0 has no local region: .* Raise local_region_size=1"),
        ],
    )
    def test_what_makes_no_region_is_refused(self, parameters, message):
        detector = LSCP(**{"detector_list": lofs(), "random_state": 0} | parameters)
        with pytest.raises(ValueError, match=message):
            detector.fit(make_X())

    def test_what_is_no_detector_is_refused(self):
        with pytest.raises(AttributeError, match="LOF is not a detector instance"):
            LSCP(["LOF", LOF()]).fit(make_X())


class TestNearestRows:
    @pytest.mark.parametrize(("n_rows", "n_features"), [(10, 1), (300, 4), (1500, 9)])
    def test_rows_come_in_scikit_learns_order(self, n_rows, n_features):
        X, queries = make_X(n_rows, n_features), make_X(70, n_features, seed=1)
        expected = KDTree(X).query(queries, k=min(30, n_rows))[1]
        found = nearest(copy_tree(KDTree(X)), queries, min(30, n_rows))[1]
        assert_array_equal(found, expected)

    @pytest.mark.parametrize("n_rows", [999, 1000])
    def test_few_rows_need_no_compiled_search(self, n_rows):
        tree = KDTree(make_X(n_rows, 4))
        assert isinstance(searchable(tree), KDTree) == (n_rows < 1000)
        queries = make_X(70, 4, seed=1)
        for found, expected in zip(
            find_nearest(searchable(tree), queries, 30), tree.query(queries, 30), strict=True
        ):
            assert_array_equal(found, expected)

    @pytest.mark.parametrize("n_values", [2, 3, 5])
    def test_of_rows_at_the_same_distance_scikit_learns_are_found(self, n_values):
        X = make_duplicates(1000, 6, n_values)
        expected = KDTree(X).query(X, k=30)[1]
        found = nearest(copy_tree(KDTree(X)), X, 30)[1]
        assert_array_equal(np.sort(found, axis=1), np.sort(expected, axis=1))

    def test_distances_that_overflow_give_scikit_learns_rows(self):
        X = make_X(100, 4) * 1e200
        expected = KDTree(X).query(X, k=30)[1]
        assert_array_equal(nearest(copy_tree(KDTree(X)), X, 30)[1], expected)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 12, 39])
def test_values_at_the_edges_are_counted_as_numpy_counts_them(n_bins):
    rng = np.random.default_rng(n_bins)
    for low, high in np.sort(rng.uniform(-1.0, 1.0, size=(50, 2))):
        edges = np.linspace(low, high, n_bins + 1)
        beside = [np.nextafter(edges[1:], -1.0), np.nextafter(edges[:-1], 1.0)]
        values = np.concatenate([edges, *beside])
        assert_array_equal(_bin_counts(values, edges), np.histogram(values, n_bins)[0])


def score_one_row(labels, training, scores, n_bins):
    """LSCP's score of a row whose region is all training rows."""
    ensemble = Ensemble(labels, training, np.zeros(2, dtype=np.int64), 1, n_bins, 1)
    return local_scores(ensemble, np.arange(len(labels))[None, None], np.array([scores]))[0]


def test_detectors_on_the_edge_of_two_full_bins_count_twice():
    labels = np.array([1.0, -1.0, 1.0, -1.0])
    orthogonal = np.array([1.0, 1.0, -1.0, -1.0])
    training = np.column_stack([labels, orthogonal, -labels, -labels])
    # The bins [-1, 0) and [0, 1] count two each, and 0 lies in both where they are closed.
    score = score_one_row(labels, training, [1.0, 10.0, 100.0, 1000.0], n_bins=2)
    assert score == (10.0 + 100.0 + 1000.0 + 1.0 + 10.0) / 5


def test_where_the_pseudo_labels_are_constant_every_detector_is_taken():
    labels = np.full(10, 0.1)  # whose mean is not 0.1, by rounding
    training = np.column_stack([labels, np.linspace(-3.0, 0.0, 10), np.linspace(0.0, -2.0, 10)])
    assert score_one_row(labels, training, [1.0, 10.0, 100.0], n_bins=2) == 37.0


TAILS = [(COPOD, PyodCOPOD), (ECOD, PyodECOD)]


def brute_force_tails(train, value):
    """Minus log of the training ECDF at `value` from the left and from the right."""
    n = len(train)
    counts = (train <= value).sum(), (train >= value).sum()
    return [-math.log(max(count, 1) / n) for count in counts]


@pytest.mark.parametrize(("ours", "pyods"), TAILS, ids=["COPOD", "ECOD"])
class TestTails:
    @pytest.mark.parametrize("name", SMALL)
    def test_training_scores_are_pyods_on_benchmark_data(self, ours, pyods, name):
        X = benchmark(name)
        self.check(ours, pyods, X)

    @pytest.mark.parametrize("n_features", [1, 2, 5])
    def test_training_scores_are_pyods_for_difficult_columns(self, ours, pyods, n_features):
        X = make_X(100, n_features)
        self.check(ours, pyods, X)
        if Version(scipy.__version__) < Version("1.18"):  # since then, SciPy rounds differently
            self.check(ours, pyods, np.vstack([X, -X]))  # rounding decides on the skewness
        self.check(ours, pyods, np.asfortranarray(X))
        self.check(ours, pyods, X.round().astype(int))
        self.check(ours, pyods, X.astype(np.float32))
        X[:, -1] = 1.0
        self.check(ours, pyods, X)
        X[::3, -1] = np.nextafter(1.0, 2.0)  # constant to SciPy, not to the ECDF
        self.check(ours, pyods, X)
        self.check(ours, pyods, make_duplicates(n_features=n_features))

    @staticmethod
    def check(ours, pyods, X):
        detector, oracle = ours().fit(X), fit_pyod(pyods(), X)
        for name in ("decision_scores_", "labels_", "O", "U_l", "U_r", "U_skew", "X_train"):
            assert_array_equal(getattr(detector, name), getattr(oracle, name))
        assert detector.threshold_ == oracle.threshold_
        assert_array_equal(detector.decision_function(X), detector.decision_scores_)

    def test_new_rows_are_ranked_among_the_training_rows(self, ours, pyods):
        X = np.round(make_X(60, 3), 1)
        X[:, 1] *= -1.0
        detector = ours().fit(X)
        new = np.vstack([np.round(make_X(40, 3, seed=1), 1), X.min(axis=0) - 1, X.max(axis=0) + 1])
        skewness = ((X - X.mean(axis=0)) ** 3).mean(axis=0)
        assert (skewness > 0).tolist() == [True, False, True]
        expected = np.zeros(len(new))
        for i, j in np.ndindex(new.shape):
            left, right = brute_force_tails(X[:, j], new[i, j])
            both = (left + right) / 2 if ours is COPOD else max(left, right)
            expected[i] += max(both, right if skewness[j] > 0 else left)
        assert_allclose(detector.decision_function(new), expected, rtol=1e-12)

    def test_scoring_leaves_what_explains_the_training_rows(self, ours, pyods):
        X = make_X()
        detector, oracle = ours().fit(X), fit_pyod(pyods(), X)
        detector.decision_function(make_X(9, seed=1))
        assert_array_equal(detector.O, oracle.O)

    def test_n_jobs_has_no_effect(self, ours, pyods):
        X = make_X(50, 1)
        detector = ours(n_jobs=2).fit(X)
        assert_array_equal(detector.decision_scores_, ours().fit(X).decision_scores_)
        assert detector.n_jobs == 2


class TestOCSVM:
    @pytest.mark.parametrize("parameters", [{}, {"kernel": "linear", "nu": 0.2}, {"gamma": 3.0}])
    def test_scores_are_pyods(self, parameters):
        X, new = make_X(), make_X(40, seed=1)
        ours, oracle = OCSVM(**parameters).fit(X), PyodOCSVM(**parameters).fit(X)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)
        assert_array_equal(ours.decision_function(new), oracle.decision_function(new))

    def test_weights_are_passed_on(self):
        X = make_X()
        weights = np.linspace(0.1, 1.0, len(X))
        ours, oracle = (model().fit(X, sample_weight=weights) for model in (OCSVM, PyodOCSVM))
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)


class TestHBOS:
    @pytest.mark.parametrize("n_bins", [10, 3, "auto"])
    @pytest.mark.parametrize("name", SMALL)
    def test_scores_are_pyods_on_benchmark_data(self, name, n_bins):
        X = benchmark(name)
        self.check(X[::2].copy(), X[1::2] * 1.2, n_bins=n_bins)

    @pytest.mark.parametrize(
        ("dtype", "n_bins"), [(np.float64, 10), (np.float64, "auto"), (np.float32, "auto")]
    )
    def test_scores_are_pyods_beyond_the_bins(self, dtype, n_bins):
        X = make_X(200, 3).astype(dtype)
        X[:, 1] = 2.5
        far = np.linspace(-9.0, 12.0, 400, dtype=dtype)
        self.check(X, np.column_stack([far, far, far]), n_bins=n_bins)
        self.check(X, np.column_stack([far, far, far]), n_bins=n_bins, alpha=0.3, tol=0.9)

    @staticmethod
    def check(X, new, **parameters):
        ours, oracle = HBOS(**parameters).fit(X), PyodHBOS(**parameters).fit(X)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)
        assert_array_equal(ours.decision_function(new), oracle.decision_function(new))
        for name in ("hist_", "bin_edges_"):
            for own, theirs in zip(getattr(ours, name), getattr(oracle, name), strict=True):
                assert_array_equal(own, theirs)

    def test_edges_have_the_precision_of_pyods(self):
        detector = HBOS().fit(make_X().astype(np.float32))  # PyOD would take 3 s to compile it
        assert detector.bin_edges_.dtype == np.float64

    def test_too_few_bins_are_refused(self):
        with pytest.raises(ValueError, match="2"):
            HBOS(n_bins=2).fit(make_X())


@pytest.mark.parametrize(("ours", "theirs"), TAILS)
def test_a_row_is_explained_as_by_pyod(ours, theirs, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    drawn = []
    for detector in (ours, theirs):
        plt.close("all")  # PyOD draws on the current figure, which may be another test's
        detector().fit(make_X()).explain_outlier(3)
        drawn.append([list(line.get_ydata()) for line in plt.gca().get_lines()])
    plt.close("all")
    assert drawn[0] == drawn[1] != []
