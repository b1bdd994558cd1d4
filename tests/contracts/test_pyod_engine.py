"""The estimate as the contamination of PyOD's engine, through its public methods alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pyod.models.ecod import ECOD
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.utils.ad_engine import ADEngine

from gammagmm import Contamination, GammaGMM, GammaPosterior
from gammagmm.datasets import load_demo
from tests.support.demo_scores import demo_scores

DETECTORS = {"IForest": IForest, "ECOD": ECOD, "KNN": KNN}


@pytest.fixture(scope="module")
def gamma():
    scores = GammaGMM("precomputed", n_runs=2, random_state=0).fit(demo_scores())
    return scores.contamination_


@pytest.fixture(scope="module")
def engine():
    return ADEngine(random_state=0)


def adjusted(engine, value):
    """A state that is analysed once with PyOD's contamination, then with `value`."""
    state = engine.investigate(load_demo().X)
    assert state.plans[0]["params"]["contamination"] == 0.1  # PyOD's own
    state = engine.iterate(state, {"action": "adjust_contamination", "value": value})
    return engine.analyze(engine.run(state))


@pytest.fixture(scope="module")
def state(engine, gamma):
    return adjusted(engine, gamma)


def test_the_labels_are_those_of_pyod_with_that_number(state, gamma):
    X, votes = load_demo().X, []
    for result in state.results:
        kind = DETECTORS[result["detector_name"]]
        seed = {"random_state": 0} if kind is IForest else {}
        alone = kind(contamination=float(gamma), **seed).fit(X)
        np.testing.assert_array_equal(result["scores_train"], alone.decision_scores_)
        np.testing.assert_array_equal(result["labels_train"], alone.labels_)
        assert result["threshold"] == alone.threshold_
        votes.append(alone.labels_)
    assert len(votes) == 3
    np.testing.assert_array_equal(state.consensus["labels"], np.mean(votes, axis=0) > 0.5)
    assert 0 < state.consensus["labels"].sum() < 0.1 * len(X)


def test_the_engine_keeps_the_number_with_its_posterior(engine, state, gamma):
    used = engine.contamination_diagnostics(state)["effective_contamination"]
    assert isinstance(used, Contamination)
    assert used.posterior.mean == gamma == used
    assert json.loads(json.dumps(state.plans))[0]["params"]["contamination"] == float(gamma)
    assert all(result["detector"].contamination == gamma for result in state.results)


def test_the_scores_of_the_engine_have_a_posterior(state):
    scores = np.column_stack([result["scores_train"] for result in state.results])
    estimator = GammaGMM("precomputed", n_runs=2, random_state=0).fit(scores)
    assert 0.0 < estimator.contamination_ < 0.15
    # Rows that the engine flags rank high: the scores went in with the right sign.
    flagged = state.consensus["labels"] == 1
    assert estimator.decision_scores_[flagged].min() > np.median(estimator.decision_scores_)


def test_an_estimate_of_0_makes_every_detector_of_the_engine_fail(engine):
    """Why the guide recommends `estimate_contamination`, which raises an error before."""
    state = adjusted(engine, Contamination(GammaPosterior.degenerate()))
    assert {result["status"] for result in state.results} == {"error"}
    assert state.next_action["action"] == "confirm_with_user"
