"""The stored figures about the alarm of `monitor` are those of the stored series."""

import json

import pytest
from experiments.monitoring import N_SIMULATIONS, quiet_figures
from experiments.plan import load_plan
from experiments.results import RESULTS

from gammagmm.monitoring.history import ALPHA


@pytest.fixture(scope="module")
def stored():
    return json.loads((RESULTS / "monitoring.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("preset", ["classic", "fast"])
def test_real_fits_ring_as_often_as_stored_and_at_most_as_stated(stored, preset):
    found = quiet_figures(preset, load_plan())
    kept = stored["quiet"][preset]
    assert found.pop("ratio_90") == pytest.approx(kept.pop("ratio_90"))
    assert found == pytest.approx(kept)
    assert found["rate"] <= ALPHA


def test_simulated_series_ring_at_most_as_stated_and_see_a_share_that_doubles(stored):
    assert stored["n_simulations"] == N_SIMULATIONS
    assert stored["alpha"] == ALPHA
    assert max(stored["false_alarms"].values()) <= ALPHA
    assert all(seen["30"]["2"] >= 0.9 for seen in stored["seen_within"].values())
