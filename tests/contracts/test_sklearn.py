"""scikit-learn and joblib, the real ones: pipelines, searches, routing and parallel contexts."""

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


def test_a_scaler_that_gives_frames_hands_its_names_on(data):
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, GammaGMM(["KNN", "LOF"], **SMALL)).fit(data)
    scaled = StandardScaler().fit_transform(data)
    alone = direct(scaled)
    assert pipeline[-1].posterior_.mean == alone.posterior_.mean
    assert pipeline[-1].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(pipeline.predict(data), alone.predict(scaled))
    np.testing.assert_array_equal(pipeline.predict_proba(data), alone.predict_proba(scaled))
    np.testing.assert_array_equal(pipeline.decision_function(data), alone.decision_function(scaled))


def test_a_pipelines_output_may_be_set_as_a_whole(data):
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
    """A scoring function: what the estimator says of the rows it was fitted on."""
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
def test_metadata_routing_does_not_get_in_the_way(data, is_on):
    with sklearn.config_context(enable_metadata_routing=is_on):
        pipeline = make_pipeline(StandardScaler(), GammaGMM(["KNN", "LOF"], **SMALL)).fit(data)
        scaled = StandardScaler().fit_transform(data)
        alone = direct(scaled)
        np.testing.assert_array_equal(pipeline.predict(data), alone.predict(scaled))
        # The one parameter that could be routed is the costs of `predict`.
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


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblibs_own_context_sets_the_jobs_and_not_the_answer(data, fitted, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        same_answer(clone(fitted).fit(data), fitted)


# joblib's own Dask backend, before joblib 1.6.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:`apply_async` is deprecated:DeprecationWarning")
def test_joblibs_context_may_be_a_dask_cluster(data, fitted):
    distributed = pytest.importorskip("dask.distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        with joblib.parallel_config(backend="dask"):
            same_answer(clone(fitted).fit(data), fitted)
        n_tasks = client.run(lambda dask_worker: dask_worker.state.executed_count)
    # Which worker takes a task is the scheduler's choice: all of them ran on the cluster.
    n_jobs = len(fitted.detectors) + fitted.n_runs
    assert sum(n_tasks.values()) >= n_jobs, n_tasks
