"""Rows in blocks against the same rows in memory, without a cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from gammagmm.blocks import collection
from gammagmm.blocks.collection import is_blocks, map_rows, open_blocks

from gammagmm.errors import TableError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

LENGTHS = (4, 0, 1, 6, 2)  # of blocks; one is empty
ROWS = np.arange(26.0).reshape(13, 2) ** 1.5


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def blocks():
    return open_blocks(da.from_array(ROWS, chunks=(LENGTHS, 1)))


def plus(rows, shift, own=0.0):
    return rows[:, :1] + shift + own


def test_only_dask_collections_are_blocks():
    assert is_blocks(da.zeros(3))
    assert not is_blocks(ROWS)
    assert not is_blocks(pd.DataFrame(ROWS))


def test_the_rows_are_those_of_the_array_without_empty_blocks(blocks):
    assert blocks.lengths == (4, 1, 6, 2)
    assert (blocks.n_rows, blocks.n_columns, blocks.sources) == (13, 2, None)
    assert blocks.offsets.tolist() == [0, 4, 5, 11, 13]
    np.testing.assert_array_equal(blocks.array().compute(), ROWS)


def test_rows_come_in_the_order_asked_for(blocks):
    rows = np.array([12, 0, 4, 5, 10, 11, 3, 4])
    np.testing.assert_array_equal(blocks.take(rows), ROWS[rows])
    np.testing.assert_array_equal(blocks.take(np.array([4])), ROWS[[4]])


def test_a_function_of_each_block_has_its_own_argument(blocks):
    own = [0.0, 100.0, 200.0, 300.0]
    mapped = blocks.map(plus, 1.0, each=own, n_columns=1)
    expected = ROWS[:, :1] + 1.0 + np.repeat(own, blocks.lengths)[:, None]
    np.testing.assert_array_equal(mapped.array().compute(), expected)
    assert (mapped.n_columns, mapped.lengths) == (1, blocks.lengths)
    assert blocks.map(np.negative).n_columns == 2
    lazy = blocks.lazily(plus, 2.0, n_columns=1)
    np.testing.assert_array_equal(lazy.array().compute(), ROWS[:, :1] + 2.0)


@pytest.mark.parametrize("fan_in", [2, 3, 8])
def test_sums_over_blocks_count_every_block_once(blocks, fan_in, monkeypatch):
    monkeypatch.setattr(collection, "FAN_IN", fan_in)
    total = blocks.summarise(lambda rows, factor: factor * rows.sum(axis=0), 3.0)
    np.testing.assert_allclose(total, 3.0 * ROWS.sum(axis=0), rtol=1e-14)
    one = open_blocks(da.from_array(ROWS, chunks=(13, 2)))
    assert one.summarise(len) == 13


def test_frames_know_the_first_row_of_their_block(blocks):
    def numbered(source, first, rows):
        assert source is None
        return pd.DataFrame({"number": first + np.arange(len(rows)), "value": rows[:, 1]})

    frame = blocks.frame(numbered).compute()
    assert frame["number"].tolist() == list(range(13))
    assert frame["value"].tolist() == ROWS[:, 1].tolist()


def test_the_index_of_a_frame_stays_with_its_rows():
    def indexed(source, first, rows):
        return pd.DataFrame({"value": rows[:, 0]}, index=None if source is None else source.index)

    frame = pd.DataFrame(ROWS, columns=["a", "b"], index=[f"row {i}" for i in range(13)])
    blocks = open_blocks(dd.from_pandas(frame, npartitions=3, sort=False))
    found = blocks.frame(indexed).compute()
    assert dict(found["value"]) == dict(frame["a"])
    plain = open_blocks(dd.from_pandas(frame.reset_index(drop=True), npartitions=3))
    assert plain.sources is None
    named = frame.reset_index(drop=True).rename_axis("number")
    assert len(open_blocks(dd.from_pandas(named, npartitions=3)).sources) == 3


def test_map_rows_needs_whole_rows():
    X = da.from_array(ROWS, chunks=(LENGTHS, 1))
    total = map_rows(X, lambda rows, factor: factor * rows.sum(axis=1), 2.0)
    np.testing.assert_allclose(total.compute(), 2.0 * ROWS.sum(axis=1), rtol=1e-15)
    swapped = map_rows(X, lambda rows: rows[:, ::-1], n_columns=2)
    assert swapped.shape == (13, 2)
    np.testing.assert_array_equal(swapped.compute(), ROWS[:, ::-1])
    frame = dd.from_pandas(pd.DataFrame(ROWS), npartitions=2)
    np.testing.assert_array_equal(map_rows(frame, lambda rows: rows[:, 1]).compute(), ROWS[:, 1])


def test_rows_of_missing_values_get_no_answer():
    bad = ROWS.copy()
    bad[[2, 9], [1, 0]] = np.nan, np.inf
    lazy = map_rows(da.from_array(bad, chunks=(13, 2)), lambda rows: rows[:, 0])
    with pytest.raises(ValueError, match="has 2 values that are missing or not finite"):
        lazy.compute()


def test_the_first_value_that_is_not_finite_is_named_by_its_row_and_column():
    bad = ROWS.copy()
    bad[7, 1] = bad[9, 0] = bad[12, 1] = np.nan
    what = "X has 3 values that are missing or not finite, the first in row 7, column 1"
    with pytest.raises(TableError, match=what):
        open_blocks(da.from_array(bad, chunks=(LENGTHS, 2)))
    frame = pd.DataFrame(bad, columns=["a", "b"])
    with pytest.raises(TableError, match=r"3 values .* row 7, column 'b'"):
        open_blocks(dd.from_pandas(frame, npartitions=4))


def frame_of(**columns):
    return dd.from_pandas(pd.DataFrame(columns), npartitions=1)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (da.zeros(5), ValueError, "X must be a table of rows and columns, got a dask Array"),
        (frame_of(a=[1.0, 2.0])["a"], ValueError, "got a dask Series"),
        (frame_of(a=[1.0], b=["x"], c=["y"]), TableError, "these columns do not: b, c"),
        (frame_of(a=[1.0, 2.0], b=[1j, 2j]), TableError, "these columns do not: b"),
        (da.zeros((5, 2), dtype=complex), TypeError, "X must hold real numbers, got the type comp"),
        (da.zeros((1, 2)), ValueError, "at least 2 rows and a column, got 1 x 2"),
        (da.ma.masked_equal(da.zeros((4, 2)), 1.0), ValueError, "X is a masked array"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_other_collections_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        open_blocks(X)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.float32])
def test_numbers_of_every_kind_are_rows(kind):
    values = (ROWS > 5.0).astype(kind)
    found = open_blocks(da.from_array(values, chunks=(5, 2))).array().compute()
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, ROWS > 5.0)


def test_two_rows_are_enough_and_a_column_is_needed():
    assert open_blocks(da.zeros((2, 1))).n_rows == 2
    with pytest.raises(ValueError, match="at least 2 rows and a column, got 5 x 0"):
        open_blocks(frame_of(a=np.zeros(5))[[]])


def test_an_empty_block_is_no_rows_for_the_function():
    def most(rows):
        return np.full(len(rows), rows.max())  # fails without rows

    found = map_rows(da.from_array(ROWS, chunks=(LENGTHS, 2)), most).compute()
    ends = np.cumsum(LENGTHS)
    blocks = [ROWS[end - length : end] for length, end in zip(LENGTHS, ends, strict=True) if length]
    np.testing.assert_array_equal(found, np.concatenate([most(block) for block in blocks]))


def test_a_frame_asks_its_function_for_no_other_rows(blocks):
    seen = []

    def frame_of_rows(source, first, rows):
        seen.extend(rows.tolist())
        return pd.DataFrame(rows, columns=["a", "b"])

    found = blocks.frame(frame_of_rows)
    assert list(found.columns) == ["a", "b"]
    assert seen == []
    np.testing.assert_array_equal(found.compute(), ROWS)
    assert sorted(seen) == ROWS.tolist()
