"""Expected seconds of a fit: those that the benchmark measured, by the names of the progress."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyod.models.knn import KNN

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.detectors.presets import NAMES
from gammagmm.estimator.cost import COST, Cost, expected_seconds
from gammagmm.estimator.parameters import AUTO_MIXTURE_ROWS, check_parameters

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "cost.json"


def expected(detectors, n_rows, n_columns, **parameters):
    plan = check_parameters(GammaGMM(detectors, **parameters).get_params(deep=False))
    return expected_seconds(plan, n_rows, n_columns)


class Own:
    def fit(self, X):
        pass

    def decision_function(self, X):
        return X[:, 0]


def test_the_table_is_that_of_the_benchmark():
    measured = json.loads(RESULTS.read_text())["table"]
    assert {name: cost._asdict() for name, cost in COST.items()} == measured
    assert set(COST) == {*NAMES, "run"}


def test_it_describes_what_was_measured():
    for name, seconds in json.loads(RESULTS.read_text())["seconds"].items():
        ratios = [COST[name].seconds(n, d) / took for n, d, took in seconds]
        # The mean factor between the two; trees and brute force follow no common law.
        assert np.exp(np.mean(np.abs(np.log(ratios)))) < 2.5, name


def test_the_law():
    assert Cost(0.5, 2.0, 1.0, 0.5).seconds(2_000, 40) == pytest.approx(0.5 * 4.0 * 4.0)
    assert Cost(0.5, 2.0, 1.0, 0.5).seconds(80_000, 10) == pytest.approx(0.5 * 400.0 * 2.0)


# Too little data for a solution, which is no matter here.
@pytest.mark.filterwarnings("ignore:The model has no estimate:gammagmm.errors.NoSolutionWarning")
def test_the_parts_have_the_names_that_the_progress_has():
    heard = []
    detectors = ["HBOS", KNN(), KNN(n_neighbors=7)]
    parameters = {"n_runs": 2, "max_restarts": 0, "random_state": 0}
    X = make_contaminated(200, 3, 0.05, "clustered", random_state=0).X
    GammaGMM(detectors, **parameters, progress=lambda *event: heard.append(event[0])).fit(X)
    parts = expected(detectors, 200, 3, **parameters)
    assert parts.keys() == set(heard)
    assert parts["KNN"] == parts["KNN_2"] == COST["KNN"].seconds(200, 3)


def test_detectors_that_were_not_measured_are_average():
    parts = expected(["KNN", Own()], 1_000, 10, n_runs=1)
    factors = [cost.factor for name, cost in COST.items() if name != "run"]
    assert parts["Own"] == pytest.approx(np.exp(np.mean(np.log(factors))))


def test_runs_see_as_many_rows_as_they_are_fitted_to():
    parts = expected("precomputed", 1_000_000, 4, n_runs=3)
    assert parts.keys() == {"run 1", "run 2", "run 3"}
    assert parts["run 1"] == COST["run"].seconds(AUTO_MIXTURE_ROWS, 4)
    assert expected("classic", 1_000, 20)["run 1"] == COST["run"].seconds(1_000, 8)
