"""Detectors: PyOD's own scores, every input form, small data, and detectors that fail."""

from __future__ import annotations

import copy
import os
import pickle
import random
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from pyod.models.copod import COPOD
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.models.loda import LODA
from pyod.models.lof import LOF
from pyod.models.lscp import LSCP
from pyod.models.ocsvm import OCSVM
from pyod.models.pca import PCA
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC, OneClassSVM

from gammagmm.detectors import fit_detectors, score_rows
from gammagmm.errors import DetectorError, DetectorWarning, Note
from gammagmm.presets import NAMES, PRESETS, resolve_detectors
from gammagmm.scores import keep_usable


def make_X(n_rows=120, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[: n_rows // 20] += 6.0
    return X


def fit(detectors, X, seed=0, n_jobs=None):
    made, _ = resolve_detectors(detectors, *X.shape)
    return keep_usable(fit_detectors(made, X, np.random.default_rng(seed), n_jobs=n_jobs))


def child_seed(position, n_detectors, seed=0):
    """The seed that the detector at `position` draws from its own child generator."""
    child = np.random.default_rng(seed).spawn(n_detectors)[position]
    return int(child.integers(2**31 - 1))


def global_state():
    torch = pytest.importorskip("torch")
    return {
        "numpy": pickle.dumps(np.random.get_state()),
        "random": random.getstate(),
        "torch": torch.random.get_rng_state().tolist(),
        "environment": dict(os.environ),
        "warnings": list(warnings.filters),
    }


class Broken(BaseEstimator):
    """PyOD-like detector that does what it is told when it is fitted."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y=None):
        n = len(X)
        if self.how == "interrupt":
            raise KeyboardInterrupt
        if self.how == "raise":
            raise RuntimeError("the disk is full")
        self.decision_scores_ = {
            "nan": np.where(np.arange(n) < 3, np.nan, 1.0 * np.arange(n)),
            "shape": np.arange(2.0 * n).reshape(n, 2),
            "short": np.arange(n - 1.0),
            "text": np.full(n, "high"),
            "constant": np.full(n, 0.1),
            "nearly": 0.3 + 1e-17 * np.arange(n),
            "writes": X[:, 0].copy(),
        }[self.how]
        if self.how == "writes":
            X[:] = 0.0
        return self

    def decision_function(self, X):
        return X[:, 0]


class NoScores(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def decision_function(self, X):
        return X[:, 0]


class OnlyDecision(OutlierMixin, BaseEstimator):
    """Outlier detector with scikit-learn's sign and no score_samples."""

    def fit(self, X, y=None):
        return self

    def decision_function(self, X):
        return -np.abs(X).sum(axis=1)


class TestEqualToPyOD:
    @pytest.mark.parametrize("model", [KNN, LOF, OCSVM, HBOS, COPOD, ECOD, PCA])
    def test_deterministic(self, model):
        X = make_X()
        ours = fit([model.__name__], X)
        theirs = model().fit(X)
        np.testing.assert_array_equal(ours.scores[:, 0], theirs.decision_scores_)
        new = make_X(7, seed=1)
        np.testing.assert_array_equal(
            score_rows(ours.detectors, new)[:, 0], theirs.decision_function(new)
        )

    @pytest.mark.parametrize("model", [IForest, LODA])
    def test_seeded(self, model):
        X = make_X()
        ours = fit(["KNN", model.__name__], X, seed=5)
        theirs = model(random_state=child_seed(1, 2, seed=5)).fit(X)
        np.testing.assert_array_equal(ours.scores[:, 1], theirs.decision_scores_)
        assert np.ptp(fit(["KNN", model.__name__], X, seed=6).scores[:, 1] - ours.scores[:, 1]) > 0

    @pytest.mark.parametrize("n_features", [1, 4])
    def test_lscp(self, n_features):
        X = make_X(90, n_features)
        theirs = LSCP([LOF(n_neighbors=k) for k in (10, 20, 30, 40)], random_state=child_seed(0, 1))
        with pytest.warns(UserWarning, match="Local m|reducing n_bins to n_clf"):
            theirs.fit(X)
        np.testing.assert_array_equal(fit(["LSCP"], X).scores[:, 0], theirs.decision_scores_)


class TestScikitLearn:
    def test_local_outlier_factor(self):
        X = make_X()
        own = LocalOutlierFactor(n_neighbors=15)
        made, notes = resolve_detectors([own], *X.shape)
        message = "novelty set to True, so that it can score new rows"
        assert notes == [Note("detectors", "LocalOutlierFactor", message)]
        fitted = fit_detectors(made, X, np.random.default_rng(0))
        expected = -LocalOutlierFactor(n_neighbors=15).fit(X).negative_outlier_factor_
        np.testing.assert_array_equal(fitted.scores[:, 0], expected)
        np.testing.assert_array_equal(
            fitted.scores[:, 0], LOF(n_neighbors=15).fit(X).decision_scores_
        )
        far, near = score_rows(fitted.detectors, np.array([[9.0] * 4, [0.0] * 4]))[:, 0]
        assert far > near
        assert own.novelty is False

    @pytest.mark.parametrize(
        "detector",
        [IsolationForest(random_state=3), OneClassSVM(), EllipticEnvelope(random_state=0)],
    )
    def test_sign_is_turned(self, detector):
        X = make_X()
        fitted = fit([detector], X)
        expected = -copy.deepcopy(detector).fit(X).score_samples(X)
        np.testing.assert_allclose(fitted.scores[:, 0], expected, rtol=1e-12)
        far, near = score_rows(fitted.detectors, np.array([[9.0] * 4, [0.0] * 4]))[:, 0]
        assert far > near

    def test_decision_function_stands_in_for_score_samples(self):
        X = make_X()
        np.testing.assert_array_equal(fit([OnlyDecision()], X).scores[:, 0], np.abs(X).sum(axis=1))


class TestInputForms:
    @pytest.mark.parametrize("preset", ["classic", "fast"])
    def test_presets(self, preset):
        made, notes = resolve_detectors(preset, 500, 3)
        assert tuple(made) == PRESETS[preset]
        assert [type(detector).__name__ for detector in made.values()] == list(PRESETS[preset])
        assert notes == []

    def test_names_of_a_list(self):
        made, _ = resolve_detectors(
            ["KNN", KNN(n_neighbors=7), "KNN", IsolationForest(), "LOF"], 100, 2
        )
        assert list(made) == ["KNN", "KNN_2", "KNN_3", "IsolationForest", "LOF"]
        assert made["KNN_2"].n_neighbors == 7

    def test_dict_keeps_its_names(self):
        made, _ = resolve_detectors({"near": KNN(method="mean"), "tree": "IForest"}, 100, 2)
        assert list(made) == ["near", "tree"]
        assert made["near"].method == "mean"
        assert isinstance(made["tree"], IForest)

    @pytest.mark.parametrize("form", [tuple, list])
    def test_sequences(self, form):
        assert list(resolve_detectors(form(["HBOS", "LODA"]), 100, 2)[0]) == ["HBOS", "LODA"]

    def test_every_name_is_known(self):
        assert list(resolve_detectors(list(NAMES), 100, 2)[0]) == list(NAMES)

    @pytest.mark.parametrize("name", ["knn", "KNN", "paper", "precomputed", ""])
    def test_unknown_preset(self, name):
        match = (
            rf"detectors='{name}' is not a preset; presets: classic, fast. "
            r"Or pass a list; known names: KNN, IForest, .*PCA"
        )
        with pytest.raises(ValueError, match=match):
            resolve_detectors(name, 100, 2)

    @pytest.mark.parametrize("detectors", [["KNN", "Knn"], {"a": "Knn"}])
    def test_unknown_name(self, detectors):
        with pytest.raises(ValueError, match=r"detectors: unknown name 'Knn'; known: KNN, .*PCA"):
            resolve_detectors(detectors, 100, 2)

    @pytest.mark.parametrize("detectors", [[], {}, ()])
    def test_empty(self, detectors):
        with pytest.raises(ValueError, match=r"detectors must hold at least one detector, got"):
            resolve_detectors(detectors, 100, 2)

    @pytest.mark.parametrize("detectors", [KNN(), None, 3, {"KNN", "LOF"}])
    def test_neither_preset_nor_list_nor_dict(self, detectors):
        match = r"(?s)detectors must be a preset, or a list or dict of detectors, got .*\. Put a"
        with pytest.raises(TypeError, match=match):
            resolve_detectors(detectors, 100, 2)

    @pytest.mark.parametrize("thing", [5, None, KNN, object(), ["KNN"], np.zeros(3)])
    def test_not_a_detector(self, thing):
        match = r"detectors must be names, or objects that are PyOD .* scikit-learn .*got .* for"
        with pytest.raises(TypeError, match=match):
            resolve_detectors(["KNN", thing], 100, 2)

    def test_keys_are_names(self):
        with pytest.raises(TypeError, match=r"detectors must have names as keys, got the key 1"):
            resolve_detectors({1: "KNN"}, 100, 2)


class TestSmallData:
    def test_sizes_are_lowered_with_a_note_each(self):
        made, notes = resolve_detectors("classic", 12, 2)
        reason = ": the data have 12 rows"
        assert notes == [
            Note("detectors", "LOF", f"n_neighbors lowered from 20 to 11{reason}"),
            Note("detectors", "LSCP", f"local_region_size lowered from 30 to 12{reason}"),
            Note("detectors", "LSCP", f"n_neighbors lowered from 20 to 10{reason}"),
            Note("detectors", "LSCP", f"n_neighbors lowered from 30 to 10{reason}"),
            Note("detectors", "LSCP", f"n_neighbors lowered from 40 to 10{reason}"),
        ]
        assert made["LOF"].n_neighbors == 11
        assert [lof.n_neighbors for lof in made["LSCP"].detector_list] == [10] * 4

    def test_users_objects_are_lowered_as_copies(self):
        X = make_X(15, 2)
        knn, factor = KNN(n_neighbors=50), LocalOutlierFactor(n_neighbors=np.int64(30))
        made, notes = resolve_detectors([knn, factor], *X.shape)
        assert [note.message.split(":")[0] for note in notes] == [
            "n_neighbors lowered from 50 to 14",
            "n_neighbors lowered from 30 to 14",
            "novelty set to True, so that it can score new rows",
        ]
        assert (knn.n_neighbors, factor.n_neighbors) == (50, 30)
        fitted = fit_detectors(made, X, np.random.default_rng(0))
        np.testing.assert_array_equal(
            fitted.scores[:, 0], KNN(n_neighbors=14).fit(X).decision_scores_
        )

    @pytest.mark.parametrize("preset", ["classic", "fast"])
    @pytest.mark.parametrize(
        ("n_rows", "n_features"), [(10, 1), (10, 5), (12, 2), (25, 1), (25, 3), (50, 4)]
    )
    def test_presets_work_without_a_warning(self, n_rows, n_features, preset):
        X = make_X(n_rows, n_features, seed=n_rows)
        fitted = fit(preset, X)
        assert tuple(fitted.detectors) == PRESETS[preset]
        assert fitted.scores.shape == (n_rows, len(PRESETS[preset]))
        assert np.isfinite(fitted.scores).all()
        assert {info.n_rows for info in fitted.info} == {n_rows}
        assert np.isfinite(score_rows(fitted.detectors, X[:2])).all()

    @pytest.mark.parametrize("n_rows", [10, 25])
    def test_duplicates(self, n_rows):
        X = make_X(n_rows, 3)
        X[n_rows // 2 :] = X[: n_rows - n_rows // 2]
        fitted = fit([name for name in PRESETS["classic"] if name != "LSCP"], X)
        assert [info.status for info in fitted.info] == ["ok"] * 7

    @pytest.mark.parametrize("detectors", ["classic", ["KNN"], {"a": "KNN", "b": LOF()}])
    def test_too_few_rows(self, detectors):
        with pytest.raises(ValueError, match=r"X has 9 rows; the detectors need at least 10"):
            resolve_detectors(detectors, 9, 2)

    def test_users_own_may_see_fewer_rows(self):
        assert fit([KNN(), LOF()], make_X(6, 2)).scores.shape == (6, 2)


class TestLeftOut:
    @pytest.mark.parametrize(
        ("detector", "status", "reason"),
        [
            (Broken("raise"), "failed", "RuntimeError: the disk is full"),
            (Broken("nan"), "failed", "3 of 120 scores are not finite"),
            (
                Broken("shape"),
                "failed",
                r"scores of shape \(120, 2\), expected \(120,\)",
            ),
            (Broken("short"), "failed", r"scores of shape \(119,\), expected \(120,\)"),
            (Broken("text"), "failed", "ValueError: could not convert string to float"),
            (Broken("constant"), "constant", "the same score for every row"),
            (Broken("nearly"), "constant", "the same score for every row"),
            (NoScores(), "failed", "AttributeError: .*decision_scores_"),
            (SVC(), "failed", "TypeError: .*'y'"),
            (LSCP([KNN()]), "failed", "ValueError: .*less than 2 detectors"),
        ],
    )
    def test_one_is_left_out(self, detector, status, reason):
        X = make_X()
        with pytest.warns(DetectorWarning, match=f"bad was left out: .*{reason}") as record:
            fitted = fit({"KNN": "KNN", "bad": detector, "HBOS": "HBOS"}, X)
        assert len(record) == 1
        assert list(fitted.detectors) == ["KNN", "HBOS"]
        np.testing.assert_array_equal(fitted.scores, fit(["KNN", "HBOS"], X).scores)
        assert [info.status for info in fitted.info] == ["ok", status, "ok"]
        assert [info.name for info in fitted.info] == ["KNN", "bad", "HBOS"]
        assert fitted.info[0].reason == ""
        assert all(info.seconds > 0 for info in fitted.info)

    def test_traceback_is_kept(self):
        with pytest.warns(DetectorWarning, match="the disk is full"):
            fitted = fit(["KNN", "LOF", Broken("raise")], make_X())
        assert 'raise RuntimeError("the disk is full")' in fitted.info[2].traceback
        assert fitted.info[0].traceback == ""

    def test_one_warning_each_from_workers_too(self):
        with pytest.warns(DetectorWarning) as record:
            fit(["KNN", Broken("raise"), "OCSVM", Broken("constant")], make_X(), n_jobs=2)
        assert [str(warning.message) for warning in record] == [
            "Detector Broken was left out: RuntimeError: the disk is full.",
            "Detector Broken_2 was left out: the same score for every row.",
        ]

    def test_error_lists_every_reason(self):
        match = (
            r"1 of 4 detectors gave usable scores, 2 needed. Left out: "
            r"Broken: RuntimeError: the disk is full; Broken_2: 3 of 120 scores are not finite; "
            r"Broken_3: the same score for every row."
        )
        detectors = [Broken("raise"), Broken("nan"), "KNN", Broken("constant")]
        with pytest.raises(DetectorError, match=match) as caught:
            fit(detectors, make_X())
        assert any("Traceback" in note for note in caught.value.__notes__)

    def test_the_only_one_fails(self):
        match = r"0 of 1 detectors gave usable scores, 1 needed. Left out: Broken: RuntimeError"
        with pytest.raises(DetectorError, match=match):
            fit([Broken("raise")], make_X())

    def test_identical_rows(self):
        with pytest.raises(DetectorError, match=r"0 of 2 .*KNN: the same.*OCSVM: the same score"):
            fit(["KNN", "OCSVM"], np.ones((20, 2)))

    def test_interrupts_pass(self):
        with pytest.raises(KeyboardInterrupt):
            fit(["KNN", Broken("interrupt")], make_X())

    def test_dividing_by_zero_is_a_reason_and_no_other_warning(self):
        X = make_X()
        X[:, 1] = X[:, 0]  # a component without variance, by whose share PyOD's PCA divides
        X[:, 2] = 0.0
        with pytest.warns(DetectorWarning, match="PCA was left out: 120 of 120 .*not finite") as w:
            fit(["KNN", "HBOS", "PCA"], X)
        assert len(w) == 1


class TestIsolation:
    def test_users_objects_stay_as_they_are(self):
        own = [KNN(), LSCP([IForest(), KNN()], n_bins=2), IsolationForest(), LocalOutlierFactor()]
        before = [{**vars(detector)} for detector in own]
        inner = [{**vars(detector)} for detector in own[1].detector_list]
        fit(own, make_X())
        assert [vars(detector) for detector in own] == before
        assert [vars(detector) for detector in own[1].detector_list] == inner

    def test_fitted_objects_are_fitted_anew(self):
        X, other = make_X(), make_X(60, seed=9)
        expected = fit([COPOD(), KNN()], X).scores
        np.testing.assert_array_equal(
            fit([COPOD().fit(other), KNN().fit(other)], X).scores, expected
        )

    def test_fit_leaves_what_it_was_given_unfitted(self):
        X = make_X()
        made, _ = resolve_detectors(["COPOD", "IForest"], *X.shape)
        first = fit_detectors(made, X, np.random.default_rng(0))
        again = fit_detectors(made, X, np.random.default_rng(0))
        np.testing.assert_array_equal(first.scores, again.scores)
        assert not hasattr(made["COPOD"], "X_train")
        assert made["IForest"].random_state is None

    def test_a_detector_that_writes_into_the_data(self):
        X = make_X()
        kept = X.copy()
        fitted = fit([Broken("writes"), "KNN", "HBOS"], X)
        np.testing.assert_array_equal(X, kept)
        np.testing.assert_array_equal(fitted.scores[:, 1], KNN().fit(X).decision_scores_)

    def test_later_changes_of_the_data_do_not_reach_the_detectors(self):
        X = make_X()
        fitted = fit(["COPOD", "LOF", "KNN"], X)
        before = score_rows(fitted.detectors, make_X(5, seed=1))
        X[:] = 0.0
        np.testing.assert_array_equal(score_rows(fitted.detectors, make_X(5, seed=1)), before)

    def test_fitted_detectors_pickle(self):
        X = make_X(40, 1)
        fitted = fit(["LSCP", "IForest", "LODA"], X)
        copied = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(
            score_rows(copied.detectors, X[:9]), score_rows(fitted.detectors, X[:9])
        )


class TestSeeds:
    def test_given_seeds_are_kept(self):
        X = make_X()
        scores = fit([IForest(random_state=7), "KNN"], X, seed=1).scores
        np.testing.assert_array_equal(scores[:, 0], IForest(random_state=7).fit(X).decision_scores_)
        np.testing.assert_array_equal(scores, fit([IForest(random_state=7), "KNN"], X, 2).scores)

    def test_a_random_state_is_not_advanced(self):
        X, state = make_X(), np.random.RandomState(3)
        scores = fit([IForest(random_state=state)], X).scores
        np.testing.assert_array_equal(scores, fit([IForest(random_state=state)], X).scores)
        expected = IForest(random_state=np.random.RandomState(3)).fit(X).decision_scores_
        np.testing.assert_array_equal(scores[:, 0], expected)

    @pytest.mark.parametrize(
        "detector",
        [IForest(), IsolationForest(), LSCP([IForest(), LODA()], n_bins=2)],
        ids=["pyod", "sklearn", "nested"],
    )
    def test_unset_seeds_come_from_the_generator(self, detector):
        X = make_X()
        scores = fit([detector, "KNN"], X, seed=1).scores
        np.testing.assert_array_equal(scores, fit([detector, "KNN"], X, seed=1).scores)
        assert np.ptp(scores[:, 0] - fit([detector, "KNN"], X, seed=2).scores[:, 0]) > 0

    @pytest.mark.parametrize("preset", ["classic", "fast"])
    def test_any_n_jobs(self, preset):
        X = make_X(90, 3)
        expected = fit(preset, X, seed=4, n_jobs=1)
        parallel = fit(preset, X, seed=4, n_jobs=2)
        np.testing.assert_array_equal(parallel.scores, expected.scores)
        new = make_X(11, 3, seed=8)
        np.testing.assert_array_equal(
            score_rows(parallel.detectors, new), score_rows(expected.detectors, new)
        )

    def test_threads_and_memory_order(self):
        X = make_X(90, 3)
        expected = fit("fast", X, seed=4).scores
        with parallel_config(backend="threading", n_jobs=2):
            np.testing.assert_array_equal(
                fit("fast", np.asfortranarray(X), seed=4).scores, expected
            )

    def test_data_that_joblib_maps_into_memory(self):
        X = make_X(50_000, 3)
        fitted = fit(["PCA", "ECOD"], X, n_jobs=2)
        assert X.nbytes > 2**20
        assert type(fitted.detectors["ECOD"].X_train) is np.ndarray
        np.testing.assert_array_equal(fitted.scores[:, 0], PCA().fit(X).decision_scores_)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_global_state_is_left_alone(self, n_jobs):
        X = make_X(60)
        before = global_state()
        own = [OCSVM(), OneClassSVM(), LSCP([IForest(), OCSVM()], n_bins=2), IsolationForest()]
        for detectors in ("classic", "fast", own):
            score_rows(fit(detectors, X, n_jobs=n_jobs).detectors, X[:5])
        assert global_state() == before
