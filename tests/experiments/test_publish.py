"""The committed pages, made from the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from experiments.metrics import calibrated_by_chance
from experiments.plan import load_plan
from experiments.publish import TEMPLATES, markdown, render
from experiments.results import RESULTS, Results, read_file, write_file
from experiments.seed_tables import differences, p_high_met, row_order, seed_methods

ROOT = Path(__file__).parents[2]


def test_the_pages_are_made_from_the_results():
    pages = (ROOT / "docs" / "explanations").glob("reproduction*.md")
    written = {path.name: path.read_text(encoding="utf-8") for path in pages}
    assert written == render(Results(load_plan()))


def test_the_committed_results_are_in_order(tmp_path):
    paths = sorted(RESULTS.glob("*.jsonl"))
    assert len(paths) == 23
    for path in paths:
        write_file(tmp_path / path.name, read_file(path).values())
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_no_measured_number_is_typed_by_hand():
    """The digits of the templates themselves: names, the paper's settings, the plan's."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.md")))
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|\$\{\w+\}|^\|.*$|^#.*$", "", text, flags=re.MULTILINE)
    known = {"T15", "T21", "F1", "Table 2", "Table 3", "Table 4", "1e-9", "p0"}
    known |= {"D2", "D6", "D13", "D14", "D15", "D16", "Questions 4 and 5", "seed 0"}
    known |= {"constant 5 %", "constant 10 %", "within 5 %", "within 10 %", "more than 10 %"}
    known |= {
        "90 % interval",
        "90 % of the simulations",
        "excludes 0",
        "contains 0",
        "paper's 22",
        "of 22 methods",
        "20 %",
        "slope 1",
    }
    known |= {"22 further datasets"}
    for words in sorted(known, key=len, reverse=True):
        text = re.sub(re.escape(words).replace(r"\ ", r"\s+"), "", text)
    assert re.findall(r"[^\s]*\d[^\s]*", text) == []


def contains_zero(row, name):
    return row[f"{name}_low"] <= 0.0 <= row[f"{name}_high"]


def test_the_verdicts_on_other_seeds_follow_from_the_tables():
    results = Results(load_plan())
    methods = {row["case"]: row for row in seed_methods(results)}
    exact = methods["exact"]
    for case, whole in (("no_log", "all_ten"), ("identity", "exact"), ("plug_in", "exact")):
        for name in ("mae", "crps", "mean_off"):
            assert methods[case][name] > methods[whole][name], (case, name)
    for case in ("order_by_mean", "one_run"):
        assert exact["mean_off_low"] < methods[case]["mean_off"] < exact["mean_off_high"]
    assert methods["order_by_mean"]["mae"] < exact["mae"]
    chance = calibrated_by_chance(exact["sets"], results.plan["seed"])
    assert exact["mean_off_high"] < np.quantile(chance["mean_off"], 0.95)

    others = {row["method"]: row for row in differences(results)}
    near = [method for method, row in others.items() if contains_zero(row, "error")]
    assert set(near) == {"QMCD", "CHAU", "MTT", "constant 5%", "prior only"}
    assert max(others[name]["error_difference"] for name in ("constant 5%", "prior only")) < 0.0
    assert min(others[name]["error_difference"] for name in ("QMCD", "CHAU", "MTT")) > 0.0
    for name in ("constant 5%", "constant 10%", "QMCD", "KARCH"):
        assert contains_zero(others[name], "f1")

    met = p_high_met(results)[0]
    assert contains_zero(met, "error")
    assert contains_zero(met, "crps")
    assert met["unsolved"] > 0
    for row in row_order(results):
        assert 0.5 < row["orders_std"] / row["seeds_std"] < 2.0


def test_markdown_shows_a_missing_value_as_a_dash():
    rows = [{"a": 1.25, "b": "x"}, {"b": "y"}]
    assert markdown(rows, {"a": ".1f", "b": ""}).splitlines()[2:] == ["| 1.2 | x |", "| – | y |"]
