"""Every reader on damaged and hostile files: it returns a result or raises a typed error.

``make fuzz`` does the same for an hour; the files in which it found faults are in tests/corpus.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
import time
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gammagmm.errors import TableError
from gammagmm.readers.registry import read_raw
from tests.support.good_files import (
    CORPUS,
    KINDS,
    corpus,
    feathers,
    good_files,
    mats,
    npy,
    parquets,
)
from tests.support.reader_process import MAX_PEAK_BYTES, MAX_SHARE, ReaderProcess
from tests.support.workbooks import ods_parts, xlsx_parts, zipped

SEED = 1
N_INPUTS, N_SLOW_INPUTS = 200, 60
SLOW = ("ods", "xlsx")
"""Kinds of which a mutation may be a table with thousands of columns."""


@pytest.fixture(scope="module")
def process():
    """A process that may hang, crash or run out of memory without ending the tests."""
    if sys.platform != "linux":
        pytest.skip("the memory of the process is limited and measured on Linux only")
    process = ReaderProcess()
    yield process
    process.end()


@pytest.fixture
def read(tmp_path):
    def read_content(content, name):
        path = tmp_path / name
        path.write_bytes(content)
        return read_raw(path)

    return read_content


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_mutations_of_good_files(process, kind):
    n = N_SLOW_INPUTS if kind in SLOW else N_INPUTS
    outcomes = list(process.outcomes(kind, [(SEED, i) for i in range(n)]))
    faults = [(i, o.fault, o.detail) for i, o in enumerate(outcomes) if o.word == "failed"]
    assert faults == []
    # The mutations are neither all valid nor all invalid.
    assert {outcome.word for outcome in outcomes} == {"accepted", "refused"}


@pytest.mark.parametrize(("kind", "path"), corpus(), ids=lambda value: getattr(value, "name", ""))
def test_files_that_once_caused_a_fault(process, kind, path):
    [outcome] = process.outcomes(kind, [path.read_bytes()])
    assert outcome.word in ("accepted", "refused"), outcome.detail


def many_columns():
    """A CSV file of 40,002 columns of which the last two have the same name."""
    names = ",".join(f"{i:x}" for i in range(40_000))
    return f"{names},z,z\n{','.join('1' * 40_002)}\n".encode()


@pytest.mark.parametrize("name", ["index-below-0", "index-out-of-bounds", "offset-in-the-middle"])
def test_feather_with_wrong_indices_is_refused(name):
    """Without a check, these files give cells that they do not contain."""
    with pytest.raises(TableError, match=r"feather cannot be read: .*Write it again as Feather"):
        read_raw(CORPUS / "feather" / f"{name}.feather")


LARGE = {
    "the last of many names is repeated": ("csv", many_columns),
    "another name on every line": (
        "jsonl",
        lambda: "".join(f'{{"{i:x}":1}}\n' for i in range(16_000)).encode(),
    ),
    "a cell longer than the csv module allows": (
        "arff",
        lambda: b"@attribute a real\n@data\n" + b"1" * 140_000,
    ),
    "a compressed file in a compressed file": (
        "csv.gz",
        lambda: gzip.compress(gzip.compress(bytes(10**8), 9, mtime=0), 9, mtime=0),
    ),
    "many empty parts": ("csv.gz", lambda: gzip.compress(b"", 9, mtime=0) * 20_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_files_that_are_made_here(process, name):
    kind, make = LARGE[name]
    [outcome] = process.outcomes(kind, [make()])
    assert (outcome.word, outcome.detail) == ("refused", "")
    assert outcome.seconds < 5.0
    assert outcome.peak < 500e6


@pytest.mark.parametrize("kind", ["npy", "npz", "posterior"])
def test_pickles_are_refused(process, kind):
    traps = [content for content in good_files(kind) if b"mkdir" in content]
    assert traps
    assert {outcome.word for outcome in process.outcomes(kind, traps)} == {"refused"}


def test_names_of_members_are_no_paths(read, tmp_path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", npy(np.ones((2, 2))))
        archive.writestr("../escaped.npy", npy(np.arange(2)))
        archive.writestr(f"{tmp_path}/rooted.npy", npy(np.arange(2)))
    (tmp_path / "inner").mkdir()
    raw = read(file.getvalue(), "inner/t.npz")
    assert raw.columns == ("x1", "x2", "../escaped", f"{tmp_path}/rooted")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inner", "t.npz"]


def test_a_compression_that_numpy_does_not_write(read):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("X.npy", npy(np.ones((2, 2))))
    with pytest.raises(TableError, match=r"t\.npz .* an unsupported compression method\. Write"):
        read(file.getvalue(), "t.npz")


@pytest.mark.parametrize("shape", [(0, 10**12), (10**12, 0)])
def test_no_cells_and_many_columns(read, shape):
    header = io.BytesIO()
    declared = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, declared)
    with pytest.raises(TableError, match=r"t\.npy contains no rows or no columns\. Give a file"):
        read(header.getvalue(), "t.npy")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (struct.pack("<II", 9, 64), struct.pack("<II", 0, 64)),
        (struct.pack("<ii", 4, 2), struct.pack("<ii", 4, 3)),
        (struct.pack("<ii", 4, 2), struct.pack("<ii", -4, -2)),
        (struct.pack("<II", 9, 64), struct.pack("<II", 9, 640)),
        (b"\x00\x01IM", b"\x00\x01XX"),
    ],
)
def test_damaged_mat(process, old, new):
    content = mats()[0]
    assert old in content
    [outcome] = process.outcomes("mat", [content.replace(old, new, 1)])
    assert (outcome.word, outcome.detail) == ("refused", "")


@pytest.mark.parametrize("n_lost", [1, 20, 40])
def test_a_packed_mat_that_is_truncated(process, n_lost):
    [outcome] = process.outcomes("mat", [mats()[1][:-n_lost]])
    assert (outcome.word, outcome.detail) == ("refused", "")


def test_a_repeated_text_is_stored_once(read):
    long = "x" * 10_000
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"t": [long] * 3_000, "a": range(3_000)}), sink)
    column = read(sink.getvalue(), "t.parquet").data[0]
    assert column[0] == column[-1] == long
    assert len({id(cell) for cell in column}) == 1


@pytest.mark.parametrize("content", [*parquets()[:1], *feathers()[:1]], ids=["parquet", "feather"])
def test_arrow_files_cut_anywhere(read, content):
    suffix = "parquet" if content.startswith(b"PAR1") else "feather"
    start = time.perf_counter()
    n_refused = 0
    for n in range(8, len(content), 7):
        try:
            read(content[:n], f"t.{suffix}")
        except TableError:
            n_refused += 1
    assert n_refused > 0
    assert time.perf_counter() - start < 20.0


@pytest.mark.parametrize("depth", [900, 100_000])
def test_messages_stay_short_whatever_a_file_holds(tmp_path, depth):
    from gammagmm import GammaPosterior
    from gammagmm.errors import SavedFileError

    for text in ('{"schema": ' + "[" * depth + "]" * depth + "}", json.dumps({"x" * 9000: 1})):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(SavedFileError, match="cannot be read as a posterior") as caught:
            GammaPosterior.load(tmp_path / "p.json")
        assert len(str(caught.value)) < 1000


def workbook_bomb(kind):
    """A small workbook whose table, expanded, has gigabytes, in several ways."""
    parts = xlsx_parts({"s": [["a" * 1000], [1]]})
    name = "xl/worksheets/sheet1.xml"
    head, end = parts[name].split("</sheetData>")
    long_text = {
        "xl/sharedStrings.xml": parts["xl/sharedStrings.xml"].replace("a" * 1000, "a" * 10**6)
    }
    cells = "".join(f'<c r="A{i}" t="s"><v>0</v></c>' for i in range(3, 5003))
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    hidden = "<row><c x=\">\" r = 'XFD1048576'><v>1</v></c></row>"
    without = f'<row r="1048576"/><row>{"<c><v>1</v></c>" * 9000}</row>'
    table = ods_parts({"s": [["a"], [1]]}, padding=False)
    cell = '<table:table-cell office:value-type="float" office:value="1"'
    wide = table["content.xml"].replace(cell, f'{cell} table:number-columns-repeated="2000000000"')
    row = "<table:table-row>"
    tall = table["content.xml"].replace(row, row[:-1] + ' table:number-rows-repeated="300000000">')
    return {
        "far": parts | {name: head + far + "</sheetData>" + end},
        "hidden": parts | {name: head + hidden + "</sheetData>" + end},
        "without places": parts | {name: head + without + "</sheetData>" + end},
        "one long text": parts | long_text | {name: head + f"<row>{cells}</row></sheetData>" + end},
        "wide": table | {"content.xml": wide},
        "tall": table | {"content.xml": tall},
    }[kind]


WORKBOOKS = ("far", "hidden", "without places", "one long text", "wide", "tall")


def packed_zeros():
    """A MAT file with a column of 2 GB of zeros, in 2 MB."""
    head = struct.pack("<IIIIII", 6, 8, 9, 0, 5, 8) + struct.pack("<iiI", 2**31 - 8, 1, 1 << 16 | 1)
    head += b"X\0\0\0" + struct.pack("<II", 2, 2**31 - 8)
    packer = zlib.compressobj(1)
    packed = packer.compress(struct.pack("<II", 14, len(head) + 2**31 - 8) + head)
    packed += b"".join(packer.compress(bytes(10**8)) for _ in range(22)) + packer.flush()
    return mats()[0][:128] + struct.pack("<II", 15, len(packed)) + packed


def written(write, table, **options):
    sink = io.BytesIO()
    write(table, sink, **options)
    return sink.getvalue()


def zeros_in_columns():
    """A Parquet file of 2 MB with 2.4 GB of numbers."""
    column = pa.array(np.zeros(10**6, dtype=np.int8))
    return written(pyarrow.parquet.write_table, pa.table({f"x{j}": column for j in range(170)}))


BOMBS = {
    **{name: ("workbook", name) for name in WORKBOOKS},
    "zeros in a MAT file": ("mat", packed_zeros),
    "zeros in Parquet": ("parquet", zeros_in_columns),
    "nulls in Feather": (
        "feather",
        lambda: written(
            pyarrow.feather.write_feather, pa.table({f"x{j}": pa.nulls(10**6) for j in range(300)})
        ),
    ),
}
"""Small files that take gigabytes; a library may end the process when it does not get them."""


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_within_the_limit_of_memory(process, name):
    kind, made = BOMBS[name]
    if kind == "workbook":
        parts = workbook_bomb(made)
        kind, content = "ods" if "mimetype" in parts else "xlsx", zipped(parts)
    else:
        content = made()
    assert len(content) < 10_000_000
    [outcome] = process.outcomes(kind, [content])
    assert (outcome.word, outcome.detail) == ("refused", "")
    assert outcome.peak < MAX_SHARE * (MAX_PEAK_BYTES + 100 * len(content))
