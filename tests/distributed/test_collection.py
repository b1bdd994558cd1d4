"""A Dask collection against the same rows in memory, without a cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gammagmm.distributed.collection import (
    in_memory,
    index_of_part,
    is_collection,
    map_rows,
    open_collection,
    sample_numbers,
)
from gammagmm.errors import TableError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

LENGTHS = (4, 0, 1, 6, 2)  # of parts; one is empty
ROWS = np.arange(26.0).reshape(13, 2) ** 1.5


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def collection():
    return open_collection(da.from_array(ROWS, chunks=(LENGTHS, 1)))


def frames(frame):
    """The frame with parts of these lengths."""
    ends = np.cumsum(LENGTHS)
    pieces = [frame[end - n : end] for end, n in zip(ends, LENGTHS, strict=True)]
    return dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame[:0])


def test_only_dask_collections_are_collections():
    assert is_collection(da.zeros(3))
    assert not is_collection(ROWS)
    assert not is_collection(pd.DataFrame(ROWS))


def test_values_on_dask_are_computed_and_others_left():
    assert in_memory(ROWS) is ROWS
    assert in_memory(None) is None
    np.testing.assert_array_equal(in_memory(da.from_array(ROWS, chunks=(5, 2))), ROWS)
    words = pd.Series(list("abc"))
    assert in_memory(dd.from_pandas(words, npartitions=2)).tolist() == list("abc")


def test_the_rows_of_the_parts_are_counted(collection):
    assert (collection.lengths, collection.n_rows) == (LENGTHS, 13)
    assert collection.offsets.tolist() == [0, 4, 4, 5, 11]
    unknown = frames(pd.DataFrame(ROWS, columns=["a", "b"]))
    for X in (unknown, unknown.to_dask_array(), unknown[["b"]]):
        assert open_collection(X).lengths == LENGTHS


@pytest.mark.parametrize("change", [lambda X: X[["c"]], lambda X: X.dropna(subset=["a", "b"])])
def test_parts_that_dask_joins_are_counted_as_they_are_read(change, tmp_path):
    """Dask reads several row groups as one part if few of their columns are needed."""
    frame = pd.DataFrame({name: np.arange(90.0) for name in "abcdefgh"})
    frame.loc[::7, "b"] = np.nan
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=10)
    X = change(dd.read_parquet(tmp_path / "rows.parquet", split_row_groups=True))
    expected, opened = X.compute(), open_collection(X)
    assert opened.n_rows == len(expected)
    numbers = np.arange(0, len(expected), 4)
    taken = opened.take(numbers)
    np.testing.assert_array_equal(taken, expected.iloc[numbers])
    values = map_rows(X, lambda part: part["c"].to_numpy()).compute()
    np.testing.assert_array_equal(values, expected["c"])


@pytest.mark.parametrize("numbers", [[0, 3, 4, 5, 10, 11, 12], [4], [], range(13)])
def test_rows_are_taken_by_their_numbers(collection, numbers):
    numbers = np.array(numbers, dtype=np.intp)
    np.testing.assert_array_equal(collection.take(numbers), ROWS[numbers])
    frame = pd.DataFrame(ROWS, columns=["a", "b"], index=[f"row {i}" for i in range(13)])
    pd.testing.assert_frame_equal(open_collection(frames(frame)).take(numbers), frame.iloc[numbers])


def test_rows_without_names_are_named_by_their_numbers():
    part = pd.DataFrame(ROWS[:4])
    assert index_of_part(part, 7).tolist() == [7, 8, 9, 10]
    assert index_of_part(ROWS[:4], 7).tolist() == [7, 8, 9, 10]
    for index in ([3, 4, 5, 6], [0, 2, 4, 6], list("abcd")):
        assert index_of_part(part.set_axis(index, axis=0), 7).tolist() == index
    named = part.rename_axis(index="key")
    assert index_of_part(named, 7).tolist() == [0, 1, 2, 3]
    assert index_of_part(part[:0], 7).tolist() == []


def test_a_sample_is_uniform_and_in_order():
    assert sample_numbers(5, 5, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
    assert sample_numbers(5, None, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
    rng, counts, n = np.random.default_rng(0), np.zeros(10), 4000
    for _ in range(n):
        found = sample_numbers(10, 3, rng)
        assert len(found) == 3
        assert (np.diff(found) > 0).all()
        counts[found] += 1
    assert (np.abs(counts / n - 0.3) < 4 * np.sqrt(0.3 * 0.7 / n)).all()


def test_the_first_rows_are_those_of_all_parts(collection):
    def score(part, first):
        return -np.abs(np.asarray(part)[:, 0] - ROWS[6, 0])

    expected = np.argsort(np.abs(ROWS[:, 0] - ROWS[6, 0]), kind="stable")
    for n in (1, 5, 13, 20):
        assert collection.first(score, n).tolist() == expected[:n].tolist()

    def tied(part, first):
        return np.zeros(len(part))

    assert collection.first(tied, 5).tolist() == [0, 1, 2, 3, 4]


def test_functions_know_the_first_row_of_their_part(collection):
    def numbered(part, first, shift):
        return pd.DataFrame(
            {"number": first + shift + np.arange(len(part)), "value": np.asarray(part)[:, 1]}
        )

    lazy = collection.frame(numbered, 2)
    frame = lazy.compute()
    assert frame["number"].tolist() == list(range(2, 15))
    assert frame["value"].tolist() == ROWS[:, 1].tolist()
    np.testing.assert_array_equal(lazy["value"].to_dask_array().compute(), ROWS[:, 1])

    def place(part, first):
        return first, len(part)

    assert collection.gather(place) == ((0, 4), (4, 0), (4, 1), (5, 6), (11, 2))


def test_a_collection_knows_itself(collection):
    assert collection.is_of(collection.X)
    frame = frames(pd.DataFrame(ROWS))
    assert open_collection(frame).is_of(open_collection(frame).X)
    assert not collection.is_of(collection.X + 1.0)
    assert not collection.is_of(ROWS)


def test_map_rows_gives_the_values_of_whole_rows():
    X = da.from_array(ROWS, chunks=(LENGTHS, 1))
    total = map_rows(X, lambda rows: 2.0 * rows.sum(axis=1))
    np.testing.assert_allclose(total.compute(), 2.0 * ROWS.sum(axis=1), rtol=1e-15)
    swapped = map_rows(X, lambda rows: rows[:, ::-1], n_columns=2)
    assert swapped.shape == (13, 2)
    np.testing.assert_array_equal(swapped.compute(), ROWS[:, ::-1])
    frame = frames(pd.DataFrame(ROWS, columns=["a", "b"]))
    found = map_rows(frame, lambda part: part["b"].to_numpy())
    np.testing.assert_array_equal(found.compute(), ROWS[:, 1])


def test_an_empty_part_is_no_rows_for_the_function():
    def most(rows):
        return np.full(len(rows), rows.max())  # fails without rows

    found = map_rows(da.from_array(ROWS, chunks=(LENGTHS, 2)), most).compute()
    ends = np.cumsum(LENGTHS)
    parts = [ROWS[end - n : end] for n, end in zip(LENGTHS, ends, strict=True) if n]
    np.testing.assert_array_equal(found, np.concatenate([most(part) for part in parts]))


def frame_of(**columns):
    return dd.from_pandas(pd.DataFrame(columns), npartitions=1)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (da.zeros(5), ValueError, "X must be a table of rows and columns, got a dask Array"),
        (frame_of(a=[1.0, 2.0])["a"], ValueError, "got a dask Series"),
        (dask.delayed(ROWS), ValueError, "got a dask DelayedLeaf"),
        (da.zeros((5, 2), dtype=complex), TypeError, "complex128"),
        (da.zeros((5, 2), dtype="M8[s]"), TypeError, "datetime64"),
        (da.zeros((1, 2)), ValueError, "at least 2 rows and a column, got 1 x 2"),
        (frame_of(a=np.zeros(5))[[]], ValueError, "at least 2 rows and a column, got 5 x 0"),
        (da.ma.masked_equal(da.zeros((4, 2)), 1.0), ValueError, "X is a masked array"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_other_collections_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        open_collection(X)


def test_two_rows_are_enough():
    assert open_collection(da.zeros((2, 1))).n_rows == 2


def parts_that_differ(change):
    """A frame whose second part is changed, which Dask does not know."""
    frame = pd.DataFrame(
        {"a": range(6), "b": [True, False, True] * 2, "c": list("xyzxyz"), "d": [1.5] * 6}
    )

    def read(part, partition_info=None):
        return change(part) if partition_info["number"] == 1 else part

    X = dd.from_pandas(frame, npartitions=2)
    return X.map_partitions(read, meta=X._meta, enforce_metadata=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda part: part.drop(columns="c"), "'c'"),
        (lambda part: part.drop(columns="a"), "'a'"),
        (lambda part: part.assign(e=0), "'e'"),
        (lambda part: part[["a", "c", "b", "d"]], "order"),
        (lambda part: part.assign(c=1.0), "'c' has numbers"),
        (lambda part: part.assign(d="one"), "'d' has text"),
        (lambda part: part.assign(d=pd.Timestamp("2026-03-01")), "'d' has dates"),
    ],
)
def test_a_part_with_other_columns_is_refused_by_its_number_and_column(change, words):
    def number(part, first):
        return first

    with pytest.raises(TableError) as caught:
        open_collection(parts_that_differ(change)).gather(number)
    assert caught.value.what.startswith("Part 2 of X")
    assert words in caught.value.what


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.assign(a=part["a"].astype(float)),
        lambda part: part.assign(b=[True, None, False]),
        lambda part: part.assign(c=pd.Categorical(part["c"])),
        lambda part: part[:0].astype(object),
    ],
)
def test_parts_may_have_numbers_of_other_types_or_no_rows(change):
    def number(part, first):
        return first

    found = open_collection(parts_that_differ(change)).gather(number)
    assert found == (0, 3)
