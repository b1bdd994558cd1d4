import pickle

import numpy as np
import pytest
from pyod.models.knn import KNN
from sklearn.ensemble import IsolationForest

from gammagmm import Contamination, GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.errors import (
    NoContaminationError,
    NoLabelsWarning,
    NoSolutionWarning,
    SeparateRowsWarning,
    UnsolvedRunsWarning,
)
from gammagmm.estimator.estimate_contamination import estimate_contamination

OPTIONS = {"detectors": ["KNN", "LOF"], "scale": None, "n_runs": 2, "n_draws": 100}
OPTIONS |= {"random_state": 0}
# One hump: the most anomalous component is too large to meet p_high.
NO_SOLUTION = {"detectors": "precomputed", "n_runs": 1, "max_restarts": 0, "n_components": 2}


@pytest.fixture(scope="module")
def clean():
    return np.random.default_rng(0).uniform(size=(40, 2))


def test_it_is_the_estimators_contamination():
    X = load_demo().X
    with pytest.warns(NoLabelsWarning, match="of 303 public tables"):
        gamma = estimate_contamination(X, **OPTIONS)
    fitted = GammaGMM(**OPTIONS).fit(X)
    assert type(gamma) is Contamination
    assert gamma == fitted.posterior_.mean > 0.05
    # An estimate above 0 is the same whether or not one row at least is asked for.
    with pytest.warns(NoLabelsWarning):
        assert estimate_contamination(X, at_least_one=True, **OPTIONS) == gamma


def test_labels_are_those_of_update():
    data = load_demo()
    rows = np.random.default_rng(0).choice(len(data.X), 30, replace=False)
    labels = {int(row): int(data.y[row]) for row in rows}
    gamma = estimate_contamination(data.X, labels=labels, **OPTIONS)
    fitted = GammaGMM(**OPTIONS).fit(data.X)
    without = fitted.posterior_.mean
    fitted.update(rows, data.y[rows])
    assert gamma == fitted.posterior_.mean != without
    with pytest.warns(NoLabelsWarning):
        assert estimate_contamination(data.X, labels={}, **OPTIONS) == without


@pytest.mark.parametrize("labels", [[1, 0], "yes", np.zeros(3)])
def test_labels_must_name_their_rows(labels):
    with pytest.raises(TypeError, match="labels must be a dict"):
        estimate_contamination(load_demo().X, labels=labels, **OPTIONS)


def test_an_estimate_of_zero_is_an_error_that_says_why_and_what_to_do(clean):
    words = (
        r"The estimate is 0, but PyOD and scikit-learn do not accept a contamination of 0\. "
        r"The model has no estimate .*p_high is 0\.01\. Label about 30 rows .* Or pass "
        r"at_least_one=True to get 1 / n_rows = 0\.025\."
    )
    with (
        pytest.warns(NoSolutionWarning, match="The model has no estimate"),
        pytest.raises(NoContaminationError, match=words) as caught,
    ):
        estimate_contamination(clean, **NO_SOLUTION)
    assert isinstance(caught.value, ValueError)
    assert caught.value.estimator.posterior_.is_degenerate
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.filterwarnings("ignore::gammagmm.errors.GammaGMMWarning")
def test_labels_of_all_rows_may_show_that_there_is_no_anomaly(clean):
    labels = dict.fromkeys(range(len(clean)), 0)
    with pytest.raises(NoContaminationError, match="All rows are labelled normal") as caught:
        estimate_contamination(clean, labels=labels, **OPTIONS)
    assert caught.value.estimator.contamination_ == 0.0
    gamma = estimate_contamination(clean, labels=labels, at_least_one=True, **OPTIONS)
    assert gamma == 1 / 40


def test_at_least_one_row_is_one_row(clean):
    with pytest.warns(NoSolutionWarning), pytest.warns(NoLabelsWarning):
        gamma = estimate_contamination(clean, at_least_one=True, **NO_SOLUTION)
    assert type(gamma) is Contamination
    assert gamma == 1 / 40
    assert gamma.posterior.is_degenerate
    loaded = pickle.loads(pickle.dumps(gamma))
    assert (loaded, loaded.posterior.is_degenerate) == (1 / 40, True)
    assert KNN(contamination=gamma).fit(clean).labels_.sum() == 1
    forest = IsolationForest(contamination=gamma, n_estimators=20, random_state=0)
    assert (forest.fit_predict(clean) == -1).sum() == 1


def test_a_parameter_that_is_none_is_refused(clean):
    with pytest.raises(TypeError, match="unexpected keyword argument 'contamination'"):
        estimate_contamination(clean, contamination=0.1)


def test_it_warns_as_the_estimator_does():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 4))
    scores[:90] += 12.0 + 5.0 * rng.normal(size=(90, 4))
    options = {"detectors": "precomputed", "n_runs": 2, "random_state": 0}
    unsolved, separate = pytest.warns(UnsolvedRunsWarning), pytest.warns(SeparateRowsWarning)
    with unsolved, separate, pytest.warns(NoLabelsWarning):
        gamma = estimate_contamination(scores, **options)
    with pytest.warns(UnsolvedRunsWarning), pytest.warns(SeparateRowsWarning):
        fitted = GammaGMM(**options).fit(scores)
    assert gamma == fitted.contamination_
    assert 2 * fitted.evidence_.n_unsolved_starts > fitted.evidence_.n_starts


def test_a_group_without_an_estimate_is_named():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 4))
    scores[:80] = 12.0 + 0.1 * rng.normal(size=(80, 4))
    options = {"detectors": "precomputed", "n_runs": 2, "max_restarts": 4, "random_state": 0}
    no_solution, separate = pytest.warns(NoSolutionWarning), pytest.warns(SeparateRowsWarning)
    with no_solution, separate, pytest.raises(NoContaminationError) as caught:
        estimate_contamination(scores, **options)
    notes = {note.code: note for note in caught.value.estimator.notes_}
    assert notes["evidence.no estimate"].fields == {"n_rows": 80, "share": 0.2}
    assert notes["link.no solution"].fields["n_separate"] == 80
    assert notes["evidence.no estimate"].message in str(caught.value)
    assert "duplicate" not in str(caught.value)
    with no_solution, separate, pytest.warns(NoLabelsWarning):
        assert estimate_contamination(scores, at_least_one=True, **options) == 1 / 400
