"""ARFF files."""

from __future__ import annotations

import gzip

import pytest

from gammagmm.errors import TableError
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of

ARFF = """% comment
@RELATION 'a set'
@attribute 'the size' REAL
@attribute "n" integer
@ATTRIBUTE it\\'s numeric
@attribute colour {red, 'dark blue'}

@attribute note string
@DATA
1.5, 2,?, red, 'it\\'s, so'
% another
-1e3,?,4,'dark blue',"?"
'7',1,2 , ?, plain
"""


@pytest.mark.parametrize("name", ["t.arff", "t.arff.gz"])
def test_arff(write, name):
    content = ARFF.encode()
    raw = read_raw(write(gzip.compress(content) if name.endswith("gz") else content, name))
    assert columns_of(raw) == {
        "the size": [1.5, -1000.0, 7.0],
        "n": [2.0, None, 1.0],
        "it\\'s": [None, 4.0, 2.0],
        "colour": ["red", "dark blue", None],
        "note": ["it's, so", "?", "plain"],
    }
    assert [raw.place(row) for row in range(3)] == ["line 10", "line 12", "line 13"]
    assert raw.cells(1) == ["2", None, "1"]


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        ("@attribute a date", "1", r"line 1, column 'a': the type 'date' cannot be read\. Write"),
        ("@attribute a", "1", r"line 1: this attribute has no type\. Write @attribute NAME TYPE"),
        ("@relation r", "1", r"contains no @attribute before its @data\. Write the ARFF header"),
        (
            "@attribute a real",
            "{0 1}",
            r"line 3: sparse ARFF rows cannot be read\. Write out every",
        ),
        (
            "@attribute a real",
            "1,2",
            r"line 3: found 2 cells separated by ',' for 1 attributes\. G",
        ),
        ("@attribute a real", "'1',2", r"line 3: found 2 cells separated by ',' for 1 attributes"),
        ("@attribute a real", "x", r"line 3, column 'a': found 'x', which is not a number\. Corr"),
        ("@attribute a real", "1_0", r"line 3, column 'a': found '1_0', which is not a number"),
        ("@attribute a real", "", r"contains no rows or no columns"),
        ("@attribute a real\n@attribute 'a' real", "1,2", r"column name 'a' occurs 2 times"),
    ],
)
def test_arff_that_is_refused(write, header, row, message):
    with pytest.raises(TableError, match=rf"t\.arff.*{message}"):
        read_raw(write(f"{header}\n@data\n{row}\n", "t.arff"))
