"""The trials of labels: the other methods, and the prior that does not know the table."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.tables import former_curves, label_figures
from scipy import integrate, stats
from scipy.stats import betabinom

from experiments import labels, metrics
from gammagmm import GammaPosterior
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.posterior.betas import BetaMixture

PRIOR = BetaMixture(np.array([0.3, 0.7]), np.array([1.1, 1.8]), np.array([146.0, 12.5]))


@pytest.mark.parametrize(("n", "n_found"), [(30, 0), (30, 4), (10, 10)])
def test_clopper_pearson_inverts_the_binomial_tests(n, n_found):
    low, high = labels._clopper_pearson(n, n_found)
    if n_found > 0:
        assert stats.binom.sf(n_found - 1, n, low) == pytest.approx(0.05)
    if n_found < n:
        assert stats.binom.cdf(n_found, n, high) == pytest.approx(0.05)
    assert (low == 0.0) == (n_found == 0)
    assert (high == 1.0) == (n_found == n)


@pytest.mark.parametrize("truth", [-0.1, 0.02, 0.3])
def test_the_crps_of_a_normal_distribution(truth):
    def gap(x):
        return (stats.norm.cdf(x, 0.05, 0.03) - (x >= truth)) ** 2

    expected, _ = integrate.quad(gap, -1.0, 1.0, points=[truth, 0.05], limit=200)
    assert labels._normal_crps(0.05, 0.03, truth) == pytest.approx(expected, rel=1e-6)
    assert labels._normal_crps(0.05, 0.0, truth) == abs(0.05 - truth)


def test_the_crps_of_a_finite_table_is_the_integral():
    posterior = labelled_posterior(LabelCounts(60, 20, 2, 0, 0), PRIOR)
    x = np.linspace(0.0, 1.0, 600_001)[:-1] + 0.5 / 600_000
    expected = np.mean((posterior.cdf(x) - (x >= 7 / 60)) ** 2)
    assert metrics.crps(posterior, 7 / 60) == pytest.approx(expected, rel=1e-4)


def test_perfect_predictions_give_the_share():
    y = np.zeros(1000, dtype=int)
    y[:70] = 1
    rows = np.arange(0, 1000, 10)
    found = labels._prediction_powered(y, y, rows, 0.07)
    assert found["held"] == 1.0
    assert found["crps"] < 0.005
    useless = labels._prediction_powered(y, np.zeros(1000, dtype=int), rows, 0.07)
    assert useless["width"] > 2 * found["width"]


def test_every_method_answers_for_the_same_labels():
    y = (np.arange(500) < 40).astype(int)
    spread, random = np.arange(5, 500, 17), np.arange(3, 500, 17)
    found = dict(labels._answers(y, y, spread, random, PRIOR))
    expected = labelled_posterior(LabelCounts(500, 30, int(y[random].sum()), 0, 0), PRIOR)
    low, high = expected.interval()
    assert found["random"]["width"] == high - low
    assert found["random"]["crps"] == metrics.crps(expected, 0.08)
    n_found = y[random].sum()
    jeffreys = stats.beta(n_found + 0.5, 30 - n_found + 0.5)
    assert found["jeffreys"]["width"] == pytest.approx(jeffreys.ppf(0.95) - jeffreys.ppf(0.05))
    assert set(found) == {
        *("spread", "random", "exact_spread", "exact_random"),
        *("jeffreys", "clopper_pearson", "ppi"),
    }


def test_prediction_powered_inference_has_the_figures_of_its_own_package():
    y = np.repeat([1, 0, 0, 1, 0], [2, 9, 2, 1, 1])
    predicted, others = np.repeat([1, 0, 1, 0, 0], [2, 9, 2, 1, 1]), np.arange(85) < 12
    mean, error = labels.ppi_mean(y, predicted, others.astype(int))
    half = error * stats.norm.ppf(0.95)
    # ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.1).
    assert mean == pytest.approx(0.13714286, abs=1e-7)
    assert (mean - half, mean + half) == pytest.approx((-0.01849019, 0.29277591), abs=1e-7)


def test_the_prior_does_not_know_tables_of_the_same_source():
    assert labels.source_of("PenDigits_v10") == labels.source_of("pendigits") == "pendigits"
    assert labels.source_of("cardio") == labels.source_of("Cardiotocography22")
    assert labels.source_of("http") == labels.source_of("KDDCup99") != labels.source_of("wbc_odds")
    assert labels.source_of("SystemFailure") == labels.source_of("TelecomMarketing")
    assert labels.source_of("SystemFailure") != labels.source_of("SystemFailureCases")
    names = [name for _, name in labels._records()]
    same = [name for name in names if labels.source_of(name) == "wbc"]
    assert len(same) > 1
    k, n = np.array(
        [
            (round(record["truth"] * record["rows"]), record["rows"])
            for (_, name), record in labels._records().items()
            if labels.source_of(name) != "wbc"
        ]
    ).T
    prior = labels.reference_without("WBC")

    def likelihood(mixture):
        parts = zip(mixture.weights, mixture.a, mixture.b, strict=True)
        return np.log(sum(w * betabinom.pmf(k, n, a, b) for w, a, b in parts)).sum()

    # It is the most likely one for the other tables, which the whole reference is not.
    assert likelihood(prior) >= likelihood(GammaPosterior.reference().betas) - 1e-6


def test_the_former_curves_are_stored_for_every_table():
    former = former_curves()
    assert set(former) == {f"{collection}/{name}" for collection, name in labels._records()}
    result = {"figures": {"spread": {"30": {}}}, "former": former["paper/WBC"]}
    assert label_figures(result, "former curves", 30) == former["paper/WBC"]
    assert label_figures(result, "former curves", 10) is None
