"""Fits of detectors: PyOD's own scores, seeds, samples, workers that die, and new rows."""

from __future__ import annotations

import copy
import os
import pickle
import random
import subprocess
import sys
import textwrap
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
from sklearn.svm import OneClassSVM

from gammagmm._support.processes import run_alone
from gammagmm.detectors.fit import FitSettings, fit_detectors, score_rows
from gammagmm.detectors.presets import LEAST_FIT_ROWS, PRESETS, plan_rows, resolve_detectors
from gammagmm.errors import DetectorError, DetectorWarning, Note
from tests.support.detectors import Broken, fit, make_X


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
        assert notes == [Note.of("detectors.novelty", "LocalOutlierFactor")]
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


class TestUsersDetectors:
    def test_fit_and_decision_function_are_enough(self):
        X = make_X()
        fitted = fit([Distance(), "KNN"], X)
        centre = np.median(X, axis=0)
        np.testing.assert_array_equal(fitted.scores[:, 0], np.linalg.norm(X - centre, axis=1))
        new = make_X(3, seed=1)
        np.testing.assert_array_equal(
            score_rows(fitted.detectors, new)[:, 0], np.linalg.norm(new - centre, axis=1)
        )


class TestSmallData:
    def test_users_objects_are_lowered_as_copies(self):
        X = make_X(15, 2)
        knn, factor = KNN(n_neighbors=50), LocalOutlierFactor(n_neighbors=np.int64(30))
        made, notes = resolve_detectors([knn, factor], len(X))
        assert [note.message.split(" because")[0] for note in notes] == [
            "n_neighbors was lowered from 50 to 14",
            "n_neighbors was lowered from 30 to 14",
            "novelty was set to True so that the detector can score new rows",
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

    def test_users_detectors_may_see_fewer_rows(self):
        assert fit([KNN(), LOF()], make_X(6, 2)).scores.shape == (6, 2)


@pytest.mark.long
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

    def test_a_dead_worker_loses_only_its_detector(self):
        detectors = {"KNN": "KNN", "bad": Broken("die"), "IForest": "IForest", "LOF": "LOF"}
        match = r"bad was skipped: its process died, possibly out of memory\."
        fitted, events = self.check(detectors, {"bad": "failed"}, match, n_jobs=2)
        assert fitted.info[1].traceback
        assert [event[:2] for event in events if event[0] == "bad"][-1] == ("bad", "failed")
        assert events[0] == ("bad", "started", 0.0)  # of unknown cost, so it goes first

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_only_a_detector_that_cannot_be_pickled_is_left_out(self, when):
        detectors = {"KNN": "KNN", "bad": Locked(when), "IForest": "IForest"}
        self.check(detectors, {"bad": "failed"}, r"bad was skipped: .*pickle", n_jobs=2)

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
    def test_one_job_starts_the_slowest_first(self):
        events = []
        fit(["KNN", "IForest", "LOF"], make_X(), progress=lambda *event: events.append(event))
        assert [event[:2] for event in events] == [
            (name, state) for name in ("KNN", "LOF", "IForest") for state in ("started", "ok")
        ]
        assert all((seconds > 0) == (state == "ok") for _, state, seconds in events)

    @pytest.mark.usefixtures("in_workers")
    def test_two_jobs(self):
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


class TestSmallTables:
    """Where workers would take more time to start than they save."""

    def test_workers_start_for_a_detector_of_unknown_cost_alone(self):
        """How many worker processes a new Python process has after each fit."""
        code = """
            import psutil
            from pyod.models.sos import SOS
            from tests.support.detectors import fit, make_X
            for detectors in ("classic", ["HBOS", SOS()]):
                fit(detectors, make_X(), n_jobs=2)
                found = [" ".join(p.cmdline()) for p in psutil.Process().children()]
                print(sum("resource_tracker" not in words for words in found))
        """
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", textwrap.dedent(code)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.split() == ["0", "2"]

    def test_one_detector_starts_after_the_other(self):
        events = []
        fit(["KNN", "LOF"], make_X(), n_jobs=1, progress=lambda *event: events.append(event))
        assert [event[:2] for event in events] == [
            (name, state) for name in ("KNN", "LOF") for state in ("started", "ok")
        ]

    @pytest.mark.usefixtures("two_threads")
    def test_the_answer_is_that_of_workers(self, request):
        X = make_X(90, 3)
        here = fit("classic", X, seed=4, n_jobs=2)
        request.getfixturevalue("in_workers")
        np.testing.assert_array_equal(fit("classic", X, seed=4, n_jobs=2).scores, here.scores)

    def test_threads_that_the_user_has_chosen_are_used(self):
        events = []
        with parallel_config(backend="threading", n_jobs=2):
            fit(["KNN", "LOF"], make_X(), progress=lambda *event: events.append(event[:2]))
        assert events[:2] == [("KNN", "started"), ("LOF", "started")]

    def test_there_are_no_more_workers_than_detectors(self):
        before, seen = set(threading.enumerate()), set()
        with parallel_config(backend="threading"):
            fit(
                ["KNN", "LOF"],
                make_X(),
                n_jobs=40,
                progress=lambda *_: seen.update(threading.enumerate()),
            )
        assert len(seen - before) < 10  # the pool has a few threads of its own


class TestMaxFitRows:
    def sample(self, n_rows, size, n_detectors, seed=0):
        rng = np.random.default_rng(seed).spawn(1 + n_detectors)[0]
        return np.sort(rng.choice(n_rows, size, replace=False))

    def test_superlinear_detectors_see_a_sample(self):
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

    def test_by_cost_a_detector_sees_the_first_rows_of_the_sample(self):
        class KDE(Distance):  # a name of superlinear cost
            pass

        X = make_X(12_000, n_features=500)
        fitted = fit([KDE()], X, max_fit_rows="auto")
        (n_fit,) = plan_rows([KDE()], *X.shape, "auto").n_fit.values()
        assert LEAST_FIT_ROWS < n_fit < len(X)
        drawn = np.random.default_rng(0).spawn(2)[0].choice(12_000, 12_000, replace=False)
        assert [info.n_rows for info in fitted.info] == [n_fit]
        centre = np.median(X[np.sort(drawn[:n_fit])], axis=0)
        np.testing.assert_allclose(fitted.scores[:, 0], np.linalg.norm(X - centre, axis=1))

    def test_a_detector_that_is_left_out_changes_no_other(self):
        X = make_X(300, n_features=600)
        whole, fitted = fit("classic", X), fit("classic", X, max_fit_rows="auto")
        assert {info.name: info.n_rows for info in fitted.info if info.status == "skipped"} == {
            "LSCP": 0
        }
        is_kept = [name != "LSCP" for name in whole.detectors]
        assert list(fitted.detectors) == [name for name in whole.detectors if name != "LSCP"]
        np.testing.assert_array_equal(fitted.scores, whole.scores[:, is_kept])

    @pytest.mark.parametrize("limit", [None, 120, 500])
    def test_exact_up_to_the_limit(self, limit):
        X = make_X(120)
        np.testing.assert_array_equal(
            fit(["KNN"], X, max_fit_rows=limit).scores[:, 0], KNN().fit(X).decision_scores_
        )
        assert resolve_detectors(["KNN"], 120, plan_rows(["KNN"], 120, 4, limit))[1] == []

    @pytest.mark.usefixtures("in_workers", "two_threads")
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

    def test_scores_that_separate_the_sample_from_the_others_are_left_out(self):
        X = 100.0 * make_X(200)  # no row is near another, as the SVM's kernel sees it
        match = (
            r"OCSVM was skipped: ValueError: it scores the 90 rows of its training sample "
            r"differently from the other rows \(Kolmogorov-Smirnov distance 1\.00\): "
            r"scale the columns, or set "
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
            r"SOS was skipped: ValueError: its score for a row depends on the other rows in the "
            r"same call, so it cannot be fitted on a sample: set max_fit_rows=None"
        )
        with pytest.warns(DetectorWarning, match=match):
            fit(["KNN", SOS(), "LOF"], X, max_fit_rows=40)
        assert "SOS" in fit(["KNN", SOS()], X).detectors


@pytest.mark.long
class TestNetworks:
    """PyTorch's detectors: each in a process of its own, since their random state is global."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        pytest.importorskip("torch")
        return fit(["KNN", "AE", "VAE"], make_X(80, 3), seed=2, n_jobs=2)

    @pytest.mark.usefixtures("two_threads")
    def test_any_n_jobs(self, fitted):
        np.testing.assert_array_equal(
            fit(["KNN", "AE", "VAE"], make_X(80, 3), seed=2).scores, fitted.scores
        )

    def test_new_rows(self, fitted):
        new = make_X(6, 3, seed=3)
        together = score_rows(fitted.detectors, new)
        alone = np.concatenate([score_rows(fitted.detectors, row[None]) for row in new])
        np.testing.assert_allclose(alone, together, rtol=1e-9)

    def test_a_users_network_keeps_its_seed(self):
        pytest.importorskip("torch")
        X = make_X(80, 3)
        own = run_alone(make_auto_encoder)  # made elsewhere: making it sets the global seeds
        assert own.random_state == 42
        before = global_state()
        scores = fit({"net": own, "KNN": "KNN"}, X, seed=1).scores
        assert global_state() == before
        expected = run_alone(auto_encoder_scores, X)
        np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-4)

    def test_other_networks_run_in_processes_of_their_own(self):
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
        sizes = {"parameter": "batch_size", "before": 32, "after": 10, "n_rows": 10}
        assert [note for note in notes if note.subject in ("AE", "VAE")] == [
            Note.of("detectors.lowered", "AE", **sizes),
            Note.of("detectors.lowered", "VAE", **sizes),
        ]
        fitted = fit("paper", X)
        assert tuple(fitted.detectors) == PRESETS["paper"]
        assert np.isfinite(fitted.scores).all()


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

    def test_a_detector_that_cannot_score_is_named(self):
        fitted = fit([Distance(), "KNN"], make_X())
        with pytest.raises(DetectorError, match="Detector Distance cannot score these") as caught:
            score_rows(fitted.detectors, np.full((2, 4), 1e200))
        assert caught.value.what.endswith(
            "2 of 2 scores are not finite, the first of them in row 0"
        )
        assert caught.value.todo == "Check the rows, or fit without this detector."


class TestIsolation:
    def test_users_objects_stay_as_they_are(self):
        own = [KNN(), LSCP([IForest(), KNN()], n_bins=2), IsolationForest(), LocalOutlierFactor()]
        before = [{**vars(detector)} for detector in own]
        inner = [{**vars(detector)} for detector in own[1].detector_list]
        fit(own, make_X())
        assert [vars(detector) for detector in own] == before
        assert [vars(detector) for detector in own[1].detector_list] == inner

    def test_fitted_objects_are_fitted_again(self):
        X, other = make_X(), make_X(60, seed=9)
        expected = fit([COPOD(), KNN()], X).scores
        np.testing.assert_array_equal(
            fit([COPOD().fit(other), KNN().fit(other)], X).scores, expected
        )

    def test_the_given_detectors_stay_unfitted(self):
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

    @pytest.mark.usefixtures("in_workers", "two_threads")
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

    @pytest.mark.usefixtures("two_threads")
    def test_threads_and_memory_order(self):
        X = make_X(90, 3)
        expected = fit("fast", X, seed=4).scores
        with parallel_config(backend="threading", n_jobs=2):
            np.testing.assert_array_equal(
                fit("fast", np.asfortranarray(X), seed=4).scores, expected
            )

    @pytest.mark.usefixtures("two_threads")
    def test_data_that_joblib_maps_into_memory(self):
        X = make_X(50_000, 3)
        fitted = fit(["PCA", "ECOD"], X, n_jobs=2)
        assert X.nbytes > 2**20
        assert type(fitted.detectors["ECOD"].X_train) is np.ndarray
        np.testing.assert_array_equal(fitted.scores[:, 0], PCA().fit(X).decision_scores_)

    @pytest.mark.usefixtures("in_workers")
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_global_state_is_left_alone(self, n_jobs):
        X = make_X(60)
        before = global_state()
        own = [OCSVM(), OneClassSVM(), LSCP([IForest(), OCSVM()], n_bins=2), IsolationForest()]
        for detectors in ("classic", "fast", own):
            score_rows(fit(detectors, X, n_jobs=n_jobs).detectors, X[:5])
        assert global_state() == before
