"""The stored figures about the state of `monitor` are those of the stored series."""

import pytest
from experiments.monitoring import quiet_figures
from experiments.plan import load_plan

from gammagmm.monitoring.history import ALPHA


@pytest.mark.parametrize("preset", ["classic", "fast"])
def test_real_fits_have_alarms_at_most_as_often_as_stated(preset):
    found = quiet_figures(preset, load_plan())
    assert found["n_series"] == 260
    assert found["rate"] <= ALPHA
