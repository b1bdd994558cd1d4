import numpy as np

from gammagmm.mixture.kernel import _exp, _softmax, accumulate
from gammagmm.mixture.statistics import features


def test_the_vector_exponential_is_numpys(rng):
    x = np.concatenate([[0.0, -80.0], -80.0 * rng.random(5000)])
    np.testing.assert_allclose([_exp(value) for value in x], np.exp(x), rtol=1e-14)


def summarise(Z, coefficients):
    moments = np.zeros(coefficients.shape)
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


def test_a_single_component_has_every_row_whatever_lies_beside_it():
    logits = np.array([[-3.0, np.nan], [0.0, np.inf], [5.0, np.nan]])
    assert _softmax(logits[:, :1]) == 0.0
    np.testing.assert_array_equal(logits[:, 0], 1.0)
