"""The numbers that sentences on labels tell."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gammagmm import GammaPosterior, LabelledRows
from gammagmm.labels.precision import Precision
from gammagmm.labels.sentences import (
    exact_sentence,
    if_wrong_sentence,
    known_sentence,
    more_sentence,
    precision_sentence,
)
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.sentences import sentence

NARROW = GammaPosterior(0.01, BetaMixture(np.array([0.99]), np.array([500.0]), np.array([9500.0])))
NONE = GammaPosterior.degenerate()


def shares(text):
    """The percentages in a text."""
    return [float(share) for share in re.findall(r"([\d.]+)%", text)]


def test_labelled_rows_are_counted_with_the_estimate_before_them():
    found = known_sentence(1200, 1, NARROW)
    assert "1,200 labelled rows (1 anomaly)" in found
    assert shares(found) == [round(100 * x, 1) for x in (NARROW.mean, *NARROW.interval())]
    assert shares(known_sentence(1, 0, NONE)) == []


@pytest.mark.parametrize("how", [{}, {"at_random": False}])
def test_a_share_that_is_known_has_no_interval(how):
    rows = LabelledRows(np.arange(50.0)).update(range(50), np.arange(50) < 5, **how)
    assert shares(sentence(rows.posterior)) == [10.0]
    intervals = rows.exact_interval(), rows.interval_at_any_look()
    assert exact_sentence(*intervals, 5) == ""


@pytest.mark.parametrize(("n_anomalies", "confidence"), [(0, [90, 95, 90]), (2, [90, 90])])
def test_the_intervals_without_the_public_tables_are_told_with_their_ends(n_anomalies, confidence):
    rows = LabelledRows(np.arange(500.0)).update(range(40), np.arange(40) < n_anomalies)
    exact, looked = intervals = rows.exact_interval(), rows.interval_at_any_look()
    found = shares(exact_sentence(*intervals, n_anomalies))
    first = 0 if n_anomalies else 1  # without an anomaly, there is an upper end only
    ends = [round(100 * x, 1) for x in (*exact[first:], *looked[first:])]
    assert sorted(found) == sorted([*ends, *confidence])


def test_the_share_with_wrong_labels_is_told_for_each_rate():
    rows = LabelledRows(np.arange(500.0)).update(range(60), np.arange(60) < 20)
    told = [[each.mean, each.low, each.high, each.label_error] for each in rows.if_wrong]
    found = shares(if_wrong_sentence(rows.if_wrong))
    assert found == [round(100 * x, 1) for x in np.ravel(told)]
    assert shares(if_wrong_sentence(rows.if_wrong, has_list=True)) == found
    assert if_wrong_sentence(()) == ""


@pytest.mark.parametrize(
    ("n_more", "n_left", "told"),
    [
        (0, 0, []),
        (6, 5, [5]),
        (5, 5, [5]),
        (4, 5, [4]),
        (1, 5, [1]),
        (0, 5, [5]),
        (2000, 3000, [2000]),
    ],
)
def test_how_many_more_labels_are_needed(n_more, n_left, told):
    """At most those that are left."""
    numbers = re.findall(r"\d+", more_sentence(n_more, n_left).replace(",", ""))
    assert [int(number) for number in numbers] == told


def test_all_flagged_rows_with_labels_need_no_interval():
    assert shares(precision_sentence(Precision(10, 10, 1, 0.1, 0.1, 0.1))) == []
    some = precision_sentence(Precision(40, 10, 1, 0.1, 0.025, 0.375))
    assert shares(some) == [2.5, 37.5, 90.0]
    assert re.findall(r"(\d+) (?:flagged|is|\()", some) == ["10", "1", "40"]
