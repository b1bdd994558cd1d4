"""Commands and process groups on this platform, and with the names that Windows lacks removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import gammagmm
from gammagmm._support.platform import run_group
from gammagmm.cli import supervisor
from gammagmm.datasets import make_contaminated

MISSING = {
    os: ("fork", "forkpty", "getpgid", "killpg", "setpgid", "setsid"),
    signal: ("SIGALRM", "SIGHUP", "pthread_kill", "pthread_sigmask", "setitimer"),
}
"""Names that Windows lacks. The standard library itself uses SIGKILL and waitpid here."""

WITHOUT = f"""
import os, signal, sys
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for name in {MISSING[os]}:
    if hasattr(os, name):
        delattr(os, name)
for name in {MISSING[signal]}:
    if hasattr(signal, name):
        delattr(signal, name)
"""
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open(sys.argv[1], "w") as file:
    file.write(str(child.pid))
time.sleep(60)
"""


@pytest.fixture(params=["as it is", "without the names"])
def _each_platform(request, monkeypatch):
    if request.param != "as it is":
        remove_names(monkeypatch)


def remove_names(monkeypatch):
    for module, names in MISSING.items():
        for name in names:
            monkeypatch.delattr(module, name, raising=False)


@pytest.fixture
def send_later():
    """Function that sends this process a signal as soon as a condition holds."""
    threads = []

    def start(number, condition=lambda: True):
        def send():
            wait_until(condition)
            time.sleep(0.3)
            signal.raise_signal(number) if os.name == "nt" else os.kill(os.getpid(), number)

        threads.append(threading.Thread(target=send))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def worker_of(pid):
    """The process that does the work of a command; the other child of the command is its guard."""
    children = {child: child.cmdline() for child in psutil.Process(pid).children()}
    if not any("-I" in words for words in children.values()):  # it has not started yet
        return None
    return next((c for c, words in children.items() if "gammagmm.cli.main" in words), None)


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition):
    start = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - start < 60.0
        time.sleep(0.01)
    return found


@pytest.mark.usefixtures("_each_platform")
class TestRunGroup:
    @pytest.mark.parametrize("code", [0, 3])
    def test_exit_code(self, code):
        ended = run_group([sys.executable, "-c", f"raise SystemExit({code})"], os.environ)
        assert (ended.code, ended.is_interrupted) == (code, False)
        assert not is_running(ended.pid)

    def test_environment(self):
        code = "import os; raise SystemExit(os.environ['GAMMAGMM_TEST'] != 'x')"
        environment = os.environ | {"GAMMAGMM_TEST": "x"}
        assert run_group([sys.executable, "-c", code], environment).code == 0

    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
    def test_a_signal_ends_a_process_that_sleeps(self, name, send_later):
        number = getattr(signal, name)
        before = signal.signal(number, signal.default_int_handler)  # a shell may ignore Ctrl-C
        send_later(number)
        ended = run_group(SLEEP, os.environ)
        assert ended.is_interrupted
        assert ended.code != 0
        assert not is_running(ended.pid)
        assert signal.signal(number, before) is signal.default_int_handler

    def test_a_signal_while_the_process_starts(self, monkeypatch):
        class Interrupted(subprocess.Popen):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                signal.raise_signal(signal.SIGTERM)

        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", Interrupted)
            ended = run_group(SLEEP, os.environ)
        assert ended.is_interrupted
        assert not is_running(ended.pid)

    def test_an_ignored_signal_stays_ignored(self, send_later):
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            send_later(signal.SIGTERM)
            ended = run_group([sys.executable, "-c", "import time; time.sleep(2)"], os.environ)
        finally:
            signal.signal(signal.SIGTERM, before)
        assert (ended.code, ended.is_interrupted) == (0, False)

    def test_run_supervised(self, capfd):
        assert supervisor.run_supervised(["--help"], []).code == 0
        assert "Exit codes" in capfd.readouterr().out
        assert supervisor.run_supervised(["estimate", "nowhere.csv"], []).code == 2


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_what_the_process_started_is_ended_as_well(tmp_path, send_later):
    path = tmp_path / "pid"
    send_later(signal.SIGTERM, lambda: path.exists() and path.read_text())
    run_group([sys.executable, "-c", FAMILY, str(path)], os.environ)
    wait_until(lambda: not is_running(int(path.read_text())))


@pytest.mark.skipif(os.name == "nt", reason="Windows has a taskkill of its own")
def test_without_groups_the_tree_of_processes_is_ended(tmp_path, monkeypatch, send_later):
    command = tmp_path / "taskkill"
    command.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nkill -9 "$2"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    remove_names(monkeypatch)
    send_later(signal.SIGTERM)
    ended = run_group(SLEEP, os.environ)
    assert (tmp_path / "arguments").read_text() == f"/PID {ended.pid} /T /F\n"
    assert ended.is_interrupted
    assert not is_running(ended.pid)


class TestCommands:
    """The names are missing in the command, in the process that works and in its workers."""

    @pytest.fixture
    def environment(self, tmp_path):
        (tmp_path / "sitecustomize.py").write_text(WITHOUT)
        folders = (tmp_path, Path(gammagmm.__file__).parents[1])
        return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}

    @pytest.fixture
    def table(self, tmp_path):
        rows = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
        np.save(tmp_path / "rows.npy", rows)
        return "rows.npy"

    def start(self, *arguments, **options):
        command = [sys.executable, "-m", "gammagmm.cli.main", *arguments]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(command, text=True, **pipes, **options)

    def test_the_names_are_missing(self, environment):
        code = (
            "import os, signal; raise SystemExit(hasattr(os, 'fork') + hasattr(signal, 'SIGHUP'))"
        )
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
        assert done.returncode == 0

    @pytest.mark.parametrize(
        "arguments",
        [
            ("estimate", "rows.npy", "--timeout", "600", "--jobs", "2", "--out", "labels.csv"),
            pytest.param(
                ("label", "--sheet-only", "rows.npy", "--jobs", "1"), marks=pytest.mark.long
            ),
        ],
        ids=["estimate", "label"],
    )
    def test_estimate_and_inspect(self, arguments, environment, table, tmp_path):
        quick = ("--detectors", "KNN,LOF", "--runs", "2")
        process = self.start(*arguments, *quick, env=environment, cwd=tmp_path)
        _, error = process.communicate()
        warned = [line for line in error.splitlines() if "starts had no solution" not in line]
        assert (process.returncode, warned) == (0, [])

    @pytest.mark.long
    def test_demo(self, environment, tmp_path):
        process = self.start("demo", "--jobs", "1", env=environment, cwd=tmp_path)
        printed, error = process.communicate()
        assert (process.returncode, error) == (0, "")
        assert "10 of 367 rows" in printed

    def test_a_signal_ends_the_work_and_leaves_no_part(self, environment, tmp_path):
        arguments = ("estimate", "-", "--out", "labels.csv")  # it waits for its input
        process = self.start(*arguments, env=environment, cwd=tmp_path)
        worker = wait_until(lambda: worker_of(process.pid))
        part = tmp_path / f".labels.csv.{worker.pid}-0a1b.part"
        part.write_text("half a")
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == supervisor.INTERRUPTED
        assert not is_running(worker.pid)
        assert not part.exists()
