"""The decision function of a one-class SVM: scikit-learn's, up to rounding."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyod.models.ocsvm import OCSVM as PyodOCSVM
from scipy.spatial.distance import cdist
from sklearn.svm import OneClassSVM

from gammagmm.detectors.pyod_subclasses import OCSVM
from gammagmm.detectors.support_vectors import copy_rbf, rbf_decisions

EPSILON = np.finfo(np.float64).eps


def make_X(n_rows, n_features=5, seed=0):
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    X[: n_rows // 15] += 4.0
    return X


def rounding(svm):
    """Bound on the rounding error of a sum of n terms: n * epsilon * the sum of their sizes.

    The kernel is 1 at most; libsvm and we round, hence 2.
    """
    weights = svm.dual_coef_
    return 2 * weights.size * EPSILON * np.abs(weights).sum()


@pytest.mark.parametrize("parameters", [{}, {"gamma": 3.0, "nu": 0.1}, {"gamma": 0.001}])
@pytest.mark.parametrize("n_features", [1, 10])
def test_decisions_are_scikit_learns(n_features, parameters):
    X, new = make_X(700, n_features), make_X(90, n_features, seed=1)
    new[-1] = 1e200  # the kernel is 0 there
    svm = OneClassSVM(**parameters).fit(X)
    decisions = rbf_decisions(copy_rbf(svm), new)
    assert_allclose(decisions, svm.decision_function(new), rtol=0.0, atol=rounding(svm))
    assert decisions[-1] == svm.intercept_


@pytest.mark.parametrize("n_support", [1, 15, 16, 17, 511, 513, 1200])
def test_any_number_of_support_vectors(n_support):
    support, new = make_X(n_support), make_X(200, seed=1)
    weights = np.random.default_rng(2).normal(size=(1, n_support))
    svm = SimpleNamespace(
        support_vectors_=support, dual_coef_=weights, _gamma=0.2, intercept_=np.array([-3.0])
    )
    expected = np.exp(-0.2 * cdist(new, support, "sqeuclidean")) @ weights[0] - 3.0
    limit = rounding(svm) + 10 * EPSILON * np.abs(expected).max()
    assert_allclose(rbf_decisions(copy_rbf(svm), new), expected, rtol=0.0, atol=limit)


def test_rows_far_from_the_origin_lose_no_digits():
    X, new = make_X(300) + 1e5, make_X(90, seed=1) + 1e5
    svm = OneClassSVM(gamma=0.2).fit(X)
    decisions = rbf_decisions(copy_rbf(svm), new)
    assert_allclose(decisions, svm.decision_function(new), rtol=0.0, atol=rounding(svm))


class TestOCSVM:
    def test_scores_are_pyods_up_to_rounding(self):
        X, new = make_X(2_200), make_X(300, seed=1)
        ours, oracle = OCSVM().fit(X), PyodOCSVM().fit(X)
        assert ours.rbf_ is not None
        limits = {"rtol": 0.0, "atol": rounding(oracle.detector_)}
        assert_allclose(ours.decision_scores_, oracle.decision_scores_, **limits)
        assert_allclose(ours.decision_function(new), oracle.decision_function(new), **limits)
        assert_allclose(ours.threshold_, oracle.threshold_, **limits)

    def test_a_row_alone_scores_as_in_any_batch(self):
        X, new = make_X(2_200), make_X(300, seed=1)
        detector = OCSVM().fit(X)
        scores = detector.decision_function(new)
        assert_array_equal([detector.decision_function(row[None])[0] for row in new], scores)
        assert_array_equal(detector.decision_function(X), detector.decision_scores_)

    @pytest.mark.parametrize(("n_rows", "kernel"), [(1_900, "rbf"), (2_200, "sigmoid")])
    def test_other_scores_are_libsvms(self, n_rows, kernel):
        X = make_X(n_rows)
        ours, oracle = OCSVM(kernel=kernel).fit(X), PyodOCSVM(kernel=kernel).fit(X)
        assert_array_equal(ours.decision_scores_, oracle.decision_scores_)

    def test_other_numbers_of_features_are_refused(self):
        detector = OCSVM().fit(make_X(2_200))
        with pytest.raises(ValueError, match="X has 4 features, expected 5"):
            detector.decision_function(make_X(10, 4))
