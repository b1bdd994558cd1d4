"""Without anywidget, the widget is refused by a typed error; its answers go to the estimator."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.errors import MissingExtraError
from gammagmm.estimator.label_session import LabelSession
from gammagmm.report.label_widget import Answers

# Small fits are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")


@pytest.fixture
def data():
    return load_demo()


@pytest.fixture
def estimator(data):
    return GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(data.X)


def test_the_widget_needs_its_extra(monkeypatch, estimator):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(MissingExtraError) as caught:
        estimator.label()
    assert caught.value.args[1] == "notebook"


def begin(estimator):
    session = LabelSession(estimator.fit_, rng=np.random.default_rng(0))
    return Answers(estimator, session, "share")


def test_each_answer_is_a_label_of_the_estimator_and_undo_takes_it_back(estimator, data):
    answers, fitted = begin(estimator), estimator.fit_
    given = {}
    for _ in range(10):
        row = answers.answer({"kind": "open"})["cards"][0]["row"]
        given[row] = int(data.y[row])
        answers.answer({"kind": "answer", "row": row, "label": given[row]})
        answers.keep()
        assert dict(zip(estimator.known_rows_.rows, estimator.known_rows_.labels, strict=True)) == (
            given
        )
    expected = fitted.update(list(given), list(given.values()))
    assert estimator.posterior_.mean == expected.posterior.mean
    answers.answer({"kind": "undo"})
    answers.keep()
    assert set(estimator.known_rows_.rows) == set(list(given)[:-1])


def test_labels_that_were_given_elsewhere_stay(estimator, data):
    answers = begin(estimator)
    estimator.update([3], [0], at_random=False)
    row = answers.answer({"kind": "open"})["cards"][0]["row"]
    answers.answer({"kind": "answer", "row": row, "label": 1})
    answers.keep()
    assert set(estimator.known_rows_.rows) == {3, row}
    estimator.fit(data.X)
    with pytest.raises(ValueError, match="fitted again"):
        answers.answer({"kind": "look"})
