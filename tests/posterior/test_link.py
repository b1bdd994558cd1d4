import itertools

import numpy as np
import pytest
from scipy import stats

from gammagmm.posterior.link import (
    Constraints,
    anomalousness,
    average_conditionals,
    count_candidates,
    draw_parameters,
    n_anomalous_pmf,
    solve_link,
)

COUNTS = [4.0, 9.0, 15.0, 20.0, 25.0, 30.0, 150.0, 200.0]
N_DRAWS = 40_000


def enumerate_prob_high(components, link, constraints):
    """P(gamma >= t) at E[r], by going through all patterns of anomalous components."""
    n, r = link.n_candidates, components.anomalousness
    p = [1.0 / (1.0 + np.exp(link.tau + link.delta * r[k])) for k in range(n)]
    alpha = components.alpha
    total = 0.0
    for pattern in itertools.product([True, False], repeat=n):
        first = pattern.index(False) if False in pattern else n
        if any(pattern[first:]):
            continue  # a component is anomalous only if the one before it is
        prob = np.prod(p[:first]) * (1.0 - p[first] if first < n else 1.0)
        if first > 0:
            sums = stats.beta(alpha[:first].sum(), alpha[first:].sum())
            total += prob * sums.sf(constraints.high_gamma)
    return total


@pytest.mark.parametrize("p0", [0.001, 0.01, 0.2])
@pytest.mark.parametrize("p_high", [0.001, 0.01, 0.1])
def test_both_answers_hold_at_the_representative_values(make_components, p0, p_high):
    components = make_components(COUNTS)
    constraints = Constraints(p0=p0, p_high=p_high)
    link = solve_link(components, constraints)
    assert link.status == "solved"
    assert link.delta <= 0.0
    p_first = 1.0 / (1.0 + np.exp(link.tau + link.delta * components.anomalousness[0]))
    assert abs((1.0 - p_first) - p0) < 1e-9
    assert abs(enumerate_prob_high(components, link, constraints) - p_high) < 1e-9


def test_p_high_above_the_reachable_maximum_is_slack(make_components):
    components = make_components([2.0, 3.0, 400.0, 500.0])
    constraints = Constraints(p_high=0.3)
    link = solve_link(components, constraints)
    assert (link.status, link.delta) == ("slack", 0.0)
    assert link.reachable[1] < 0.3
    assert abs(1.0 / (1.0 + np.exp(link.tau)) - 0.99) < 1e-12
    np.testing.assert_allclose(
        enumerate_prob_high(components, link, constraints), link.reachable[1], rtol=1e-12
    )


def test_p_high_below_the_reachable_minimum_is_unsolved(make_components):
    components = make_components([90.0, 10.0, 200.0, 200.0])
    link = solve_link(components, Constraints())
    top = stats.beta(components.alpha[0], components.alpha[1:].sum())
    assert link.status == "unsolved"
    np.testing.assert_allclose(link.reachable[0], 0.99 * top.sf(0.15), rtol=1e-12)
    assert np.isnan([link.tau, link.delta]).all()


def test_a_first_component_above_max_gamma_is_unsolved(make_components):
    link = solve_link(make_components([300.0, 10.0, 200.0]), Constraints())
    assert (link.status, link.n_candidates) == ("unsolved", 0)


def test_candidates_are_those_whose_expected_total_weight_stays_below_max_gamma(make_components):
    components = make_components([9.0, 14.0, 24.0, 49.0])  # alphas 10, 15, 25, 50 in some order
    shares = np.cumsum(components.alpha) / components.alpha.sum()
    for max_gamma in (0.11, 0.25, 0.26, 0.5):
        assert count_candidates(components, max_gamma) == np.sum(shares < max_gamma)


def test_steep_roots_are_found(make_components):
    components = make_components(COUNTS)
    squeezed = components.anomalousness * 1e-3
    object.__setattr__(components, "anomalousness", squeezed)
    link = solve_link(components, Constraints(p_high=0.001))
    assert link.status == "solved"
    assert link.delta < -280.0
    assert abs(enumerate_prob_high(components, link, Constraints()) - 0.001) < 1e-9


def test_pmf_sums_to_one_and_equals_enumeration(rng):
    p = rng.random(5)
    pmf = n_anomalous_pmf(p)
    assert abs(pmf.sum() - 1.0) < 1e-15
    for k in range(6):
        expected = np.prod(p[:k]) * (1.0 - p[k] if k < 5 else 1.0)
        np.testing.assert_allclose(pmf[k], expected)


def test_draws_follow_the_normal_inverse_wishart(make_components):
    components = make_components([3.0, 20.0])
    means, variances = draw_parameters(components, N_DRAWS, np.random.default_rng(1))
    for k in range(2):
        nu, cov = components.degrees_of_freedom[k], components.covariances[k]
        for j in range(3):
            marginal = stats.invgamma((nu - 2) / 2.0, scale=nu * cov[j, j] / 2.0)
            assert stats.kstest(variances[k, :, j], marginal.cdf).pvalue > 1e-3
            # mu_j is Student-t with nu - M + 1 degrees of freedom.
            scale = np.sqrt(nu * cov[j, j] / (components.mean_precision[k] * (nu - 2)))
            student = stats.t(nu - 2, components.means[k, j], scale)
            assert stats.kstest(means[k, :, j], student.cdf).pvalue > 1e-3


def test_draws_are_correlated_over_detectors_as_scipys_are(make_components):
    components = make_components([20.0])
    nu, cov = components.degrees_of_freedom[0], components.covariances[0]
    _, variances = draw_parameters(components, N_DRAWS, np.random.default_rng(2))
    oracle = stats.invwishart(nu, nu * cov).rvs(N_DRAWS, random_state=np.random.default_rng(3))
    ours = np.corrcoef(np.log(variances[0]).T)
    theirs = np.corrcoef(np.log(np.diagonal(oracle, axis1=1, axis2=2)).T)
    # Each correlation has a standard error below 1 / sqrt(n).
    assert np.abs(ours - theirs).max() < 4.0 * np.sqrt(2.0 / N_DRAWS)


def test_averaged_conditionals_are_the_sigmoids_mean_with_its_error(make_components):
    components = make_components([4.0, 9.0, 15.0, 20.0, 150.0, 200.0])
    link = solve_link(components, Constraints())
    averaged = average_conditionals(components, link, 2000, np.random.default_rng(0))
    oracle_rng = np.random.default_rng(1)
    for k in range(link.n_candidates):
        nu, cov = components.degrees_of_freedom[k], components.covariances[k]
        sigma = stats.invwishart(nu, nu * cov).rvs(N_DRAWS, random_state=oracle_rng)
        factor = np.linalg.cholesky(sigma) / np.sqrt(components.mean_precision[k])
        mu = components.means[k] + (factor @ oracle_rng.normal(size=(N_DRAWS, 3, 1)))[..., 0]
        r = anomalousness(mu, np.diagonal(sigma, axis1=1, axis2=2))
        p = 1.0 / (1.0 + np.exp(link.tau + link.delta * r))
        error = np.sqrt(averaged.error_variance[k] + p.var() / N_DRAWS)
        assert abs(averaged.mean[k] - p.mean()) < 4.0 * error
        np.testing.assert_allclose(averaged.error_variance[k] * 2000, p.var(), rtol=0.25)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"p0": 0.0}, ValueError, "p0 must lie strictly between 0 and 1, got 0.0"),
        ({"p0": 1.0}, ValueError, "p0 must lie strictly between 0 and 1, got 1.0"),
        ({"p_high": -0.1}, ValueError, "p_high must lie strictly between 0 and 1, got -0.1"),
        ({"p_high": np.nan}, ValueError, "p_high must lie strictly between 0 and 1, got nan"),
        ({"p0": "small"}, TypeError, "p0 must be a number, got 'small'"),
        ({"high_gamma": 0.3}, ValueError, "0 < high_gamma < max_gamma <= 0.5, got high_gamma=0.3"),
        ({"max_gamma": 0.6}, ValueError, "max_gamma <= 0.5, got high_gamma=0.15 and max_gamma=0.6"),
        ({"high_gamma": 0.0}, ValueError, "high_gamma must lie strictly between 0 and 1"),
    ],
)
def test_constraints_out_of_range_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        Constraints(**values)


def test_without_a_candidate_the_reachable_share_is_that_of_the_first_component(make_components):
    components = make_components([300.0, 100.0])
    link = solve_link(components, Constraints())
    first = stats.beta(components.alpha[0], components.alpha[1])
    assert (link.status, link.n_candidates) == ("unsolved", 0)
    np.testing.assert_allclose(link.reachable, 0.99 * first.sf(0.15), rtol=1e-12)
    alone = solve_link(make_components([50.0]), Constraints())
    assert (alone.status, alone.n_candidates) == ("unsolved", 0)
    assert alone.reachable == pytest.approx((0.99, 0.99))  # all rows are anomalies, or none is
