"""Any table, any order, any block size: a typed refusal, or a posterior that obeys its laws.

``make soak`` does the same for 100,000 random tables.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from gammagmm import GammaGMM
from gammagmm.errors import DetectorError, GammaGMMWarning
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.gamma_posterior import GammaPosterior
from tests.support.fixed_starts import (
    fit_from_start,
    posterior_numbers,
    rank_labels,
    score_space_of,
)
from tests.support.posterior_laws import LawError, check_posterior, fit_and_check
from tests.support.random_tables import (
    CONTAINERS,
    Recipe,
    grouped_scores,
    make_table,
    random_recipe,
    recipes,
    small_tables,
)

EPS = np.finfo(np.float64).eps
N_ROWS, N_DETECTORS, N_COMPONENTS, N_ITER = 500, 6, 10, 30
# The relative rounding error of a sum of n terms is at most n eps, and each iteration computes new
# sums; the iterations approach a fixed point and do not amplify the error.
ROUNDING = N_ITER * N_ROWS * EPS

once = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def from_scores(n_components=5, p_high=0.5):
    """A small pipeline from scores; with this `p_high` many tables have a solution."""
    return GammaGMM(
        "precomputed",
        n_components=n_components,
        n_runs=1,
        n_draws=100,
        max_restarts=1,
        p_high=p_high,
        max_iter=100,
        random_state=0,
    )


@settings(once, max_examples=120)
@given(recipes(), st.integers(1, 10))
# Two infinities whose sum is NaN: scikit-learn warned before it refused them.
@example(Recipe(7, 2, ("constant",), ("minus infinity", "infinity"), "array", 2013953684), 5)
def test_tables_of_every_kind(recipe, n_components):
    fit_and_check(from_scores(n_components), make_table(recipe))


@settings(once, max_examples=100)
@given(small_tables())
def test_tables_number_by_number(X):
    fit_and_check(from_scores(), X)


@settings(once, max_examples=15)
@given(recipes(max_rows=60))
def test_rows_through_detectors(recipe):
    estimator = GammaGMM(["HBOS", "ECOD"], n_components=5, n_runs=1, n_draws=100, max_restarts=1)
    fit_and_check(estimator.set_params(max_iter=100, random_state=0), make_table(recipe))


SAME = [
    *("Fortran order", "every other", "read-only", "big-endian", "float32", "int64", "object"),
    *("objects of several types", "list", "tuple of arrays", "frame", "frame of nullable numbers"),
    "text",
]


@pytest.mark.parametrize("container", SAME)
def test_the_container_of_a_table_changes_no_bit(container):
    # Every container holds whole numbers exactly; with so many rows, NumPy rounds the sums
    # differently in C order and in Fortran order.
    X = make_table(Recipe(300, 3, ("integers",), ("shared anomalies",), "array", 7))
    first, second = (
        fit_and_check(from_scores(), given).estimator for given in (X, CONTAINERS[container](X))
    )
    np.testing.assert_array_equal(second.fit_.score_space, first.fit_.score_space)
    assert second.posterior_.summary() == first.posterior_.summary()


def test_booleans_are_ones_and_zeros():
    X = np.random.default_rng(0).random((200, 4)) < 0.1
    first, second = (
        fit_and_check(from_scores(), given).estimator for given in (X, X.astype(float))
    )
    np.testing.assert_array_equal(second.fit_.score_space, first.fit_.score_space)
    assert second.posterior_.summary() == first.posterior_.summary()


def test_random_tables_are_refused_and_answered():
    """Random tables are useful only if some are answered and others are refused."""
    rng = np.random.default_rng(0)
    reasons = {
        fit_and_check(from_scores(), make_table(random_recipe(rng))).reason for _ in range(120)
    }
    assert {"answered", "point mass at 0", "NaN", "infinity", "unusable detectors"} <= reasons


class TestLaws:
    """A broken law is found."""

    def posterior(self, cls=GammaPosterior, weights=(0.5, 0.4)):
        betas = BetaMixture(np.array(weights), np.array([5.0, 9.0]), np.array([95.0, 91.0]))
        return cls(0.1, betas)

    def test_a_correct_posterior_passes(self):
        check_posterior(self.posterior())
        check_posterior(GammaPosterior.degenerate())

    def test_weights(self):
        with pytest.raises(LawError, match=r"the weights sum to .*0\.8999"):
            check_posterior(self.posterior(weights=(0.5, 0.2999)))

    @pytest.mark.parametrize(
        ("method", "wrong", "words"),
        [
            ("cdf", lambda self, x: GammaPosterior.cdf(self, x) * 0.99, "the cdf starts at"),
            ("sf", lambda self, x: 1.001 - GammaPosterior.cdf(self, x), "do not add up"),
            ("ppf", lambda self, q: GammaPosterior.ppf(self, q) * 0.999, "do not invert"),
            ("sample", lambda self, n, rng: 1.3 * GammaPosterior.sample(self, n, rng), "off the"),
        ],
    )
    def test_each_method(self, method, wrong, words):
        broken = type("Broken", (GammaPosterior,), {method: wrong})
        with pytest.raises(LawError, match=words):
            check_posterior(self.posterior(broken))

    def test_modified_input_unknown_cause_and_false_cause(self):
        class Fake:
            detectors = "precomputed"

            def __init__(self, message, value=0.0):
                self.message, self.value = message, value

            def fit(self, X):
                X[0, 0] += self.value
                raise ValueError(self.message)

        X = np.ones((3, 2))
        with pytest.raises(LawError, match="without a known cause: ValueError: what"):
            fit_and_check(Fake("what"), X)
        with pytest.raises(LawError, match="refused for NaN, which is not true"):
            fit_and_check(Fake("Input X contains NaN."), X)
        with pytest.raises(LawError, match="the input was modified"):
            fit_and_check(Fake("Complex data not supported", 1.0), X)


@pytest.fixture(scope="module")
def scores():
    return grouped_scores(N_ROWS, N_DETECTORS, np.random.default_rng(0))


@pytest.fixture(scope="module")
def labels(scores):
    return rank_labels(scores, N_COMPONENTS)


@pytest.fixture(scope="module")
def steps(scores, labels):
    return fit_from_start(score_space_of(scores), labels, N_ITER)


def assert_same_posterior(first, second, tolerance):
    for name, value in posterior_numbers(first.posterior).items():
        np.testing.assert_allclose(posterior_numbers(second.posterior)[name], value, rtol=tolerance)
    bound = abs(first.mixture.elbo)
    np.testing.assert_allclose(second.mixture.elbo, first.mixture.elbo, atol=tolerance * bound)


class TestInvariances:
    @settings(once, max_examples=10)
    @given(st.integers(-(2**20), 2**20), st.integers(0, 2**20))
    def test_adding_a_constant_to_a_detector_is_exact_where_the_sums_are(self, constant, seed):
        # Multiples of 1/1024 below 2 ** 21 are added without rounding: no bit may change.
        scores = grouped_scores(40, 3, np.random.default_rng(seed))
        scores = np.round(scores * 1024.0) / 1024.0
        shifted = scores + np.array([constant, 0.0, -constant / 1024.0])
        np.testing.assert_array_equal(score_space_of(shifted), score_space_of(scores))

    def test_adding_a_constant_changes_no_bit_of_the_answer(self, scores):
        scores = np.round(scores * 1024.0) / 1024.0
        first = fitted(scores)
        shifted = fitted(scores + 4096.0)
        assert shifted.posterior_.summary() == first.posterior_.summary()
        np.testing.assert_array_equal(shifted.labels_, first.labels_)

    def test_adding_any_constant_changes_rounding_only(self, scores, labels, steps):
        constant = 100.0 * np.pi
        space, moved = score_space_of(scores), score_space_of(scores + constant)
        # The rounding error of s + c; the logarithm divides it by s - min + 0.01, at least 0.01.
        largest = 4.0 * EPS * (constant + scores.max()) / 0.01
        deviation = np.log(scores - scores.min(axis=0) + 0.01).std(axis=0).min()
        np.testing.assert_allclose(moved, space, atol=largest / deviation)
        assert_same_posterior(steps, fit_from_start(moved, labels, N_ITER), largest / deviation)

    @pytest.mark.parametrize("power", [0.3, 1.7])
    def test_scaling_that_the_transformation_allows(self, scores, labels, steps, power):
        """Scaling the logarithm changes nothing, unlike scaling the scores.

        Standardisation undoes log u -> p log u + constant of u = s - min + 0.01. The smallest u is
        always 0.01, so the transformation of u is 0.01 (u / 0.01) ** p.
        """
        ratio = (scores - scores.min(axis=0) + 0.01) / 0.01
        stretched = 0.01 * ratio**power
        space = score_space_of(scores)
        # The power multiplies the relative rounding error of u by p.
        tolerance = 64.0 * EPS * np.log(ratio).max() * max(power, 1.0 / power)
        np.testing.assert_allclose(score_space_of(stretched), space, atol=tolerance)
        assert_same_posterior(
            steps, fit_from_start(score_space_of(stretched), labels, N_ITER), 10 * ROUNDING
        )

    def test_plain_scaling_keeps_the_order_only(self, scores):
        space, scaled = score_space_of(scores), score_space_of(1024.0 * scores)
        np.testing.assert_array_equal(np.argsort(scaled, axis=0), np.argsort(space, axis=0))
        assert np.abs(scaled - space).max() > 0.1

    def test_scaling_tiny_scores_changes_nothing(self, scores):
        """Far below 0.01 the logarithm is linear: log(1 + x) = x up to x ** 2 / 2."""
        tiny = 1e-9 * scores / np.ptp(scores, axis=0)
        space = (tiny - tiny.mean(axis=0)) / tiny.std(axis=0)
        bent = (1e-9 / 0.01) * np.abs(space).max() ** 2
        np.testing.assert_allclose(
            score_space_of(0.5 * tiny), score_space_of(tiny), atol=2.0 * bent
        )

    def test_permuting_rows_from_the_same_start(self, scores, labels, steps, rng):
        # Not exact: the rows are summed in another order.
        order = rng.permutation(N_ROWS)
        other = fit_from_start(score_space_of(scores)[order], labels[order], N_ITER)
        assert_same_posterior(steps, other, ROUNDING)

    def test_permuting_detectors_from_the_same_start(self, scores, labels, steps, rng):
        order = rng.permutation(N_DETECTORS)
        other = fit_from_start(score_space_of(scores)[:, order], labels, N_ITER)
        # Mixture and link do not depend on the order of the detectors, except for rounding.
        scale = np.abs(steps.mixture.means).max()
        np.testing.assert_allclose(
            other.mixture.means, steps.mixture.means[:, order], atol=ROUNDING * scale
        )
        np.testing.assert_allclose(other.components.alpha, steps.components.alpha, rtol=ROUNDING)
        # The root amplifies errors: P(gamma >= high_gamma) is flat in delta where it is small.
        np.testing.assert_allclose(other.link.delta, steps.link.delta, rtol=100 * ROUNDING)
        # Another Cholesky factor gives other draws: the means agree up to Monte Carlo error.
        first, second = steps.posterior, other.posterior
        error = np.hypot(first.standard_error, second.standard_error)
        assert abs(first.mean - second.mean) < 4.0 * error

    @pytest.mark.parametrize("block_size", [1, 17, 499, 10_000])
    def test_another_block_size(self, scores, labels, steps, block_size):
        # Exact only where one block holds all rows, as in `steps`.
        tolerance = 0.0 if block_size >= N_ROWS else ROUNDING
        other = fit_from_start(score_space_of(scores), labels, N_ITER, block_size=block_size)
        assert_same_posterior(steps, other, tolerance)

    @pytest.mark.usefixtures("two_threads")
    def test_another_n_jobs_is_exact(self, scores):
        first = fitted(scores, n_runs=3)
        second = fitted(scores, n_runs=3, n_jobs=2)
        assert second.posterior_.summary() == first.posterior_.summary()
        np.testing.assert_array_equal(second.labels_, first.labels_)


def fitted(scores, **parameters):
    """A fit; single runs may have no solution."""
    estimator = GammaGMM("precomputed", n_components=10, max_iter=50, p_high=0.1, random_state=0)
    estimator.set_params(**{"n_runs": 1, "n_draws": 100, "max_restarts": 10} | parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GammaGMMWarning)
        estimator.fit(scores)
    assert not estimator.posterior_.is_degenerate
    return estimator


class TestNewRows:
    """Scores of rows that the detectors were not fitted on."""

    @pytest.fixture(scope="class")
    @staticmethod
    def estimator():
        X = np.random.default_rng(0).normal(size=(60, 3))
        options = {"n_components": 5, "n_runs": 1, "max_restarts": 1, "scale": None}
        estimator = GammaGMM(["LOF", "HBOS"], **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GammaGMMWarning)
            return estimator.set_params(random_state=0).fit(X)

    def test_a_score_that_is_not_finite_is_refused_by_name(self, estimator):
        rows = np.array([[0.0, 0.0, 0.0], [1e300, 1e300, 1e300]])
        words = r"Detector LOF cannot score these rows: 1 of 2 scores are not finite, .* row 1"
        with pytest.raises(DetectorError, match=words):
            estimator.predict(rows)

    def test_scaled_rows_of_any_size_are_scored(self, estimator):
        X = np.random.default_rng(0).normal(size=(60, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GammaGMMWarning)
            scaled = clone(estimator).set_params(scale="standard").fit(X)
        scores = scaled.decision_function([[0.0, 0.0, 0.0], [1.7e308, -1.7e308, 1.7e308]])
        assert scores[0] < np.median(scaled.decision_scores_)
        assert scores[1] >= scaled.decision_scores_.max()

    def test_a_detector_that_raises_is_named(self, estimator, monkeypatch):
        def refuse(X):
            raise RuntimeError("the disk is full")

        monkeypatch.setattr(estimator.detectors_["HBOS"], "decision_function", refuse)
        words = "Detector HBOS cannot score these rows: RuntimeError: the disk is full"
        with pytest.raises(DetectorError, match=words):
            estimator.predict(np.zeros((2, 3)))

    def test_scores_of_another_shape_are_refused(self, estimator, monkeypatch):
        monkeypatch.setattr(
            estimator.detectors_["HBOS"], "decision_function", lambda X: np.zeros((len(X), 2))
        )
        with pytest.raises(DetectorError, match=r"scores of shape \(2, 2\), expected \(2,\)"):
            estimator.predict(np.zeros((2, 3)))

    def test_scores_further_out_than_a_float_can_span(self):
        scores = np.array([[-1e308, 0.0], [-9e307, 1.0], [-8e307, 3.0], [-5e307, 9.0]])
        with pytest.warns(GammaGMMWarning, match="The model has no estimate"):
            estimator = GammaGMM("precomputed", n_components=2, n_runs=1, max_restarts=0).fit(
                scores
            )
        far = np.array([[1.5e308, 9.0], [5e307, -1e308]])
        space = estimator.fit_.scaler.transform(far)
        # Each is clipped to the training scores, the highest or the lowest.
        expected = estimator.fit_.score_space[[3, 3], 0]
        np.testing.assert_array_equal(space[:, 0], expected)
        np.testing.assert_array_equal(space[:, 1], estimator.fit_.score_space[[3, 0], 1])
