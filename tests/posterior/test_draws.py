import numpy as np
from scipy import stats

from gammagmm.posterior.link import (
    Constraints,
    anomalousness,
    average_conditionals,
    draw_parameters,
    solve_link,
)

N_DRAWS = 40_000


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
