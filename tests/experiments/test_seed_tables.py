"""The tables of other seeds and orders of the rows, from results whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.plan import Trial
from experiments.results import Results
from experiments.seed_tables import (
    N_RESAMPLES,
    _bootstrap,
    differences,
    p_high,
    p_high_met,
    row_order,
    seed_datasets,
    seed_methods,
)

TRUTHS = {"A": 0.04, "B": 0.10}
NEEDED = {"A": 0.25, "B": 0.95}
# The posterior mean of each fit and part, with seed 0; each seed adds 0.01.
MEANS = {"exact": 0.05, "default": 0.052, "identity": 0.01, "all_ten": 0.03, "no_log": 0.02}
MEANS |= {"order_by_mean": 0.011, "plug_in": 0.012, "p_high_met": 0.045, "both_averaged": 0.014}


def figures(name, mean):
    low, high = 0.5 * mean, 1.5 * mean
    covers = low <= TRUTHS[name] <= high
    interval = {"mean": mean, "low": low, "high": high, "covers": covers}
    return interval | {"crps": abs(mean - TRUTHS[name]) / 2.0, "needed": NEEDED[name]}


def fit(name, mean, seed=0):
    return {
        "figures": figures(name, mean),
        "statuses": ["solved", "slack", "unsolved", "solved"],
        "reached": [0.004, 0.0, None, 0.012 + 0.01 * seed],
        "cut": {"f1": [0.2, 0.3], "false_alarms": mean, "misses": 0.01},
    }


def seeds_result(name, seed):
    fits = ("exact", "default", "identity", "all_ten", "no_log")
    found = {kind: fit(name, MEANS[kind] + 0.01 * seed, seed) for kind in fits}
    if name == "A":
        found["exact"]["statuses"] = ["solved", "slack", "slack", "solved"]
    parts = {
        kind: figures(name, mean + 0.01 * seed) | {"n_unsolved": seed}
        for kind, mean in MEANS.items()
        if kind not in fits
    }
    return {
        **{"status": "ok", "truth": TRUTHS[name], "rows": 100},
        "at_truth": {"f1": [0.1, 0.4]},
        **found,
        "parts": parts | {"one_run": [figures(name, 0.05), figures(name, 0.07)]},
        "thresholders": {"IQR": {"share": 0.01, "cut": fit(name, 0.01)["cut"]}},
    }


@pytest.fixture
def results():
    plan = {
        "seed": 0,
        "collections": {"paper": {"datasets": ["A", "B", "C"]}},
        "seeds": {"values": [0, 1], "left_out": ["C"], "thresholders": ["IQR"]},
        "row_order": {"orders": [0, 1], "datasets": ["A"]},
        "thresholders": {"names": ["IQR"]},
        "constants": {"shares": [0.05]},
    }
    made = Results(plan)
    made.__dict__["all"] = {
        **{
            Trial("seeds", "paper", name, str(seed)): seeds_result(name, seed)
            for name in TRUTHS
            for seed in (0, 1)
        },
        **{
            Trial("row_order", "paper", "A", str(i)): {"status": "ok"}
            | {kind: {"figures": {"mean": 0.05 + 0.02 * i}} for kind in ("exact", "default")}
            for i in (0, 1)
        },
        **{
            Trial("constant", "paper", name, "0.05"): {
                **{"status": "ok", "truth": truth, "share": 0.05},
                "cut": {"f1": [0.1, 0.4]},
            }
            for name, truth in TRUTHS.items()
        },
        **{
            Trial("scores", "paper", name, "all"): {"status": "ok", "at_truth": {"f1": [0.1, 0.4]}}
            for name in TRUTHS
        },
    }
    return made


def test_a_dataset_has_its_spread_over_seeds_and_orders(results):
    first, second = seed_datasets(results)
    assert first["exact"] == pytest.approx(0.055)
    assert first["exact_std"] == pytest.approx(np.sqrt(0.5) * 0.01)
    assert (first["exact_low"], first["exact_high"]) == pytest.approx((0.05, 0.06))
    assert (first["orders_low"], first["orders_high"]) == pytest.approx((0.05, 0.07))
    assert "orders" not in second


def test_figures_are_those_of_each_seed_averaged(results):
    rows = {row["case"]: row for row in seed_methods(results)}
    exact = rows["exact"]
    # Errors 0.01 and 0.05 with seed 0, 0.02 and 0.04 with seed 1.
    assert exact["mae"] == pytest.approx(0.03)
    assert (exact["mae_low"], exact["mae_high"]) == pytest.approx((0.03, 0.03))
    # Seed 0: 0.04 lies in 0.025 to 0.075, 0.1 does not; seed 1: 0.04 in 0.03 to 0.09.
    assert exact["coverage_90"] == 0.5
    assert exact["f1_deterioration"] == pytest.approx(-0.25)
    assert exact["false_alarms"] == pytest.approx(0.055)
    assert (exact["false_alarms_low"], exact["false_alarms_high"]) == pytest.approx((0.05, 0.06))
    assert (rows["plug_in"]["unsolved_low"], rows["plug_in"]["unsolved_high"]) == (0, 2)
    assert rows["one_run"]["mae"] == pytest.approx(np.mean([0.01, 0.03, 0.05, 0.03]))
    assert rows["IQR"]["mae"] == pytest.approx(0.06)
    for case, mean in MEANS.items():
        shares = np.array([[mean], [mean + 0.01]])
        assert rows[case]["mae"] == pytest.approx(np.abs(shares - list(TRUTHS.values())).mean())
    # The curve of two datasets steps at 0.25 and at 0.95.
    grid = np.arange(1, 100) / 100
    curve = ((grid >= 0.25 - 1e-9).astype(float) + (grid >= 0.95 - 1e-9)) / 2
    assert exact["mean_off"] == pytest.approx(np.abs(curve - grid).mean())


def test_differences_are_theirs_minus_ours(results):
    rows = {row["method"]: row for row in differences(results)}
    assert rows["IQR"]["error_difference"] == pytest.approx(0.06 - 0.03)
    assert rows["IQR"]["seeds"] == 2
    # Errors 0.01 and 0.05 of the constant, 0.015 and 0.045 of ours.
    assert rows["constant 5%"]["error_difference"] == pytest.approx(0.0)
    assert rows["constant 5%"]["error_low"] == pytest.approx(-0.005)
    assert rows["constant 5%"]["error_high"] == pytest.approx(0.005)
    assert rows["constant 5%"]["f1_difference"] == pytest.approx(0.25)
    assert rows["prior only"]["error_sets"] == 0


def test_the_bootstrap_has_the_width_of_the_mean(rng):
    gaps = rng.normal(1.0, 2.0, size=400)
    found = _bootstrap("error", gaps, 0)
    half = 1.645 * gaps.std() / np.sqrt(400)
    # A quantile of N_RESAMPLES draws; the density of the normal there is 0.103.
    error = 4 * np.sqrt(0.05 * 0.95 / N_RESAMPLES) / 0.103 * gaps.std() / np.sqrt(400)
    assert found["error_low"] == pytest.approx(gaps.mean() - half, abs=error)
    assert found["error_high"] == pytest.approx(gaps.mean() + half, abs=error)


def test_row_orders_stand_beside_seeds(results):
    exact, _ = row_order(results)
    assert exact["orders_std"] == pytest.approx(np.sqrt(0.5) * 0.02)
    assert exact["orders_range"] == pytest.approx(0.02)
    assert exact["seeds_range"] == pytest.approx(0.01)


def test_p_high_counts_solved_runs_and_averages_those_of_a_fit(results):
    runs, fits, *_ = p_high(results)
    # Runs: 0.004 four times, 0.012 and 0.022 twice; fits: 0.008 and 0.013, twice each.
    assert (runs["n"], runs["below_half"], runs["above_twice"]) == (8, 0.5, 0.25)
    assert runs["median"] == pytest.approx(0.008)
    assert (fits["n"], fits["below_half"], fits["above_twice"]) == (4, 0.0, 0.0)
    assert (fits["smallest"], fits["largest"]) == pytest.approx((0.008, 0.013))


def test_a_posterior_that_meets_p_high_is_compared_where_both_have_solutions(results):
    met, _ = p_high_met(results)
    assert (met["runs"], met["unsolved"]) == (16, 2)
    # B has an unsolved run of the method itself, and seed 1 one of the ablation.
    assert (met["fits"], met["sets"]) == (1, 1)
    assert met["error_exact"] == pytest.approx(0.01)
    assert met["error"] == pytest.approx(0.005)
    assert met["error_difference"] == met["error_low"] == pytest.approx(-0.005)
    assert met["crps_difference"] == pytest.approx(-0.0025)
