"""KNN, LOF and LSCP with our search: the scores of PyOD, which searches by scikit-learn."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyod.models.knn import KNN as PyodKNN
from pyod.models.lof import LOF as PyodLOF
from sklearn.neighbors import KDTree, NearestNeighbors

from gammagmm.detectors.neighbours import Search, search_quickly
from gammagmm.detectors.pyod_subclasses import KNN, LOF, LSCP

N_MANY = 5_000  # rows from which a single detector uses our search


def make_X(n_rows, n_features=6, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    X[: n_rows // 20] += 3.0
    return X


def make_grid(n_rows, n_features=4, n_values=4, seed=0):
    """Rows with many duplicates, and many others at the same distance."""
    rng = np.random.default_rng(seed)
    return rng.integers(n_values, size=(n_rows, n_features)).astype(float)


def lofs(cls, sizes=(10, 20, 30, 40), **parameters):
    return [cls(n_neighbors=k, **parameters) for k in sizes]


def is_quick(model):
    return isinstance(model._tree, Search)


class TestKNN:
    @pytest.mark.parametrize("method", ["largest", "mean", "median"])
    @pytest.mark.parametrize("make", [make_X, make_grid])
    def test_scores_are_pyods(self, make, method):
        X, new = make(N_MANY), make(300, seed=1)
        ours, oracle = (cls(method=method, n_neighbors=7).fit(X) for cls in (KNN, PyodKNN))
        assert is_quick(ours.neigh_)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)
        assert_array_equal(ours.decision_function(new), oracle.decision_function(new))
        assert_array_equal(ours.predict(new), oracle.predict(new))
        assert ours.threshold_ == oracle.threshold_

    def test_what_pyods_users_read_stays(self):
        X = make_X(N_MANY)
        detector = KNN().fit(X)
        assert isinstance(detector.tree_, KDTree)
        theirs = NearestNeighbors(radius=0.7).fit(X).radius_neighbors(X[:3])[1]
        for own, other in zip(detector.neigh_.radius_neighbors(X[:3], 0.7)[1], theirs, strict=True):
            assert_array_equal(own, other)


class TestLOF:
    @pytest.mark.parametrize("n_neighbors", [1, 20])
    def test_scores_are_pyods(self, n_neighbors):
        X, new = make_X(N_MANY), make_X(300, seed=1)
        ours, oracle = (cls(n_neighbors=n_neighbors).fit(X) for cls in (LOF, PyodLOF))
        assert is_quick(ours.detector_)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)
        assert_array_equal(ours.decision_function(new), oracle.decision_function(new))
        assert ours.threshold_ == oracle.threshold_

    def test_rows_at_the_same_distance_differ_by_rounding_at_most(self):
        # The order of neighbours at the same distance, in which means are added up, may differ.
        X, new = make_grid(N_MANY), make_grid(300, seed=1)
        ours, oracle = (cls(n_neighbors=35).fit(X) for cls in (LOF, PyodLOF))
        assert_allclose(ours.decision_scores_, oracle.decision_scores_, rtol=1e-13)
        assert_allclose(ours.decision_function(new), oracle.decision_function(new), rtol=1e-13)

    @pytest.mark.parametrize(
        ("n_rows", "n_features", "parameters"),
        [
            (N_MANY - 1, 3, {}),
            (N_MANY, 16, {}),
            (N_MANY, 3, {"metric": "manhattan"}),
            (N_MANY, 3, {"algorithm": "ball_tree"}),
        ],
    )
    def test_scikit_learns_search_is_kept(self, n_rows, n_features, parameters):
        X, new = make_X(n_rows, n_features), make_X(50, n_features, seed=1)
        ours, oracle = (cls(**parameters).fit(X) for cls in (LOF, PyodLOF))
        assert not is_quick(ours.detector_)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)
        assert_array_equal(ours.decision_function(new), oracle.decision_function(new))


@pytest.mark.parametrize(("make", "cls"), [(make_X, KNN), (make_X, LOF)])
def test_other_numbers_of_features_are_refused(make, cls):
    detector = cls().fit(make(N_MANY))
    with pytest.raises(ValueError, match=r"X has 5 features, .* expecting 6"):
        detector.decision_function(make(10, 5))


@pytest.mark.parametrize("make", [KNN, LOF])
def test_a_row_alone_scores_as_in_any_batch(make):
    X, new = make_X(N_MANY), make_X(40, seed=1)
    detector = pickle.loads(pickle.dumps(make().fit(X)))
    alone = [detector.decision_function(row[None])[0] for row in new]
    assert_array_equal(detector.decision_function(new), alone)


class TestSharedSearch:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_lscp_scores_as_with_pyods_detectors(self, dtype, order):
        X, new = (
            np.array(rows, dtype, order=order) for rows in (make_X(1100), make_X(200, seed=1))
        )
        ours, oracle = (LSCP(lofs(cls), n_bins=4, random_state=0).fit(X) for cls in (LOF, PyodLOF))
        assert oracle.search_ is None
        for detector in ours.detectors_:
            assert detector.detector_._tree is ours.search_
        assert_array_equal(ours.train_scores_, oracle.train_scores_)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)
        assert_array_equal(ours.decision_function(new), oracle.decision_function(new))

    def test_the_neighbours_are_those_of_a_search_for_each_size(self):
        # Duplicates: most rows have several others at the same distance as the last neighbour.
        X, new = make_grid(1200), make_grid(150, seed=1)
        search = Search(n_most=40)
        models = [NearestNeighbors(n_neighbors=k).fit(X) for k in (10, 20, 30, 40)]
        expected = [(model.kneighbors(), model.kneighbors(new)) for model in models]
        for model in models:
            search_quickly(model, search)
        for rows, place in ((X, 0), (new, 1)):
            with search.shared(rows):
                for model, both in zip(models, expected, strict=True):
                    found = model.kneighbors(None if rows is X else rows)
                    self.check(found, both[place])

    @staticmethod
    def check(found, expected):
        assert_array_equal(found[0], expected[0])
        # A row with more than k duplicates has k of them, and which ones depends on the version of
        # scikit-learn: it leaves out the first if the row itself is not among them.
        is_certain = expected[0][:, -1] > 0.0
        assert is_certain.mean() > 0.9
        assert_array_equal(*(np.sort(rows[is_certain], axis=1) for rows in (found[1], expected[1])))

    def test_each_thread_finds_the_neighbours_of_its_own_rows(self):
        fitted = LSCP(lofs(LOF), n_bins=4, random_state=0).fit(make_X(1100))
        batches = [make_X(300, seed=seed) for seed in range(1, 9)]
        alone = [fitted.decision_function(batch) for batch in batches]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(fitted.decision_function, 3 * batches))
        for found, expected in zip(together, 3 * alone, strict=True):
            assert_array_equal(found, expected)

    def test_other_rows_inside_the_context_are_searched_for(self):
        X, new = make_X(500), make_X(500, seed=1)
        model = NearestNeighbors(n_neighbors=5).fit(X)
        expected = model.kneighbors(new)
        search = Search(n_most=9)
        search_quickly(model, search)
        with search.shared(X):
            model.kneighbors()
            assert_array_equal(model.kneighbors(new)[1], expected[1])

    def test_nearly_all_rows_are_neighbours(self):
        X = make_X(50)
        ours, oracle = (
            LSCP(lofs(cls, (5, 24, 30)), n_bins=3, random_state=0).fit(X) for cls in (LOF, PyodLOF)
        )
        assert_array_equal(ours.train_scores_, oracle.train_scores_)

    @pytest.mark.parametrize(
        "detectors",
        [
            [LOF(n_neighbors=5), KNN()],
            [LOF(n_neighbors=5), LOF(n_neighbors=9, leaf_size=4)],
        ],
    )
    def test_different_detectors_do_not_share(self, detectors):
        assert LSCP(detectors, random_state=0).fit(make_X(300)).search_ is None

    def test_the_neighbours_are_forgotten(self):
        detector = LSCP(lofs(LOF), n_bins=4, random_state=0).fit(make_X(2_000))
        size = len(pickle.dumps(detector))
        detector.decision_function(make_X(2_000, seed=1))
        assert len(pickle.dumps(detector)) == size
