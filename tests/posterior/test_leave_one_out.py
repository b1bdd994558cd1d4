"""The posterior under other constraints, and with other detectors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.mixture.backends import place_rows
from gammagmm.mixture.fit import ascend
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.statistics import start_moments
from gammagmm.posterior.leave_one_out import (
    N_DRAWS,
    N_STARTS,
    DrawnRun,
    draw_runs,
    leave_one_out,
    relink,
)
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import RunSettings, make_run


@pytest.fixture(scope="module")
def fitted():
    X = make_contaminated(300, 4, 0.05, "global", random_state=2).X
    names = ["KNN", "LOF", "HBOS", "COPOD"]
    return GammaGMM(names, scale=None, n_runs=3, random_state=0).fit(X)


def test_the_default_answer_is_the_estimators(fitted):
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(0))
    theirs, n_unsolved = relink(drawn, Constraints())
    ours = fitted.posterior_
    error = 4 * np.hypot(ours.standard_error, theirs.standard_error)
    assert n_unsolved == 0
    assert theirs.mean == pytest.approx(ours.mean, abs=error)
    again, _ = relink(drawn, Constraints(p0=0.1))
    assert again.prob_zero == 0.1


def test_other_answers_are_those_of_a_new_fit_on_the_same_mixtures(fitted):
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(0))
    again = GammaGMM("precomputed", p_high=0.05, n_runs=3, random_state=0)
    expected = again.fit(fitted.scores_).posterior_
    found, _ = relink(drawn, Constraints(p_high=0.05))
    error = 4 * np.hypot(found.standard_error, expected.standard_error)
    assert [r.elbo for r in again.fit_.runs] == [r.elbo for r in fitted.fit_.runs]
    assert found.mean == pytest.approx(expected.mean, abs=error)


def test_at_the_representative_values_both_answers_hold(fitted):
    """The link was solved there, so the posterior meets p_high to the digit."""
    solved = [run for run in fitted.fit_.runs if run.status == "solved"]
    assert solved
    for run in solved:
        low, high = run.reachable
        at_expected = [DrawnRun(run.components, run.components.anomalousness[:, None])]
        for p_high in (0.01, 0.5 * (max(low, 1e-6) + min(high, 0.02))):
            posterior, n_unsolved = relink(at_expected, Constraints(p_high=p_high))
            assert n_unsolved == 0
            assert posterior.prob_above(0.15) == pytest.approx(p_high, rel=1e-6)


def test_runs_without_a_solution_are_counted(fitted):
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(0))
    posterior, n_unsolved = relink(drawn, Constraints(p_high=1e-300))
    assert n_unsolved == len(fitted.fit_.runs)
    assert posterior.is_degenerate


def test_only_components_that_can_be_candidates_have_draws(fitted):
    for max_gamma in (0.25, 0.5):
        drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(0), max_gamma)
        for run in drawn:
            shares = np.cumsum(run.components.alpha) / run.components.alpha.sum()
            n_drawn = int((shares < max_gamma).sum())
            expected = run.components.anomalousness[:n_drawn]
            error = 4 * run.r.std(axis=1) / np.sqrt(N_DRAWS)
            assert run.r.shape == (n_drawn, N_DRAWS)
            assert np.mean(np.abs(run.r.mean(axis=1) - expected) < error) > 0.95
    relink(drawn, Constraints(max_gamma=0.5))


def test_draws_that_end_too_early_are_refused(fitted):
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(0), 0.16)
    with pytest.raises(ValueError, match=r"do not reach max_gamma=0\.5"):
        relink(drawn, Constraints(max_gamma=0.5))


@pytest.fixture(scope="module")
def disagreeing():
    """Scores of 400 rows: three detectors find the same 12 rows, the last one finds 32 others."""
    rng = np.random.default_rng(3)
    scores = rng.uniform(0.0, 1.0, (400, 4)) + rng.uniform(0.0, 1.0, (400, 1))
    scores[:12, :3] += rng.uniform(6.0, 9.0, (12, 3))
    scores[12:44, 3] += rng.uniform(20.0, 40.0, 32)
    return GammaGMM("precomputed", n_runs=6, random_state=0).fit(scores)


def left_out(estimator, runs=None, constraints=None, n_jobs=None):
    return leave_one_out(
        estimator.fit_.runs if runs is None else runs,
        estimator.fit_.score_space,
        MixturePrior(),
        100,
        constraints or Constraints(),
        np.random.default_rng(0),
        n_jobs,
    )


def test_without_a_detector_the_estimate_is_near_that_of_a_fit_without_it(disagreeing):
    found = left_out(disagreeing)
    columns = [np.arange(4), *(np.delete(np.arange(4), j) for j in range(4))]
    refits = [
        GammaGMM("precomputed", n_runs=6, random_state=1).fit(disagreeing.scores_[:, chosen])
        for chosen in columns
    ]
    assert len(found) == len(refits)
    for ours, refit in zip(found, refits, strict=True):
        theirs = refit.posterior_
        # The Monte Carlo error of two means over runs.
        error = 4 * theirs.between_runs * np.sqrt(1 / N_STARTS + 1 / len(refit.fit_.runs))
        assert ours.mean == pytest.approx(theirs.mean, abs=error)
    # Without the last detector, only the 3 % that the others find are left.
    assert found[-1].mean < 0.6 * found[0].mean


def continued_by_hand(estimator, run, columns):
    """The run on its most probable assignment of the rows, in the score space of `columns`."""
    Z, c = estimator.fit_.score_space, run.components
    log_densities = [
        np.log(alpha) + multivariate_normal.logpdf(Z, mean, covariance)
        for alpha, mean, covariance in zip(c.alpha, c.means, c.covariances, strict=True)
    ]
    place = np.argsort(np.argsort(-c.alpha, kind="stable"))  # the largest component is the first
    labels = place[np.argmax(log_densities, axis=0)]
    prior = MixturePrior().resolve(Z[:, columns])
    whitened = prior.whiten(Z[:, columns])
    start = start_moments(whitened, labels, 100)[None]
    ((_, mixture),) = ascend(
        place_rows(whitened[None], "numpy"), start, prior, 10, 0.1, accelerated=True
    )
    return make_run(mixture, RunSettings(Constraints(), prior), np.random.default_rng(1)).posterior


def test_each_posterior_is_that_of_the_run_without_the_detector(disagreeing):
    run = disagreeing.fit_.runs[0]
    found = left_out(disagreeing, [run])
    columns = [np.arange(4), *(np.delete(np.arange(4), j) for j in range(4))]
    expected = [continued_by_hand(disagreeing, run, chosen) for chosen in columns]
    errors = [
        np.hypot(p.standard_error, q.standard_error) for p, q in zip(found, expected, strict=True)
    ]
    for ours, theirs, error in zip(found, expected, errors, strict=True):
        assert ours.mean == pytest.approx(theirs.mean, abs=4 * error + 1e-9)
    # The errors are small enough to distinguish the detectors.
    assert np.ptp([p.mean for p in expected[1:]]) > 12 * max(errors)


def test_leaving_one_out_does_not_depend_on_the_number_of_jobs(disagreeing):
    one, two = (left_out(disagreeing, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert [p.mean for p in one] == [p.mean for p in two]


def test_the_next_runs_are_used_if_the_first_have_no_solution(disagreeing):
    """A start in which all rows are in one component stays there, and has no solution."""
    good = disagreeing.fit_.runs[0]
    heaviest = int(good.components.alpha.argmax())
    bad = replace(good, components=good.components[slice(heaviest, heaviest + 1)])
    assert all(p.is_degenerate for p in left_out(disagreeing, [bad] * N_STARTS))
    found = left_out(disagreeing, [bad] * N_STARTS + [good])
    alone = left_out(disagreeing, [good])
    for p, q in zip(found, alone, strict=True):
        assert p.mean == pytest.approx(q.mean, abs=4 * np.hypot(p.standard_error, q.standard_error))


def test_without_a_solution_leaving_one_out_gives_the_point_mass(disagreeing):
    found = left_out(disagreeing, constraints=Constraints(p_high=1e-300))
    assert all(p.is_degenerate for p in found)


def test_four_times_the_draws_halve_the_standard_error(fitted):
    drawn = draw_runs(fitted.fit_.runs, np.random.default_rng(0), n_draws=100)
    more = [replace(run, r=np.tile(run.r, 4)) for run in drawn]
    (few, _), (many, _) = (relink(runs, Constraints(p_high=0.05)) for runs in (drawn, more))
    assert few.mean == pytest.approx(many.mean, rel=1e-12)
    assert few.standard_error == pytest.approx(2.0 * many.standard_error, rel=1e-9) != 0.0


def test_later_runs_are_not_used_if_the_first_have_a_solution(disagreeing):
    runs = (disagreeing.fit_.runs * N_STARTS)[: N_STARTS + 2]
    few, all_runs = (left_out(disagreeing, each) for each in (runs[:N_STARTS], runs))
    assert [posterior.mean for posterior in few] == [posterior.mean for posterior in all_runs]
