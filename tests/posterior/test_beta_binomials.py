"""Mixtures of Beta-binomial distributions, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm import GammaPosterior
from gammagmm.posterior.beta_binomials import BetaBinomialMixture

WEIGHTS, A, B = np.array([0.3, 0.7]), np.array([1.5, 4.0]), np.array([30.0, 11.0])
N_ROWS, KNOWN, LEFT = 90, 4, 60


@pytest.fixture
def mixture():
    return BetaBinomialMixture(WEIGHTS, A, B, N_ROWS, KNOWN, LEFT, 0, LEFT)


def pmf(counts):
    """The probability of each count, by SciPy."""
    parts = [stats.betabinom.pmf(counts, LEFT, a, b) for a, b in zip(A, B, strict=True)]
    return WEIGHTS @ np.array(parts)


def test_the_shares_have_the_probabilities_of_scipy(mixture):
    counts = np.arange(LEFT + 1)
    shares = (KNOWN + counts) / N_ROWS
    expected = pmf(counts)
    np.testing.assert_allclose(mixture.cdf(shares), np.cumsum(expected), rtol=1e-10)
    np.testing.assert_allclose(mixture.cdf(shares + 0.4 / N_ROWS), np.cumsum(expected), rtol=1e-10)
    above = np.append(np.cumsum(expected[::-1])[::-1][1:], 0.0)
    np.testing.assert_allclose(mixture.sf(shares), above, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(mixture.pdf(shares), N_ROWS * expected, rtol=1e-10)
    assert mixture.moment(1) == pytest.approx(shares @ expected, rel=1e-12)
    assert mixture.moment(2) == pytest.approx(shares**2 @ expected, rel=1e-12)
    assert mixture.support == (KNOWN / N_ROWS, (KNOWN + LEFT) / N_ROWS)
    outside = np.array([0.0, (KNOWN - 1) / N_ROWS, (KNOWN + LEFT + 1) / N_ROWS, 1.0])
    assert mixture.pdf(outside).tolist() == [0.0] * 4


@pytest.mark.parametrize("q", [1e-9, 0.01, 0.05, 0.5, 0.51, 0.95, 0.999])
def test_a_quantile_is_the_first_share_that_reaches_it(mixture, q):
    found = GammaPosterior(0.0, mixture).ppf(q)
    counts = np.arange(LEFT + 1)
    first = counts[np.cumsum(pmf(counts)) >= q][0]
    assert found == (KNOWN + first) / N_ROWS


def test_it_can_be_restricted_to_a_range(mixture):
    inside = mixture.restrict(0.1, 0.2)
    counts = np.arange(LEFT + 1)
    shares = (KNOWN + counts) / N_ROWS
    is_inside = (shares >= 0.1) & (shares <= 0.2)
    expected = pmf(counts) * is_inside
    assert inside.weights.sum() == pytest.approx(expected.sum(), rel=1e-12)
    assert inside.moment(1) == pytest.approx(shares @ expected, rel=1e-12)
    assert inside.support == (0.1, 0.2)
    given = GammaPosterior(0.0, mixture).given(0.1, 0.2)
    assert given.mean == pytest.approx(shares @ expected / expected.sum(), rel=1e-12)
    assert mixture.restrict(0.0, 0.04).weights.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="no probability"):
        GammaPosterior(0.0, mixture).given(high=0.04)


def test_draws_have_the_probabilities(mixture):
    draws = GammaPosterior(0.0, mixture).sample(20_000, random_state=0)
    counts = np.rint(draws * N_ROWS).astype(int) - KNOWN
    np.testing.assert_allclose(draws, (KNOWN + counts) / N_ROWS)
    expected = pmf(np.arange(LEFT + 1)) * len(draws)
    often = expected > 5
    seen = np.bincount(counts, minlength=LEFT + 1)
    table = np.append(seen[often], seen[~often].sum())
    assert stats.chisquare(table, np.append(expected[often], expected[~often].sum())).pvalue > 1e-4


def test_many_rows_are_as_precise(mixture):
    n_left = 1_000_000
    large = BetaBinomialMixture(WEIGHTS, A, B, n_left, 0, n_left, 0, n_left)
    mean = WEIGHTS @ (A / (A + B))
    assert large.moment(1) == pytest.approx(mean, rel=1e-8)
    assert large.cdf(np.array(1.0)) == pytest.approx(1.0, abs=1e-12)
    # With so many rows it is nearly the mixture of the Beta distributions.
    between = WEIGHTS @ stats.beta.cdf(0.2, A, B)
    assert large.cdf(np.array(0.2)) == pytest.approx(between, abs=1e-5)


def test_the_grid_has_the_likely_shares(mixture):
    grid = mixture.grid()
    np.testing.assert_allclose(grid, (KNOWN + np.arange(len(grid))) / N_ROWS)
    assert mixture.cdf(grid[-1:])[0] == pytest.approx(1.0, abs=1e-9)
    large = BetaBinomialMixture(WEIGHTS, A, B, 10**6, 0, 10**6, 0, 10**6)
    assert 1000 < len(large.grid()) <= 2049


def test_a_part_without_probability_inside_its_bounds_has_none():
    part = np.array([1.0])
    high = BetaBinomialMixture(part, 1e6 * part, part, 3000, 0, 2000, 0, 1, (0, 2000))
    assert high.pmf.tolist() == [0.0, 0.0]
    # Below and above the bounds, the probability lies at the bounds.
    inside = BetaBinomialMixture(WEIGHTS, A, B, N_ROWS, KNOWN, LEFT, 5, 20, (5, 20))
    every = pmf(np.arange(LEFT + 1))
    expected = [every[:6].sum(), *every[6:20], every[20:].sum()]
    np.testing.assert_allclose(inside.pmf, expected, rtol=1e-10)


def test_a_restriction_can_be_restricted_again(mixture):
    twice, once = mixture.restrict(0.1, 0.3).restrict(0.15, 0.2), mixture.restrict(0.15, 0.2)
    assert twice.support == once.support
    np.testing.assert_allclose(twice.weights, once.weights, rtol=1e-12)
    np.testing.assert_allclose(twice.pmf, once.pmf, rtol=1e-12)
    assert twice.first > 0
    np.testing.assert_allclose(twice.pdf(twice.shares), N_ROWS * once.pmf, rtol=1e-12)
