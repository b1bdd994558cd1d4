"""Mixtures of Beta distributions, against SciPy and numerical integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from gammagmm.posterior.betas import BetaMixture

WEIGHTS, A, B = np.array([0.2, 0.5]), np.array([2.0, 8.0]), np.array([30.0, 12.0])


def truncated(low, high):
    """The mixture, and its density by SciPy."""
    mass = stats.beta.cdf(high, A, B) - stats.beta.cdf(low, A, B)

    def density(x):
        return float(WEIGHTS @ (stats.beta.pdf(x, A, B) / mass))

    return BetaMixture(WEIGHTS, A, B, low, high), density


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.05, 0.4), (0.0, 0.1), (0.3, 1.0)])
def test_it_is_the_truncated_mixture_of_scipy(low, high):
    mixture, density = truncated(low, high)
    assert mixture.support == (low, high)
    for order in (0, 1, 2, 3):
        integral = integrate.quad(lambda x, n=order: x**n * density(x), low, high)[0]
        assert mixture.moment(order) == pytest.approx(integral, rel=1e-8)
    inside = np.linspace(low, high, 9)
    np.testing.assert_allclose(mixture.pdf(inside), [*map(density, inside)], rtol=1e-10)
    below = [integrate.quad(density, low, x)[0] for x in inside]
    np.testing.assert_allclose(mixture.cdf(inside), below, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(mixture.sf(inside), 0.7 - np.array(below), rtol=1e-6, atol=1e-12)
    outside = np.array([low - 1e-9, high + 1e-9])
    assert mixture.pdf(outside).tolist() == [0.0, 0.0]
    assert mixture.cdf(outside).tolist() == [0.0, pytest.approx(0.7, rel=1e-12)]
    assert mixture.sf(outside).tolist() == [pytest.approx(0.7, rel=1e-12), 0.0]


def test_small_tails_keep_their_digits():
    part = stats.beta(5.0, 95.0)
    mixture = BetaMixture(np.ones(1), np.array([5.0]), np.array([95.0]), low=0.3)
    assert part.sf(0.3) < 1e-10
    at = np.array([0.3, 0.32, 0.4])
    np.testing.assert_allclose(mixture.sf(at), part.sf(at) / part.sf(0.3), rtol=1e-10)
    lower = integrate.quad(lambda x: part.pdf(x) / part.sf(0.3), 0.3, 0.31)[0]
    assert mixture.cdf(np.array(0.31)) == pytest.approx(lower, rel=1e-8)
    # A part far below the range and one inside it.
    both = BetaMixture(np.full(2, 0.5), np.array([5.0, 50.0]), np.array([95.0, 50.0]), low=0.3)
    inside = stats.beta(50.0, 50.0)
    expected = 0.5 * part.sf(at) / part.sf(0.3) + 0.5 * inside.sf(at) / inside.sf(0.3)
    np.testing.assert_allclose(both.sf(at), expected, rtol=1e-10)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.05, 0.4)])
def test_quantiles_have_the_weight_below_them(low, high):
    mixture, _ = truncated(low, high)
    for below in (1e-6, 0.1, 0.3, 0.35, 0.36, 0.6, 0.7 - 1e-6):
        x = mixture.quantile(below, 0.7 - below)
        assert mixture.cdf(np.array(x)) == pytest.approx(below, rel=1e-9)
        assert mixture.sf(np.array(x)) == pytest.approx(0.7 - below, rel=1e-9)
    assert mixture.quantile(0.0, 0.7) == low
    assert mixture.quantile(0.7, 0.0) == high


def test_quantiles_of_the_far_upper_tail_keep_their_digits():
    mixture, _ = truncated(0.0, 1.0)
    for above in (1e-10, 1e-40):
        x = mixture.quantile(0.7, above)
        np.testing.assert_allclose(mixture.sf(np.array(x)), above, rtol=1e-6)


def test_a_restriction_keeps_what_lies_inside():
    mixture = BetaMixture(WEIGHTS, A, B).restrict(0.1, 0.9).restrict(0.0, 0.3)
    assert mixture.support == (0.1, 0.3)
    inside = stats.beta.cdf(0.3, A, B) - stats.beta.cdf(0.1, A, B)
    np.testing.assert_allclose(mixture.weights, WEIGHTS * inside, rtol=1e-12)
    far = BetaMixture(np.full(2, 0.5), np.array([2.0, 4000.0]), np.array([30.0, 100.0]))
    assert far.restrict(0.0, 0.1).a.tolist() == [2.0]  # the other has no probability there
    for low, high in ((0.6, 0.6), (0.8, 0.7)):
        assert len(mixture.restrict(low, high)) == 0
    assert len(mixture.restrict(0.3, 0.5)) == 0


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.004, 0.5)])
def test_the_grid_resolves_every_part(low, high):
    narrow = BetaMixture(
        np.array([0.5, 0.4, 0.1]),
        np.array([500.0, 3.0, 90_000.0]),
        np.array([50_000.0, 20.0, 210_000.0]),
        low,
        high,
    )
    grid = narrow.grid()
    assert (grid[0], grid[-1]) == (low, high)
    assert (np.diff(grid) >= 0.0).all()
    assert len(grid) < 600
    places = np.linspace(low, high, 40_001)
    between = np.interp(places, grid, narrow.cdf(grid))
    assert np.abs(between - narrow.cdf(places)).max() < 0.01


def test_the_grid_resolves_a_large_share():
    a, b = np.array([270_000.0, 3.0]), np.array([30_000.0, 20.0])
    mixture = BetaMixture(np.array([0.5, 0.5]), a, b)
    grid = mixture.grid()
    places = 0.9 + 4.0 * stats.beta.std(a[0], b[0]) * np.linspace(-1.0, 1.0, 2001)
    between = np.interp(places, grid, mixture.cdf(grid))
    assert np.abs(between - mixture.cdf(places)).max() < 0.005


def test_draws_follow_the_cdf_of_the_range():
    mixture, _ = truncated(0.05, 0.4)
    draws = mixture.sample(4000, np.random.default_rng(0))
    assert 0.05 <= draws.min() < draws.max() <= 0.4
    assert stats.kstest(draws, lambda x: mixture.cdf(x) / 0.7).pvalue > 1e-3


@pytest.mark.parametrize("n", [999, 1000, 3000])
def test_many_points_and_blocks_of_points_change_nothing(n, monkeypatch):
    mixture = BetaMixture(
        np.array([0.2, 0.3, 0.5]), np.array([0.5, 1.0, 40.0]), np.array([3.0, 9.0, 900.0])
    )
    x = np.linspace(0.0, 1.0, n)
    expected = sum(
        w * stats.beta.sf(x, a, b)
        for w, a, b in zip(mixture.weights, mixture.a, mixture.b, strict=True)
    )
    np.testing.assert_allclose(mixture.sf(x), expected, rtol=1e-12, atol=1e-290)
    monkeypatch.setattr("gammagmm.posterior.betas._CHUNK_CELLS", 100)
    np.testing.assert_allclose(mixture.sf(x), expected, rtol=1e-12, atol=1e-290)
    square = x[:998].reshape(2, 499)
    assert mixture.cdf(square).shape == (2, 499)
    np.testing.assert_allclose(mixture.cdf(square), 1.0 - mixture.sf(square), atol=1e-12)
    monkeypatch.setattr("gammagmm.posterior.betas._CHUNK_CELLS", 2)  # less than one point
    np.testing.assert_allclose(mixture.sf(x[:7]), expected[:7], rtol=1e-12)
