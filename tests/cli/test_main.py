"""The command ``gammagmm``: help, errors, exit codes, the small commands, Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import typer

import gammagmm as package
from gammagmm import GammaPosterior
from gammagmm.cli.main import SEE_HELP, _print_interrupted, _short_errors, _show_cursor
from gammagmm.cli.supervisor import MARKER
from gammagmm.errors import ClusterError, FitTimeoutError, TableError
from tests.support.command_line import COMMAND, gammagmm, gammagmm_here


def test_help_lists_the_exit_codes():
    done = gammagmm("--help")
    words = " ".join(done.stdout.split()).replace("│ ", "")
    assert "Exit codes: 0 success, 1 internal error, 2 invalid input or usage" in words
    assert "3 the interval lies above --fail-above, 4 the Dask cluster is lost" in words
    assert "--install-completion" in done.stdout


def test_without_a_command_the_help_is_shown():
    done = gammagmm_here()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == gammagmm_here("--help").stdout


def test_version():
    assert gammagmm_here("--version").stdout == f"gammagmm {package.__version__}\n"
    assert package.__version__ == version("gammagmm")


@pytest.mark.parametrize(("is_terminal", "written"), [(True, "\x1b[?25h"), (False, "")])
def test_the_cursor_is_shown_again_after_an_interruption(is_terminal, written, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    _show_cursor()
    assert stream.getvalue() == written


def test_the_line_after_an_interruption_names_the_files_that_were_written(capsys):
    _print_interrupted([Path("labels.csv"), Path("a\nb.html")])
    _print_interrupted([])
    assert capsys.readouterr().err.splitlines() == [
        "gammagmm: interrupted; files written: labels.csv, a\\nb.html.",
        "gammagmm: interrupted; nothing was written.",
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["estimate", "--help"], 0),
        (["estimate", "nowhere.csv"], 2),
        (["estimate", "gap.csv", "--strict"], 2),
        (["label", "gap.csv", "--strict"], 2),
        (["estimate", "gap.csv", "--engine", "dask", "--report", "report.doc"], 2),
        (["compare", "gap.csv", "gap.csv", "--picture", "gap.doc"], 2),
    ],
)
def test_help_and_refusals_import_nothing_slow(arguments, code, tmp_path):
    (tmp_path / "gap.csv").write_text("a,b\n1,2\n3,\n4,5\n")
    heavy = {"sklearn", "scipy", "pyod", "numba", "matplotlib", "pandas", "joblib", "dask", "torch"}
    lines = [
        "import sys",
        "from gammagmm.cli.main import main",
        "try:",
        "    main()",
        "except SystemExit as ended:",
        f"    print(ended.code, sorted({heavy!r} & set(sys.modules)))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *arguments],
        cwd=tmp_path,
        env=os.environ | {MARKER: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"{code} []", done.stderr


def test_unknown_commands_and_options_are_two_lines():
    wrong = (["estimat"], ["estimate"], ["estimate", "rows.csv", "--colour", "red"])
    for run, arguments in zip((gammagmm, gammagmm_here, gammagmm_here), wrong, strict=True):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        what, todo = done.stderr.splitlines()
        assert what.startswith("gammagmm: ")
        assert todo == "  Run gammagmm COMMAND --help to see the options."


def raising(error):
    with pytest.raises(typer.Exit) as ended, _short_errors(debug=False):
        raise error
    return ended.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (
            TableError("a. B c, 'No. 1'", "Do D. Do E."),
            2,
            ["gammagmm: a. B c, 'No. 1'.", "  Do D. Do E."],
        ),
        (ClusterError("lost", "Start it."), 4, ["gammagmm: lost.", "  Start it."]),
        (FitTimeoutError("late", "Wait."), 5, ["gammagmm: late.", "  Wait."]),
        (
            ValueError("p0 must be X. Got Y."),
            2,
            ["gammagmm: p0 must be X. Got Y.", f"  {SEE_HELP}"],
        ),
        (
            OSError(28, "No space left on device", "labels.csv"),
            2,
            [
                "gammagmm: labels.csv: No space left on device.",
                "  Check the path and the free disk space.",
            ],
        ),
        (
            ZeroDivisionError("division by zero"),
            1,
            [
                "gammagmm: internal error: ZeroDivisionError: division by zero.",
                "  Run the command again with --debug and report the output.",
            ],
        ),
    ],
)
def test_an_error_is_two_lines_and_an_exit_code(error, code, lines, capsys):
    assert raising(error) == code
    assert capsys.readouterr().err.splitlines() == lines
    with pytest.raises(type(error)), _short_errors(debug=True):
        raise error


def test_modules_in_the_working_directory_are_not_run(tmp_path):
    (tmp_path / "secrets.py").write_text("raise SystemExit(9)")
    done = gammagmm("estimate", "nowhere.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("gammagmm: nowhere.csv does not exist")


def test_debug_shows_the_traceback(tmp_path):
    (tmp_path / "empty.csv").touch()
    done = gammagmm("estimate", "empty.csv", "--debug", cwd=tmp_path)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "NoRowsError" in done.stderr


def test_compare_gives_the_probability_that_b_exceeds_a(fitted, tmp_path):
    labelled = replace(fitted.posterior_, n_labels=30)
    labelled.save(tmp_path / "a.json")
    labelled.given(low=0.05).save(tmp_path / "b.json")
    done = gammagmm("compare", "a.json", "b.json", "--picture", "pair.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^A  a\.json +{labelled.mean:.1%} .* 30$", done.stdout, re.MULTILINE)
    assert "The share in B exceeds that in A with probability" in done.stdout
    assert (tmp_path / "pair.png").read_bytes().startswith(b"\x89PNG")
    answer = json.loads(gammagmm_here("compare", "a.json", "b.json", "--json", cwd=tmp_path).stdout)
    a, b = (GammaPosterior.load(tmp_path / name) for name in ("a.json", "b.json"))
    n = 400_000
    first, second = a.sample(n, 1), b.sample(n, 2)
    share = np.mean(second > first)
    error = 4 * np.sqrt(share * (1 - share) / n)
    assert answer["prob_b_above_a"] == pytest.approx(share, abs=error + 1e-4)
    done = gammagmm_here("compare", "a.json", "pair.png", cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(r"pair\.png cannot be read as a posterior", done.stderr)


def test_info_lists_versions_and_extras():
    done = gammagmm("info")
    assert re.search(rf"^numpy +{re.escape(np.__version__)}$", done.stdout, re.MULTILINE)
    found = json.loads(gammagmm_here("info", "--json").stdout)
    assert set(found) >= {"gammagmm", "numba", "narwhals", "pandas", "polars", "torch", "GPU"}


def test_the_demo_writes_a_report(tmp_path):
    done = gammagmm("demo", "--report", "report.html", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        "By the known labels, which the method did not use, 10 of 367 rows are anomalies."
        in done.stdout
    )
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


AS_A_TERMINAL_STARTS_IT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Ctrl-C is neither ignored nor blocked, whatever it is where the tests run."""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_ctrl_c_ends_the_work_and_leaves_no_file(tmp_path):
    # LSCP is in a compiled loop for long.
    rows = np.random.default_rng(0).normal(size=(20_000, 10))
    np.save(tmp_path / "rows.npy", rows)
    outputs = ("--out", "labels.csv", "--report", "report.html")
    command = [COMMAND, "estimate", "rows.npy", "--detectors", "LSCP,KNN", "--jobs", "1", *outputs]
    start = [sys.executable, "-c", AS_A_TERMINAL_STARTS_IT]
    process = subprocess.Popen([*start, *command], cwd=tmp_path, stderr=subprocess.PIPE)
    time.sleep(5.0)  # into the loop
    workers = children_of(process.pid)
    [work] = [w for w in workers if b"gammagmm.cli.main" in Path(f"/proc/{w}/cmdline").read_bytes()]
    begun = tmp_path / f".labels.csv.{work}-0a1b.part"
    begun.write_text("half a")
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert not any(map(is_alive, workers))
    assert os.listdir(tmp_path) == ["rows.npy"]
    assert told.decode().splitlines()[-1] == "gammagmm: interrupted; nothing was written."
    assert b"Traceback" not in told
