"""Columns of numbers and text, and their missing values."""

from __future__ import annotations

from gammagmm.readers.csv import read_delimited
from gammagmm.readers.source import Source


def test_missing_cells_of_numbers_and_of_text():
    raw = read_delimited(Source("t.csv", ".csv", b"a,b\n1,x\n,\n"))
    assert [raw.is_gap(j).tolist() for j in (0, 1)] == [[False, True]] * 2
