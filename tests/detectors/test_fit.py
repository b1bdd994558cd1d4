"""Detectors: PyOD's own scores, every input form, small data, and detectors that fail."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import threading
import time
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
from pyod.models.sos import SOS
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC, OneClassSVM

from gammagmm._support.processes import run_alone
from gammagmm.detectors import presets
from gammagmm.detectors.fit import FitSettings, fit_detectors, score_rows
from gammagmm.detectors.presets import NAMES, PRESETS, is_superlinear, resolve_detectors
from gammagmm.detectors.usable import keep_usable
from gammagmm.errors import DetectorError, DetectorWarning, MissingExtraError, Note


def make_X(n_rows=120, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[: n_rows // 20] += 6.0
    return X


def fit(detectors, X, seed=0, n_jobs=None, **settings):
    made, _ = resolve_detectors(detectors, len(X), settings.get("max_fit_rows"))
    settings = FitSettings(n_jobs=n_jobs, **settings)
    return keep_usable(fit_detectors(made, X, np.random.default_rng(seed), settings))


def child_seed(position, n_detectors, seed=0):
    """The seed that the detector at `position` draws from its own child generator."""
    _, *children = np.random.default_rng(seed).spawn(1 + n_detectors)
    child = children[position]
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
        if self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "sleep":
            time.sleep(60)
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


class SlowOnce(BaseEstimator):
    """PyOD-like detector that waits, the first time, for someone to kill its process."""

    def __init__(self, path):
        self.path = path

    def fit(self, X, y=None):
        if not os.path.exists(self.path):
            with open(self.path, "w") as file:
                file.write(str(os.getpid()))
            time.sleep(60)
        self.decision_scores_ = X[:, 0]
        return self

    def decision_function(self, X):
        return X[:, 0]


class Locked:
    """Detector that cannot be sent to another process, or not back."""

    def __init__(self, when):
        self.lock = threading.Lock() if when == "before" else None

    def __deepcopy__(self, memo):
        return self

    def fit(self, X):
        self.lock = threading.Lock()

    def decision_function(self, X):
        return X[:, 0]


class Distance:
    """The least that a detector needs."""

    def fit(self, X):
        self.centre = np.median(X, axis=0)

    def decision_function(self, X):
        return np.linalg.norm(X - self.centre, axis=1)


def make_auto_encoder():
    from pyod.models.auto_encoder import AutoEncoder

    return AutoEncoder(verbose=0, epoch_num=2)


def auto_encoder_scores(X):
    return make_auto_encoder().fit(X).decision_scores_


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
        if model not in (COPOD, ECOD):  # PyOD's rank new rows together with their batch
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
        made, notes = resolve_detectors([own], len(X))
        message = "novelty set to True, so that it can score new rows"
        assert notes == [Note("detectors", "LocalOutlierFactor", message)]
        fitted = fit_detectors(made, X, np.random.default_rng(0), FitSettings())
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
        made, notes = resolve_detectors(preset, 500)
        assert tuple(made) == PRESETS[preset]
        assert [type(detector).__name__ for detector in made.values()] == list(PRESETS[preset])
        assert notes == []

    def test_names_of_a_list(self):
        made, _ = resolve_detectors(
            ["KNN", KNN(n_neighbors=7), "KNN", IsolationForest(), "LOF"], 100
        )
        assert list(made) == ["KNN", "KNN_2", "KNN_3", "IsolationForest", "LOF"]
        assert made["KNN_2"].n_neighbors == 7

    def test_dict_keeps_its_names(self):
        made, _ = resolve_detectors({"near": KNN(method="mean"), "tree": "IForest"}, 100)
        assert list(made) == ["near", "tree"]
        assert made["near"].method == "mean"
        assert isinstance(made["tree"], IForest)

    @pytest.mark.parametrize("form", [tuple, list])
    def test_sequences(self, form):
        assert list(resolve_detectors(form(["HBOS", "LODA"]), 100)[0]) == ["HBOS", "LODA"]

    def test_every_name_is_known(self):
        assert list(resolve_detectors(list(NAMES), 100)[0]) == list(NAMES)

    @pytest.mark.parametrize("name", ["knn", "KNN", "classics", "precomputed", ""])
    def test_unknown_preset(self, name):
        match = (
            rf"detectors='{name}' is not a preset; presets: classic, paper, fast. "
            r"Or pass a list; known names: KNN, IForest, .*PCA"
        )
        with pytest.raises(ValueError, match=match):
            resolve_detectors(name, 100)

    @pytest.mark.parametrize("detectors", [["KNN", "Knn"], {"a": "Knn"}])
    def test_unknown_name(self, detectors):
        with pytest.raises(ValueError, match=r"detectors: unknown name 'Knn'; known: KNN, .*PCA"):
            resolve_detectors(detectors, 100)

    @pytest.mark.parametrize("detectors", [[], {}, ()])
    def test_empty(self, detectors):
        with pytest.raises(ValueError, match=r"detectors must hold at least one detector, got"):
            resolve_detectors(detectors, 100)

    @pytest.mark.parametrize("detectors", [KNN(), None, 3, {"KNN", "LOF"}])
    def test_neither_preset_nor_list_nor_dict(self, detectors):
        match = r"(?s)detectors must be a preset, or a list or dict of detectors, got .*\. Put a"
        with pytest.raises(TypeError, match=match):
            resolve_detectors(detectors, 100)

    @pytest.mark.parametrize("thing", [5, None, KNN, object(), ["KNN"], np.zeros(3)])
    def test_not_a_detector(self, thing):
        match = r"detectors must be names, or objects that are PyOD .* scikit-learn .*got .* for"
        with pytest.raises(TypeError, match=match):
            resolve_detectors(["KNN", thing], 100)

    def test_fit_and_decision_function_are_enough(self):
        X = make_X()
        fitted = fit([Distance(), "KNN"], X)
        centre = np.median(X, axis=0)
        np.testing.assert_array_equal(fitted.scores[:, 0], np.linalg.norm(X - centre, axis=1))
        new = make_X(3, seed=1)
        np.testing.assert_array_equal(
            score_rows(fitted.detectors, new)[:, 0], np.linalg.norm(new - centre, axis=1)
        )

    def test_keys_are_names(self):
        with pytest.raises(TypeError, match=r"detectors must have names as keys, got the key 1"):
            resolve_detectors({1: "KNN"}, 100)


class TestSmallData:
    def test_sizes_are_lowered_with_a_note_each(self):
        made, notes = resolve_detectors("classic", 12)
        reason = ": it is fitted on 12 rows"
        assert notes == [
            Note("detectors", "LOF", f"n_neighbors lowered from 20 to 11{reason}"),
            Note("detectors", "LSCP", f"local_region_size lowered from 30 to 12{reason}"),
            Note("detectors", "LSCP", f"n_neighbors lowered from 20 to 10{reason}"),
            Note("detectors", "LSCP", f"n_neighbors lowered from 30 to 10{reason}"),
            Note("detectors", "LSCP", f"n_neighbors lowered from 40 to 10{reason}"),
        ]
        assert made["LOF"].n_neighbors == 11
        assert [lof.n_neighbors for lof in made["LSCP"].detector_list] == [10] * 4

    def test_bins(self):
        made, notes = resolve_detectors([HBOS(n_bins=50), LODA(n_bins=50), HBOS()], 12)
        told = "n_bins lowered from 50 to 12: it is fitted on 12 rows"
        assert notes == [Note("detectors", "HBOS", told), Note("detectors", "LODA", told)]
        assert [detector.n_bins for detector in made.values()] == [12, 12, 10]

    def test_users_objects_are_lowered_as_copies(self):
        X = make_X(15, 2)
        knn, factor = KNN(n_neighbors=50), LocalOutlierFactor(n_neighbors=np.int64(30))
        made, notes = resolve_detectors([knn, factor], len(X))
        assert [note.message.split(":")[0] for note in notes] == [
            "n_neighbors lowered from 50 to 14",
            "n_neighbors lowered from 30 to 14",
            "novelty set to True, so that it can score new rows",
        ]
        assert (knn.n_neighbors, factor.n_neighbors) == (50, 30)
        fitted = fit_detectors(made, X, np.random.default_rng(0), FitSettings())
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
            resolve_detectors(detectors, 9)

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
            (SVC(), "failed", "TypeError: .*'y'"),
            (LSCP([KNN()]), "failed", "ValueError: detector_list needs 2 detectors"),
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


class TestDeathsAndTimeouts:
    """The others answer as if the lost detector had not been asked for."""

    def check(self, detectors, left_out, match, **settings):
        X, events = make_X(), []
        with pytest.warns(DetectorWarning, match=match) as record:
            fitted = fit(detectors, X, progress=lambda *event: events.append(event), **settings)
        assert len(record) == len(left_out)
        assert {info.name: info.status for info in fitted.info if info.status != "ok"} == left_out
        names = [name for name in detectors if name not in left_out]
        assert list(fitted.detectors) == names
        # The same positions, hence the same seeds, with a harmless detector in the gap.
        whole = fit({n: "PCA" if n in left_out else detectors[n] for n in detectors}, X)
        expected = whole.scores[:, [name not in left_out for name in detectors]]
        np.testing.assert_array_equal(fitted.scores, expected)
        return fitted, events

    def test_a_dead_worker_costs_its_detector_alone(self):
        detectors = {"KNN": "KNN", "bad": Broken("die"), "IForest": "IForest", "LOF": "LOF"}
        match = r"bad was left out: its process died, perhaps for want of memory\."
        fitted, events = self.check(detectors, {"bad": "failed"}, match, n_jobs=2)
        assert fitted.info[1].traceback
        assert [event[:2] for event in events if event[0] == "bad"][-1] == ("bad", "failed")
        assert events[0] == ("bad", "started", 0.0)  # of unknown cost, so it goes first

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_what_cannot_be_sent_costs_itself_alone(self, when):
        detectors = {"KNN": "KNN", "bad": Locked(when), "IForest": "IForest"}
        self.check(detectors, {"bad": "failed"}, r"bad was left out: .*pickle", n_jobs=2)

    def test_time_limit(self):
        detectors = {"KNN": "KNN", "bad": Broken("sleep"), "worse": Broken("die"), "LOF": "LOF"}
        match = r"took longer than detector_timeout=10\.0 s|process died"
        left_out = {"bad": "timeout", "worse": "failed"}
        fitted, _ = self.check(detectors, left_out, match, n_jobs=2, timeout=10.0)
        assert 10.0 <= fitted.info[1].seconds < 55.0

    def test_killed_from_outside(self, killed_pid):
        X = make_X()
        fitted = fit(["KNN", SlowOnce(str(killed_pid)), "IForest"], X, n_jobs=2)
        assert list(fitted.detectors) == ["KNN", "SlowOnce", "IForest"]
        np.testing.assert_array_equal(fitted.scores[:, 1], X[:, 0])


class TestProgress:
    def test_one_after_another_the_longest_first(self):
        events = []
        fit(["KNN", "IForest", "LOF"], make_X(), progress=lambda *event: events.append(event))
        assert [event[:2] for event in events] == [
            (name, state) for name in ("KNN", "LOF", "IForest") for state in ("started", "ok")
        ]
        assert all((seconds > 0) == (state == "ok") for _, state, seconds in events)

    def test_side_by_side(self):
        events = []
        names = ["PCA", "LODA", "IForest", "LOF"]
        fit(names, make_X(), n_jobs=2, progress=lambda *event: events.append(event))
        assert [name for name, _, _ in events[:2]] == ["LOF", "IForest"]
        for name in names:
            assert [state for subject, state, _ in events if subject == name] == ["started", "ok"]

    def test_a_callback_may_stop_the_fit(self):
        def stop(name, state, seconds):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit(["KNN", "LOF"], make_X(), progress=stop)


class TestMaxFitRows:
    def sample(self, n_rows, size, n_detectors, seed=0):
        rng = np.random.default_rng(seed).spawn(1 + n_detectors)[0]
        return np.sort(rng.choice(n_rows, size, replace=False))

    def test_superlinear_ones_see_a_sample(self):
        X = make_X(200)
        fitted = fit(["KNN", "LOF", "PCA"], X, max_fit_rows=80)
        rows = self.sample(200, 80, 3)
        others = np.setdiff1d(np.arange(200), rows)
        for column, model in enumerate((KNN(), LOF())):
            model.fit(X[rows])
            np.testing.assert_array_equal(fitted.scores[rows, column], model.decision_scores_)
            np.testing.assert_array_equal(
                fitted.scores[others, column], model.decision_function(X[others])
            )
        np.testing.assert_array_equal(fitted.scores[:, 2], PCA().fit(X).decision_scores_)
        assert [info.n_rows for info in fitted.info] == [80, 80, 200]

    def test_notes(self):
        made, notes = resolve_detectors(["KNN", "LOF", "HBOS"], 200, 15)
        told = "fitted on 15 random rows of 200; the others are scored as new rows"
        assert notes == [
            Note("detectors", "KNN", told),
            Note("detectors", "LOF", told),
            Note("detectors", "LOF", "n_neighbors lowered from 20 to 14: it is fitted on 15 rows"),
        ]
        assert made["LOF"].n_neighbors == 14

    @pytest.mark.parametrize("limit", [None, 120, 500])
    def test_exact_up_to_the_limit(self, limit):
        X = make_X(120)
        np.testing.assert_array_equal(
            fit(["KNN"], X, max_fit_rows=limit).scores[:, 0], KNN().fit(X).decision_scores_
        )
        assert resolve_detectors(["KNN"], 120, limit)[1] == []

    def test_any_n_jobs(self):
        X = make_X(150)
        expected = fit("classic", X, max_fit_rows=60)
        parallel = fit("classic", X, max_fit_rows=60, n_jobs=2)
        np.testing.assert_array_equal(parallel.scores, expected.scores)

    def test_scikit_learns_local_outlier_factor(self):
        X = make_X(150)
        fitted = fit([LocalOutlierFactor()], X, max_fit_rows=60)
        rows = self.sample(150, 60, 1)
        others = np.setdiff1d(np.arange(150), rows)
        factor = LocalOutlierFactor(novelty=True).fit(X[rows])
        np.testing.assert_array_equal(fitted.scores[others, 0], -factor.score_samples(X[others]))
        np.testing.assert_array_equal(fitted.scores[rows, 0], -factor.negative_outlier_factor_)

    def test_scores_that_tell_the_subset_from_the_others_are_left_out(self):
        X = 100.0 * make_X(200)  # no row is near another, as the SVM's kernel sees it
        match = (
            r"OCSVM was left out: ValueError: its scores tell the 90 rows it was fitted on from "
            r"the others \(Kolmogorov-Smirnov distance 1\.00\): scale the columns, or set max_fit"
        )
        with pytest.warns(DetectorWarning, match=match):
            fitted = fit(["KNN", "OCSVM", "LOF"], X, max_fit_rows=90)
        assert list(fitted.detectors) == ["KNN", "LOF"]
        assert list(fit(["KNN", "OCSVM"], X / 100.0, max_fit_rows=90).detectors) == ["KNN", "OCSVM"]

    @pytest.mark.parametrize("n_new", [1, 2, 5])
    def test_few_new_rows_are_no_reason_to_refuse(self, n_new):
        X = make_X(200)
        fitted = fit(["KNN", "LOF", "OCSVM", "LSCP"], X, max_fit_rows=200 - n_new)
        assert [info.status for info in fitted.info] == ["ok"] * 4

    def test_detectors_that_score_batches_see_all_rows_or_none(self):
        X = make_X(60)
        match = (
            r"SOS was left out: ValueError: it scores rows by their batch, not by a fit: set max"
        )
        with pytest.warns(DetectorWarning, match=match):
            fit(["KNN", SOS(), "LOF"], X, max_fit_rows=40)
        assert "SOS" in fit(["KNN", SOS()], X).detectors

    def test_nested_and_derived_ones_count(self):
        class Nearest(KNN):
            pass

        for detector in (LSCP([IForest(), PCA()]), Nearest(), OneClassSVM()):
            assert is_superlinear(detector)
        for detector in (IForest(), IsolationForest(), HBOS(), EllipticEnvelope()):
            assert not is_superlinear(detector)


class TestNetworks:
    """PyTorch's detectors: each in a process of its own, since their random state is global."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        pytest.importorskip("torch")
        return fit(["KNN", "AE", "VAE"], make_X(80, 3), seed=2, n_jobs=2)

    def test_any_n_jobs(self, fitted):
        np.testing.assert_array_equal(
            fit(["KNN", "AE", "VAE"], make_X(80, 3), seed=2).scores, fitted.scores
        )

    def test_new_rows(self, fitted):
        new = make_X(6, 3, seed=3)
        together = score_rows(fitted.detectors, new)
        alone = np.concatenate([score_rows(fitted.detectors, row[None]) for row in new])
        np.testing.assert_allclose(alone, together, rtol=1e-9)

    @pytest.mark.long
    def test_a_network_of_the_users_keeps_its_seed(self):
        pytest.importorskip("torch")
        X = make_X(80, 3)
        own = run_alone(make_auto_encoder)  # made elsewhere: making it sets the global seeds
        assert own.random_state == 42
        before = global_state()
        scores = fit({"net": own, "KNN": "KNN"}, X, seed=1).scores
        assert global_state() == before
        expected = run_alone(auto_encoder_scores, X)
        np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-4)

    def test_networks_of_other_kinds_are_fitted_and_score_elsewhere(self):
        pytest.importorskip("torch")
        from tests.support.torch_detector import Network

        before = global_state()
        fitted = fit([Network(), "KNN"], make_X(40, 3))
        first = score_rows(fitted.detectors, make_X(5, 3, seed=1))
        assert global_state() == before
        assert first.shape == (5, 2)

    def test_small_data(self):
        pytest.importorskip("torch")
        X = make_X(10, 2)
        _, notes = resolve_detectors("paper", 10)
        told = "batch_size lowered from 32 to 10: it is fitted on 10 rows"
        assert [note for note in notes if note.subject in ("AE", "VAE")] == [
            Note("detectors", "AE", told),
            Note("detectors", "VAE", told),
        ]
        fitted = fit("paper", X)
        assert tuple(fitted.detectors) == PRESETS["paper"]
        assert np.isfinite(fitted.scores).all()

    @pytest.mark.parametrize("missing", [("torch",), ("tqdm",), ("torch", "tqdm")])
    def test_missing_extra(self, missing, monkeypatch):
        find = presets.find_spec
        monkeypatch.setattr(presets, "find_spec", lambda n: None if n in missing else find(n))
        match = rf"The detector AE needs {' and '.join(missing)}, .*pip install 'gammagmm\[deep\]'"
        with pytest.raises(MissingExtraError, match=match):
            resolve_detectors("paper", 100)
        resolve_detectors("classic", 100)


class TestNewRows:
    """The score of a new row depends on that row and the fitted model alone."""

    @pytest.mark.parametrize("preset", ["classic", "fast"])
    def test_batches_do_not_matter(self, preset):
        fitted = fit(preset, make_X(90, 3), seed=4)
        new = make_X(12, 3, seed=8)
        together = score_rows(fitted.detectors, new)
        alone = np.concatenate([score_rows(fitted.detectors, row[None]) for row in new])
        np.testing.assert_allclose(alone, together, rtol=1e-12)
        np.testing.assert_array_equal(score_rows(fitted.detectors, new), together)


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
        made, _ = resolve_detectors(["COPOD", "IForest"], len(X))
        first = fit_detectors(made, X, np.random.default_rng(0), FitSettings())
        again = fit_detectors(made, X, np.random.default_rng(0), FitSettings())
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
