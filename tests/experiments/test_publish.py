"""The committed page, made from the committed results."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.plan import HERE, load_plan
from experiments.publish import markdown, render
from experiments.results import RESULTS, Results, read_file, write_file

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_results():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == render(Results(load_plan()))


def test_the_committed_results_are_in_order(tmp_path):
    paths = sorted(RESULTS.glob("*.jsonl"))
    assert len(paths) == 21
    for path in paths:
        write_file(tmp_path / path.name, read_file(path).values())
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_no_measured_number_is_typed_by_hand():
    """The digits of the template itself: names, the paper's settings, the plan's."""
    text = (HERE / "page.md").read_text(encoding="utf-8")
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


def test_markdown_shows_a_missing_value_as_a_dash():
    rows = [{"a": 1.25, "b": "x"}, {"b": "y"}]
    assert markdown(rows, {"a": ".1f", "b": ""}).splitlines()[2:] == ["| 1.2 | x |", "| – | y |"]
