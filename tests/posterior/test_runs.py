import numpy as np
import pytest
from sklearn.base import BaseEstimator

from gammagmm.errors import NoSolutionWarning, UnsolvedRunsWarning
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import RunSettings, fit_runs


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


def test_unsolved_runs_are_started_anew_within_the_common_budget(rng):
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
        NoSolutionWarning, match=r"any of 2 runs: .* allow 0\.9\d+ to .* raise max_gamma, or look"
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
    with pytest.warns(UnsolvedRunsWarning, match="2 of 4 runs have no solution and do not count"):
        estimator.fit(scores)
    means = [run.posterior.mean for run in estimator.runs_ if run.posterior is not None]
    assert len(means) == 2
    np.testing.assert_allclose(estimator.posterior_.mean, np.mean(means))
