import re
from dataclasses import replace

import numpy as np
import pytest

from gammagmm import GammaPosterior
from gammagmm.posterior.assumptions import Assumption
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.evidence import Evidence
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.sentences import (
    below_half_sentence,
    flagged_sentence,
    model_lines,
    reference_sentence,
    rows_sentence,
    sentence,
    separate_words,
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


def evidence(means=(0.04, 0.08), n_unsolved=0, separate_rows=None):
    others = tuple(Assumption(("p0",), 0.1, 0.01, 0.15, 0.25, mean) for mean in means)
    return Evidence(separate_rows, others, 10, n_unsolved, RECORD, Constraints())


def shares(text):
    """The percentages in a text."""
    return [float(share) for share in re.findall(r"([\d.]+)%", text)]


def lines(posterior, *, n_rows=2000, **changes):
    flagged = rows_sentence(3, n_rows), ""
    told = model_lines(posterior, evidence(**changes), 8, n_rows, flagged)
    assert list(told) == ["share", "cut", "model", "next"]
    return [" ".join(filter(None, line.values())) for line in told.values()]


def test_the_model_has_a_range_and_an_answer_with_labels_an_interval():
    low, high = (round(100 * end, 1) for end in NARROW.interval())
    labelled = replace(NARROW, is_model=False)
    for posterior, name in ((NARROW, "model range"), (labelled, "90% interval")):
        assert name in sentence(posterior)
        assert [share for share in shares(sentence(posterior)) if share != 90] == [5.0, low, high]
    assert "interval" not in sentence(NARROW)


def test_no_value_does_not_mean_clean_rows():
    assert shares(sentence(NONE)) == []
    assert "does not mean" in sentence(NONE)


def test_rows_flagged():
    assert [rows_sentence(n, 50).split()[3:] for n in (0, 1, 2)] == [
        ["rows", verb, "flagged."] for verb in ("are", "is", "are")
    ]
    assert rows_sentence(1200, 45_000).startswith("1,200 of 45,000 ")
    assert rows_sentence(3, 200) == rows_sentence(3, 200, 200)
    assert "200 sampled rows (of 5,000)" in rows_sentence(3, 200, 5000)


@pytest.mark.parametrize("reason", ["no labels", "ties", "label error"])
def test_flagged_rows_that_differ_from_the_sum_are_explained(reason):
    assert flagged_sentence(21, 21.9, reason) == ""
    assert flagged_sentence(21, 20.1, reason) == ""
    assert "adds up to 1,034: " in flagged_sentence(21, 1034.4, reason)
    words = {
        "no labels": "not the estimate",
        "ties": "equal scores",
        "label error": "may be wrong",
    }
    assert {key for key in words if words[key] in flagged_sentence(21, 32.0, reason)} == {reason}


def test_four_lines_tell_what_is_known_without_labels():
    not_known, cut, value, following = lines(NARROW)
    reference = [round(100 * end, 1) for end in GammaPosterior.reference().interval()]
    assert shares(not_known) == shares(reference_sentence(RECORD)) == reference
    assert "200 public tables" in not_known
    assert "3 of 2,000 rows" in cut
    low, high = (round(100 * end, 1) for end in NARROW.interval())
    assert shares(value) == [5.0, low, high, 44.0, 4.0, 8.0]
    assert shares(following) == [94.0]
    assert "30 rows" in following
    assert "13 percentage points" in following
    for line in (not_known, cut, value):
        assert "90% interval" not in line


def test_the_lines_need_no_symbol_of_the_paper():
    for posterior in (NARROW, NONE):
        told = " ".join(lines(posterior, n_unsolved=9, separate_rows=separate(0.2)))
        assert not re.search(r"p0|p_high|gamma(?!gmm)|γ|posterior|prior", told)


@pytest.mark.parametrize(("share", "place"), [(0.2, "above"), (0.05, "inside"), (0.01, "below")])
def test_the_group_is_compared_with_the_range(share, place):
    found = separate_words(NARROW, separate(share), 8)
    assert found.startswith(f"{round(2000 * share):,} rows ")
    assert "3 of 8 detectors" in found
    assert shares(found) == [100 * share]
    assert found.endswith(f"{place} the model range)")
    *_, following = lines(NARROW, separate_rows=separate(share))
    assert found in following
    assert "range" not in separate_words(NONE, separate(share), 8)
    labelled = replace(NARROW, is_model=False)
    assert separate_words(labelled, separate(share), 8).endswith(f"{place} the 90% interval)")


@pytest.mark.parametrize(("n_rows", "looks_at_all"), [(30, True), (31, False)])
def test_nobody_is_asked_to_look_at_many_separate_rows(n_rows, looks_at_all):
    *_, following = lines(NARROW, separate_rows=separate(n_rows / 2000))
    assert ("some of" not in following) is looks_at_all


@pytest.mark.parametrize(("is_cluster", "words"), [(True, "close together"), (False, "far from")])
def test_a_group_is_called_a_cluster_if_it_is_one(is_cluster, words):
    plain = separate(0.2)
    assert words in separate_words(NARROW, replace(plain, is_cluster=is_cluster), 8)
    assert words not in separate_words(NARROW, plain, 8)


def test_a_share_at_the_end_of_the_range_lies_inside():
    for share in NARROW.interval():
        assert "inside the" in separate_words(NARROW, separate(share), 8)


def test_starts_are_told_if_most_had_no_solution():
    assert "5 of 10 starts" not in lines(NARROW, n_unsolved=5)[2]
    assert "6 of 10 starts" in lines(NARROW, n_unsolved=6)[2]


def test_other_settings_are_told_once_where_they_give_the_same():
    *_, low, high = shares(lines(NARROW, means=(0.04, 0.05))[2])
    assert (low, high) == (4.0, 5.0)
    assert shares(lines(NARROW, means=(0.04001, 0.04002))[2])[3:] == [44.0, 4.0]
    assert "there is none" in lines(NARROW, means=(0.04, np.nan))[2]


def test_without_an_estimate_there_is_no_record_of_it():
    value = lines(NONE, means=(np.nan, 0.06), n_unsolved=10)[2]
    assert shares(value) == [6.0]
    assert shares(lines(NONE, means=(np.nan, np.nan), n_unsolved=10)[2]) == []


def test_no_more_rows_are_to_be_labelled_than_there_are():
    assert "all 30 rows" in lines(NARROW, n_rows=30)[3]
    assert " at 30 rows" in lines(NARROW, n_rows=31)[3]


def test_rows_of_a_file_are_labelled_by_the_command_and_others_in_python():
    for command in ("gammagmm label rows.csv --id key", ""):
        flagged = rows_sentence(3, 2000), ""
        how = model_lines(NARROW, evidence(), 8, 2000, flagged, command)["next"]["how"]
        assert command in how
        assert ("label()" in how) == (not command)


@pytest.mark.parametrize(("n_below", "counts"), [(0, []), (3, ["50", "3", "12"]), (12, ["50"])])
def test_flagged_rows_that_are_probably_normal_are_counted(n_below, counts):
    assert re.findall(r"\d+", below_half_sentence(n_below, 12)) == counts
