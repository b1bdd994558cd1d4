import numpy as np
import pytest

from gammagmm.mixture.statistics import block_size, features, matrix_places, start_moments


def test_features_give_every_quadratic_form(rng):
    Z, A = rng.normal(size=(5, 4)), rng.normal(size=(4, 4))
    quadratic = np.triu(A + A.T, 1) + np.diag(np.diag(A))
    coefficients = np.concatenate([[2.0], np.arange(4), quadratic[np.triu_indices(4)]])
    expected = 2.0 + Z @ np.arange(4) + np.einsum("ni,ij,nj->n", Z, A, Z)
    np.testing.assert_allclose(features(Z) @ coefficients, expected)


def test_a_hard_assignment_gives_counts_sums_and_products(rng):
    Z, labels = rng.normal(size=(3000, 3)), rng.integers(0, 4, size=3000)
    moments = start_moments(Z, labels, 6)
    products = moments[:, 4:][:, matrix_places(3)]
    for k in range(6):
        own = Z[labels == k]
        assert moments[k, 0] == len(own)
        np.testing.assert_allclose(moments[k, 1:4], own.sum(axis=0), atol=1e-10)
        np.testing.assert_allclose(products[k], own.T @ own, atol=1e-10)


@pytest.mark.parametrize("n_rows", [1, 2, 511, 512, 513, 5473, 99_999, 1_000_000])
def test_blocks_are_of_at_most_8192_rows_and_a_multiple_of_four_where_there_are_several(n_rows):
    n_blocks = -(-n_rows // block_size(n_rows))
    assert n_blocks == 1 or n_blocks % 4 == 0
    assert block_size(n_rows) <= 8192
