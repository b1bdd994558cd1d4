import numpy as np
import pytest
from scipy.special import betaln, digamma, multigammaln
from sklearn.cluster import KMeans
from sklearn.mixture import BayesianGaussianMixture

from gammagmm.errors import MixtureError
from gammagmm.mixture.backends import NumpyRows, TorchRows
from gammagmm.mixture.fit import CHECK_EVERY, MIN_COUNT, START_ROWS, ascend, start_rows
from gammagmm.mixture.m_step import MStep
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.statistics import Statistics, features, start_moments
from tests.support.mixture_steps import iterate
from tests.support.mixtures import fit_mixture, labels_of
from tests.support.needs import needs_torch
from tests.support.sklearn_mixture import (
    assert_same_parameters,
    sklearn_iteration,
    sklearn_start,
)

ROWS = [NumpyRows, pytest.param(TorchRows, marks=needs_torch)]


def whitened_start(Z, prior, n_components, rng):
    """Labels of the rows, the rows of one run, and the moments of its start."""
    labels = labels_of(Z, n_components, rng)
    whitened = prior.whiten(Z)
    return labels, whitened[None], start_moments(whitened, labels, n_components)[None]


@pytest.mark.parametrize(
    ("name", "n_iter"), [("demo", 50), ("Glass", 50), ("Cardiotocography", 25), ("PageBlocks", 6)]
)
def test_every_iterate_equals_scikit_learns_and_the_bound_does_not_fall(
    name, n_iter, benchmark_space
):
    Z = benchmark_space(name)
    prior = MixturePrior().resolve(Z)
    labels, whitened, start = whitened_start(Z, prior, 100, np.random.default_rng(3))
    oracle = sklearn_start(Z, labels, 100, prior)
    previous = -np.inf
    for (parameters,), (elbo,) in iterate(NumpyRows(whitened, 2), start, prior, n_iter):
        bound = sklearn_iteration(oracle, Z)
        assert_same_parameters(parameters, oracle, rtol=1e-9)
        assert abs(elbo - bound) <= 1e-9 * abs(bound)
        assert elbo >= previous - 1e-10 * abs(elbo)
        previous = elbo


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
    labels, whitened, start = whitened_start(Z, resolved, 8, rng)
    oracle = sklearn_start(Z, labels, 8, resolved)
    for (parameters,), (elbo,) in iterate(NumpyRows(whitened), start, resolved, 5):
        bound = sklearn_iteration(oracle, Z)
        assert_same_parameters(parameters, oracle, rtol=1e-9)
        assert abs(elbo - bound) <= 1e-9 * abs(bound)


@pytest.mark.parametrize("name", ["demo", "Glass"])
def test_a_fit_stops_at_scikit_learns_iteration(name, benchmark_space):
    Z = benchmark_space(name)
    mixture = fit_mixture(Z, 20, seed=5)
    # The seed that fit_mixture hands to k-means, taken from the same generator.
    seed = int(np.random.default_rng(5).integers(2**31 - 1))
    oracle = BayesianGaussianMixture(
        n_components=20,
        weight_concentration_prior=0.01,
        mean_prior=np.zeros(Z.shape[1]),
        max_iter=1500,
        random_state=np.random.RandomState(seed),
    ).fit(Z)
    assert (mixture.n_iter, mixture.converged) == (oracle.n_iter_, True)
    assert abs(mixture.elbo - oracle.lower_bound_) < 1e-9 * abs(oracle.lower_bound_)
    assert_same_parameters(mixture, oracle, rtol=1e-8)


@pytest.mark.parametrize("rows_of", ROWS)
@pytest.mark.parametrize("name", ["demo", "Glass", "Cardiotocography"])
def test_the_bound_never_falls_by_an_accelerated_step(rows_of, name, benchmark_space):
    Z = benchmark_space(name)
    prior = MixturePrior().resolve(Z)
    _, whitened, start = whitened_start(Z, prior, 60, np.random.default_rng(3))
    steps = iterate(rows_of(whitened), start, prior, 80, accelerated=True)
    elbos = np.array([elbo for _, (elbo,) in steps])
    assert (np.diff(elbos) >= -1e-10 * np.abs(elbos[1:])).all()
    plain = [elbo for _, (elbo,) in iterate(rows_of(whitened), start, prior, 80)]
    # Some of the steps went nowhere, since they would have lowered it; the others led further.
    assert (np.diff(elbos) == 0.0).any()
    assert elbos[-1] > plain[-1]


@pytest.mark.parametrize("name", ["demo", "Glass", "Cardiotocography"])
def test_an_accelerated_fit_ends_where_no_plain_step_leads_further(
    name, benchmark_space, monkeypatch
):
    monkeypatch.setattr("gammagmm.mixture.fit.MIN_COUNT", 0.0)
    Z = benchmark_space(name)
    prior = MixturePrior().resolve(Z)
    _, whitened, start = whitened_start(Z, prior, 30, np.random.default_rng(0))
    rows = NumpyRows(whitened)
    ((_, plain),) = ascend(rows, start, prior, 5000, 1e-8)
    ((_, mixture),) = ascend(rows, start, prior, 5000, 1e-8, accelerated=True)
    assert mixture.converged
    assert mixture.n_iter < plain.n_iter
    oracle = BayesianGaussianMixture(
        n_components=30, weight_concentration_prior=0.01, mean_prior=np.zeros(Z.shape[1])
    )
    oracle._check_parameters(Z)
    oracle.weight_concentration_ = tuple(mixture.weight_concentration)
    for parameter in ("means", "covariances", "mean_precision", "degrees_of_freedom"):
        setattr(oracle, f"{parameter}_", getattr(mixture, parameter))
    chol = np.linalg.cholesky(np.linalg.inv(mixture.covariances))
    oracle.precisions_cholesky_ = chol
    bound = sklearn_iteration(oracle, Z)
    assert abs(bound - mixture.elbo) < 1e-5
    assert_same_parameters(mixture, oracle, rtol=1e-3)


@pytest.mark.parametrize("backend", ROWS)
def test_components_without_rows_are_left_out_and_hardly_change_the_bound(
    backend, benchmark_space, monkeypatch
):
    Z = benchmark_space("demo")
    prior = MixturePrior().resolve(Z)
    _, whitened, start = whitened_start(Z, prior, 60, np.random.default_rng(0))
    found = []
    for min_count in (0.0, MIN_COUNT):
        monkeypatch.setattr("gammagmm.mixture.fit.MIN_COUNT", min_count)
        ascent = ascend(backend(whitened), start, prior, 60, 0.0, accelerated=True)
        found += [mixture for _, mixture in ascent]
    counts = [mixture.weight_concentration[0] - 1.0 for mixture in found]
    assert (counts[1] < 1e-9).sum() == (counts[0] < MIN_COUNT).sum() > 1
    np.testing.assert_allclose(found[1].elbo, found[0].elbo, atol=60 * MIN_COUNT)


def divergence_from_prior(parameters, prior):
    """KL of the sticks, means and covariances from their prior, by the textbook formulas."""
    total = 0.0
    n_detectors = len(prior.covariance)
    for k, mean in enumerate(parameters.means):
        a, b = parameters.weight_concentration[:, k]
        c = prior.concentration
        total += betaln(1.0, c) - betaln(a, b) + (a - 1.0) * digamma(a) + (b - c) * digamma(b)
        total += (1.0 + c - a - b) * digamma(a + b)
        nu, scale = parameters.degrees_of_freedom[k], parameters.covariances[k]
        scale = nu * scale  # of the inverse Wishart
        precision = nu * np.linalg.inv(scale)  # its expectation
        ratio = parameters.mean_precision[k] / prior.mean_precision
        total += 0.5 * prior.mean_precision * mean @ precision @ mean
        total += 0.5 * n_detectors * (1.0 / ratio - 1.0 + np.log(ratio))
        nu_0, scale_0 = prior.degrees_of_freedom, prior.covariance
        psi = digamma(0.5 * (nu - np.arange(n_detectors))).sum()
        total += 0.5 * nu_0 * (np.linalg.slogdet(scale)[1] - np.linalg.slogdet(scale_0)[1])
        total += 0.5 * np.trace(scale_0 @ precision) - 0.5 * nu * n_detectors
        total += multigammaln(0.5 * nu_0, n_detectors) - multigammaln(0.5 * nu, n_detectors)
        total += 0.5 * (nu - nu_0) * psi
    return total


@pytest.mark.parametrize("rows_of", ROWS)
def test_the_bound_of_an_accelerated_step_is_that_of_any_parameters(rows_of, rng):
    Z = rng.normal(size=(200, 3)) * [1.0, 2.0, 0.5]
    prior = MixturePrior(reg_covar=1e-2).resolve(Z)
    _, whitened, start = whitened_start(Z, prior, 4, rng)
    rows = rows_of(whitened)
    m_step = MStep(rows, prior)
    # Moments that no responsibilities have: their counts do not add up to the number of rows.
    others = np.concatenate([start, 0.3 * start, start * rng.uniform(0.5, 2.0, size=(1, 4, 1))])
    state = m_step(rows.to_backend(others))
    coefficients = rows.to_numpy(state.coefficients)
    log_norm = np.logaddexp.reduce(features(whitened[0]) @ coefficients.transpose(0, 2, 1), axis=-1)
    elbos = log_norm.sum(axis=1) - rows.to_numpy(state.divergence)
    expected = [
        log_norm[run].sum() - divergence_from_prior(m_step.parameters(state, run), prior)
        for run in range(3)
    ]
    np.testing.assert_allclose(np.diff(elbos), np.diff(expected), rtol=1e-9)


def test_fewer_distinct_rows_than_components_leave_the_rest_empty(rng):
    Z = np.repeat(rng.normal(size=(3, 2)), 10, axis=0)
    labels = labels_of(Z, 8, rng)
    assert len(np.unique(labels)) == 3
    mixture = fit_mixture(Z, 8)
    assert np.isfinite(mixture.covariances).all()


@pytest.mark.parametrize("small", [0.0, 1e-12, 1e-200])
def test_a_start_compares_rows_by_the_column_that_varies_most(small, rng):
    """Three groups in one column; what varies beside it is too small for k-means to see."""
    group = rng.integers(3, size=60)
    Z = np.column_stack([small * rng.normal(size=60), group.astype(float)])
    for scale in (1.0, 1e-200, 1e200):
        labels = labels_of(scale * Z, 8, np.random.default_rng(0))
        pairs = {*zip(group.tolist(), labels.tolist(), strict=True)}
        assert len(pairs) == len(np.unique(group)) == len(np.unique(labels)) == 3


@pytest.mark.parametrize("accelerated", [False, True])
def test_a_bound_that_is_not_finite_is_an_error_that_says_what_to_do(accelerated, rng):
    Z = rng.normal(size=(50, 2))
    prior = MixturePrior().resolve(Z)
    _, whitened, start = whitened_start(Z, prior, 5, rng)

    class Endless(NumpyRows):
        def statistics(self, coefficients, is_used=None):
            return Statistics(super().statistics(coefficients).moments, np.array([np.inf]))

    with pytest.raises(MixtureError, match="bound is not finite") as error:
        list(ascend(Endless(whitened), start, prior, 10, 1e-3, accelerated=accelerated))
    assert error.value.todo == "Scale the columns to similar ranges."


@pytest.mark.parametrize(("accelerated", "n_enough"), [(False, 1), (True, 2)])
def test_a_run_settles_after_its_number_of_small_steps_in_a_row(accelerated, n_enough, rng):
    Z = np.vstack([rng.normal(size=(150, 2)), rng.normal(3.0, 0.5, size=(50, 2))])
    prior, tol = MixturePrior().resolve(Z), 0.05
    _, whitened, start = whitened_start(Z, prior, 6, rng)
    rows = NumpyRows(whitened)
    steps = list(iterate(rows, start, prior, 200, accelerated=accelerated))
    elbos = np.array([-np.inf, *(elbo for _, (elbo,) in steps)])
    changes = np.diff(elbos)
    # A step that would lower the bound leaves it as it is, and counts neither way.
    small = [change < tol for change in changes if not (accelerated and change == 0.0)]
    ends = [i for i in range(n_enough, len(small) + 1) if all(small[i - n_enough : i])]
    n_iter = np.flatnonzero((changes != 0.0) | (not accelerated))[ends[0] - 1] + 1
    ((_, mixture),) = ascend(rows, start, prior, 200, tol, accelerated=accelerated)
    assert (mixture.n_iter, mixture.converged) == (n_iter, True)
    np.testing.assert_allclose(mixture.means, steps[n_iter - 1][0][0].means, atol=1e-12)
    ((_, capped),) = ascend(rows, start, prior, int(n_iter) - 1, tol, accelerated=accelerated)
    assert (capped.n_iter, capped.converged) == (n_iter - 1, False)


def test_k_means_sees_all_rows_up_to_its_limit_and_a_sample_beyond():
    assert start_rows(START_ROWS, np.random.default_rng(0)) is None
    rows = start_rows(START_ROWS + 1, np.random.default_rng(0))
    assert len(rows) == len(np.unique(rows)) == START_ROWS
    assert 0 <= rows.min() < rows.max() <= START_ROWS


def test_a_start_scales_rows_whose_squares_would_underflow(rng):
    """Two groups that differ in one column; another column has one large value for all rows."""
    group = np.arange(40) % 2
    Z = np.column_stack([1e-200 * (group + 0.01 * rng.random(40)), np.full(40, 5.0)])
    labels = labels_of(Z, 2, np.random.default_rng(0))
    pairs = {*zip(group.tolist(), labels.tolist(), strict=True)}
    assert len(pairs) == len(np.unique(labels)) == 2


def test_rows_outside_the_sample_of_k_means_get_the_nearest_centre(rng, monkeypatch):
    monkeypatch.setattr("gammagmm.mixture.fit.START_ROWS", 60)
    Z = rng.normal(size=(300, 2)) + 6.0 * rng.integers(3, size=(300, 1))
    labels = labels_of(Z, 3, np.random.default_rng(4))
    draws = np.random.default_rng(4)
    rows = draws.choice(300, 60, replace=False)
    seed = int(draws.integers(2**31 - 1))
    centres = KMeans(3, n_init=1, random_state=seed).fit(Z[rows]).cluster_centers_
    nearest = np.square(Z[:, None] - centres).sum(axis=-1).argmin(axis=1)
    np.testing.assert_array_equal(labels, nearest)


def test_one_iteration_and_one_component_are_enough(rng):
    Z = rng.normal(size=(20, 2))
    capped = fit_mixture(Z, 2, max_iter=1)
    assert (capped.n_iter, capped.converged) == (1, False)
    assert fit_mixture(Z, 1).means.shape == (1, 2)


def test_rows_that_k_means_cannot_distinguish_count_once():
    """It compares squared distances, which lose differences below 1e-7 of the spread."""
    Z = np.array([[0.0], [3e-8], [1.0], [1.0 + 3e-8]] * 5)
    labels = labels_of(Z, 4, np.random.default_rng(0))
    pairs = {*zip((Z[:, 0] > 0.5).tolist(), labels.tolist(), strict=True)}
    assert len(pairs) == len(np.unique(labels)) == 2
    apart = np.array([[0.0], [3e-7], [1.0], [1.0 + 3e-7]] * 5)
    assert len(np.unique(labels_of(apart, 4, np.random.default_rng(0)))) == 4


@pytest.mark.parametrize(
    ("found", "n_checks"),
    [([0, 2], 2), ([1, 1], 2), ([1, 0, 1, 0, 1, 1], 6), ([1, 0, 2], 3), ([0] * 8, None)],
)
def test_a_run_ends_with_two_doubts_at_one_check_or_at_two_in_a_row(found, n_checks, rng):
    Z = rng.normal(size=(200, 2))
    prior = MixturePrior().resolve(Z)
    _, whitened, start = whitened_start(Z, prior, 4, rng)
    left = iter(found)
    ((_, mixture),) = ascend(
        NumpyRows(whitened),
        start,
        prior,
        len(found) * CHECK_EVERY,
        0.0,
        accelerated=True,
        doubts=lambda parameters: next(left),
    )
    assert not mixture.converged
    assert mixture.n_iter == (len(found) if n_checks is None else n_checks) * CHECK_EVERY
