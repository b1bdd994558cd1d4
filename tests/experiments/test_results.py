"""The result files: exact, never torn, in one order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from experiments.plan import Trial, load_plan
from experiments.results import (
    Results,
    append_result,
    only_writer,
    read_file,
    read_results,
    result_file,
    sort_files,
)

ROOT = Path(__file__).parents[2]
FIRST, SECOND = Trial("gamma", "paper", "Glass", "default"), Trial("gamma", "pool", "http", "x")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.results.RESULTS", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_results_are_read_as_they_were_appended():
    result = {"status": "ok", "share": 0.1 + 0.2, "tiny": 5e-324, "words": 'γ "a"\nb'}
    append_result(SECOND, result)
    append_result(FIRST, {"status": "failed", "reason": "no"})
    found = read_results()
    assert found[SECOND] == {"trial": str(SECOND)} | result
    assert set(found) == {FIRST, SECOND}
    assert len(result_file("gamma").read_text().splitlines()) == 2


@pytest.mark.usefixtures("folder")
def test_nan_is_null():
    append_result(FIRST, {"a": [float("nan"), 1.0], "b": {"c": float("nan")}})
    found = read_file(result_file("gamma"))[FIRST]
    assert found == {"trial": str(FIRST), "a": [None, 1.0], "b": {"c": None}}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("n_bytes", [1, 30, 10_000])
def test_an_incomplete_last_line_is_left_out_and_removed(n_bytes):
    """With one byte less, only the line end is missing."""
    path = result_file("gamma")
    append_result(FIRST, {"status": "ok", "share": 0.5})
    whole = path.read_bytes()
    append_result(SECOND, {"status": "ok", "shares": [0.25] * 5000})
    os.truncate(path, path.stat().st_size - n_bytes)
    assert set(read_file(path)) == {FIRST}
    append_result(SECOND, {"status": "ok"})
    assert path.read_bytes() == whole + b'{"trial":"gamma/pool/http/x","status":"ok"}\n'


@pytest.mark.usefixtures("folder")
def test_an_incomplete_only_line_is_removed():
    path = result_file("gamma")
    path.write_bytes(b'{"trial":"gam')
    assert read_file(path) == {}
    append_result(FIRST, {"status": "ok"})
    assert set(read_file(path)) == {FIRST}


@pytest.mark.usefixtures("folder")
def test_a_broken_line_inside_a_file_is_an_error_that_names_it():
    append_result(FIRST, {"status": "ok"})
    with result_file("gamma").open("a") as file:
        file.write('{"trial"\n')
    append_result(SECOND, {"status": "ok"})
    with pytest.raises(ValueError, match=r"gamma\.jsonl, line 2 is not JSON\. Delete the line"):
        read_results()


@pytest.mark.usefixtures("folder")
def test_the_later_of_two_lines_counts_and_sorting_keeps_it():
    for share in (0.1, 0.2):
        append_result(SECOND, {"status": "ok", "share": share})
        append_result(FIRST, {"status": "ok", "share": 2 * share})
    before = read_results()
    assert before[SECOND]["share"] == 0.2
    sort_files()
    lines = result_file("gamma").read_text().splitlines()
    assert [json.loads(line)["trial"] for line in lines] == [str(FIRST), str(SECOND)]
    assert read_results() == before
    sort_files()
    assert result_file("gamma").read_text().splitlines() == lines


@pytest.mark.usefixtures("folder")
def test_one_process_writes_at_a_time():
    with only_writer() as is_first:
        assert is_first
        with only_writer() as is_second:
            assert not is_second
    with only_writer() as is_third:
        assert is_third


@pytest.mark.usefixtures("folder")
def test_a_result_that_is_not_ok_is_a_state_with_its_reason():
    append_result(FIRST, {"status": "timeout", "reason": "longer than 3 s"})
    results = Results(load_plan())
    assert results.state("gamma", "paper", "Glass", "default") == "timeout: longer than 3 s"
    assert results.state("gamma", "paper", "WBC", "default") == "not run"
    assert results.get("gamma", "paper", "Glass", "default") is None


APPENDING = """
from experiments.plan import Trial
from experiments.results import append_result, read_results
n = len(read_results())
while True:
    append_result(Trial("gamma", "paper", "made", str(n)), {"shares": [n + 0.1] * 20_000})
    n += 1
"""


@pytest.mark.usefixtures("folder")
def test_a_killed_writer_loses_no_line_that_it_had_appended(folder):
    """Killed at random moments: each process continues after the lines of the one before."""
    env = os.environ | {"GAMMAGMM_RESULTS": str(folder)}
    path, clock = result_file("gamma"), random.Random(0)
    for _ in range(4):
        size = path.stat().st_size if path.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", APPENDING], cwd=ROOT, env=env)
        while not path.exists() or path.stat().st_size <= size:
            assert process.poll() is None
            time.sleep(0.001)
        time.sleep(clock.uniform(0.0, 0.05))
        process.kill()
        process.wait()
        found = read_file(path)
        assert sorted(int(trial.variant) for trial in found) == list(range(len(found)))
        assert all(r["shares"] == [int(t.variant) + 0.1] * 20_000 for t, r in found.items())
    assert len(found) >= 4
