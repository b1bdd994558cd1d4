import numpy as np

from gammagmm.mixture.statistics import (
    block_statistics,
    features,
    row_blocks,
    start_statistics,
    unpack_moments,
)


def test_features_give_every_quadratic_form(rng):
    Z, A = rng.normal(size=(5, 4)), rng.normal(size=(4, 4))
    quadratic = np.triu(A + A.T, 1) + np.diag(np.diag(A))
    coefficients = np.concatenate([[2.0], np.arange(4), quadratic[np.triu_indices(4)]])
    expected = 2.0 + Z @ np.arange(4) + np.einsum("ni,ij,nj->n", Z, A, Z)
    np.testing.assert_allclose(features(Z) @ coefficients, expected)


def test_statistics_add_over_ragged_and_empty_blocks(rng):
    Z, coefficients = rng.normal(size=(50, 2)), rng.normal(size=(7, 6))
    whole = block_statistics(Z, coefficients)
    parts = [
        block_statistics(Z[rows], coefficients) for rows in np.split(np.arange(50), [3, 3, 40])
    ]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    np.testing.assert_allclose(total.moments, whole.moments, rtol=1e-12, atol=1e-12)
    assert abs(total.entropy - whole.entropy) < 1e-12 * whole.entropy


def test_entropy_and_moments_are_those_of_the_responsibilities(rng):
    Z, coefficients = rng.normal(size=(30, 2)), rng.normal(size=(4, 6))
    logits = features(Z) @ coefficients.T
    resp = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    statistics = block_statistics(Z, coefficients)
    np.testing.assert_allclose(statistics.moments[:, 0], resp.sum(axis=0))
    np.testing.assert_allclose(statistics.moments[:, 1:3], resp.T @ Z)
    np.testing.assert_allclose(statistics.entropy, -(resp * np.log(resp)).sum())


def test_a_hard_assignment_gives_counts_sums_and_products(rng):
    Z, labels = rng.normal(size=(3000, 3)), rng.integers(0, 4, size=3000)
    statistics = start_statistics(Z, labels, 6)
    counts, totals, outer = unpack_moments(statistics.moments, 3)
    for k in range(6):
        own = Z[labels == k]
        assert counts[k] == len(own)
        np.testing.assert_allclose(totals[k], own.sum(axis=0), atol=1e-10)
        np.testing.assert_allclose(outer[k], own.T @ own, atol=1e-10)
    assert statistics.entropy == 0.0


def test_responsibilities_keep_their_digits_where_one_component_is_far_ahead(rng):
    # Logits that differ by up to 3000: far outside the range of exp.
    Z, coefficients = rng.normal(size=(200, 2)), 300.0 * rng.normal(size=(9, 6))
    logits = features(Z) @ coefficients.T
    shifted = logits - logits.max(axis=1, keepdims=True)
    resp = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    statistics = block_statistics(Z, coefficients)
    np.testing.assert_allclose(statistics.moments[:, 0], resp.sum(axis=0), rtol=1e-12, atol=1e-30)


def test_blocks_cover_every_row_once():
    for n_rows in (1, 2, 511, 512, 513, 5473, 99_999, 1_000_000):
        rows = np.concatenate([np.arange(n_rows)[block] for block in row_blocks(n_rows)])
        np.testing.assert_array_equal(rows, np.arange(n_rows))
