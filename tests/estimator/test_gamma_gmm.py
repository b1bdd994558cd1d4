import copy
import os
import pickle
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from gammagmm import GammaGMM, GammaThreshold, estimate_contamination
from gammagmm.datasets import make_contaminated
from gammagmm.errors import (
    DetectorError,
    DetectorWarning,
    GammaGMMWarning,
    MixtureConvergenceWarning,
    NoSolutionWarning,
    UnsolvedRunsWarning,
)
from gammagmm.mixture.prior import MixturePrior

SMALL = {"n_components": 15, "n_runs": 3, "n_draws": 100, "max_restarts": 100}


@pytest.fixture(scope="module")
def data():
    return make_contaminated(200, 4, 0.05, "clustered", random_state=1).X


@pytest.fixture(scope="module")
def fitted(data):
    return GammaGMM(["KNN", "LOF", "IForest"], **SMALL, random_state=0).fit(data)


@pytest.fixture
def scores(rng):
    return np.exp(np.vstack([rng.normal(size=(190, 3)), rng.normal(3.0, 0.5, size=(10, 3))]))


# A mixture that cannot meet p_high answers with a warning, which is right on the checks' tiny
# and structureless data; so are detectors left out of it.
@pytest.mark.filterwarnings("ignore::gammagmm.errors.GammaGMMWarning")
@parametrize_with_checks(
    [
        GammaGMM("classic", n_components=5, n_runs=2, n_draws=50, max_restarts=1, random_state=0),
        # Answers that are not the point mass at 0, on most of the checks' data.
        GammaGMM(["KNN", "LOF"], p_high=0.6, n_runs=2, n_draws=50, max_restarts=1, random_state=0),
    ],
    expected_failed_checks=lambda _: dict.fromkeys(
        ("check_outliers_train", "check_outliers_fit_predict"),
        "the labels are 1 and 0 as in PyOD, not -1 and 1",
    ),
)
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)


def test_threshold_labels_and_consensus_are_what_they_say(fitted):
    gamma = fitted.posterior_.mean
    consensus = fitted.fit_.score_space.mean(axis=1)
    assert fitted.contamination_ == gamma
    assert fitted.contamination_.posterior is fitted.posterior_
    np.testing.assert_array_equal(fitted.decision_scores_, consensus)
    assert fitted.threshold_ == np.percentile(consensus, 100 * (1 - gamma))
    np.testing.assert_array_equal(fitted.labels_, (consensus > fitted.threshold_).astype(int))
    for j, name in enumerate(fitted.fit_.detector_names):
        own = np.percentile(fitted.scores_[:, j], 100 * (1 - gamma))
        assert fitted.thresholds_[name] == own
    at_ten = consensus > np.percentile(consensus, 90)
    np.testing.assert_array_equal(fitted.labelled_rows_.labels_at(0.1), at_ten.astype(int))


@pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")
def test_the_users_answers_reach_the_posterior(rng):
    rows = np.vstack([rng.normal(size=(290, 3)), rng.normal(2.0, 0.8, size=(30, 3))])
    estimator = GammaGMM("precomputed", p0=0.03, p_high=0.02, n_components=25, n_runs=3)
    estimator.set_params(max_restarts=20, random_state=0).fit(np.exp(rows))
    posterior = estimator.posterior_
    assert posterior.prob_zero == 0.03
    assert abs(posterior.prob_zero + posterior.betas.weights.sum() - 1.0) < 1e-12
    assert {run.status for run in estimator.fit_.runs} == {"solved", "slack"}
    for run in estimator.fit_.runs:
        alpha, r = run.components.alpha, run.components.anomalousness[: len(run.weights)]
        p = 1.0 / (1.0 + np.exp(run.tau + run.delta * r))
        assert abs(1.0 - p[0] - 0.03) < 1e-9
        pmf = np.cumprod(p) * np.append(1.0 - p[1:], 1.0)
        sums = np.cumsum(alpha)[: len(p)]
        p_high = pmf @ stats.beta(sums, alpha.sum() - sums).sf(0.15)
        assert abs(p_high - (0.02 if run.status == "solved" else run.reachable[1])) < 1e-9
        assert run.reached == run.posterior.prob_above(0.15)


def test_new_rows_are_scored_one_by_one(fitted, data):
    rows = data[:30] + 0.01
    together = fitted.decision_function(rows)
    alone = np.concatenate([fitted.decision_function(row[None]) for row in rows])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    scaled = fitted.fit_.column_scaler.transform(rows)
    raw = np.column_stack([d.decision_function(scaled) for d in fitted.detectors_.values()])
    np.testing.assert_allclose(together, fitted.fit_.scaler.transform(raw).mean(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(rows), (together > fitted.threshold_).astype(int))


def test_predict_treats_training_rows_as_new_rows(fitted, data):
    """KNN counts a training row as its own neighbour if it is passed as a new row."""
    labels = GammaGMM(["KNN", "LOF", "IForest"], **SMALL, random_state=0).fit_predict(data)
    np.testing.assert_array_equal(labels, fitted.labels_)
    column = fitted.fit_.detector_names.index("KNN")
    scaled = fitted.fit_.column_scaler.transform(data)
    distances = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    n_neighbors = fitted.detectors_["KNN"].n_neighbors
    np.testing.assert_allclose(
        fitted.scores_[:, column], np.sort(distances, axis=1)[:, n_neighbors], rtol=1e-6
    )
    as_new = fitted.detectors_["KNN"].decision_function(scaled)
    np.testing.assert_allclose(
        as_new, np.sort(distances, axis=1)[:, n_neighbors - 1], rtol=1e-6, atol=1e-6
    )
    assert (fitted.decision_function(data) < fitted.decision_scores_).mean() > 0.9


def test_probabilities_and_costs(fitted, data):
    rows = np.vstack([data[:20], 50.0 + data[:1]])
    proba = fitted.predict_proba(rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    scores = fitted.decision_function(rows)
    # A row has the probability of the training rows that rank as high.
    trained, own = fitted.decision_scores_, fitted.fit_.probability
    for p, score in zip(proba[:, 1], scores, strict=True):
        as_high = own[trained >= score]
        if as_high.size:
            np.testing.assert_allclose(p, as_high.min(), rtol=1e-12)
        else:
            assert own.max() < p < 1.0
    for miss in (1, 4, 20):
        expected = proba[:, 1] > 1 / (1 + miss)
        np.testing.assert_array_equal(fitted.predict(rows, costs=(1, miss)), expected)


@pytest.mark.usefixtures("in_workers")
@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.usefixtures("two_threads")
def test_same_seed_same_answer_for_any_n_jobs(fitted, data, n_jobs):
    again = GammaGMM(["KNN", "LOF", "IForest"], **SMALL, random_state=0, n_jobs=n_jobs).fit(data)
    for name in ("weights", "a", "b"):
        ours, theirs = (getattr(e.posterior_.betas, name) for e in (again, fitted))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")
def test_another_seed_gives_another_answer(fitted, data):
    other = GammaGMM(["KNN", "LOF", "IForest"], **SMALL, random_state=1).fit(data)
    assert other.posterior_.mean != fitted.posterior_.mean


def test_clone_pickle_and_copy_keep_the_answer(fitted, data):
    again = clone(fitted).fit(data)
    assert again.posterior_.mean == fitted.posterior_.mean
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert other.posterior_.mean == fitted.posterior_.mean
        np.testing.assert_array_equal(other.predict(data), fitted.predict(data))


def test_it_works_at_the_end_of_a_pipeline(data):
    pipeline = make_pipeline(
        StandardScaler(), GammaGMM(["KNN", "LOF"], **SMALL, random_state=0)
    ).fit(data)
    direct = GammaGMM(["KNN", "LOF"], **SMALL, random_state=0)
    direct.fit(StandardScaler().fit_transform(data))
    np.testing.assert_array_equal(
        pipeline.predict(data), direct.predict(StandardScaler().fit_transform(data))
    )
    assert pipeline[-1].posterior_.mean == direct.posterior_.mean


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.usefixtures("two_threads")
def test_fits_in_two_threads_at_once_give_each_its_own_answer(data):
    fits = [GammaGMM(["KNN", "LOF"], **SMALL, random_state=seed) for seed in (0, 1)]
    alone = [clone(fit).fit(data).posterior_.mean for fit in fits]
    before = blas_threads()
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda i: clone(fits[i % 2]).fit(data).posterior_.mean, range(6)))
    np.testing.assert_allclose(together, alone * 3, rtol=1e-9)
    assert blas_threads() == before


@pytest.mark.usefixtures("in_workers", "two_threads")
def test_fit_leaves_global_state_alone(data):
    torch = pytest.importorskip("torch")
    before = np.random.get_state(), random.getstate(), torch.random.get_rng_state()
    threads, environment = blas_threads(), dict(os.environ)
    GammaGMM("classic", **SMALL, random_state=0, n_jobs=2).fit(data)
    GammaGMM("classic", **SMALL).fit(data)
    after = np.random.get_state(), random.getstate(), torch.random.get_rng_state()
    assert blas_threads() == threads
    assert dict(os.environ) == environment
    np.testing.assert_array_equal(before[0][1], after[0][1])
    assert before[0][2:] == after[0][2:]
    assert before[1] == after[1]
    assert torch.equal(before[2], after[2])


def test_a_fit_or_an_update_that_fails_leaves_the_fitted_estimator_as_it_was(fitted, scores):
    estimator = copy.copy(fitted)
    before = dict(vars(estimator))
    with pytest.raises(DetectorError):
        estimator.fit(np.ones((30, 4)))
    with pytest.raises(ValueError, match="row positions"):
        estimator.update([0, 10**6], [0, 1])
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())


def test_random_state_may_be_a_generator_or_a_legacy_state(scores):
    from_int = GammaGMM("precomputed", **SMALL, random_state=3).fit(scores)
    rng = np.random.default_rng(3)
    from_generator = GammaGMM("precomputed", **SMALL, random_state=rng).fit(scores)
    assert from_int.posterior_.mean == from_generator.posterior_.mean
    legacy = [
        GammaGMM("precomputed", **SMALL, random_state=np.random.RandomState(0)).fit(scores)
        for _ in range(2)
    ]
    assert legacy[0].posterior_.mean == legacy[1].posterior_.mean


def test_precomputed_scores_are_the_scores(scores):
    estimator = GammaGMM("precomputed", **SMALL, random_state=0).fit(scores)
    np.testing.assert_array_equal(estimator.scores_, scores)
    assert estimator.fit_.detector_names == ["score_1", "score_2", "score_3"]
    np.testing.assert_allclose(
        estimator.decision_function(scores), estimator.decision_scores_, rtol=1e-12
    )
    frame = pd.DataFrame(scores, columns=["a", "b", "c"])
    named = GammaGMM("precomputed", **SMALL, random_state=0).fit(frame)
    assert named.fit_.detector_names == ["a", "b", "c"]
    assert named.posterior_.mean == estimator.posterior_.mean


def test_a_constant_detector_is_left_out_and_named(scores):
    wide = np.column_stack([scores[:, :1], np.full(len(scores), 7.0), scores[:, 1:]])
    estimator = GammaGMM("precomputed", **SMALL, random_state=0)
    with pytest.warns(DetectorWarning, match="score_2 was skipped: every row has the same score"):
        estimator.fit(wide)
    np.testing.assert_array_equal(estimator.scores_, scores)
    assert [info.status for info in estimator.fit_.detector_info] == ["ok", "constant", "ok", "ok"]
    assert estimator.notes_[0].subject == "score_2"
    np.testing.assert_allclose(
        estimator.decision_function(wide), estimator.decision_scores_, rtol=1e-12
    )


def test_scores_too_close_for_the_logarithm_are_constant(scores):
    wide = np.column_stack([scores, 1e-20 * scores[:, 0]])
    with pytest.warns(DetectorWarning, match="score_4 was skipped: every row has"):
        GammaGMM("precomputed", **SMALL, random_state=0).fit(wide)


def test_one_usable_of_two_is_an_error_and_one_of_one_is_not(scores):
    with pytest.raises(
        DetectorError, match="1 of 2 detectors gave usable scores, but 2 are needed"
    ):
        GammaGMM("precomputed", **SMALL).fit(np.column_stack([scores[:, 0], np.ones(200)]))
    single = GammaGMM("precomputed", **SMALL | {"max_restarts": 0}, random_state=0)
    # One column splits into few components, each too large: no solution, but no error either.
    with pytest.warns(NoSolutionWarning, match="The model has no estimate"):
        single.fit(scores[:, :1])
    assert single.scores_.shape == (200, 1)
    with pytest.raises(DetectorError, match="0 of 1 detectors gave usable scores, but 1 is needed"):
        GammaGMM("precomputed", **SMALL).fit(np.ones((50, 1)))


def test_small_data_is_noted(rng):
    estimator = GammaGMM(["KNN", "LOF"], n_runs=2, n_draws=50, max_restarts=0, random_state=0)
    # With 15 rows the smallest component already holds too large a share.
    with pytest.warns(NoSolutionWarning, match="The model has no estimate"):
        estimator.fit(rng.normal(size=(15, 2)))
    messages = [note.message for note in estimator.notes_]
    assert (
        "n_neighbors was lowered from 20 to 14 because the detector is fitted on 15 rows"
        in messages
    )
    assert "lowered from 100 to 14: there are 15 rows" in messages


def test_a_repeated_detector_is_noted_and_works(scores):
    repeated = np.column_stack([scores[:, 0], scores])
    estimator = GammaGMM("precomputed", **SMALL, p_high=0.5, random_state=0).fit(repeated)
    assert any("covariance prior is singular" in note.message for note in estimator.notes_)
    assert 0.0 < estimator.posterior_.mean < 0.25


def test_runs_that_hit_max_iter_are_counted(scores):
    estimator = GammaGMM("precomputed", **SMALL, max_iter=2, random_state=0)
    with pytest.warns(MixtureConvergenceWarning, match="3 of 3 runs stopped at max_iter=2"):
        estimator.fit(scores)
    assert any("max_iter=2" in note.message for note in estimator.notes_)


def test_a_mixture_prior_is_used(scores):
    default = GammaGMM("precomputed", **SMALL, random_state=0).fit(scores)
    prior = MixturePrior("identity", concentration=1.0)
    other = GammaGMM("precomputed", **SMALL, mixture_prior=prior, random_state=0).fit(scores)
    assert other.fit_.runs[0].elbo != default.fit_.runs[0].elbo


X = np.random.default_rng(0).normal(size=(50, 3))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.where(X[3, 1] == X, np.nan, X), ValueError, "Input X contains NaN"),
        (np.where(X[3, 1] == X, np.inf, X), ValueError, "Input X contains infinity"),
        (X[0], ValueError, "X must be a table of rows and columns. Expected 2D array, got 1D"),
        (X[:1], ValueError, r"X must be a table .* 1 sample\(s\) .* a minimum of 2 is required"),
        (X[:0], ValueError, r"Found array with 0 sample\(s\)"),
        (X[:5], ValueError, "X has 5 rows; the detectors need at least 10"),
        (sparse.csr_matrix(X), TypeError, "Sparse data was passed"),
        (X.astype("M8[D]"), TypeError, r"X must hold numbers, got the type datetime64\[D\]\."),
        (
            pd.DataFrame({"size": np.arange(20) % 3, "town": ["Turku", "Oulu"] * 10}),
            ValueError,
            r"column 'town': 20 cells are not numbers, the first is 'Turku' in row 0",
        ),
        (
            pd.DataFrame({"size": np.arange(20) % 3, "time": pd.to_timedelta(["1 day"] * 20)}),
            TypeError,
            r"The column 'time' of X must hold numbers, text or dates alone",
        ),
        ([["1.0", "blue"]] * 20, ValueError, r"column 1 holds text \('blue' in row 0\)"),
    ],
)
def test_bad_rows_are_refused_with_a_word(rows, error, message):
    with pytest.raises(error, match=message):
        GammaGMM(strict=True).fit(rows)


def test_methods_before_fit_and_with_other_columns_are_refused(fitted, data):
    for method in ("decision_function", "predict", "predict_proba"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(GammaGMM(), method)(data)
    with pytest.raises(ValueError, match="X has 3 features, but GammaGMM is expecting 4"):
        fitted.predict(data[:, :3])
    with pytest.raises(ValueError, match=r"gamma must lie between 0 and 1, got 1\.5"):
        fitted.labelled_rows_.labels_at(1.5)
    with pytest.raises(ValueError, match="costs must be two positive numbers"):
        fitted.predict(data, costs=(1, -1))


def test_fit_prints_nothing(data, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnsolvedRunsWarning)
        GammaGMM(["KNN", "LOF"], **SMALL, random_state=0).fit(data)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_warnings_point_at_the_callers_line():
    scores = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    options = {"n_runs": 1, "max_restarts": 0, "n_components": 2, "random_state": 0}
    asks = (
        lambda: GammaGMM("precomputed", **options).fit(scores),
        lambda: GammaGMM("precomputed", **options).fit_predict(scores),
        lambda: GammaThreshold(n_runs=1, max_restarts=0, random_state=0).fit(scores[:, 0]),
        lambda: estimate_contamination(
            scores, detectors="precomputed", at_least_one=True, **options
        ),
    )
    for ask in asks:
        with pytest.warns(GammaGMMWarning) as caught:
            ask()
        assert NoSolutionWarning in {warning.category for warning in caught}
        assert {warning.filename for warning in caught} == {__file__}


def test_a_notebook_shows_the_answer_after_the_fit(fitted):
    shown = fitted._repr_mimebundle_()
    assert shown["text/html"] == fitted._repr_html_()
    assert all(line in unescape(shown["text/html"]) for line in fitted.fit_.lines)
    assert shown["text/plain"] == repr(fitted)
    new = clone(fitted)
    diagram = new._repr_mimebundle_()["text/html"]
    assert "sk-container" in diagram
    assert "gammagmm-posterior" not in diagram
    assert "sk-container" in new._repr_html_()
    with config_context(display="text"):
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(fitted, "_repr_html_")
