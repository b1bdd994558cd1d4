"""The texts that the command line writes."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm.cli.output import (
    answer_json,
    answer_text,
    compare_posteriors,
    comparison_text,
    labels_csv,
)
from gammagmm.posterior.betas import BetaMixture
from gammagmm.report.origin import Origin


def posterior(*parts, prob_zero=0.01):
    return GammaPosterior(prob_zero, BetaMixture(*np.array(parts).T))


NARROW = posterior((0.99, 500.0, 9500.0))
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0))


def test_the_labels_are_those_of_the_data_frame_and_need_no_pandas(fitted, monkeypatch):
    frame = fitted.to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    heads, *lines = csv.reader(io.StringIO(labels_csv(fitted.fit_, Origin())))
    assert heads == ["id", *frame.columns]
    assert [line[0] for line in lines] == [str(i) for i in range(1, 301)]
    written = np.array(lines, dtype=float)[:, 1:]
    np.testing.assert_array_equal(written, frame.to_numpy(dtype=float))


@pytest.mark.parametrize(("factor", "place"), [(1.0, "inside"), (5.0, "outside")])
def test_known_labels_are_compared_with_the_interval(fitted, factor, place):
    n_true = round(factor * fitted.posterior_.mean * 300)
    origin = Origin(truth=(np.arange(300) < n_true).astype(int))
    words = (
        f"According to the labels in the file, the share is {n_true / 300:.1%}, which is {place} "
        "the interval."
    )
    assert words in answer_text(fitted.fit_, origin)
    compared = json.loads(answer_json(fitted.fit_, origin))["truth"]
    assert compared["inside_interval"] == (place == "inside")


def test_a_comparison_without_an_estimate():
    words = comparison_text(("a.json", "b.json"), (NARROW, GammaPosterior.degenerate()))
    assert words.endswith("They cannot be compared: one of them has no estimate.")


def test_the_probability_of_exceeding_is_that_of_draws():
    n = 1_000_000
    first, second = NARROW.sample(n, 1), TWO_HUMPS.sample(n, 2)
    found = compare_posteriors(NARROW, TWO_HUMPS)
    share = np.mean(second > first)
    error = 4 * np.sqrt(share * (1 - share) / n)
    assert found["prob_b_above_a"] == pytest.approx(share, abs=error)
    assert found["prob_equal"] == pytest.approx(1e-4)
    assert sum(found[f"prob_{k}"] for k in ("b_above_a", "a_above_b", "equal")) == pytest.approx(
        1.0
    )
    none = GammaPosterior.degenerate()
    assert compare_posteriors(none, none)["prob_equal"] == 1.0
    assert compare_posteriors(none, NARROW)["prob_b_above_a"] == pytest.approx(0.99)
    assert compare_posteriors(NARROW, none)["prob_b_above_a"] == 0.0
