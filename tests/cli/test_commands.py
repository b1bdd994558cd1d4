"""The next command has the files and options of the one before, and asks about other rows."""

from __future__ import annotations

import csv
import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from gammagmm.cli.commands import estimate_command, label_commands
from gammagmm.cli.options import Engine, Labelling, Method, Reading, Request
from tests.support.command_line import gammagmm_here, write_csv


def words(reading, **groups):
    return shlex.split(label_commands(Request(reading, **groups), None).label)


def test_it_has_the_options_that_are_not_defaults():
    reading = Reading(["a b.csv", "c.csv"], id="key", drop=["x,y", "z"], strict=True)
    method = Method(detectors="KNN,LOF", learn=False, runs=3)
    found = words(reading, method=method, labelling=Labelling(by="shop"), engine=Engine("dask"))
    options = "--id key --drop x,y --drop z --strict --by shop --engine dask --detectors KNN,LOF"
    expected = [*options.split(), "--no-learn", "--runs", "3"]
    assert found[:4] == ["gammagmm", "label", "a b.csv", "c.csv"]
    assert sorted(found[4:]) == sorted(expected)
    assert words(Reading(["a.csv"])) == ["gammagmm", "label", "a.csv"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("rows.csv", "rows.csv"),
        ("my rows; rm -rf.csv", "'my rows; rm -rf.csv'"),
        ("a.csv, b.csv", "FILE"),
        ("a\u202e\n.csv", "FILE"),
        (None, "FILE"),
    ],
)
def test_a_kept_fit_has_the_name_of_its_file_alone(name, file):
    assert label_commands(Request(), name).label == f"gammagmm label {file}"


def test_earlier_sheets_stay_and_are_not_overwritten():
    sheets = [Path("lab.csv"), Path("to_label.csv"), Path("check.csv")]
    request = Request(Reading(["a.csv"]), labelling=Labelling(sheets))
    commands = label_commands(request, None)
    for command, out in ((commands.label, "to_label_2.csv"), (commands.check, "check_2.csv")):
        assert all(f"--labels {sheet}" in command for sheet in sheets)
        assert f"--out {out}" in command
    used = estimate_command(request, Path("new.csv"))
    assert used.startswith("gammagmm estimate a.csv")
    assert all(f"--labels {sheet}" in used for sheet in [*sheets, "new.csv"])


def test_the_command_of_a_report_asks_about_rows_without_a_label(tmp_path):
    rng = np.random.default_rng(0)
    table = {
        "key": [f"k{i}" for i in range(200)],
        **{f"x{j}": rng.normal(size=200) for j in range(3)},
    }
    write_csv(tmp_path / "rows.csv", table)
    options = ("rows.csv", "--id", "key", "--detectors", "KNN,LOF", "--runs", "2", "--seed", "5")
    sheet = ("--sheet-only", "--n", "8", "--out", "lab.csv")
    assert gammagmm_here("label", *options, *sheet, cwd=tmp_path).returncode == 0
    lines = list(csv.reader((tmp_path / "lab.csv").read_text().splitlines()))
    for i, line in enumerate(lines[1:]):
        line[-1] = str(int(i < 2))
    with (tmp_path / "lab.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    outputs = ("--labels", "lab.csv", "--report", "report.html")
    assert gammagmm_here("estimate", *options, *outputs, cwd=tmp_path).returncode == 0
    page = (tmp_path / "report.html").read_text()
    command = shlex.split(html.unescape(re.search('id="command">([^<]*)', page)[1]))
    done = gammagmm_here(*command[1:], "--sheet-only", "--n", "100", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    asked = list(csv.reader((tmp_path / "to_label.csv").read_text().splitlines()))
    assert "key" in asked[0]
    assert len(asked) == 101
    assert {line[0] for line in asked[1:]}.isdisjoint(line[0] for line in lines[1:])
    # So does the command that finds anomalies.
    found = re.search(r"To find anomalies, (gammagmm label .* find) shows", html.unescape(page))[1]
    find = ("--sheet-only", "--out", "find.csv")
    assert gammagmm_here(*shlex.split(found)[1:], *find, cwd=tmp_path).returncode == 0
    asked = list(csv.reader((tmp_path / "find.csv").read_text().splitlines()))
    assert {line[1] for line in asked[1:]} == {"find"}
    assert {line[0] for line in asked[1:]}.isdisjoint(line[0] for line in lines[1:])
