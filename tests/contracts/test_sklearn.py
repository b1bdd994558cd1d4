"""`GammaGMM` in pipelines, searches, routing and parallel contexts of scikit-learn and joblib."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

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
