"""Parquet, Feather and Arrow streams, written by PyArrow."""

from __future__ import annotations

import datetime
import decimal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from gammagmm.errors import MissingExtraError, TableError
from gammagmm.readers.joined_table import join_raw
from gammagmm.readers.registry import read_raw
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Choices, prepare
from tests.support.raw_columns import columns_of


def write_parquet(table, path):
    pyarrow.parquet.write_table(table, path)


def write_feather(table, path):
    pyarrow.feather.write_feather(table, path)


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


ARROW = {".parquet": write_parquet, ".feather": write_feather, ".arrow": write_stream}


@pytest.mark.parametrize("suffix", ARROW)
def test_arrow_columns(tmp_path, suffix):
    table = pa.table(
        {
            "whole": pa.array([2**60 + 1, None, 3], pa.int64()),
            "real": pa.array([0.1, float("nan"), float("inf")], pa.float64()),
            "small": pa.array([0.5, 1.5, None], pa.float32()),
            "truth": pa.array([True, False, None]),
            "money": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("3.50")]),
            "text": pa.array(["a", None, "1"]),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "code": pa.array([1, 2, 1]).dictionary_encode(),
            "empty": pa.nulls(3),
            "no text": pa.nulls(3, pa.string()),
        }
    )
    ARROW[suffix](table, tmp_path / f"table{suffix}")
    raw = read_raw(tmp_path / f"table{suffix}")
    assert columns_of(raw) == {
        "whole": [float(2**60), None, 3.0],
        "real": [0.1, None, np.inf],
        "small": [0.5, 1.5, None],
        "truth": [1.0, 0.0, None],
        "money": [1.25, None, 3.5],
        "text": ["a", None, "1"],
        "kind": ["x", "y", "x"],
        "code": [1.0, 2.0, 1.0],
        "empty": [None] * 3,
        "no text": [None] * 3,
    }
    texts = {
        name for name, column in zip(raw.columns, raw.data, strict=True) if column.dtype == object
    }
    assert texts == {"text", "kind"}  # a column without any text is one of missing numbers
    assert raw.cells(0) == [str(2**60 + 1), None, "3"]
    assert raw.cells(1) == ["0.1", None, "inf"]
    assert raw.cells(3) == ["1", "0", None]
    assert raw.cells(5) == ["a", None, "1"]
    assert raw.place(1) == "row 2"


DAY, MOMENT = datetime.date(2020, 2, 29), datetime.datetime(1969, 12, 31, 23, 59, 59)
TIMES = {
    "date32": (pa.array([DAY, None]), "2020-02-29"),
    "date64": (pa.array([DAY, None], pa.date64()), "2020-02-29"),
    "categories": (pa.array([DAY, None]).dictionary_encode(), "2020-02-29"),
    "seconds": (pa.array([MOMENT, None], pa.timestamp("s")), "1969-12-31T23:59:59"),
    "nanoseconds": (pa.array([10**9 + 1, None], pa.timestamp("ns")), "1970-01-01T00:00:01"),
    "microseconds": (pa.array([1, None], pa.timestamp("us")), "1970-01-01T00:00:00.000001"),
    "zone": (pa.array([0, None], pa.timestamp("ms", "Europe/Berlin")), "1970-01-01T00:00:00"),
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("suffix", ARROW)
def test_dates_are_text(tmp_path, suffix, kind):
    column, text = TIMES[kind]
    ARROW[suffix](pa.table({"when": column, "a": [1, 2]}), tmp_path / f"t{suffix}")
    raw = read_raw(tmp_path / f"t{suffix}")
    assert columns_of(raw) == {"when": [text, None], "a": [1.0, 2.0]}
    assert raw.cells(0) == [text, None]


REFUSED = {
    "time64": pa.array([datetime.time(12)]),
    "duration": pa.array([datetime.timedelta(1)]),
    "list": pa.array([[1, 2]]),
    "struct": pa.array([{"a": 1}]),
    "binary": pa.array([b"a"]),
}


@pytest.mark.parametrize("suffix", ARROW)
@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_are_neither_numbers_nor_text_are_refused_if_they_are_used(
    tmp_path, suffix, kind
):
    table = pa.table({"when": pa.concat_arrays([REFUSED[kind]] * 2), "a": [1, 2], "b": [3, 1]})
    ARROW[suffix](table, tmp_path / f"t{suffix}")
    raw = read_raw(tmp_path / f"t{suffix}")
    message = rf"t\{suffix}, column 'when': the type {kind}.* cannot be read\. Write the column as"
    assert prepare(raw, Choices(drop=("when",))).values.tolist() == [[1.0, 3.0], [2.0, 1.0]]
    for choices in (Choices(), Choices(id="when"), Choices(truth="when")):
        with pytest.raises(TableError, match=message):
            prepare(raw, choices)
    twice = join_raw([raw, raw])
    assert prepare(twice, Choices(drop=("when",))).values.shape == (4, 2)
    with pytest.raises(TableError, match=message):
        prepare(twice, Choices())


@pytest.mark.parametrize("suffix", ARROW)
def test_numbers_that_are_stored_as_text_are_the_same_in_files_and_frames(tmp_path, suffix):
    texts = {
        "numbers": (["1.50", None, " 2e3"], [1.5, None, 2000.0]),
        "gaps": (["1", "", "n/a"], [1.0, None, None]),
        "codes": (["007", "8", "9"], ["007", "8", "9"]),
        "commas": (["1,5", "2,5", "3"], [1.5, 2.5, 3.0]),
        "units": (["12 kg", "13 kg", "9 kg"], [12.0, 13.0, 9.0]),
        "money": (["$5.00", "($1,250.50)", "-"], [5.0, -1250.5, None]),
        "words": (["1", "two", None], ["1", "two", None]),
    }
    table = pa.table({name: cells for name, (cells, _) in texts.items()})
    ARROW[suffix](table, tmp_path / f"t{suffix}")
    for raw in (read_raw(tmp_path / f"t{suffix}"), frame_table(table)):
        assert columns_of(raw) == {name: values for name, (_, values) in texts.items()}
        assert [raw.cells(j) for j in range(len(texts))] == [c for c, _ in texts.values()]


@pytest.mark.parametrize("suffix", ARROW)
@pytest.mark.parametrize("content", [b"PAR1 is not enough", b"ARROW1\0\0"])
def test_damaged_arrow_files(write, suffix, content):
    with pytest.raises(TableError, match=rf"t\{suffix} cannot be read: .*\. Write it again as"):
        read_raw(write(content, f"t{suffix}"))


@pytest.mark.parametrize("suffix", ARROW)
def test_arrow_files_without_rows_or_with_a_name_twice(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    ARROW[suffix](pa.table({"a": pa.array([], pa.int64())}), path)
    with pytest.raises(
        TableError, match=r"contains no rows or no columns\. Give a file that has both"
    ):
        read_raw(path)
    if suffix == ".arrow":
        ARROW[suffix](pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]), path)
        with pytest.raises(TableError, match=r"t\.arrow: column name 'a' occurs 2 times"):
            read_raw(path)


@pytest.mark.parametrize("suffix", ARROW)
def test_without_pyarrow(write, monkeypatch, suffix):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = rf"t\{suffix} needs PyArrow, which is not installed\. Run: pip install 'gammagmm\[da"
    with pytest.raises(MissingExtraError, match=message):
        read_raw(write(b"PAR1", f"t{suffix}"))
