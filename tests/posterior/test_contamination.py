import copy
import json
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from pyod.models.knn import KNN
from scipy import stats
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from gammagmm import Contamination, GammaPosterior
from gammagmm.posterior.betas import BetaMixture
from tests.support.needs import needs_torch
from tests.support.pyod_zoo import (
    DEEP,
    FOUND,
    SKIPPED,
    TABULAR,
    make_detector,
    one_by_one,
    rows_for,
)

A, B, WEIGHT = 6.0, 44.0, 0.9


@pytest.fixture(scope="module")
def posterior():
    return GammaPosterior(0.1, BetaMixture(*np.array([[WEIGHT], [A], [B]])))


@pytest.fixture(params=[None, 1 / 60], ids=["mean", "value"])
def gamma(request, posterior):
    return Contamination(posterior, request.param)


def test_the_number_is_the_posterior_mean_or_the_one_given(posterior):
    gamma = Contamination(posterior)
    assert isinstance(gamma, float)
    assert gamma == pytest.approx(WEIGHT * stats.beta(A, B).mean(), rel=1e-14)
    given = Contamination(posterior, 0.02)
    assert given == 0.02
    assert given.posterior is gamma.posterior is posterior
    assert hash(given) == hash(0.02)
    assert f"{given:.1%} {given}" == "2.0% 0.02"


@pytest.mark.parametrize(("posterior", "value"), [(0.1, None), ("0.1", 0.1), (None, 0.1)])
def test_a_number_without_posterior_is_refused(posterior, value):
    with pytest.raises(TypeError, match=r"must be a GammaPosterior, got (float|str|None)"):
        Contamination(posterior, value)


@pytest.mark.parametrize("value", ["0.1", True])
def test_a_value_that_is_not_a_number_is_refused(posterior, value):
    with pytest.raises(TypeError, match=rf"value must be a number, got {value!r}"):
        Contamination(posterior, value)


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_a_value_outside_0_to_1_is_refused(posterior, value):
    with pytest.raises(ValueError, match=rf"value must lie between 0 and 1, got {value}\."):
        Contamination(posterior, value)


def test_copies_share_the_posterior(gamma, posterior):
    copies = [
        copy.copy(gamma),
        copy.deepcopy(gamma),
        copy.deepcopy({"nested": [gamma]})["nested"][0],
        clone(gamma, safe=False),
        KNN(contamination=gamma).get_params()["contamination"],
        clone(KNN(contamination=gamma)).contamination,
        KNN().set_params(contamination=gamma).contamination,
        copy.deepcopy(KNN(contamination=gamma)).contamination,
        clone(IsolationForest(contamination=gamma)).contamination,
    ]
    for made in copies:
        assert type(made) is Contamination
        assert made == gamma
        assert made.posterior is posterior


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_keep_number_and_posterior(gamma, posterior, protocol):
    loaded = pickle.loads(pickle.dumps(gamma, protocol))
    assert type(loaded) is Contamination
    assert loaded == gamma
    assert loaded.posterior.prob_zero == 0.1
    np.testing.assert_array_equal(loaded.posterior.betas.a, posterior.betas.a)


def test_joblib_keeps_number_and_posterior(gamma, tmp_path):
    joblib.dump(KNN(contamination=gamma), tmp_path / "knn.joblib")
    loaded = joblib.load(tmp_path / "knn.joblib").contamination
    assert type(loaded) is Contamination
    assert (loaded, loaded.posterior.mean) == (gamma, gamma.posterior.mean)


def test_another_process_gets_number_and_posterior(posterior, tmp_path):
    gamma = Contamination(posterior, 0.02)
    (tmp_path / "gamma.pickle").write_bytes(pickle.dumps(gamma))
    code = "import pickle, sys; g = pickle.load(open(sys.argv[1], 'rb')); print(g, g.posterior)"
    command = [sys.executable, "-c", code, str(tmp_path / "gamma.pickle")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{float(gamma)!r} {gamma.posterior!r}"


def test_json_takes_it_as_a_number(gamma):
    text = json.dumps({"contamination": gamma, "all": [gamma]}, indent=1)
    assert json.loads(text) == {"contamination": float(gamma), "all": [float(gamma)]}
    assert json.dumps(gamma) == repr(float(gamma))


def test_the_skipped_detectors_exist_and_need_what_is_stated():
    for reason, names in SKIPPED.items():
        assert set(names) <= set(FOUND), reason
    for name in SKIPPED["labels"]:
        with pytest.raises((TypeError, ImportError)):
            make_detector(name, 0.1).fit(rows_for(name, 60, 1))
    for name in SKIPPED["graphs"]:
        assert FOUND[name][0].startswith("pyod.models.pyg_")
    for name in SKIPPED["time series"]:
        assert FOUND[name][0].startswith("pyod.models.ts_")
    for name in SKIPPED["combo"]:
        with pytest.raises(ModuleNotFoundError, match="combo"):
            make_detector(name, 0.1)
    assert sum(map(len, SKIPPED.values())) <= 23
    assert len(TABULAR) >= 29


# PyOD's COF calls functions that SciPy 1.18 deprecates.
@pytest.mark.filterwarnings(
    "ignore:`(distance_matrix|minkowski_distance(_p)?)` is deprecated:DeprecationWarning"
)
# HDBSCAN of scikit-learn 1.9 announces a new default of `copy`, which PyOD does not set.
@pytest.mark.filterwarnings("ignore:The default value of `copy` will change:FutureWarning")
@pytest.mark.parametrize("name", one_by_one(TABULAR))
def test_a_pyod_detector_labels_as_with_the_plain_float(name, posterior):
    gamma, X, new = Contamination(posterior), rows_for(name, 60, 1), rows_for(name, 30, 2)
    fitted = [make_detector(name, value).fit(X) for value in (gamma, float(gamma))]
    own, plain = fitted
    assert type(own.contamination) is Contamination
    np.testing.assert_array_equal(own.labels_, plain.labels_)
    assert own.threshold_ == plain.threshold_
    # PyOD's rule, from the scores alone; MAD has one of its own, which knows no contamination.
    cut = np.percentile(own.decision_scores_, 100 * (1 - float(gamma))) if name != "MAD" else 3.5
    np.testing.assert_array_equal(own.labels_, own.decision_scores_ > cut)
    np.testing.assert_array_equal(own.predict(new), plain.predict(new))


# Deep isolation forests pin memory whether or not there is a GPU to pin it for.
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")
@pytest.mark.usefixtures("keep_global_random_state")
@needs_torch
@pytest.mark.parametrize("name", one_by_one(DEEP))
def test_a_network_labels_by_the_number(name, posterior):
    gamma = Contamination(posterior)
    detector = make_detector(name, gamma).fit(rows_for(name, 60, 1))
    cut = np.percentile(detector.decision_scores_, 100 * (1 - float(gamma)))
    assert type(detector.contamination) is Contamination
    assert detector.threshold_ == cut
    np.testing.assert_array_equal(detector.labels_, detector.decision_scores_ > cut)


@pytest.mark.parametrize(
    "make",
    [
        lambda gamma: IsolationForest(contamination=gamma, n_estimators=20, random_state=0),
        lambda gamma: LocalOutlierFactor(contamination=gamma),
        lambda gamma: EllipticEnvelope(contamination=gamma, random_state=0),
    ],
    ids=["IsolationForest", "LocalOutlierFactor", "EllipticEnvelope"],
)
def test_scikit_learns_detectors_label_as_with_the_plain_float(make, gamma):
    X = rows_for("", 60, 1)
    labels = make(gamma).fit_predict(X)
    np.testing.assert_array_equal(labels, make(float(gamma)).fit_predict(X))
    assert (labels == -1).sum() == np.ceil(60 * gamma)
