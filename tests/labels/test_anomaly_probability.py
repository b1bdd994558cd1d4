"""The calibrated probability of a row, against brute force and on simulated rankings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from gammagmm import GammaPosterior
from gammagmm.labels.anomaly_probability import calibrate
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.posterior.track_record import load_slopes

N_ROWS = 400


@st.composite
def labelled(draw):
    """Rows, some with labels, by a ranking of any quality with or without ties."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    share, quality = draw(st.sampled_from([0.0, 0.02, 0.2, 0.6])), draw(st.sampled_from([0, 1, 9]))
    truth = (rng.random(N_ROWS) < share).astype(int)
    scores = rng.normal(size=N_ROWS) + quality * truth
    if draw(st.booleans()):
        scores = np.round(scores)
    rows = LabelledRows(scores)
    n = draw(st.sampled_from([0, 1, 30, N_ROWS - 1]))
    if n:
        chosen = rng.permutation(N_ROWS)[:n]
        rows = rows.update(chosen, truth[chosen])
        left = rows.known_rows.unknown(N_ROWS)
        if draw(st.booleans()) and len(left) > 20:
            top = rows.suggest(10, purpose="find")
            rows = rows.update(top, truth[top], purpose="find")
    return rows


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_probabilities_add_up_and_fall_along_the_ranking(rows):
    probability, left = rows.probability, rows.known_rows.unknown(N_ROWS)
    is_labelled = len(rows.known_rows) > 0
    posterior = rows.posterior if is_labelled else GammaPosterior.reference()
    assert probability.sum() == pytest.approx(N_ROWS * posterior.mean, rel=1e-9)
    assert ((probability >= 0.0) & (probability <= 1.0)).all()
    order = np.argsort(-rows.scores[left], kind="stable")
    assert (np.diff(probability[left][order]) <= 1e-15).all()
    ties = rows.scores[left][:, None] == rows.scores[left]
    assert (probability[left][:, None] == probability[left])[ties].all()


def test_the_average_over_slopes_is_that_of_an_independent_grid_search(rng):
    """Each curve is found by bisection with SciPy's normal distribution, row by row."""
    training = rng.normal(size=60)
    left, known = training[:50], training[50:]
    labels = (rng.random(10) < 0.4).astype(int)
    slopes, prior, share = np.array([0.0, 0.7, 2.0]), np.array([0.5, 0.2, 0.3]), 0.17

    def z(score):
        n_at_least = sum(other >= score for other in training)
        return norm.isf((n_at_least + 0.5) / 61)

    def p(score, intercept, slope):
        return 1.0 / (1.0 + np.exp(-intercept - slope * z(score)))

    weights, curves = [], []
    for slope, weight in zip(slopes, prior, strict=True):
        low, high = -50.0, 50.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            is_above = np.mean([p(score, middle, slope) for score in left]) > share
            low, high = (low, middle) if is_above else (middle, high)
        for score, label in zip(known, labels, strict=True):
            weight *= p(score, low, slope) if label else 1.0 - p(score, low, slope)
        weights.append(weight)
        curves.append([p(score, low, slope) for score in training])
    expected = np.array(weights) @ np.array(curves) / sum(weights)
    found = calibrate(training, left, share, (known, labels), (slopes, prior))
    np.testing.assert_allclose(found(training), expected, rtol=1e-9)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_that_is_certain_leaves_no_doubt(share, rng):
    scores = rng.normal(size=20)
    slopes = load_slopes()
    prior = (slopes.slopes, slopes.learned)
    made = calibrate(scores, scores, share, (scores[:5], np.ones(5, dtype=int)), prior)
    np.testing.assert_allclose(made(scores), share, rtol=1e-14)  # the weights add up to 1


def test_a_row_beyond_the_others_is_the_first_and_does_not_depend_on_its_batch(rng):
    rows = LabelledRows(rng.normal(size=100))
    chosen = rows.suggest(30, random_state=0)
    rows = rows.update(chosen, (rows.scores[chosen] > 1.0).astype(int))
    new = np.array([-9.0, 0.3, 9.0, 99.0])
    found = rows.calibration(new)
    assert found[0] < found[1] < rows.calibration(rows.scores).max() < found[2] == found[3] < 1.0
    np.testing.assert_array_equal(found, [rows.calibration(new[[i]])[0] for i in range(4)])


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_thirty_labels_tell_a_perfect_ranking_from_a_random_one(share):
    rng = np.random.default_rng(0)
    stated = {"perfect": [], "random": []}
    for _ in range(20):
        truth = (np.arange(1000) < 1000 * share).astype(int)
        rankings = {"perfect": truth + rng.random(1000), "random": rng.random(1000)}
        for name, scores in rankings.items():
            rows = LabelledRows(scores)
            chosen = rows.suggest(30, random_state=rng)
            rows = rows.update(chosen, truth[chosen])
            left = rows.known_rows.unknown(1000)
            ordered = rows.probability[left[np.argsort(-scores[left])]]
            parts = ordered[:10], ordered[: int(500 * share)], ordered[-500:]
            stated[name].append([*(part.mean() for part in parts), rows.posterior.mean])
    first, _, last, _ = np.mean(stated["perfect"], axis=0)
    assert first > 0.9
    assert last < 0.01
    first, upper, last, mean = np.mean(stated["random"], axis=0)
    # Few rankings of labelled tables are random, so that 30 labels do not make it certain.
    assert mean < first < mean + 0.25
    assert upper == pytest.approx(mean, abs=0.15)
    assert last == pytest.approx(mean, abs=0.05)


def test_the_slopes_of_the_package_are_distributions_that_know_the_kind_of_ranking():
    reference = load_slopes()
    assert (np.diff(reference.slopes) > 0.0).all()
    assert reference.slopes[0] == 0.0
    for weights in (reference.unlabelled, reference.consensus, reference.learned):
        assert weights.shape == reference.slopes.shape
        assert (weights >= 0.0).all()
        assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    median = [
        reference.slopes[np.searchsorted(np.cumsum(weights), 0.5)]
        for weights in (reference.unlabelled, reference.consensus, reference.learned)
    ]
    assert median[0] <= median[1] < median[2]
