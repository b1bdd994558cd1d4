from dataclasses import asdict

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.posterior.assumptions import find_assumptions, other_answers
from gammagmm.posterior.link import Constraints


@pytest.fixture(scope="module")
def scores():
    return GammaGMM(["KNN", "LOF"], scale=None, n_runs=1, random_state=0).fit(load_demo().X).scores_


@pytest.fixture(scope="module")
def fitted(scores):
    return GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)


def changes(constraints):
    before = asdict(constraints)
    return [
        {name: value for name, value in asdict(other).items() if value != before[name]}
        for other in other_answers(constraints)
    ]


def test_the_other_answers_are_ten_times_as_likely_or_less():
    assert changes(Constraints()) == [
        {"p0": pytest.approx(0.1)},
        {"p_high": pytest.approx(0.001)},
        {"p_high": pytest.approx(0.1)},
        {"high_gamma": pytest.approx(0.3), "max_gamma": pytest.approx(0.5)},
    ]


@pytest.mark.parametrize(
    "given",
    [
        Constraints(0.9, 0.95, 0.4, 0.5),
        Constraints(1e-9, 1e-9, 1e-4, 2e-4),
        Constraints(0.5, 0.1, 0.49, 0.5),
    ],
)
def test_any_answers_have_other_valid_ones(given):
    for changed in changes(given):
        assert changed  # `Constraints` itself refuses what is not valid


def test_they_are_what_a_fit_with_these_answers_finds(scores, fitted):
    found = find_assumptions(fitted.fit_.runs, Constraints(), np.random.default_rng(0))
    assert [other.words for other in found] == [
        "p0 = 10.0%",
        "p_high = 0.1%",
        "p_high = 10.0%",
        "high_gamma = 30.0%, max_gamma = 50.0%",
    ]
    moves = [abs(other.mean - fitted.posterior_.mean) for other in found]
    assert min(moves) > 10.0 * fitted.posterior_.standard_error  # so that a wrong answer shows
    for other in found:
        answers = {name: getattr(other, name) for name in asdict(Constraints())}
        # The same seed gives the same mixtures; only the draws of r differ.
        again = GammaGMM("precomputed", n_runs=3, random_state=0, **answers).fit(scores)
        error = 5.0 * again.posterior_.standard_error * np.sqrt(1000 / 200)
        assert other.mean == pytest.approx(again.posterior_.mean, abs=error + 1e-6)


def test_an_answer_without_a_solution_is_nan(fitted):
    found = find_assumptions(
        fitted.fit_.runs, Constraints(0.01, 1e-11, 0.001, 0.01), np.random.default_rng(0)
    )
    assert np.isnan(found[1].mean)


def test_a_likely_answer_goes_halfway_to_certainty():
    others = other_answers(Constraints(p0=0.3, p_high=0.2))
    assert [others[0].p0, others[2].p_high] == pytest.approx([0.65, 0.6])
    assert others[1].p_high == pytest.approx(0.02)
