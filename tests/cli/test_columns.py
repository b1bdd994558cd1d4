"""Every problem of a file in one go, the command that works, and the table of its columns."""

from __future__ import annotations

import csv
import json
import re
import shlex
import time

import numpy as np
import pytest

from gammagmm.cli.columns import HEAD, columns_text
from gammagmm.cli.options import Reading
from gammagmm.cli.request import read_table
from gammagmm.cli.said import MAX_LINES, said_lines
from gammagmm.errors import Note
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.source import Source
from gammagmm.table.preparation import prepare
from gammagmm.table.roles import Choices
from tests.support.command_line import gammagmm_here

QUICK = ("--detectors", "KNN,LOF", "--runs", "2")
N = 120


@pytest.fixture(scope="module")
def customers(tmp_path_factory):
    """A German file with an id, labels, text, dates and gaps; its features alone in plain form."""
    folder = tmp_path_factory.mktemp("customers")
    rng = np.random.default_rng(0)
    is_fraud = rng.random(N) < 0.05
    amounts = (rng.lognormal(5.0, 0.5, N) * np.where(is_fraud, 8.0, 1.0)).round(2).tolist()
    ages = rng.normal(45.0, 12.0, N).round(1).tolist()
    regions = rng.choice(["north", "south", "east"], N).tolist()
    rows, clean = [], []
    for i in range(N):
        age = "" if i % 20 == 7 else ages[i]
        rows.append(
            [
                *[
                    100_001 + i,
                    f"{1 + i % 28:02}.03.2024",
                    comma(amounts[i]),
                    comma(age),
                    regions[i],
                ],
                *[f"town {i % 40}", f"note {i}", int(is_fraud[i]), "inf" if i == 3 else i % 7],
            ]
        )
        clean.append([amounts[i], age, regions[i]])
    head = ["customer_id", "opened", "amount", "age", "region", "my town", "note", "is_fraud", "r"]
    with (folder / "dirty.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([head, *rows])
    with (folder / "clean.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head[2:5], *clean])
    return folder


def comma(number):
    return str(number).replace(".", ",")


def test_the_command_that_is_given_works_and_answers_as_for_the_clean_table(customers):
    options = (*QUICK, "--drop", "r", "--json")
    first = gammagmm_here("estimate", "dirty.csv", *options, "--strict", cwd=customers)
    assert (first.returncode, first.stdout) == (2, "")
    *problems, last = first.stderr.splitlines()
    assert len(problems) == 4
    for line, place in zip(problems[1:], ("line 9", "line 2", "line 2"), strict=True):
        assert place in line
    command = shlex.split(last.removeprefix("  This command works: "))
    assert command == ["gammagmm", "estimate", "dirty.csv", *options]
    again = gammagmm_here(*command[1:], cwd=customers)
    assert again.returncode == 0, again.stderr
    clean = gammagmm_here("estimate", "clean.csv", *QUICK, "--json", cwd=customers)
    answers = [json.loads(done.stdout) for done in (again, clean)]
    assert answers[0]["posterior"] == answers[1]["posterior"]
    found, expected = ([row["row"] for row in each["flagged_rows"]] for each in answers)
    assert found == expected
    notes = [line for line in again.stderr.splitlines() if line.startswith("note: ")]
    assert 0 < len(notes) <= MAX_LINES
    left_out = {note["subject"] for note in answers[0]["notes"]}
    assert {"customer_id", "is_fraud", "my town", "note"} <= left_out


def test_the_table_of_columns(customers):
    done = gammagmm_here("estimate", "dirty.csv", "--columns", "--truth", "is_fraud", cwd=customers)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.split("  +", lines[0]) == list(HEAD)
    found = [" ".join(line.split()) for line in lines[1:10]]
    assert found[0].startswith("customer_id id 0 120 100001 not used: it looks like an id by its ")
    assert found[1].startswith("opened date 0 28 01.03.2024 not used: it contains dates")
    assert found[2].startswith("amount number 0 ")
    assert " used; read with decimal commas: " in found[2]
    assert found[3].startswith("age number 6 ")
    assert " used; read with decimal commas: " in found[3]
    assert "6 missing values filled with the median" in found[3]
    assert found[4] == "region text 0 3 north used, encoded as columns of 0 and 1"
    assert " not used: " in found[5]
    assert found[7] == "is_fraud labels 0 2 0 compared with the estimate (--truth)"
    assert len(lines) < 25
    strict = ("--columns", "--truth", "is_fraud", "--strict")
    lines = gammagmm_here("estimate", "dirty.csv", *strict, cwd=customers).stdout.splitlines()
    assert "4 problems:" in lines
    command = "gammagmm estimate dirty.csv --truth is_fraud"
    assert lines[-1] == f"This command works: {command}"
    options = ["--drop", "age,r,my*", "--dates", "encode", "--id", "note"]
    done = gammagmm_here("estimate", "dirty.csv", "--columns", *options, cwd=customers)
    found = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert found[2] == "opened date 0 28 01.03.2024 used, encoded as numbers"
    assert found[5] == "region text 0 3 north used, encoded as columns of 0 and 1"
    assert found[7] == "note id 0 120 note 0 names the rows (--id)"
    assert found[9] == "r number 0 8 0 not used (--drop)"


def test_many_problems_are_counted(tmp_path):
    names = [f"c{j}" for j in range(30)]
    rows = [[*np.random.default_rng(i).normal(size=30).round(3)] for i in range(5)]
    rows[2] = [""] * 30
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*names, "v"], *([*row, i] for i, row in enumerate(rows))])
    done = gammagmm_here("estimate", "t.csv", "--strict", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert (len(lines), lines[0]) == (23, "gammagmm: t.csv has 30 problems:")
    assert lines[-2:] == [
        "  10 more",
        "  This command works: gammagmm estimate t.csv",
    ]


def test_columns_of_a_file_without_a_usable_one(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n1,x\n")
    done = gammagmm_here("estimate", "t.csv", "--columns", cwd=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)


@pytest.mark.parametrize("n", [1, 3])
def test_an_assumption_about_numbers_is_told_of_each_column_and_first(tmp_path, n):
    rows = "".join(
        ",".join([f'"1,{i + j}"' for j in range(n)]) + f",{i % 7}\n" for i in range(100, 112)
    )
    names = [f"a{j}" for j in range(n)]
    (tmp_path / "t.csv").write_text(f"{','.join(names)},b\n{rows}")
    reading = Reading(paths=[str(tmp_path / "t.csv")])
    raw = read_table(reading)
    assert [note.code for note in raw.notes] == ["tables.assumed"] * n
    lines = columns_text(raw, Choices()).splitlines()
    for line in lines[1 : n + 1]:
        assert "read with thousands separators" in line
        assert "--decimal ," in line
    others = [Note.of("tables.encoding", f"{j}.csv", encoding="Latin-1") for j in range(9)]
    first = said_lines([*others, *prepare(raw, Choices()).notes])
    assert any("assumption" in line and "--decimal ," in line for line in first)


def test_the_column_of_the_groups(tmp_path):
    rows = "".join(f"{i / 7},{'xyz'[i % 3]},{i % 3}\n" for i in range(12))
    (tmp_path / "t.csv").write_text(f"value,shop,day\n{rows}")
    done = gammagmm_here("estimate", "t.csv", "--columns", "--by", "shop", cwd=tmp_path)
    found = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert found[2:] == ["shop text 0 3 x groups (--by)", "day number 0 3 0 used"]
    done = gammagmm_here("estimate", "t.csv", "--columns", "--by", "day", cwd=tmp_path)
    assert "day number 0 3 0 used; groups (--by)" in " ".join(done.stdout.split())


def test_many_columns_take_a_time_that_is_proportional():
    n = 20_000  # 15 s if each column looks through all columns, below 2 s otherwise
    data = tuple(np.array([1.0 + j, 2.5]) for j in range(n))
    names = tuple(f"c{j}" for j in range(n))
    raw = RawTable("t.npy", names, data, None, lambda j: [])
    start = time.process_time()
    assert len(columns_text(raw, Choices()).splitlines()) == n + 1
    assert time.process_time() - start < 6.0


@pytest.mark.slow
def test_a_file_of_100_000_columns_is_read_and_told_in_few_seconds():
    n = 100_000  # 8 s of the processor where each column is read and judged twice, below 5 s else
    rows = np.random.default_rng(0).normal(size=(12, n)).round(4)
    text = "\n".join(",".join(map(str, row)) for row in rows.tolist())
    header = ",".join(f"c{j}" for j in range(n))
    source = Source("t.csv", ".csv", f"{header}\n{text}\n".encode())
    start = time.process_time()
    lines = columns_text(read_delimited(source), Choices().with_strict(False)).splitlines()
    assert time.process_time() - start < 6.5
    assert len(lines) == n + 1
