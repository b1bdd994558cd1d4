"""``gammagmm label``: the questions, the sheet with its fit, and the command in a terminal."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import numpy as np
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.label import Dialogue, SheetFile
from gammagmm.cli.sheet import checked_words, read_sheet
from gammagmm.datasets import load_demo
from gammagmm.estimator.label_session import LabelSession
from gammagmm.labels.label_error import agreement
from gammagmm.labels.recall import RecallCheck, n_to_certify
from gammagmm.labels.sentences import (
    agreement_sentence,
    any_look_sentence,
    check_sentence,
    left_sentence,
    stop_sentence,
)
from gammagmm.labels.sheet import Sheet
from tests.support.command_line import COMMAND, gammagmm, gammagmm_here
from tests.support.needs import needs_posix
from tests.support.tables import knowing

DETECTORS = ("--detectors", "KNN,LOF", "--scale", "none", "--runs", "2", "--quiet")
REGIONS = ["north", "south", "east"]


@pytest.fixture(scope="module")
def data():
    return load_demo()


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("label")
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer", "region", *data.feature_names])
        for i, row in enumerate(data.X.tolist()):
            writer.writerow([f"{i:04d}", REGIONS[i % 3], *row])
    return folder


@pytest.fixture
def options(folder):
    """What makes the columns of the file the features of the demo data."""
    return ("rows.csv", "--id", "customer", "--drop", "region", *DETECTORS)


@pytest.fixture(scope="module")
def whole(data):
    return GammaGMM(["KNN", "LOF"], scale=None, n_runs=2, random_state=0).fit(data.X)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sheet.csv"


@pytest.fixture
def begin(whole, data, path):
    def begin(n=6, columns=data.feature_names, **options):
        """A session, which continues the sheet if there is one."""
        fit = knowing(whole.fit_, columns=columns, name="demo")
        sheet = read_sheet(path, fit.table) if path.exists() else None
        return LabelSession(fit, sheet, n=n, rng=np.random.default_rng(0), **options)

    return begin


def fill(path, y):
    """Write the true labels into the sheet at `path`; the rows that it has, from 0."""
    lines = list(csv.reader(path.read_text().splitlines()))
    rows = [int(line[0]) - 1 for line in lines[1:]]
    for line, row in zip(lines[1:], rows, strict=True):
        line[-1] = str(y[row])
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return rows


class Dialogues:
    asking = "share"

    def answer(self, monkeypatch, keys, session, path, shows_rank=False):
        """Lines on standard error, the sheet, and the answers on disk after each of the lines."""
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(keys) + "\n"))
        said, saved = [], []

        def echo(line):
            said.append(line)
            saved.append(read_sheet(path, session.fit.table).answers)

        file = SheetFile(path)
        if not session.waiting(self.asking):
            session.extend(self.asking, 10)
        file.save(session)
        Dialogue(session, file, echo, self.asking, shows_rank=shows_rank).run()
        return said, session.sheet, saved


class TestDialogue(Dialogues):
    def test_rows_are_in_simple_random_order_if_one_looks_after_each(self, begin):
        """So the promise of the interval at any look is proved for them."""
        asked = begin()
        rows = asked.fit.labelled_rows
        expected = rows.suggest(6, spread=False, random_state=np.random.default_rng(0))
        asked.extend("share", 10)
        assert asked.sheet.rows == tuple(expected.tolist())

    def test_each_answer_is_saved_before_the_next_question(self, monkeypatch, begin, data, path):
        start = begin()
        said, sheet, saved = self.answer(monkeypatch, ["y", "n", "s", "n", "q"], start, path)
        assert sheet.answers == saved[-1] == (1, 0, None, 0, None, None)
        told = [line for line in said if line.startswith("  About")]
        assert len(told) == 3
        known = start.labelled
        at_any_look = any_look_sentence(known.labelled_rows.interval_at_any_look())
        assert told[-1].endswith(at_any_look)
        assert f"{known.posterior.mean:.1%} of the rows" in told[-1]
        assert known.known_rows.at_random.all()

    @pytest.mark.parametrize("word", ["not sure", "yes", "1", "", "n y"])
    def test_words_that_are_no_answer_are_not_taken(self, monkeypatch, begin, word, path):
        said, sheet, saved = self.answer(monkeypatch, [word, "q"], begin(), path)
        assert sheet.answers == saved[-1] == (None,) * 6
        assert sum("Please answer y, n, u, s, z, a or q." in line for line in said) == 1

    def test_spaces_and_capitals_do_not_matter(self, monkeypatch, begin, path):
        _, sheet, _ = self.answer(monkeypatch, [" Y ", "N", "Q"], begin(), path)
        assert sheet.answers[:2] == (1, 0)

    def test_the_keys_mean_what_they_mean_on_the_page(self, monkeypatch, begin, path):
        """A row without a sure answer is not asked for again, and `z` takes this back."""
        start = begin()
        said, sheet, _ = self.answer(monkeypatch, ["u", "z", "n", "u", "q"], start, path)
        rows = sheet.rows
        assert read_sheet(path, start.fit.table).unsure == {rows[1]}
        assert sheet.answers == (0, None, None, None, None, None)
        assert f"  Row {start.fit.table.row_number(rows[0])} has no answer now." in said
        said, sheet, _ = self.answer(monkeypatch, ["y", "q"], begin(), path)
        assert sheet.answers == (0, None, 1, None, None, None)

    def test_undo_takes_the_last_answer_back_from_the_file_too(self, monkeypatch, begin, path):
        start = begin()
        keys = ["z", "y", "s", "z", "z", "n", "y", "q"]
        said, sheet, saved = self.answer(monkeypatch, keys, start, path)
        assert sheet.answers == saved[-1] == (0, 1, None, None, None, None)
        assert "  There is nothing to undo." in said
        row = start.fit.table.row_number(sheet.rows[0])
        assert f"  Row {row} has no answer now." in said
        assert (1, *(None,) * 5) in saved
        # The estimate is the one of the answers that are left.
        told = [line for line in said if line.startswith("  About")]
        expected = start.fit.update([sheet.rows[0]], [0]).posterior.mean
        assert f"About {expected:.1%} of the rows" in told[1]

    def test_the_last_answer_can_be_undone(self, monkeypatch, begin, path):
        keys = ["n"] * 6 + ["y", "z", "y", "q"]
        said, sheet, saved = self.answer(monkeypatch, keys, begin(), path)
        assert sheet.answers == saved[-1] == (0, 0, 0, 0, 0, 1)
        assert said.count("There are no more rows to ask about: z undo, q quit.") == 2
        assert "  Please answer z or q." in said
        # A later call can undo it as well.
        said, sheet, _ = self.answer(monkeypatch, ["z", "n", "q"], begin(), path)
        assert said[0] == "6 of 6 rows have an answer already."
        assert sheet.answers == (0,) * 6

    def test_all_columns_are_shown_and_the_rank_only_if_asked_for(
        self, monkeypatch, begin, data, path
    ):
        start = begin()
        said, sheet, _ = self.answer(monkeypatch, ["a", "q"], start, path)
        row = sheet.rows[0]
        assert said[1] == f"1/6  row {row + 1}"
        shown = " ".join(said[2:])
        for name, value in zip(data.feature_names, data.X[row], strict=True):
            assert f"{name}: {value:g}"[:12] in shown
        path.unlink()
        said, sheet, _ = self.answer(monkeypatch, ["q"], begin(), path, shows_rank=True)
        scores = start.fit.decision_scores
        rank = (scores > scores[sheet.rows[0]]).sum() + 1
        assert said[1] == f"1/6  row {sheet.rows[0] + 1}, rank {rank} of 367 by the consensus"

    def test_of_many_columns_the_odd_ones_are_shown(self, monkeypatch, begin, data, path):
        start = begin()
        said, sheet, _ = self.answer(monkeypatch, ["s"] * 6 + ["q"], start, path)
        usual = start.fit.usual_values()
        at = [i for i, line in enumerate(said) if "/6  row " in line]
        n_odd = []
        for row, first, last in zip(sheet.rows, at, [*at[1:], len(said) - 1], strict=True):
            *lines, rest = said[first + 1 : last]
            (columns,) = usual.columns_of(data.X[[row]])
            odd = [each for each in columns if each.is_odd]
            assert len(lines) == len(odd)
            assert rest.split()[0] == str(30 - len(odd))
            for each in odd:
                (line,) = (line for line in lines if each.value_words in line)
                assert each.usual_words in line
            n_odd.append(len(odd))
        assert 0 < sum(n_odd) < 60

    def test_a_later_call_continues_the_sheet(self, monkeypatch, begin, path):
        _, before, _ = self.answer(monkeypatch, ["n", "s", "n"], begin(), path)
        said, after, _ = self.answer(monkeypatch, ["y", "y"], begin(), path)
        assert said[0] == "2 of 6 rows have an answer already."
        assert after.answers == (0, 1, 0, 1, None, None)
        assert after.rows == before.rows

    def test_a_sheet_can_be_made_longer(self, monkeypatch, begin, path):
        _, before, _ = self.answer(monkeypatch, ["n"] * 6, begin(), path)
        said, after, _ = self.answer(monkeypatch, ["n"], begin(n=9), path)
        assert said[0] == "6 of 9 rows have an answer already."
        assert after.rows[:6] == before.rows
        assert len(set(after.rows)) == 9

    def test_hostile_names_cannot_move_the_cursor(self, monkeypatch, begin, data, path):
        names = tuple(f"\x1b[2J{name}" for name in data.feature_names)
        hostile = begin(n=2, columns=names)
        said, _, _ = self.answer(monkeypatch, ["q"], hostile, path)
        assert "\\x1b[2J" in said[2]
        assert "\x1b" not in "".join(said)


def found_by_tens(model, y, n):
    """The first `n` rows of rankings that are learned again after ten true labels."""
    model, rows = copy.deepcopy(model), []
    while len(rows) < n:
        new = model.suggest(min(10, n - len(rows)), purpose="find")
        model.update(new, y[new], purpose="find")
        rows += new.tolist()
    return rows


def keys_for(rows, y):
    return ["y" if y[row] else "n" for row in rows]


def asked_rows(said):
    """The rows, from 0, of the questions."""
    questions = (re.match(r"\d+/\d+  row (\d+)", line) for line in said)
    return [int(question[1]) - 1 for question in questions if question]


class TestDialogueToFind(Dialogues):
    asking = "find"

    def test_the_ranking_is_learned_again_after_ten_answers(
        self, monkeypatch, begin, data, whole, path
    ):
        rows = found_by_tens(whole, data.y, 30)
        by_consensus = np.argsort(-whole.decision_scores_, kind="stable")
        assert rows[:10] == by_consensus[:10].tolist()
        assert rows[10:20] != by_consensus[10:20].tolist()
        start = begin(n=30)
        said, sheet, _ = self.answer(monkeypatch, [*keys_for(rows, data.y), "q"], start, path)
        assert asked_rows(said) == list(sheet.rows) == rows
        assert list(sheet.answers) == data.y[rows].tolist()
        assert sheet.picked == set(rows)
        learned = "  The next 10 rows are the first of the ranking after your answers so far."
        assert said.count(learned) == 2
        assert said.index(learned) > said.index("  6 of the 10 labelled rows are anomalies.")
        assert said[-1] == "There are no more rows to ask about: z undo, q quit."
        known = start.labelled.known_rows
        assert known.picked.all()
        assert known.labels.sum() == data.y[rows].sum()

    def test_each_answer_and_each_new_row_is_on_disk_before_the_next_question(
        self, monkeypatch, begin, data, whole, path
    ):
        rows = found_by_tens(whole, data.y, 14)
        start = begin(n=14)
        said, sheet, saved = self.answer(monkeypatch, keys_for(rows, data.y), start, path)
        labels = data.y[rows].tolist()
        questions = [i for i, line in enumerate(said) if re.match(r"\d+/\d+  row", line)]
        for n_answers, i in enumerate(questions):
            n_rows = 10 if n_answers < 10 else 14
            expected = labels[:n_answers] + [None] * (n_rows - n_answers)
            assert list(saved[i]) == expected
        assert len(questions) == 14
        assert read_sheet(path, start.fit.table) == sheet

    def test_a_row_that_is_skipped_is_not_asked_again(self, monkeypatch, begin, data, whole, path):
        model = copy.deepcopy(whole)
        first = model.suggest(10, purpose="find").tolist()
        skipped = [first[1], first[7]]
        answered = [row for row in first if row not in skipped]
        model.update(answered, data.y[answered], purpose="find")
        ranked = model.suggest(12, purpose="find").tolist()
        assert set(skipped) & set(ranked[:10])
        rows = first + [row for row in ranked if row not in skipped][:10]
        keys = ["s" if row in skipped else keys_for([row], data.y)[0] for row in rows]
        start = begin(n=20)
        said, sheet, saved = self.answer(monkeypatch, [*keys, "q"], start, path)
        assert asked_rows(said) == list(sheet.rows) == rows
        expected = tuple(None if row in skipped else data.y[row] for row in rows)
        assert sheet.answers == saved[-1] == expected
        assert not set(skipped) & set(start.labelled.known_rows.rows)

    def test_an_answer_can_be_undone_after_the_next_rows_came(
        self, monkeypatch, begin, data, whole, path
    ):
        rows, y = found_by_tens(whole, data.y, 20), data.y.copy()
        y[rows[9]] = 1 - y[rows[9]]
        model = copy.deepcopy(whole)
        model.update(rows, y[rows], purpose="find")
        last = model.suggest(5, purpose="find").tolist()
        keys = [*keys_for(rows[:10], data.y), "z", *keys_for([*rows[9:], *last], y), "q"]
        start = begin(n=25)
        said, sheet, saved = self.answer(monkeypatch, keys, start, path)
        assert list(sheet.rows) == rows + last
        assert asked_rows(said) == [*rows[:11], *rows[9:], *last]
        assert sheet.answers == saved[-1] == tuple(y[rows + last])
        undone = said.index(f"  Row {rows[9] + 1} has no answer now.")
        assert saved[undone] == (*data.y[rows[:9]], *[None] * 11)

    def test_labels_from_before_teach_the_first_rows(self, monkeypatch, begin, data, whole, path):
        rows = whole.suggest(90, random_state=0).tolist()
        model = copy.deepcopy(whole)
        model.update(rows, data.y[rows])
        first = model.suggest(10, purpose="find").tolist()
        assert first != whole.suggest(10, purpose="find").tolist()
        earlier = (Sheet(tuple(rows), tuple(data.y[rows].tolist())),)
        start = begin(n=12, earlier=earlier)
        said, sheet, _ = self.answer(monkeypatch, keys_for(first, data.y), start, path)
        assert list(sheet.rows[:10]) == first
        model.update(first, data.y[first], purpose="find")
        assert list(sheet.rows[10:]) == model.suggest(2, purpose="find").tolist()
        n_anomalies = data.y[rows + first].sum()
        assert f"  {n_anomalies} of the 100 labelled rows are anomalies." in said
        known = start.labelled
        assert (known.known_rows.at_random.sum(), known.known_rows.picked.sum()) == (90, 10)
        assert known.posterior.mean == model.posterior_.mean

    def test_what_is_left_is_told_after_each_answer(self, monkeypatch, begin, data, whole, path):
        rows = whole.suggest(30, random_state=0).tolist()
        earlier = (Sheet(tuple(rows), tuple(data.y[rows].tolist())),)
        start = begin(n=5, earlier=earlier)
        start.extend("find", 5)
        keys = [*keys_for(start.sheet.rows, data.y), "q"]
        said, _, _ = self.answer(monkeypatch, keys, start, path)
        known = start.labelled_rows
        assert f"  {left_sentence(known.left, len(known.certify().rows))}" in said

    def test_the_rows_of_a_check(self, begin, data):
        rows = np.flatnonzero(data.y == 1)[:9].tolist()
        earlier = (Sheet(tuple(rows), (1,) * 9, frozenset(rows)),)
        start = begin(earlier=earlier)
        start.extend("check", 10)
        begun = start.sheet
        assert len(begun.rows) == n_to_certify(358, 9, 0.8, 0.9)
        assert begun.checked == begun.picked == set(begun.rows)
        assert start.extend("check", 10) == 0
        assert len(checked_words([*earlier, begun], start.labelled_rows)) == 1
        wrong_labels = begin(earlier=earlier)
        plan = replace(start.fit.plan, label_error=(0.1, 0.1))
        wrong_labels = LabelSession(replace(start.fit, plan=plan), earlier=earlier)
        assert wrong_labels.extend("check", 10) == 0

    def test_no_more_rows_than_there_are(self, monkeypatch, begin, data, whole, path):
        last = [100, 200, 300]
        others = np.setdiff1d(np.arange(367), last)
        earlier = (Sheet(tuple(others.tolist()), tuple(data.y[others].tolist())),)
        start = begin(n=10, earlier=earlier)
        said, sheet, _ = self.answer(monkeypatch, ["n", "n", "n", "q"], start, path)
        assert sorted(sheet.rows) == last
        assert said[-1] == "There are no more rows to ask about: z undo, q quit."
        assert start.extend("find", 10) == 0


class TestCommand:
    def test_from_rows_to_labels_to_a_more_precise_estimate(self, folder, data, whole, options):
        made = gammagmm_here(
            "label", "--sheet-only", *options, "--n", 8, "--out", "first.csv", cwd=folder
        )
        assert (made.returncode, made.stderr) == (0, "")
        assert made.stdout.startswith("8 rows to label: write 1 (anomaly) or 0 (normal)")
        told = "wide after 8 labels. Row 1 is the first row below the header."
        assert made.stdout.rstrip().endswith(told)
        rows = fill(folder / "first.csv", data.y)
        (folder / "tickets.csv").write_text("row,anomaly\n5,1\n")
        told = gammagmm_here(
            *("estimate", *options, "--labels", "first.csv", "--known", "tickets.csv"),
            *("--by", "region", "--json"),
            cwd=folder,
        )
        assert told.returncode == 0, told.stderr
        answer = json.loads(told.stdout)
        fitted = copy.deepcopy(whole)
        fitted.update(rows, data.y[rows])
        posterior = fitted.update([4], [1], at_random=False)
        assert answer["posterior"]["mean"] == pytest.approx(posterior.mean, rel=1e-9)
        inspected = answer["labels"]
        assert (inspected["n_rows"], inspected["n_at_random"]) == (9, 8)
        exact = fitted.labelled_rows_.exact_interval()
        assert (inspected["low"], inspected["high"]) == exact
        assert any(
            "1 known rows were not chosen at random" in n["message"] for n in answer["notes"]
        )
        assert answer["fitted_posterior"]["mean"] == pytest.approx(
            fitted.fit_.fitted_posterior.mean
        )
        assert answer["n_flagged"] == fitted.labels_.sum()
        table = fitted.labelled_rows_.by_group(np.array(REGIONS)[np.arange(367) % 3])
        assert answer["groups"] == [vars(group) for group in table]

    def test_the_sheet_has_all_columns_but_the_truth(self, folder, data):
        lines = ["customer,when,region,amount,is_fraud"]
        lines += [
            f"{i:03d},2024-01-{i % 28 + 1:02d},{REGIONS[i % 3]},{row[0]},{y}"
            for i, (row, y) in enumerate(zip(data.X, data.y, strict=True))
        ]
        (folder / "company.csv").write_text("\n".join(lines))
        options = ("--id", "customer", "--drop", "when", "--drop", "region", *DETECTORS)
        done = gammagmm_here(
            *(
                "label",
                "--sheet-only",
                "company.csv",
                "--truth",
                "is_fraud",
                "--out",
                "company_sheet.csv",
            ),
            *("--by", "region", "--n", 6, *options),
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
        heads, *rows = csv.reader((folder / "company_sheet.csv").read_text().splitlines())
        assert heads == ["row", "customer", "when", "region", "amount", "anomaly"]
        row = int(rows[0][0]) - 1
        assert rows[0][1:4] == [f"{row:03d}", f"2024-01-{row % 28 + 1:02d}", REGIONS[row % 3]]
        assert sorted(line[3] for line in rows) == sorted(REGIONS * 2)
        # A spreadsheet drops the zeros of an id and writes dates in its own way.
        rows = [[r, str(int(c)), f"{int(w[8:])}.1.24", g, a, "0"] for r, c, w, g, a, _ in rows]
        with (folder / "company_sheet.csv").open("w", newline="") as file:
            csv.writer(file).writerows([heads, *rows])
        told = gammagmm_here(
            *("estimate", "company.csv", "--drop", "is_fraud", "--labels", "company_sheet.csv"),
            *options,
            cwd=folder,
        )
        assert told.returncode == 0, told.stderr
        assert "This estimate uses 6 labelled rows (0 anomalies)." in told.stdout

    def test_questions_with_answers_from_a_pipe(self, folder, options):
        arguments = ("label", *options, "--terminal", "--out", "asked.csv", "--n", 5)
        first = gammagmm(*arguments, cwd=folder, stdin="n\nn\n")
        assert first.returncode == 0, first.stderr
        assert "This estimate uses 2 labelled rows (0 anomalies)." in first.stdout
        assert "customer: 0" in first.stderr
        assert "region: " in first.stderr
        assert "rank" not in first.stderr
        again = gammagmm_here(*arguments, cwd=folder, stdin="y\nq\n")
        assert "2 of 5 rows have an answer already." in again.stderr
        assert "This estimate uses 3 labelled rows (1 anomaly)." in again.stdout

    def test_several_sheets_and_their_contradictions(self, folder, options, data):
        for name, seed in (("one.csv", 1), ("two.csv", 2)):
            arguments = ("label", "--sheet-only", *options, "--out", name, "--n", 5, "--seed", seed)
            assert gammagmm_here(*arguments, cwd=folder).returncode == 0
        rows = {row for name in ("one.csv", "two.csv") for row in fill(folder / name, data.y)}
        estimate = ("estimate", *options, "--labels", "one.csv", "--labels", "two.csv")
        told = gammagmm_here(*estimate, "--json", cwd=folder)
        assert json.loads(told.stdout)["labels"]["n_at_random"] == len(rows)
        row = min(rows)
        (folder / "other.csv").write_text(f"row,anomaly\n{row + 1},{1 - data.y[row]}\n")
        refused = gammagmm_here(*estimate, "--known", "other.csv", cwd=folder)
        assert refused.returncode == 2
        assert f"Row {row + 1} is {data.y[row]} in " in refused.stderr
        assert "other.csv" in refused.stderr

    def test_from_labels_to_rows_at_the_top_to_a_learned_ranking(
        self, folder, options, data, whole, tmp_path
    ):
        share, find = tmp_path / "to_label.csv", tmp_path / "to_check.csv"
        made = gammagmm_here(
            "label", "--sheet-only", *options, "--n", 90, "--out", share, cwd=folder
        )
        assert made.returncode == 0, made.stderr
        rows = fill(share, data.y)
        find_options = ("--purpose", "find", "--labels", share, "--n", 12, "--out", find)
        made = gammagmm_here("label", "--sheet-only", *options, *find_options, cwd=folder)
        assert (made.returncode, made.stderr) == (0, "")
        assert made.stdout.startswith(
            "12 rows from the top of the ranking: write 1 (anomaly) or 0 (normal) in the column "
            f"anomaly of {find}, and pass the file to gammagmm estimate --labels"
        )
        assert "They do not show the share of anomalies" in made.stdout
        picked = fill(find, data.y)
        labels = tmp_path / "labels.csv"
        sheets = ("--labels", share, "--labels", find)
        told = gammagmm_here(
            *("estimate", *options, *sheets, "--json", "--out", labels), cwd=folder
        )
        assert (told.returncode, told.stderr) == (0, "")
        answer = json.loads(told.stdout)
        model = copy.deepcopy(whole)
        model.update(rows, data.y[rows])
        assert picked == model.suggest(12, purpose="find").tolist()
        posterior = model.update(picked, data.y[picked], purpose="find")
        for name in ("mean", "median", "std", "prob_zero", "n_labels"):
            assert answer["posterior"][name] == getattr(posterior, name)
        assert answer["posterior"]["interval_90"] == list(posterior.interval())
        assert answer["ranking"] == "learned"
        assert answer["check"] == asdict(model.fit_.learning.check)
        inspected = answer["labels"]
        n_labels = {name: inspected[f"n_{name}"] for name in ("rows", "at_random", "picked")}
        assert n_labels == {"rows": 102, "at_random": 90, "picked": 12}
        assert inspected["n_anomalies"] == data.y[rows + picked].sum()
        assert (inspected["low"], inspected["high"]) == model.labelled_rows_.exact_interval()
        assert answer["flagged_rows"] == (model.labels_.nonzero()[0] + 1).tolist()
        scores = [float(line["score"]) for line in csv.DictReader(labels.read_text().splitlines())]
        assert scores == model.decision_scores_.tolist()
        assert scores != whole.decision_scores_.tolist()
        # The order of the sheets does not matter.
        told = gammagmm_here("estimate", *options, *sheets[2:], *sheets[:2], "--json", cwd=folder)
        assert json.loads(told.stdout)["posterior"] == answer["posterior"]

    def test_a_check_shows_how_many_anomalies_are_found(
        self, folder, options, data, whole, tmp_path
    ):
        share, find, check = (tmp_path / f"{name}.csv" for name in ("share", "find", "check"))
        sheets = ("--labels", share, "--labels", find)
        for path, own in (
            (share, ()),
            (find, ("--purpose", "find", "--labels", share)),
            (check, ("--purpose", "check", *sheets)),
        ):
            made = gammagmm_here("label", "--sheet-only", *options, *own, "--out", path, cwd=folder)
            assert (made.returncode, made.stderr) == (0, "")
            rows = fill(path, data.y)
        told = gammagmm_here("estimate", *options, *sheets, cwd=folder)
        before = sorted({*fill(share, data.y), *fill(find, data.y)})
        left = 367 - len(before)
        n_found = data.y[before].sum()
        n = n_to_certify(left, n_found, 0.8, 0.9)
        assert stop_sentence(n).partition("(")[0] in told.stdout
        assert "--out check.csv --purpose check)" in told.stdout
        assert len(rows) == len(set(rows) - set(before)) == n
        lines = csv.DictReader(check.read_text().splitlines())
        assert {line["chosen for"] for line in lines} == {"check"}
        told = gammagmm_here("estimate", *options, *sheets, "--labels", check, cwd=folder)
        result = RecallCheck(np.array(rows), left, n_found, 0.8, 0.9).result(data.y[rows])
        assert check_sentence(n, result, n) in told.stdout
        told = gammagmm_here(
            *("estimate", *options, *sheets, "--labels", check, "--json"), cwd=folder
        )
        assert json.loads(told.stdout)["recall_check"] == asdict(result)
        # The rows of the check are no random sample of all rows, and the check needs all of them.
        check.write_text(check.read_text().rstrip("\n01") + "\n")
        told = gammagmm_here("estimate", *options, *sheets, "--labels", check, cwd=folder)
        assert check_sentence(n, None, n - 1) in told.stdout
        told = gammagmm_here("estimate", *options, "--labels", check, "--json", cwd=folder)
        answer = json.loads(told.stdout)
        assert (answer["labels"]["n_at_random"], answer["recall_check"]) == (0, None)
        refused = gammagmm_here("label", *options, "--terminal", "--out", check, cwd=folder)
        assert refused.returncode == 2
        assert "rows with --purpose check" in refused.stderr

    def test_second_labels_of_the_same_rows(self, folder, options, data, tmp_path):
        first, second = tmp_path / "first.csv", tmp_path / "second.csv"
        for path in (first, second):  # the same command chooses the same rows
            made = gammagmm_here(
                "label", "--sheet-only", *options, "--n", 8, "--out", path, cwd=folder
            )
            assert made.returncode == 0, made.stderr
            rows = fill(path, data.y)
        text = second.read_text().splitlines()
        text[3] = text[3][:-1] + str(1 - data.y[rows[2]])
        second.write_text("\n".join(text))
        estimate = ("estimate", *options, "--second-labels", second)
        told = gammagmm_here(*estimate, "--labels", first, cwd=folder)
        labels = data.y[rows]
        words = agreement_sentence(
            agreement(labels, np.where(np.arange(8) == 2, 1 - labels, labels))
        )
        assert words in told.stdout
        as_json = gammagmm_here(*estimate, "--labels", first, "--json", cwd=folder)
        assert json.loads(as_json.stdout)["agreement"]["n_agree"] == 7
        assert "This estimate uses 8 labelled rows" in told.stdout
        refused = gammagmm_here(*estimate, cwd=folder)
        assert refused.returncode == 2
        assert "No row of --second-labels has a first label" in refused.stderr

    @pytest.mark.parametrize("calls", [(20,), (4, 16), (10, 10)])
    def test_questions_to_find_anomalies(self, calls, folder, options, data, whole, tmp_path):
        rows, path = found_by_tens(whole, data.y, 20), tmp_path / "asked.csv"
        keys = keys_for(rows, data.y)
        for n_answers in calls:
            now, keys = keys[:n_answers], keys[n_answers:]
            done = gammagmm_here(
                *("label", *options, "--terminal", "--purpose", "find", "--n", 20, "--out", path),
                cwd=folder,
                stdin="\n".join(now) + "\n",
            )
            assert done.returncode == 0, done.stderr
        heads, *lines = csv.reader(path.read_text().splitlines())
        assert heads[:3] == ["row", "chosen for", "customer"]
        assert [int(line[0]) - 1 for line in lines] == rows
        assert {line[1] for line in lines} == {"find"}
        assert [line[-1] for line in lines] == [str(data.y[row]) for row in rows]
        assert "This estimate uses 20 labelled rows (9 anomalies)." in done.stdout

    def test_a_sample_after_rows_were_picked_is_one_of_all_rows(
        self, folder, options, data, whole, tmp_path
    ):
        find, share = tmp_path / "to_check.csv", tmp_path / "to_label.csv"
        arguments = (
            "label",
            "--sheet-only",
            *options,
            "--purpose",
            "find",
            "--n",
            40,
            "--out",
            find,
        )
        assert gammagmm_here(*arguments, cwd=folder).returncode == 0
        picked = fill(find, data.y)
        assert picked == whole.suggest(40, purpose="find").tolist()
        told = gammagmm_here(
            *("estimate", *options, "--labels", find, "--fail-above", 0.1), cwd=folder
        )
        assert told.returncode == 2
        assert "rows with --purpose find do not count" in told.stderr
        made = gammagmm_here(
            *("label", "--sheet-only", *options, "--n", 60, "--labels", find, "--out", share),
            cwd=folder,
        )
        assert (made.returncode, made.stderr) == (0, "")
        # Rows that were picked take part, and have no answer yet.
        assert {line.rpartition(",")[2] for line in share.read_text().splitlines()[1:]} == {""}
        sampled = fill(share, data.y)
        assert sampled == whole.suggest(60, spread=False, random_state=0).tolist()
        both = set(sampled) & set(picked)
        assert len(both) > 1
        told = gammagmm_here(
            *("estimate", *options, "--labels", find, "--labels", share, "--json"), cwd=folder
        )
        assert (told.returncode, told.stderr) == (0, "")
        answer = json.loads(told.stdout)
        model = copy.deepcopy(whole)
        model.update(picked, data.y[picked], purpose="find")
        posterior = model.update(sampled, data.y[sampled])
        assert answer["posterior"]["mean"] == posterior.mean
        inspected = answer["labels"]
        assert (inspected["n_at_random"], inspected["n_picked"]) == (60, 40 - len(both))
        # More rows of the sample are other ones.
        more = tmp_path / "more.csv"
        arguments = ("--labels", find, "--labels", share, "--out", more)
        assert (
            gammagmm_here("label", "--sheet-only", *options, *arguments, cwd=folder).returncode == 0
        )
        assert not set(fill(more, data.y)) & set(sampled)

    def test_rows_from_the_top_that_are_said_to_be_random_are_one_line_of_warning(
        self, folder, options, data, whole, tmp_path
    ):
        rows = whole.suggest(12, purpose="find")
        lines = [f"{row + 1},{data.y[row]}" for row in rows]
        (tmp_path / "top.csv").write_text("\n".join(["row,anomaly", *lines]))
        sheets = ("--labels", tmp_path / "top.csv", "--out", tmp_path / "new.csv")
        for command in (
            ("label", "--sheet-only", *options, *sheets, "--purpose", "find"),
            ("label", "--sheet-only", *options, *sheets, "--purpose", "share", "--force"),
            ("estimate", *options, *sheets[:2]),
        ):
            done = gammagmm_here(*command, cwd=folder)
            assert done.returncode == 0, done.stderr
            (line,) = done.stderr.splitlines()
            assert line.startswith("warning: Of the 12 rows that count as chosen at random")

    def test_contradictions_between_a_sheet_and_earlier_ones(self, folder, options, tmp_path):
        one, two = tmp_path / "one.csv", tmp_path / "two.csv"
        one.write_text("row,anomaly\n7,0\n8,1\n")
        two.write_text("row,chosen for,anomaly\n9,find,1\n8,find,0\n")
        arguments = ("label", *options, "--terminal", "--purpose", "find", "--labels", one)
        done = gammagmm_here(*arguments, "--out", two, cwd=folder, stdin="q\n")
        assert done.returncode == 2
        assert f"Row 8 is 1 in {one} and 0 in {two}" in done.stderr
        assert not two.with_suffix(".fit").exists()
        arguments = (*arguments, "--labels", two, "--out", tmp_path / "three.csv")
        done = gammagmm_here(*arguments, cwd=folder, stdin="q\n")
        assert done.returncode == 2
        assert f"Row 8 is 1 in {one} and 0 in {two}" in done.stderr
        assert not (tmp_path / "three.csv").exists()
        done = gammagmm_here("estimate", *options, *arguments[-6:-2], cwd=folder)
        assert done.returncode == 2
        assert f"Row 8 is 1 in {one} and 0 in {two}" in done.stderr

    def test_an_earlier_sheet_is_not_written_over(self, folder, options, tmp_path):
        path = tmp_path / "one.csv"
        path.write_text("row,anomaly\n7,0\n")
        arguments = ("label", "--sheet-only", *options, "--labels", path, "--out", path, "--force")
        done = gammagmm_here(*arguments, cwd=folder)
        assert done.returncode == 2
        assert "is an input and an output" in done.stderr
        assert path.read_text() == "row,anomaly\n7,0\n"

    def test_a_sheet_with_answers_is_named_for_more_rows(self, folder, options, tmp_path):
        path = tmp_path / "one.csv"
        path.write_text("row,anomaly\n7,0\n")
        sheet = ("label", "--sheet-only", *options, "--n", 5)
        done = gammagmm_here(*sheet, "--out", path, cwd=folder)
        assert done.returncode == 2
        assert f"--labels {path} --out {tmp_path / 'one_2.csv'}" in done.stderr
        assert "discards its answers" in done.stderr
        assert path.read_text() == "row,anomaly\n7,0\n"
        more = ("--labels", path, "--out", tmp_path / "one_2.csv")
        assert gammagmm_here(*sheet, *more, cwd=folder).returncode == 0
        with (tmp_path / "one_2.csv").open(newline="") as file:
            numbers = [line[0] for line in csv.reader(file)][1:]
        assert len(numbers) == 5
        assert "7" not in numbers

    def test_an_earlier_sheet_needs_answers(self, folder, options, tmp_path):
        (tmp_path / "one.csv").write_text("row,anomaly\n7,\n")
        arguments = ("--labels", tmp_path / "one.csv", "--out", tmp_path / "two.csv")
        done = gammagmm_here("label", "--sheet-only", *options, *arguments, cwd=folder)
        assert done.returncode == 2
        assert "one.csv has no answers yet" in done.stderr

    def test_an_id_column_may_be_named_row(self, folder, data):
        lines = ["row,amount,weight"]
        lines += [f"r{i},{row[0]},{row[1]}" for i, row in enumerate(data.X)]
        (folder / "named.csv").write_text("\n".join(lines))
        arguments = ("named.csv", "--id", "row", *DETECTORS)
        done = gammagmm_here(
            "label", "--sheet-only", *arguments, "--out", "named_sheet.csv", cwd=folder
        )
        assert done.returncode == 0, done.stderr
        fill(folder / "named_sheet.csv", data.y)
        told = gammagmm_here("estimate", *arguments, "--labels", "named_sheet.csv", cwd=folder)
        assert told.returncode == 0, told.stderr

    def test_a_sheet_by_groups_can_be_made_longer(self, folder, options):
        arguments = ("label", *options, "--terminal", "--by", "region", "--out", "grouped.csv")
        first = gammagmm_here(*arguments, "--n", 6, cwd=folder, stdin="n\n")
        assert first.returncode == 0, first.stderr
        again = gammagmm_here(*arguments, "--n", 7, cwd=folder, stdin="n\nq\n")
        assert again.returncode == 0, again.stderr
        assert len((folder / "grouped.csv").read_text().splitlines()) == 8

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (
                (
                    "label",
                    "--sheet-only",
                    "rows.csv",
                    "--truth",
                    "region",
                    "--by",
                    "region",
                    "--out",
                    "n.csv",
                ),
                "--by and --truth name the same column",
            ),
            (
                ("label", "--sheet-only", "rows.csv", "--out", "new.csv", "--n", "0"),
                "--n must be at least 1",
            ),
            (
                ("estimate", "rows.csv", "--scale", "minmax"),
                "must be standard, robust or none, got 'minmax'",
            ),
            (
                ("label", "--sheet-only", "rows.csv", "--out", "rows.csv", "--force"),
                "is an input and an output",
            ),
            (
                ("label", "--sheet-only", "rows.csv", "--out", "rows.fit"),
                "--out writes .csv, and rows.fit ends",
            ),
            (
                ("label", "-", "--out", "new.csv", "--terminal"),
                "--terminal reads the answers from standard input",
            ),
            (
                (
                    "label",
                    "--sheet-only",
                    "rows.csv",
                    *DETECTORS[:-1],
                    "--drop",
                    "region",
                    "--by",
                    "area",
                ),
                "rows.csv has no column 'area'",
            ),
            (
                ("label", "--sheet-only", "rows.csv", "--out", "new.csv", "--purpose", "other"),
                "must be share, find or check, got 'other'",
            ),
            (
                (
                    "label",
                    "--sheet-only",
                    "rows.csv",
                    "--out",
                    "n.csv",
                    "--purpose",
                    "find",
                    "--by",
                    "region",
                ),
                "--by needs --purpose share",
            ),
            (
                ("label", "--sheet-only", "rows.csv", "--out", "n.csv", "--purpose", "check"),
                "--purpose check needs the rows that were labelled before",
            ),
            (
                ("label", "--sheet-only", "rows.csv", "--out", "new.csv", "--labels", "no.csv"),
                "no.csv does not exist",
            ),
            (("estimate", "rows.csv", "--labels", "no.csv"), "no.csv does not exist"),
            (
                ("estimate", "rows.csv", "--drop", "region", "--labels", "rows.csv"),
                "has no columns 'row'",
            ),
        ],
    )
    def test_bad_input_is_two_lines_and_exit_code_2(self, arguments, words, folder):
        done = gammagmm_here(*arguments, cwd=folder)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 2
        assert words in done.stderr
        assert done.stdout == ""


class TestKeptFit:
    @pytest.fixture
    def sheet(self, folder, options, data, tmp_path):
        """A filled sheet with its fit beside it."""
        done = gammagmm_here(
            "label", "--sheet-only", *options, "--out", tmp_path / "sheet.csv", cwd=folder
        )
        assert done.returncode == 0, done.stderr
        fill(tmp_path / "sheet.csv", data.y)
        return tmp_path / "sheet.csv"

    @pytest.fixture
    def fits(self, monkeypatch):
        """The tables that are fitted."""
        fits, fit = [], GammaGMM._fit_table

        def counted(self, table, plan):
            fits.append(table)
            return fit(self, table, plan)

        monkeypatch.setattr(GammaGMM, "_fit_table", counted)
        return fits

    def outputs(self, folder, options, sheet):
        """The answer and all files, as texts without the seconds that detectors took."""
        made = [sheet.with_name(name) for name in ("labels.csv", "posterior.json")]
        done = gammagmm_here(
            *("estimate", *options, "--labels", sheet, "--json", "--force"),
            *("--out", made[0], "--posterior", made[1]),
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        for detector in answer["detectors"]:
            del detector["seconds"]
        return [answer, *(path.read_text() for path in made)], done.stderr

    def test_the_answer_is_the_one_of_a_full_fit(self, folder, options, sheet, fits):
        kept, told = self.outputs(folder, options, sheet)
        assert (len(fits), told) == (0, "")
        sheet.with_suffix(".fit").unlink()
        full, _ = self.outputs(folder, options, sheet)
        assert len(fits) == 1
        assert kept == full

    def test_rows_to_find_anomalies_use_the_fit_beside_the_earlier_sheet(
        self, folder, options, sheet, fits
    ):
        picked = []
        for name in ("kept.csv", "fitted.csv"):
            path = sheet.with_name(name)
            done = gammagmm_here(
                *(
                    "label",
                    "--sheet-only",
                    *options,
                    "--purpose",
                    "find",
                    "--labels",
                    sheet,
                    "--out",
                    path,
                ),
                cwd=folder,
            )
            assert (done.returncode, done.stderr) == (0, "")
            picked.append(path.read_text())
            sheet.with_suffix(".fit").unlink(missing_ok=True)
        # Without it, the fit is kept beside the new sheet.
        assert len(fits) == 1
        assert [(sheet.parent / f"{name}.fit").exists() for name in ("kept", "fitted")] == [
            False,
            True,
        ]
        assert picked[0] == picked[1]

    def test_the_learned_ranking_is_the_one_of_a_full_fit(self, folder, options, data, sheet, fits):
        arguments = ("label", "--sheet-only", *options, "--out", sheet, "--n", 90, "--force")
        assert gammagmm_here(*arguments, cwd=folder).returncode == 0
        fill(sheet, data.y)
        fits.clear()
        kept, told = self.outputs(folder, options, sheet)
        assert (len(fits), told) == (0, "")
        assert kept[0]["ranking"] == "learned"
        sheet.with_suffix(".fit").unlink()
        full, _ = self.outputs(folder, options, sheet)
        assert (len(fits), kept) == (1, full)

    def test_the_report_is_the_one_of_a_full_fit(self, folder, options, sheet):
        pages = []
        for name in ("kept.html", "full.html"):
            path = sheet.with_name(name)
            done = gammagmm_here(
                *("estimate", *options, "--labels", sheet, "--report", path), cwd=folder
            )
            assert done.returncode == 0, done.stderr
            pages.append(path.read_text("utf-8"))
            sheet.with_suffix(".fit").unlink(missing_ok=True)
        # The times of the detectors are those of their own fit.
        texts = [
            [line for line in page.splitlines() if '<td class="n">0.' not in line] for page in pages
        ]
        assert texts[0] == texts[1]
        assert len(texts[0]) > 200

    def test_a_fit_of_other_options_is_not_used(self, folder, options, sheet):
        done = gammagmm_here(*("estimate", *options, "--labels", sheet, "--p0", "0.02"), cwd=folder)
        assert done.returncode == 0
        expected = "sheet.fit has a fit of other rows or options. The rows are fitted again."
        assert expected in done.stderr

    def test_a_damaged_fit_is_told_and_not_used(self, folder, options, sheet):
        path = sheet.with_suffix(".fit")
        path.write_bytes(path.read_bytes()[:1000])
        done = gammagmm_here("estimate", *options, "--labels", sheet, cwd=folder)
        assert done.returncode == 0
        assert "cannot be read as a saved fit" in done.stderr
        assert "The rows are fitted again." in done.stderr

    def test_another_number_of_jobs_uses_it_too(self, folder, options, sheet):
        done = gammagmm_here("estimate", *options, "--labels", sheet, "--jobs", 1, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")

    def test_a_sheet_is_continued_beside_a_damaged_fit(self, folder, options, sheet):
        sheet.with_suffix(".fit").write_text("damaged")
        arguments = ("label", *options, "--out", sheet, "--terminal")
        done = gammagmm_here(*arguments, cwd=folder, stdin="q\n")
        assert done.returncode == 0, done.stderr
        assert "The rows are fitted again." in done.stderr
        assert sheet.with_suffix(".fit").read_text() == "damaged"

    def test_a_file_that_is_no_fit_is_not_replaced(self, folder, options, tmp_path):
        path = tmp_path / "sheet.fit"
        path.write_text("mine")
        arguments = ("label", "--sheet-only", *options, "--out", tmp_path / "sheet.csv")
        done = gammagmm_here(*arguments, cwd=folder)
        assert done.returncode == 2
        assert "cannot be read as a saved fit" in done.stderr
        assert path.read_text() == "mine"
        assert not (tmp_path / "sheet.csv").exists()
        assert gammagmm_here(*arguments, "--force", cwd=folder).returncode == 0
        assert path.read_bytes()[:2] == b"PK"


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *arguments, cwd):
        import pty

        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            start_new_session=True,
            env=os.environ | {"COLUMNS": "200"},
        )
        os.close(theirs)
        self.ours, self.seen = ours, ""

    def until(self, words, timeout=120.0):
        """Read until `words` have been printed after the last answer; what was printed."""
        end = time.monotonic() + timeout
        while words not in self.seen:
            assert time.monotonic() < end, f"{words!r} not in {self.seen!r}"
            if select.select([self.ours], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.ours, 65536).decode()
                except OSError:  # the command has ended
                    assert words in self.seen, self.seen
        found, self.seen = self.seen, ""
        return found

    def type(self, line):
        self.seen = ""
        os.write(self.ours, f"{line}\n".encode())


@pytest.mark.long
@needs_posix
def test_the_dialogue_in_a_terminal(folder, options, data):
    arguments = ("label", *options, "--terminal", "--out", "terminal.csv", "--n", 6)

    def answers():
        lines = list(csv.reader((folder / "terminal.csv").read_text().splitlines()))
        return [line[-1] for line in lines[1:]]

    terminal = Terminal(*arguments, cwd=folder)
    shown = terminal.until("1/6")
    assert "y yes, n no, u unsure, s skip the row, z undo, q quit" in shown
    for word in ("not sure", "yes", ""):
        terminal.type(word)
        terminal.until("Please answer y, n, u, s, z, a or q.")
    assert answers() == [""] * 6
    terminal.type("y")
    assert "By your answers alone" in terminal.until("2/6")
    terminal.type("n")
    terminal.until("3/6")
    assert answers()[:3] == ["1", "0", ""]
    terminal.type("z")
    terminal.until("2/6")
    assert answers()[:3] == ["1", "", ""]
    terminal.type("s")
    terminal.until("3/6")
    terminal.type("n")
    terminal.until("4/6")
    # Both processes of the command are killed, without a chance to tidy up.
    os.killpg(terminal.process.pid, signal.SIGKILL)
    terminal.process.wait()
    assert answers() == ["1", "", "0", "", "", ""]
    again = Terminal(*arguments, cwd=folder)
    shown = again.until("2/6")
    assert "2 of 6 rows have an answer already." in shown
    again.type("n")
    again.until("4/6")
    again.type("q")
    assert "This estimate uses 3 labelled rows (1 anomaly)." in again.until("The most unusual rows")
    assert again.process.wait() == 0
    assert answers() == ["1", "0", "0", "", "", ""]
