"""The stored figures about the state of `monitor` are those of the series, and as promised."""

import json

import numpy as np
import pytest
from experiments.monitoring import WORLDS, most, quiet_figures
from experiments.plan import load_plan
from experiments.results import RESULTS

from gammagmm.monitoring.alarms import MEASURED_ICC
from gammagmm.monitoring.history import ALPHA


@pytest.fixture(scope="module")
def stored():
    return json.loads((RESULTS / "monitoring.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("preset", ["classic", "fast"])
def test_real_fits_have_alarms_as_often_as_stored_and_at_most_as_stated(stored, preset):
    found = quiet_figures(preset, load_plan())
    kept = stored["quiet"][preset]
    assert found.pop("ratio_90") == pytest.approx(kept.pop("ratio_90"))
    assert found == pytest.approx(kept)
    assert found["rate"] <= ALPHA


def test_simulated_series_have_alarms_at_most_as_stated(stored):
    limit = ALPHA + 2.0 * np.sqrt(ALPHA * (1.0 - ALPHA) / stored["n_series"])
    assert stored["most_false_alarms"] == most(stored["false_alarms"])
    assert stored["most_false_alarms"].keys() == WORLDS.keys()
    rates = {world: own["all"] for world, own in stored["most_false_alarms"].items()}
    stated = {world for world, (icc, _) in WORLDS.items() if icc <= MEASURED_ICC}
    assert {world for world, rate in rates.items() if rate <= limit} == stated


@pytest.mark.parametrize("change", ["rise", "fall"])
def test_a_share_that_doubles_or_halves_is_seen_within_three_periods(stored, change):
    seen = stored["seen_within"][change]["icc 0.002"]
    assert all(seen[n]["seen"]["3"] >= 0.8 for n in ("60", "90"))


def test_the_column_that_moved_is_named_first(stored):
    for found in stored["columns"].values():
        assert found["n_tables"] >= 200
        assert found["first"] >= 0.9
        assert found["named in quiet"] <= 0.05
    assert stored["columns"]["10"]["first and named"] >= 0.9
