import numpy as np
import pytest

from gammagmm.errors import MixtureError
from gammagmm.mixture.prior import MixturePrior
from tests.support.mixtures import fit_mixture


def test_two_detectors_with_the_same_scores_get_a_regularised_prior(rng):
    column = rng.normal(size=(100, 1))
    Z = np.hstack([column, column])
    prior = MixturePrior().resolve(Z)
    assert prior.is_regularised
    np.testing.assert_allclose(
        prior.covariance, np.cov(Z.T) + 1e-6 * np.var(column, ddof=1) * np.eye(2)
    )
    assert not MixturePrior().resolve(rng.normal(size=(100, 2))).is_regularised
    assert np.isfinite(fit_mixture(Z, 10).elbo)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (MixturePrior("diagonal"), "covariance must be 'empirical', 'identity' or an array, got"),
        (MixturePrior(np.eye(3)), r"must have shape \(2, 2\), got \(3, 3\)"),
        (MixturePrior(-np.eye(2)), "must be finite, symmetric and positive definite"),
        (MixturePrior(np.diag([-1.0, 1.0])), "must be finite, symmetric and positive definite"),
        (MixturePrior(np.ones((2, 2))), "must be finite, symmetric and positive definite"),
        (MixturePrior(np.full((2, 2), np.nan)), "must be finite, symmetric and positive"),
        (MixturePrior(concentration=0.0), "mixture_prior.concentration must be a finite number"),
        (MixturePrior(degrees_of_freedom=1), "must exceed the number of detectors minus one, 1"),
    ],
)
def test_a_bad_prior_is_refused(prior, message, rng):
    with pytest.raises(ValueError, match=message):
        prior.resolve(rng.normal(size=(20, 2)))


def test_rows_too_far_from_0_relative_to_their_spread_are_refused(rng):
    for Z in (rng.normal(size=(200, 2)) + 1e7, np.full((40, 3), 1e6)):
        with pytest.raises(MixtureError, match="too far from 0, relative to their spread") as error:
            fit_mixture(Z, 5)
        assert error.value.todo.startswith("Centre the columns and scale them")
