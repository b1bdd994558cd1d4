from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gammagmm.errors import MixtureError
from gammagmm.posterior.components import active_components, expected_shrinkage, order_components
from tests.support.mixtures import fit_mixture


@pytest.mark.long
def test_expected_anomalousness_agrees_with_a_million_draws(make_components):
    components = make_components([1.0, 12.0, 80.0])
    rng = np.random.default_rng(7)
    n_draws = 10**6
    for k in range(len(components)):
        nu, cov = components.degrees_of_freedom[k], components.covariances[k]
        sigma = stats.invwishart(nu, nu * cov).rvs(n_draws, random_state=rng)
        z = rng.standard_normal((n_draws, 3, 1))
        mu = components.means[k] + (np.linalg.cholesky(sigma) @ z)[..., 0] / np.sqrt(
            components.mean_precision[k]
        )
        r = (mu / (1.0 + np.sqrt(np.diagonal(sigma, axis1=1, axis2=2)))).mean(axis=1)
        error = r.std() / np.sqrt(n_draws)
        assert abs(components.anomalousness[k] - r.mean()) < 4.0 * error


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.7, 40.0, 1e3, 1e7])
@pytest.mark.parametrize("ratio", [1e-8, 1e-2, 1.0, 30.0, 1e6])
def test_quadrature_agrees_with_the_mean_over_a_fine_grid_of_quantiles(shape, ratio):
    # Gauss-Legendre panels in the probability of g, refined towards both ends.
    edges = np.concatenate([[0.0], np.logspace(-14, np.log10(0.5), 60)])
    edges = np.unique(np.concatenate([edges, 1.0 - edges]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(edges)[:, None]
    p = edges[:-1, None] + half * (1.0 + nodes)
    g = stats.gamma(shape).ppf(p)
    expected = (half * weights / (1.0 + np.sqrt(ratio * shape / g))).sum()
    ours = expected_shrinkage(np.array(shape), np.array(ratio * shape))
    assert abs(ours - expected) < 1e-9 * expected


def test_inactive_mass_is_spread_evenly_and_the_alphas_sum_to_rows_plus_components(rng):
    Z = np.vstack([rng.normal(size=(150, 2)), rng.normal(4.0, 0.3, size=(20, 2))])
    mixture = fit_mixture(Z, 30)
    components = active_components(mixture)
    counts = mixture.weight_concentration[0] - 1.0
    active = counts >= 1.0
    assert 0 < active.sum() < 30
    np.testing.assert_allclose(components.alpha.sum(), 170 + 30)
    share = (1.0 + counts[~active]).sum() / active.sum()
    np.testing.assert_allclose(components.alpha, 1.0 + counts[active] + share)


def test_a_mixture_without_members_is_refused(rng):
    mixture = fit_mixture(rng.normal(size=(2, 1)), 50)
    empty = replace(mixture, weight_concentration=np.ones((2, 50)))
    with pytest.raises(
        MixtureError, match=r"Every component is expected .*\. Fit fewer components"
    ):
        active_components(empty)


def test_components_come_most_anomalous_first_with_all_their_parameters(rng):
    Z = np.vstack([rng.normal(size=(150, 2)), rng.normal(4.0, 0.3, size=(20, 2))])
    mixture = fit_mixture(Z, 30)
    before, after = active_components(mixture), order_components(mixture)
    assert np.all(np.diff(after.anomalousness) <= 0.0)
    assert after.means[0].mean() > 3.0
    for name in ("alpha", "means", "covariances", "mean_precision", "degrees_of_freedom"):
        order = np.argsort(-before.anomalousness)
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name)[order])


def test_one_expected_member_is_enough(rng):
    mixture = fit_mixture(rng.normal(size=(40, 2)), 3)
    counts = np.array([[30.0, 2.0, 1.999], [1.0, 1.0, 1.0]])
    components = active_components(replace(mixture, weight_concentration=counts))
    np.testing.assert_allclose(components.alpha, [30.0 + 1.999 / 2, 2.0 + 1.999 / 2])
