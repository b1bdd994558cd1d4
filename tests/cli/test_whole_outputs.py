"""A failed write leaves the old file, and the other outputs are still written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gammagmm._support.files import write_document
from gammagmm.datasets import make_contaminated
from tests.support.command_line import gammagmm_here
from tests.support.needs import needs_posix

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--detectors", "KNN,LOF", "--runs", "1", "--jobs", "1", "--quiet")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "rows.csv"
    rows = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
    path.write_text("a,b,c,d\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist()))
    return path


ON_A_FULL_DISK = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def estimate(*arguments, code=(), **options):
    module = ("-m", "gammagmm.cli.main", "estimate", *map(str, arguments), *QUICK)
    command = [sys.executable, *code, *module]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False, **options)


@pytest.mark.long
def test_kills_and_failing_writes(tmp_path):
    command = [sys.executable, "-m", "stress.kills", "--kills", "6"]
    done = subprocess.run(
        [*command, "--results", str(tmp_path / "kills.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "kills.json").read_text())
    assert found["kills"] == 6
    assert found["torn_by_kills"] == found["torn_by_faults"] == 0
    assert found["faults"] == 5 * 8  # files times ways to fail


@needs_posix
def test_a_full_disk_keeps_the_answer_the_old_file_and_what_fits(table, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    outputs = ("--out", "labels.csv", "--posterior", "posterior.json", "--force")
    code = ("-c", ON_A_FULL_DISK)
    done = estimate(table, *outputs, code=code, cwd=tmp_path, stdout=subprocess.PIPE)
    assert done.returncode == 2
    assert " of 300 rows " in done.stdout.splitlines()[1]
    assert done.stderr.splitlines() == [
        "gammagmm: labels.csv: File too large.",
        "  Check the path and the free disk space.",
    ]
    assert (tmp_path / "labels.csv").read_text() == "mine"
    assert json.loads((tmp_path / "posterior.json").read_text())["version"] == 1
    assert sorted(os.listdir(tmp_path)) == ["labels.csv", "posterior.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_files_are_written_although_standard_output_is_full(table, tmp_path):
    with open("/dev/full", "w") as full:
        done = estimate(table, "--out", "labels.csv", cwd=tmp_path, stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("gammagmm: standard output: No space left on device.\n")
    assert len(done.stderr.splitlines()) == 2
    assert (tmp_path / "labels.csv").read_text().startswith("id,score,")


@pytest.mark.skipif(not Path("/sys").is_dir(), reason="needs a folder without permission to write")
def test_a_folder_that_nobody_may_write_to():
    with pytest.raises(OSError, match=r"'/sys/gammagmm\.json'") as caught:
        write_document("text", "/sys/gammagmm.json")
    assert caught.value.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    assert "part" not in str(caught.value)


@pytest.mark.skipif(not Path("/sys").is_dir(), reason="needs a folder without permission to write")
def test_the_answer_comes_although_a_folder_is_read_only(table, tmp_path):
    outputs = ("--out", "/sys/gammagmm.csv", "--posterior", "posterior.json")
    done = gammagmm_here("estimate", table, *outputs, *QUICK, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("gammagmm: /sys/gammagmm.csv: ")
    if os.access("/sys", os.W_OK):  # true for root: only the attempt to write fails
        assert " of 300 rows " in done.stdout.splitlines()[1]
        assert (tmp_path / "posterior.json").exists()


def test_parts_of_other_processes_are_kept_and_ignored(tmp_path):
    part = tmp_path / f".labels.csv.{os.getpid()}-0a1b2c3d.part"
    part.write_text("half a")
    for overwrite in (False, True):
        write_document("whole", tmp_path / "labels.csv", overwrite)
    assert (tmp_path / "labels.csv").read_text() == "whole"
    assert part.read_text() == "half a"
    with pytest.raises(FileExistsError, match=r"labels\.csv already exists"):
        write_document("other", tmp_path / "labels.csv")


def test_a_file_that_appears_while_links_fail_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "labels.csv"

    def refuse(self, target):
        path.write_text("another's")
        raise PermissionError("no links here")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(FileExistsError, match=r"labels\.csv already exists"):
        write_document("ours", path)
    assert path.read_text() == "another's"
    assert os.listdir(tmp_path) == ["labels.csv"]
