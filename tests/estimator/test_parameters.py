"""The estimator's parameters: what is refused, and what the others mean."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.detectors.presets import AUTO_FIT_ROWS
from gammagmm.errors import DetectorWarning, GammaGMMWarning, Note
from gammagmm.estimator.parameters import (
    AUTO_MIXTURE_ROWS,
    check_parameters,
)
from gammagmm.posterior.runs import AUTO_TOL
from tests.support.random_tables import grouped_scores

X = np.random.default_rng(0).normal(size=(50, 3))
BAD = {
    "p0": (0, None),
    "p_high": (1.5,),
    "high_gamma": (0.25,),
    "max_gamma": (0.7,),
    "n_components": (0,),
    "n_runs": (0, 2.5),
    "n_draws": (1,),
    "max_restarts": (-1,),
    "max_iter": (0,),
    "tol": (0.0, "low"),
    "max_fit_rows": ("all", 9, 50.5),
    "max_mixture_rows": ("all", 9),
    "detector_timeout": (0, "1 s"),
    "timeout": (-1.0, "1 s"),
    "progress": (1,),
    "mixture_prior": (1.0, "identity"),
    "n_jobs": ("abc", 1.5, 0),
    "scale": ("minmax", False, ["robust"]),
    "random_state": ("abc",),
    "detectors": (["KNN", "Knn"], "modern", [], 3),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_a_bad_parameter_is_refused_by_name(name, value):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        GammaGMM(**{name: value}).fit(X)


def test_a_wrong_name_of_a_detector_is_told_with_the_names():
    with pytest.raises(ValueError, match=r"'Knn'.*KNN, "):
        GammaGMM(["KNN", "Knn"]).fit(X)


def test_meaning_of_max_fit_rows():
    meant = {
        given: check_parameters(GammaGMM(max_fit_rows=given).get_params())
        for given in ("auto", None)
    }
    number = check_parameters(GammaGMM(max_fit_rows=np.int64(50)).get_params())
    n_fit = {name: plan.rows(100_000, 10).n_fit for name, plan in (meant | {50: number}).items()}
    assert AUTO_FIT_ROWS == 20_000
    assert (n_fit["auto"]["KNN"], n_fit[None]["KNN"], n_fit[50]["KNN"]) == (16_025, 100_000, 50)
    assert ["LSCP" in each for each in n_fit.values()] == [False, True, True]


def test_meaning_of_tol_and_max_mixture_rows():
    default = check_parameters(GammaGMM().get_params()).run_options
    assert (default["tol"], default["accelerated"]) == (AUTO_TOL, True)
    assert default["max_rows"] == AUTO_MIXTURE_ROWS == 5_000
    exact = check_parameters(GammaGMM(tol=0.1, max_mixture_rows=None).get_params()).run_options
    assert (exact["tol"], exact["accelerated"], exact["max_rows"]) == (0.1, False, None)
    assert (
        check_parameters(GammaGMM(max_mixture_rows=50).get_params()).run_options["max_rows"] == 50
    )


def test_runs_see_only_so_many_rows():
    scores = grouped_scores(400, 3, np.random.default_rng(1))
    small = {"n_components": 8, "n_runs": 2, "p_high": 0.95, "random_state": 0}
    for limit, n_seen in ((100, 100), (None, 400)):
        fitted = GammaGMM("precomputed", max_mixture_rows=limit, **small).fit(scores)
        counts = [(run.components.mean_precision - 1.0).sum() for run in fitted.fit_.runs]
        np.testing.assert_allclose(counts, n_seen, rtol=0.02)
        told = Note.of("mixture.sampled", "max_mixture_rows", n_seen=100, n_rows=400)
        assert (told in fitted.notes_) == (limit == 100)
        assert len(fitted.labels_) == 400


def test_progress_names_each_run_by_its_number():
    scores, heard = grouped_scores(300, 3, np.random.default_rng(1)), []
    estimator = GammaGMM(
        "precomputed",
        n_components=8,
        n_runs=5,
        p_high=0.3,
        random_state=3,
        progress=lambda name, state, seconds: heard.append((name, state)),
    )
    runs = estimator.fit(scores).fit_.runs
    in_time = sorted(range(5), key=lambda i: runs[i].n_iter)
    assert in_time != sorted(in_time)
    assert heard == [(f"run {i + 1}", runs[i].status) for i in in_time]


@pytest.fixture
def rows():
    X = np.random.default_rng(0).normal(size=(150, 3))
    X[:6] += 5.0
    return X


def make(**parameters):
    small = {"n_components": 40, "n_runs": 2, "n_draws": 50, "p_high": 0.3, "max_restarts": 3}
    small |= {"random_state": 0}
    return GammaGMM(["KNN", "HBOS", "IForest"], **small | parameters)


# Too little data for a solution, which is no matter here.
@pytest.mark.filterwarnings("ignore:The model has no estimate:gammagmm.errors.NoSolutionWarning")
def test_a_subset_is_recorded(rows):
    exact, subset = make(max_fit_rows=None).fit(rows), make(max_fit_rows=60).fit(rows)
    assert [info.n_rows for info in subset.fit_.detector_info] == [60, 150, 150]
    assert Note.of("detectors.sampled", "KNN", n_fit=60, n_rows=150) in subset.notes_
    assert not np.array_equal(subset.scores_[:, 0], exact.scores_[:, 0])
    np.testing.assert_array_equal(subset.scores_[:, 1:], exact.scores_[:, 1:])
    np.testing.assert_array_equal(make().fit(rows).scores_, exact.scores_)


# Too little data for a solution, which is no matter here.
@pytest.mark.filterwarnings("ignore:The model has no estimate:gammagmm.errors.NoSolutionWarning")
def test_progress_reaches_the_callback(rows, capsys):
    events = []
    estimator = make(progress=lambda *event: events.append(event)).fit(rows)
    names = [event[0] for event in events if not event[0].startswith("run ")]
    assert sorted(names) == sorted(2 * estimator.fit_.detector_names)
    # Each run is heard of when it has ended, when it is restarted and when it has ended again.
    heard = {f"run {i + 1}": [] for i in range(2)}
    for name, state, _ in events:
        if name in heard:
            heard[name].append(state)
    runs = estimator.fit_.runs
    assert sum(run.n_restarts for run in runs) > 0
    for run, states in zip(runs, heard.values(), strict=True):
        assert states == run.n_restarts * ["unsolved", "started"] + [run.status]
    assert capsys.readouterr() == ("", "")
    make(progress=True).fit(rows)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"^fit 3/5: \w+ ok", err, re.MULTILINE)
    assert re.search(r"^fit 5/5: run ", err, re.MULTILINE)


class Sleeper:
    def fit(self, X):
        import time

        time.sleep(60)

    def decision_function(self, X):
        return X[:, 0]


def test_a_detector_past_its_time_is_left_out_of_the_answer(rows):
    estimator = make(detector_timeout=2.0)
    estimator.detectors = {"KNN": "KNN", "slow": Sleeper(), "LOF": "LOF"}
    with pytest.warns(GammaGMMWarning) as record:
        estimator.fit(rows)
    assert [str(w.message) for w in record if w.category is DetectorWarning] == [
        "Detector slow was skipped: it took longer than detector_timeout=2.0 s."
    ]
    assert estimator.fit_.detector_names == ["KNN", "LOF"]
    assert estimator.fit_.detector_info[1].status == "timeout"
    reason = "it took longer than detector_timeout=2.0 s"
    assert Note.of("detectors.skipped", "slow", reason=reason) in estimator.notes_


@pytest.mark.parametrize("value", ["never", -1, 1.5, True])
def test_max_restarts_is_auto_or_a_count(value):
    with pytest.raises((TypeError, ValueError), match="max_restarts"):
        check_parameters(GammaGMM(max_restarts=value).get_params(deep=False))
