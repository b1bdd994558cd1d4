"""Rows whose labels are known, and the rows that are left."""

from __future__ import annotations

import pytest

from gammagmm.inspection.known_rows import KnownRows


def test_rows_outside_a_list_of_one_row():
    known = KnownRows.none().add([2], [1], at_random=False, n_rows=5)
    left = known.rows_outside_lists(5)
    assert left.rows.tolist() == [0, 1, 3, 4]
    assert left.share(0.4) == pytest.approx(0.25)  # 2 anomalies in all, 1 of them in the list
    assert KnownRows.none().rows_outside_lists(5).rows.tolist() == [0, 1, 2, 3, 4]


def test_rows_left_are_those_without_a_label_or_all():
    known = KnownRows.none().add([0, 3], [1, 0], at_random=True, n_rows=5)
    left = known.rows_left(5)
    assert (left.rows.tolist(), left.n_anomalies) == ([1, 2, 4], 1)
    assert left.share(0.6) == pytest.approx(2 / 3)
    assert (left.share(0.0), left.share(1.0)) == (0.0, 1.0)
    every = KnownRows.none().add(range(5), [0, 1, 0, 0, 1], at_random=True, n_rows=5)
    for whole in (KnownRows.none().rows_left(5), every.rows_left(5), every.rows_outside_lists(5)):
        assert whole.rows.tolist() == [0, 1, 2, 3, 4]
        assert (whole.n_anomalies, whole.share(0.3)) == (None, 0.3)
    listed = KnownRows.none().add(range(5), [0, 1, 0, 0, 1], at_random=False, n_rows=5)
    assert listed.rows_outside_lists(5).rows.tolist() == [0, 1, 2, 3, 4]
