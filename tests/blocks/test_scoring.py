"""A fit over blocks against the fit in memory, without a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.blocks.collection import open_blocks
from gammagmm.blocks.scoring import (
    _drawn_rows,
    fit_sample,
    given_blocks,
    keep_usable_blocks,
    sample_rows,
    score_all,
)
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.errors import DetectorWarning
from tests.support.detectors import make_X
from tests.support.solved_scores import SOLVED, grouped_scores, has_content

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.mark.parametrize("max_mixture_rows", ["auto", 330])
def test_blocks_give_what_memory_gives(max_mixture_rows, rng):
    scores = grouped_scores(rng, 400) * [1.0, 50.0, 0.02, 3.0]
    make = SOLVED | {"max_mixture_rows": max_mixture_rows, "random_state": 0}
    here = GammaGMM("precomputed", **make).fit(scores)
    assert has_content(here.runs_)
    with dask.config.set(scheduler="synchronous"):
        there = GammaGMM("precomputed", **make).fit(da.from_array(scores, chunks=(90, 2)))
        labels = there.labels_.compute()
    for name in ("weights", "a", "b"):
        ours, theirs = (getattr(one.posterior_.betas, name) for one in (here, there))
        np.testing.assert_allclose(theirs, ours, rtol=1e-8)
    assert [run.elbo for run in there.runs_] == pytest.approx(
        [run.elbo for run in here.runs_], rel=1e-10
    )
    assert there.threshold_ == pytest.approx(here.threshold_, rel=1e-12)
    np.testing.assert_array_equal(labels, here.labels_)


class Memory:
    """A detector that gives the rows that it has seen higher scores than other rows."""

    def fit(self, X):
        self.decision_scores_ = X[:, 0] + 10.0

    def decision_function(self, X):
        return X[:, 0]


def test_only_rows_outside_the_sample_count_as_new(rng):
    """Among all rows, most of which are in the sample, the difference would hardly show."""
    X = rng.normal(size=(200, 2))
    made, _ = resolve_detectors({"KNN": "KNN", "LOF": "LOF", "memory": Memory()}, 150)
    settings = FitSettings(max_fit_rows=150)
    with dask.config.set(scheduler="synchronous"):
        blocks = open_blocks(da.from_array(X, chunks=(60, 2)))
        scored = score_all(blocks, *fit_sample(blocks, made, np.random.default_rng(0), settings))
        assert len(scored.sample) == 150
        with pytest.warns(DetectorWarning, match="memory was skipped") as caught:
            usable, _ = keep_usable_blocks(scored, np.arange(200))
        column = scored.scores.array().compute()[:, 2]
    assert len(caught) == 1
    assert list(usable.fitted.detectors) == ["KNN", "LOF"]
    # A row of the sample has its training score, every other row that of a new row.
    is_sampled = np.isin(np.arange(200), scored.sample)
    np.testing.assert_allclose(column, X[:, 0] + 10.0 * is_sampled)


@pytest.mark.long
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


def test_the_sample_is_that_of_a_fit_in_memory(rng):
    """`fit_detectors` draws it from the first child of its generator."""
    (child,) = np.random.default_rng(1).spawn(1)
    expected = np.sort(child.choice(1000, 50, replace=False))
    source = np.random.default_rng(1)
    np.testing.assert_array_equal(sample_rows(1000, 50, source), expected)
    np.testing.assert_array_equal(sample_rows(1000, 50, source), expected)  # nothing was spawned
    np.testing.assert_array_equal(sample_rows(40, 50, source), np.arange(40))


def test_given_scores_have_no_rows_that_were_fitted_on(rng):
    scores = np.exp(rng.normal(size=(30, 2)))
    with dask.config.set(scheduler="synchronous"):
        scored = given_blocks(open_blocks(da.from_array(scores, chunks=(20, 2))), None)
        np.testing.assert_array_equal(scored.scores.array().compute(), scores)
    assert len(scored.sample) == len(scored.fitted.scores) == 0
    assert [(info.name, info.n_rows) for info in scored.fitted.info] == [
        ("score_1", 30),
        ("score_2", 30),
    ]


def test_a_constant_detector_leaves_the_scores_of_the_others(rng):
    scores = np.column_stack([rng.normal(size=30), np.ones(30), rng.normal(size=30)])
    with dask.config.set(scheduler="synchronous"):
        scored = given_blocks(open_blocks(da.from_array(scores, chunks=(20, 3))), None)
        with pytest.warns(DetectorWarning, match="score_2 was skipped"):
            usable, seen = keep_usable_blocks(scored, np.arange(30))
        np.testing.assert_array_equal(usable.scores.array().compute(), scores[:, [0, 2]])
    assert list(usable.fitted.detectors) == ["score_1", "score_3"]
    np.testing.assert_array_equal(seen.highest, scores[:, [0, 2]].max(axis=0))
    np.testing.assert_array_equal(seen.lowest, scores[:, [0, 2]].min(axis=0))


def test_a_sample_of_all_rows_keeps_their_order():
    """As in memory, where nothing is drawn if all rows are fitted on."""
    assert _drawn_rows(50, 50, np.random.default_rng(1)).tolist() == list(range(50))
    drawn = _drawn_rows(51, 50, np.random.default_rng(1)).tolist()
    assert len(set(drawn)) == 50
    assert drawn != sorted(drawn)


class SOS(Memory):
    """By its name, one of PyOD's detectors that score new rows by their batch."""


class Refuses(Memory):
    def decision_function(self, X):
        raise RuntimeError("no new rows, please")


def test_every_detector_that_cannot_score_new_rows_is_left_out(rng):
    X = rng.normal(size=(60, 2))
    detectors = {"batch": SOS(), "KNN": "KNN", "refuses": Refuses(), "LOF": "LOF"}
    made, _ = resolve_detectors(detectors, 40)
    with dask.config.set(scheduler="synchronous"):
        blocks = open_blocks(da.from_array(X, chunks=(30, 2)))
        fitted, _ = fit_sample(blocks, made, np.random.default_rng(0), FitSettings(max_fit_rows=40))
    assert list(fitted.detectors) == ["KNN", "LOF"]
    reasons = {info.name: info.reason for info in fitted.info}
    assert "depends on the other rows" in reasons["batch"]
    assert "no new rows, please" in reasons["refuses"]


class FirstRow(Memory):
    """A detector that scores the first new row only."""

    def decision_function(self, X):
        return X[:1, 0]


def test_a_detector_must_score_each_of_several_new_rows(rng):
    X = rng.normal(size=(60, 2))
    made, _ = resolve_detectors({"first": FirstRow(), "KNN": "KNN"}, 40)
    with dask.config.set(scheduler="synchronous"):
        blocks = open_blocks(da.from_array(X, chunks=(25, 2)))
        settings = FitSettings(max_fit_rows=40)
        fitted, rows = fit_sample(blocks, made, np.random.default_rng(0), settings)
    assert list(fitted.detectors) == ["KNN"]
    assert fitted.scores.shape == (len(rows), 1) == (40, 1)
    assert "scores of shape (1,), expected (2,)" in fitted.info[0].reason
