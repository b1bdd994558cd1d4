"""Work in a process of its own: results, exceptions, deaths, and time limits."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures.process import BrokenProcessPool

import pytest
from threadpoolctl import threadpool_info

from gammagmm._support.processes import OutOfTimeError, one_thread, run_alone


def set_variable(value):
    os.environ["GAMMAGMM_TEST"] = value
    return os.getpid()


def raise_timeout():
    raise TimeoutError("the server did not answer")


def write_pid_and_sleep(path):
    path.write_text(str(os.getpid()))
    time.sleep(60)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def blas_threads():
    return {library["num_threads"] for library in threadpool_info()}


class TestRunAlone:
    def test_state_stays_in_the_other_process(self):
        pid = run_alone(set_variable, "x")
        assert pid != os.getpid()
        assert "GAMMAGMM_TEST" not in os.environ
        assert not is_running(pid)

    def test_functions_of_no_module(self):
        factor = 3
        assert run_alone(lambda x: factor * x, 14) == 42

    def test_exceptions_pass_with_their_place(self):
        with pytest.raises(TimeoutError) as caught:
            run_alone(raise_timeout)
        assert "in raise_timeout" in str(caught.value.__cause__)

    def test_death(self):
        with pytest.raises(BrokenProcessPool):
            run_alone(os._exit, 7)

    def test_out_of_time(self, tmp_path):
        path = tmp_path / "pid"
        start = time.monotonic()
        with pytest.raises(OutOfTimeError, match=r"no result after 1.0 s"):
            run_alone(write_pid_and_sleep, path, timeout=1.0)
        assert time.monotonic() - start < 50.0
        assert not is_running(int(path.read_text()))

    def test_starting_up_is_not_timed(self):
        assert run_alone(divmod, 7, 2, timeout=0.2) == (3, 1)

    def test_a_timeout_of_the_functions_own_is_none_of_ours(self):
        with pytest.raises(TimeoutError, match="the server did not answer") as caught:
            run_alone(raise_timeout, timeout=30.0)
        assert not isinstance(caught.value, OutOfTimeError)

    def test_killed_from_outside(self, killed_pid):
        with pytest.raises(BrokenProcessPool):
            run_alone(write_pid_and_sleep, killed_pid)


class TestOneThread:
    def test_main_thread(self):
        before = blas_threads()
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before

    def test_other_threads_leave_the_process_alone(self):
        seen = []
        before = blas_threads()

        def look():
            with one_thread():
                seen.append(blas_threads())

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [before]
