"""A fit whose time is over: the result of what is done or a typed error, and no process is left."""

from __future__ import annotations

import copy
import os
import pickle
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from sklearn.cluster import KMeans

from gammagmm import GammaGMM
from gammagmm._support.processes import Deadline
from gammagmm.cli.main import main
from gammagmm.cli.supervisor import MARKER
from gammagmm.datasets import make_contaminated
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.errors import DetectorWarning, FitTimeoutError, LabelsWarning, MixtureError
from gammagmm.posterior.storage import posterior_to_text

X = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
DETECTORS = ["KNN", "LOF", "HBOS"]
SETTINGS = {"scale": None, "n_components": 30, "n_runs": 4, "max_restarts": 0, "random_state": 0}


@pytest.fixture(scope="module")
def whole():
    return GammaGMM(DETECTORS, **SETTINGS).fit(X)


def children():
    """Processes that work for this one; what looks after semaphores stays until its end."""
    found = psutil.process_iter(["pid", "ppid", "status", "cmdline"])
    mine = [p.info for p in found if p.info["ppid"] == os.getpid() and p.info["status"] != "zombie"]
    return {p["pid"] for p in mine if "resource_tracker" not in " ".join(p["cmdline"] or [])}


class First:
    def fit(self, X):
        pass

    def decision_function(self, X):
        return X[:, 0]


class Sleeper(First):
    def __init__(self, begun=None):
        self.begun = begun

    def fit(self, X):
        if self.begun is not None:
            Path(self.begun).touch()
        time.sleep(600.0)


class Killer(First):
    def fit(self, X):
        os._exit(1)


@pytest.fixture
def end(monkeypatch):
    """Every deadline is an hour away until this is called: no clock decides."""
    deadline = Deadline(3600.0, time.monotonic() + 3600.0)
    monkeypatch.setattr(Deadline, "after", lambda timeout: deadline)
    return lambda *_: object.__setattr__(deadline, "moment", 0.0)


@pytest.fixture
def half_over(monkeypatch):
    """Half of every timeout has passed, and the rest takes an hour: no clock decides."""
    deadline = Deadline(7200.0, time.monotonic() + 3600.0)
    monkeypatch.setattr(Deadline, "after", lambda timeout: deadline)


@pytest.fixture
def over_after(end):
    """A `progress` that makes the deadline come when `n` detectors or runs `subject` are done."""

    def arrange(subject, n=1):
        done = []

        def hear(name, state, seconds):
            if name.startswith(subject) and state != "started":
                done.append(name)
                if len(done) == n:
                    end()

        return hear

    return arrange


def timed_out(estimator, X=X):
    with pytest.raises(FitTimeoutError) as caught:
        estimator.fit(X)
    return caught.value


def interrupted(estimator):
    """Number of runs that are in the result, as the note says."""
    (note,) = [note for note in estimator.notes_ if note.code == "mixture.timeout"]
    return note.fields["n_done"]


class TestFit:
    def test_timely_is_the_same_to_the_bit(self, whole):
        timed = GammaGMM(DETECTORS, **SETTINGS, timeout=600.0).fit(X)
        np.testing.assert_array_equal(timed.scores_, whole.scores_)
        assert posterior_to_text(timed.posterior_) == posterior_to_text(whole.posterior_)
        np.testing.assert_array_equal(timed.labels_, whole.labels_)

    @pytest.mark.long
    def test_while_detectors_run(self, over_after):
        before, heard = children(), over_after("first")
        detectors = {"first": First(), "slow": Sleeper()}
        estimator = GammaGMM(detectors, **SETTINGS, n_jobs=2, progress=heard)
        error = timed_out(estimator)
        so_far = error.so_far
        assert so_far.detector_names == list(so_far.detectors) == ["first"]
        assert [info.status for info in so_far.detector_info] == ["ok", "timeout"]
        assert so_far.waited_for == ["slow"]
        assert "'slow'" in error.what
        np.testing.assert_array_equal(so_far.scores, X[:, :1])
        assert so_far.runs == ()
        assert children() <= before

    # Two detectors are too few for a solution, which is no matter here.
    @pytest.mark.long
    @pytest.mark.filterwarnings("ignore:The model has no:gammagmm.errors.NoSolutionWarning")
    @pytest.mark.parametrize("detector_timeout", [None, 3600.0])
    @pytest.mark.usefixtures("half_over")
    def test_a_slow_detector_is_skipped_once_two_are_done(self, whole, detector_timeout):
        before = children()
        detectors = {"slow": Sleeper(), "KNN": "KNN", "LOF": "LOF"}
        parameters = SETTINGS | {"detector_timeout": detector_timeout, "n_jobs": 2}
        with pytest.warns(DetectorWarning, match="slow"):
            estimator = GammaGMM(detectors, **parameters).fit(X)
        info = {each.name: each.status for each in estimator.fit_.detector_info}
        assert info == {"slow": "timeout", "KNN": "ok", "LOF": "ok"}
        skipped = [note.subject for note in estimator.notes_ if note.code == "detectors.skipped"]
        assert skipped == ["slow"]
        np.testing.assert_array_equal(estimator.scores_, whole.scores_[:, :2])
        assert children() <= before

    # On a busy machine, another detector may be skipped, and two are too few for a solution.
    @pytest.mark.long
    @pytest.mark.filterwarnings("ignore:Detector:gammagmm.errors.DetectorWarning")
    @pytest.mark.filterwarnings("ignore:The model has no:gammagmm.errors.NoSolutionWarning")
    def test_a_slow_detector_leaves_time_for_the_mixtures(self):
        estimator = GammaGMM([*DETECTORS, Sleeper()], **SETTINGS, n_jobs=2, timeout=20.0)
        estimator.fit(X)
        assert estimator.fit_.detector_info[-1].status == "timeout"
        assert len(estimator.fit_.detector_names) >= 2
        assert estimator.fit_.detector_info[-1].seconds < 20.0
        assert len(estimator.fit_.runs) >= 1

    @pytest.mark.long
    def test_a_detector_at_work_is_ended(self, end, monkeypatch, tmp_path):
        before, begun = children(), tmp_path / "begun"

        def left(deadline, limit=None):
            # Asked before each wait, which is short here.
            end() if begun.exists() else None
            return 0.05

        monkeypatch.setattr(Deadline, "left", left)
        error = timed_out(GammaGMM({"slow": Sleeper(str(begun))}))
        assert begun.exists()
        assert error.so_far.scores.shape == (300, 0)
        assert children() <= before

    def test_the_fits_time_ends_before_a_detectors(self):
        before = children()
        detectors = {"one": Sleeper(), "two": Sleeper()}
        error = timed_out(GammaGMM(detectors, timeout=1.0, detector_timeout=600.0))
        assert [info.status for info in error.so_far.detector_info] == ["timeout", "timeout"]
        assert error.so_far.waited_for[0] == "one"
        assert children() <= before

    @pytest.mark.long
    def test_a_detector_that_kills_its_process(self):
        settings = FitSettings(n_jobs=2, deadline=Deadline.after(1e10))
        detectors = {"killer": Killer(), "first": First()}
        fitted = fit_detectors(detectors, X, np.random.default_rng(0), settings)
        assert [info.status for info in fitted.info] == ["failed", "ok"]
        assert "its process died" in fitted.info[0].reason
        np.testing.assert_array_equal(fitted.scores, X[:, :1])

    def test_starts_that_wait_for_their_turn(self, end, monkeypatch):
        n_fits, fit = [], KMeans.fit

        def fit_and_end(kmeans, Z):
            n_fits.append(1)
            end()
            return fit(kmeans, Z)

        monkeypatch.setattr(KMeans, "fit", fit_and_end)
        error = timed_out(GammaGMM("precomputed", **SETTINGS | {"n_runs": 20}, n_jobs=4))
        # Those that four threads begin at the same time.
        assert 1 <= len(n_fits) <= 4
        assert error.so_far.runs == ()

    def test_a_fit_that_is_done_late_is_done(self, whole, over_after):
        parameters = SETTINGS | {"n_runs": 2}
        heard = over_after("run", 2)
        estimator = GammaGMM("precomputed", **parameters, progress=heard).fit(whole.scores_)
        assert len(estimator.fit_.runs) == 2

    def test_while_runs_run(self, whole, over_after):
        heard = over_after("run", 2)
        estimator = GammaGMM(DETECTORS, **SETTINGS, progress=heard).fit(X)
        # The third settled while the second was made.
        assert len(estimator.fit_.runs) == interrupted(estimator) == 3
        np.testing.assert_array_equal(estimator.scores_, whole.scores_)
        first = sorted(whole.fit_.runs, key=lambda run: run.n_iter)[:3]
        assert {run.elbo for run in estimator.fit_.runs} == {run.elbo for run in first}
        means = [run.posterior.mean for run in first]
        assert estimator.posterior_.mean == pytest.approx(np.mean(means), abs=1e-12)

    def test_what_was_interrupted_can_be_saved(self, over_after, tmp_path):
        estimator = GammaGMM(DETECTORS, **SETTINGS, timeout=9.0, progress=over_after("run", 1))
        estimator.fit(X).save(tmp_path / "timed.fit")
        loaded = GammaGMM.load(tmp_path / "timed.fit")
        assert len(loaded.fit_.runs) == interrupted(loaded) < 4
        assert posterior_to_text(loaded.posterior_) == posterior_to_text(estimator.posterior_)

    def test_while_unsolved_runs_are_started_anew(self, over_after):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = GammaGMM("precomputed", **SETTINGS).fit(X).fit_.runs
        assert {run.status for run in runs} == {"unsolved"}
        heard, parameters = over_after("run", 4), SETTINGS | {"max_restarts": 50}
        error = timed_out(GammaGMM("precomputed", **parameters, progress=heard))
        assert [run.elbo for run in error.so_far.runs] == [run.elbo for run in runs]
        assert error.so_far.waited_for == []

    def test_rows_on_dask(self, whole, over_after):
        array = pytest.importorskip("dask.array")
        estimator = GammaGMM("precomputed", **SETTINGS, progress=over_after("run", 1))
        rows = array.from_array(whole.scores_, chunks=(70, 3))
        assert 1 <= interrupted(estimator.fit(rows)) < 4
        np.testing.assert_array_equal(estimator.scores_, whole.scores_)

    def test_going_on_from_the_scores(self, whole):
        error = timed_out(GammaGMM("precomputed", **SETTINGS, timeout=1e-9), whole.scores_)
        estimator = GammaGMM("precomputed", **SETTINGS).fit(error.so_far.scores)
        assert posterior_to_text(estimator.posterior_) == posterior_to_text(whole.posterior_)

    def test_the_error_travels(self):
        error = pickle.loads(pickle.dumps(timed_out(GammaGMM("precomputed", timeout=1e-9))))
        assert len(error.__notes__) == 1
        np.testing.assert_array_equal(error.so_far.scores, X)
        assert isinstance(error, TimeoutError)


class TestFailedFits:
    """They leave the estimator as it was: half of one fit and half of another would answer."""

    @pytest.fixture
    def fitted(self, whole):
        return GammaGMM("precomputed", **SETTINGS).fit(whole.scores_)

    def check_unchanged(self, estimator, before):
        assert vars(estimator).keys() == vars(before).keys()
        assert posterior_to_text(estimator.posterior_) == posterior_to_text(before.posterior_)
        new = before.scores_[::2] + 0.5
        np.testing.assert_array_equal(estimator.predict_proba(new), before.predict_proba(new))
        np.testing.assert_array_equal(estimator.scores_, before.scores_)

    @pytest.mark.parametrize("place", ["memory", "dask"])
    def test_out_of_time(self, fitted, place):
        fitted.set_params(timeout=1e-9)
        before = copy.deepcopy(fitted)
        rows = X[:, :2]
        if place == "dask":
            rows = pytest.importorskip("dask.array").from_array(rows)
        timed_out(fitted, rows)
        self.check_unchanged(fitted, before)

    def test_mixture_without_a_bound(self, fitted, monkeypatch):
        before = copy.deepcopy(fitted)

        def fail(*_):
            raise MixtureError("no bound")

        monkeypatch.setattr("gammagmm.estimator.space.fit_runs", fail)
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

        monkeypatch.setattr("gammagmm.estimator.fit_result._label_notes", warn)
        with pytest.raises(LabelsWarning):
            fitted.update([0, 1], [1, 0])
        self.check_unchanged(fitted, before)
        assert len(fitted.known_rows_) == 0


@pytest.mark.parametrize(("option", "exit_code"), [("--timeout", 5), ("--detector-timeout", 2)])
def test_command_line(option, exit_code, tmp_path, monkeypatch, capsys):
    pd.DataFrame(X).to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.setenv(MARKER, "1")
    arguments = ["estimate", str(tmp_path / "rows.csv"), option, "0.00001", "--out"]
    arguments += [str(tmp_path / "labels.csv"), "--detectors", "HBOS,COPOD"]
    monkeypatch.setattr("sys.argv", ["gammagmm", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{option.removeprefix('--').replace('-', '_')}=1e-05 s" in err
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]
