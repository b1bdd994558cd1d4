"""Files that end the process which reads them, or need too much memory, are refused alike."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys

import numpy as np
import pytest

from gammagmm._support.platform import memory_limit
from gammagmm.cli.files import read_file, unreadable
from gammagmm.errors import TableError
from tests.support.command_line import gammagmm
from tests.support.workbooks import xlsx_parts, zipped

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")


def far_cell():
    """A workbook with a cell in the last row and column, which takes hundreds of gigabytes."""
    parts = xlsx_parts({"s": [["a", "b"], [1, 2]]})
    name = "xl/worksheets/sheet1.xml"
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    return zipped(parts | {name: parts[name].replace("</sheetData>", far)})


@linux
@pytest.mark.parametrize("is_sheet", [False, True], ids=["data", "labels"])
def test_a_file_that_ends_the_process_is_refused_in_two_lines(tmp_path, is_sheet):
    (tmp_path / "t.xlsx").write_bytes(far_cell())
    rows = np.random.default_rng(0).normal(size=(60, 2))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b", comments="")
    arguments = ["rows.csv", "--labels", "t.xlsx"] if is_sheet else ["t.xlsx"]
    done = gammagmm("estimate", *arguments, cwd=tmp_path)
    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith("gammagmm: ")
    assert "t.xlsx cannot be read" in first
    assert second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "t.xlsx"]


@linux
def test_a_limit_of_memory_ends_with_it():
    with memory_limit(200_000_000), pytest.raises(MemoryError):
        np.empty(100_000_000)
    assert np.empty(100_000_000).nbytes == 800_000_000


@linux
def test_too_little_memory_is_the_same_error(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * 20_000_000, 9))
    for name in ("FREE_GB", "THREAD_MB"):
        monkeypatch.setattr(f"gammagmm.cli.files.{name}", 0)
    with pytest.raises(TableError, match=r"t\.csv\.gz cannot be read: .* memory.*\. Write it"):
        read_file(str(path))


@linux
def test_a_limit_of_time_ends_a_process_that_never_returns():
    work = "with processor_limit(1):\n    pass\nprint('free', flush=True)\n"
    work += "with processor_limit(1):\n    sum(iter(int, 1))"
    code = f"from gammagmm._support.platform import processor_limit\n{work}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=500)
    assert (done.returncode, done.stdout) == (-signal.SIGXCPU, b"free\n")


def test_the_time_for_a_file_grows_with_its_size(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"1" * 2_000_000)
    assert "28 seconds" in str(unreadable(str(tmp_path / "t.csv")))
