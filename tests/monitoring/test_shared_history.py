"""One history that several processes change, and processes that are killed while they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gammagmm._support import files
from gammagmm._support.files import locked
from gammagmm.errors import HistoryError, SavedFileError
from gammagmm.monitoring.counts import Count, Period
from gammagmm.monitoring.history import History
from tests.support.needs import needs_posix

ADD = """
import sys
from gammagmm.monitoring.counts import Count, Period
from gammagmm.monitoring.history import History

path, name, n_rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
for i in range(n_rounds):
    def add(history):
        history = history or History("fit", Count(1000, 50))
        return history.add([Period(f"{name}-{i}", Count(100, 5), {}, f"{name} {i}")])
    History.update_file(path, add)
"""
N_PERIODS = 400
"""Periods of a history whose file takes some time to be written."""


def start(path, name, n_rounds):
    command = [sys.executable, "-P", "-c", ADD, str(path), name, str(n_rounds)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def add_together(path, n_processes, n_rounds):
    """The names of all periods after processes have added theirs at the same time."""
    processes = [start(path, f"p{i}", n_rounds) for i in range(n_processes)]
    for process in processes:
        assert process.communicate(timeout=580)[1] == b""
        assert process.returncode == 0
    return sorted(period.name for period in History.load(path).periods)


@pytest.mark.long
def test_no_period_is_lost(tmp_path):
    n_processes, n_rounds = 20, 50
    names = add_together(tmp_path / "h.json", n_processes, n_rounds)
    assert names == sorted(f"p{i}-{j}" for i in range(n_processes) for j in range(n_rounds))
    assert os.listdir(tmp_path) == ["h.json"]


@needs_posix
@pytest.mark.long
def test_a_process_that_is_killed_damages_nothing(tmp_path):
    n_kills, n_inside = 200, 50
    rng, path = np.random.default_rng(0), tmp_path / "h.json"
    old = [Period(f"old-{i}", Count(100, 5), {}, f"old {i}") for i in range(N_PERIODS)]
    History("fit", Count(1000, 50)).add(old).save(path)
    n_before, n_found, trial = N_PERIODS, 0, 0
    while trial < n_kills or n_found < n_inside:
        trial += 1
        assert trial < 20 * n_kills
        process = start(path, f"t{trial}", 10_000)
        seconds = float(rng.uniform(0.0, 0.2)) if trial % 2 else None
        n_found += killed_in_a_write(process, tmp_path, seconds)
        names = [period.name for period in History.load(path).periods]
        own = [name for name in names if name.startswith(f"t{trial}-")]
        assert own == [f"t{trial}-{i}" for i in range(len(own))]
        assert len(names) == n_before + len(own)
        if len(names) > 2 * N_PERIODS:  # the file must not become slow
            History("fit", Count(1000, 50)).add(old).save(path, overwrite=True)
        n_before = len(History.load(path).periods)
    History.update_file(path, lambda history: history)  # what the killed ones have left is no harm
    assert os.listdir(tmp_path) == ["h.json"]


def killed_in_a_write(process, folder, seconds):
    """Whether a process that is killed `seconds` after its first write was writing again.

    Without `seconds`, it is killed as soon as it seems to write.
    """
    moment = (folder / "h.json").stat().st_mtime_ns
    while (folder / "h.json").stat().st_mtime_ns == moment:
        assert process.poll() is None
        time.sleep(0.001)
    while seconds is None and not parts(folder):
        pass
    time.sleep(seconds or 0.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    return bool(parts(folder))


def parts(folder):
    """Unfinished files; the next process that writes removes those of its predecessors."""
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def test_a_lock_ends_with_its_process_and_nobody_waits_for_ever(tmp_path, monkeypatch):
    path = tmp_path / "h.json"
    hold = "import sys, time\nfrom gammagmm._support.files import locked\n"
    hold += "with locked(sys.argv[1]):\n    print('locked', flush=True)\n    time.sleep(60)\n"
    command = [sys.executable, "-P", "-c", hold, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"locked"
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.2)
    with pytest.raises(HistoryError) as caught:
        History.update_file(path, lambda history: History("fit", Count(10, 1)))
    assert str(path) in caught.value.what
    process.kill()
    process.communicate()
    History.update_file(path, lambda history: History("fit", Count(10, 1)))
    assert os.listdir(tmp_path) == ["h.json"]


@needs_posix
def test_a_link_to_a_history_is_the_history(tmp_path):
    path, link = tmp_path / "h.json", tmp_path / "link.json"
    History("fit", Count(1000, 50)).save(path)
    link.symlink_to(path)
    for name, place in (("a", link), ("b", path), ("c", link)):
        new = Period(name, Count(100, 5), {}, name)
        History.update_file(place, lambda history, new=new: history.add([new]))
    assert link.is_symlink()
    assert [period.name for period in History.load(path).periods] == ["a", "b", "c"]


def test_parts_of_another_history_are_left(tmp_path):
    path, other = tmp_path / "a", tmp_path / ".a.b.12-0a1b2c3d.part"
    other.write_text("another process writes it")
    (tmp_path / ".a.12-0a1b2c3d.part").write_text("a killed process has left it")
    History.update_file(path, lambda history: History("fit", Count(10, 1)))
    assert sorted(os.listdir(tmp_path)) == [other.name, "a"]


def test_a_change_that_is_refused_changes_nothing(tmp_path):
    path = tmp_path / "h.json"
    History("fit", Count(10, 1)).save(path)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        History.update_file(path, lambda history: 1 / 0)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["h.json"])
    path.write_text("{")
    with pytest.raises(SavedFileError):
        History.update_file(path, lambda history: history)
    assert path.read_text() == "{"


def test_a_folder_that_cannot_be_written_is_an_error_at_once(tmp_path):
    with pytest.raises(OSError, match=r"h\.json"), locked(Path(tmp_path, "no folder", "h.json")):
        pass
