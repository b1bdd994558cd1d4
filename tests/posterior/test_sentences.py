from dataclasses import replace

import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm.labels.labelled_rows import Precision
from gammagmm.posterior.assumptions import Assumption
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.sentences import (
    evidence_lines,
    known_sentence,
    more_sentence,
    precision_sentence,
    rows_sentence,
    sentence,
    separate_rows_sentence,
)
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.posterior.track_record import Level, TrackRecord


def posterior(*parts, prob_zero=0.01):
    return GammaPosterior(prob_zero, BetaMixture(*np.array(parts).T))


NARROW = posterior((0.99, 500.0, 9500.0))
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0))
NONE = GammaPosterior.degenerate()
RECORD = TrackRecord(200, (Level(0.9, 0.445, 0.035),), 0.1312, 0.935)


def separate(share):
    return SeparateRows(None, round(2000 * share), share, 0.8, ("KNN", "LOF", "COPOD"))


def evidence(means=(0.04, 0.08), rests_on="assumptions", **changes):
    others = tuple(Assumption(("p0",), 0.1, 0.01, 0.15, 0.25, mean) for mean in means)
    return replace(Evidence(None, others, rests_on, RECORD, Constraints()), **changes)


def test_the_estimate_is_one_sentence_whatever_its_shape():
    low, high = NARROW.interval()
    assert sentence(NARROW) == (
        f"About 5.0% of the rows are anomalies (90% interval {low:.1%} to {high:.1%})."
    )
    assert "hump" not in sentence(TWO_HUMPS)


def test_no_estimate_does_not_mean_clean_data():
    found = sentence(NONE)
    assert found.startswith("There is no estimate: ")
    assert found.endswith("This does not mean that the data are clean.")


def test_rows_flagged():
    assert rows_sentence(0, 50) == "None of 50 rows is flagged."
    assert rows_sentence(1, 50) == "1 of 50 rows is flagged."
    assert rows_sentence(1200, 45_000) == "1,200 of 45,000 rows are flagged."


def test_labelled_rows_are_counted_with_the_estimate_before_them():
    low, high = NARROW.interval()
    assert known_sentence(1200, 1, NARROW) == (
        "This estimate uses 1,200 labelled rows (1 anomaly). Without labels, it was 5.0% "
        f"({low:.1%} to {high:.1%})."
    )
    assert known_sentence(1, 0, NONE) == (
        "This estimate uses 1 labelled row (0 anomalies). Without labels, there was no estimate."
    )


def test_three_lines_tell_what_the_estimate_rests_on():
    assert evidence_lines(NARROW, evidence(), 8) == [
        "No rows are separate from the rest.",
        "The estimate rests on assumptions: other values of p0, p_high and high_gamma give 4.0% to "
        "8.0%. On 200 labelled tables, 44% of the 90% intervals of default fits contained the true "
        "share.",
        "Next: set p0, p_high and high_gamma to what you know, and label 30 rows (gammagmm "
        "label; in Python: suggest, update). With 30 labels, 94% of the intervals on 200 tables "
        "contained the true share; their mean width was 13 percentage points.",
    ]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (
            0.2,
            "; the estimate excludes some of them, because p_high = 1.0% makes a share of 15.0% or "
            "more unlikely.",
        ),
        (0.1, "; the estimate excludes some of them."),
        (0.05, "; their share lies inside the interval."),
        (0.01, "; the estimate also includes rows that are not separate."),
    ],
)
def test_the_group_is_compared_with_the_estimate(share, words):
    found = separate_rows_sentence(NARROW, evidence(separate_rows=separate(share)), 8)
    rows = f"{round(2000 * share):,} rows ({share:.1%})"
    assert found == f"{rows} are separate from the rest in 3 of 8 detectors{words}"


@pytest.mark.parametrize(("is_cluster", "words"), [(True, "close together"), (False, "far from")])
def test_a_group_is_called_a_cluster_if_it_is_one(is_cluster, words):
    plain = separate(0.2)
    known = replace(plain, is_cluster=is_cluster)
    without = separate_rows_sentence(NARROW, evidence(separate_rows=plain), 8)
    found = separate_rows_sentence(NARROW, evidence(separate_rows=known), 8)
    assert words in found
    assert words not in without
    assert found.split(";")[1] == without.split(";")[1]


def test_a_group_is_what_to_look_at_next():
    *_, last = evidence_lines(NARROW, evidence(separate_rows=separate(0.2)), 8)
    assert last.startswith("Next: look at these 400 rows, and label 30 rows (gammagmm label")


def test_equal_ends_are_told_once():
    _, basis, _ = evidence_lines(NARROW, evidence((0.04001, 0.04002)), 8)
    assert "give 4.0%. On" in basis


def test_answers_that_agree():
    _, basis, last = evidence_lines(NARROW, evidence((0.048, 0.051), "data"), 8)
    assert basis.startswith(
        "The estimate rests on the data: other values of p0, p_high and high_gamma give nearly the "
        "same (4.8% to 5.1%)."
    )
    assert last.startswith("Next: label 30 rows")


def test_without_an_estimate():
    assert separate_rows_sentence(NONE, evidence(separate_rows=separate(0.1)), 8) == (
        "200 rows (10.0%) are separate from the rest in 3 of 8 detectors."
    )
    _, basis, _ = evidence_lines(NONE, evidence((np.nan, 0.06)), 8)
    assert basis.startswith("The result rests on assumptions: other values of p0, p_high and ")
    assert "give 6.0%, or no estimate." in basis
    assert "labelled tables" not in basis  # there is no interval
    _, basis, _ = evidence_lines(NONE, evidence((np.nan, np.nan)), 8)
    assert "give no estimate either." in basis


def test_one_detector_cannot_tell():
    assert separate_rows_sentence(NARROW, evidence(), 1) == (
        "A single detector cannot show whether rows are separate from the rest."
    )


def test_with_labels_the_assumptions_are_no_reason():
    labelled = replace(NARROW, n_labels=30)
    assert separate_rows_sentence(labelled, evidence(separate_rows=separate(0.2)), 8).endswith(
        "; the estimate excludes some of them."
    )


def test_the_rows_of_a_sample_name_their_table():
    assert rows_sentence(3, 200) == rows_sentence(3, 200, 200)
    for n_flagged in (0, 1, 3):
        assert "200 sampled rows (of 5,000)" in rows_sentence(n_flagged, 200, 5000)


def test_a_share_at_the_end_of_the_interval_lies_inside():
    low, high = NARROW.interval()
    for share in (low, high):
        told = separate_rows_sentence(NARROW, evidence(separate_rows=separate(share)), 8)
        assert told.endswith("their share lies inside the interval.")


def test_two_detectors_can_show_a_group():
    assert separate_rows_sentence(NARROW, evidence(), 2) == "No rows are separate from the rest."


@pytest.mark.parametrize(
    ("n_more", "n_left", "told"),
    [
        (0, 0, "Every row has a label."),
        (1, 1, "Next: label the last row to know the share."),
        (5, 5, "Next: label the other 5 rows to know the share."),
        (6, 5, "Next: label the other 5 rows to know the share."),
        (4, 5, "Next: about 4 more labels would make this interval half as wide."),
        (1, 5, "Next: about 1 more label would make this interval half as wide."),
        (0, 5, "The interval has no width, although 5 rows have no label."),
    ],
)
def test_how_many_more_labels_are_needed(n_more, n_left, told):
    assert more_sentence(n_more, n_left) == told


def test_all_flagged_rows_with_labels_need_no_interval():
    found = Precision(10, 10, 1, 0.1, 0.1, 0.1)
    words = "1 of the 10 labelled rows among the flagged rows is an anomaly"
    assert precision_sentence(found) == f"{words}."
    some = precision_sentence(Precision(40, 10, 1, 0.1, 0.025, 0.375))
    assert some.startswith(f"{words}: 2.5% to 37.5% of all 40")
