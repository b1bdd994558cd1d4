"""Quantiles and ranks over blocks against NumPy's of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gammagmm.blocks import quantiles
from gammagmm.blocks.collection import open_blocks
from gammagmm.blocks.quantiles import count_above, count_beyond, cut_offs, rank_table
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.posterior.decisions import exact_ranks
from gammagmm.posterior.groups import Sighting

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def same(rows):
    """The values of a block are the block."""
    return rows


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.0 + 2**-52, 5e-324, -5e-324]),
    st.floats(-1e150, 1e150),
    st.integers(-3, 3).map(float),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_cut_offs_are_numpys_to_the_bit(data):
    n_rows = data.draw(st.integers(2, 30))
    values = data.draw(arrays(np.float64, (n_rows, 2), elements=NUMBERS))
    size = data.draw(st.integers(1, n_rows))
    gamma = data.draw(st.one_of(st.sampled_from([0.0, 0.5, 1.0, 1 / n_rows]), st.floats(0, 1)))
    blocks = open_blocks(da.from_array(values, chunks=(size, 2)))
    expected = np.percentile(values, 100.0 * (1.0 - gamma), axis=0)
    np.testing.assert_array_equal(cut_offs(blocks, same, gamma), expected)


def test_many_rows_and_ties(rng):
    values = np.round(rng.normal(size=(5000, 2)), 2)
    blocks = open_blocks(da.from_array(values, chunks=(700, 2)))
    for gamma in (0.0, 0.01, 0.0731, 0.5, 1.0):
        expected = np.percentile(values, 100.0 * (1.0 - gamma), axis=0)
        np.testing.assert_array_equal(cut_offs(blocks, same, gamma), expected)


def shares(training, scores):
    return (training[None, :] >= scores[:, None]).mean(axis=1)


def test_ranks_are_exact_where_every_value_is_an_edge(rng):
    values = np.round(rng.normal(size=(800, 1)), 1)
    asked = np.concatenate([values[:50, 0], rng.normal(size=50), [-99.0, 99.0]])
    blocks = open_blocks(da.from_array(values, chunks=(300, 1)))
    table = rank_table(blocks, same, values[:, 0])
    assert table.error == 0.0
    np.testing.assert_array_equal(table.shares_at_least(asked), shares(values[:, 0], asked))
    exact = exact_ranks(values[:, 0])
    np.testing.assert_array_equal(exact.shares_at_least(asked), shares(values[:, 0], asked))


def test_ranks_between_edges_are_too_small_by_the_error_at_most(rng):
    values = rng.normal(size=(2000, 1))
    blocks = open_blocks(da.from_array(values, chunks=(300, 1)))
    table = rank_table(blocks, same, values[:40, 0])
    asked = rng.normal(size=500)
    gap = shares(values[:, 0], asked) - table.shares_at_least(asked)
    assert 0.0 < gap.max() <= table.error < 0.2
    assert gap.min() >= 0.0


def test_every_share_is_interpolated_as_numpy_does_it(rng):
    values = rng.normal(size=(23, 3)) * [1.0, 1e6, 1e-6]
    blocks = open_blocks(da.from_array(values, chunks=(10, 3)))
    for gamma in np.linspace(0.03, 0.97, 9):
        expected = np.percentile(values, 100.0 * (1.0 - gamma), axis=0)
        np.testing.assert_array_equal(cut_offs(blocks, same, gamma), expected)


def test_slices_of_a_block_add_up(rng, monkeypatch):
    values = np.round(rng.normal(size=(50, 2)), 1)
    blocks = open_blocks(da.from_array(values, chunks=(30, 2)))
    expected = rank_table(blocks, same, values[:9, 0])
    monkeypatch.setattr(quantiles, "SLICE_ROWS", 7)
    np.testing.assert_array_equal(cut_offs(blocks, same, 0.3), np.percentile(values, 70.0, axis=0))
    for threshold in (-0.5, 0.0, values[3, 0]):
        assert count_above(values, same, threshold) == (values[:, 0] > threshold).sum() > 0
    table = rank_table(blocks, same, values[:9, 0])
    np.testing.assert_array_equal(table.n_at_least, expected.n_at_least)
    # The rows between two edges, without those at the lower one.
    edges = np.unique(values[:9, 0])
    gaps = zip([-np.inf, *edges], [*edges, np.inf], strict=True)
    between = [((values[:, 0] > low) & (values[:, 0] < high)).sum() for low, high in gaps]
    assert table.error == expected.error == max(between) / 50


def test_the_rows_beyond_a_valley_are_counted(rng, monkeypatch):
    scores = np.exp(rng.normal(size=(40, 3)))
    scaler = fit_scaler(scores)
    sighting = Sighting((0, 2), np.array([0.5, 1.0]), 0.9)
    Z = scaler.transform(scores)
    expected = ((Z[:, 0] > 0.5) | (Z[:, 2] > 1.0)).sum()
    assert 0 < expected < 40
    monkeypatch.setattr(quantiles, "SLICE_ROWS", 9)
    assert count_beyond(scores, scaler, sighting) == expected


def test_edges_are_chosen_evenly_where_there_are_many(rng, monkeypatch):
    monkeypatch.setattr(quantiles, "MAX_EDGES", 5)
    values = rng.permutation(np.arange(101.0))[:, None]
    blocks = open_blocks(da.from_array(values, chunks=(40, 1)))
    table = rank_table(blocks, same, values[:, 0])
    assert table.edges.tolist() == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert table.n_at_least.tolist() == [101, 76, 51, 26, 1]
    assert table.error == 24 / 101
    five = rank_table(blocks, same, values[:5, 0])
    assert five.edges.tolist() == sorted(values[:5, 0])


def test_the_middle_of_two_values_is_numpys_to_the_bit(rng):
    values = rng.normal(size=(2, 200)) * 10.0 ** rng.integers(-8, 8, size=(2, 200))
    blocks = open_blocks(da.from_array(values, chunks=(1, 200)))
    lower, upper = np.sort(values, axis=0)
    assert (lower + 0.5 * (upper - lower) != upper - 0.5 * (upper - lower)).any()
    np.testing.assert_array_equal(cut_offs(blocks, same, 0.5), np.percentile(values, 50.0, axis=0))
