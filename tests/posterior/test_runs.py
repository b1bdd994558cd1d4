from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator

from gammagmm.errors import MixtureConvergenceWarning, NoSolutionWarning, UnsolvedRunsWarning
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import RunSettings, describe_runs, first_solved, fit_runs


def two_equal_clusters(rng, n=120):
    """Scores of which half lie in a tight high cluster: no share below 15 % can be split off."""
    high = rng.normal(5.0, 0.01, size=(n // 2, 2))
    low = rng.normal(1.0, 0.01, size=(n // 2, 2))
    return np.vstack([high, low])


def settings_for(Z, **constraints):
    return RunSettings(Constraints(**constraints), MixturePrior().resolve(Z), 5, n_draws=50)


def test_a_solved_run_reports_what_it_found(rng):
    Z = np.vstack([rng.normal(size=(300, 2)), rng.normal(4.0, 0.5, size=(12, 2))])
    (run,) = fit_runs(Z, settings_for(Z, p_high=0.02), (1, 0), rng)
    assert run.status in ("solved", "slack")
    assert abs(run.weights.sum() - 1.0) < 1e-12
    assert run.reached == run.posterior.prob_above(0.15)
    assert run.reachable[0] <= run.reachable[1]
    assert run.converged
    assert run.n_restarts == 0


def test_probabilities_of_the_components_come_from_the_runs_posterior(rng):
    Z = np.vstack([rng.normal(size=(300, 2)), rng.normal(4.0, 0.5, size=(12, 2))])
    (run,) = fit_runs(Z, settings_for(Z, p0=0.03, p_high=0.02), (1, 0), rng)
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


def test_restarts_are_the_same_in_threads_and_in_processes(rng):
    scores = two_equal_clusters(rng)
    settings = settings_for(scores)
    threads = fit_runs(scores, settings, (2, 3), np.random.default_rng(0), 2)
    with parallel_config("loky"):
        processes = fit_runs(scores, settings, (2, 3), np.random.default_rng(0), 2)
    assert [run.elbo for run in processes] == pytest.approx([run.elbo for run in threads])
    assert [run.n_restarts for run in processes] == [run.n_restarts for run in threads] == [2, 1]


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
    with pytest.warns(
        NoSolutionWarning, match=r"any of 2 runs: .* allow 0\.9\d+ to .* raise max_gamma, or check"
    ):
        estimator.fit(two_equal_clusters(rng))
    assert CountedDetector.n_fits == 2
    assert sum(run.n_restarts for run in estimator.runs_) == 4
    assert estimator.posterior_.is_degenerate
    assert estimator.contamination_ == 0.0
    assert estimator.labels_.sum() == 0
    assert any(note.step == "link" and "No solution" in note.message for note in estimator.notes_)


def test_only_solved_runs_enter_the_posterior(rng):
    scores = np.exp(np.vstack([rng.normal(size=(300, 2)), rng.normal(2.0, 0.5, size=(12, 2))]))
    estimator = GammaGMM("precomputed", n_components=8, n_runs=4, max_restarts=0, random_state=0)
    with pytest.warns(UnsolvedRunsWarning, match="2 of 4 runs have no solution and are excluded"):
        estimator.fit(scores)
    means = [run.posterior.mean for run in estimator.runs_ if run.posterior is not None]
    assert len(means) == 2
    np.testing.assert_allclose(estimator.posterior_.mean, np.mean(means))


def test_the_notes_describe_every_kind_of_run(rng):
    Z = np.vstack([rng.normal(size=(300, 2)), rng.normal(4.0, 0.5, size=(12, 2))])
    (solved,) = fit_runs(Z, settings_for(Z, p_high=0.02), (1, 0), rng)
    solved = replace(solved, status="solved", reachable=(0.001, 0.5))
    slack = replace(solved, status="slack", reachable=(0.001, 0.008), n_restarts=1)
    unsolved = replace(solved, status="unsolved", reachable=(0.2, 0.5), posterior=None)
    capped = replace(solved, converged=False, n_restarts=2)
    assert describe_runs((solved, solved), Constraints(), 40) == []
    described = describe_runs((solved, slack, unsolved, capped), Constraints(), 40)
    assert [category for _, category in described] == [
        MixtureConvergenceWarning,
        None,
        None,
        UnsolvedRunsWarning,
    ]
    assert [note.message for note, _ in described] == [
        "1 of 4 runs stopped at max_iter=40 before they converged: raise max_iter or tol.",
        "3 starts had no solution and were replaced by new ones.",
        "In 1 of 4 runs P(gamma >= 0.15) is at most 0.008, below p_high=0.01: these runs use "
        "delta = 0.",
        "1 of 4 runs have no solution and are excluded from the posterior: their mixtures allow "
        "0.2 to 0.5 for P(gamma >= 0.15), but p_high is 0.01. Raise p_high or high_gamma, or check "
        "for duplicate rows.",
    ]
    (one,) = describe_runs((slack,), Constraints(p_high=0.001), 40)[:1]
    assert one[0].message == "1 start had no solution and was replaced by a new one."
