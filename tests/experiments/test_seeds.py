"""The trials of other seeds and orders of the rows, on the demo data."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.plan import EXACT, Trial, load_plan
from experiments.seeds import row_order, seeds

from experiments import data
from gammagmm import GammaGMM, MixturePrior
from gammagmm.datasets import load_demo

pytestmark = pytest.mark.long


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The plan with the default detectors, and a data folder with the demo data."""
    monkeypatch.setenv("GAMMAGMM_DATA", str(tmp_path))
    monkeypatch.setattr("experiments.data.CACHE", tmp_path / "cache")
    (tmp_path / "paper").mkdir()
    demo = load_demo()
    np.savez(tmp_path / "paper" / "WDBC.npz", X=demo.X, y=demo.y)
    whole = load_plan()
    part = whole["collections"]["paper"] | {"preset": "classic"}
    return whole | {
        "collections": {"paper": part},
        "seeds": whole["seeds"] | {"thresholders": ["IQR"]},
    }


def mean_of(scores, **parameters):
    fitted = GammaGMM("precomputed", **(EXACT | parameters), random_state=1).fit(scores)
    return pytest.approx(fitted.posterior_.mean, rel=1e-9)


def test_each_figure_of_a_seed_is_that_of_its_fit(plan):
    found = seeds(Trial("seeds", "paper", "WDBC", "1"), plan)
    S = data.seeded_scores("paper", "WDBC", plan["collections"]["paper"], 1).S
    means = {name: found[name]["figures"]["mean"] for name in ("exact", "default", "identity")}
    assert means["exact"] == mean_of(S)
    assert means["default"] == mean_of(S, tol="auto", max_mixture_rows="auto")
    assert means["identity"] == mean_of(S, mixture_prior=MixturePrior("identity"))
    assert len(set(means.values())) == 3
    assert set(found["exact"]["statuses"]) == {"solved"}
    parts = found["parts"]
    assert parts["p_high_met"]["n_unsolved"] == 0
    assert parts["p_high_met"]["prob_high"] == pytest.approx(0.01, rel=1e-6)
    assert parts["plug_in"]["prob_high"] == pytest.approx(0.01, rel=1e-6)
    # Averaging both equations leaves runs without a solution on these data.
    assert parts["both_averaged"]["n_unsolved"] > 0
    assert parts["order_by_mean"]["prob_high"] != pytest.approx(0.01, rel=1e-3)
    reached = np.mean(found["exact"]["reached"])
    assert found["exact"]["prob_high"] == pytest.approx(reached, rel=1e-9)
    cuts = np.percentile(S, 100 * (1 - means["exact"]), axis=0)
    flagged = np.mean(cuts < S)
    y, cut = load_demo().y, found["exact"]["cut"]
    assert cut["false_alarms"] + y.mean() - cut["misses"] == pytest.approx(flagged)
    # Fewer rows than the budget, so only the number of restarts differs.
    assert found["all_ten"]["figures"]["mean"] == pytest.approx(means["exact"], rel=1e-9)


def test_an_order_moves_the_rows_and_their_labels_together(plan):
    first, second = (row_order(Trial("row_order", "paper", "WDBC", i), plan) for i in "01")
    assert first["truth"] == second["truth"] == load_demo().y.mean()
    means = [one["exact"]["figures"]["mean"] for one in (first, second)]
    assert means[0] != means[1]
    # The best detectors find the same anomalies in any order: labels stay with their rows.
    best = [max(one["exact"]["cut"]["f1"]) for one in (first, second)]
    assert min(best) > 0.5
