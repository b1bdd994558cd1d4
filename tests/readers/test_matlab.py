"""MAT files, written by SciPy or byte by byte."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from gammagmm.errors import TableError
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of


@pytest.mark.parametrize("is_packed", [False, True])
def test_mat(tmp_path, is_packed):
    arrays = {
        "small": np.ones((2, 1)),
        "big": np.arange(6.0).reshape(3, 2),
        "y": np.array([0, 1, 0]),
    }
    scipy.io.savemat(tmp_path / "t.mat", arrays, do_compression=is_packed)
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
        ({"X": {"a": np.ones((2, 2))}}, r"contains no table of numbers"),
        ({"X": scipy.sparse.eye_array(3).tocsc()}, r"contains no table of numbers"),
        ({"X": "text"}, r"contains no table of numbers"),
        ({"X": np.ones((2, 2), dtype=complex)}, r"array 'X' has the type complex128"),
        ({}, r"contains no table of numbers"),
    ],
)
def test_mat_that_is_refused(tmp_path, arrays, message):
    scipy.io.savemat(tmp_path / "t.mat", arrays)
    with pytest.raises(TableError, match=rf"t\.mat.*{message}"):
        read_raw(tmp_path / "t.mat")


@pytest.mark.parametrize(
    ("start", "version"),
    [
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64", "7.3"),
        (b"\x89HDF\r\n\x1a\n", "7.3"),
        (struct.pack("<5i", 0, 1, 2, 0, 2) + b"X", "4"),
    ],
)
def test_other_versions_of_mat(write, start, version):
    with pytest.raises(TableError, match=rf"version {version}.* save\(\.\.\., '-v7"):
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


@pytest.mark.parametrize("stored", [2, 9])
def test_mat_numbers_may_be_stored_as_smaller_ones(write, stored):
    numbers = np.array([[1, 2], [3, 4], [5, 6]], dtype={2: np.uint8, 9: np.float64}[stored])
    parts = [(6, struct.pack("<II", 6, 0)), (5, struct.pack("<ii", 3, 2)), (1, b"X")]
    parts.append((stored, numbers.tobytes("F")))
    content = mat_bytes() + mat_element(14, b"".join(mat_element(*part) for part in parts))
    assert columns_of(read_raw(write(content, "t.mat"))) == {"x1": [1, 3, 5], "x2": [2, 4, 6]}


def test_mat_of_the_other_byte_order(write):
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    parts = [(6, struct.pack(">II", 6, 0)), (5, struct.pack(">ii", 1, 2)), (1, b"X")]
    parts.append((9, struct.pack(">2d", 1.5, -2.0)))
    body = b"".join(struct.pack(">II", k, len(b)) + b + bytes(-len(b) % 8) for k, b in parts)
    content = head + struct.pack(">II", 14, len(body)) + body
    assert columns_of(read_raw(write(content, "t.mat"))) == {"x1": [1.5], "x2": [-2.0]}
