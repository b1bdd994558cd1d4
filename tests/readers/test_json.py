"""JSON lines."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gammagmm.errors import Note, TableError
from gammagmm.readers import source as sources
from gammagmm.readers.json import read_json_lines
from gammagmm.readers.raw_table import NumberForm
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import Source
from gammagmm.table.preparation import Choices, prepare
from tests.support.raw_columns import columns_of


def test_json_lines(write):
    rows = [
        {"a": 1, "b": "x", "c": True, "big": 2**60 + 1},
        {"b": 2.5, "a": None, "d": None, "big": 1},
        {"b": False, "c": 0.5, "a": float("nan"), "big": -(10**400)},
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
            "big": [float(2**60), 1.0, -np.inf, 2.0],
            "d": [None] * 4,
        }
        assert raw.place(1) == "line 3"
        assert raw.cells(3)[0] == str(2**60 + 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
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


ROWS = [{"a": 1, "b": "x", "c": "1.185,43"}, {"c": "2,5", "a": None}, {"a": True, "b": "-"}]
FORMS = {
    "a list of objects": json.dumps(ROWS, indent=1),
    "an object of lists": json.dumps({n: [row.get(n) for row in ROWS] for n in "abc"}),
    "an object of objects": json.dumps(
        {n: {str(i): row[n] for i, row in enumerate(ROWS) if n in row} for n in "abc"}
    ),
    "an object a line": "\n".join(map(json.dumps, ROWS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_json_of_every_form(write, form):
    raw = read_raw(write(FORMS[form], "t.json"))
    assert columns_of(raw) == {
        "a": [1.0, None, 1.0],
        "b": ["x", None, None],
        "c": [1185.43, 2.5, None],
    }
    assert raw.place(1) == ("line 2" if form == "an object a line" else "row 2")
    assert raw.notes[0] == Note.of("tables.missing words", "b", words="'-'", n_cells=1)
    assert (raw.notes[1].code, raw.notes[1].subject) == ("tables.numbers", "c")
    assert raw.form(2) == NumberForm(",")


def test_one_object_is_one_row(write):
    assert columns_of(read_raw(write('{"a": 1, "b": "x"}', "t.json"))) == {"a": [1.0], "b": ["x"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", r"t\.json contains no table\. Write a list of objects, an object of lists"),
        ("[]", r"t\.json contains no table"),
        ("3", r"t\.json contains no table"),
        ('[{"a": 1}', r"t\.json is not JSON \(Expecting .*\)\. Write a list of objects"),
        ('{"a": [1, 2], "b": [1]}', r"column 'a' has 2 values, but column 'b' has 1\. Give every"),
        ('{"a": 1}\n{"a": 2', r"t\.json, line 2: this is not JSON"),
        ('[{"a": 1, "a": 2}]', r"is not JSON \(a key occurs twice in one object\)"),
        ("[" * 100_000, r"t\.json is not JSON"),
        ('{"a": []}', r"t\.json contains no rows or no columns"),
    ],
)
def test_json_that_is_refused(write, text, message):
    with pytest.raises(TableError, match=message):
        read_raw(write(text, "t.json"))


def test_many_names_of_rows_and_columns(write, monkeypatch):
    """Columns that share no row are as wide as they are long."""
    monkeypatch.setattr(sources, "MAX_FREE_BYTES", 1_000_000)
    text = json.dumps({str(i): {str(i): 1} for i in range(2_000)})
    monkeypatch.setattr(sources, "MAX_EXPANSION", 100)
    with pytest.raises(TableError, match=r"t\.json expands to more than 100 times its size"):
        read_raw(write(text, "t.json"))


CUSTOMERS = {"u": {"age": 30, "spent": 2.5}, "v": {"age": 40}, "w": {"age": 50, "spent": 7}}
SAID = "the {} keys, such as 'u', are the names of the rows, in the column 'index'"


@pytest.mark.parametrize("are_rows_inside", [False, True])
def test_rows_that_have_names(write, are_rows_inside):
    columns = {n: {k: row[n] for k, row in CUSTOMERS.items() if n in row} for n in ("age", "spent")}
    raw = read_raw(write(json.dumps(columns if are_rows_inside else CUSTOMERS), "t.json"))
    assert columns_of(raw) == {
        "index": ["u", "v", "w"],
        "age": [30.0, 40.0, 50.0],
        "spent": [2.5, None, 7.0],
    }
    [note] = raw.notes
    assert note.message == SAID.format("inner" if are_rows_inside else "outer")


@pytest.mark.parametrize("first", [0, 1])
def test_rows_that_have_numbers(write, first):
    rows = {str(i + first): {"index": i, "a": 2.5 * i, "b": 7, "c": i % 2} for i in range(3)}
    raw = read_raw(write(json.dumps(rows), "t.json"))
    assert raw.columns == ("index", "a", "b", "c")
    assert raw.data[1].tolist() == [0.0, 2.5, 5.0]
    [note] = raw.notes
    assert note.message == f"the outer keys, such as '{first}', are the numbers of the rows"
    columns = {name: {key: row[name] for key, row in rows.items()} for name in ("a", "b")}
    raw = read_raw(write(json.dumps(columns), "u.json"))
    assert (raw.columns, raw.n_rows, raw.notes) == (("a", "b"), 3, ())


def test_the_column_of_row_names_does_not_replace_another(write):
    raw = read_raw(write('{"u": {"index": 1}, "v": {"index": 2}}', "t.json"))
    assert columns_of(raw) == {"index_": ["u", "v"], "index": [1.0, 2.0]}


NESTED = {
    "t.jsonl": '{"a": 1, "b": 1}\n\n{"a": [1], "b": 2}',
    "rows.json": '[{"a": 1, "b": 1}, {"a": {}, "b": 2}]',
    "columns.json": '{"a": [1, {}], "b": [1, 2]}',
    "names.json": '{"u": {"a": 1, "b": 1}, "v": {"a": [], "b": 2}, "w": {"b": 3}}',
}


@pytest.mark.parametrize("name", NESTED)
def test_columns_with_nested_values_are_refused_if_they_are_used(write, name):
    raw = read_raw(write(NESTED[name], name))
    prepared = prepare(raw, Choices(drop=("a",), categories="encode"))
    assert prepared.values[:2, -1].tolist() == [1.0, 2.0]
    place = "line 3" if name == "t.jsonl" else "row 2"
    with pytest.raises(TableError, match=rf"{name}, {place}, column 'a': found a nested value\. W"):
        prepare(raw, Choices(categories="encode"))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([0.05, 0.1, "3 %"], ["0.05", "0.1", "3 %"]),
        ([5.5, "True", 16.5], ["5.5", "True", "16.5"]),
        ([1, "True", 0, None], [1.0, 1.0, 0.0, None]),
        ([True, "false"], [1.0, 0.0]),
        (["4 %", None, "3 %"], [4.0, None, 3.0]),
        ([2.5, "1,5 €"], [2.5, 1.5]),
    ],
)
def test_texts_beside_numbers(write, cells, values):
    raw = read_raw(write(json.dumps({"a": cells}), "t.json"))
    assert columns_of(raw) == {"a": values}
