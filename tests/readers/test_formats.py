"""Files of every format other than CSV, written by the libraries that people write them with."""

from __future__ import annotations

import datetime
import decimal
import gzip
import io
import json
import struct
import sys
import tracemalloc
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gammagmm.errors import MissingExtraError, TableError
from gammagmm.readers.json_lines import read_json_lines
from gammagmm.readers.registry import read_raw, read_table
from gammagmm.readers.source import Source

N_BOMB_BYTES = 110_000_000


@pytest.fixture
def write(tmp_path):
    def write_file(content, name):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def columns_of(raw):
    """Columns by name, NaN as None."""
    cells = [[None if c != c else c for c in column.tolist()] for column in raw.data]
    return dict(zip(raw.columns, cells, strict=True))


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


REFUSED = {
    "date32": pa.array([datetime.date(2020, 1, 1)]),
    "timestamp": pa.array([datetime.datetime(2020, 1, 1)]),
    "time64": pa.array([datetime.time(12)]),
    "duration": pa.array([datetime.timedelta(1)]),
    "list": pa.array([[1, 2]]),
    "struct": pa.array([{"a": 1}]),
    "binary": pa.array([b"a"]),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_arrow_types_that_are_neither_numbers_nor_text(tmp_path, kind):
    write_parquet(pa.table({"a": [1], "when": REFUSED[kind]}), tmp_path / "t.parquet")
    message = rf"t\.parquet, column 'when': the type {kind}.* cannot be read\. Write the column as"
    with pytest.raises(TableError, match=message):
        read_raw(tmp_path / "t.parquet")


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
        TableError, match=r"holds no rows or no columns\. Give a file that has some"
    ):
        read_raw(path)
    if suffix == ".arrow":
        ARROW[suffix](pa.Table.from_arrays([pa.array([1])] * 2, ["a", "a"]), path)
        with pytest.raises(TableError, match=r"t\.arrow: column name 'a' stands 2 times"):
            read_raw(path)


@pytest.mark.parametrize("suffix", ARROW)
def test_without_pyarrow(write, monkeypatch, suffix):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = rf"t\{suffix} needs pyarrow to be read: pip install 'gammagmm\[data\]'\."
    with pytest.raises(MissingExtraError, match=message):
        read_raw(write(b"PAR1", f"t{suffix}"))


def test_a_parquet_bomb(tmp_path):
    path = tmp_path / "bomb.parquet"
    column = pa.array(np.zeros(10**6, dtype=np.int8))
    write_parquet(pa.table({f"x{j}": column for j in range(15)}), path)
    assert path.stat().st_size < 120_000
    with pytest.raises(TableError, match=r"bomb\.parquet expands more than 1000-fold"):
        read_raw(path)


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
        ("@attribute a relational", "1", r"the type 'relational' cannot be read"),
        ("@attribute a", "1", r"line 1: this attribute has no type\. Write @attribute NAME TYPE"),
        ("@relation r", "1", r"holds no @attribute before its @data\. Write the ARFF header"),
        ("@attribute a real", "{0 1}", r"line 3: sparse ARFF rows cannot be read\. Write every"),
        (
            "@attribute a real",
            "1,2",
            r"line 3: found 2 cells separated by ',' for 1 attributes\. G",
        ),
        ("@attribute a real", "'1',2", r"line 3: found 2 cells separated by ',' for 1 attributes"),
        ("@attribute a real", "x", r"line 3, column 'a': found 'x', which is not a number\. Corr"),
        ("@attribute a real", "1_0", r"line 3, column 'a': found '1_0', which is not a number"),
        ("@attribute a real", "", r"holds no rows or no columns"),
        ("@attribute a real\n@attribute 'a' real", "1,2", r"column name 'a' stands 2 times"),
    ],
)
def test_arff_that_is_refused(write, header, row, message):
    with pytest.raises(TableError, match=rf"t\.arff.*{message}"):
        read_raw(write(f"{header}\n@data\n{row}\n", "t.arff"))


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
        ("[1, 2]", r"line 2: found '\[1, 2\]'\. Write one JSON object a line"),
        ('{"a": 1', r"line 2: this is no JSON \(Expecting .*\)\. Write one object a line"),
        ('{"a": 1, "a": 2}', r"line 2: this is no JSON \(a key stands twice in one object\)"),
        ('{"a": ' + "[" * 100_000, r"line 2: this is no JSON"),
        ('{"": 1}', r"t\.jsonl: column 2 has no name"),
        ("\0", r"holds a NUL byte at byte 10, .* Save it as JSONL in UTF-8"),
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


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, np.uint8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, kind, order):
    values = np.array([[1, 0, 1], [0, 1, 1]], dtype=kind, order=order)
    np.save(tmp_path / "t.npy", values)
    table = read_table(tmp_path / "t.npy")
    assert table.columns == ("x1", "x2", "x3")
    np.testing.assert_array_equal(table.values, values.astype(float))


def test_a_vector_is_one_column(tmp_path):
    np.save(tmp_path / "t.npy", np.array([2**60 + 1, 5]))
    raw = read_raw(tmp_path / "t.npy")
    assert columns_of(raw) == {"x1": [float(2**60), 5.0]}
    assert raw.cells(0) == [str(2**60 + 1), "5"]
    np.save(tmp_path / "t.npy", np.array([1.5, np.nan, np.inf, 1e300, -0.0, 7.0]))
    assert read_raw(tmp_path / "t.npy").cells(0) == ["1.5", None, "inf", "1e+300", "0", "7"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.array([[1, "a"]], dtype=object),
            r"holds Python objects, which are never unpickled\. W",
        ),
        (np.zeros((2, 2, 2)), r"has the type float64 and the shape \(2, 2, 2\)\. Write numbers of"),
        (np.float64(3), r"has the type float64 and the shape \(\)"),
        (np.zeros((2, 2), dtype=complex), r"has the type complex128"),
        (np.array([["a"]]), r"has the type <U1"),
        (np.array([["2020"]], dtype="M8[D]"), r"has the type datetime64"),
        (np.zeros(2, dtype=[("a", float)]), r"has the type \[\('a', '<f8'\)\]"),
        (np.zeros((0, 3)), r"holds no rows or no columns"),
        (np.zeros((3, 0)), r"holds no rows or no columns"),
    ],
)
def test_npy_that_is_refused(tmp_path, array, message):
    np.save(tmp_path / "t.npy", array)
    with pytest.raises(TableError, match=rf"t\.npy {message}"):
        read_raw(tmp_path / "t.npy")


def npy_header(shape, kind="<f8"):
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


@pytest.mark.parametrize("content", [b"", b"abc", b"\x93NUMPY\x01\x00\x10\x00{'descr'", b"x" * 99])
def test_damaged_npy(write, content):
    with pytest.raises(TableError, match=r"t\.npy (is empty|cannot be read: .*numpy\.save)"):
        read_raw(write(content, "t.npy"))


@pytest.mark.parametrize("shape", [(10**6, 10**6), (-1, 3), (3, 10)])
def test_a_shape_that_the_bytes_do_not_fill(write, shape):
    declared = npy_header(shape) + bytes(64)
    message = r"declares the shape \(.*\), which is -?\d+ bytes, but has \d+ bytes\. Write the file"
    with pytest.raises(TableError, match=message):
        read_raw(write(declared, "t.npy"))
    with zipfile.ZipFile(write(b"", "t.npz"), "w") as archive:
        archive.writestr("X.npy", declared)
        path = archive.filename
    with pytest.raises(TableError, match=rf"t\.npz, array 'X', {message}"):
        read_raw(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    arrays = {
        "y": np.array([0, 1]),
        "name": np.array(["u", "v"]),
        "code": np.array([b"p", b"q"]),
        "X": np.array([[1.0, 2.0], [3.0, np.nan]]),
        "other": np.zeros((3, 3)),
        "version": np.array(3),
        "long": np.arange(5),
    }
    save(tmp_path / "t.npz", **arrays)
    raw = read_raw(tmp_path / "t.npz")
    assert columns_of(raw) == {
        "x1": [1.0, 3.0],
        "x2": [2.0, None],
        "y": [0.0, 1.0],
        "name": ["u", "v"],
        "code": ["p", "q"],
    }
    assert raw.cells(3) == ["u", "v"]


def test_the_only_matrix_of_an_npz(tmp_path):
    np.savez(tmp_path / "t.npz", table=np.ones((2, 2)), y=np.arange(2))
    assert columns_of(read_raw(tmp_path / "t.npz"))["y"] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": np.ones((2, 2)), "b": np.ones((2, 2))},
            r"holds 2 arrays of two .*'a' \(2, 2\), .*X",
        ),
        (
            {"a": np.ones(2)},
            r"holds 0 arrays of two dimensions and none named X: 'a' \(2,\)\. Name",
        ),
        ({}, r"holds 0 arrays of two dimensions and none named X: no array\. Name the table X"),
        ({"X": np.ones((2, 2)), "x2": np.ones(2)}, r"column name 'x2' stands 2 times"),
        ({"X": np.ones((2, 2)), "o": np.array([{}, 1])}, r"array 'o', holds Python objects, which"),
        ({"X": np.ones((2, 2)), "t": np.zeros(2, "M8[D]")}, r"array 't', has the type datetime64"),
        (
            {"X": np.ones((2, 2)), "s": np.array([b"\xff", b"a"])},
            r"array 's', cannot be read: .*as",
        ),
        ({"X": np.array([["a"]])}, r"array 'X' has the type <U1 and the shape \(1, 1\)\. Write"),
    ],
)
def test_npz_that_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=rf"t\.npz.*{message}"):
        read_raw(tmp_path / "t.npz")


def test_damaged_npz(write, tmp_path):
    with pytest.raises(TableError, match=r"t\.npz cannot be read: .*\. Write it with numpy\.savez"):
        read_raw(write(b"no zip at all", "t.npz"))
    np.savez_compressed(tmp_path / "t.npz", X=np.arange(999.0).reshape(333, 3))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[100:120] = bytes(20)
    with pytest.raises(TableError, match=r"t\.npz cannot be read"):
        read_raw(write(bytes(content), "t.npz"))


def test_an_npz_bomb(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("X.npy", npy_header((N_BOMB_BYTES // 8, 1)) + bytes(N_BOMB_BYTES))
    tracemalloc.start()
    with pytest.raises(TableError, match=r"bomb\.npz expands more than 1000-fold, to over 100 MB"):
        read_raw(path)
    # Nothing is unpacked: the sizes are declared.
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8  # of the gigabytes that were declared


@pytest.mark.parametrize("version", ["4", "5", "packed"])
def test_mat(tmp_path, version):
    arrays = {
        "small": np.ones((2, 1)),
        "big": np.arange(6.0).reshape(3, 2),
        "y": np.array([0, 1, 0]),
    }
    options = {"format": version} if version != "packed" else {"do_compression": True}
    scipy.io.savemat(tmp_path / "t.mat", arrays, **options)
    raw = read_raw(tmp_path / "t.mat")
    assert columns_of(raw) == {"x1": [0.0, 2.0, 4.0], "x2": [1.0, 3.0, 5.0], "y": [0.0, 1.0, 0.0]}
    assert raw.place(0) == "row 1"


def test_mat_prefers_x_and_takes_numbers_only(tmp_path):
    arrays = {
        "X": np.array([[1, 2], [3, 4]], dtype=np.uint8),
        "big": np.ones((9, 9)),
        "cells": np.array([["a", 1.0]], dtype=object),
        "meta": {"author": "me"},
        "y": np.ones((2, 2)),
    }
    scipy.io.savemat(tmp_path / "t.mat", arrays)
    assert columns_of(read_raw(tmp_path / "t.mat")) == {"x1": [1.0, 3.0], "x2": [2.0, 4.0]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.ones((2, 3)), "b": np.ones((3, 2))}, r"2 arrays of the same size: 'a', 'b'\. Na"),
        (
            {"X": np.array([["a", 1.0]], dtype=object)},
            r"no table of numbers: cells, struct.*named X",
        ),
        ({"X": {"a": np.ones((2, 2))}}, r"holds no table of numbers"),
        ({"X": scipy.sparse.eye_array(3).tocsc()}, r"holds no table of numbers"),
        ({"X": "text"}, r"holds no table of numbers"),
        ({"X": np.ones((2, 2), dtype=complex)}, r"array 'X' has the type complex128"),
        ({}, r"holds no table of numbers"),
    ],
)
def test_mat_that_is_refused(tmp_path, arrays, message):
    scipy.io.savemat(tmp_path / "t.mat", arrays)
    with pytest.raises(TableError, match=rf"t\.mat.*{message}"):
        read_raw(tmp_path / "t.mat")


@pytest.mark.parametrize("start", [b"MATLAB 7.3 MAT-file, Platform: GLNXA64", b"\x89HDF\r\n\x1a\n"])
def test_mat_of_version_7_3(write, start):
    message = (
        r"is a MAT file of version 7\.3 \(HDF5\), .* Save it in MATLAB with save\(\.\.\., '-v7"
    )
    with pytest.raises(TableError, match=message):
        read_raw(write(start.ljust(600), "t.mat"))


def mat_bytes(*packed):
    elements = b"".join(struct.pack("<II", 15, len(part)) + part for part in packed)
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + elements


@pytest.mark.parametrize("content", [b"x", b"no such thing" * 99, mat_bytes(b"abc" * 9)])
def test_damaged_mat(write, content):
    with pytest.raises(TableError, match=r"t\.mat cannot be read: .*\. Save it again"):
        read_raw(write(content, "t.mat"))


def mat_element(kind, body):
    return struct.pack("<II", kind, len(body)) + body + bytes(-len(body) % 8)


def mat_zeros(n_rows, n_bytes):
    """A column of small whole numbers that declares `n_rows` and has `n_bytes`."""
    parts = [(6, struct.pack("<II", 9, 0)), (5, struct.pack("<ii", n_rows, 1)), (1, b"X")]
    parts.append((2, bytes(n_bytes)))
    return mat_element(14, b"".join(mat_element(*part) for part in parts))


@pytest.mark.parametrize(
    ("n_rows", "n_bytes"), [(20_000_000, 100), (4, N_BOMB_BYTES)], ids=["declared", "there"]
)
def test_a_mat_bomb(write, n_rows, n_bytes):
    packed = zlib.compress(mat_zeros(n_rows, n_bytes), 9)
    with pytest.raises(TableError, match=r"bomb\.mat expands more than 1000-fold, to over 100 MB"):
        read_raw(write(mat_bytes(packed), "bomb.mat"))


@pytest.mark.parametrize("stored", [2, 9])
def test_mat_numbers_may_be_stored_as_smaller_ones(write, stored):
    numbers = np.array([[1, 2], [3, 4], [5, 6]], dtype={2: np.uint8, 9: np.float64}[stored])
    parts = [(6, struct.pack("<II", 6, 0)), (5, struct.pack("<ii", 3, 2)), (1, b"X")]
    parts.append((stored, numbers.tobytes("F")))
    content = mat_bytes() + mat_element(14, b"".join(mat_element(*part) for part in parts))
    assert columns_of(read_raw(write(content, "t.mat"))) == {"x1": [1, 3, 5], "x2": [2, 4, 6]}


@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "u1", "i4", "?"])
def test_mat_is_what_scipy_reads(tmp_path, rng, kind, options):
    values = (100 * rng.normal(size=(7, 3))).astype(kind)
    scipy.io.savemat(tmp_path / "t.mat", {"X": values}, **options)
    expected = scipy.io.loadmat(tmp_path / "t.mat")["X"]
    np.testing.assert_array_equal(read_table(tmp_path / "t.mat").values, expected)


def test_mat_of_the_other_byte_order(write):
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    parts = [(6, struct.pack(">II", 6, 0)), (5, struct.pack(">ii", 1, 2)), (1, b"X")]
    parts.append((9, struct.pack(">2d", 1.5, -2.0)))
    body = b"".join(struct.pack(">II", k, len(b)) + b + bytes(-len(b) % 8) for k, b in parts)
    content = head + struct.pack(">II", 14, len(body)) + body
    assert columns_of(read_raw(write(content, "t.mat"))) == {"x1": [1.5], "x2": [-2.0]}
    old = struct.pack(">5i", 1000, 1, 2, 0, 2) + b"X\0" + struct.pack(">2d", 1.5, -2.0)
    assert columns_of(read_raw(write(old, "t.mat"))) == {"x1": [1.5], "x2": [-2.0]}
