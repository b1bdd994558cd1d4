import json
import math
import os
import pickle
from dataclasses import astuple, fields

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm._support.documents import record_to_data
from gammagmm.datasets import load_demo
from gammagmm.errors import DetectorWarning, SavedFileError
from gammagmm.estimator.summary import FitSummary
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


@pytest.fixture
def saved(fitted, tmp_path):
    fitted.summary().save(tmp_path / "fit.json")
    return tmp_path / "fit.json"


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


def test_every_value_comes_back(fitted, saved):
    made, loaded = fitted.summary(), FitSummary.load(saved)
    assert repr(loaded) == repr(made)
    for field in fields(FitSummary):
        if field.name not in ("posterior", "fitted_posterior", "evidence", "detectors", "runs"):
            assert getattr(loaded, field.name) == getattr(made, field.name)
    for name in ("detectors", "runs"):
        for read, written in zip(getattr(loaded, name), getattr(made, name), strict=True):
            # NaN is the one value that differs from itself.
            assert type(read) is type(written)
            assert list(map(repr, astuple(read))) == list(map(repr, astuple(written)))
    assert record_to_data(loaded.evidence) == record_to_data(made.evidence)
    np.testing.assert_array_equal(loaded.posterior.betas.a, made.posterior.betas.a)
    assert loaded.posterior.mean == made.posterior.mean


def test_a_fit_without_solution_is_saved_too(tmp_path):
    scores = np.random.default_rng(0).normal(size=(60, 2))
    estimator = GammaGMM("precomputed", p_high=1e-12, n_runs=2, max_restarts=0, random_state=0)
    with pytest.warns(UserWarning, match="No solution in any of 2 runs"):
        estimator.fit(scores)
    estimator.summary().save(tmp_path / "fit.json")
    loaded = FitSummary.load(tmp_path / "fit.json")
    assert loaded.posterior.is_degenerate
    assert loaded.feature_names == ()
    assert all(run.status == "unsolved" and math.isnan(run.mean) for run in loaded.runs)
    first, *lines = repr(loaded).split("\n  ")
    assert first == "FitSummary(60 rows, 0 flagged, 2 detectors, point mass at 0)"
    assert lines == list(loaded.lines[1:])


def test_the_posterior_in_it_has_its_own_header(saved):
    data = json.loads(saved.read_text())
    assert (data["schema"], data["version"]) == ("gammagmm/fit", 3)
    assert data["posterior"]["schema"] == "gammagmm/posterior"


def change(data, path, value):
    """Set the member of `data` at `path`, or delete it where `value` is Ellipsis."""
    *parents, last = path
    for key in parents:
        data = data[key]
    if value is ...:
        del data[last]
    else:
        data[last] = value


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["schema"], "gammagmm/posterior", "its schema must be 'gammagmm/fit', got 'gammagmm/post"),
        (["version"], 4, "it has version 4, this gammagmm reads version 3. Upgrade"),
        (["version"], 2, "an earlier version of gammagmm saved it"),
        (["evidence"], None, "evidence"),
        (["n_rows"], ..., "summary has missing or unexpected fields: n_rows"),
        (["extra"], 1, "summary has missing or unexpected fields: extra"),
        (["n_rows"], 3.5, "n_rows must be a whole number, got 3.5"),
        (["n_rows"], -3, "the numbers of rows and columns must be at least 0"),
        (["threshold"], "1", "threshold must hold finite numbers, got '1'"),
        (["feature_names"], "abc", "feature_names must be a list, got str"),
        (["feature_names", 0], 7, "feature_names.* must be text, got int"),
        (["parameters"], [], "parameters must be an object, got list"),
        (["parameters", "p0"], [], "parameters.p0 must hold finite numbers, got list"),
        (["versions", "numpy"], {}, "versions.numpy must be text, got dict"),
        (["versions", "numpy"], 2, "versions.numpy must be text, got int"),
        (["detectors", 0, "status"], "fine", "detectors.*status must be one of .*, got 'fine'"),
        (["detectors", 0, "seconds"], "1", "detectors.*seconds must hold finite numbers, got '1'"),
        (["detectors", 0, "code"], "1", "detectors.* has missing or unexpected fields: code"),
        (["runs"], {}, "runs must be a list, got dict"),
        (["runs", 0], 1, "runs.* must be an object, got int"),
        (["runs", 0, "converged"], 1, "runs.*converged must be true or false, got int"),
        (["notes", 0, "code"], None, "notes.*code must be text, got NoneType"),
        (["lines", 0], 7, "lines.* must be text, got int"),
        (["evidence"], 7, "evidence must be an object, got int"),
        (["evidence", "rests_on"], "hope", "evidence.rests_on must be one of .*, got 'hope'"),
        (["evidence", "assumptions"], {}, "evidence.assumptions must be a list, got dict"),
        (["evidence", "assumptions", 0, "p0"], "1", "p0 must hold finite numbers, got '1'"),
        (["evidence", "constraints", "p0"], 2.0, "evidence.constraints: p0 must"),
        (["evidence", "track_record", "levels", 0], 1, "levels must be an object, got int"),
        (["evidence", "separate_rows"], {}, "separate_rows has missing or unexpected fields"),
    ],
)
def test_what_is_no_summary_is_refused(path, value, words, saved):
    data = json.loads(saved.read_text())
    change(data, path, value)
    saved.write_text(json.dumps(data))
    with pytest.raises(SavedFileError, match=words) as caught:
        FitSummary.load(saved)
    assert str(caught.value).startswith(f"{saved} cannot be read as a summary of a fit: ")


def test_a_group_has_no_rows_in_a_file(fitted, saved):
    data = json.loads(saved.read_text())
    group = {"n_rows": 2, "share": 0.1, "depth": 0.9, "detectors": ["near", "local"]}
    data["evidence"]["separate_rows"] = {"rows": None, **group}
    saved.write_text(json.dumps(data))
    assert FitSummary.load(saved).evidence.separate_rows.detectors == ("near", "local")
    data["evidence"]["separate_rows"]["rows"] = [1, 2]
    saved.write_text(json.dumps(data))
    with pytest.raises(SavedFileError, match=r"separate_rows\.rows must be null, got list"):
        FitSummary.load(saved)


def test_a_posterior_that_is_none_is_named(saved):
    data = json.loads(saved.read_text())
    data["posterior"]["prob_zero"] = 2
    saved.write_text(json.dumps(data))
    with pytest.raises(SavedFileError, match=r"posterior cannot be read as a posterior"):
        FitSummary.load(saved)


def test_a_pickle_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "fit.json").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(SavedFileError, match=r"it is not (UTF-8 text|JSON)"):
        FitSummary.load(tmp_path / "fit.json")
    assert not (tmp_path / "sprung").exists()


def test_an_existing_file_stays_unless_told(fitted, tmp_path):
    path = tmp_path / "fit.json"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"fit\.json already exists: pass overwrite=True"):
        fitted.summary().save(path)
    assert path.read_text() == "mine"
    fitted.summary().save(path, overwrite=True)
    assert FitSummary.load(path).n_rows == 367
