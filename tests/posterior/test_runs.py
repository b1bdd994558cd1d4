import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from gammagmm.errors import NoSolutionWarning, SeparateRowsWarning
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.mixture.fit import CHECK_EVERY
from gammagmm.mixture.m_step import Parameters
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import (
    AUTO_TOL,
    RunSettings,
    choose_rows,
    count_doubts,
    first_solved,
    fit_runs,
    plan_runs,
    unsolved_runs,
)
from tests.support.solved_scores import grouped_scores, has_content

LOW = Constraints(p_high=0.001)


def two_equal_clusters(rng, n=120):
    """Scores of which half lie in a tight high cluster: no share below 15 % can be split off."""
    high = rng.normal(5.0, 0.01, size=(n // 2, 2))
    low = rng.normal(1.0, 0.01, size=(n // 2, 2))
    return np.vstack([high, low])


def settings_for(Z, **constraints):
    return RunSettings(Constraints(**constraints), MixturePrior().resolve(Z), 5, n_draws=50)


def solved_run(rng, **constraints):
    """A run with several candidates, in which delta is below 0."""
    Z = np.log(grouped_scores(rng))
    settings = replace(settings_for(Z, p_high=0.05, **constraints), n_components=20)
    (run,) = fit_runs(Z, settings, (1, 0), rng)
    assert has_content([run])
    return run


def test_a_solved_run_reports_what_it_found(rng):
    run = solved_run(rng)
    assert abs(run.weights.sum() - 1.0) < 1e-12
    assert run.weights.max() < 0.99
    assert run.reached == run.posterior.prob_above(0.15)
    assert run.reachable[0] <= run.reachable[1]
    assert run.converged
    assert run.n_restarts == 0


def test_probabilities_of_the_components_come_from_the_runs_posterior(rng):
    run = solved_run(rng, p0=0.03)
    pmf = run.n_anomalous_pmf
    assert pmf[0] == 0.03
    np.testing.assert_allclose(pmf[1:], 0.97 * run.weights)
    # The k-th component is anomalous if at least k are.
    assert len(run.p_anomalous) == len(run.components) > len(run.weights)
    expected = [pmf[k + 1 :].sum() for k in range(len(run.components))]
    np.testing.assert_allclose(run.p_anomalous, expected)


def test_an_unsolved_run_has_no_anomalous_component(rng):
    scores = two_equal_clusters(rng)
    (run,) = fit_runs(scores, settings_for(scores), (1, 0), rng)
    assert run.n_anomalous_pmf.tolist() == [1.0]
    assert run.p_anomalous.tolist() == [0.0] * len(run.components)


def test_the_first_solved_run_is_the_first_with_a_posterior(rng):
    Z = np.vstack([rng.normal(size=(300, 2)), rng.normal(4.0, 0.5, size=(12, 2))])
    (solved,) = fit_runs(Z, settings_for(Z, p_high=0.02), (1, 0), rng)
    unsolved = replace(solved, status="unsolved", posterior=None)
    other = replace(unsolved, n_restarts=1)
    assert first_solved((unsolved, solved, replace(solved, n_restarts=2))) is solved
    assert first_solved((unsolved, other)) is unsolved


@pytest.mark.usefixtures("two_threads")
def test_runs_and_restarts_do_not_depend_on_the_number_of_threads(rng):
    scores = two_equal_clusters(rng)
    settings = settings_for(scores)
    with threadpool_limits(1, user_api="blas"):
        one = fit_runs(scores, settings, (2, 3), np.random.default_rng(0), 1)
    three = fit_runs(scores, settings, (2, 3), np.random.default_rng(0), 3)
    assert [run.elbo for run in one] == [run.elbo for run in three]
    assert [run.n_restarts for run in one] == [run.n_restarts for run in three] == [2, 1]


def test_a_run_is_the_same_alone_and_among_others(rng):
    Z = np.vstack([rng.normal(size=(300, 2)), rng.normal(4.0, 0.5, size=(12, 2))])
    settings = settings_for(Z, p_high=0.02)
    several = fit_runs(Z, settings, (4, 0), np.random.default_rng(0))
    for n in (1, 2, 3):
        fewer = fit_runs(Z, settings, (n, 0), np.random.default_rng(0))
        for alone, run in zip(fewer, several[:n], strict=True):
            assert alone.elbo == pytest.approx(run.elbo, rel=1e-12)
            assert alone.n_iter == run.n_iter


class TestMaxRows:
    def test_each_run_has_its_own_random_rows(self):
        streams = np.random.default_rng(0).spawn(3)
        rows = choose_rows(1000, 100, streams)
        assert rows.shape == (3, 100)
        assert (np.diff(rows, axis=1) > 0).all()
        assert len(np.unique(rows)) > 200
        assert choose_rows(100, 100, streams) is None
        assert choose_rows(100, None, streams) is None

    def test_a_run_sees_its_rows_alone(self, rng):
        Z = np.vstack([rng.normal(size=(900, 2)), rng.normal(4.0, 0.5, size=(36, 2))])
        settings = replace(settings_for(Z, p_high=0.02), max_rows=300)
        runs = fit_runs(Z, settings, (2, 0), np.random.default_rng(0))
        rows = choose_rows(len(Z), 300, np.random.default_rng(0).spawn(2))
        for i, own in enumerate(rows):
            others = np.full(len(Z), True)
            others[own] = False
            changed = np.where(others[:, None], 50.0, Z)
            again = fit_runs(changed, settings, (2, 0), np.random.default_rng(0))[i]
            assert again.elbo == pytest.approx(runs[i].elbo, rel=1e-12)
            assert runs[i].components.alpha.sum() < 310

    def test_fewer_rows_are_a_note(self, rng):
        Z = rng.normal(size=(500, 2))
        prior = MixturePrior().resolve(Z)
        settings, notes = plan_runs(500, prior, Constraints(), 100, max_rows=60)
        assert settings.n_components == 59
        assert [(note.subject, note.message) for note in notes] == [
            ("max_mixture_rows", "each run was fitted to 60 random rows of 500"),
            ("n_components", "lowered from 100 to 59: each run has 60 rows"),
        ]
        assert plan_runs(500, prior, Constraints(), 100)[1] == []


def test_unsolved_runs_are_restarted_within_the_common_budget(rng):
    scores = two_equal_clusters(rng)
    runs = fit_runs(scores, settings_for(scores), (3, 5), rng)
    assert [run.status for run in runs] == ["unsolved"] * 3
    assert sum(run.n_restarts for run in runs) == 5
    assert max(run.n_restarts for run in runs) == 2
    assert all(run.posterior is None for run in runs)


class CountedDetector(BaseEstimator):
    """Scores rows by their first column and counts the fits of all its copies."""

    n_fits = 0

    def fit(self, X, y=None):
        type(self).n_fits += 1
        self.decision_scores_ = X[:, 0]
        return self

    def decision_function(self, X):
        return X[:, 0]


def test_no_solution_is_the_point_mass_at_zero_and_refits_the_mixture_only(rng):
    detectors = [CountedDetector(), CountedDetector()]
    estimator = GammaGMM(detectors, n_components=5, n_runs=2, max_restarts=4, random_state=0)
    with pytest.warns(NoSolutionWarning), pytest.warns(SeparateRowsWarning):
        estimator.fit(two_equal_clusters(rng))
    assert CountedDetector.n_fits == 2
    assert sum(run.n_restarts for run in estimator.fit_.runs) == 4
    assert estimator.posterior_.is_degenerate
    assert estimator.contamination_ == 0.0
    assert estimator.labels_.sum() == 0
    (note,) = (note for note in estimator.notes_ if note.code == "link.no solution")
    assert note.fields["n_runs"] == 2
    assert note.fields["is_first_large"]
    assert note.fields["low"] > 0.9


def test_only_solved_runs_enter_the_posterior(rng):
    scores = np.exp(np.vstack([rng.normal(size=(300, 2)), rng.normal(2.0, 0.5, size=(12, 2))]))
    settings = {"n_components": 8, "n_runs": 4, "max_restarts": 0, "tol": 1e-3, "random_state": 0}
    estimator = GammaGMM("precomputed", **settings)
    estimator.fit(scores)
    (note,) = (note for note in estimator.notes_ if note.code == "link.unsolved")
    assert (note.fields["n_unsolved"], note.fields["n_runs"]) == (2, 4)
    means = [run.posterior.mean for run in estimator.fit_.runs if run.posterior is not None]
    assert len(means) == 2
    np.testing.assert_allclose(estimator.posterior_.mean, np.mean(means))


def test_an_unsolved_run_has_no_weights(rng):
    Z = two_equal_clusters(rng)
    (run,) = fit_runs(Z, settings_for(Z, p_high=0.001), (1, 0), rng)
    assert (run.status, len(run.weights), run.posterior) == ("unsolved", 0, None)
    assert np.isnan([run.reached, run.tau, run.delta]).all()


def test_the_defaults_are_those_of_the_estimator():
    Z = np.random.default_rng(0).normal(size=(50, 2))
    settings = RunSettings(Constraints(), MixturePrior().resolve(Z))
    estimator = GammaGMM()
    for name in ("n_components", "n_draws", "max_iter"):
        assert getattr(settings, name) == getattr(estimator, name)
    assert (settings.tol, settings.accelerated, settings.max_rows) == (AUTO_TOL, True, None)


def test_as_many_components_as_rows_are_allowed():
    Z = np.random.default_rng(0).normal(size=(6, 2))
    prior = MixturePrior().resolve(Z)
    for n_components, n_used in ((5, 5), (6, 6), (7, 5)):
        settings, notes = plan_runs(6, prior, Constraints(), n_components)
        assert (settings.n_components, len(notes)) == (n_used, int(n_components > 6))


def test_progress_tells_the_seconds_since_the_start(rng):
    Z, calls = two_equal_clusters(rng), []
    settings = replace(settings_for(Z), progress=lambda *call: calls.append(call))
    began = time.perf_counter()
    fit_runs(Z, settings, (2, 0), rng)
    assert {name for name, *_ in calls} == {"run 1", "run 2"}
    assert all(0.0 < seconds <= time.perf_counter() - began for *_, seconds in calls)


def test_automatic_restarts_go_on_while_no_run_has_a_solution(rng):
    run = solved_run(rng)
    unsolved = replace(run, status="unsolved", posterior=None, n_restarts=1)
    some, none = {0: run, 1: unsolved, 2: unsolved}, {0: unsolved, 1: unsolved}
    assert unsolved_runs(some, None) == [1]  # 2 of 3
    assert unsolved_runs(some | {2: replace(unsolved, n_restarts=0)}, None) == [1, 2]
    assert unsolved_runs(some | {2: replace(unsolved, n_restarts=2)}, None) == []
    assert unsolved_runs(none | {1: replace(unsolved, n_restarts=98)}, None) == [0]
    assert unsolved_runs(none | {1: replace(unsolved, n_restarts=99)}, None) == []
    assert unsolved_runs(some, 2) == []
    assert unsolved_runs(some, 0) == []


def test_a_start_with_a_component_that_is_far_too_heavy_ends_early_without_a_solution():
    scores = np.random.default_rng(0).normal(size=(600, 2))
    settings = replace(settings_for(scores), tol=1e-9, n_components=20)
    (early,) = fit_runs(scores, settings, (1, 0), np.random.default_rng(0))
    assert (early.status, early.converged, early.n_iter % CHECK_EVERY) == ("unsolved", False, 0)
    assert early.first_share > 0.5 * (LOW.high_gamma + LOW.max_gamma)
    exact = replace(settings, accelerated=False, tol=1e-3)
    (whole,) = fit_runs(scores, exact, (1, 0), np.random.default_rng(0))
    assert whole.converged
    assert whole.n_iter > early.n_iter


def test_a_light_component_is_not_too_heavy_however_large_the_others_are(rng):
    scores = np.vstack([rng.normal(size=(900, 2)), rng.normal(8.0, 0.5, size=(40, 2))])
    (fitted,) = fit_runs(scores, replace(settings_for(scores), n_components=2), (1, 0), rng)
    parts = fitted.components
    sticks = np.stack([parts.alpha, np.ones(len(parts))])
    parameters = Parameters(
        sticks, parts.means, parts.covariances, parts.mean_precision, parts.degrees_of_freedom
    )
    assert parts.alpha.max() > 0.5 * parts.alpha.sum()
    assert count_doubts(Constraints(), parameters) == 0
    assert count_doubts(Constraints(), replace(parameters, means=-parts.means)) == 2
    share = parts.alpha[0] / parts.alpha.sum()
    for max_gamma, n_doubts in ((share - 0.01, 2), (share + 0.01, 1), (share + 0.02, 0)):
        limits = Constraints(high_gamma=share - 0.015, max_gamma=max_gamma)
        assert count_doubts(limits, parameters) == n_doubts
