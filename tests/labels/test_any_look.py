"""The interval at any look, against its definition and by enumeration of all paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm import LabelledRows
from gammagmm.labels.any_look import interval_at_any_look
from gammagmm.labels.exact_interval import exact_interval
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.track_record import load_label_prior

PRIOR = BetaMixture(np.array([0.3, 0.7]), np.array([1.1, 1.0]), np.array([30.0, 1.0]))
N_ROWS, N_LABELS = 400, 60


@pytest.mark.parametrize(("n", "k"), [(0, 0), (1, 0), (1, 1), (10, 0), (30, 4), (60, 60)])
def test_it_is_the_ratio_of_prior_and_posterior(n, k):
    total = np.arange(N_ROWS + 1)
    parts = zip(PRIOR.weights, PRIOR.a, PRIOR.b, strict=True)
    prior = sum(weight * stats.betabinom.pmf(total, N_ROWS, a, b) for weight, a, b in parts)
    posterior = prior * stats.hypergeom.pmf(k, N_ROWS, total, n)
    posterior /= posterior.sum()
    with np.errstate(divide="ignore"):
        inside = np.flatnonzero(prior / posterior < 1 / (1 - 0.9))
    assert interval_at_any_look(N_ROWS, n, k, 0.9, PRIOR) == (inside[0], inside[-1])


def p_missed(ends, total):
    """P(the interval misses at some look), over all orders of the rows."""
    k, p_held = np.arange(N_LABELS + 1), np.eye(1, N_LABELS + 1)[0]
    for n in range(1, N_LABELS + 1):
        p_next = np.clip((total - k) / (N_ROWS - n + 1), 0.0, 1.0)
        p_held = p_held * (1.0 - p_next) + np.append(0.0, (p_held * p_next)[:-1])
        p_held *= (ends[n, :, 0] <= total) & (total <= ends[n, :, 1])
    return 1.0 - p_held.sum()


def test_it_misses_at_some_look_in_at_most_ten_percent():
    any_look, fixed = np.zeros((2, N_LABELS + 1, N_LABELS + 1, 2))
    for n in range(1, N_LABELS + 1):
        for k in range(n + 1):
            any_look[n, k] = interval_at_any_look(N_ROWS, n, k, 0.9, load_label_prior())
            fixed[n, k] = exact_interval(N_ROWS, n, k, 0.9)
    totals = [0, 1, 4, 20, 40, 80, 120, 160, 200]
    assert max(p_missed(any_look, total) for total in totals) <= 0.1
    # The interval for a fixed number of labels does not survive looks.
    assert min(p_missed(fixed, total) for total in totals[-5:]) > 0.2


def test_lists_and_picked_rows_count_as_in_the_exact_interval():
    rows = LabelledRows(-np.arange(500.0))
    drawn = rows.suggest(60, spread=False, random_state=0)
    rows = rows.update(drawn, np.zeros(60))
    low, high = interval_at_any_look(500, 60, 0, 0.8, load_label_prior())
    assert rows.interval_at_any_look(0.8) == (low / 500, high / 500)
    listed = np.setdiff1d(np.arange(499, 400, -1), drawn)[:8]
    picked = np.setdiff1d(np.arange(30), drawn)[:5]
    rows = rows.update(np.append(listed, drawn[:2]), np.ones(10), at_random=False)
    rows = rows.update(picked, np.ones(5), purpose="find")
    low, high = interval_at_any_look(490, 58, 0, 0.8, load_label_prior())
    assert rows.interval_at_any_look(0.8) == (15 / 500, (10 + high) / 500)


def test_rows_in_simple_random_order():
    rows = LabelledRows(np.repeat([0.0, 1.0], 50)).update(range(10), np.zeros(10), at_random=False)
    orders = [rows.suggest(90, spread=False, random_state=seed) for seed in range(300)]
    assert all(sorted(order.tolist()) == list(range(10, 100)) for order in orders)
    for place in (0, 1, 40):  # each row is as likely at each place, whatever came before
        of_top = np.array([order[place] >= 50 for order in orders])
        assert of_top.mean() == pytest.approx(50 / 90, abs=4 * np.sqrt(0.25 / 300))
    pairs = np.array([(order[0] >= 50) == (order[1] >= 50) for order in orders])
    expected = (50 * 49 + 40 * 39) / (90 * 89)
    assert pairs.mean() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 300))
    for wrong in ({"purpose": "find"}, {"by": np.zeros(100)}):
        with pytest.raises(ValueError, match="spread=False needs"):
            rows.suggest(5, spread=False, **wrong)
