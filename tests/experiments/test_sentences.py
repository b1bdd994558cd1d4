"""The page of sentences: it is made from its results, and no sentence contradicts its numbers."""

import json
import re

import numpy as np
import pytest
from experiments.made_tables import clean_table
from experiments.plan import load_plan

from experiments import sentences
from gammagmm import GammaPosterior

FOUND = json.loads(sentences.FOUND.read_text(encoding="utf-8"))
TABLES = pytest.mark.parametrize("table", FOUND, ids=lambda table: table["title"])


def shares(text):
    """The percentages in a text, as numbers from 0 to 1."""
    return [float(share) / 100 for share in re.findall(r"([\d.]+)%", text)]


def near(values):
    """The values as a text shows them, with one decimal of a per cent."""
    return pytest.approx(values, abs=0.0005)


def test_the_page_is_made_from_the_results():
    assert sentences.PAGE.read_text(encoding="utf-8") == sentences.page(FOUND)
    assert len(FOUND) == 10


def test_a_new_fit_has_the_sentences_of_the_page():
    """Other machines may have other numbers in them."""
    seed, (kept, *_) = load_plan()["seed"], FOUND
    rows = clean_table("normal", sentences.N_ROWS, seed)
    made = sentences.told(kept["title"], rows, np.zeros(len(rows), dtype=int), seed)
    for found, before in ((made, kept), (made["labelled"], kept["labelled"])):
        assert [re.sub(r"[\d.,]+", "#", line) for line in found["lines"]] == [
            re.sub(r"[\d.,]+", "#", line) for line in before["lines"]
        ]
    assert made["mean"] == pytest.approx(kept["mean"], rel=0.05)


@TABLES
def test_without_labels_the_lines_hold_the_numbers(table):
    not_known, cut, value, following = table["lines"]
    assert shares(not_known) == near(GammaPosterior.reference().interval())
    assert f" {table['n_flagged']:,} of {table['n_rows']:,} rows " in cut
    is_near = abs(table["n_flagged"] - table["expected"]) < 1.0
    assert (f"adds up to {table['expected']:,.0f}:" in cut) != is_near
    if table["mean"] is not None:
        assert shares(value)[:3] == near([table["mean"], *table["range"]])
    if table["means"] is not None:
        ends = sorted(shares(value)[4 if table["mean"] is not None else 0 :])
        assert [ends[0], ends[-1]] == near(table["means"])
    for line in (not_known, cut, value):
        assert "90% interval" not in line
    if table["group"] is None:
        assert "separate" not in following
        return
    n_rows, share = table["group"]
    (low, high), told = table["range"], re.search(r"\(([\d.]+%[^)]*)\)", following)[1]
    assert f"{n_rows:,} rows that are separate" in following
    if table["mean"] is not None:
        assert ("above" in told) == (share > high)
        assert ("below" in told) == (share < low)


@TABLES
def test_the_warnings_are_those_of_the_numbers(table):
    (n_unsolved, n_starts), is_empty = table["starts"], table["mean"] is None
    is_above = not is_empty and bool(table["group"]) and table["group"][1] > table["range"][1]
    assert ("SeparateRowsWarning" in table["warnings"]) == is_above
    is_most = 2 * n_unsolved > n_starts
    assert ("UnsolvedRunsWarning" in table["warnings"]) == (is_most and not is_empty)
    assert ("NoSolutionWarning" in table["warnings"]) == is_empty
    assert (f"{n_unsolved:,} of {n_starts:,} starts" in table["lines"][2]) == (
        is_most and not is_empty
    )


@TABLES
def test_with_labels_the_interval_comes_first(table):
    found = table["labelled"]
    first, uses, *_ = found["lines"]
    mean, _, low, high = shares(first)
    assert [mean, low, high] == near([found["mean"], *found["interval"]])
    assert f" {found['n_flagged']:,} of {table['n_rows']:,} rows " in first
    assert f"{sentences.N_LABELS} labelled rows ({found['n_anomalies']} " in uses
