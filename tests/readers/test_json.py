"""JSON lines."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm.errors import TableError
from gammagmm.readers.json import read_json_lines
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import Source
from tests.support.raw_columns import columns_of


def test_json_lines(write):
    rows = [
        {"a": 1, "b": "x", "c": True, "big": 2**60 + 1},
        {"b": 2.5, "a": None, "d": None, "big": 1},
        {"b": False, "c": 0.5, "a": float("nan"), "big": 10**400},
        {"b": float("nan"), "big": 2},
    ]
    text = "\n\n".join(map(json.dumps, rows))
    for name in ("t.jsonl", "t.ndjson", "t.jsonl.gz"):
        content = gzip.compress(text.encode()) if name.endswith("gz") else text
        raw = read_raw(write(content, name))
        assert columns_of(raw) == {
            "a": [1.0, None, None, None],
            "b": ["x", "2.5", "false", None],
            "c": [1.0, None, 0.5, None],
            "big": [float(2**60), 1.0, np.inf, 2.0],
            "d": [None] * 4,
        }
        assert raw.place(1) == "line 3"
        assert raw.cells(3)[0] == str(2**60 + 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": [1]}', r"line 2, column 'a': found a nested value\. Write numbers, text"),
        ('{"a": {"b": 1}}', r"line 2, column 'a': found a nested value"),
        ("[1, 2]", r"line 2: expected a JSON object, found '\[1, 2\]'\. Write one"),
        ('{"a": 1', r"line 2: this is not JSON \(Expecting .*\)\. Write one JSON object per line"),
        ('{"a": 1, "a": 2}', r"line 2: this is not JSON \(a key occurs twice in one object\)"),
        ('{"a": ' + "[" * 100_000, r"line 2: this is not JSON"),
        ('{"": 1}', r"t\.jsonl: column 2 has no name"),
        ("\0", r"contains a NUL byte at byte 10, .* Save it as JSONL in UTF-8"),
    ],
)
def test_json_lines_that_are_refused(write, line, message):
    with pytest.raises(TableError, match=message):
        read_raw(write('{"b": 1}\n' + line, "t.jsonl"))


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_floats_survive_json_lines(values):
    text = "\n".join(json.dumps({"a": value}) for value in values)
    raw = read_json_lines(Source("t.jsonl", ".jsonl", text.encode()))
    assert raw.data[0].tobytes() == np.array(values).tobytes()
