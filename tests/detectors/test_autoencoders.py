"""AE and VAE against PyOD's own, which sets global seeds and so runs in another process."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import random
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")
pyod_vae = pytest.importorskip("pyod.models.vae")
pyod_ae = pytest.importorskip("pyod.models.auto_encoder")
neural = pytest.importorskip("gammagmm.detectors.autoencoders")

ORIGINAL = {"AE": pyod_ae.AutoEncoder, "VAE": pyod_vae.VAE}
BOTH = pytest.mark.parametrize("name", ["AE", "VAE"])

# sigma is 4e-9 at most: a draw is the mean. PyOD's own scores then are what ours have to be.
NO_NOISE = {"logvar_clip": (-40.0, -39.0)}
CASES = {
    "ae": ("AE", {"epoch_num": 10}),
    "vae": ("VAE", {"epoch_num": 10}),
    "another seed": ("AE", {"random_state": 2**31 - 2}),
    "seed 0": ("VAE", {"random_state": 0}),
    "odd batches": ("AE", {"batch_size": 17}),
    "one batch": ("VAE", {"batch_size": 100}),
    "rows as they are": ("VAE", {"preprocessing": False}),
    "no norm": ("AE", {"batch_norm": False}),
    "norm": ("VAE", {"batch_norm": True, **NO_NOISE}),
    "no dropout": ("AE", {"dropout_rate": 0.0}),
    "more dropout": ("VAE", {"dropout_rate": 0.55}),
    "sizes": ("AE", {"hidden_neuron_list": [12, 7, 3]}),
    "vae sizes": ("VAE", {"encoder_neuron_list": [9], "decoder_neuron_list": [4, 6]}),
    "latent": ("VAE", {"latent_dim": 3}),
    "adam": ("AE", {"lr": 0.01, "optimizer_params": {"weight_decay": 0.1, "adam_eps": 1e-3}}),
    "no decay": ("VAE", {"lr": 0.01, "optimizer_params": {}}),
    "beta": ("VAE", {"beta": 7.0}),
    "clipped": ("VAE", {"logvar_clip": (-0.1, 0.1)}),
    "unclipped": ("VAE", {"logvar_clip": None}),
    "no noise": ("VAE", NO_NOISE),
    # From here on PyOD's own training step.
    "sgd": ("AE", {"optimizer_name": "sgd", "optimizer_params": {"sgd_momentum": 0.5}}),
    "tanh": ("AE", {"hidden_activation_name": "tanh"}),
    "sigmoid": ("VAE", {"output_activation_name": "sigmoid", **NO_NOISE}),
    "all dropped": ("VAE", {"dropout_rate": 1.0}),
    "capacity": ("VAE", {"capacity": 5.0, "beta": 0.5}),
    "single rows": ("VAE", {"batch_size": 1, "epoch_num": 1, **NO_NOISE}),
}
SCORED = [
    case
    for case, (name, params) in CASES.items()
    if name == "AE" or NO_NOISE.items() <= params.items()
]
# A bias before a norm has no gradient but rounding errors, which Adam makes steps of.
WEIGHED = [
    case for case, (name, params) in CASES.items() if not params.get("batch_norm", name == "AE")
]


def make_X(n_rows=100, n_features=5, seed=3):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_features))
    X = latent + 0.3 * rng.normal(size=(n_rows, n_features))
    X[: n_rows // 20] += 4.0
    return X


def make(classes, case):
    name, params = CASES[case]
    return classes[name](**{"epoch_num": 3, "random_state": 1, "verbose": 0, **params})


def trained(detector, X):
    detector.fit(X)
    weights = {key: value.numpy() for key, value in detector.model.state_dict().items()}
    return weights, detector.decision_scores_


def train_elsewhere(cases, X):
    """Weights and scores by PyOD's classes, scores by ours: work of the other process."""
    torch.set_num_threads(1)
    theirs = {case: trained(make(ORIGINAL, case), X) for case in cases}
    ours = {case: trained(make(vars(neural), case), X)[1] for case in ("ae", "vae")}
    return theirs, ours


@pytest.fixture(autouse=True)
def _threads():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more would wait for each other where others use the machine
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module", autouse=True)
def _started():
    """The other process at work, while the tests that do not need it run."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool.submit(train_elsewhere, list(CASES), make_X())


@pytest.fixture
def elsewhere(_started):
    return _started.result()


@pytest.fixture(scope="module")
def fitted():
    return {name: fit(name, make_X()) for name in ("AE", "VAE")}


def fit(name, X, **params):
    return getattr(neural, name)(**{"epoch_num": 3, "random_state": 1, **params}).fit(X)


def global_state():
    return {
        "numpy": pickle.dumps(np.random.get_state()),
        "random": random.getstate(),
        "torch": torch.random.get_rng_state().tolist(),
        "threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
        "environment": dict(os.environ),
        "warnings": list(warnings.filters),
    }


class TestScores:
    @BOTH
    def test_training_rows(self, name, fitted):
        scores = fitted[name].decision_function(make_X())
        # The last bit may depend on the number of threads, which is one while a detector is fitted.
        np.testing.assert_allclose(scores, fitted[name].decision_scores_, rtol=1e-12)
        assert scores.dtype == np.float64

    @BOTH
    def test_each_row_by_itself(self, name, fitted):
        X = np.vstack([make_X(60, seed=8), 50.0 * make_X(5, seed=9)])
        expected = fitted[name].decision_function(X)
        alone = [fitted[name].decision_function(row[None])[0] for row in X]
        np.testing.assert_allclose(alone, expected, rtol=1e-9)
        for size in (1, 7, 65, 1000):
            scores = fitted[name].decision_function(X, batch_size=size)
            np.testing.assert_allclose(scores, expected, rtol=1e-9)
        backwards = fitted[name].decision_function(np.asfortranarray(X[::-1]))[::-1]
        np.testing.assert_allclose(backwards, expected, rtol=1e-9)

    @BOTH
    def test_many_rows(self, name, fitted):
        X = make_X(5000, seed=8)
        parts = [fitted[name].decision_function(part) for part in np.array_split(X, 7)]
        scores = fitted[name].decision_function(X)
        np.testing.assert_allclose(scores, np.concatenate(parts), rtol=1e-9)

    @BOTH
    @pytest.mark.parametrize("preprocessing", [True, False])
    def test_rows_are_left_as_they_are(self, name, preprocessing):
        X = make_X()
        kept = X.copy()
        X.flags.writeable = False
        fit(name, X, preprocessing=preprocessing).decision_function(X)
        np.testing.assert_array_equal(X, kept)

    @BOTH
    def test_labels(self, name, fitted):
        detector = fitted[name]
        assert detector.labels_.sum() == 10
        np.testing.assert_array_equal(detector.predict(make_X()), detector.labels_)


class TestEdges:
    @BOTH
    @pytest.mark.parametrize("n_rows", [10, 11, 31, 33])
    def test_few_rows(self, name, n_rows):
        X = make_X(n_rows, 3)
        scores = fit(name, X, batch_size=min(n_rows, 32)).decision_scores_
        assert np.isfinite(scores).all()
        assert np.ptp(scores) > 0

    @BOTH
    def test_constant_columns_and_equal_rows(self, name):
        X = make_X(80, 6)
        X[:, 0], X[:, 1], X[:, 2] = 0.0, 1e9 + 0.1, -1e-12
        X[40:] = X[7]
        detector = fit(name, X)
        scores = detector.decision_scores_
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores[40:], scores[7], rtol=1e-9)
        assert np.isfinite(detector.decision_function(X + 1.0)).all()

    @BOTH
    def test_all_rows_equal(self, name):
        scores = fit(name, np.full((40, 3), 0.1)).decision_scores_
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(scores, scores[0], rtol=1e-9)

    @BOTH
    def test_one_column_and_many(self, name):
        for n_features in (1, 300):
            assert np.isfinite(fit(name, make_X(40, n_features)).decision_scores_).all()

    @BOTH
    def test_messages(self, name, fitted):
        X = make_X(20)
        made = getattr(neural, name)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            made().decision_function(X)
        with pytest.raises(ValueError, match=r"batch_size must lie between 1 and 20, got 32\."):
            made(random_state=0).fit(X)
        with pytest.raises(ValueError, match=r"batch_size must lie between 1 and 20, got 0\."):
            made(random_state=0, batch_size=0).fit(X)
        with pytest.raises(ValueError, match="use_compile=True is not supported here; use PyOD"):
            made(random_state=0, use_compile=True, batch_size=10).fit(X)
        with pytest.raises(ValueError, match=r"X must have 5 features, got 1\."):
            fitted[name].decision_function(X[:, :1])
        with pytest.raises(ValueError, match="contains NaN"):
            made(random_state=0, batch_size=10).fit(np.full((20, 2), np.nan))
        with pytest.raises(ValueError, match="ours is not a valid optimizer"):
            made(random_state=0, batch_size=10, optimizer_name="ours").fit(X)
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            made(random_state=0, batch_size=1, batch_norm=True).fit(X)
        with pytest.raises(TypeError, match="unexpected keyword argument 'momentum'"):
            made(random_state=0, batch_size=10, optimizer_params={"momentum": 0.1}).fit(X)


class TestState:
    @BOTH
    def test_nothing_global_is_touched(self, name):
        X = make_X(40)
        torch.set_num_threads(2)
        before = global_state()
        detector = getattr(neural, name)(random_state=5)
        assert global_state() == before
        detector.fit(X)
        assert global_state() == before
        copied = pickle.loads(pickle.dumps(detector))
        copied.decision_function(X)
        copied.predict(X)
        copy.deepcopy(detector).decision_function(X[:1])
        assert global_state() == before

    @BOTH
    def test_a_failed_fit_puts_everything_back(self, name):
        before = global_state()
        with pytest.raises(ValueError, match="not a valid activation"):
            fit(name, make_X(), hidden_activation_name="none")
        assert global_state() == before

    @BOTH
    def test_copies_score_alike(self, name, fitted):
        X = make_X(30, seed=8)
        expected = fitted[name].decision_function(X)
        for copied in (pickle.loads(pickle.dumps(fitted[name])), copy.deepcopy(fitted[name])):
            np.testing.assert_array_equal(copied.decision_function(X), expected)

    @BOTH
    @pytest.mark.parametrize("activation", ["relu", "tanh"])
    def test_only_the_network_is_kept(self, name, activation):
        X = make_X(1000, 40)
        detector = fit(name, X, epoch_num=1, hidden_activation_name=activation)
        parameters = list(detector.model.parameters())
        n_bytes = 8 * sum(p.numel() for p in parameters) + 16 * len(X)  # scores and labels
        assert len(pickle.dumps(detector)) < n_bytes + 20_000
        assert all(p.grad is None and not p.requires_grad for p in parameters)

    @BOTH
    def test_silent_unless_asked(self, name, capfd):
        fit(name, make_X())
        assert capfd.readouterr() == ("", "")
        fit(name, make_X(), verbose=2)
        assert capfd.readouterr().out.startswith("Epoch 1/3, loss=")
        fit(name, make_X(), verbose=1)
        assert "3/3" in capfd.readouterr().err


class TestParameters:
    @BOTH
    def test_are_those_of_pyod(self, name):
        theirs = inspect.signature(ORIGINAL[name]).parameters
        ours = inspect.signature(getattr(neural, name)).parameters
        changed = {"verbose": 0, "random_state": None}
        assert {p: value.default for p, value in ours.items()} == {
            p: changed.get(p, value.default) for p, value in theirs.items()
        }
        assert list(ours) == list(theirs)
        assert getattr(neural, name)().get_params() == {p: v.default for p, v in ours.items()}

    @BOTH
    def test_clone_and_set(self, name):
        given = getattr(neural, name)(0.2, False, batch_size=16, device=torch.device("cpu"))
        copied = clone(given)
        assert copied.get_params() == given.get_params()
        assert copied.contamination == 0.2
        assert copied.preprocessing is False
        assert copied.batch_size == 16
        assert clone(getattr(neural, name)()).device is None
        assert copied.set_params(epoch_num=4).epoch_num == 4

    @BOTH
    def test_fit_changes_none(self, name, fitted):
        expected = getattr(neural, name)(epoch_num=3, random_state=1).get_params()
        assert fitted[name].get_params() == expected

    @BOTH
    def test_device(self, name, fitted):
        for device in ("cpu", torch.device("cpu")):
            scores = fit(name, make_X(), device=device).decision_scores_
            np.testing.assert_array_equal(scores, fitted[name].decision_scores_)

    @BOTH
    def test_refused(self, name):
        made = getattr(neural, name)
        with pytest.raises(ValueError, match=r"contamination must be in \(0, 0.5\], got: 0.7"):
            made(contamination=0.7)
        with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
            made(colour="red")

    def test_pyod_checks_the_clip(self):
        with pytest.raises(ValueError, match="lower bound must be smaller"):
            neural.VAE(logvar_clip=(1.0, 0.0))


def apply(weights, layer, x):
    return x @ weights[f"{layer}.weight"].T.astype(float) + weights[f"{layer}.bias"]


class TestTraining:
    # The operations and their order are PyOD's. Where some build of PyTorch rounds them otherwise
    # on other addresses, that grows to no more than this within these few steps.
    @pytest.mark.parametrize("case", WEIGHED)
    def test_weights_are_those_of_pyod(self, elsewhere, case):
        weights, _ = trained(make(vars(neural), case), make_X())
        expected, _ = elsewhere[0][case]
        assert weights.keys() == expected.keys()
        for key, weight in weights.items():
            np.testing.assert_allclose(weight, expected[key], rtol=1e-3, atol=1e-5)

    @pytest.mark.parametrize("case", SCORED)
    def test_scores_are_those_of_pyod(self, elsewhere, case):
        _, scores = trained(make(vars(neural), case), make_X())
        np.testing.assert_allclose(scores, elsewhere[0][case][1], rtol=1e-3)

    def test_every_case_is_compared(self):
        assert {*WEIGHED, *SCORED} == {*CASES}

    def test_vae_decodes_the_mean(self, elsewhere):
        weights = elsewhere[0]["vae"][0]
        X = make_X()
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        h = Z
        for layer in ("encoder.0", "encoder.1", "encoder.2"):
            h = np.maximum(apply(weights, f"{layer}.linear", h), 0.0)
        h = apply(weights, "encoder_mu", h)
        for layer in ("decoder.0", "decoder.1", "decoder.2"):
            h = np.maximum(apply(weights, f"{layer}.linear", h), 0.0)
        expected = np.linalg.norm(apply(weights, "decoder.3.linear", h) - Z, axis=1)
        scores = make(vars(neural), "vae").fit(X).decision_scores_
        np.testing.assert_allclose(scores, expected, rtol=1e-4)

    @BOTH
    def test_seeds(self, name):
        X = make_X()
        expected = fit(name, X).decision_scores_
        np.testing.assert_array_equal(fit(name, X).decision_scores_, expected)
        for seed in (0, 2, None):
            assert np.ptp(fit(name, X, random_state=seed).decision_scores_ - expected) > 0
        unseeded = fit(name, X, random_state=None).decision_scores_
        assert np.ptp(fit(name, X, random_state=None).decision_scores_ - unseeded) > 0

    @pytest.mark.parametrize("case", ["ae", "vae"])
    def test_other_processes_and_threads(self, elsewhere, case):
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            scores = make(vars(neural), case).fit(make_X()).decision_scores_
            np.testing.assert_array_equal(scores, elsewhere[1][case])

    @BOTH
    def test_a_second_fit_forgets_the_first(self, name, fitted):
        again = copy.deepcopy(fitted[name]).fit(make_X(70, 4)).fit(make_X())
        np.testing.assert_array_equal(again.decision_scores_, fitted[name].decision_scores_)

    @BOTH
    def test_anomalies_score_high(self, name):
        scores = fit(name, make_X(200), epoch_num=20).decision_scores_
        assert scores[:10].mean() > 2 * scores[10:].mean()

    def test_a_fit_that_was_interrupted(self):
        detector, X = neural.AE(random_state=1, epoch_num=3, lr="fast"), make_X()
        with pytest.raises(TypeError):
            detector.fit(X)
        detector.set_params(lr=1e-3, hidden_activation_name="tanh").fit(X)
        expected = fit("AE", X, hidden_activation_name="tanh").decision_scores_
        np.testing.assert_array_equal(detector.decision_scores_, expected)
