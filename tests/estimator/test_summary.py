import json
import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.errors import DetectorWarning, NoSolutionWarning
from gammagmm.mixture.prior import MixturePrior
from tests.support.flat_detector import Flat


@pytest.fixture(scope="module")
def fitted():
    demo = load_demo()
    table = pd.DataFrame(demo.X, columns=demo.feature_names)
    estimator = GammaGMM(
        {"near": "KNN", "<b>flat</b>": Flat(), "local": "LOF"},
        scale=None,
        n_runs=np.int64(3),
        p_high=np.float64(0.02),
        mixture_prior=MixturePrior(),
        random_state=0,
    )
    with pytest.warns(DetectorWarning, match="flat"):
        return estimator.fit(table)


def test_it_says_what_the_estimator_says(fitted):
    summary = fitted.summary()
    assert summary.posterior is fitted.posterior_
    assert (summary.n_rows, summary.n_features) == (367, 30)
    assert summary.n_flagged == fitted.labels_.sum()
    assert summary.n_table_rows == 367
    assert summary.threshold == fitted.threshold_
    assert summary.feature_names == tuple(fitted.feature_names_in_)
    assert [d.name for d in summary.detectors] == ["near", "<b>flat</b>", "local"]
    assert [d.status for d in summary.detectors] == ["ok", "constant", "ok"]
    assert summary.thresholds == fitted.thresholds_
    assert list(summary.thresholds) == ["near", "local"]
    assert [r.mean for r in summary.runs] == [r.posterior.mean for r in fitted.fit_.runs]
    assert [r.elbo for r in summary.runs] == [r.elbo for r in fitted.fit_.runs]
    assert summary.notes == tuple(fitted.notes_)
    assert summary.parameters["n_runs"] == 3
    assert summary.parameters["p_high"] == 0.02
    assert summary.parameters["max_fit_rows"] == "auto"
    assert summary.parameters["mixture_prior"] == repr(MixturePrior())
    assert summary.versions["numpy"] == np.__version__


def test_as_data_it_is_json(fitted):
    summary = fitted.summary()
    data = json.loads(json.dumps(summary.to_data(), allow_nan=False))
    assert data.keys() == {each.name for each in fields(summary)}
    assert data["posterior"]["mean"] == fitted.posterior_.mean
    assert data["runs"][1]["elbo"] == fitted.fit_.runs[1].elbo
    assert data["detectors"][1]["status"] == "constant"
    assert data["notes"] == [note.to_data() for note in fitted.notes_]
    assert data["labels"] is None


def test_a_fit_without_solution_has_nulls_for_what_does_not_exist():
    scores = np.random.default_rng(0).normal(size=(60, 2))
    estimator = GammaGMM("precomputed", p_high=1e-12, n_runs=2, max_restarts=0, random_state=0)
    with pytest.warns(NoSolutionWarning):
        estimator.fit(scores)
    summary = estimator.summary()
    assert summary.posterior.is_degenerate
    assert summary.feature_names == ()
    assert all(run.status == "unsolved" and math.isnan(run.mean) for run in summary.runs)
    assert {run["mean"] for run in summary.to_data()["runs"]} == {None}
    first, *lines = repr(summary).split("\n  ")
    assert first == "FitSummary(60 rows, 0 flagged, 2 detectors)"
    assert lines == list(summary.lines)
