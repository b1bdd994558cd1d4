"""What a report shows of a fit whose runs are solved with several candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.report.findings import find
from tests.support.solved_scores import SOLVED, grouped_scores, has_content
from tests.support.tables import knowing

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


def test_the_estimate_is_the_mean_of_the_runs_from_their_own_parts(fit):
    alone = [run.posterior for run in fit.runs]
    assert len(alone) == 3
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


def sample_labelled(fit, n_anomalies, n=60):
    """The fit after `n` random rows were labelled, `n_anomalies` of them anomalies."""
    rows = np.random.default_rng(2).permutation(300)[:n]
    return fit.update(rows, np.arange(n) < n_anomalies)


@pytest.fixture(scope="module")
def updated(fit):
    return sample_labelled(fit, 12)


@pytest.fixture(scope="module")
def found_updated(updated):
    return find(updated)


def test_the_ranking_puts_known_anomalies_first_and_known_normal_rows_last(updated, found_updated):
    known, scores = updated.known_rows, updated.decision_scores
    unknown = [row for row in range(300) if row not in known.rows]
    groups = [known.rows[known.labels == 1], unknown, known.rows[known.labels == 0]]
    expected = [row for group in groups for row in sorted(group, key=lambda row: -scores[row])]
    found = found_updated
    assert found.ranking == tuple(str(row + 1) for row in expected)
    assert [row.name for row in found.top_rows] == [str(row + 1) for row in expected[:50]]
    for ranked, row in zip(found.top_rows, expected, strict=False):
        assert (ranked.score, ranked.probability) == (scores[row], updated.probability[row])
        assert ranked.reasons == ()


def test_the_slider_ends_beyond_the_interval_in_steps_of_5_percent(fit, findings):
    gammas = [step.gamma for step in findings.steps]
    assert fit.posterior.interval()[1] < 0.3
    np.testing.assert_allclose(gammas, np.linspace(0.0, 0.3, 301), atol=1e-9)
    above = sample_labelled(fit, 21)
    low, high = above.posterior.interval()
    assert 0.2 < low < 0.3 < 0.35 < high < 0.5
    end = next(end for end in np.arange(0.3, 1.0, 0.05) if end >= high)
    gammas = [step.gamma for step in find(above).steps]
    assert gammas == [round(end * i / 300, 6) for i in range(301)]


def test_the_cuts_flag_as_many_rows_as_the_share_says(fit, findings, updated, found_updated):
    low, high = fit.posterior.interval()
    for cut, gamma in (
        (findings.mean, fit.posterior.mean),
        (findings.lower_end, low),
        (findings.upper_end, high),
    ):
        assert cut.gamma == gamma
        assert cut.n_flagged == pytest.approx(300 * gamma, abs=1.0)
        assert cut.n_flagged == (fit.decision_scores > cut.threshold).sum()
    cut = found_updated.mean
    left = np.setdiff1d(np.arange(300), updated.known_rows.rows)
    assert cut.n_flagged == 12 + (updated.decision_scores[left] > cut.threshold).sum()
    assert cut.n_flagged == pytest.approx(300 * updated.posterior.mean, abs=1.0)


def test_if_every_row_is_known_each_cut_flags_the_known_anomalies(fit):
    every = fit.update(np.arange(300), TRUTH)
    found = find(every)
    assert {cut.n_flagged for cut in (found.mean, *found.steps)} == {TRUTH.sum()}
    assert found.to_label == ()
    assert (found.summary.labels.n_rows, found.summary.labels.n_anomalies) == (300, 54)


def test_rows_without_a_label_are_suggested_up_to_thirty(fit, findings):
    assert len(findings.to_label) == 30
    assert findings.summary.labels is None
    assert not findings.has_picked
    almost = fit.update(np.arange(299), TRUTH[:299])
    assert [row.number for row in find(almost).to_label] == [300]


def test_names_longer_than_sixty_characters_are_cut(fit):
    ids = ("a" * 60, "b" * 61, *map(str, range(298)))
    names = set(find(knowing(fit, ids=ids)).ranking)
    assert {"a" * 60, "b" * 60 + "…"} < names
    assert len(names) == 300


def test_the_truth_is_the_share_of_the_labels_that_were_not_used(fit, findings):
    assert findings.summary.truth is None
    for labels in (TRUTH, np.ones(300, dtype=int)):
        truth = find(knowing(fit, truth=labels)).summary.truth
        low, high = fit.posterior.interval()
        assert truth.share == labels.mean()
        assert truth.is_inside == (low <= labels.mean() <= high)


def test_costs_are_those_of_the_guide_and_flag_by_probability(fit, findings):
    costs = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    assert [cost.miss_cost for cost in findings.costs] == costs
    expected = [(fit.probability > 1.0 / (1.0 + cost)).sum() for cost in costs]
    for cost, n_flagged in zip(findings.costs, expected, strict=True):
        assert cost.cut.gamma == n_flagged / 300
        above = fit.decision_scores > cost.cut.threshold
        np.testing.assert_array_equal(above, fit.probability > 1.0 / (1.0 + cost.miss_cost))
    assert [cost.cut.n_flagged for cost in findings.costs] == expected
    assert len(set(expected)) > 3


def test_rows_of_the_group_are_marked_in_the_ranking(fit):
    order = np.argsort(-fit.decision_scores, kind="stable")
    rows = np.append(order[[0, 3, 49]], order[60:200])
    evidence = replace(
        fit.evidence, separate_rows=SeparateRows(rows, len(rows), 0.4, 0.9, ("a", "b"))
    )
    found = find(replace(fit, evidence=evidence)).top_rows
    assert [place for place, row in enumerate(found) if row.is_separate] == [0, 3, 49]


def test_separate_rows_are_the_first_fifty_of_them(fit):
    rows = np.arange(100, 160)
    evidence = replace(fit.evidence, separate_rows=SeparateRows(rows, 60, 0.2, 0.9, ("a", "b")))
    found = find(replace(fit, evidence=evidence))
    expected = sorted(rows, key=lambda row: -fit.decision_scores[row])[:50]
    assert found.separate_rows == tuple(str(row + 1) for row in expected)


def test_agreement_is_spearmans_correlation_with_the_consensus(fit, findings):
    expected = [spearmanr(column, fit.space.consensus).statistic for column in fit.scores.T]
    assert list(findings.agreement) == list(fit.detector_names)
    assert list(findings.agreement.values()) == pytest.approx(expected, rel=1e-12)


def test_nothing_is_found_without_a_random_anomaly(fit, updated, found_updated):
    assert find(sample_labelled(fit, 0)).found is None
    if updated.learning.ranking is not None:
        assert found_updated.found.consensus[-1] == found_updated.found.learned[-1] == 12


def test_humps_are_shown_only_if_each_of_several_runs_has_them(fit):
    two = GammaPosterior(0.01, BetaMixture(*np.array([[0.5, 0.49], [50.0, 300.0], [950.0, 700.0]])))
    one = GammaPosterior(0.01, BetaMixture(*np.array([[0.99], [50.0], [950.0]])))

    def humps(*posteriors):
        runs = tuple(replace(fit.runs[0], posterior=posterior) for posterior in posteriors)
        return find(replace(fit, runs=runs, fitted_posterior=two)).humps

    assert humps(two, two) == pytest.approx((50 / 998, 0.3), abs=2e-3)
    assert humps(two, one) == humps(one, one) == humps(two) == ()


def test_the_groups_are_those_of_the_fit(fit):
    assert find(fit).groups == ()
    groups = np.array(["a", "b", "c"])[np.arange(300) % 3]
    found = find(fit.grouped(groups)).groups
    assert [share.n_flagged for share in found] == [
        int(fit.labels[groups == name].sum()) for name in "abc"
    ]
    assert sum(share.n_flagged for share in found) == fit.n_flagged > 0
