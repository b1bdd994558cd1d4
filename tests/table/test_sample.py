"""Which rows of a table are held."""

from __future__ import annotations

import numpy as np

from gammagmm.table.sample import Sample


def test_all_rows_of_a_table():
    sample = Sample.whole(5)
    assert (sample.n_rows, sample.n_sampled, sample.n_held) == (5, 5, 5)
    assert sample.is_whole
    rows = np.array([3, 1])
    for mapped in (sample.number(rows), sample.places(rows)):
        assert mapped.tolist() == [3, 1]
    assert sample.not_held(rows).tolist() == []
    assert sample.all_places.tolist() == [0, 1, 2, 3, 4]


def test_numbers_and_places_are_inverse(rng):
    numbers = np.sort(rng.choice(1000, 50, replace=False))
    more = rng.permutation(np.setdiff1d(np.arange(1000), numbers))[:20]
    sample = Sample(1000, 50, numbers).with_more(more[:12]).with_more(more[12:])
    assert (sample.n_rows, sample.n_sampled, sample.n_held) == (1000, 50, 70)
    assert not sample.is_whole
    np.testing.assert_array_equal(sample.number(sample.all_places), np.append(numbers, more))
    places = rng.permutation(70)
    np.testing.assert_array_equal(sample.places(sample.number(places)), places)


def test_rows_that_are_not_held():
    sample = Sample(10, 3, np.array([1, 4, 8])).with_more(np.array([0]))
    assert sample.not_held(np.array([0, 1, 2, 8, 9])).tolist() == [2, 9]
    assert sample.not_held(np.empty(0, np.intp)).tolist() == []


def test_more_rows_leave_the_sample_as_it_was():
    sample = Sample(10, 3, np.array([1, 4, 8]))
    sample.with_more(np.array([0]))
    assert sample.n_held == 3
