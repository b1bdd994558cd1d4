import numpy as np
import pytest
from sklearn.mixture import BayesianGaussianMixture

from gammagmm.errors import MixtureConvergenceWarning
from gammagmm.mixture.fit import fit_mixture, restore, start_labels, update
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.rows import NumpyRows
from gammagmm.mixture.statistics import start_statistics


def sklearn_start(Z, labels, n_components, prior):
    """scikit-learn's mixture after its initialisation from a hard assignment of the rows."""
    oracle = BayesianGaussianMixture(
        n_components=n_components,
        weight_concentration_prior=prior.concentration,
        mean_precision_prior=prior.mean_precision,
        mean_prior=np.zeros(Z.shape[1]),
        degrees_of_freedom_prior=prior.degrees_of_freedom,
        covariance_prior=prior.covariance,
        reg_covar=prior.reg_covar,
    )
    resp = np.zeros((len(Z), n_components))
    resp[np.arange(len(Z)), labels] = 1.0
    oracle._check_parameters(Z)
    oracle._initialize(Z, resp)
    return oracle


def sklearn_iteration(oracle, Z):
    log_prob_norm, log_resp = oracle._e_step(Z)
    oracle._m_step(Z, log_resp)
    return oracle._compute_lower_bound(log_resp, log_prob_norm)


def assert_same_parameters(ours, oracle, rtol):
    for name in ("weight_concentration", "mean_precision", "degrees_of_freedom"):
        np.testing.assert_allclose(getattr(ours, name), getattr(oracle, f"{name}_"), rtol=rtol)
    for name in ("means", "covariances"):
        theirs = getattr(oracle, f"{name}_")
        # Relative to the largest entry of each component: single entries pass through 0.
        scale = np.abs(theirs).max(axis=tuple(range(1, theirs.ndim)), keepdims=True)
        assert np.max(np.abs(getattr(ours, name) - theirs) / scale) < rtol, name


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
    with pytest.warns(MixtureConvergenceWarning, match="max_iter=2 iterations: raise max_iter"):
        mixture = fit_mixture(rng.normal(size=(200, 2)), 10, max_iter=2, random_state=0)
    assert (mixture.n_iter, mixture.converged) == (2, False)


def test_two_detectors_with_the_same_scores_get_a_regular_prior(rng):
    column = rng.normal(size=(100, 1))
    Z = np.hstack([column, column])
    prior = MixturePrior().resolve(Z)
    assert prior.is_regularised
    np.testing.assert_allclose(
        prior.covariance, np.cov(Z.T) + 1e-6 * np.var(column, ddof=1) * np.eye(2)
    )
    assert not MixturePrior().resolve(rng.normal(size=(100, 2))).is_regularised
    assert np.isfinite(fit_mixture(Z, 10, random_state=0).elbo)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (MixturePrior("diagonal"), "covariance must be 'empirical', 'identity' or an array, got"),
        (MixturePrior(np.eye(3)), r"must have shape \(2, 2\), got \(3, 3\)"),
        (MixturePrior(-np.eye(2)), "must be finite, symmetric and positive definite"),
        (MixturePrior(np.full((2, 2), np.nan)), "must be finite, symmetric and positive"),
        (MixturePrior(concentration=0.0), "mixture_prior.concentration must be a finite number"),
        (MixturePrior(degrees_of_freedom=1), "must exceed the number of detectors less one, 1"),
    ],
)
def test_a_bad_prior_is_refused_by_name(prior, message, rng):
    with pytest.raises(ValueError, match=message):
        prior.resolve(rng.normal(size=(20, 2)))
