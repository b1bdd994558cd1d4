"""A fit whose time is over: a typed error that carries what was done, and nothing left behind."""

from __future__ import annotations

import copy
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import psutil
import pytest

from gammagmm import GammaGMM
from gammagmm.cli import main
from gammagmm.datasets import make_contaminated
from gammagmm.deadline import NEVER, Deadline, OutOfTimeError
from gammagmm.errors import FitTimeoutError, LabelsWarning, MixtureError
from gammagmm.saving import posterior_to_text
from gammagmm.supervise import MARKER
from gammagmm.workers import run_until

X = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
DETECTORS = ["KNN", "LOF", "HBOS"]
SETTINGS = {"n_components": 30, "n_runs": 4, "max_restarts": 0, "random_state": 0}


class Sleeper:
    def fit(self, X):
        time.sleep(600.0)

    def decision_function(self, X):
        return X[:, 0]


@pytest.fixture(scope="module")
def whole():
    return GammaGMM(DETECTORS, **SETTINGS).fit(X)


def children():
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.fixture
def over_after(monkeypatch):
    """Makes the next deadline come when `subject` is done: no clock decides."""

    def arrange(subject):
        deadline = Deadline(3600.0, time.monotonic() + 3600.0)
        monkeypatch.setattr(Deadline, "after", lambda timeout: deadline)

        def progress(name, state, seconds):
            if name == subject and state != "started":
                object.__setattr__(deadline, "moment", 0.0)

        return progress

    return arrange


def timed_out(estimator, X=X):
    with pytest.raises(FitTimeoutError) as caught:
        estimator.fit(X)
    return caught.value


class TestDeadline:
    def test_never(self):
        assert Deadline.after(None) is NEVER
        assert not NEVER.is_over
        assert NEVER.left() is None
        assert NEVER.left(3.0) == 3.0

    def test_to_come(self):
        deadline = Deadline.after(1000.0)
        deadline.check()
        assert 900.0 < deadline.left() <= 1000.0
        assert deadline.left(3.0) == 3.0

    def test_over(self):
        deadline = Deadline.after(1e-9)
        assert deadline.is_over
        assert deadline.left(3.0) == 0.0
        with pytest.raises(OutOfTimeError, match=r"timeout=1e-09 s is over"):
            deadline.check()


class TestRunUntil:
    @pytest.mark.parametrize("n_workers", [1, 2])
    def test_results(self, n_workers):
        found = run_until(Deadline.after(600.0), n_workers, np.multiply, range(5), np.ones(3))
        assert sorted(row[0] for row in found) == [0, 1, 2, 3, 4]

    def test_processes_are_ended_and_nothing_is_printed(self, capfd):
        before = children()
        for timeout in (0.001, 0.01, 0.1, 1.0):
            tasks = [600.0, 601.0, 602.0]
            assert list(run_until(Deadline.after(timeout), 2, sleep, tasks, None)) == []
        assert children() <= before
        assert capfd.readouterr() == ("", "")


def sleep(seconds, shared):
    time.sleep(seconds)


class TestFit:
    def test_timely_is_the_same_to_the_bit(self, whole):
        timed = GammaGMM(DETECTORS, **SETTINGS, timeout=600.0).fit(X)
        np.testing.assert_array_equal(timed.scores_, whole.scores_)
        assert posterior_to_text(timed.posterior_) == posterior_to_text(whole.posterior_)
        np.testing.assert_array_equal(timed.labels_, whole.labels_)

    def test_while_detectors_run(self, whole, over_after):
        before, heard = children(), over_after("LOF")
        detectors = {"LOF": "LOF", "slow": Sleeper()}
        estimator = GammaGMM(detectors, **SETTINGS, n_jobs=2, progress=heard)
        error = timed_out(estimator)
        assert str(error).startswith(
            "The fit was not done after timeout=3600.0 s: 1 of 2 detectors were, and 0 of 4 runs. "
        )
        so_far = error.so_far
        assert so_far.detector_names == list(so_far.detectors) == ["LOF"]
        assert [info.status for info in so_far.detector_info] == ["ok", "timeout"]
        assert "not done when timeout=3600.0 s was over" in so_far.detector_info[1].reason
        np.testing.assert_array_equal(so_far.scores, whole.scores_[:, [1]])
        assert (so_far.runs, so_far.posterior) == ((), None)
        assert children() <= before

    def test_a_detector_that_never_ends(self):
        error = timed_out(GammaGMM({"slow": Sleeper()}, timeout=0.5))
        assert error.so_far.scores.shape == (300, 0)

    def test_while_runs_run(self, whole, over_after):
        heard = over_after("run 2")
        error = timed_out(GammaGMM(DETECTORS, **SETTINGS, progress=heard))
        so_far = error.so_far
        assert "3 of 3 detectors were, and 2 of 4 runs (by those, " in str(error)
        np.testing.assert_array_equal(so_far.scores, whole.scores_)
        assert [run.elbo for run in so_far.runs] == [run.elbo for run in whole.runs_[:2]]
        means = [run.posterior.mean for run in whole.runs_[:2]]
        assert so_far.posterior.mean == pytest.approx(np.mean(means), abs=1e-12)

    def test_while_unsolved_runs_are_started_anew(self, over_after):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = GammaGMM("precomputed", **SETTINGS).fit(X).runs_
        assert {run.status for run in runs} == {"unsolved"}
        heard, parameters = over_after("run 4"), SETTINGS | {"max_restarts": 50}
        error = timed_out(GammaGMM("precomputed", **parameters, progress=heard))
        assert [run.elbo for run in error.so_far.runs] == [run.elbo for run in runs]
        assert error.so_far.posterior is None

    def test_rows_on_dask(self, whole, over_after):
        array = pytest.importorskip("dask.array")
        heard = over_after("run 1")
        estimator = GammaGMM("precomputed", **SETTINGS, progress=heard)
        so_far = timed_out(estimator, array.from_array(whole.scores_, chunks=(70, 3))).so_far
        assert 1 <= len(so_far.runs) < 4
        np.testing.assert_array_equal(so_far.scores.compute(), whole.scores_)

    def test_going_on_from_the_scores(self, whole):
        error = timed_out(GammaGMM("precomputed", **SETTINGS, timeout=1e-9), whole.scores_)
        estimator = GammaGMM("precomputed", **SETTINGS).fit(error.so_far.scores)
        assert posterior_to_text(estimator.posterior_) == posterior_to_text(whole.posterior_)

    def test_the_error_travels(self):
        error = pickle.loads(pickle.dumps(timed_out(GammaGMM("precomputed", timeout=1e-9))))
        assert "0 of 10 runs" in str(error)
        np.testing.assert_array_equal(error.so_far.scores, X)
        assert isinstance(error, TimeoutError)


class TestFailedFits:
    """They leave the estimator as it was: half of one fit and half of another would answer."""

    @pytest.fixture
    def fitted(self, whole):
        return copy.deepcopy(whole)

    def check_unchanged(self, estimator, before):
        assert vars(estimator).keys() == vars(before).keys()
        assert posterior_to_text(estimator.posterior_) == posterior_to_text(before.posterior_)
        np.testing.assert_array_equal(estimator.predict_proba(X), before.predict_proba(X))
        np.testing.assert_array_equal(estimator.scores_, before.scores_)

    def test_out_of_time(self, fitted):
        before = copy.deepcopy(fitted.set_params(timeout=1e-9))
        timed_out(fitted, X[:, :2])
        self.check_unchanged(fitted, before)

    def test_mixture_without_a_bound(self, fitted, monkeypatch):
        before = copy.deepcopy(fitted)

        def fail(*_):
            raise MixtureError("no bound")

        monkeypatch.setattr("gammagmm.estimator.fit_runs", fail)
        with pytest.raises(MixtureError):
            fitted.fit(X[:, :2])
        self.check_unchanged(fitted, before)

    def test_first(self):
        estimator = GammaGMM("precomputed", timeout=1e-9)
        before = set(vars(estimator))
        timed_out(estimator)
        assert set(vars(estimator)) == before

    def test_labels(self, fitted, monkeypatch):
        before = copy.deepcopy(fitted)

        def warn(*_):
            raise LabelsWarning("contradictory")

        monkeypatch.setattr(GammaGMM, "_note_labels", warn)
        with pytest.raises(LabelsWarning):
            fitted.update([0, 1], [1, 0])
        self.check_unchanged(fitted, before)
        assert len(fitted.known_rows_) == 0


def test_command_line(tmp_path, monkeypatch, capsys):
    pd.DataFrame(X).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.setenv(MARKER, "1")
    arguments = ["estimate", str(tmp_path / "rows.csv"), "--timeout", "0.001", "--labels"]
    monkeypatch.setattr("sys.argv", ["gammagmm", *arguments, str(tmp_path / "labels.csv")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 5
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0].startswith("gammagmm: The fit was not done after timeout=0.001 s: ")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
