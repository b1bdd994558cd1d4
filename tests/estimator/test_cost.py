"""Expected seconds of a fit: those that the benchmarks measured, by the names of the progress."""

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

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
# Of the benchmark of the fits that users wait for, by the names of its tables.
SIZES = {
    "5,000 × 20": (5_000, 20),
    "10,000 × 10": (10_000, 10),
    "20,000 × 10": (20_000, 10),
    "30,000 × 41, 11 of 0 and 1": (30_000, 41),
    "100,000 × 10": (100_000, 10),
    "1,000,000 × 10": (1_000_000, 10),
}


def results(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def expected(detectors, n_rows, n_columns, **parameters):
    plan = check_parameters(GammaGMM(detectors, **parameters).get_params(deep=False))
    return expected_seconds(plan, n_rows, n_columns)


class Own:
    def fit(self, X):
        pass

    def decision_function(self, X):
        return X[:, 0]


def test_the_table_is_that_of_the_benchmark():
    assert {name: cost._asdict() for name, cost in COST.items()} == results("cost")["table"]
    assert set(COST) == {*NAMES, "run"}


def test_it_describes_what_was_measured():
    for name, seconds in results("cost")["seconds"].items():
        ratios = [COST[name].seconds(n, d, n_fit) / took for n, d, n_fit, took in seconds]
        # The mean factor between the two; trees and brute force follow no common law.
        assert np.exp(np.mean(np.abs(np.log(ratios)))) < 2.5, name


def test_the_law():
    assert Cost(0.5, 2.0, 1.0, 0.5).seconds(2_000, 40, 2_000) == pytest.approx(0.5 * 4.0 * 4.0)
    assert Cost(0.5, 2.0, 1.0, 0.5).seconds(80_000, 10, 80_000) == pytest.approx(0.5 * 400.0 * 2.0)
    assert Cost(0.5, 2.0, 1.0, 0.5).seconds(90_000, 10, 10_000) == pytest.approx(0.5 * 100.0 * 3.0)


@pytest.mark.usefixtures("two_threads")
def test_whole_fits_take_about_the_expected_seconds():
    measured = results("waits")
    assert measured["cores"] == 2
    took = {case["name"]: case["now"]["seconds"] for case in measured["cases"]}
    for name, size in SIZES.items():
        seconds = sum(expected("classic", *size, n_jobs=2).values())
        assert 1.0 / 3.0 < seconds / took[name] < 3.0, name


@pytest.mark.parametrize("n_columns", [3, 600])
# Too little data for a solution, which is no matter here.
@pytest.mark.filterwarnings("ignore:The model has no estimate:gammagmm.errors.NoSolutionWarning")
def test_the_parts_are_those_that_are_heard_of(n_columns):
    heard = []
    parameters = {"n_runs": 2, "max_restarts": 0, "random_state": 0}
    X = make_contaminated(300, n_columns, 0.05, "clustered", random_state=0).X
    made = GammaGMM(**parameters, progress=lambda *event: heard.append(event[0])).fit(X)
    assert expected("classic", 300, n_columns, **parameters).keys() == set(heard)
    skipped = [info.name for info in made.fit_.detector_info if info.status == "skipped"]
    assert skipped == ([] if n_columns == 3 else ["LSCP"])


def test_objects_of_a_known_class_are_expected_to_take_as_long():
    parts = expected(["HBOS", KNN(), KNN(n_neighbors=7)], 200, 3, n_runs=1)
    assert list(parts) == ["HBOS", "KNN", "KNN_2", "run 1"]
    assert parts["KNN"] == parts["KNN_2"] == pytest.approx(COST["KNN"].seconds(200, 3, 200))


def test_detectors_that_were_not_measured_are_average():
    parts = expected(["KNN", Own()], 1_000, 10, n_runs=1)
    factors = [cost.factor for name, cost in COST.items() if name != "run"]
    assert parts["Own"] == pytest.approx(np.exp(np.mean(np.log(factors))))


@pytest.mark.usefixtures("two_threads")
def test_detectors_side_by_side_take_less_time_but_no_less_than_the_slowest():
    one, two, many = (
        expected("classic", 3_000, 10, n_runs=1, n_jobs=n_jobs) for n_jobs in (1, 2, 8)
    )
    assert sum(two.values()) < sum(one.values())
    slowest = max(one[name] for name in COST if name in one)
    assert sum(many[name] for name in COST if name in many) == pytest.approx(slowest)


@pytest.mark.usefixtures("two_threads")
def test_runs_see_as_many_rows_as_they_are_fitted_to():
    parts = expected("precomputed", 1_000_000, 4, n_runs=3, n_jobs=2)
    assert parts.keys() == {"run 1", "run 2", "run 3"}
    n_seen = AUTO_MIXTURE_ROWS
    assert parts["run 1"] == COST["run"].seconds(n_seen, 4, n_seen) / 2
    run = expected("classic", 1_000, 20, n_jobs=2)["run 1"]
    assert run == COST["run"].seconds(1_000, 8, 1_000) / 2
