"""What a report shows of a fit whose runs are solved with several candidates."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.report.findings import find
from tests.support.solved_scores import SOLVED, grouped_scores, has_content

TRUTH = (np.arange(300) >= 246).astype(int)


@pytest.fixture(scope="module")
def fit():
    scores = grouped_scores(np.random.default_rng(0))
    fit = GammaGMM("precomputed", **SOLVED, random_state=0).fit(scores).fit_
    assert has_content(fit.runs)
    return fit


@pytest.fixture(scope="module")
def findings(fit):
    return find(fit)


def test_a_component_is_anomalous_if_at_least_as_many_are(fit, findings):
    run = fit.runs[0]
    assert len(findings.components) == len(run.components) > len(run.weights)
    shares = [component.share for component in findings.components]
    np.testing.assert_allclose(shares, run.components.alpha / run.components.alpha.sum())
    found = [component.p_anomalous for component in findings.components]
    n_anomalous = np.arange(1, len(run.weights) + 1)
    rng, n_draws = np.random.default_rng(0), 100_000
    drawn = rng.choice(n_anomalous, size=n_draws, p=run.weights) * (rng.random(n_draws) >= 0.01)
    for place, p in enumerate(found, start=1):
        error = 4.0 * np.sqrt(p * (1.0 - p) / n_draws)
        assert abs(np.mean(drawn >= place) - p) <= error + 1e-12
    assert found[0] == pytest.approx(0.99)
    assert found[len(run.weights) - 1] < 0.5 < found[1] < 0.97


def test_the_estimate_from_each_run_alone_is_that_of_its_own_parts(fit, findings):
    alone = [change.posterior for change in findings.sensitivity if change.what == "runs"]
    assert len(alone) == len(fit.runs) == 3
    for run, posterior in zip(fit.runs, alone, strict=True):
        alpha = run.components.alpha
        shares = np.cumsum(alpha)[: len(run.weights)] / alpha.sum()
        assert posterior.mean == pytest.approx(0.99 * run.weights @ shares, rel=1e-12)
    means = [posterior.mean for posterior in alone]
    assert fit.posterior.mean == pytest.approx(np.mean(means), rel=1e-12)
    assert len(np.unique(np.round(means, 6))) == 3


def test_the_thresholds_of_detectors_are_those_of_rows_outside_lists(fit):
    rng = np.random.default_rng(1)
    drawn, listed = rng.permutation(300)[:40], np.arange(250, 290)
    updated = fit.update(listed, TRUTH[listed], at_random=False).update(drawn, TRUTH[drawn])
    findings = find(updated)
    outside = np.setdiff1d(np.arange(300), listed)
    for cut in (findings.mean, findings.lower_end, *findings.steps[::60]):
        share = np.clip((300 * cut.gamma - TRUTH[listed].sum()) / len(outside), 0.0, 1.0)
        expected = np.percentile(fit.scores[outside], 100 * (1 - share), axis=0)
        np.testing.assert_allclose(cut.thresholds, expected, rtol=1e-12)
    assert findings.mean.thresholds == tuple(updated.thresholds.values())
