import copy
import pickle

import numpy as np
import pytest
from pyod.models.copod import COPOD
from pyod.models.knn import KNN
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from gammagmm import Contamination, GammaGMM, GammaPosterior
from gammagmm.datasets import load_demo
from gammagmm.errors import NoSolutionWarning
from gammagmm.estimator.gamma_threshold import GammaThreshold
from gammagmm.posterior.betas import BetaMixture
from tests.support.needs import needs_torch
from tests.support.pyod_zoo import DEEP, TABULAR, make_detector, one_by_one, rows_for
from tests.support.solved_scores import has_content

# Those that take numbers only, or no contamination at all.
NUMBERS_ONLY = ("IForest", "LOF")
OWN_RULE = ("MAD",)
TINY = np.nextafter(0.0, 1.0)


@pytest.fixture(scope="module")
def data():
    return load_demo().X


@pytest.fixture(scope="module")
def posterior():
    return GammaPosterior(0.1, BetaMixture(*np.array([[0.9], [6.0], [44.0]])))


@pytest.fixture(scope="module")
def scores(data):
    return KNN().fit(data).decision_scores_


def test_the_threshold_is_that_of_gammagmm_on_the_one_column(rng):
    options = {"p0": 0.03, "p_high": 0.05, "high_gamma": 0.15, "max_gamma": 0.3, "n_runs": 2}
    options |= {"max_restarts": 30, "n_jobs": 1, "random_state": 3}
    # Six groups of 4 % each above the other rows.
    groups = np.repeat(3.0 + 4.0 * np.arange(6), 120) + 0.3 * rng.normal(size=720)
    scores = np.exp(np.append(rng.normal(size=2280), groups))
    threshold = GammaThreshold(**options).fit(scores)
    expected = GammaGMM("precomputed", **options).fit(scores[:, None])
    assert has_content(expected.fit_.runs)
    assert threshold.posterior_.prob_zero == 0.03
    assert threshold.contamination_ == expected.contamination_
    assert threshold.thresh_ == expected.thresholds_["score_1"]
    assert threshold.thresh_ == np.percentile(scores, 100 * (1 - expected.posterior_.mean))
    np.testing.assert_array_equal(threshold.labels_, scores > threshold.thresh_)
    assert 0.05 < threshold.labels_.mean() < 0.15
    assert threshold.confidence_interval_ == list(expected.posterior_.interval())


def test_a_source_is_taken_as_it_is(scores, posterior, data):
    fitted = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, n_draws=100, random_state=0).fit(data)
    for source, gamma in ((posterior, 0.9 * 6.0 / 50.0), (fitted, fitted.posterior_.mean)):
        threshold = GammaThreshold(source).fit(scores)
        assert threshold.thresh_ == pytest.approx(np.quantile(scores, 1.0 - gamma), rel=1e-12)
        assert threshold.labels_.sum() == np.ceil(gamma * (len(scores) - 1))
        assert isinstance(threshold.contamination_, Contamination)
    assert GammaThreshold(posterior).fit(scores).posterior_ is posterior


@pytest.mark.parametrize("shape", [list, lambda s: s[:, None], lambda s: s.astype(np.float32)])
def test_eval_is_fit_with_labels_for_scores_of_any_kind(scores, posterior, shape):
    expected = GammaThreshold(posterior).fit(scores)
    threshold = GammaThreshold(posterior)
    np.testing.assert_array_equal(threshold.eval(shape(scores)), expected.labels_)
    assert threshold.thresh_ == pytest.approx(expected.thresh_, rel=1e-6)
    assert type(threshold.thresh_) is float
    new = [threshold.thresh_, np.nextafter(threshold.thresh_, np.inf), -np.inf, np.inf]
    assert threshold.predict(new).tolist() == [0, 1, 0, 1]


def test_a_threshold_of_zero_is_moved_off_it_without_moving_a_label(posterior):
    for n_positive in (5, 0):
        scores = np.concatenate([np.full(n_positive, 1e-300), np.zeros(30), -np.arange(1.0, 66.0)])
        assert np.percentile(scores, 100 * (1 - posterior.mean)) == 0.0
        threshold = GammaThreshold(posterior).fit(scores)
        assert threshold.thresh_ == TINY
        np.testing.assert_array_equal(threshold.labels_, scores > 0.0)
        assert threshold.predict([-1.0, -0.0, 0.0, 1e-300]).tolist() == [0, 0, 0, 1]


def test_pyod_keeps_a_threshold_that_would_have_been_zero(posterior):
    class Signed(KNN):
        """Scores of 0 for most rows, and above it for few."""

        def fit(self, X, y=None):
            super().fit(X)
            self.decision_scores_ = np.maximum(X[:, 0], 0.0)
            self._process_decision_scores()
            return self

    X = np.concatenate([np.arange(1.0, 6.0), np.zeros(95)])[:, None]
    detector = Signed(contamination=GammaThreshold(posterior)).fit(X)
    assert detector.threshold_ == TINY
    assert detector.labels_.sum() == 5


def test_no_solution_means_no_anomalies_and_the_highest_score(rng):
    scores = np.repeat([0.0, 1.0], 50)
    options = {"n_runs": 1, "max_restarts": 0, "n_components": 2, "random_state": 0}
    with pytest.warns(NoSolutionWarning):
        fitted = GammaGMM("precomputed", **options).fit(scores[:, None])
    words = "The posterior of the source is the point mass at 0, so no row is flagged"
    with pytest.warns(NoSolutionWarning, match=words) as caught:
        threshold = GammaThreshold(fitted).fit(-scores)
    assert caught[0].filename == __file__
    assert threshold.contamination_ == 0.0
    assert threshold.labels_.sum() == 0
    assert threshold.thresh_ == TINY  # the highest score is 0
    assert threshold.confidence_interval_ == [0.0, 0.0]
    with pytest.warns(NoSolutionWarning, match=words):
        assert GammaThreshold(fitted.posterior_).fit(scores).thresh_ == 1.0


def test_what_is_wrong_is_said(scores, posterior):
    with pytest.raises(NotFittedError, match="GammaThreshold instance is not fitted yet"):
        GammaThreshold().predict(scores)
    with pytest.raises(NotFittedError, match="GammaGMM instance is not fitted yet"):
        GammaThreshold(GammaGMM()).fit(scores)
    with pytest.raises(TypeError, match="a fitted GammaGMM or a GammaPosterior, got float"):
        GammaThreshold(0.1).fit(scores)
    words = r"shape \(n,\), got \(100, 2\)\. For the .* use GammaGMM\(.precomputed"
    with pytest.raises(ValueError, match=words):
        GammaThreshold(posterior).fit(scores[:200].reshape(100, 2))
    with pytest.raises(ValueError, match=r"scores must be finite, got 1 values that are NaN"):
        GammaThreshold(posterior).fit([0.0, np.nan, 1.0])
    with pytest.raises(ValueError, match=r"scores must have shape \(n >= 2, m >= 1\)"):
        GammaThreshold(posterior).fit([1.0])
    with pytest.raises(ValueError, match="scores must be numbers, but 1 of 3 values are NaN"):
        GammaThreshold(posterior).fit(scores).predict([0.0, np.nan, np.inf])
    with pytest.raises(TypeError, match=r"scores must be dense: pass scores\.toarray\(\)"):
        GammaThreshold(posterior).fit(sparse.csr_matrix(scores))
    masked = np.ma.masked_array([1.0, 2.0, 1e9], mask=[0, 0, 1])
    for ask in (GammaThreshold(posterior).fit, GammaThreshold(posterior).fit(scores).predict):
        with pytest.raises(ValueError, match="scores has masked values, which are missing"):
            ask(masked)
    with pytest.raises(ValueError, match="p0 must lie strictly between 0 and 1, got 2"):
        GammaThreshold(p0=2).fit(scores)


def test_a_clone_keeps_the_parameters_and_the_fitted_source_but_no_fit(scores, data):
    source = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, n_draws=100, random_state=0).fit(data)
    threshold = GammaThreshold(source, p_high=0.05, random_state=7).fit(scores)
    made = clone(threshold)
    assert not hasattr(made, "thresh_")
    assert made.get_params(deep=False) == threshold.get_params(deep=False)
    before, labels = threshold.thresh_, threshold.labels_.copy()
    made.fit(-scores)
    assert made.thresh_ == pytest.approx(np.quantile(-scores, 1.0 - source.posterior_.mean))
    assert threshold.thresh_ == before
    np.testing.assert_array_equal(threshold.labels_, labels)
    detector = KNN(contamination=threshold)
    cloned = clone(detector).fit(data)
    assert cloned.contamination is not threshold
    np.testing.assert_array_equal(cloned.labels_, detector.fit(data).labels_)
    generator = np.random.default_rng(0)
    assert clone(GammaThreshold(random_state=generator)).random_state is not generator


def test_parameters_reach_the_object_through_the_detector(posterior):
    detector = KNN(contamination=GammaThreshold()).set_params(contamination__source=posterior)
    assert detector.contamination.source is posterior
    assert detector.get_params()["contamination__n_runs"] == 10


# PyOD's COF calls functions that SciPy 1.18 deprecates.
@pytest.mark.filterwarnings(
    "ignore:`(distance_matrix|minkowski_distance(_p)?)` is deprecated:DeprecationWarning"
)
# HDBSCAN of scikit-learn 1.9 announces a new default of `copy`, which PyOD does not set.
@pytest.mark.filterwarnings("ignore:The default value of `copy` will change:FutureWarning")
@pytest.mark.parametrize("name", one_by_one(n for n in TABULAR if n not in NUMBERS_ONLY + OWN_RULE))
def test_a_pyod_detector_labels_as_with_the_float(name, posterior):
    X, new = rows_for(name, 60, 1), rows_for(name, 30, 2)
    detector = make_detector(name, GammaThreshold(posterior)).fit(X)
    plain = make_detector(name, posterior.mean).fit(X)
    np.testing.assert_array_equal(detector.labels_, plain.labels_)
    assert detector.threshold_ == (plain.threshold_ or TINY)
    np.testing.assert_array_equal(detector.labels_, detector.decision_scores_ > detector.threshold_)
    np.testing.assert_array_equal(detector.predict(new), plain.predict(new))


# Deep isolation forests pin memory whether or not there is a GPU to pin it for.
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")
@pytest.mark.usefixtures("keep_global_random_state")
@needs_torch
@pytest.mark.parametrize("name", one_by_one(DEEP))
def test_a_network_labels_by_the_object(name, posterior):
    detector = make_detector(name, GammaThreshold(posterior)).fit(rows_for(name, 60, 1))
    # Networks score in single precision, in which older versions of NumPy would interpolate.
    scores = np.asarray(detector.decision_scores_, dtype=np.float64)
    cut = np.percentile(scores, 100 * (1 - posterior.mean))
    assert detector.threshold_ == cut
    np.testing.assert_array_equal(detector.labels_, detector.decision_scores_ > cut)


@pytest.mark.parametrize("name", NUMBERS_ONLY)
def test_who_takes_numbers_only_takes_the_float(name, posterior, data):
    with pytest.raises(InvalidParameterError, match=r"'contamination' parameter of .* must be"):
        make_detector(name, GammaThreshold(posterior)).fit(data)
    fitted = GammaThreshold(posterior).fit(make_detector(name, 0.1).fit(data).decision_scores_)
    detector = make_detector(name, fitted.contamination_).fit(data)
    np.testing.assert_array_equal(detector.labels_, fitted.labels_)


@pytest.mark.parametrize("name", OWN_RULE)
def test_who_has_a_rule_of_its_own_never_fits_the_object(name, posterior):
    threshold = GammaThreshold(posterior)
    detector = make_detector(name, threshold).fit(rows_for(name, 60, 1))
    assert detector.threshold_ == 3.5
    assert not hasattr(threshold, "thresh_")


def test_the_estimate_from_the_detectors_own_scores_serves_new_rows(data, scores):
    detector = KNN(contamination=GammaThreshold(n_runs=2, random_state=0)).fit(data)
    alone = GammaThreshold(n_runs=2, random_state=0).fit(scores)
    assert 0.05 < alone.contamination_ < 0.15
    assert detector.threshold_ == alone.thresh_
    new = np.vstack([1.01 * data[:50], data[:5] + 100.0])
    expected = detector.decision_function(new) > np.percentile(
        scores, 100 * (1 - float(alone.contamination_))
    )
    np.testing.assert_array_equal(detector.predict(new), expected)
    assert 5 <= expected.sum() < 50
    # PyOD's other users of the object.
    labels, confidence = detector.predict(new, return_confidence=True)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(confidence[-5:], 1.0, atol=0.01)


def test_each_detector_labels_by_its_own_object(data, posterior):
    """Detectors far apart in scale; PyOD's answer with the float is the oracle."""
    new = data + 0.5
    pair = [make(contamination=GammaThreshold(posterior)).fit(data) for make in (KNN, COPOD)]
    for detector, make in zip(pair, (KNN, COPOD), strict=True):
        expected = make(contamination=posterior.mean).fit(data).predict(new)
        assert 0 < expected.sum() < len(new)
        np.testing.assert_array_equal(detector.predict(new), expected)
        np.testing.assert_array_equal(detector.predict(new, return_confidence=True)[0], expected)
        # A detector that is copied takes its threshold along.
        for moved in (pickle.loads(pickle.dumps(detector)), copy.deepcopy(detector)):
            np.testing.assert_array_equal(moved.predict(new), expected)


def test_an_object_has_the_threshold_of_its_last_fit(data, posterior):
    shared = GammaThreshold(posterior)
    first = KNN(contamination=shared).fit(data)
    before = first.labels_.copy(), first.threshold_
    second = COPOD(contamination=shared).fit(data)
    np.testing.assert_array_equal(first.labels_, before[0])
    assert first.threshold_ == before[1] != second.threshold_ == shared.thresh_
    # Two objects are needed for two detectors: this one labels by the second's threshold.
    scores = first.decision_function(data)
    np.testing.assert_array_equal(first.predict(data), scores > second.threshold_)


@pytest.mark.usefixtures("keep_global_random_state")
def test_pythresh_combines_and_judges_it_as_one_of_its_own(scores):
    from pythresh.thresholds.comb import COMB
    from pythresh.utils.conf import CONF

    shares = np.array([[4.0, 96.0], [6.0, 94.0], [11.0, 89.0]])
    posteriors = [GammaPosterior(0.0, BetaMixture(*np.array([[1.0], [a], [b]]))) for a, b in shares]
    own = [GammaThreshold(posterior).fit(scores) for posterior in posteriors]
    combined = COMB([GammaThreshold(p) for p in posteriors], method="mean").fit(scores)
    # COMB flags its mean share of the rows, rounded up.
    assert combined.labels_.sum() == len(scores) - int(
        len(scores) * (1.0 - np.mean([one.labels_.mean() for one in own]))
    )
    uncertain = CONF(GammaThreshold(posteriors[1]), n_test=5).eval(scores)
    # Those nearest to the threshold: just above and below the 6 % with the highest scores.
    ranks = np.argsort(np.argsort(-scores))[uncertain] / len(scores)
    assert len(ranks) > 0
    assert ((ranks > 0.03) & (ranks < 0.09)).all()


@pytest.mark.usefixtures("keep_global_random_state")
def test_it_has_what_pyod_and_pythresh_read(data, posterior):
    from pythresh.thresholds.iqr import IQR

    theirs, own = KNN(contamination=IQR()).fit(data), KNN(contamination=GammaThreshold(posterior))
    public = {name for name in vars(theirs.contamination) if name.endswith("_")} - {"dscores_"}
    assert {"labels_", "thresh_", "confidence_interval_"} == public
    assert public <= vars(own.fit(data).contamination).keys()
    # PyThresh cuts scores scaled to [0, 1], and with >=; ours can be held against the scores.
    scores = theirs.decision_scores_
    scaled = (scores - scores.min()) / np.ptp(scores)
    np.testing.assert_array_equal(theirs.labels_, scaled >= theirs.threshold_)
    np.testing.assert_array_equal(own.labels_, scores > own.threshold_)
