"""Signals that end a command in each of its phases: nothing is left, and outputs are whole."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

from gammagmm.distributed.cluster import open_cluster
from tests.support.command_line import COMMAND, QUICK, gammagmm, gammagmm_here, write_csv
from tests.support.needs import needs_posix
from tests.support.workbooks import xlsx, xlsx_parts, zipped

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_nothing_is_left_after_a_signal_in_any_phase(tmp_path):
    """Each kind of signal once in each phase; 20 times: ``make soak``."""
    results = tmp_path / "interrupts.json"
    command = [sys.executable, "-m", "stress.interrupts", "--times", "1", "--results", str(results)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(results.read_text())
    assert (found["total"], found["faults"]) == (20, [])


def test_a_local_cluster_listens_on_loopback_only():
    with open_cluster(None, 1), open_cluster(None, 1):
        me = psutil.Process()
        found = {
            connection.laddr.ip
            for process in (me, *me.children(recursive=True))
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
    assert found == {"127.0.0.1"}


@pytest.mark.long
@needs_posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_cluster_ends_with_its_command(name, tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(5000, 4)), columns=list("abcd"))
    rows.to_parquet(tmp_path / "rows.parquet")
    arguments = ("estimate", str(tmp_path / "rows.parquet"), "--engine", "dask", "--jobs", "2")
    begin = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    begin += "os.execv(sys.argv[1], sys.argv[1:])"  # what runs in the background may ignore Ctrl-C
    command = [sys.executable, "-c", begin, COMMAND, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr.readline().startswith(b"dashboard: http://127.0.0.1:")
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) > 3
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert psutil.wait_procs(started, timeout=10)[1] == []


@needs_posix
@pytest.mark.parametrize("command", ["--help", "estimate --help", "info"])
def test_a_reader_that_closes_the_pipe_is_no_error(command):
    process = subprocess.Popen(
        [COMMAND, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 0)
    process.stderr.close()


@pytest.mark.parametrize("option", ["--runs"])
@pytest.mark.parametrize("value", ["99999999999999999999", "2000000000"])
def test_numbers_that_only_fill_the_memory(option, value, table):
    done = gammagmm_here("estimate", table, option, value)
    assert done.returncode == 2
    assert value in done.stderr.splitlines()[0]
    assert "internal error" not in done.stderr


def test_a_panic_of_a_library_is_not_printed(tmp_path):
    rows = [["x", "when"], *[[float(i), 43831.0] for i in range(30)]]
    parts = xlsx_parts({"rows": rows})
    [name] = [part for part in parts if "sheet1" in part]
    text = parts[name] if isinstance(parts[name], str) else parts[name].decode()
    text = text.replace('<c r="B3">', '<c r="B3" s="2">', 1)
    place = text.index("<v>", text.index('r="B3"'))
    text = f"{text[:place]}<v>-1e18{text[text.index('</v>', place) :]}"
    parts[name] = text if isinstance(parts[name], str) else text.encode()
    (tmp_path / "rows.xlsx").write_bytes(zipped(parts))
    done = gammagmm("estimate", tmp_path / "rows.xlsx")
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if "panicked" in line] == []
    assert "rows.xlsx cannot be read" in done.stderr


def test_a_sheet_of_labels_may_be_a_workbook(tmp_path):
    columns = {"a": [float(i % 7) for i in range(60)], "b": [float(i % 11) for i in range(60)]}
    write_csv(tmp_path / "rows.csv", columns)
    heads, *lines = [["row", "a", "b", "anomaly"], [3, 2.0, 2.0, 1], [9, 1.0, 8.0, "no"]]
    (tmp_path / "labels.xlsx").write_bytes(xlsx({"sheet": [heads, *lines]}))
    (tmp_path / "labels.csv").write_text("row,a,b,anomaly\n3,2,2,1\n9,1,8,no\n")
    answers = [
        gammagmm_here("estimate", "rows.csv", *QUICK, "--labels", sheet, "--json", cwd=tmp_path)
        for sheet in ("labels.xlsx", "labels.csv")
    ]
    assert [answer.returncode for answer in answers] == [0, 0], answers[0].stderr
    first, second = (json.loads(answer.stdout)["labels"] for answer in answers)
    assert first == second
    assert (first["n_rows"], first["n_anomalies"]) == (2, 1)


def test_errors_of_all_files_name_them(tmp_path, table):
    """The second file that cannot be written is reported like the first one."""
    limit = "import resource, sys, os\nresource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
    limit += "os.execv(sys.argv[1], sys.argv[1:])\n"
    files = ("--out", "l.csv", "--report", "r.html")
    command = [sys.executable, "-c", limit, COMMAND, "estimate", str(table), *QUICK, *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if line.startswith("gammagmm:")]
    assert sorted(told) == ["gammagmm: l.csv: File too large.", "gammagmm: r.html: File too large."]
