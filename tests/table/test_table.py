"""What is known of rows beyond their numbers: their names and their groups."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Choices, prepare
from gammagmm.table.sample import Sample
from gammagmm.table.table import Groups

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

FRAME = pd.DataFrame({"a": [1.0, 2.0, 4.0, 7.0], "region": ["north", "south", "south", "north"]})


@pytest.fixture
def table():
    """Three rows of a larger table, with the groups of a column."""
    made = prepare(frame_table(FRAME[:3]), Choices(drop=("region",)))
    sample = Sample(10, 3, np.array([0, 1, 2]))
    return replace(made, sample=sample).grouped_by("region")


def more(table):
    return table.preparation.apply(frame_table(FRAME[3:]))


def test_more_rows_have_the_groups_of_the_column(table):
    extended = table.with_more(np.array([7]), more(table))
    assert extended.groups.column == "region"
    assert extended.groups.values.tolist() == FRAME["region"].tolist()
    assert extended.sampled.groups.values.tolist() == FRAME["region"].tolist()[:3]


@pytest.mark.parametrize("copied", [copy.copy, lambda table: pickle.loads(pickle.dumps(table))])
def test_a_copy_has_the_groups_and_cannot_read_those_of_other_rows(table, copied):
    other = copied(table)
    assert (other.groups.values.tolist(), other.groups.column) == (
        table.groups.values.tolist(),
        "region",
    )
    with pytest.raises(ValueError, match="not read from a file"):
        other.with_more(np.array([7]), more(table))
    with pytest.raises(ValueError, match="not read from a file"):
        other.grouped_by("region")


N_ROWS = 367


@pytest.fixture(scope="module")
def model():
    return GammaGMM(["KNN", "LOF", "HBOS"], n_runs=1, random_state=0).fit(load_demo().X)


def test_groups_that_a_user_gives_replace_the_column_too(model):
    by_column = replace(model.fit_.table, groups=Groups(np.array(["a"] * N_ROWS), "region"))
    fit = replace(model.fit_, table=by_column).grouped(np.array(["b"] * N_ROWS))
    assert fit.table.groups.column is None
    assert [share.group for share in fit.group_shares] == ["b"]


@pytest.mark.parametrize(
    ("index", "names"),
    [
        (None, None),
        (range(1, N_ROWS + 1), [*map(str, range(1, N_ROWS + 1))]),
        (pd.date_range("2024-01-01", periods=N_ROWS), None),
    ],
)
def test_rows_are_named_by_their_index_or_a_column_of_ids(index, names, model):
    frame = pd.DataFrame(model.scores_, index=index, columns=list("abc"))
    scored = GammaGMM("precomputed", n_runs=1, random_state=0)
    table = scored.fit(frame).fit_.table
    assert table.ids is None
    if index is None:
        assert (table.given_names, table.row_names[0]) == (None, "1")
    else:
        assert table.row_names == table.given_names == tuple(names or map(str, index))
    named = replace(table, ids=tuple(f"row {i}" for i in range(N_ROWS)))
    assert named.row_names == named.given_names == named.ids
