import numpy as np

from gammagmm.mixture.kernel import _exp, accumulate, invert
from gammagmm.mixture.statistics import features


def test_the_vector_exponential_is_numpys(rng):
    x = np.concatenate([[0.0, -80.0], -80.0 * rng.random(5000)])
    np.testing.assert_allclose([_exp(value) for value in x], np.exp(x), rtol=1e-14)


def test_inverses_and_determinants_are_numpys(rng):
    for size in (1, 2, 7):
        roots = rng.normal(size=(9, size, size + 3))
        matrices = roots @ roots.transpose(0, 2, 1)
        i, j = np.triu_indices(size)
        inverses, log_det = invert(np.ascontiguousarray(matrices[:, i, j].T))
        np.testing.assert_allclose(inverses.T, np.linalg.inv(matrices)[:, i, j], rtol=1e-9)
        np.testing.assert_allclose(log_det, -0.5 * np.linalg.slogdet(matrices)[1])


def test_a_matrix_that_is_not_positive_definite_gives_nan():
    matrices = np.array([[1.0, 1.0, 2.0], [0.0, 2.0, 0.0], [1.0, 1.0, 3.0]])
    inverses, log_det = invert(matrices)
    assert np.isnan(log_det).tolist() == [False, True, False]
    np.testing.assert_allclose(inverses[:, [0, 2]].T, [[1.0, 0.0, 1.0], [0.5, 0.0, 1.0 / 3.0]])


def summarise(Z, coefficients):
    moments = np.full(coefficients.shape, np.nan)
    return moments, accumulate(Z, np.ascontiguousarray(coefficients.T), moments)


def test_entropy_and_moments_are_those_of_the_responsibilities(rng):
    Z, coefficients = rng.normal(size=(30, 2)), rng.normal(size=(4, 6))
    logits = features(Z) @ coefficients.T
    resp = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    moments, entropy = summarise(Z, coefficients)
    np.testing.assert_allclose(moments[:, 0], resp.sum(axis=0))
    np.testing.assert_allclose(moments[:, 1:3], resp.T @ Z)
    np.testing.assert_allclose(moments[:, 4], resp.T @ (Z[:, 0] * Z[:, 1]))
    np.testing.assert_allclose(entropy, -(resp * np.log(resp)).sum())


def test_responsibilities_keep_their_digits_where_one_component_is_far_ahead(rng):
    # Logits that differ by up to 3000: far outside the range of exp.
    Z, coefficients = rng.normal(size=(200, 2)), 300.0 * rng.normal(size=(9, 6))
    logits = features(Z) @ coefficients.T
    shifted = logits - logits.max(axis=1, keepdims=True)
    resp = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    moments, _ = summarise(Z, coefficients)
    np.testing.assert_allclose(moments[:, 0], resp.sum(axis=0), rtol=1e-12, atol=1e-30)
