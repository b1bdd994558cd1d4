"""Parquet files on Dask: the rows with gaps that are left out, by the reading of the sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gammagmm.cli.options import Reading
from gammagmm.cli.request import read_rows

pytest.importorskip("dask.dataframe")
from gammagmm.cli import large
from gammagmm.cli.large_parts import prepare_part

N_ROWS = 120


@pytest.fixture
def reading(tmp_path):
    """Function that writes three parts of a table and gives what reads them without gaps."""

    def reading(frame, **options):
        path = tmp_path / "rows.parquet"
        frame.to_parquet(path, row_group_size=40)
        return Reading(paths=[str(path)], missing="drop", **options)

    return reading


@pytest.fixture
def frame():
    """A column of numbers with gaps, and a column of texts that are numbers or "NA"."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 2)), columns=["a", "b"])
    frame["text"] = rng.normal(size=N_ROWS).astype(str)
    frame.loc[[5, 60], "b"] = np.nan
    frame.loc[[3, 60, 100], "text"] = ["NA", "n/a", "NA"]
    return frame


def read(reading):
    return large.read_sample(reading, None, 0, [])


def test_marks_of_gaps_in_texts_are_gaps(frame, reading):
    asked = reading(frame)
    there, here = read(asked), read_rows(asked)
    assert there.sample.n_rows == there.sample.n_sampled == len(there) == N_ROWS - 4
    assert there.values.tolist() == here.values.tolist()


def test_a_sample_of_them(frame, reading, monkeypatch):
    monkeypatch.setattr(large, "MAX_ROWS", 50)
    table = read(reading(frame))
    assert (table.sample.n_rows, len(table), len(table.sample.numbers)) == (N_ROWS - 4, 50, 50)
    kept = frame.drop(index=[3, 5, 60, 100])
    assert table.values[:, 1].tolist() == kept["b"].iloc[table.sample.numbers].tolist()


def test_marks_in_a_column_of_words_are_words(frame, reading):
    """ "NA" is a word beside words, also in a part that has no other words."""
    frame["text"] = ["NA"] * 40 + ["north"] * 40 + ["1.5"] * 40
    asked = reading(frame, categories="encode")
    table = read(asked)
    assert table.sample.n_rows == len(table) == N_ROWS - 2
    assert table.values.tolist() == read_rows(asked).values.tolist()
    part = prepare_part(frame[:40], np.arange(40), table.preparation, "rows.parquet")
    assert part.values.tolist() == table.values[:39].tolist()


def test_a_column_that_another_sample_reads_as_numbers(frame, reading, monkeypatch):
    """The word decides how the column is read only while its row is in the sample."""
    frame["text"] = frame["text"].where(frame.index != 5, "word")  # this row has a gap in b
    table = read(reading(frame, categories="encode"))
    assert table.sample.n_rows == len(table) == N_ROWS - 4
    assert table.columns == ("a", "b", "text")
