from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.signal import find_peaks

from gammagmm import LabelledRows
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import (
    GammaPosterior,
    combine_runs,
    run_posterior,
)
from gammagmm.posterior.link import Constraints, average_conditionals, solve_link
from gammagmm.posterior.track_record import load_reference

N_SIMULATED = 100_000
COUNTS = [4.0, 9.0, 15.0, 20.0, 25.0, 30.0, 150.0, 200.0]


def simulate_gamma(components, link, p0, rng):
    """The generative story, draw by draw: (mu, Sigma), C* given C* >= 1, pi, gamma."""
    n, n_candidates = N_SIMULATED, link.n_candidates
    p = np.zeros((n, len(components) + 1))
    for k in range(n_candidates):
        nu, cov = components.degrees_of_freedom[k], components.covariances[k]
        sigma = stats.invwishart(nu, nu * cov).rvs(n, random_state=rng)
        noise = rng.standard_normal((n, len(cov), 1))
        mu = components.means[k] + (np.linalg.cholesky(sigma) @ noise)[..., 0] / np.sqrt(
            components.mean_precision[k]
        )
        r = (mu / (1.0 + np.sqrt(np.diagonal(sigma, axis1=1, axis2=2)))).mean(axis=1)
        p[:, k] = 1.0 / (1.0 + np.exp(link.tau + link.delta * r))
    n_anomalous = np.ones(n, dtype=int)
    going = np.ones(n, dtype=bool)  # C* >= 1 is given: the first component is anomalous
    for k in range(1, n_candidates):
        going &= rng.random(n) < p[:, k]
        n_anomalous += going
    pi = rng.dirichlet(components.alpha, size=n)
    gamma = np.cumsum(pi, axis=1)[np.arange(n), n_anomalous - 1]
    return np.where(rng.random(n) < p0, 0.0, gamma)


@pytest.fixture(scope="module")
def story():
    """A posterior from 100,000 draws a component, and the simulation of the same story."""
    from gammagmm.posterior.components import Components, expected_anomalousness

    rng = np.random.default_rng(5)
    counts = np.array(COUNTS)
    means = np.linspace(2.5, -0.5, 8)[:, None] + 0.2 * rng.normal(size=(8, 3))
    roots = rng.normal(size=(8, 3, 3))
    covariances = 0.2 * np.eye(3) + 0.1 * roots @ roots.transpose(0, 2, 1)
    r = expected_anomalousness(means, covariances, 3.0 + counts)
    made = Components(1.0 + counts, means, covariances, 1.0 + counts, 3.0 + counts, r)
    components = made[np.argsort(-r)]
    constraints = Constraints(p0=0.03, p_high=0.05)
    link = solve_link(components, constraints)
    conditionals = average_conditionals(components, link, N_SIMULATED, rng)
    posterior = run_posterior(components, conditionals, constraints.p0)
    return posterior, simulate_gamma(components, link, constraints.p0, rng), components, link


def test_mean_std_and_atom_agree_with_the_simulation(story):
    posterior, draws, _, _ = story
    error = np.hypot(draws.std() / np.sqrt(N_SIMULATED), posterior.standard_error)
    assert abs(posterior.mean - draws.mean()) < 4.0 * error
    fourth = np.mean((draws - draws.mean()) ** 4)
    error_of_variance = np.sqrt((fourth - draws.var() ** 2) / N_SIMULATED)
    assert abs(posterior.std**2 - draws.var()) < 4.0 * error_of_variance
    assert posterior.prob_zero == 0.03
    assert abs(np.mean(draws == 0.0) - 0.03) < 4.0 * np.sqrt(0.03 * 0.97 / N_SIMULATED)


def test_cdf_ppf_and_intervals_agree_with_the_simulation(story):
    posterior, draws, _, _ = story
    for x in (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.3):
        p = float(posterior.cdf(x))
        error = np.sqrt(p * (1.0 - p) / N_SIMULATED) + 1e-12
        assert abs(np.mean(draws <= x) - p) < 4.0 * error, x
    for q in (0.05, 0.25, 0.5, 0.9, 0.99):
        error = np.sqrt(q * (1.0 - q) / N_SIMULATED)
        assert abs(np.mean(draws <= posterior.ppf(q)) - q) < 4.0 * error, q
    for kind in ("equal-tailed", "hdi"):
        low, high = posterior.interval(0.8, kind)
        inside = np.mean((draws >= low) & (draws <= high))
        assert abs(inside - 0.8) < 4.0 * np.sqrt(0.16 / N_SIMULATED), kind


def test_pdf_agrees_with_the_simulations_histogram(story):
    posterior, draws, _, _ = story
    edges = np.linspace(0.005, 0.2, 14)
    counts, _ = np.histogram(draws, edges)
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        p = integrate.quad(posterior.pdf, low, high)[0]
        assert abs(count / N_SIMULATED - p) < 4.0 * np.sqrt(p * (1.0 - p) / N_SIMULATED) + 1e-9


def test_weights_with_the_atom_sum_to_one(story):
    posterior, _, components, link = story
    assert abs(posterior.prob_zero + posterior.betas.weights.sum() - 1.0) < 1e-12
    assert len(posterior.betas) == link.n_candidates
    np.testing.assert_allclose(
        posterior.betas.a, np.cumsum(components.alpha)[: len(posterior.betas)]
    )
    np.testing.assert_allclose(posterior.betas.a + posterior.betas.b, components.alpha.sum())


def test_standard_error_of_the_mean_is_the_spread_over_repeated_draws(story):
    _, _, components, link = story
    rng = np.random.default_rng(11)
    posteriors = [
        run_posterior(components, average_conditionals(components, link, 100, rng), 0.03)
        for _ in range(300)
    ]
    spread = np.std([p.mean for p in posteriors], ddof=1)
    expected = np.mean([p.standard_error for p in posteriors])
    assert abs(spread / expected - 1.0) < 4.0 / np.sqrt(2 * 299)


def test_runs_are_combined_with_equal_weights():
    first = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [5.0], [95.0]])), 0.003)
    second = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [20.0], [80.0]])), 0.004)
    both = combine_runs([first, second])
    assert both.prob_zero == 0.01
    for x in (0.0, 0.05, 0.2):
        np.testing.assert_allclose(both.cdf(x), (first.cdf(x) + second.cdf(x)) / 2.0)
    np.testing.assert_allclose(both.standard_error, 0.0025)
    np.testing.assert_allclose(both.between_runs, np.std([first.mean, second.mean], ddof=1))
    assert combine_runs([replace(first, n_labels=3), second]).n_labels == both.n_labels == 0
    assert len(both.modes()) == 2
    np.testing.assert_allclose(both.modes(), [4.0 / 98.0, 19.0 / 98.0], atol=3e-3)


def test_one_beta_is_scipys_with_an_atom():
    posterior = GammaPosterior(0.1, BetaMixture(*np.array([[0.9], [3.0], [40.0]])))
    beta = stats.beta(3.0, 40.0)
    x = np.array([0.001, 0.05, 0.2, 0.9])
    np.testing.assert_allclose(posterior.pdf(x), 0.9 * beta.pdf(x))
    np.testing.assert_allclose(posterior.cdf(x), 0.1 + 0.9 * beta.cdf(x))
    np.testing.assert_allclose(posterior.sf(x), 0.9 * beta.sf(x))
    np.testing.assert_allclose(posterior.ppf([0.4, 0.999]), beta.ppf([3 / 9, 0.899 / 0.9]))
    np.testing.assert_allclose(posterior.mean, 0.9 * beta.mean())
    np.testing.assert_allclose(posterior.std**2, 0.9 * beta.moment(2) - posterior.mean**2)
    np.testing.assert_allclose(posterior.modes(), [2.0 / 41.0], atol=2e-3)
    assert posterior.ppf(0.05) == 0.0
    assert posterior.cdf(-1.0) == 0.0
    assert posterior.sf(-1.0) == 1.0
    # At the lower bound, the atom is at or below it, and not above.
    assert posterior.cdf(0.0) == 0.1
    assert posterior.sf(0.0) == 0.9
    assert (posterior.ppf(1.0), posterior.cdf(1.0)) == (1.0, 1.0)


def test_an_interval_is_the_kind_it_says():
    posterior = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [2.0], [60.0]])))
    low, high = posterior.interval(0.9)
    np.testing.assert_allclose(posterior.cdf([low, high]), [0.05, 0.95])
    shortest = posterior.interval(0.9, "hdi")
    assert shortest[1] - shortest[0] < high - low
    # No interval of the same mass on a fine grid of starts is shorter, beyond the grid's step.
    starts = np.linspace(0.01, 0.1, 400)
    lengths = posterior.ppf(starts + 0.9) - posterior.ppf(starts)
    assert shortest[1] - shortest[0] <= lengths.min() + 1e-5
    with pytest.raises(ValueError, match="kind must be 'equal-tailed' or 'hdi', got 'central'"):
        posterior.interval(0.9, "central")
    with pytest.raises(ValueError, match="mass must lie strictly between 0 and 1, got 1"):
        posterior.interval(1)
    with pytest.raises(ValueError, match="q must lie between 0 and 1"):
        posterior.ppf([0.5, 1.2])


def test_contains_is_whether_a_share_lies_in_the_interval():
    posterior = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [2.0], [60.0]])))
    for mass in (0.5, 0.9):
        low, high = posterior.interval(mass)
        for share in (low, high, np.float64(0.5 * (low + high))):
            assert posterior.contains(share, mass) is True
        for share in (0.0, low - 1e-9, high + 1e-9, 1.0):
            assert posterior.contains(share, mass) is False
    assert posterior.contains(posterior.interval()[0])
    degenerate = GammaPosterior.degenerate()
    assert degenerate.contains(0.0)
    assert not degenerate.contains(0.01)
    with pytest.raises(TypeError, match="share must be a number, got 'much'"):
        posterior.contains("much")


def test_intervals_keep_to_the_support_of_what_is_given():
    posterior = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [2.0], [60.0]])))
    conditioned = posterior.given(low=0.05)
    assert conditioned.ppf(0.0) == 0.05
    assert (conditioned.cdf(0.05), conditioned.sf(0.05)) == (0.0, 1.0)
    assert (conditioned.cdf(0.03), conditioned.sf(0.03)) == (0.0, 1.0)
    total = 0.99 * stats.beta(2.0, 60.0).sf(0.05)
    density = 0.99 * stats.beta(2.0, 60.0).pdf(0.05) / total
    np.testing.assert_allclose(conditioned.pdf([0.05, 0.05 - 1e-9]), [density, 0.0])
    # The density falls from the lower end on, where the shortest interval therefore begins.
    low, high = conditioned.interval(0.9, "hdi")
    assert low == pytest.approx(0.05, abs=1e-4)
    assert high == pytest.approx(conditioned.ppf(0.9), abs=1e-4)


def test_the_shortest_interval_takes_the_atom_in_when_it_is_heavy():
    posterior = GammaPosterior(0.85, BetaMixture(*np.array([[0.15], [30.0], [70.0]])))
    assert posterior.interval(0.9, "hdi")[0] == 0.0
    assert posterior.interval(0.8, "hdi") == (0.0, 0.0)


def test_the_shortest_interval_leaves_the_atom_out_if_that_is_shorter():
    """Without the atom, hardly more than the mass is left, so that only few starts are possible."""
    posterior = GammaPosterior(0.0999, BetaMixture(*np.array([[0.9001], [30.0], [70.0]])))
    beta, mass = stats.beta(30.0, 70.0), 0.9 / 0.9001
    shortest = optimize.minimize_scalar(
        lambda tail: beta.ppf(tail + mass) - beta.ppf(tail), bounds=(0.0, 1.0 - mass)
    )
    low, high = posterior.interval(0.9, "hdi")
    assert low > 0.1
    assert posterior.cdf(high) - posterior.cdf(low) == pytest.approx(0.9, abs=1e-12)
    assert high - low == pytest.approx(shortest.fun, abs=1e-4)
    assert high - low < posterior.ppf(0.9) < np.diff(posterior.interval(0.9))[0]


def test_samples_follow_the_cdf():
    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.5, 0.3], [3.0, 30.0], [90.0, 70.0]])))
    for conditioned in (posterior, posterior.given(high=0.25), posterior.given(low=0.02)):
        draws = conditioned.sample(20_000, random_state=3)
        for x in (0.0, 0.03, 0.1, 0.3):
            p = float(conditioned.cdf(x))
            assert abs(np.mean(draws <= x) - p) <= 4.0 * np.sqrt(p * (1 - p) / 20_000)
        np.testing.assert_allclose(
            draws.mean(), conditioned.mean, atol=4.0 * conditioned.std / np.sqrt(20_000)
        )


def test_given_is_the_conditional_distribution():
    posterior = GammaPosterior(0.2, BetaMixture(*np.array([[0.5, 0.3], [3.0, 30.0], [90.0, 70.0]])))
    low, high = 0.02, 0.25
    conditioned = posterior.given(low, high)
    total = posterior.cdf(high) - posterior.cdf(low)
    for x in (0.02, 0.05, 0.2, 0.25):
        np.testing.assert_allclose(
            conditioned.cdf(x), (posterior.cdf(x) - posterior.cdf(low)) / total, atol=1e-12
        )
    mean = integrate.quad(lambda x: x * posterior.pdf(x) / total, low, high)[0]
    np.testing.assert_allclose(conditioned.mean, mean)
    assert conditioned.prob_zero == 0.0
    assert conditioned.pdf(0.3) == 0.0
    below = posterior.given(high=0.05)
    np.testing.assert_allclose(below.prob_zero, 0.2 / posterior.cdf(0.05))
    # Knowing twice is knowing both.
    twice = posterior.given(high=0.25).given(low=0.02)
    np.testing.assert_allclose(twice.cdf([0.03, 0.2]), conditioned.cdf([0.03, 0.2]))
    assert np.isnan([below.standard_error, below.between_runs]).all()
    assert below.n_labels == 0
    assert replace(posterior, n_labels=30).given(high=0.05).n_labels == 30


@pytest.mark.parametrize("bounds", [(0.3, 0.2), (-0.1, 0.5), (0.0, 1.5)])
def test_given_refuses_an_invalid_range(bounds):
    with pytest.raises(ValueError, match="given needs 0 <= low < high <= 1, got low="):
        GammaPosterior.degenerate().given(*bounds)


def test_given_refuses_the_impossible():
    with pytest.raises(ValueError, match=r"no probability to gamma in \[0.1, 0.2\]"):
        GammaPosterior.degenerate().given(0.1, 0.2)


def test_the_degenerate_posterior_is_a_point_mass_at_zero_that_knows_it():
    posterior = GammaPosterior.degenerate()
    assert posterior.is_degenerate
    assert (posterior.mean, posterior.std, posterior.median, posterior.prob_zero) == (0, 0, 0, 1)
    assert posterior.interval() == posterior.interval(kind="hdi") == (0.0, 0.0)
    assert (posterior.cdf(0.0), posterior.sf(0.0), posterior.pdf(0.1)) == (1.0, 0.0, 0.0)
    assert posterior.sample(5, random_state=0).tolist() == [0.0] * 5
    assert posterior.summary()["modes"] == []
    assert repr(posterior) == "GammaPosterior(point mass at 0)"


@pytest.mark.parametrize(
    "posterior",
    [
        GammaPosterior(0.1, BetaMixture(*np.array([[0.9], [3.0], [40.0]]))),
        GammaPosterior(0.1, BetaMixture(*np.array([[0.9], [3.0], [40.0]]))).given(0.01, 0.3),
        GammaPosterior.degenerate(),
        labelled_posterior(LabelCounts(100, 30, 2, 0, 0), load_reference()),
        labelled_posterior(LabelCounts(100, 100, 0, 0, 0), load_reference()),
    ],
    ids=["atom and Beta", "conditioned", "no solution", "labels", "all rows labelled normal"],
)
def test_nan_gives_nan_as_in_scipy(posterior):
    beta = stats.beta(3.0, 40.0)
    for name in ("pdf", "cdf", "sf", "ppf"):
        assert np.isnan(getattr(beta, name)(np.nan))
        function = getattr(posterior, name)
        assert np.isnan(function(np.nan))
        found = function([[0.05, np.nan]])
        assert found.shape == (1, 2)
        assert (found[0, 0], np.isnan(found[0, 1])) == (function(0.05), True)
    assert np.isnan(posterior.prob_above(np.nan))


def test_summary_holds_the_numbers():
    posterior = GammaPosterior(0.1, BetaMixture(*np.array([[0.9], [3.0], [40.0]])), 0.002, 0.01)
    summary = posterior.summary()
    assert summary["mean"] == posterior.mean
    assert summary["model_range"] == list(posterior.interval())
    np.testing.assert_allclose(summary["prob_above_0.15"], 0.9 * stats.beta(3, 40).sf(0.15))
    assert (summary["standard_error"], summary["between_runs"]) == (0.002, 0.01)
    assert summary["n_labels"] == 0
    assert replace(posterior, n_labels=30).summary() == summary | {"n_labels": 30}


def test_only_answers_with_labels_and_the_reference_have_a_90_percent_interval():
    model = GammaPosterior(0.1, BetaMixture(*np.array([[0.9], [3.0], [40.0]])))
    labelled = LabelledRows(np.arange(60.0)).update(np.arange(30), np.zeros(30)).posterior
    posteriors = (model, GammaPosterior.degenerate(), labelled, GammaPosterior.reference())
    for posterior, is_model in zip(posteriors, (True, True, False, False), strict=True):
        for each in (posterior, posterior.given(high=0.5)):
            assert each.is_model == is_model
            assert each.range_name == ("model range" if is_model else "90% interval")
            assert ("interval_90" in each.summary()) != is_model
            assert ("model_range" in each.summary()) == is_model


def test_the_upper_tail_at_many_points_is_that_of_scipy(rng):
    a = np.array([0.3, 0.7, 1.0, 1.0, 2.0, 40.0, 900.0, 3e5])
    b = np.array([0.5, 3.0, 1.0, 8.0, 0.9, 60.0, 3e4, 2e5])
    weights = np.full(8, 0.125)
    x = np.concatenate([np.linspace(0.0, 1.0, 4001), 10.0 ** rng.uniform(-9.0, 0.0, 500)])
    for j in range(8):
        found = BetaMixture(np.ones(1), a[j : j + 1], b[j : j + 1]).sf(x)
        np.testing.assert_allclose(found, stats.beta(a[j], b[j]).sf(x), rtol=1e-12, atol=1e-299)
    mixture = BetaMixture(weights, a, b)
    one_by_one = [float(mixture.sf(np.array(point))) for point in x[::50]]
    np.testing.assert_allclose(mixture.sf(x)[::50], one_by_one, rtol=1e-12)
    # Inside bounds, it is the tail of the truncated distribution.
    beta = stats.beta(40.0, 60.0)
    for low, high in ((0.3, 1.0), (0.0, 0.5), (0.3, 0.5)):
        truncated = BetaMixture(np.ones(1), a[5:6], b[5:6], low, high)
        clipped = np.clip(x, low, high)
        expected = (beta.sf(clipped) - beta.sf(high)) / (beta.cdf(high) - beta.cdf(low))
        np.testing.assert_allclose(truncated.sf(x), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("weight", "n_humps"), [(0.04, 1), (0.2, 2)])
def test_a_hump_counts_from_a_tenth_of_the_highest_density(weight, n_humps):
    a, b = np.array([40.0, 200.0]), np.array([760.0, 800.0])
    posterior = GammaPosterior(0.0, BetaMixture(np.array([1.0 - weight, weight]), a, b))
    x = np.linspace(0.0, 1.0, 20_001)
    density = stats.beta.pdf(x[:, None], a, b) @ [1.0 - weight, weight]
    peaks = find_peaks(density, prominence=0.1 * density.max())[0]
    assert len(peaks) == n_humps
    step = np.diff(posterior.betas.grid()).max()
    np.testing.assert_allclose(posterior.modes(), x[peaks], atol=step)
    assert len(posterior.modes(prominence=1e-3)) == 2


def test_a_file_is_replaced_only_if_asked(tmp_path):
    path = tmp_path / "posterior.json"
    first, second = (
        GammaPosterior(0.0, BetaMixture(*np.array([[1.0], [a], [40.0]]))) for a in (3.0, 5.0)
    )
    first.save(path)
    with pytest.raises(FileExistsError):
        second.save(path)
    assert GammaPosterior.load(path).mean == first.mean
    second.save(path, overwrite=True)
    assert GammaPosterior.load(path).mean == second.mean
