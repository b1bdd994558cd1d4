"""What several kinds of trials share, against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.refits import before_log, thresholder_shares

from gammagmm.mixture.score_space import fit_scaler


def test_without_the_logarithm_scores_are_only_standardised(rng):
    S = rng.gamma(2.0, size=(200, 3))
    before = before_log(S)
    found = fit_scaler(before).transform(before)
    np.testing.assert_allclose(found, (S - S.mean(axis=0)) / S.std(axis=0), atol=1e-9)


@pytest.mark.usefixtures("keep_global_random_state")
def test_a_thresholders_share_is_that_of_its_rule(rng):
    Z = rng.normal(size=(400, 2))
    shares = thresholder_shares("IQR", Z, joint=False, seed=0)
    for column, share in zip(Z.T, shares, strict=True):
        q1, q3 = np.percentile(column, [25, 75])
        # PyThresh scales to [0, 1] first, which moves no row across the fence.
        assert share == pytest.approx(np.mean(column >= q3 + 1.5 * (q3 - q1)), abs=0.006)
