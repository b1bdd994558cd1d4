"""Stored numbers, which may change only if the CHANGELOG says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gammagmm import GammaGMM
from tests.support.fixed_starts import CASES, STORED_RESULTS, rank_labels, result_of

TOLERANCE = 1e-6
HOW_TO_DECLARE = (
    "The result of {name!r} differs from the stored one. If this is intended, write in "
    "CHANGELOG.md what changed and why, run `python -m stress.store_results` with the same words, "
    "and commit tests/golden/results.json."
)

DECLARED, STORED = json.loads(STORED_RESULTS.read_text(encoding="utf-8")).values()


def test_every_case_is_stored():
    assert sorted(STORED) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_stored_ones(name):
    found, stored = result_of(CASES[name].make_scores(), CASES[name]), STORED[name]
    assert sorted(found) == sorted(stored)
    message = HOW_TO_DECLARE.format(name=name)
    for key, value in stored.items():
        np.testing.assert_allclose(
            found[key], value, rtol=TOLERANCE, atol=0.0, err_msg=f"{key}. {message}"
        )


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_the_rows_changes_far_less_than_the_tolerance(name):
    """Rounding, which differs between processors, is never mistaken for a change."""
    scores = CASES[name].make_scores()
    order = np.random.default_rng(0).permutation(len(scores))
    found, stored = result_of(scores[order], CASES[name]), STORED[name]
    for key, value in stored.items():
        np.testing.assert_allclose(found[key], value, rtol=0.01 * TOLERANCE, err_msg=key)


def test_plain_steps_on_all_rows_give_the_stored_answer():
    """The settings of the paper, from random starts: no scaling, acceleration or sample of rows."""
    scores = np.exp(np.random.default_rng(3).normal(size=(60, 3)))
    scores[:4] *= np.exp(4)
    estimator = GammaGMM(
        "precomputed",
        n_runs=1,
        n_components=6,
        n_draws=4,
        max_restarts=20,
        tol=1e-3,
        max_mixture_rows=None,
        scale=None,
        random_state=1,
    )
    posterior = estimator.fit(scores).posterior_
    assert posterior.mean == pytest.approx(0.04610653446970793, rel=1e-9)
    expected = (0.012203286992681786, 0.09512461937283617)
    assert posterior.interval() == pytest.approx(expected, rel=1e-6)


def test_the_stored_results_are_declared():
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert " ".join(DECLARED.split()) in " ".join(changelog.split())


def test_a_start_uses_every_component():
    for case in CASES.values():
        labels = rank_labels(case.make_scores(), case.n_components)
        counts = np.bincount(labels, minlength=case.n_components)
        assert counts.min() > 0
