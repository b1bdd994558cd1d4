"""Window scores of aeon's detectors, and what overlapping windows do to the share."""

from __future__ import annotations

import contextlib
import io
import runpy

import numpy as np
import pytest
from aeon.anomaly_detection.series.distribution_based import COPOD as SeriesCOPOD
from aeon.anomaly_detection.series.outlier_detection import IsolationForest
from pyod.models.copod import COPOD
from pyod.models.iforest import IForest

from gammagmm import GammaGMM
from tests.support.example_scripts import script

N_DAYS, DAY = 500, 24


@pytest.fixture(scope="module")
def example():
    """The names of the script after it has run."""
    with contextlib.redirect_stdout(io.StringIO()):
        return runpy.run_path(str(script("time_series")))


@pytest.fixture(scope="module")
def unusual_days(example):
    """The unusual days, read from the series itself: noise is far below the change of 4."""
    usual = 10 + 3 * np.sin(2 * np.pi * np.arange(N_DAYS * DAY) / DAY)
    far = np.abs(example["load"] - usual) > 2.5
    return np.flatnonzero(far.reshape(N_DAYS, DAY).any(axis=1)).tolist()


def fit(example, stride):
    scores = example["window_scores"](example["load"], DAY, stride)
    return GammaGMM("precomputed", n_runs=3, random_state=0).fit(scores)


def test_the_scores_of_windows_are_those_of_pyod_on_the_rows_of_a_table(example):
    rows = example["load"].reshape(N_DAYS, DAY)
    for series, table in (
        (IsolationForest(window_size=DAY, stride=DAY, random_state=0), IForest(random_state=0)),
        (SeriesCOPOD(window_size=DAY, stride=DAY), COPOD()),
    ):
        points = series.fit_predict(example["load"])
        np.testing.assert_array_equal(points, np.repeat(points[::DAY], DAY))
        np.testing.assert_allclose(points[::DAY], table.fit(rows).decision_scores_, rtol=1e-12)


def test_the_group_consists_of_the_unusual_days(example, unusual_days):
    estimator = fit(example, stride=DAY)
    assert len(unusual_days) == 15
    assert sorted(estimator.evidence_.separate_rows.rows.tolist()) == unusual_days
    assert estimator.posterior_.contains(15 / N_DAYS)
    assert set(unusual_days) <= set(np.flatnonzero(estimator.labels_).tolist())


def test_an_unusual_day_counts_four_times_if_windows_overlap_by_half(example, unusual_days):
    estimator = fit(example, stride=DAY // 2)
    # The windows from half a day before to half a day after touch its middle hours. aeon gives a
    # point the mean of the two windows that contain it, so a fourth half day is affected.
    touched = {2 * day + step for day in unusual_days for step in (-1, 0, 1, 2)}
    assert set(estimator.evidence_.separate_rows.rows.tolist()) == touched
    assert estimator.posterior_.interval()[0] > 2 * 15 / N_DAYS
