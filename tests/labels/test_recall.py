"""How many anomalies are left, and the certified recall."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gammagmm import LabelledRows
from gammagmm.labels.recall import RecallCheck, n_to_certify
from gammagmm.table.sample import Sample


def test_what_is_left_is_the_posterior_less_what_is_found():
    rows = LabelledRows(-np.arange(1000.0))
    drawn = rows.suggest(30, random_state=0)
    rows = rows.update(drawn, (drawn < 50).astype(int))
    picked = rows.suggest(20, purpose="find")
    rows = rows.update(picked, np.ones(20), purpose="find")
    left, posterior = rows.left, rows.posterior
    n_found = 20 + int((drawn < 50).sum())
    assert (left.n_rows, left.n_found) == (950, n_found)
    ends = posterior.interval()
    assert left.mean == pytest.approx(1000 * posterior.mean - n_found)
    assert (left.low, left.high) == pytest.approx(tuple(1000 * end - n_found for end in ends))
    assert left.recall == pytest.approx(n_found / (1000 * posterior.mean))
    recalls = tuple(n_found / (1000 * end) for end in ends[::-1])
    assert (left.low_recall, left.high_recall) == pytest.approx(recalls)


def test_where_nothing_is_left_everything_is_found():
    for labels in ([0, 1, 0, 0, 0], [0] * 5):
        left = LabelledRows(np.zeros(5)).update(range(5), labels).left
        assert (left.mean, left.low, left.high) == (0.0, 0.0, 0.0)
        assert (left.recall, left.low_recall, left.high_recall) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("n_rows", "n_found", "recall"), [(200, 10, 0.8), (150, 3, 0.5)])
def test_a_certificate_is_false_in_at_most_ten_percent(n_rows, n_found, recall):
    """By enumeration, for every number of anomalies that are left."""
    n = n_to_certify(n_rows, n_found, recall, 0.9)
    check = RecallCheck(np.arange(n), n_rows, n_found, recall, 0.9)
    results = [check.result(np.arange(n) < k) for k in range(n + 1)]
    assert results[0].is_certified
    shorter = RecallCheck(np.arange(n - 1), n_rows, n_found, recall, 0.9)
    assert not shorter.result(np.zeros(n - 1)).is_certified
    for total in range(n_rows + 1):
        p_found = stats.hypergeom.pmf(np.arange(n + 1), n_rows, total, n)
        true_recall = [(n_found + k) / (n_found + total) for k in range(n + 1)]
        is_false = [r.recall > true + 1e-12 for r, true in zip(results, true_recall, strict=True)]
        assert p_found @ is_false <= 0.1 + 1e-9
        is_wrong = [
            r.is_certified and true < recall - 1e-9
            for r, true in zip(results, true_recall, strict=True)
        ]
        assert p_found @ is_wrong <= 0.1 + 1e-9


def test_nothing_found_needs_nearly_all_rows():
    # A single anomaly among the last four rows of 50 has a probability of 8 %, among five 10 %.
    assert n_to_certify(50, 0, 0.8, 0.9) == 46
    assert n_to_certify(0, 3, 0.8, 0.9) == 0


def test_the_rows_to_look_at_are_random_ones_without_a_label():
    rows = LabelledRows(-np.arange(300.0)).update(range(40), np.ones(40), purpose="find")
    check = rows.certify(0.9, random_state=0)
    assert len(check.rows) == n_to_certify(260, 40, 0.9, 0.9)
    assert np.unique(check.rows).min() >= 40
    drawn = np.concatenate([rows.certify(0.9, random_state=seed).rows for seed in range(100)])
    assert (drawn < 170).mean() == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / len(drawn)))
    with pytest.raises(ValueError, match="one value for each"):
        check.result([0])
    with pytest.raises(ValueError, match="recall must"):
        rows.certify(1.0)
    part = LabelledRows(np.zeros(2), part=Sample(10, 2, np.array([1, 5])))
    with pytest.raises(ValueError, match="all rows in memory"):
        part.certify()
