"""Rows whose labels are known, and the rows that are left."""

from __future__ import annotations

import numpy as np
import pytest

from gammagmm.labels.known_rows import KnownRows
from gammagmm.table.sample import Sample


def test_rows_outside_a_list_of_one_row():
    known = KnownRows.none().add([2], [1], at_random=False, n_rows=5)
    left = known.rows_outside_lists(Sample.whole(5))
    assert left.rows.tolist() == [0, 1, 3, 4]
    assert left.share(0.4) == pytest.approx(0.25)  # 2 anomalies in all, 1 of them in the list
    assert KnownRows.none().rows_outside_lists(Sample.whole(5)).rows.tolist() == [0, 1, 2, 3, 4]


def test_rows_left_are_those_without_a_label_or_all():
    known = KnownRows.none().add([0, 3], [1, 0], at_random=True, n_rows=5)
    left = known.rows_left(Sample.whole(5))
    assert (left.rows.tolist(), left.n_anomalies) == ([1, 2, 4], 1)
    assert left.share(0.6) == pytest.approx(2 / 3)
    assert (left.share(0.0), left.share(1.0)) == (0.0, 1.0)
    every = KnownRows.none().add(range(5), [0, 1, 0, 0, 1], at_random=True, n_rows=5)
    for whole in (
        KnownRows.none().rows_left(Sample.whole(5)),
        every.rows_left(Sample.whole(5)),
        every.rows_outside_lists(Sample.whole(5)),
    ):
        assert whole.rows.tolist() == [0, 1, 2, 3, 4]
        assert (whole.n_anomalies, whole.share(0.3)) == (None, 0.3)
    listed = KnownRows.none().add(range(5), [0, 1, 0, 0, 1], at_random=False, n_rows=5)
    assert listed.rows_outside_lists(Sample.whole(5)).rows.tolist() == [0, 1, 2, 3, 4]


@pytest.fixture
def sample():
    """Rows 0, 2, 5 and 9 of 12 as a sample, and row 7."""
    return Sample(12, 4, np.array([0, 2, 5, 9, 7]))


def test_known_rows_have_the_numbers_of_the_table(sample):
    known = KnownRows.none().add([4, 3, 0], [1, 0, 1], at_random=True, n_rows=5)
    numbered = known.numbered(sample)
    assert numbered.rows.tolist() == [0, 7, 9]
    assert numbered.labels.tolist() == [1, 1, 0]


def test_the_rows_left_of_a_sample_stand_for_those_of_the_table(sample):
    known = KnownRows.none().add([4, 1], [1, 1], at_random=True, n_rows=5)
    left = known.rows_left(sample)
    assert left.rows.tolist() == [0, 2, 3]  # of the sample
    assert (left.n_rows, left.n_left, left.n_anomalies) == (12, 10, 2)
    assert left.share(0.5) == pytest.approx((6 - 2) / 10)
    scores = np.array([0.3, 9.0, 0.1, 0.2, 8.0])
    # Each of the 3 rows stands for 10 / 3; both known anomalies come before them.
    expected = [(2 - 0.5 + 10 / 3 * n) / 12 for n in (1, 2, 3)]
    found = left.ranks(scores).shares_at_least(np.array([0.3, 0.2, 0.1]))
    np.testing.assert_allclose(found, expected)


def test_a_list_outside_the_sample_counts_in_the_table(sample):
    known = KnownRows.none().add([4], [1], at_random=False, n_rows=5)
    left = known.rows_outside_lists(sample)
    assert left.rows.tolist() == [0, 1, 2, 3]
    assert (left.n_left, left.n_anomalies) == (11, 1)
    assert KnownRows.none().rows_left(sample).share(0.3) == 0.3
    every = KnownRows.none().add(range(4), [0, 1, 0, 0], at_random=True, n_rows=5)
    assert every.rows_left(sample).rows.tolist() == [0, 1, 2, 3]
    assert every.rows_left(sample).n_anomalies is None


def test_a_corrected_row_of_a_search_is_no_random_row():
    known = KnownRows.none().add([3, 5], [1, 1], at_random=True, picked=True, n_rows=9)
    corrected = known.add([3, 3], [0, 0], at_random=True, n_rows=9)
    assert corrected.labels.tolist() == [0, 1]
    assert corrected.picked.tolist() == [True, True]
    assert known.corrected(corrected).tolist() == [3]
    # A row that is drawn at random and has the same label is one of the random rows.
    assert known.add([3], [1], at_random=True, n_rows=9).at_random.tolist() == [True, False]
    # A list has precedence, and random rows stay what they are.
    assert known.add([3], [0], at_random=False, n_rows=9).listed.tolist() == [True, False]
    drawn = KnownRows.none().add([3], [1], at_random=True, n_rows=9)
    assert drawn.add([3], [0], at_random=True, n_rows=9).at_random.tolist() == [True]


def test_a_row_of_a_sample_is_named_by_its_number_in_the_table():
    sample = Sample(1000, 2, np.array([40, 700]))
    with pytest.raises(ValueError, match="Row 700 has both labels"):
        KnownRows.none().add([1, 1], [0, 1], at_random=True, n_rows=2, sample=sample)
