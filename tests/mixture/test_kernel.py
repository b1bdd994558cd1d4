import numpy as np

from gammagmm.mixture.kernel import _exp, invert


def test_the_vector_exponential_is_numpys(rng):
    x = np.concatenate([[0.0, -80.0], -80.0 * rng.random(5000)])
    np.testing.assert_allclose([_exp(value) for value in x], np.exp(x), rtol=1e-14)


def test_inverses_and_determinants_are_numpys(rng):
    for size in (1, 2, 7):
        roots = rng.normal(size=(9, size, size + 3))
        matrices = roots @ roots.transpose(0, 2, 1)
        inverses, log_det = invert(np.ascontiguousarray(matrices.transpose(1, 2, 0)))
        np.testing.assert_allclose(inverses.transpose(2, 0, 1), np.linalg.inv(matrices), rtol=1e-9)
        np.testing.assert_allclose(log_det, -0.5 * np.linalg.slogdet(matrices)[1])


def test_only_a_matrix_that_is_not_positive_definite_gives_nan():
    good, negative, indefinite = np.diag([2.0, 4.0]), np.diag([-1.0, 4.0]), [[1.0, 2.0], [2.0, 1.0]]
    matrices = np.stack([good, negative, indefinite], axis=-1)
    inverses, log_det = invert(matrices)
    np.testing.assert_allclose(inverses[:, :, 0], [[0.5, 0.0], [0.0, 0.25]])
    np.testing.assert_array_equal(np.isnan(log_det), [False, True, True])
