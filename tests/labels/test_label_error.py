"""Labels that may be wrong, against integration and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from gammagmm import GammaPosterior, LabelledRows
from gammagmm.labels.label_error import implied_error, posterior_with_errors
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.track_record import load_label_prior

PRIOR = BetaMixture(np.array([0.4, 0.6]), np.array([1.5, 1.0]), np.array([12.0, 1.0]))


@pytest.mark.parametrize("error", [(0.05, 0.05), (0.1, 0.0), (0.02, 0.3)])
@pytest.mark.parametrize(("n", "s"), [(10, 0), (30, 4), (30, 30)])
def test_it_is_the_integral_over_the_share(n, s, error):
    false_alarm, miss = error

    def density(theta):
        p = theta * (1 - miss) + (1 - theta) * false_alarm
        parts = zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
        prior = sum(weight * stats.beta.pdf(theta, a, b) for weight, a, b in parts)
        return prior * stats.binom.pmf(s, n, p)

    whole = integrate.quad(density, 0, 1, epsabs=1e-14, epsrel=1e-10, limit=200)[0]
    found = posterior_with_errors(n, s, PRIOR, error)
    for x in (0.02, 0.1, 0.4, 0.9):
        below = integrate.quad(density, 0, x, epsabs=1e-14, epsrel=1e-10, limit=200)[0]
        assert found.cdf(x) == pytest.approx(below / whole, abs=1e-6)


def test_without_errors_it_is_the_posterior_of_a_large_table():
    rows = LabelledRows(np.zeros(200_000)).update(range(0, 200_000, 5000), np.arange(40) < 3)
    without = rows.posterior_if(0.0)
    np.testing.assert_allclose(without.interval(), rows.posterior.interval(), atol=2e-5)
    assert isinstance(without, GammaPosterior)
    assert without.n_labels == 40


@pytest.mark.parametrize("error", [0.02, 0.05, 0.1])
def test_the_right_rate_keeps_the_coverage(error):
    """By enumeration, on average over the prior; without the rate the interval misses."""
    n, prior = 100, load_label_prior()
    found = np.arange(n + 1)
    shares = GammaPosterior(0.0, prior).ppf((np.arange(100) + 0.5) / 100)
    p = shares * (1 - error) + (1 - shares) * error
    p_found = stats.binom.pmf(found, n, p[:, None])
    held = {}
    for assumed in (0.0, error):
        ends = [posterior_with_errors(n, k, prior, (assumed,) * 2).interval() for k in found]
        low, high = np.array(ends).T
        held[assumed] = (
            p_found * ((low <= shares[:, None]) & (shares[:, None] <= high))
        ).sum() / 100
    assert held[error] == pytest.approx(0.9, abs=0.01)
    assert held[0.0] < 0.8


def test_two_labels_of_the_same_rows_imply_the_rate():
    rng = np.random.default_rng(0)
    truth = rng.random(40_000) < 0.1
    first, second = ((truth ^ (rng.random(40_000) < 0.05)).astype(int) for _ in range(2))
    assert implied_error(first, second) == pytest.approx(0.05, abs=0.005)
    assert implied_error([0, 1], [0, 1]) == 0.0
    assert implied_error([0, 1], [1, 0]) == 0.5
    for wrong in (([], []), ([1], [1, 0])):
        with pytest.raises(ValueError, match="labels of the same rows"):
            implied_error(*wrong)


@pytest.mark.parametrize("error", [0.5, -0.1, (0.1, 0.6), (0.1, 0.1, 0.1)])
def test_rates_are_below_one_half(error):
    rows = LabelledRows(np.zeros(50)).update([1, 2], [0, 1])
    with pytest.raises(ValueError, match="label_error must"):
        rows.posterior_if(error)
