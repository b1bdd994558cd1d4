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

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gammagmm.errors import TableError
from gammagmm.readers.arrow import Compact
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
from tests.support.reader_process import ReaderProcess

SEED = 1
N_INPUTS = 200


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


@pytest.mark.parametrize("kind", KINDS)
def test_mutations_of_good_files(process, kind):
    outcomes = list(process.outcomes(kind, [(SEED, i) for i in range(N_INPUTS)]))
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
    ("old", "new", "message"),
    [
        (struct.pack("<II", 9, 64), struct.pack("<II", 0, 64), r"its data type 0 is not numeric"),
        (struct.pack("<ii", 4, 2), struct.pack("<ii", 4, 3), r"shape \(4, 3\) but contains 8"),
        (struct.pack("<ii", 4, 2), struct.pack("<ii", -4, -2), r"shape \(-4, -2\) but contains 8"),
        (struct.pack("<II", 9, 64), struct.pack("<II", 9, 640), r"the file is incomplete"),
        (b"MATLAB", b"OCTAVE", None),
        (b"\x00\x01IM", b"\x00\x01XX", r"it is not a MAT file"),
    ],
)
def test_damaged_mat(read, old, new, message):
    content = mats()[0]
    assert old in content
    damaged = content.replace(old, new, 1)
    if message is None:
        assert read(damaged, "t.mat").columns == ("x1", "x2", "y")
        return
    with pytest.raises(TableError, match=rf"t\.mat cannot be read: .*{message}.*Save it again"):
        read(damaged, "t.mat")


@pytest.mark.parametrize("n_lost", [1, 20, 40])
def test_a_packed_mat_that_is_truncated(read, n_lost):
    with pytest.raises(TableError, match=r"t\.mat cannot be read: the file is incomplete"):
        read(mats()[1][:-n_lost], "t.mat")


def test_sizes_that_parquet_and_feather_declare():
    """The size of a text of ten million letters is known before it is decompressed."""
    from gammagmm.readers.arrow import message_bytes, parquet_chunks

    table = pa.table({"a": ["x" * 10_000_000, "y"], "b": [1.0, 2.0]})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, compression="ZSTD")
    sizes = list(parquet_chunks(sink.getvalue()))
    assert [n_cells for n_cells, _ in sizes] == [2, 2]
    metadata = pyarrow.parquet.ParquetFile(io.BytesIO(sink.getvalue())).metadata.row_group(0)
    for j, (_, n_bytes) in enumerate(sizes):
        # The total of Arrow includes the headers of the pages.
        total = metadata.column(j).total_uncompressed_size
        assert total - 2_000 - 0.01 * total <= n_bytes <= total
    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    reader = pa.ipc.MessageReader.open_stream(stream.getvalue())
    found = [message_bytes(m.metadata.to_pybytes(), memoryview(m.body or b"")) for m in reader]
    assert found[0] == 0
    assert table.nbytes <= sum(found) <= table.nbytes + 1000


@pytest.mark.parametrize("content", [b"\x1c" * 99, b"\x19\xfc" + b"\xff" * 9 + b"\x01", b"\x1d"])
def test_metadata_without_end(content):
    with pytest.raises((ValueError, IndexError)):
        Compact(content, 0).struct()


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
