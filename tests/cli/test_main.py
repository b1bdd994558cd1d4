"""The command line, through the real command."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gammagmm import GammaGMM, GammaPosterior
from gammagmm.datasets import make_contaminated

COMMAND = str(Path(sys.executable).with_name("gammagmm"))
QUICK = ("--detectors", "KNN,LOF", "--runs", "2", "--jobs", "1")
NAMES = ("width", "height", "depth", "mass")


def gammagmm(*arguments, cwd=None, stdin=None):
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, input=stdin)


def write_csv(path, columns):
    """A CSV file of named columns."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def data():
    return make_contaminated(300, 4, 0.05, "clustered", random_state=2)


@pytest.fixture(scope="module")
def columns(data):
    return {name: column.tolist() for name, column in zip(NAMES, data.X.T, strict=True)}


@pytest.fixture(scope="module")
def table(columns, tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("cli") / "rows.csv", columns)


@pytest.fixture(scope="module")
def fitted(data):
    return GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(data.X)


def test_estimate_says_the_answer_and_lists_the_detectors(table, fitted):
    done = gammagmm("estimate", table, *QUICK)
    assert done.returncode == 0, done.stderr
    low, high = fitted.posterior_.interval()
    first = f"About {fitted.posterior_.mean:.1%} of the rows are anomalies (90% interval {low:.1%}"
    assert done.stdout.startswith(
        f"{first} to {high:.1%}). The probability of no anomalies is 1.0%; the probability of more "
        "than 15% anomalies is "
    )
    assert f"{fitted.labels_.sum()} of 300 rows are flagged." in done.stdout
    assert re.search(r"^KNN +ok +300 +\d+\.\d +\d", done.stdout, re.MULTILINE)
    # No terminal, no bars.
    assert done.stderr == ""


def test_everything_at_once(data, columns, fitted, tmp_path):
    names = [f"part {i}" for i in range(299)] + ["=1+1"]
    table = {"key": names, **columns, "bad": data.y.tolist(), "noise": range(300)}
    path = write_csv(tmp_path / "all.csv", table)
    files = ("labels.csv", "report.html", "posterior.json", "posterior.svg")
    outputs = dict(zip(("--labels", "--report", "--posterior", "--picture"), files, strict=True))
    options = ["--id", "key", "--truth", "bad", "--drop", "noise", "--json"]
    options += [word for pair in outputs.items() for word in pair]
    done = gammagmm("estimate", path, *QUICK, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == sorted([*files, "all.csv"])
    check_labels(tmp_path / "labels.csv", fitted)
    saved = GammaPosterior.load(tmp_path / "posterior.json")
    assert saved.mean == pytest.approx(fitted.posterior_.mean, rel=1e-9)
    assert (tmp_path / "posterior.svg").read_text(encoding="utf-8").startswith("<?xml")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "all.csv" in report
    assert "=1+1" in report
    check_json(json.loads(done.stdout), data, fitted, names)


def check_labels(path, fitted):
    """A line for each row, with what Python says of it."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "score", "probability", "label", "score_KNN", "score_LOF"]
    assert [row["id"] for row in rows[:2]] == ["part 0", "part 1"]
    assert rows[299]["id"] == "'=1+1"  # a spreadsheet would compute it
    frame = fitted.to_frame()
    for name in ("score", "probability", "score_KNN", "score_LOF"):
        np.testing.assert_allclose([float(row[name]) for row in rows], frame[name], rtol=1e-9)
    assert [int(row["label"]) for row in rows] == fitted.labels_.tolist()


def check_json(answer, data, fitted, names):
    flagged = fitted.labels_.nonzero()[0]
    assert answer["flagged_rows"] == (flagged + 1).tolist()
    assert answer["flagged_ids"] == [names[i] for i in flagged]
    assert (answer["n_rows"], answer["n_flagged"]) == (300, len(flagged))
    assert answer["posterior"]["mean"] == pytest.approx(fitted.posterior_.mean, rel=1e-9)
    truth = answer["truth"]
    assert truth["share"] == data.gamma
    assert truth["hits"] == (fitted.labels_ & data.y).sum()
    assert truth["hits"] + truth["misses"] == data.y.sum()
    assert truth["hits"] + truth["false_alarms"] == len(flagged)
    assert [d["name"] for d in answer["detectors"]] == ["KNN", "LOF"]


def test_the_answer_follows_the_options(table, data):
    options = {"p0": 0.1, "p_high": 0.05, "high_gamma": 0.2, "max_gamma": 0.3}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    done = gammagmm("estimate", table, *QUICK, *words, "--seed", "4", "--json")
    found = json.loads(done.stdout)["posterior"]
    again = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=4, **options).fit(data.X)
    assert found["prob_zero"] == 0.1
    assert found["mean"] == pytest.approx(again.posterior_.mean, rel=1e-9)


def test_standard_input_and_several_files(table, data, columns, fitted, tmp_path):
    text = table.read_text(encoding="utf-8")
    from_input = json.loads(gammagmm("estimate", "-", *QUICK, "--json", stdin=text).stdout)
    halves = [{n: c[i : i + 150] for n, c in columns.items()} for i in (0, 150)]
    parts = [write_csv(tmp_path / f"part{i}.csv", half) for i, half in enumerate(halves)]
    together = json.loads(gammagmm("estimate", *parts, *QUICK, "--json").stdout)
    for answer in (from_input, together):
        assert answer["posterior"]["mean"] == pytest.approx(fitted.posterior_.mean, rel=1e-9)
    assert from_input["source"] == "standard input"
    assert together["source"] == "part0.csv, part1.csv"


def test_what_was_imputed_and_encoded_is_said(columns, tmp_path):
    holes = columns | {"depth": [None, *columns["depth"][1:]], "kind": ["a", "b"] * 150}
    path = write_csv(tmp_path / "holes.csv", holes)
    options = ("--missing", "impute", "--categories", "encode")
    done = gammagmm("estimate", path, *QUICK, *options, "--json")
    assert done.returncode == 0, done.stderr
    notes = [note for note in json.loads(done.stdout)["notes"] if note["step"] == "tables"]
    assert {note["subject"] for note in notes} == {"depth", "kind"}
    assert done.stderr.count("note: ") == 2
    assert gammagmm("estimate", path, *QUICK, *options, "--quiet").stderr == ""
    dropped = gammagmm("estimate", path, *QUICK, "--missing", "drop", "--drop", "kind", "--json")
    assert json.loads(dropped.stdout)["n_rows"] == 299


def test_fail_above_is_an_exit_code(table, fitted):
    mean = fitted.posterior_.mean
    done = gammagmm("estimate", table, *QUICK, "--fail-above", mean + 0.01)
    assert done.returncode == 0
    done = gammagmm("estimate", table, *QUICK, "--fail-above", mean - 0.01)
    assert done.returncode == 3
    assert done.stdout.startswith("About ")
    assert f"gammagmm: the estimate {mean:.1%} exceeds --fail-above" in done.stderr


def test_no_estimate_does_not_pass(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(5, 0.01, (20, 2)), rng.normal(1, 0.01, (20, 2))])
    path = write_csv(tmp_path / "clusters.csv", dict(zip("ab", rows.T.tolist(), strict=True)))
    done = gammagmm("estimate", path, *QUICK, "--fail-above", "0.5")
    assert done.returncode == 3
    assert "there is no estimate to compare with --fail-above 0.5" in done.stderr


def test_modules_in_the_users_folder_are_not_run(table, tmp_path):
    (tmp_path / "secrets.py").write_text("raise SystemExit(9)")
    done = gammagmm("estimate", "nowhere.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("gammagmm: nowhere.csv does not exist")


def test_files_are_written_although_nobody_listens(table, tmp_path):
    command = [COMMAND, "estimate", str(table), *QUICK, "--labels", "labels.csv"]
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(command, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "labels.csv").read_text().startswith("id,score,")


def test_one_column_is_a_table_too(columns, tmp_path):
    path = write_csv(tmp_path / "one.csv", {"mass": columns["mass"]})
    done = gammagmm("estimate", path, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_rows"] == 300


def test_a_gap_in_the_second_file_is_found_there(columns, tmp_path):
    halves = [{n: c[i : i + 5] for n, c in columns.items()} for i in (0, 5)]
    halves[1]["mass"] = [*halves[1]["mass"][:2], "", *halves[1]["mass"][3:]]
    paths = [write_csv(tmp_path / f"h{i}.csv", half) for i, half in enumerate(halves)]
    done = gammagmm("estimate", *paths)
    assert re.search(r"column 'mass', line 4 of .*h1\.csv", done.stderr), done.stderr


def test_no_solution_is_said_in_words_and_in_json(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(5, 0.01, (20, 2)), rng.normal(1, 0.01, (20, 2))])
    path = write_csv(tmp_path / "clusters.csv", dict(zip("ab", rows.T.tolist(), strict=True)))
    done = gammagmm("estimate", path, *QUICK, "--report", tmp_path / "report.html")
    assert done.stdout.startswith("No solution: no mixture of these scores agrees with p_high")
    assert "warning: No solution in any of 2 runs" in done.stderr
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "There is no estimate for these data" in report
    answer = json.loads(gammagmm("estimate", path, *QUICK, "--json").stdout)
    assert answer["posterior"]["is_degenerate"] is True
    assert answer["posterior"]["standard_error"] is None


BAD_FILES = {
    "empty.csv": b"",
    "one_row.csv": b"a,b\n1,2\n",
    "header.csv": b"a,b\n",
    "text.csv": b"a,b\nx,y\nz,w\n",
    "mixed.csv": b"a,b\n1,2\n3,dog\n",
    "ragged.csv": b"a,b\n1,2\n3\n",
    "latin.csv": "a,b\n1,2\n3,\xe9\n".encode("latin-1"),
    "twice.csv": b"a,a\n1,2\n3,4\n",
    "gap.csv": b"a,b\n1,2\n3,\n4,5\n",
    "points.csv": b"No. of items,b\nx,2\n3,4\n",
    "sheet.xlsx": b"PK\x03\x04",
    "evil.npz": b"not a zip",
    "\x1b[31mred.csv": b"",
}
BAD_INPUT = [
    (["nowhere.csv"], r"nowhere\.csv does not exist\.\n  Check the path"),
    (["empty.csv"], r"empty\.csv is empty\.\n  Give a file"),
    (["one_row.csv"], r"one_row\.csv .*\n  .*two rows"),
    (["header.csv"], r"header\.csv holds column names but no rows\.\n  Add the rows"),
    (["text.csv"], r"column 'a', line 2.*\n  .*--categories encode"),
    (["mixed.csv"], r"column 'b', line 3.*'dog'"),
    (["ragged.csv"], r"line 3: found 1 cells .* has 2\.\n  Give every line"),
    (["latin.csv"], r"latin\.csv is not UTF-8.* line 3 .*\n  Save the file as UTF-8"),
    (["twice.csv"], r"column name 'a' occurs 2 times\.\n  Give every column"),
    (["gap.csv"], r"missing .*column 'b', line 3\.\n  .*--missing drop"),
    (["sheet.xlsx"], r"suffix '\.xlsx', which cannot be read\.\n  Save the table"),
    (["evil.npz"], r"evil\.npz .*\n  "),
    (["\x1b[31mred.csv"], r"\\x1b\[31mred\.csv is empty"),
    (["good.csv", "--id", "widht"], r"'widht'.*\n  .*'width'"),
    (["good.csv", "--drop", "nothing"], r"'nothing'"),
    (["good.csv", "--truth", "mass"], r"'mass'"),
    (["good.csv", "--missing", "guess"], r"missing must be one of error, drop, impute"),
    (["good.csv", "--detectors", "modern"], r"detectors='modern' is not a preset"),
    (["good.csv", "--seed", "-3"], r"random_state must be at least 0"),
    (["good.csv", "--p0", "2"], r"p0 must lie strictly between 0 and 1, got 2"),
    (["good.csv", "--fail-above", "7"], r"--fail-above must lie between 0 and 1, got 7"),
    (["good.csv", "--picture", "no/such/p.png"], r"no/such is no folder\.\n  Make it first"),
    (
        ["good.csv", "--picture", "posterior.doc"],
        r"no name of a picture\.\n  End it in \.png, \.svg, \.pdf",
    ),
    (["good.csv", "--labels", "good.csv"], r"good\.csv exists already\.\n  Pass --force"),
    (["good.csv", "--labels", "x", "--report", "../bad0/x"], r"Two outputs have the same name"),
    (["good.csv", "--labels", "good.csv", "--force"], r"is an input and an output\.\n  Give"),
    (["good.csv", "--labels", "pipe", "--force"], r"pipe is no plain file\.\n  Give another name"),
    (["good.csv", "--labels", "good.csv/l.csv"], r"good\.csv is no folder\.\n  Make it first"),
    (["points.csv"], r"column 'No\. of items', line 2: .*\n  .*--drop 'No\. of items'"),
    (["good.csv", "--runs", "many"], r"'--runs': .* integer.*\n  gammagmm COMMAND --help"),
    (["good.csv", "-"], r"cannot be read beside files\.\n  Give one or the other"),
    (["good.csv", "other.csv"], r"other\.csv lacks the columns .*\n  "),
]


@pytest.fixture(scope="module")
def bad_folder(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    assert folder.name == "bad0"
    for name, content in BAD_FILES.items():
        (folder / name).write_bytes(content)
    (folder / "good.csv").write_bytes(table.read_bytes())
    (folder / "other.csv").write_bytes(b"p,q\n1,2\n3,4\n")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT, ids=lambda value: str(value)[:30])
def test_bad_input_is_two_lines_and_exit_code_2(arguments, words, bad_folder):
    before = sorted(os.listdir(bad_folder))
    done = gammagmm("estimate", *arguments, cwd=bad_folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 2, done.stderr
    assert done.stderr.startswith("gammagmm: ")
    assert re.search(words, done.stderr), done.stderr
    assert sorted(os.listdir(bad_folder)) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(table, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    done = gammagmm("estimate", table, "--labels", folder / "labels.csv")
    assert done.returncode == 2
    assert "may not be written to" in done.stderr


def test_a_traceback_is_there_for_those_who_ask(bad_folder):
    done = gammagmm("estimate", "empty.csv", "--debug", cwd=bad_folder)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "TableError" in done.stderr


def test_force_replaces_what_is_there(table, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("mine")
    assert gammagmm("estimate", table, *QUICK, "--labels", path).returncode == 2
    assert path.read_text() == "mine"
    assert gammagmm("estimate", table, *QUICK, "--labels", path, "--force").returncode == 0
    assert path.read_text().startswith("id,score,")


def test_compare_says_how_likely_b_exceeds_a(fitted, tmp_path):
    fitted.posterior_.save(tmp_path / "a.json")
    fitted.posterior_.given(low=0.05).save(tmp_path / "b.json")
    done = gammagmm("compare", "a.json", "b.json", "--picture", "pair.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A  a.json: About ")
    assert (tmp_path / "pair.png").read_bytes().startswith(b"\x89PNG")
    answer = json.loads(gammagmm("compare", "a.json", "b.json", "--json", cwd=tmp_path).stdout)
    a, b = (GammaPosterior.load(tmp_path / name) for name in ("a.json", "b.json"))
    n = 400_000
    first, second = a.sample(n, 1), b.sample(n, 2)
    share = np.mean(second > first)
    error = 4 * np.sqrt(share * (1 - share) / n)
    assert answer["prob_b_above_a"] == pytest.approx(share, abs=error + 1e-4)
    done = gammagmm("compare", "a.json", "pair.png", cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(r"pair\.png cannot be read as a posterior", done.stderr)


def test_info_lists_versions_and_extras():
    done = gammagmm("info")
    assert re.search(rf"^numpy +{re.escape(np.__version__)}$", done.stdout, re.MULTILINE)
    assert set(json.loads(gammagmm("info", "--json").stdout)) >= {"gammagmm", "torch", "GPU"}


def test_the_demo_writes_a_report(tmp_path):
    done = gammagmm("demo", "--report", "report.html", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The truth, which the method did not see: 10 of 367 rows." in done.stdout
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def test_a_terminal_gets_bars_with_the_time_left(table):
    ours, theirs = pty.openpty()
    command = [COMMAND, "estimate", str(table), *QUICK]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        shown += block
    printed = process.communicate()[0].decode()
    assert process.returncode == 0
    assert b"detectors" in shown
    assert b"mixtures" in shown
    assert printed.startswith("About ")
    assert "\x1b" not in printed


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def as_a_terminal_starts_it():
    """Ctrl-C is neither ignored nor blocked, whatever it is where the tests run."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_ctrl_c_ends_the_work_and_leaves_no_file(tmp_path):
    # LSCP is in a compiled loop for long.
    rows = np.random.default_rng(0).normal(size=(20_000, 10))
    np.save(tmp_path / "rows.npy", rows)
    outputs = ("--labels", "labels.csv", "--report", "report.html")
    command = [COMMAND, "estimate", "rows.npy", "--detectors", "LSCP,KNN", "--jobs", "1", *outputs]
    options = {"cwd": tmp_path, "stderr": subprocess.PIPE, "preexec_fn": as_a_terminal_starts_it}
    process = subprocess.Popen(command, **options)
    while not (workers := children_of(process.pid)):
        time.sleep(0.01)
    time.sleep(5.0)  # into the loop
    begun = tmp_path / f".labels.csv.{workers[0]}-0a1b.part"
    begun.write_text("half a")
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert not any(map(is_alive, workers))
    assert os.listdir(tmp_path) == ["rows.npy"]
    assert b"Traceback" not in told


def test_help_tells_the_exit_codes():
    done = gammagmm("--help")
    assert "Exit codes: 0 done, 1 a fault of this program, 2 bad input" in " ".join(
        done.stdout.split()
    ).replace("│ ", "")
    assert "--install-completion" in done.stdout
