"""Parts of large files: the places of problems, gaps that are dropped, fits of arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.monitor import score_part
from gammagmm.cli.new_rows import prepare_new_rows, prepare_part
from gammagmm.cli.output import part_frame
from gammagmm.cli.predict import Found, find_in_part
from gammagmm.errors import TableError
from gammagmm.table.frames import frame_table

NAMES = ["width", "height", "depth", "mass"]


@pytest.fixture(scope="module")
def fit(fitted, data):
    """A fit of a frame that drops rows with gaps."""
    model = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0)
    found = model.fit(pd.DataFrame(data.X, columns=NAMES)).fit_
    table = replace(found.table, preparation=replace(found.preparation, missing="drop"))
    return replace(found, table=table)


def test_problems_name_the_row_of_the_file(fit, data):
    part = pd.DataFrame(data.X[:20], columns=NAMES)
    part.loc[3, "depth"] = np.inf
    with pytest.raises(TableError) as caught:
        prepare_part(part, 1000, fit.preparation, "rows.parquet")
    [problem] = caught.value.problems
    assert (problem.column, problem.code) == ("depth", "infinite")
    assert problem.what.endswith("in row 1004")


def test_a_part_without_a_complete_row_is_empty(fit, data):
    whole = pd.DataFrame(data.X[:20], columns=NAMES)
    part = whole.assign(depth=np.nan)
    shared = fit.preparation, "rows.parquet", fit.answering, fit.usual_values()
    assert find_in_part(part, 0, *shared, 5, False) == Found(0, 0, [])
    counted, cells = score_part(part, 0, *shared[:2], fit.answering.scores_and_digests, ["mass"])
    assert (counted.scores.shape, counted.digests.shape, cells) == ((0,), (0,), [[]])
    empty, full = (part_frame(each, 0, *shared, fit.detector_names) for each in (part, whole))
    assert (len(empty), len(full)) == (0, 20)
    assert empty.dtypes.tolist() == full.dtypes.tolist()


@pytest.mark.parametrize("strict", [True, False])
def test_a_fit_of_an_array_finds_the_columns_of_every_part_by_their_order(strict, data):
    model = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0, strict=strict).fit(data.X)
    files = pd.DataFrame(data.X + 0.1, columns=NAMES)
    first = prepare_new_rows(model.fit_, frame_table(files[:0]), n_least=0)
    assert [note.code for note in first.notes] == ["tables.by order"]
    prepared = prepare_part(files[:20], 0, first.preparation, "rows.parquet")
    assert prepared.columns == tuple(NAMES)
    np.testing.assert_array_equal(prepared.values, data.X[:20] + 0.1)
    assert prepared.row_names == tuple(str(n) for n in range(1, 21))
