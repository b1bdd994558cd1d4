from dataclasses import asdict, replace

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo, make_contaminated
from gammagmm.posterior.assumptions import (
    N_DRAWS,
    DrawnRun,
    draw_runs,
    find_assumptions,
    other_answers,
    relink,
)
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


@pytest.fixture(scope="module")
def spread():
    X = make_contaminated(300, 4, 0.05, "global", random_state=3).X
    names = ["KNN", "LOF", "HBOS", "COPOD"]
    return GammaGMM(names, scale=None, n_runs=3, random_state=0).fit(X)


def test_the_default_answer_is_the_estimators(spread):
    drawn = draw_runs(spread.fit_.runs, np.random.default_rng(0))
    theirs, n_unsolved = relink(drawn, Constraints())
    ours = spread.posterior_
    error = 4 * np.hypot(ours.standard_error, theirs.standard_error)
    assert n_unsolved == 0
    assert theirs.mean == pytest.approx(ours.mean, abs=error)
    again, _ = relink(drawn, Constraints(p0=0.1))
    assert again.prob_zero == 0.1


def test_other_answers_are_those_of_a_new_fit_on_the_same_mixtures(spread):
    drawn = draw_runs(spread.fit_.runs, np.random.default_rng(0))
    again = GammaGMM("precomputed", p_high=0.05, n_runs=3, random_state=0)
    expected = again.fit(spread.scores_).posterior_
    found, _ = relink(drawn, Constraints(p_high=0.05))
    error = 4 * np.hypot(found.standard_error, expected.standard_error)
    assert [r.elbo for r in again.fit_.runs] == [r.elbo for r in spread.fit_.runs]
    assert found.mean == pytest.approx(expected.mean, abs=error)


def test_at_the_representative_values_both_answers_hold(spread):
    """The link was solved there, so the posterior meets p_high to the digit."""
    solved = [run for run in spread.fit_.runs if run.status == "solved"]
    assert solved
    for run in solved:
        low, high = run.reachable
        at_expected = [DrawnRun(run.components, run.components.anomalousness[:, None])]
        for p_high in (0.01, 0.5 * (max(low, 1e-6) + min(high, 0.02))):
            posterior, n_unsolved = relink(at_expected, Constraints(p_high=p_high))
            assert n_unsolved == 0
            assert posterior.prob_above(0.15) == pytest.approx(p_high, rel=1e-6)


def test_runs_without_a_solution_are_counted(spread):
    drawn = draw_runs(spread.fit_.runs, np.random.default_rng(0))
    posterior, n_unsolved = relink(drawn, Constraints(p_high=1e-300))
    assert n_unsolved == len(spread.fit_.runs)
    assert posterior.is_degenerate


def test_only_components_that_can_be_candidates_have_draws(spread):
    for max_gamma in (0.25, 0.5):
        drawn = draw_runs(spread.fit_.runs, np.random.default_rng(0), max_gamma)
        for run in drawn:
            shares = np.cumsum(run.components.alpha) / run.components.alpha.sum()
            n_drawn = int((shares < max_gamma).sum())
            expected = run.components.anomalousness[:n_drawn]
            error = 4 * run.r.std(axis=1) / np.sqrt(N_DRAWS)
            assert run.r.shape == (n_drawn, N_DRAWS)
            assert np.mean(np.abs(run.r.mean(axis=1) - expected) < error) > 0.95
    relink(drawn, Constraints(max_gamma=0.5))


def test_draws_that_end_too_early_are_refused(spread):
    drawn = draw_runs(spread.fit_.runs, np.random.default_rng(0), 0.16)
    with pytest.raises(ValueError, match=r"do not reach max_gamma=0\.5"):
        relink(drawn, Constraints(max_gamma=0.5))


def test_four_times_the_draws_halve_the_standard_error(spread):
    drawn = draw_runs(spread.fit_.runs, np.random.default_rng(0), n_draws=100)
    more = [replace(run, r=np.tile(run.r, 4)) for run in drawn]
    (few, _), (many, _) = (relink(runs, Constraints(p_high=0.05)) for runs in (drawn, more))
    assert few.mean == pytest.approx(many.mean, rel=1e-12)
    assert few.standard_error == pytest.approx(2.0 * many.standard_error, rel=1e-9) != 0.0
