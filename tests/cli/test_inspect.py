"""``gammagmm inspect``: the questions in the terminal, and the real command."""

from __future__ import annotations

import copy
import csv
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.inspect import Inspection, ask_rows, write_sheet
from gammagmm.cli.sheet import read_sheet
from gammagmm.datasets import load_demo
from gammagmm.report.origin import Origin
from tests.support.command_line import gammagmm, gammagmm_here

X = np.array([[1.0, 2.5], [3.0, -4.25], [1e-7, 6.0], [7.0, 8.0]])
ORIGIN = Origin(columns=("a", "=b"), rows=(0, 2, 3, 5))


@pytest.fixture(scope="module")
def data():
    return load_demo()


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(data.feature_names)
        writer.writerows(data.X.tolist())
    return folder


@pytest.fixture(scope="module")
def whole(data):
    return GammaGMM(["KNN", "LOF"], scale=None, n_runs=2, random_state=0).fit(data.X)


@pytest.fixture
def inspection(whole, data, tmp_path):
    def begin(strategy="random", n=6, is_new=False):
        rng = np.random.default_rng(0)
        origin = Origin("demo", columns=data.feature_names)
        path = tmp_path / "sheet.csv"
        return Inspection(whole.fit_, data.X, origin, path, n, strategy, is_new, rng)

    return begin


class TestDialogue:
    def answer(self, monkeypatch, keys, inspection):
        """Lines on standard error, the sheet, and the answers on disk after each of the lines."""
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(keys) + "\n"))
        said, saved = [], []
        is_new = inspection.overwrite or not inspection.path.exists()

        def read():
            return read_sheet(inspection.path, inspection.X, inspection.origin)

        def echo(line):
            said.append(line)
            saved.append(read().answered)

        return said, ask_rows(inspection, None if is_new else read(), echo), saved

    def test_each_answer_is_saved_before_the_next_question(self, monkeypatch, inspection, data):
        start = inspection()
        said, sheet, saved = self.answer(monkeypatch, ["y", "huh", "n", "s", "q"], start)
        assert sheet.answered == saved[-1]
        assert [len(rows) for rows, _ in saved if rows] == sorted(len(r) for r, _ in saved if r)
        assert sheet.answers == (1, 0, None, None, None, None)
        assert sum("Please answer y, n, s or q." in line for line in said) == 1
        sharpened = [line for line in said if line.startswith("  About")]
        assert len(sharpened) == 2
        assert start.fit.known_rows.rows.tolist() == sorted(sheet.rows[:2])
        row, scores = sheet.rows[0], start.fit.decision_scores
        rank = (scores > scores[row]).sum() + 1
        assert f"1/6  row {row + 1}, rank {rank} of 367: " in said[1]

    @pytest.mark.parametrize("strategy", ["random", "adaptive"])
    def test_a_later_call_continues_the_sheet(self, monkeypatch, inspection, strategy):
        _, before, _ = self.answer(monkeypatch, ["n", "n"], inspection(strategy))
        again = inspection(strategy)
        said, after, _ = self.answer(monkeypatch, ["n", "y"], again)
        assert said[0] == "2 of 6 rows have an answer already."
        assert after.answers[:4] == (0, 0, 0, 1)
        assert after.rows[:2] == before.rows[:2]
        assert len(set(after.rows)) == 6
        assert len(again.fit.known_rows) == 4

    def test_adaptive_chooses_again_but_not_the_skipped_rows(self, monkeypatch, inspection):
        start = inspection("adaptive")
        first = start.suggest(6)
        again = inspection("adaptive")
        _, sheet, _ = self.answer(monkeypatch, ["s", *["y"] * 5], again)
        assert sheet.rows[:2] == first[:2]
        assert sheet.rows != first
        assert len(set(sheet.rows)) == 6
        assert sheet.answers == (None, 1, 1, 1, 1, 1)

    def test_a_sheet_can_be_made_longer(self, monkeypatch, inspection):
        _, before, _ = self.answer(monkeypatch, ["n"] * 6, inspection())
        said, after, _ = self.answer(monkeypatch, ["n"], inspection(n=9))
        assert said[0] == "6 of 9 rows have an answer already."
        assert after.rows[:6] == before.rows
        assert len(set(after.rows)) == 9

    def test_a_new_sheet_replaces_the_old_one(self, monkeypatch, inspection):
        self.answer(monkeypatch, ["n", "n"], inspection())
        said, _, _ = self.answer(monkeypatch, ["q"], inspection(is_new=True))
        assert "already" not in said[0]

    def test_a_new_sheet_has_no_answers_and_is_not_replaced(self, inspection):
        start = inspection(n=20)
        words = write_sheet(start)
        sheet = read_sheet(start.path, start.X, start.origin)
        assert len(sheet.rows) == 20
        assert sheet.answered == ([], [])
        assert words.startswith("20 rows to label: write 1 (anomaly) or 0 (normal)")
        with pytest.raises(FileExistsError):
            write_sheet(start)

    def test_hostile_names_cannot_move_the_cursor(self, monkeypatch, inspection, data):
        start = inspection()
        names = tuple(f"\x1b[2J{name}" for name in data.feature_names)
        hostile = replace(start, origin=Origin(columns=names), n=2)
        said, _, _ = self.answer(monkeypatch, ["q"], hostile)
        assert "\\x1b[2J" in said[1]
        assert "\x1b" not in "".join(said)


class TestCommand:
    DETECTORS = ("--detectors", "KNN,LOF", "--scale", "none", "--runs", "2", "--quiet")

    def test_from_rows_to_labels_to_a_more_precise_estimate(self, folder, data, whole):
        made = gammagmm_here("inspect", "rows.csv", "--n", 8, *self.DETECTORS, cwd=folder)
        assert (made.returncode, made.stderr) == (0, "")
        assert made.stdout.startswith("8 rows to label: ")
        lines = list(csv.reader((folder / "to_label.csv").read_text().splitlines()))
        rows = [int(line[0]) - 1 for line in lines[1:]]
        for line, row in zip(lines[1:], rows, strict=True):
            line[-1] = str(data.y[row])
        with (folder / "filled.csv").open("w", newline="") as file:
            csv.writer(file).writerows(lines)
        (folder / "tickets.csv").write_text("row,anomaly\n5,1\n")
        told = gammagmm_here(
            *("estimate", "rows.csv", "--inspected", "filled.csv", "--json"),
            *("--known", "tickets.csv"),
            *self.DETECTORS,
            cwd=folder,
        )
        assert told.returncode == 0, told.stderr
        answer = json.loads(told.stdout)
        fitted = copy.deepcopy(whole)
        fitted.update(rows, data.y[rows])
        posterior = fitted.update([4], [1], at_random=False)
        assert answer["posterior"]["mean"] == pytest.approx(posterior.mean, rel=1e-9)
        assert answer["inspected"]["n_rows"] == 9
        assert any(
            "1 known rows were not chosen at random" in n["message"] for n in answer["notes"]
        )
        assert answer["inspected"]["mean_before"] == pytest.approx(fitted.fitted_posterior_.mean)
        assert answer["n_flagged"] == fitted.labels_.sum()

    def test_questions_in_the_terminal(self, folder, data):
        arguments = ("inspect", "rows.csv", "--ask", "--out", "asked.csv", "--n", 5)
        first = gammagmm(*arguments, *self.DETECTORS, cwd=folder, stdin="n\nn\n")
        assert first.returncode == 0, first.stderr
        assert "This estimate uses 2 labelled rows (0 anomalies)." in first.stdout
        again = gammagmm_here(*arguments, *self.DETECTORS, cwd=folder, stdin="y\nq\n")
        assert "2 of 5 rows have an answer already." in again.stderr
        assert "This estimate uses 3 labelled rows (1 anomaly)." in again.stdout

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("inspect", "rows.csv", "--out", "new.csv", "--n", "0"), "--n must be at least 1"),
            (
                ("inspect", "rows.csv", "--out", "new.csv", "--strategy", "best"),
                "--strategy must be random or",
            ),
            (
                ("inspect", "rows.csv", "--out", "new.csv", "--scale", "minmax"),
                "--scale must be standard, robust or none, got 'minmax'",
            ),
            (
                ("estimate", "rows.csv", "--scale", "minmax"),
                "--scale must be standard, robust or none, got 'minmax'",
            ),
            (("inspect", "rows.csv", "--out", "rows.csv", "--force"), "is an input and an output"),
            (
                ("inspect", "-", "--out", "new.csv", "--ask"),
                "--ask reads the answers from standard input",
            ),
            (("estimate", "rows.csv", "--inspected", "no.csv"), "no.csv does not exist"),
            (("estimate", "rows.csv", "--inspected", "rows.csv"), "has no columns 'row'"),
            (("estimate", "rows.csv", "--trust", "2"), "trust must be at least 0 and below 1"),
        ],
    )
    def test_bad_input_is_two_lines_and_exit_code_2(self, arguments, words, folder):
        done = gammagmm_here(*arguments, cwd=folder)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 2
        assert words in done.stderr
        assert done.stdout == ""
