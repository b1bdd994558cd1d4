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
from gammagmm._support import platform
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
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
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
def _restored_handlers():
    numbers = [getattr(signal, n) for n in platform.ENDING_SIGNALS if hasattr(signal, n)]
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def wait_until(condition):
    start = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - start < 60.0
        time.sleep(0.01)
    return found


@pytest.mark.usefixtures("_each_platform")
class TestProcesses:
    @pytest.mark.parametrize("code", [0, 3])
    def test_the_exit_code_comes_back(self, code):
        command = [sys.executable, "-c", f"raise SystemExit({code})"]
        assert platform.wait_for(platform.start_group(command, os.environ)) == code

    def test_the_environment_is_passed_on(self):
        code = "import os; raise SystemExit(os.environ['GAMMAGMM_TEST'] != 'x')"
        environment = os.environ | {"GAMMAGMM_TEST": "x"}
        process = platform.start_group([sys.executable, "-c", code], environment)
        assert platform.wait_for(process) == 0

    def test_a_process_that_sleeps_is_ended(self):
        process = platform.start_group(SLEEP, os.environ)
        assert is_running(process.pid)
        platform.kill_group(process)
        assert process.returncode != 0
        assert not is_running(process.pid)

    def test_a_process_that_has_ended_may_be_killed(self):
        process = platform.start_group([sys.executable, "-c", ""], os.environ)
        assert platform.wait_for(process) == 0
        platform.kill_group(process)
        assert process.returncode == 0

    @pytest.mark.usefixtures("_restored_handlers")
    def test_a_signal_interrupts_the_wait(self):
        platform.interrupt_on_ending_signals()
        process = platform.start_group(SLEEP, os.environ)
        sender = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            platform.wait_for(process)
        platform.kill_group(process)
        assert not is_running(process.pid)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_what_the_process_started_is_ended_as_well(tmp_path, capfd):
    process = platform.start_group([sys.executable, "-c", FAMILY], os.environ)
    child = int(wait_until(lambda: capfd.readouterr().out))
    assert is_running(child)
    platform.kill_group(process)
    wait_until(lambda: not is_running(child))


@pytest.mark.skipif(os.name == "nt", reason="Windows has a taskkill of its own")
def test_without_groups_the_tree_of_processes_is_ended(tmp_path, monkeypatch):
    command = tmp_path / "taskkill"
    command.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nkill -9 "$2"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    process = platform.start_group(SLEEP, os.environ)
    remove_names(monkeypatch)
    platform.kill_group(process)
    assert (tmp_path / "arguments").read_text() == f"/PID {process.pid} /T /F\n"
    assert not is_running(process.pid)


@pytest.mark.usefixtures("_restored_handlers")
def test_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    platform.interrupt_on_ending_signals()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.usefixtures("_each_platform", "_restored_handlers")
def test_run_supervised(capfd):
    assert supervisor.run_supervised(["--help"], []) == 0
    assert "Exit codes" in capfd.readouterr().out
    assert supervisor.run_supervised(["estimate", "nowhere.csv"], []) == 2


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
            ("estimate", "rows.npy", "--timeout", "600", "--jobs", "2", "--labels", "labels.csv"),
            pytest.param(("inspect", "rows.npy", "--jobs", "1"), marks=pytest.mark.long),
        ],
        ids=["estimate", "inspect"],
    )
    def test_estimate_and_inspect(self, arguments, environment, table, tmp_path):
        quick = ("--detectors", "KNN,LOF", "--runs", "2")
        process = self.start(*arguments, *quick, env=environment, cwd=tmp_path)
        _, error = process.communicate()
        assert (process.returncode, error) == (0, "")

    @pytest.mark.long
    def test_demo(self, environment, tmp_path):
        process = self.start("demo", "--jobs", "1", env=environment, cwd=tmp_path)
        printed, error = process.communicate()
        assert (process.returncode, error) == (0, "")
        assert "10 of 367 rows" in printed

    def test_ctrl_c_ends_the_work_and_leaves_no_part(self, environment, tmp_path):
        arguments = ("estimate", "-", "--labels", "labels.csv")  # it waits for its input
        process = self.start(*arguments, env=environment, cwd=tmp_path)
        [worker] = wait_until(lambda: psutil.Process(process.pid).children())
        part = tmp_path / f".labels.csv.{worker.pid}-0a1b.part"
        part.write_text("half a")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode == supervisor.INTERRUPTED
        assert not is_running(worker.pid)
        assert not part.exists()
