"""``gammagmm estimate``: through the real command where the process may matter."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from html import unescape

import numpy as np
import pytest

from gammagmm import GammaGMM, GammaPosterior
from gammagmm._support.text import percent
from tests.support.command_line import (
    COMMAND,
    QUICK,
    gammagmm,
    gammagmm_here,
    on_terminal,
    write_csv,
)
from tests.support.needs import needs_posix


def test_the_estimate_and_the_first_rows_are_printed(table, fitted):
    done = gammagmm("estimate", table, *QUICK)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n\n")[0].splitlines()
    *told, following = fitted.fit_.lines
    assert lines[:-1] == told
    assert ("gammagmm label" in lines[-1], "gammagmm label" in following) == (True, False)
    assert not re.search(r"^KNN", done.stdout, re.MULTILINE)
    first = int(np.argmax(fitted.decision_scores_)) + 1
    assert re.search(rf"^ +{first} +\d+\.\d%  \S", done.stdout, re.MULTILINE)
    # Standard error is not a terminal, so there are no bars.
    assert done.stderr == ""


def test_all_outputs_in_one_call(data, columns, fitted, tmp_path):
    names = [f"part {i}" for i in range(299)] + ["=1+1"]
    table = {"key": names, **columns, "bad": data.y.tolist(), "noise": range(300)}
    path = write_csv(tmp_path / "all.csv", table)
    files = ("labels.csv", "report.html", "posterior.json", "posterior.svg")
    outputs = dict(zip(("--out", "--report", "--posterior", "--picture"), files, strict=True))
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
    """A line for each row, with the values that Python gives."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    heads = ["id", "score", "probability", "label", "reason", "score_KNN", "score_LOF"]
    assert list(rows[0]) == heads
    assert [row["id"] for row in rows[:2]] == ["part 0", "part 1"]
    assert rows[299]["id"] == "'=1+1"  # a spreadsheet would compute it
    frame = fitted.to_frame()
    frame["probability"] = frame["probability"].round(4)
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


def test_options_reach_the_estimator(table, data):
    options = {"p0": 0.1, "p_high": 0.05, "high_gamma": 0.2, "max_gamma": 0.3}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    done = gammagmm_here("estimate", table, *QUICK, *words, "--seed", "4", "--json")
    found = json.loads(done.stdout)["posterior"]
    again = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=4, **options).fit(data.X)
    assert found["prob_zero"] == 0.1
    assert found["mean"] == pytest.approx(again.posterior_.mean, rel=1e-9)


def test_the_scale_of_the_columns(columns, data, tmp_path):
    table = write_csv(tmp_path / "rows.csv", columns | {"year": [2020] * 300})
    X = np.insert(data.X, 4, 2020.0, axis=1)
    for word, scale in {"standard": "standard", "robust": "robust", "none": None}.items():
        options = ("--scale", word, "--use", "year", "--json")
        done = gammagmm_here("estimate", table, *QUICK, *options)
        answer = json.loads(done.stdout)
        again = GammaGMM(["KNN", "LOF"], scale=scale, n_runs=2, random_state=0).fit(X)
        assert answer["posterior"]["mean"] == pytest.approx(again.posterior_.mean, rel=1e-9)
        messages = [note["message"] for note in answer["notes"] if note["step"] == "columns"]
        noted = ["constant columns are not used by the detectors: year"]
        assert messages == (noted if scale else [])


def test_standard_input_and_several_files(table, data, columns, fitted, tmp_path):
    text = table.read_text(encoding="utf-8")
    from_input = json.loads(gammagmm("estimate", "-", *QUICK, "--json", stdin=text).stdout)
    halves = [{n: c[i : i + 150] for n, c in columns.items()} for i in (0, 150)]
    parts = [write_csv(tmp_path / f"part{i}.csv", half) for i, half in enumerate(halves)]
    together = json.loads(gammagmm_here("estimate", *parts, *QUICK, "--json").stdout)
    for answer in (from_input, together):
        assert answer["posterior"]["mean"] == pytest.approx(fitted.posterior_.mean, rel=1e-9)
    assert from_input["source"] == "standard input"
    assert together["source"] == "part0.csv, part1.csv"


def test_imputed_and_encoded_columns_are_noted(columns, tmp_path):
    holes = columns | {"depth": [None, *columns["depth"][1:]], "kind": ["a", "b"] * 150}
    path = write_csv(tmp_path / "holes.csv", holes)
    options = ("--missing", "impute")
    done = gammagmm_here("estimate", path, *QUICK, *options, "--json")
    assert done.returncode == 0, done.stderr
    notes = [note for note in json.loads(done.stdout)["notes"] if note["step"] == "tables"]
    assert {note["subject"] for note in notes} == {"depth", "kind"}
    assert done.stderr.count("note: ") == 2
    assert "note: " not in gammagmm_here("estimate", path, *QUICK, *options, "--quiet").stderr
    options = ("--missing", "drop", "--drop", "kind")
    dropped = gammagmm_here("estimate", path, *QUICK, *options, "--json")
    assert json.loads(dropped.stdout)["n_rows"] == 299


def write_labels(path, rows, labels):
    """A sheet with the labels of rows, which are counted from 0 here."""
    return write_csv(path, {"row": [int(row) + 1 for row in rows], "anomaly": labels[rows]})


def test_fail_above_sets_the_exit_code(table, data, fitted, tmp_path):
    rows = fitted.suggest(120, random_state=0)
    sheet = write_labels(tmp_path / "sheet.csv", rows, data.y)
    low, high = fitted.fit_.update(rows, data.y[rows]).posterior.interval()
    assert data.y[rows].any()  # or the interval starts at 0, where no limit lies below it
    # It is the estimate with labels that counts.
    assert abs(low - fitted.posterior_.interval()[0]) > 1e-3
    interval = f"the 90% interval {percent(low)} to {percent(high)}"
    arguments = ("estimate", table, *QUICK, "--labels", sheet, "--fail-above")
    done = gammagmm_here(*arguments, high + 1e-4)
    assert (done.returncode, done.stderr) == (0, "")
    done = gammagmm_here(*arguments, low + 1e-4)
    assert done.returncode == 0
    assert f"gammagmm: {interval} contains --fail-above" in done.stderr
    assert done.stderr.endswith(": label more rows to decide.\n")
    done = gammagmm(*arguments, low - 1e-4)
    assert done.returncode == 3
    assert done.stdout.startswith("About ")
    assert f"gammagmm: {interval} lies above --fail-above" in done.stderr


def test_fail_above_with_labels_where_the_fit_has_no_solution(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(5, 0.01, (20, 2)), rng.normal(1, 0.01, (20, 2))])
    path = write_csv(tmp_path / "clusters.csv", dict(zip("ab", rows.T.tolist(), strict=True)))
    sheet = write_labels(tmp_path / "sheet.csv", np.arange(0, 40, 4), np.repeat([0, 1], 20))
    arguments = ("estimate", path, *QUICK, "--labels", sheet, "--json", "--fail-above")
    for limit, code in ((0.9, 0), (0.05, 3)):
        done = gammagmm_here(*arguments, limit)
        assert done.returncode == code
        assert "warning: The model has no estimate" in done.stderr
        found = json.loads(done.stdout)["posterior"]
        assert (found["is_degenerate"], found["n_labels"]) == (False, 10)
        low, high = found["interval_90"]
        assert 0.05 < low < high < 0.9


def test_files_are_written_although_standard_output_is_closed(table, tmp_path):
    command = [COMMAND, "estimate", str(table), *QUICK, "--out", "labels.csv"]
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(command, cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "labels.csv").read_text().startswith("id,score,")


def test_a_table_of_one_column(columns, tmp_path):
    path = write_csv(tmp_path / "one.csv", {"mass": columns["mass"]})
    done = gammagmm_here("estimate", path, *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_rows"] == 300


def test_a_missing_value_in_the_second_file_is_located(columns, tmp_path):
    halves = [{n: c[i : i + 5] for n, c in columns.items()} for i in (0, 5)]
    halves[1]["mass"] = [*halves[1]["mass"][:2], "", *halves[1]["mass"][3:]]
    paths = [write_csv(tmp_path / f"h{i}.csv", half) for i, half in enumerate(halves)]
    done = gammagmm_here("estimate", *paths, "--strict")
    assert re.search(r"column 'mass': 1 missing value, in line 4 of .*h1\.csv", done.stderr), (
        done.stderr
    )


def test_no_solution_in_words_and_in_json(tmp_path):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(5, 0.01, (20, 2)), rng.normal(1, 0.01, (20, 2))])
    path = write_csv(tmp_path / "clusters.csv", dict(zip("ab", rows.T.tolist(), strict=True)))
    done = gammagmm_here("estimate", path, *QUICK, "--report", tmp_path / "report.html")
    assert "does not mean that the rows are clean" in done.stdout.splitlines()[2]
    assert "warning: The model has no estimate" in done.stderr
    report = unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert done.stdout.splitlines()[2] in report
    answer = json.loads(gammagmm_here("estimate", path, *QUICK, "--json").stdout)
    assert answer["posterior"]["is_degenerate"] is True
    assert answer["posterior"]["standard_error"] is None


def test_the_answer_stands_before_the_warnings(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    path = write_csv(tmp_path / "clean.csv", dict(zip("ab", rows.T.tolist(), strict=True)))
    command = [COMMAND, "estimate", str(path), *QUICK, "--quiet"]
    joined = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout
    assert joined.index("Next: ") < joined.index("warning: ")


@needs_posix
def test_a_terminal_shows_a_progress_bar(table):
    shown, printed = on_terminal([COMMAND, "estimate", str(table), *QUICK])
    assert "━" in shown
    assert "100%" in shown
    assert " of 300 rows " in printed.splitlines()[1]
    assert "\x1b" not in printed
