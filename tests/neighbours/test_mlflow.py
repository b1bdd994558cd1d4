"""A logged fit holds what the fit found."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.datasets import load_demo
from tests.support.example_scripts import script

pytestmark = pytest.mark.filterwarnings(
    "ignore:.* starts had no solution:gammagmm.errors.UnsolvedRunsWarning"
)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The names of the script, which logs to a folder of its own."""
    with (
        contextlib.chdir(tmp_path_factory.mktemp("mlflow")),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of SQLAlchemy and alembic
        yield runpy.run_path(str(script("with_mlflow")))
    logging.getLogger("mlflow").setLevel(logging.NOTSET)
    os.environ.pop("MLFLOW_DISABLE_TELEMETRY")


@pytest.fixture(scope="module")
def fitted():
    return GammaGMM(["KNN", "LOF", "HBOS", "ECOD"], n_runs=2, random_state=0).fit(load_demo().X)


@pytest.fixture
def log(example):
    """Function that logs an estimator in a new run: the run and its folder of artifacts."""
    mlflow = example["mlflow"]

    def log(estimator):
        with mlflow.start_run() as run:
            example["log_fit"](estimator)
        run_id = run.info.run_id
        return mlflow.get_run(run_id), Path(mlflow.artifacts.download_artifacts(run_id=run_id))

    return log


class TestLoggedFit:
    def test_numbers_and_words_are_those_of_the_fit(self, fitted, log):
        run, _ = log(fitted)
        low, high = fitted.posterior_.interval()
        expected = {"share": fitted.posterior_.mean, "share_low": low, "share_high": high}
        assert run.data.metrics == expected | {"rows": 367, "labels": 0} | {
            "rows_flagged": fitted.labels_.sum()
        }
        assert run.data.params["n_runs"] == "2"
        assert run.data.params["p0"] == repr(fitted.p0)
        assert run.data.tags["range"] == "model range"
        assert run.data.tags["mlflow.note.content"].split("\n\n") == list(fitted.summary().lines)

    def test_the_artifacts_are_read_again(self, fitted, log):
        _, folder = log(fitted)
        assert sorted(path.name for path in folder.iterdir()) == [
            "posterior.json",
            "report.html",
            "rows.fit",
        ]
        assert GammaPosterior.load(folder / "posterior.json").mean == fitted.posterior_.mean
        again = GammaGMM.load(folder / "rows.fit")
        np.testing.assert_array_equal(again.labels_, fitted.labels_)
        assert "model range" in (folder / "report.html").read_text(encoding="utf-8")

    def test_with_labels_the_range_is_an_interval(self, fitted, log):
        rows = fitted.suggest(30, random_state=0)
        labelled = GammaGMM(["KNN", "LOF", "HBOS", "ECOD"], n_runs=2, random_state=0)
        labelled.fit(load_demo().X).update(rows, load_demo().y[rows])
        run, _ = log(labelled)
        assert run.data.tags["range"] == "90% interval"
        assert run.data.metrics["labels"] == 30
        assert run.data.metrics["share"] == labelled.posterior_.mean
