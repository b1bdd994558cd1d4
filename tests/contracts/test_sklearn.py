"""`GammaGMM` in pipelines, searches, routing and parallel contexts of scikit-learn and joblib."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

SMALL = {"n_components": 15, "n_runs": 2, "n_draws": 100, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_contaminated(200, 4, 0.05, "clustered", random_state=1).X


@pytest.fixture(scope="module")
def fitted(data):
    return GammaGMM(["KNN", "LOF", "IForest"], **SMALL).fit(data)


def direct(X):
    return GammaGMM(["KNN", "LOF"], **SMALL).fit(X)


def test_a_scaler_that_returns_frames_passes_its_column_names_on(data):
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, GammaGMM(["KNN", "LOF"], **SMALL)).fit(data)
    scaled = StandardScaler().fit_transform(data)
    alone = direct(scaled)
    assert pipeline[-1].posterior_.mean == alone.posterior_.mean
    assert pipeline[-1].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(pipeline.predict(data), alone.predict(scaled))
    np.testing.assert_array_equal(pipeline.predict_proba(data), alone.predict_proba(scaled))
    np.testing.assert_array_equal(pipeline.decision_function(data), alone.decision_function(scaled))


def test_the_output_of_a_whole_pipeline_may_be_set(data):
    pipeline = make_pipeline(StandardScaler(), PCA(2), GammaGMM(["KNN", "LOF"], **SMALL))
    pipeline.set_output(transform="polars").fit(data)
    assert pipeline[-1].feature_names_in_.tolist() == ["pca0", "pca1"]
    assert set(pipeline.predict(data)) == {0, 1}


def test_a_pipeline_may_be_cloned_and_its_parameters_set(data):
    pipeline = make_pipeline(StandardScaler(), GammaGMM(["KNN", "LOF"], **SMALL))
    made = clone(pipeline).set_params(gammagmm__p0=0.05).fit(data)
    assert made[-1].posterior_.prob_zero == 0.05
    assert pipeline[-1].p0 == 0.01
    assert not hasattr(pipeline[-1], "posterior_")


def posterior_mean(estimator, X, y=None):
    """A scoring function: the posterior mean of the training rows."""
    assert len(estimator.labels_) == 100
    assert len(X) == 100
    return estimator.posterior_.mean


def test_a_grid_search_clones_and_fits_it(data):
    grid = {"p0": [0.01, 0.2], "detectors": [["KNN", "LOF", "IForest"], ["KNN", "COPOD", "HBOS"]]}
    search = GridSearchCV(
        GammaGMM(**SMALL, p_high=0.6),
        grid,
        scoring=posterior_mean,
        cv=2,
        error_score="raise",
    ).fit(data)
    results = search.cv_results_
    for i, parameters in enumerate(results["params"]):
        for j, rows in enumerate((slice(100, 200), slice(0, 100))):
            alone = GammaGMM(**SMALL, p_high=0.6, **parameters).fit(data[rows])
            assert results[f"split{j}_test_score"][i] == alone.posterior_.mean
    assert search.best_estimator_.get_params()["p0"] == 0.01
    assert len(search.best_estimator_.labels_) == 200
    np.testing.assert_array_equal(search.predict(data), search.best_estimator_.predict(data))


@pytest.mark.parametrize("is_on", [False, True])
def test_the_answers_do_not_depend_on_metadata_routing(data, is_on):
    with sklearn.config_context(enable_metadata_routing=is_on):
        pipeline = make_pipeline(StandardScaler(), GammaGMM(["KNN", "LOF"], **SMALL)).fit(data)
        scaled = StandardScaler().fit_transform(data)
        alone = direct(scaled)
        np.testing.assert_array_equal(pipeline.predict(data), alone.predict(scaled))
        # `costs` of `predict` is the only parameter that can be routed.
        if is_on:
            pipeline[-1].set_predict_request(costs=True)
        by_cost = pipeline.predict(data, costs=(1, 9))
        np.testing.assert_array_equal(by_cost, alone.predict(scaled, costs=(1, 9)))
        assert by_cost.sum() > pipeline.predict(data).sum()
        estimator = GammaGMM(["KNN", "LOF", "IForest"], **SMALL, p_high=0.6)
        search = GridSearchCV(estimator, {"p0": [0.01]}, scoring=posterior_mean, cv=2)
        assert search.set_params(error_score="raise").fit(data).best_score_ > 0.0


# Half of few rows leaves some runs without a solution.
QUICK = SMALL | {"p_high": 0.6, "max_restarts": 1}
few_rows = pytest.mark.filterwarnings("ignore:The model has no:gammagmm.errors.NoSolutionWarning")


@pytest.fixture(scope="module")
def labelled():
    """Rows with known labels, of which two folds have the same share of anomalies."""
    table = make_contaminated(200, 4, 0.1, "global", random_state=1)
    return table.X, table.y, StratifiedKFold(2, shuffle=True, random_state=0)


METRICS = {
    "roc_auc": lambda y, own, X: roc_auc_score(y, own.decision_function(X)),
    "average_precision": lambda y, own, X: average_precision_score(y, own.decision_function(X)),
    "f1": lambda y, own, X: f1_score(y, own.predict(X), pos_label=1),
    "neg_log_loss": lambda y, own, X: -log_loss(y, own.predict_proba(X)),
}


@few_rows
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_search_with_known_labels_uses_the_scores_and_the_labels(kind, labelled):
    X, y, cv = labelled
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GammaGMM(["KNN", "LOF"], **QUICK)),
        {"gammagmm__detectors": [["KNN", "LOF"], ["COPOD", "HBOS"]]},
        scoring=list(METRICS),
        refit="average_precision",
        cv=cv,
        error_score="raise",
    ).fit(kind(X), y)
    for i, parameters in enumerate(search.cv_results_["params"]):
        for j, (train, test) in enumerate(cv.split(X, y)):
            own = clone(search.estimator).set_params(**parameters).fit(X[train])
            for name, metric in METRICS.items():
                expected = metric(y[test], own, X[test])
                assert search.cv_results_[f"split{j}_test_{name}"][i] == pytest.approx(expected)
    assert search.best_score_ > 2 * y.mean()  # that of a random ranking
    assert search.classes_.tolist() == [0, 1]
    assert len(search.predict(kind(X))) == len(X)


@pytest.mark.long
@few_rows
def test_a_random_search_in_processes_gives_the_same(labelled):
    X, y, cv = labelled
    options = {"n_iter": 2, "random_state": 0, "scoring": "roc_auc", "cv": cv}
    found = [
        RandomizedSearchCV(
            GammaGMM(["KNN", "LOF"], **QUICK),
            {"scale": ["standard", "robust", None]},
            **options,
            n_jobs=n_jobs,
            error_score="raise",
        ).fit(X, y)
        for n_jobs in (None, 2)
    ]
    for name in ("params", "mean_test_score"):
        assert list(found[0].cv_results_[name]) == list(found[1].cv_results_[name])


@few_rows
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_predictions_of_folds_are_those_of_each_fold(method, labelled):
    X, y, cv = labelled
    estimator = GammaGMM(["KNN", "LOF"], **QUICK)
    found = cross_val_predict(estimator, X, y, cv=cv, method=method)
    for train, test in cv.split(X, y):
        own = clone(estimator).fit(X[train])
        np.testing.assert_array_equal(found[test], getattr(own, method)(X[test]))


def test_a_search_needs_a_score_because_there_are_no_labels(data):
    search = GridSearchCV(GammaGMM(["KNN", "LOF"], **QUICK), {"p0": [0.01]})
    with pytest.raises(
        TypeError, match=r"no scoring is specified, .* should have a 'score' method"
    ):
        search.fit(data)


@few_rows
def test_metadata_reaches_predict_and_what_fit_does_not_take_is_refused(labelled):
    X, y, _ = labelled
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), GammaGMM(["KNN", "LOF"], **QUICK)).fit(X, y)
        with pytest.raises(UnsetMetadataPassedError, match=r"\[costs\] are passed but are not"):
            pipeline.predict(X, costs=(1, 9))
        pipeline[-1].set_predict_request(costs=True)
        assert clone(pipeline)[-1].get_metadata_routing().predict.requests == {"costs": True}
        scaled = StandardScaler().fit_transform(X)
        expected = pipeline[-1].predict(scaled, costs=(1, 9))
        np.testing.assert_array_equal(pipeline.predict(X, costs=(1, 9)), expected)
        assert pipeline[-1].get_metadata_routing().fit.requests == {}
        with pytest.raises(TypeError, match="sample_weight"):
            make_pipeline(GammaGMM(["KNN", "LOF"], **QUICK)).fit(X, y, sample_weight=y)


def same_answer(estimator, other):
    np.testing.assert_array_equal(estimator.scores_, other.scores_)
    for name in ("weights", "a", "b"):
        ours, theirs = (getattr(e.posterior_.betas, name) for e in (estimator, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.usefixtures("in_workers", "two_threads")
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_context_of_joblib_does_not_change_the_answer(data, fitted, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        same_answer(clone(fitted).fit(data), fitted)


# The Dask backend of joblib before 1.6 uses a deprecated method.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`apply_async` is deprecated:DeprecationWarning")
def test_the_context_of_joblib_may_be_a_dask_cluster(data, fitted):
    distributed = pytest.importorskip("dask.distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        with joblib.parallel_config(backend="dask"):
            same_answer(clone(fitted).fit(data), fitted)
        n_tasks = client.run(lambda dask_worker: dask_worker.state.executed_count)
    # The scheduler chooses the worker of a task: only the total over the workers is fixed.
    n_jobs = len(fitted.detectors) + fitted.n_runs
    assert sum(n_tasks.values()) >= n_jobs, n_tasks
