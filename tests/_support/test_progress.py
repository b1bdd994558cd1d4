"""Progress: what the callback hears, and what standard error shows."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from gammagmm._support.progress import check_progress, progress_bars, tell


class Terminal(io.StringIO):
    """Standard error of a terminal, which keeps what is written."""

    def isatty(self):
        return True

    @property
    def lines(self):
        """What was drawn, without the sequences that colour it and move the cursor."""
        return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()))


@pytest.fixture
def open_terminal(monkeypatch):
    """Function that makes standard error a terminal; pytest replaces what a fixture sets."""

    def open_here():
        monkeypatch.setenv("TERM", "xterm")
        for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return open_here


def fit_two(progress):
    for name, status in (("KNN", "ok"), ("LOF", "failed")):
        progress(name, "started", 0.0)
        progress(name, status, 1.0)


class TestTell:
    def test_callback_alone_writes_nothing(self, capsys):
        heard = []
        with tell(lambda *event: heard.append(event), 0, "detectors", 1) as progress:
            progress("KNN", "started", 0.0)
            progress("KNN", "ok", 1.5)
        assert heard == [("KNN", "started", 0.0), ("KNN", "ok", 1.5)]
        assert capsys.readouterr() == ("", "")

    def test_without_a_callback_nothing_is_written(self, capsys):
        with tell(None, 0, "detectors", 1) as progress:
            progress("KNN", "started", 0.0)
        assert capsys.readouterr() == ("", "")

    def test_bar_on_standard_error_and_callback(self, open_terminal, capsys):
        terminal = open_terminal()
        heard = []
        with tell(lambda *event: heard.append(event), 1, "detectors", 2) as progress:
            fit_two(progress)
        assert capsys.readouterr().out == ""
        assert re.search(r"^detectors ━+ 100% 0:00:0\d 0:00:00$", terminal.lines[-2])
        assert len(heard) == 4

    def test_the_bar_names_what_is_under_way(self, open_terminal):
        terminal = open_terminal()
        with tell(None, 1, "detectors", 3) as progress:
            progress("LOF", "started", 0.0)
            progress("KNN[red]\x1b[1m", "started", 0.0)
            wait_for(terminal, "detectors: KNN[red]\\x1b[1m, LOF ━")
            progress("LOF", "ok", 1.0)
            wait_for(terminal, "detectors: KNN[red]\\x1b[1m ━")

    def test_runs_that_start_again_are_named(self, open_terminal):
        terminal = open_terminal()
        with tell(None, 1, "mixtures", 1) as progress:
            progress("run 1", "unsolved", 1.0)
            progress("run 1", "started", 0.0)
            wait_for(terminal, "mixtures: run 1 again ━")

    def test_lines_where_there_is_no_terminal(self, capsys):
        with tell(None, 1, "detectors", 2) as progress:
            fit_two(progress)
        with tell(None, 1, "mixtures", 1) as progress:
            progress("run 1", "unsolved", 2.0)
            progress("run 1", "started", 0.0)
        assert capsys.readouterr() == (
            "",
            "detectors 1/2: KNN ok, 1.0 s\n"
            "detectors 2/2: LOF failed, 1.0 s\n"
            "mixtures 1/1: run 1 unsolved, 2.0 s\n"
            "mixtures: run 1 again\n",
        )

    def test_without_standard_error_nothing_is_shown(self, monkeypatch, capsys):
        monkeypatch.setattr(sys, "stderr", None)
        with tell(None, 1, "detectors", 2) as progress:
            fit_two(progress)
        assert capsys.readouterr().out == ""

    def test_what_the_user_prints_stays_on_standard_output(self, open_terminal, capsys):
        open_terminal()
        with tell(lambda name, *_: sys.stdout.write(f"{name}\n"), 1, "detectors", 2) as progress:
            fit_two(progress)
        assert capsys.readouterr().out == "KNN\nKNN\nLOF\nLOF\n"


def wait_for(terminal, words):
    """Wait until the bar, which is drawn ten times a second, shows `words`."""
    start = time.monotonic()
    while not any(words in line for line in terminal.lines):
        assert time.monotonic() - start < 30.0, terminal.lines
        time.sleep(0.02)


class TestCommandLine:
    def test_two_bars_with_the_time_left(self, open_terminal):
        terminal = open_terminal()
        with progress_bars({"detectors": 2, "mixtures": 1}) as progress:
            fit_two(progress)
            progress("run 1", "ok", 1.0)
            wait_for(terminal, "detectors ━")
            wait_for(terminal, "mixtures  ━")
        assert any("100% 0:00:00 0:00:00" in line for line in terminal.lines)

    def test_blocks_and_steps_of_unknown_length(self, open_terminal):
        terminal = open_terminal()
        with progress_bars({"labels": 4}) as progress:
            progress("block 1", "written", 1.0)
            wait_for(terminal, " 25% ")
        with progress_bars({"report": None}):
            wait_for(terminal, "report ━")

    @pytest.mark.parametrize("quiet", [True, False])
    def test_without_a_terminal_or_when_quiet_nothing_is_shown(self, quiet, open_terminal, capsys):
        shown = open_terminal() if quiet else io.StringIO()
        with progress_bars({"detectors": 2, "mixtures": 1}, quiet) as progress:
            assert progress is None
        assert shown.getvalue() == ""
        assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [3, "bar"])
def test_progress_must_be_callable(progress):
    with pytest.raises(TypeError, match=r"progress must be True, False or a function, got"):
        check_progress(progress)
    check_progress(None)
    check_progress(print)
