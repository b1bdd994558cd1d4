"""Progress: what the callback hears, and what standard error shows."""

from __future__ import annotations

import io
import re
import sys
import time
import types

import pytest

from gammagmm._support.progress import Work, check_progress, progress_bar, tell
from tests.support.command_line import on_terminal
from tests.support.needs import needs_posix

SHORT = {"KNN": 1.0, "LOF": 2.0, "run 1": 1.0}
BLOCKS = {f"block {i}": 0.0 for i in range(1, 5)}
LONG = {"KNN": 300.0, "LOF": 600.0, "run 1": 300.0}


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
        with tell(lambda *event: heard.append(event), False, SHORT) as progress:
            progress("KNN", "started", 0.0)
            progress("KNN", "ok", 1.5)
        assert heard == [("KNN", "started", 0.0), ("KNN", "ok", 1.5)]
        assert capsys.readouterr() == ("", "")

    def test_without_a_callback_nothing_is_written(self, capsys):
        with tell(None, False, SHORT) as progress:
            progress("KNN", "started", 0.0)
        assert capsys.readouterr() == ("", "")

    def test_bar_on_standard_error_and_callback(self, open_terminal, capsys):
        terminal = open_terminal()
        heard = []
        with tell(lambda *event: heard.append(event), True, SHORT) as progress:
            fit_two(progress)
            progress("run 1", "solved", 1.0)
        assert capsys.readouterr().out == ""
        assert re.search(r"^fit ━+ 100% *$", terminal.lines[-2])
        assert not any("left" in line for line in terminal.lines)
        assert len(heard) == 5

    def test_the_bar_names_what_is_under_way(self, open_terminal):
        terminal = open_terminal()
        with tell(None, True, SHORT) as progress:
            progress("LOF", "started", 0.0)
            progress("KNN[red]\x1b[1m", "started", 0.0)
            wait_for(terminal, "fit: KNN[red]\\x1b[1m, LOF ━")
            progress("LOF", "ok", 1.0)
            wait_for(terminal, "fit: KNN[red]\\x1b[1m ━")

    def test_runs_that_start_again_are_named(self, open_terminal):
        terminal = open_terminal()
        with tell(None, True, SHORT) as progress:
            progress("run 1", "unsolved", 1.0)
            progress("run 1", "started", 0.0)
            wait_for(terminal, "fit: run 1 ━")

    def test_lines_where_there_is_no_terminal(self, capsys):
        with tell(None, True, SHORT) as progress:
            fit_two(progress)
            progress("run 1", "unsolved", 2.0)
            progress("run 1", "started", 0.0)
            progress("run 1", "solved", 3.0)
        assert capsys.readouterr() == (
            "",
            "fit 1/3: KNN ok, 1.0 s\n"
            "fit 2/3: LOF failed, 1.0 s\n"
            "fit 3/3: run 1 unsolved, 2.0 s\n"
            "fit: run 1 again\n"
            "fit 3/3: run 1 solved, 3.0 s\n",
        )

    def test_without_standard_error_nothing_is_shown(self, monkeypatch, capsys):
        monkeypatch.setattr(sys, "stderr", None)
        with tell(None, True, SHORT) as progress:
            fit_two(progress)
        assert capsys.readouterr().out == ""

    def test_what_the_user_prints_stays_on_standard_output(self, open_terminal, capsys):
        open_terminal()
        with tell(lambda name, *_: sys.stdout.write(f"{name}\n"), True, SHORT) as progress:
            fit_two(progress)
        assert capsys.readouterr().out == "KNN\nKNN\nLOF\nLOF\n"


def wait_for(terminal, words):
    """Wait until the bar, which is drawn ten times a second, shows `words`."""
    start = time.monotonic()
    while not any(words in line for line in terminal.lines):
        assert time.monotonic() - start < 30.0, terminal.lines
        time.sleep(0.02)


class TestCommandLine:
    def test_one_bar_for_detectors_and_mixtures(self, open_terminal):
        terminal = open_terminal()
        with progress_bar("fit", SHORT) as progress:
            fit_two(progress)
            wait_for(terminal, " 75% ")
            progress("run 1", "ok", 1.0)
            wait_for(terminal, "100% ")

    def test_blocks_and_steps_of_unknown_length(self, open_terminal):
        terminal = open_terminal()
        with progress_bar("labels", BLOCKS) as progress:
            progress("block 1", "written", 1.0)
            wait_for(terminal, " 25% ")
        with progress_bar("report", {}):
            wait_for(terminal, "report ━")

    @pytest.mark.parametrize("quiet", [True, False])
    def test_without_a_terminal_or_when_quiet_nothing_is_shown(self, quiet, open_terminal, capsys):
        shown = open_terminal() if quiet else io.StringIO()
        with progress_bar("fit", SHORT, quiet) as progress:
            assert progress is None
        assert shown.getvalue() == ""
        assert capsys.readouterr() == ("", "")


@needs_posix
def test_the_seconds_left_of_a_long_fit_count_down_on_a_terminal():
    code = (
        "import time\n"
        "from gammagmm._support.progress import progress_bar\n"
        "with progress_bar('fit', {'KNN': 20.0, 'LOF': 40.0, 'run 1': 20.0}) as progress:\n"
        "    time.sleep(2.5)\n"
        "    progress('LOF', 'ok', 2.5)\n"
        "    time.sleep(0.5)\n"
    )
    shown = plain(on_terminal([sys.executable, "-c", code])[0])
    seconds = [int(found) for found in re.findall(r"(\d+) s left", shown)]
    assert seconds == sorted(seconds, reverse=True)
    assert len({left for left in seconds if 40 <= left <= 80}) > 1
    # Half is done in 2.5 s of 40 s: the rest is expected to be faster than before.
    assert seconds[-1] < 40
    assert "50%" in shown


def plain(shown):
    """What a terminal shows, without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


class TestWork:
    def test_the_share_that_is_done_is_that_of_the_expected_seconds(self):
        work = Work({"KNN": 30.0, "run 1": 5.0, "run 2": 5.0})
        assert (work.share, work.shows_time) == (0.0, True)
        work.hear("KNN", "ok")
        assert work.share == pytest.approx(0.75)
        work.hear("run 1", "solved")
        work.hear("run 1", "started")
        assert (work.share, work.at_work) == (pytest.approx(0.875), ["run 1"])

    @pytest.mark.parametrize(("took", "left"), [(30.0, 10.0), (60.0, 17.9), (3.0, 3.0)])
    def test_the_time_left_follows_what_was_done(self, took, left, monkeypatch):
        now = [1_000.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        work = Work({"KNN": 30.0, "run 1": 10.0})
        assert work.seconds_left() == 40.0
        now[0] += took
        work.hear("KNN", "ok")
        assert work.seconds_left() == pytest.approx(left, abs=0.2)
        now[0] += 1.0
        assert work.seconds_left() == pytest.approx(left - 1.0, abs=0.2)

    def test_a_short_work_has_no_time(self):
        work = Work({"KNN": 6.0, "run 1": 3.0})
        assert (work.shows_time, work.time_words()) == (False, "")
        assert Work({}).share is None


class Notebook:
    """As much of IPython as a kernel offers to the code of a cell; keeps what is displayed."""

    def __init__(self):
        self.kernel, self.shown = object(), []
        self.display = types.ModuleType("IPython.display")
        self.display.HTML = str
        self.display.display = self._display

    def get_ipython(self):
        return self

    def _display(self, html, display_id):
        self.shown.append([html])
        return types.SimpleNamespace(update=self.shown[-1].append)


def test_a_notebook_shows_one_bar(monkeypatch, capsys):
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    with tell(None, True, LONG) as progress:
        progress("<KNN>", "started", 0.0)
        fit_two(progress)
        progress("run 1", "solved", 1.0)
    (bar,) = notebook.shown
    shares = [float(re.search(r'value="([0-9.]+)"', html)[1]) for html in bar]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert sorted(shares) == shares
    assert {0.25, 0.75} <= set(shares)
    assert "&lt;KNN&gt;" in bar[1]
    assert "20 min left" in bar[0]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [3, "bar"])
def test_progress_must_be_callable(progress):
    with pytest.raises(TypeError, match=r"progress must be True, False or a function, got"):
        check_progress(progress)
    check_progress(None)
    check_progress(print)
