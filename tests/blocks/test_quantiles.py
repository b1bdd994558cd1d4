"""Quantiles and ranks over blocks against NumPy's of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gammagmm.blocks.collection import open_blocks
from gammagmm.blocks.quantiles import cut_offs, rank_table
from gammagmm.posterior.decisions import exact_ranks

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
