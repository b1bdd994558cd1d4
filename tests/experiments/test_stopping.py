"""When one may stop to look for anomalies: the figures of the study."""

import numpy as np
from experiments.reliability import Ranked

from experiments import stopping


def ranked(y, known, rank):
    """A ranking in which row i has the rank `rank[i]`, after the rows `known` were labelled."""
    return Ranked(y, known, rank, False, rank[:0], y[:0], None)


def test_with_a_perfect_ranking_the_rule_is_right_and_the_check_takes_more_rows():
    y = (np.arange(1000) < 100).astype(int)
    known = np.arange(5, 1000, 34)[:30]
    found = stopping.looks(ranked(y, known, np.arange(1000) + 1), np.random.default_rng(0))
    # The labelled rows, the other anomalies, and 20 normal rows.
    n_known_anomalies = (known < 100).sum()
    assert found["rule_looks"] == 30 + 100 - n_known_anomalies + 20
    assert found["rule_recall"] == found["check_recall"] == 1.0
    n_left = 1000 - found["rule_looks"]
    n_check = stopping.n_to_certify(n_left, 100, 0.8, 0.95)
    assert found["check_looks"] == found["rule_looks"] + n_check


def test_without_a_ranking_the_rule_is_wrong_and_the_check_is_not():
    rng, is_wrong = np.random.default_rng(0), []
    for _ in range(200):
        y = rng.permutation(np.arange(400) < 40).astype(int)
        known = rng.permutation(400)[:30]
        found = stopping.looks(ranked(y, known, np.arange(400) + 1), rng)
        is_wrong.append([found["rule_recall"] < 0.8, found["check_recall"] < 0.8])
    rule, check = np.mean(is_wrong, axis=0)
    assert rule > 0.5
    assert check <= 0.1 + 4 * np.sqrt(0.09 / 200)


def test_the_precision_of_the_numbers_that_are_named():
    y = (np.arange(1000) < 300).astype(int)
    table = ranked(y, np.arange(0, 1000, 10), np.arange(1000) + 1)
    assert all(each["named"] and each["right"] for each in stopping.precisions(table))
    none = ranked(np.zeros(1000, dtype=int), np.arange(0, 1000, 10), np.arange(1000) + 1)
    assert not any(each["named"] for each in stopping.precisions(none))
    told = stopping.precision([stopping.precisions(table), stopping.precisions(none)])
    assert told["0.5"] == {"n": 2, "n_named": 1, "n_right": 1}
