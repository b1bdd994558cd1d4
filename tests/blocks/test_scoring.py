"""Detectors fitted on a sample of blocks against those fitted in memory, without a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm.blocks.collection import open_blocks
from gammagmm.blocks.scoring import fit_sample, score_all
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import resolve_detectors
from tests.support.detectors import make_X

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def test_a_smaller_sample_is_that_of_a_fit_in_memory():
    X = make_X(6_500, n_features=3)
    made, _ = resolve_detectors(["KNN", "LSCP"], len(X))
    settings = FitSettings(max_fit_rows=6_000, is_by_cost=True)
    here = fit_detectors(made, X, np.random.default_rng(0), settings)
    with dask.config.set(scheduler="synchronous"):
        blocks = open_blocks(da.from_array(X, chunks=(1_700, 3)))
        fitted, rows = fit_sample(blocks, made, np.random.default_rng(0), settings)
        scores = score_all(blocks, fitted, rows).scores.array().compute()
    assert [info.n_rows for info in fitted.info] == [6_000, 6_000**2 // 6_500]
    assert [info.n_rows for info in here.info] == [6_000, 6_000**2 // 6_500]
    np.testing.assert_allclose(scores, here.scores, rtol=1e-12)
