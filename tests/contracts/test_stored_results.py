"""Numbers that may not change unless the CHANGELOG says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from stress.starts import rank_labels
from stress.store_results import STORED, cases, result

TOLERANCE = 1e-6
HOW_TO_DECLARE = (
    "The result of {name!r} is not what is stored. If that is meant: write into CHANGELOG.md what "
    "changed and why, run `python -m stress.store_results` with the same words, and commit "
    "tests/golden/results.json."
)

DECLARED, STORED_RESULTS = json.loads(STORED.read_text(encoding="utf-8")).values()
CASES = cases()


def test_every_case_is_stored():
    assert sorted(STORED_RESULTS) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_stored_ones(name):
    found, stored = result(*CASES[name]), STORED_RESULTS[name]
    assert sorted(found) == sorted(stored)
    told = HOW_TO_DECLARE.format(name=name)
    for key, value in stored.items():
        np.testing.assert_allclose(
            found[key], value, rtol=TOLERANCE, atol=0.0, err_msg=f"{key}. {told}"
        )


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_the_rows_changes_far_less_than_the_tolerance(name):
    """What is rounding can never be taken for a change, on any processor."""
    scores, n_components, n_iter = CASES[name]
    order = np.random.default_rng(0).permutation(len(scores))
    found, stored = result(scores[order], n_components, n_iter), STORED_RESULTS[name]
    for key, value in stored.items():
        np.testing.assert_allclose(found[key], value, rtol=0.01 * TOLERANCE, err_msg=key)


def test_the_stored_results_are_declared():
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert " ".join(DECLARED.split()) in " ".join(changelog.split())


def test_a_start_uses_every_component():
    for scores, n_components, _ in CASES.values():
        counts = np.bincount(rank_labels(scores, n_components), minlength=n_components)
        assert counts.min() > 0
