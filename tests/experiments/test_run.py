"""The runner: what it has to do, and that a killed run continues without a loss."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from experiments.plan import EXACT, Trial, load_plan, small_plan, trials
from experiments.results import append_result, only_writer, read_file
from experiments.run import main, pending
from experiments.tables import TABLES

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated

ROOT = Path(__file__).parents[2]


def test_the_plans_results_are_all_there():
    assert pending(load_plan()) == []


def test_pending_asks_for_scores_that_others_need(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.results.RESULTS", tmp_path)
    monkeypatch.setattr("experiments.data.CACHE", tmp_path / "cache")
    todo = pending(small_plan(load_plan()), ["gamma"])
    assert [trial.kind for trial in todo] == ["scores"] * 4 + ["gamma"] * 4
    scores = Trial("scores", "paper", "WBC", "all")
    append_result(scores, {"status": "no data"})
    assert scores not in pending(small_plan(load_plan()), ["gamma"])
    append_result(scores, {"status": "ok"})
    assert scores in pending(small_plan(load_plan()), ["gamma"])


def test_a_run_without_a_data_folder_stops_before_the_first_trial(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.results.RESULTS", tmp_path)
    monkeypatch.setattr("experiments.run.data_folder", lambda: None)
    monkeypatch.setattr(sys, "argv", ["run", "--small"])
    with pytest.raises(SystemExit, match=r"GAMMAGMM_DATA is not set\. Set it to the folder"):
        main()
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.results.RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["run", "--small"])
    with only_writer(), pytest.raises(SystemExit, match=r"Another run writes to .*Wait for it"):
        main()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Environment with synthetic datasets under the names of the small plan."""
    folder = tmp_path_factory.mktemp("reproduction")
    (folder / "data" / "paper").mkdir(parents=True)
    for i, name in enumerate(load_plan()["small"]["datasets"]):
        made = make_contaminated(60 + 10 * i, 4, 0.05 + 0.02 * i, "global", random_state=i)
        np.savez(folder / "data" / "paper" / f"{name}.npz", X=made.X, y=made.y)
    places = {"DATA": "data", "RESULTS": "results", "CACHE": "cache"}
    return os.environ | {f"GAMMAGMM_{k}": str(folder / v) for k, v in places.items()}


def run_module(name, *options, env):
    command = [sys.executable, "-m", f"experiments.{name}", *options]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)


def result_files(env):
    return sorted(Path(env["GAMMAGMM_RESULTS"]).glob("*.jsonl"))


def results_of(env):
    found = {}
    for path in result_files(env):
        found |= read_file(path)
    return found


def kill_in_the_middle(env):
    """Start a run, and kill it with its workers after the third result."""
    command = [sys.executable, "-m", "experiments.run", "--small"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True)
    while len(results_of(env)) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tear_a_line(env):
    """Remove the end of the last line of one file, as if the run was killed while it wrote."""
    path = result_files(env)[-1]
    *_, last = read_file(path)
    os.truncate(path, path.stat().st_size - 10)
    assert last not in read_file(path)


@pytest.mark.long
def test_a_killed_run_goes_on_and_is_published(place):
    asked = list(trials(small_plan(load_plan())))
    kill_in_the_middle(place)
    n_before = len(results_of(place))
    tear_a_line(place)
    before = {path: path.read_bytes() for path in result_files(place)}
    kept = results_of(place)
    assert 2 <= len(kept) == n_before - 1 < len(asked) - 1
    printed = run_module("run", "--small", env=place).stdout
    n_done = int(re.match(r"(\d+) trials to do", printed)[1])
    # All trials without a complete line, and perhaps scores with a line but without a cache.
    assert len(asked) - len(kept) <= n_done <= len(asked) - len(kept) + 4
    found = results_of(place)
    assert set(found) == set(asked)
    assert {result["status"] for result in found.values()} == {"ok"}
    # The complete lines are where they were; only the torn one is gone.
    for path, content in before.items():
        assert path.read_bytes().startswith(content[: content.rfind(b"\n") + 1])
        assert path.read_bytes().endswith(b"\n")
    assert run_module("run", "--small", env=place).stdout == "0 trials to do\n"
    check_posterior(place, found[Trial("gamma", "paper", "Glass", "default")])
    check_published(place, found)


def check_posterior(env, result):
    """The result of one dataset is the estimator's for the scores in the cache."""
    with np.load(Path(env["GAMMAGMM_CACHE"], "paper/Glass.npz")) as kept:
        fitted = GammaGMM("precomputed", **EXACT, random_state=0).fit(kept["S"])
        assert kept["S"].shape == (80, 10)
    assert result["figures"]["mean"] == pytest.approx(fitted.posterior_.mean, rel=1e-9)
    assert result["truth"] == pytest.approx(round(0.09 * 80) / 80)


def check_published(env, found):
    run_module("publish", "--small", env=env)
    folder = Path(env["GAMMAGMM_RESULTS"])
    assert {path.stem for path in (folder / "tables").iterdir()} == set(TABLES)
    pages = [path.read_text(encoding="utf-8") for path in sorted((folder / "pages").iterdir())]
    assert len(pages) == 8
    assert any("On the 4 available datasets" in page for page in pages)
    assert not any("$" in page for page in pages)
    assert results_of(env) == found
    n_lines = sum(path.read_bytes().count(b"\n") for path in result_files(env))
    assert n_lines == len(found)
