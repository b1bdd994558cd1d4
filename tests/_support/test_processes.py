"""Work in processes of their own: results, exceptions, deaths, time limits and deadlines."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import psutil
import pytest
from threadpoolctl import threadpool_info

from gammagmm._support.processes import (
    NEVER,
    Deadline,
    OutOfTimeError,
    one_thread,
    run_alone,
    run_until,
)


def set_variable(value):
    os.environ["GAMMAGMM_TEST"] = value
    return os.getpid()


def raise_timeout():
    raise TimeoutError("the server did not answer")


def write_pid_and_sleep(path):
    path.write_text(str(os.getpid()))
    time.sleep(60)


def sleep(seconds, shared):
    time.sleep(seconds)


class SlowToLoad:
    """Takes 2.5 s to unpickle."""

    def __reduce__(self):
        return time.sleep, (2.5,)


def children():
    """Processes that work for this one; loky's resource tracker stays until its end."""
    found = psutil.process_iter(["pid", "ppid", "status", "cmdline"])
    mine = [p.info for p in found if p.info["ppid"] == os.getpid() and p.info["status"] != "zombie"]
    return {p["pid"] for p in mine if "resource_tracker" not in " ".join(p["cmdline"] or [])}


def blas_threads():
    return {library["num_threads"] for library in threadpool_info()}


class TestDeadline:
    def test_never(self):
        assert Deadline.after(None) is NEVER
        assert not NEVER.is_over
        assert NEVER.left() is None
        assert NEVER.left(3.0) == 3.0
        assert NEVER.left(1e10) == threading.TIMEOUT_MAX

    def test_to_come(self):
        deadline = Deadline.after(1000.0)
        deadline.check()
        assert 900.0 < deadline.left() <= 1000.0
        assert deadline.left(3.0) == 3.0
        assert Deadline.after(1e10).left() == threading.TIMEOUT_MAX

    def test_over(self):
        deadline = Deadline.after(1e-9)
        assert deadline.is_over
        assert deadline.left(3.0) == 0.0
        with pytest.raises(OutOfTimeError, match=r"timeout=1e-09 s is over"):
            deadline.check()


class TestRunAlone:
    def test_state_stays_in_the_other_process(self):
        pid = run_alone(set_variable, "x")
        assert pid != os.getpid()
        assert "GAMMAGMM_TEST" not in os.environ
        assert not psutil.pid_exists(pid)

    def test_functions_without_a_module(self):
        factor = 3
        assert run_alone(lambda x: factor * x, 14) == 42

    def test_exceptions_keep_their_traceback(self):
        with pytest.raises(TimeoutError) as caught:
            run_alone(raise_timeout)
        assert "in raise_timeout" in str(caught.value.__cause__)

    def test_death(self):
        with pytest.raises(BrokenProcessPool):
            run_alone(os._exit, 7)

    def test_out_of_time(self):
        before = children()
        with pytest.raises(OutOfTimeError, match=r"no result after 1.0 s"):
            run_alone(time.sleep, 600.0, timeout=1.0)
        assert children() <= before

    def test_starting_up_is_not_timed(self):
        assert run_alone(divmod, 7, 2, timeout=2.0, preload=SlowToLoad()) == (3, 1)

    def test_a_timeout_that_the_function_raises_is_passed_on(self):
        with pytest.raises(TimeoutError, match="the server did not answer") as caught:
            run_alone(raise_timeout, timeout=30.0)
        assert not isinstance(caught.value, OutOfTimeError)

    def test_killed_from_outside(self, killed_pid):
        with pytest.raises(BrokenProcessPool):
            run_alone(write_pid_and_sleep, killed_pid)


class Inline:
    """An executor that does its calls at once, and whose deadline is over when they are done."""

    def __init__(self, deadline):
        self.deadline = deadline

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        object.__setattr__(self.deadline, "moment", 0.0)
        return future

    def shutdown(self, kill_workers):
        pass


class TestRunUntil:
    @pytest.mark.parametrize("n_workers", [1, 2])
    def test_results(self, n_workers):
        found = run_until(Deadline.after(600.0), n_workers, np.multiply, range(5), np.ones(3))
        assert sorted(row[0] for row in found) == [0, 1, 2, 3, 4]

    def test_processes_are_ended_and_nothing_is_printed(self, capfd):
        before = children()
        for timeout in (0.001, 0.01, 0.1, 1.0):
            tasks = [600.0, 601.0, 602.0]
            assert list(run_until(Deadline.after(timeout), 2, sleep, tasks, None)) == []
        assert children() <= before
        assert capfd.readouterr() == ("", "")

    def test_results_from_before_the_deadline_count_after_it(self, monkeypatch):
        deadline = Deadline.after(3600.0)
        monkeypatch.setattr("gammagmm._support.processes._shared", [10])
        monkeypatch.setattr(
            "gammagmm._support.processes._new_processes", lambda *_, **__: Inline(deadline)
        )
        assert sorted(run_until(deadline, 2, pow, [2, 3, 4], None)) == [1024, 59049]


@pytest.mark.usefixtures("two_threads")
class TestOneThread:
    def test_main_thread(self):
        before = blas_threads()
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before

    def test_other_threads_do_not_change_the_process(self):
        seen = []
        before = blas_threads()

        def look():
            with one_thread():
                seen.append(blas_threads())

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [before]
