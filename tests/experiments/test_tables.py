"""The tables: made from the committed results, and right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from experiments.metrics import LEVELS, calibration_figures, frequencies
from experiments.plan import HERE, load_plan
from experiments.results import Results
from experiments.tables import TABLES, f1, to_csv


@pytest.fixture(scope="module")
def results():
    return Results(load_plan())


def test_a_calibrated_forecast_lies_on_the_diagonal():
    needed = (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(frequencies(needed), LEVELS, atol=1e-3)
    found = calibration_figures(needed.tolist())
    assert found["within_5"] == 1.0
    assert found["largest_off"] < 2e-3


def test_a_forecast_that_never_holds_the_truth_is_far_off():
    found = calibration_figures([1.0] * 20)
    assert found["largest_off"] == pytest.approx(0.99)
    assert found["within_10"] == pytest.approx(10 / 99)


@pytest.mark.parametrize("name", TABLES)
def test_the_committed_tables_are_made_from_the_results(name, results):
    committed = (HERE / "results" / "tables" / f"{name}.csv").read_text(encoding="utf-8")
    assert committed == to_csv(TABLES[name](results))


def test_f1_deterioration_from_the_files_themselves(results):
    """gammaGMM's number for Question 3, computed in another way."""
    found = {}
    for kind in ("gamma", "scores"):
        lines = (HERE / "results" / f"{kind}.jsonl").read_text().splitlines()
        for result in map(json.loads, lines):
            _, collection, dataset, _ = result["trial"].split("/")
            if collection == "paper" and result["status"] == "ok":
                found.setdefault(dataset, {})[kind] = result
    losses = []
    for result in found.values():
        at_truth = result["scores"]["at_truth"]["f1"]
        pairs = zip(at_truth, result["gamma"]["cut"]["f1"], strict=True)
        best = max(at_truth)
        ratios = [cut / best - 1.0 for truth, cut in pairs if truth == best > 0.0]
        losses += [sum(ratios) / len(ratios)] if ratios else []
    row = f1(results)[0]
    assert row["f1_deterioration"] == pytest.approx(sum(losses) / len(losses), abs=1e-12)
