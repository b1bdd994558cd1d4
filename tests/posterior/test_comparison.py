"""Two posteriors compared: with random draws, and with sums over whole rows."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm import GammaPosterior, LabelledRows
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.comparison import NO_ESTIMATE, NO_LABELS, compare_posteriors

PROBABILITIES = ("prob_b_above_a", "prob_a_above_b", "prob_equal")


def posterior(*parts, prob_zero=0.01, n_labels=0):
    return GammaPosterior(prob_zero, BetaMixture(*np.array(parts).T), n_labels=n_labels)


NARROW = posterior((0.99, 500.0, 9500.0), n_labels=30)
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0), n_labels=1)
FITTED = posterior((0.99, 200.0, 9800.0))
NONE = GammaPosterior.degenerate()


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ((FITTED, FITTED), NO_LABELS),
        ((NARROW, FITTED), NO_LABELS),
        ((FITTED, NARROW), NO_LABELS),
        ((NARROW, NONE), NO_ESTIMATE),
        ((NONE, FITTED), NO_ESTIMATE),
        ((NONE, NONE), NO_ESTIMATE),
    ],
)
def test_without_labels_or_an_estimate_there_is_no_probability(pair, reason):
    found = compare_posteriors(*pair)
    assert found["reason"] == reason
    assert [found[name] for name in PROBABILITIES] == [None] * 3
    for letter, one in zip("ab", pair, strict=True):
        assert found[f"no_answer_{letter}"] is (one is NONE)
        assert found[f"mean_{letter}"] == (None if one is NONE else one.mean)
        assert found[f"n_labels_{letter}"] == one.n_labels


def test_the_probability_of_exceeding_is_that_of_draws():
    n = 1_000_000
    first, second = NARROW.sample(n, 1), TWO_HUMPS.sample(n, 2)
    found = compare_posteriors(NARROW, TWO_HUMPS)
    share = np.mean(second > first)
    error = 4 * np.sqrt(share * (1 - share) / n)
    assert found["prob_b_above_a"] == pytest.approx(share, abs=error)
    assert found["prob_equal"] == pytest.approx(1e-4)
    assert sum(found[name] for name in PROBABILITIES) == pytest.approx(1.0)
    # Every row has a label, and none is an anomaly.
    clean = LabelledRows(np.arange(300.0)).update(np.arange(300), np.zeros(300)).posterior
    assert compare_posteriors(clean, clean)["prob_equal"] == 1.0
    assert compare_posteriors(clean, NARROW)["prob_b_above_a"] == pytest.approx(0.99)
    assert compare_posteriors(NARROW, clean)["prob_b_above_a"] == 0.0


def test_shares_of_whole_rows_can_be_equal():
    rows = LabelledRows(np.arange(40.0))
    first = rows.update(np.arange(20), np.arange(20) < 2).posterior
    second = rows.update(np.arange(10), np.arange(10) < 1).posterior
    (pmf_a, pmf_b) = (np.diff(p.cdf(np.arange(-1, 41) / 40)) for p in (first, second))
    joint = np.outer(pmf_a, pmf_b)
    found = compare_posteriors(first, second)
    assert found["prob_equal"] == pytest.approx(np.trace(joint))
    assert found["prob_b_above_a"] == pytest.approx(np.triu(joint, 1).sum())
    assert found["prob_a_above_b"] == pytest.approx(np.tril(joint, -1).sum())
    known = rows.update(np.arange(40), np.arange(40) < 4).posterior
    assert compare_posteriors(known, known)["prob_equal"] == 1.0
