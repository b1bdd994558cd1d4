"""scikit-learn's ``BayesianGaussianMixture``, one iteration at a time, as an oracle."""

from __future__ import annotations

import numpy as np
from sklearn.mixture import BayesianGaussianMixture


def sklearn_start(Z, labels, n_components, prior):
    """scikit-learn's mixture after its initialisation from a hard assignment of the rows."""
    oracle = BayesianGaussianMixture(
        n_components=n_components,
        weight_concentration_prior=prior.concentration,
        mean_precision_prior=prior.mean_precision,
        mean_prior=np.zeros(Z.shape[1]),
        degrees_of_freedom_prior=prior.degrees_of_freedom,
        covariance_prior=prior.covariance,
        reg_covar=prior.reg_covar,
    )
    resp = np.zeros((len(Z), n_components))
    resp[np.arange(len(Z)), labels] = 1.0
    oracle._check_parameters(Z)
    oracle._initialize(Z, resp)
    return oracle


def sklearn_iteration(oracle, Z):
    """Do one iteration of scikit-learn's mixture; returns its bound."""
    log_prob_norm, log_resp = oracle._e_step(Z)
    oracle._m_step(Z, log_resp)
    return oracle._compute_lower_bound(log_resp, log_prob_norm)


def assert_same_parameters(ours, oracle, rtol):
    """Compare our parameters with those of scikit-learn's mixture."""
    for name in ("weight_concentration", "mean_precision", "degrees_of_freedom"):
        np.testing.assert_allclose(getattr(ours, name), getattr(oracle, f"{name}_"), rtol=rtol)
    for name in ("means", "covariances"):
        theirs = getattr(oracle, f"{name}_")
        # Relative to the largest entry of each component: single entries pass through 0.
        scale = np.abs(theirs).max(axis=tuple(range(1, theirs.ndim)), keepdims=True)
        assert np.max(np.abs(getattr(ours, name) - theirs) / scale) < rtol, name
