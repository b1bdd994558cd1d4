"""Counts of rows above the threshold by period and group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from gammagmm.errors import HistoryError
from gammagmm.monitoring.counts import Count, Period, count_periods, row_digests

ROWS = row_digests(np.arange(6.0)[:, None])
BEYOND = np.array([1, 0, 1, 0, 0, 1])


def test_the_interval_is_that_of_clopper_and_pearson():
    for n, k in ((500, 20), (7, 0), (7, 7)):
        expected = binomtest(k, n).proportion_ci(0.9, "exact")
        assert Count(n, k).interval() == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_periods_are_sorted_and_count_their_rows_and_groups():
    periods, groups = ["b", "a", "b", "a", "a", "c"], [2, 1, 1, 1, 2, 10]
    found = count_periods(BEYOND, ROWS, periods, groups, "unused")
    assert [period.name for period in found] == ["a", "b", "c"]
    assert [period.count for period in found] == [Count(3, 0), Count(2, 2), Count(1, 1)]
    assert [period.groups for period in found] == [
        {"1": Count(2, 0), "2": Count(1, 0)},
        {"1": Count(1, 1), "2": Count(1, 1)},
        {"10": Count(1, 1)},
    ]


def test_filled_values_are_added_up_in_each_period():
    filled = np.array([0, 1, 2, 0, 0, 3])
    found = count_periods(BEYOND, ROWS, list("babaac"), None, "", n_filled=filled)
    assert [period.n_filled for period in found] == [1, 2, 3]
    assert count_periods(BEYOND, ROWS, None, None, "")[0].n_filled == 0


def test_without_periods_and_groups_all_rows_are_one_period():
    (period,) = count_periods(BEYOND, ROWS, None, None, "today")
    assert (period.name, period.count, period.groups) == ("today", Count(6, 3), {})


def test_times_are_sorted_as_times_and_numbers_as_numbers():
    days = np.array(["2026-03-02", "2026-03-01"] * 3, dtype="datetime64[D]")
    found = count_periods(BEYOND, ROWS, days, None, "")
    assert [period.name for period in found] == ["2026-03-01", "2026-03-02"]
    found = count_periods(BEYOND, ROWS, [10, 9, 10, 9, 9, 9], None, "")
    assert [period.name for period in found] == ["9", "10"]


def test_an_empty_group_has_a_name_because_the_empty_name_means_all_rows():
    (period,) = count_periods(BEYOND, ROWS, None, ["", "a", "", "a", "a", "a"], "today")
    assert period.groups == {"(missing)": Count(2, 2), "a": Count(4, 1)}
    with pytest.raises(ValueError, match="a group has no name"):
        Period("today", Count(1, 1), {"": Count(1, 1)})


def test_the_digest_depends_on_the_rows_and_on_periods_that_are_given():
    first = count_periods(BEYOND, ROWS, None, None, "a")[0].digest
    assert first == count_periods(1 - BEYOND, ROWS.copy(), None, list("abcabc"), "b")[0].digest
    assert first != count_periods(BEYOND, ROWS + 1.0, None, None, "a")[0].digest
    monday = count_periods(BEYOND, ROWS, ["monday"] * 6, None, "")[0].digest
    assert monday == count_periods(BEYOND, ROWS, ["monday"] * 6, ["a"] * 6, "")[0].digest
    assert monday != count_periods(BEYOND, ROWS, ["tuesday"] * 6, None, "")[0].digest


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "b", "b", "b", "b"],
        ["a", np.nan, "b", "b", "b", "b"],
        [1, None, 2, 2, 2, 2],
        np.array([1.0, np.nan, 2.0, 2.0, 2.0, 2.0]),
        np.array(["2026-03-01", "NaT"] + ["2026-03-02"] * 4, dtype="datetime64[D]"),
        pd.Series([1, None, 2, 2, 2, 2], dtype="Int64"),
        pd.Series(["a", None, "b", "b", "b", "b"], dtype="category"),
        pd.to_datetime(pd.Series(["2026-03-01", None] + ["2026-03-02"] * 4)),
        ["a", "", "b", "b", "b", "b"],
    ],
)
def test_missing_periods_are_refused_and_missing_groups_have_a_name(labels):
    with pytest.raises(ValueError, match="must not have missing values; 1 of 6 are missing"):
        count_periods(BEYOND, ROWS, labels, None, "")
    (period,) = count_periods(BEYOND, ROWS, None, labels, "today")
    assert [count.n_rows for count in period.groups.values()] == [1, 1, 4]
    assert period.groups["(missing)"] == Count(1, 0)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (pd.Series([10, 9, 10, 9, 9, 9], dtype="Int64"), ["9", "10"]),
        (np.array([10, 9.5, 10, 9.5, 9.5, 9.5], dtype=object), ["9.5", "10"]),
        (pd.Categorical(list("cabbab"), categories=list("cbda"), ordered=True), ["c", "b", "a"]),
        (pd.Series(pd.Categorical([1, "1"] * 3, categories=[1, "1"], ordered=True)), ["1"]),
        (["10", "9"] * 3, ["10", "9"]),
    ],
)
def test_numbers_and_ordered_categories_keep_their_order(labels, names):
    found = count_periods(BEYOND, ROWS, labels, None, "")
    assert [period.name for period in found] == names
    expected = pd.Series(BEYOND).groupby([str(label) for label in labels]).agg(["size", "sum"])
    assert [period.count for period in found] == [
        Count(*map(int, expected.loc[name])) for name in names
    ]


def test_labels_of_another_length_and_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="periods must have one value for each of 6 rows"):
        count_periods(BEYOND, ROWS, ["a"], None, "")
    with pytest.raises(ValueError, match="groups must have one value for each of 6 rows"):
        count_periods(BEYOND, ROWS, None, ["a"] * 7, "")
    with pytest.raises(ValueError, match="4 of 3 rows cannot lie above the threshold"):
        Count(3, 4)
    with pytest.raises(ValueError, match="the groups have more rows than the period"):
        Period("today", Count(3, 1), {"a": Count(2, 1), "b": Count(2, 0)})


def test_equal_rows_have_equal_digests_and_others_have_not(rng):
    rows = rng.normal(size=(5000, 4))
    digests = row_digests(rows)
    assert len(np.unique(digests)) == 5000
    np.testing.assert_array_equal(row_digests(rows[::-1])[::-1], digests)
    np.testing.assert_array_equal(row_digests(np.asfortranarray(rows)), digests)
    parts = [row_digests(rows[:7]), row_digests(rows[7:])]
    np.testing.assert_array_equal(np.concatenate(parts), digests)
    assert (row_digests(rows[:, ::-1]) != digests).all()
    assert (row_digests(np.nextafter(rows, 9.0)) != digests).all()
    assert row_digests(np.array([[0.0, 1.0]])) == row_digests(np.array([[-0.0, 1.0]]))
    assert row_digests(np.empty((0, 4))).shape == (0,)


def test_digests_of_whole_numbers_differ():
    """Their bits end in many zeros."""
    grid = np.stack(np.meshgrid(np.arange(100.0), np.arange(100.0)), axis=-1).reshape(-1, 2)
    assert len(np.unique(row_digests(grid))) == 10_000


def test_more_rows_than_a_history_can_have_are_a_typed_error():
    with pytest.raises(HistoryError, match="at most 10,000,000,000 rows"):
        Count(10**12, 1)
