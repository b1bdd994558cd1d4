"""A mixture of one run, fitted with plain steps as scikit-learn fits it."""

from __future__ import annotations

import numpy as np

from gammagmm.mixture.backends import count_threads
from gammagmm.mixture.fit import fit_mixtures, start_labels
from gammagmm.mixture.prior import MixturePrior


def fit_mixture(Z, n_components, seed=0, max_iter=1500, tol=1e-3, **options):
    """The mixture of the rows Z (n, M) under the default prior."""
    settings = {"n_components": n_components, "max_iter": max_iter, "tol": tol}
    rngs, prior = [np.random.default_rng(seed)], MixturePrior().resolve(Z)
    ((_, mixture),) = fit_mixtures(
        Z[None], prior, rngs, n_threads=count_threads(), **settings, **options
    )
    return mixture


def labels_of(Z, n_components, rng):
    """The clusters of the rows Z (n, M) in which a run starts."""
    return start_labels(Z[None], n_components, [rng])[0]
