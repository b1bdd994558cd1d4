import numpy as np
import pytest
from sklearn.mixture import BayesianGaussianMixture

from gammagmm.errors import MixtureConvergenceWarning, MixtureError
from gammagmm.mixture.backends import NumpyRows
from gammagmm.mixture.fit import begin, fit_mixture, restore, start_labels, update
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.statistics import Statistics, start_statistics
from tests.support.sklearn_mixture import (
    assert_same_parameters,
    sklearn_iteration,
    sklearn_start,
)


@pytest.mark.parametrize("name", ["Glass", "Cardiotocography", "PageBlocks"])
def test_every_iterate_equals_scikit_learns_and_the_bound_does_not_fall(name, benchmark_space):
    Z = benchmark_space(name)
    prior = MixturePrior().resolve(Z)
    labels = start_labels(Z, 100, np.random.default_rng(3))
    oracle = sklearn_start(Z, labels, 100, prior)
    rows = NumpyRows(prior.whiten(Z), n_threads=2)
    state = update(start_statistics(rows.Z, labels, 100), prior)
    previous = -np.inf
    for _ in range(50):
        bound = sklearn_iteration(oracle, Z)
        state = update(rows.statistics(state.coefficients), prior)
        assert_same_parameters(restore(state.parameters, prior), oracle, rtol=1e-9)
        assert abs(state.elbo - bound) <= 1e-9 * abs(bound)
        assert state.elbo >= previous - 1e-10 * abs(state.elbo)
        previous = state.elbo


@pytest.mark.parametrize(
    "prior",
    [
        MixturePrior("identity", concentration=2.0, mean_precision=0.3),
        MixturePrior(np.diag([0.5, 1.0, 2.0]), degrees_of_freedom=7.5, reg_covar=1e-3),
    ],
)
def test_every_prior_parameter_means_what_it_means_in_scikit_learn(prior, rng):
    Z = rng.normal(size=(300, 3)) * [1.0, 2.0, 0.5]
    resolved = prior.resolve(Z)
    labels = start_labels(Z, 8, rng)
    oracle = sklearn_start(Z, labels, 8, resolved)
    rows = NumpyRows(resolved.whiten(Z))
    state = update(start_statistics(rows.Z, labels, 8), resolved)
    for _ in range(5):
        bound = sklearn_iteration(oracle, Z)
        state = update(rows.statistics(state.coefficients), resolved)
    assert_same_parameters(restore(state.parameters, resolved), oracle, rtol=1e-9)
    assert abs(state.elbo - bound) <= 1e-9 * abs(bound)


def test_a_fit_stops_at_scikit_learns_iteration(benchmark_space):
    Z = benchmark_space("Glass")
    mixture = fit_mixture(Z, 20, random_state=5)
    # The seed that fit_mixture hands to k-means, taken from the same generator.
    seed = int(np.random.default_rng(5).integers(2**31 - 1))
    oracle = BayesianGaussianMixture(
        n_components=20,
        weight_concentration_prior=0.01,
        mean_prior=np.zeros(10),
        max_iter=1500,
        random_state=np.random.RandomState(seed),
    ).fit(Z)
    assert (mixture.n_iter, mixture.converged) == (oracle.n_iter_, True)
    assert abs(mixture.elbo - oracle.lower_bound_) < 1e-9 * abs(oracle.lower_bound_)
    assert_same_parameters(mixture, oracle, rtol=1e-8)


def test_fewer_distinct_rows_than_components_leave_the_rest_empty(rng):
    Z = np.repeat(rng.normal(size=(3, 2)), 10, axis=0)
    labels = start_labels(Z, 8, rng)
    assert len(np.unique(labels)) == 3
    mixture = fit_mixture(Z, 8, random_state=0)
    assert np.isfinite(mixture.covariances).all()


def test_a_run_that_hits_max_iter_says_what_to_do(rng):
    with pytest.warns(MixtureConvergenceWarning, match=r"max_iter=2 iterations\. Raise max_iter"):
        mixture = fit_mixture(rng.normal(size=(200, 2)), 10, max_iter=2, random_state=0)
    assert (mixture.n_iter, mixture.converged) == (2, False)


def test_a_bound_that_is_not_finite_is_an_error_that_says_what_to_do(rng):
    Z = rng.normal(size=(50, 2))
    prior = MixturePrior().resolve(Z)
    start = start_statistics(prior.whiten(Z), start_labels(Z, 5, rng), 5)
    with pytest.raises(MixtureError, match="bound is not finite") as error:
        begin(start, prior, 10, 1e-3).step(Statistics(start.moments, np.inf))
    assert error.value.todo == "Scale the columns to similar ranges."
