"""NPY and NPZ files, written by NumPy."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from gammagmm.errors import TableError
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of

N_BOMB_BYTES = 110_000_000


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, np.uint8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, kind, order):
    values = np.array([[1, 0, 1], [0, 1, 1]], dtype=kind, order=order)
    np.save(tmp_path / "t.npy", values)
    raw = read_raw(tmp_path / "t.npy")
    assert raw.columns == ("x1", "x2", "x3")
    np.testing.assert_array_equal(np.column_stack(raw.data), values.astype(float))
    assert raw.data[0].dtype == np.float64


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
            r"cannot be read: it contains Python objects, which are never unpickled\. W",
        ),
        (np.zeros((2, 2, 2)), r"has the type float64 and the shape \(2, 2, 2\)\. Save a two-"),
        (np.float64(3), r"has the type float64 and the shape \(\)"),
        (np.zeros((2, 2), dtype=complex), r"has the type complex128"),
        (np.array([["a"]]), r"has the type <U1"),
        (np.array([["2020"]], dtype="M8[D]"), r"has the type datetime64"),
        (np.zeros(2, dtype=[("a", float)]), r"has the type \[\('a', '<f8'\)\]"),
        (np.zeros((0, 3)), r"contains no rows or no columns"),
        (np.zeros((3, 0)), r"contains no rows or no columns"),
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


def test_npy_of_a_later_version_is_refused(write):
    message = r"t\.npy cannot be read: it is not a plain array of numbers\. Write numbers"
    with pytest.raises(TableError, match=message):
        read_raw(write(b"\x93NUMPY\x03\x00" + npy_header((1, 1))[8:] + bytes(8), "t.npy"))


@pytest.mark.parametrize("shape", [(10**6, 10**6), (-1, 3), (3, 10)])
def test_a_shape_that_the_bytes_do_not_fill(write, shape):
    declared = npy_header(shape) + bytes(64)
    message = r"cannot be read: it declares the shape \(.*\), which is -?\d+ bytes, but has 64"
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
        "number": np.array(["1.50", "2"]),
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
        "number": [1.5, 2.0],
    }
    assert raw.cells(3) == ["u", "v"]
    assert raw.cells(5) == ["1.50", "2"]


def test_the_only_matrix_of_an_npz(tmp_path):
    np.savez(tmp_path / "t.npz", table=np.ones((2, 2)), y=np.arange(2))
    assert columns_of(read_raw(tmp_path / "t.npz"))["y"] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": np.ones((2, 2)), "b": np.ones((2, 2))},
            r"contains 2 two-dimensional arrays, .*'a' \(2, 2\), .*X",
        ),
        (
            {"a": np.ones(2)},
            r"contains 0 two-dimensional arrays, and none is named X: 'a' \(2,\)\. Name",
        ),
        (
            {},
            r"contains 0 two-dimensional arrays, and none is named X: no array\. Name the table X",
        ),
        ({"X": np.ones((2, 2)), "x2": np.ones(2)}, r"column name 'x2' occurs 2 times"),
        (
            {"X": np.ones((2, 2)), "o": np.array([{}, 1])},
            r"array 'o', .* Python objects, w",
        ),
        ({"X": np.ones((2, 2)), "t": np.zeros(2, "M8[D]")}, r"array 't', has the type datetime64"),
        (
            {"X": np.ones((2, 2)), "s": np.array([b"\xff", b"a"])},
            r"array 's', cannot be read: .*as",
        ),
        ({"X": np.array([["a"]])}, r"array 'X' has the type <U1 and the shape \(1, 1\)\. Save"),
    ],
)
def test_npz_that_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=rf"t\.npz.*{message}"):
        read_raw(tmp_path / "t.npz")


def test_damaged_npz(write, tmp_path):
    with pytest.raises(TableError, match=r"t\.npz cannot be read: .*\. Write numbers or strings"):
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
    with pytest.raises(TableError, match=r"bomb\.npz expands to more than 1000 times its size"):
        read_raw(path)
    # Nothing is unpacked: the sizes are declared.
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8  # of the gigabytes that were declared
