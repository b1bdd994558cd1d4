"""The texts that the command line writes."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.stats import binomtest

from gammagmm import GammaGMM, GammaPosterior, LabelledRows
from gammagmm._support.text import percent
from gammagmm.cli.output import (
    NOT_COMPARABLE,
    answer_json,
    answer_text,
    comparison_text,
    labels_csv,
)
from gammagmm.estimator.reasons import COMBINATION
from gammagmm.labels.sentences import ranking_sentence
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.comparison import NO_ESTIMATE, NO_LABELS, compare_posteriors
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.table.sample import Sample
from gammagmm.table.table import Groups
from tests.support.tables import knowing


def posterior(*parts, prob_zero=0.01, n_labels=0):
    betas = BetaMixture(*np.array(parts).T)
    return GammaPosterior(prob_zero, betas, n_labels=n_labels, is_model=n_labels == 0)


NARROW = posterior((0.99, 500.0, 9500.0), n_labels=30)
TWO_HUMPS = posterior((0.5, 200.0, 9800.0), (0.49, 900.0, 9100.0), n_labels=1)
FITTED = posterior((0.99, 200.0, 9800.0))
NONE = GammaPosterior.degenerate()


def test_the_labels_are_those_of_the_data_frame_and_need_no_pandas(fitted, monkeypatch):
    frame = fitted.to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    text = labels_csv(fitted.fit_)
    heads, *lines = csv.reader(io.StringIO(text))
    assert heads == ["id", *frame.columns[:3], "reason", *frame.columns[3:]]
    assert [line[0] for line in lines] == [str(i) for i in range(1, 301)]
    words = zip(fitted.reasons(), fitted.labels_, strict=True)
    expected = [(reason or COMBINATION) if label else "" for reason, label in words]
    assert [line[4] for line in lines] == expected
    written = np.array([[*line[1:4], *line[5:]] for line in lines], dtype=float)
    frame["probability"] = frame["probability"].round(4)
    np.testing.assert_array_equal(written, frame.to_numpy(dtype=float))
    heads, *ordered = csv.reader(io.StringIO(labels_csv(fitted.fit_, is_sorted=True)))
    assert ordered == sorted(lines, key=lambda line: -float(line[1]))


def test_known_rows_are_first_and_last_in_sorted_labels(fitted):
    worst, best = int(np.argmin(fitted.decision_scores_)), int(np.argmax(fitted.decision_scores_))
    fit = fitted.fit_.update([worst, best], [1, 0])
    rows = list(csv.DictReader(io.StringIO(labels_csv(fit, is_sorted=True))))
    assert [rows[0]["id"], rows[-1]["id"]] == [str(worst + 1), str(best + 1)]


def test_the_labels_have_the_reasons_with_the_names_of_the_file(fitted, data):
    top = int(np.argmax(fitted.decision_scores_))
    rows = data.X.copy()
    rows[top, 3] = 5400.0
    fit = knowing(fitted.fit_, columns=("=a", "b", "c", "amount"), values=rows)
    lines = list(csv.DictReader(io.StringIO(labels_csv(fit, is_sorted=True))))
    assert lines[0]["id"] == str(top + 1)
    assert lines[0]["reason"].startswith("amount 5,400 is far above the usual ")
    assert not any(line["reason"].startswith("=") for line in lines)
    assert {line["label"] for line in lines if line["reason"]} == {"1"}


@pytest.mark.parametrize(("factor", "place"), [(1.0, "inside"), (5.0, "outside")])
def test_known_labels_are_compared_with_the_interval(fitted, factor, place):
    n_true = round(factor * fitted.posterior_.mean * 300)
    fit = knowing(fitted.fit_, truth=(np.arange(300) < n_true).astype(int))
    words = (
        f"According to the labels in the file, the share is {n_true / 300:.1%}, which is {place} "
        "the model range."
    )
    assert words in answer_text(fit)
    answer = json.loads(answer_json(fit))
    assert answer["truth"]["is_inside"] == (place == "inside")
    assert answer["posterior"]["n_labels"] == 0


def test_the_answer_has_the_evidence(fitted):
    group = SeparateRows(np.array([5, 9, 200]), 3, 0.01, 0.9, ("KNN", "LOF"))
    fit = replace(fitted.fit_, evidence=replace(fitted.evidence_, separate_rows=group))
    lines = answer_text(fit).split("\n\n")[0].split("\n")
    assert lines == fit.lines
    assert len(lines) == 4
    answer = json.loads(answer_json(knowing(fit, places=np.arange(7, 307))))
    assert answer["lines"] == lines
    evidence = answer["evidence"]
    starts = (fitted.evidence_.n_starts, fitted.evidence_.n_unsolved_starts)
    assert (evidence["n_starts"], evidence["n_unsolved_starts"]) == starts
    for told, other in zip(evidence["assumptions"], fitted.evidence_.assumptions, strict=True):
        assert told["changed"] == list(other.changed)
        assert told["mean"] == (None if np.isnan(other.mean) else other.mean)
    assert evidence["track_record"]["n_tables"] == fitted.evidence_.track_record.n_tables
    assert evidence["separate_rows"]["rows"] == [13, 17, 208]
    assert evidence["separate_rows"]["detectors"] == ["KNN", "LOF"]


def first_rows(fit, **options):
    """The lines about the first rows: title, heads, rows, and what is said below."""
    return answer_text(fit, **options).split("\n\n")[1].split("\n")


def test_the_first_rows_are_told_with_their_reasons(fitted, data):
    order = np.argsort(-fitted.decision_scores_, kind="stable")[:5]
    rows = data.X.copy()
    rows[order[0], 3] = 5400.0
    fit = knowing(fitted.fit_, columns=("a", "b", "c", "amount"), values=rows)
    title, heads, *lines = first_rows(fit)
    assert title == "The most unusual rows (row 1 is the first row below the header):"
    assert heads.split("  ")[1:] == ["row", "P(anomaly)", "unusual values"]
    assert [line.split()[0] for line in lines[:5]] == [str(row + 1) for row in order]
    assert [line.split()[1] for line in lines[:5]] == [percent(fit.probability[r]) for r in order]
    assert "%  amount 5,400 is far above the usual " in lines[0]
    n_below = int((fit.probability[fit.labels == 1] < 0.5).sum())
    assert n_below > 0
    assert lines[5].startswith("P(anomaly) is below 50% for ")
    assert "--out rows_with_scores.csv --sort" in lines[-1]
    assert "--out" not in first_rows(fit, has_out=False)[-1]
    ids = (*("x" * 99 for _ in range(299)), "last\n\x1b[2J")
    named = knowing(fit, ids=ids)
    assert first_rows(named)[0] == "The most unusual rows:"
    assert "\x1b" not in answer_text(named)


def test_lines_of_rows_are_as_wide_as_the_terminal(fitted, monkeypatch):
    long = first_rows(fitted.fit_)[2:7]
    monkeypatch.setenv("COLUMNS", "44")
    short = first_rows(fitted.fit_)[2:7]
    assert [len(line) for line in short] == [min(len(line), 44) for line in long]
    assert all(cut[:41] == line[:41] for cut, line in zip(short, long, strict=True))


def test_scores_have_first_rows_without_reasons(rng):
    scores = np.r_[rng.normal(size=(200, 3)), rng.normal(6.0, 1.0, size=(9, 3))]
    fitted = GammaGMM("precomputed", n_runs=1, random_state=0).fit(scores)
    _, heads, *lines = first_rows(fitted.fit_)
    assert heads.split() == ["row", "P(anomaly)"]
    assert [len(line.split()) for line in lines[:5]] == [2] * 5
    assert not lines[5].startswith("  ")


def test_the_first_rows_of_a_sample_have_their_numbers_in_the_table(fitted):
    numbers = np.arange(0, 900, 3)
    fit = knowing(fitted.fit_, sample=Sample(1000, 300, numbers))
    title, _, first, *_, more = first_rows(fit)
    assert title.startswith("The most unusual of the 300 sampled rows (row 1 ")
    assert first.split()[0] == str(numbers[np.argmax(fitted.decision_scores_)] + 1)
    assert "--out" not in more  # which needs all rows


def test_only_detectors_without_scores_are_named(fitted):
    assert "detectors" not in answer_text(fitted.fit_).split("\n\n")[-1]
    info = fitted.fit_.detector_info
    failed = replace(info[0], name="own\n", status="timeout")
    fit = replace(fitted.fit_, detector_info=(failed, *info[1:]))
    last = answer_text(fit).split("\n\n")[-1]
    assert last == f"1 of {len(info)} detectors not used: own\\n (timeout)."


def test_flagged_rows_by_group_without_labels(fitted):
    groups = np.array(["north", "", "south\n"])[np.minimum(np.arange(300) % 40, 2)]
    fit = knowing(fitted.fit_, groups=Groups(groups, "region"))
    answer, _, table = answer_text(fit).split("\n\n")
    assert answer == "\n".join(fitted.fit_.lines)
    title, heads, *lines = table.split("\n")
    assert title == "Flagged rows by region:"
    assert heads.split("  ")[0] == "group"
    assert [line.split()[0] for line in lines] == ["south\\n", "(missing)", "north"]
    n_flagged = fitted.labels_[groups == "south\n"].sum()
    low, high = binomtest(int(n_flagged), 284).proportion_ci(0.9, method="exact")
    assert lines[0].split()[1:4] == ["284", str(n_flagged), f"{n_flagged / 284:.1%}"]
    assert lines[0].endswith(f"{low:.1%} to {high:.1%}")
    told = json.loads(answer_json(fit))["groups"]
    assert [told[0]["low_flagged"], told[0]["high_flagged"]] == pytest.approx([low, high])
    assert sum(group["n_flagged"] for group in told) == fitted.labels_.sum()
    assert {group["mean"] for group in told} == {None}
    assert json.loads(answer_json(fitted.fit_))["groups"] is None


def test_groups_with_labels_have_their_shares_too(fitted):
    groups = np.array(["a", "b"])[(np.arange(300) >= 200).astype(int)]
    fit = fitted.fit_.update([0, 1, 2], [0, 1, 0])
    _, _, flagged, anomalies = answer_text(fit.grouped(groups)).split("\n\n")
    assert flagged.startswith("Flagged rows by group:")
    title, _, line = anomalies.split("\n")
    assert title == "Share of anomalies by group, from the labels of each group:"
    rows = LabelledRows(np.zeros(200)).update([0, 1, 2], [0, 1, 0])
    own = rows.posterior
    ends = [f"{low:.1%} to {high:.1%}" for low, high in (own.interval(), rows.exact_interval())]
    assert line.split()[:4] == ["a", "3", "1", f"{own.mean:.1%}"]
    assert re.findall(r"\S+ to \S+", line) == ends


def test_the_text_has_the_largest_groups_only(fitted):
    groups = np.minimum(np.arange(300), 40).astype(str)
    table = answer_text(fitted.fit_.grouped(groups)).split("\n\n")[2]
    assert table.split("\n")[2].startswith("40 ")
    assert table.endswith("\nThese are the 30 largest of 41 groups. --json prints all.")
    assert table.count("\n") == 32


def test_with_labels_the_assumptions_are_not_told(fitted):
    rows = fitted.suggest(10, random_state=0)
    updated = fitted.fit_.update(rows, np.zeros(10, dtype=int))
    text = answer_text(updated)
    assert "This estimate uses 10 labelled rows (0 anomalies)." in text
    low, high = updated.evidence.means
    assert f"{percent(low)} to {percent(high)}" not in text


def test_the_answer_names_the_ranking_and_counts_the_rows_that_were_picked(fitted, data):
    answer = json.loads(answer_json(fitted.fit_))
    assert (answer["ranking"], answer["check"], answer["labels"]) == ("consensus", None, None)
    sampled = fitted.suggest(30, random_state=1)
    top = fitted.suggest(15, purpose="find")
    assert len(np.intersect1d(sampled, top)) > 0
    fit = fitted.fit_.update(sampled, data.y[sampled])
    fit = fit.update(top, data.y[top], purpose="find")
    answer = json.loads(answer_json(fit))
    assert (answer["ranking"], answer["check"]) == ("learned", asdict(fit.learning.check))
    rows, inspected = np.union1d(sampled, top), answer["labels"]
    assert (inspected["n_rows"], inspected["n_at_random"]) == (len(rows), 30)
    assert inspected["n_picked"] == len(rows) - 30
    assert inspected["n_anomalies"] == data.y[rows].sum()
    assert answer["threshold"] == fit.threshold
    assert answer["flagged_rows"] == (fit.labels.nonzero()[0] + 1).tolist()
    picked = [told for told in answer["notes"] if told["code"] == "labels.picked"]
    assert [told["values"]["n_rows"] for told in picked] == [len(rows) - 30]
    assert ranking_sentence(fit.learning) in answer_text(fit)


@pytest.mark.parametrize("n_anomalies", [0, 1])
def test_a_ranking_without_a_check(fitted, data, n_anomalies):
    normal, anomalies = (np.flatnonzero(data.y == label) for label in (0, 1))
    rows = [*normal[:5], *anomalies[:n_anomalies]]
    fit = fitted.fit_.update(rows, data.y[rows], at_random=False)
    name = "learned" if n_anomalies else "consensus"
    answer = json.loads(answer_json(fit))
    assert (answer["ranking"], answer["check"]) == (name, None)


def test_the_scores_in_the_labels_are_those_of_the_learned_ranking(fitted, data):
    rows = np.r_[np.flatnonzero(data.y == 0)[:10], np.flatnonzero(data.y == 1)[:5]]
    fit = fitted.fit_.update(rows, data.y[rows], at_random=False)
    assert fit.ranking == "learned"
    lines = list(csv.DictReader(io.StringIO(labels_csv(fit))))
    assert [float(line["score"]) for line in lines] == fit.decision_scores.tolist()
    assert [float(line["probability"]) for line in lines] == fit.probability.round(4).tolist()
    assert [int(line["label"]) for line in lines] == fit.labels.tolist()
    assert fit.decision_scores.tolist() != fitted.decision_scores_.tolist()


def test_a_comparison_with_labels():
    words = comparison_text(("a.json", "b.json"), (NARROW, TWO_HUMPS))
    found = compare_posteriors(NARROW, TWO_HUMPS)
    assert words.splitlines() == [
        "           mean  90% interval  labels",
        "A  a.json  5.0%  4.6% to 5.4%      30",
        "B  b.json  5.4%  1.8% to 9.4%       1",
        "",
        f"The share in B exceeds that in A with probability {found['prob_b_above_a']:.1%}; it is "
        f"lower with probability {found['prob_a_above_b']:.1%}.",
    ]


@pytest.mark.parametrize(
    "pair", [(FITTED, FITTED), (NARROW, FITTED), (FITTED, NARROW)], ids=["neither", "A", "B"]
)
def test_a_comparison_without_labels_gives_no_probability(pair):
    *table, empty, words = comparison_text(("a.json", "b.json"), pair).splitlines()
    assert [line.split()[-1] for line in table[1:]] == [str(p.n_labels) for p in pair]
    assert (empty, words) == ("", NOT_COMPARABLE[NO_LABELS])


@pytest.mark.parametrize("pair", [(NARROW, NONE), (NONE, NARROW), (FITTED, NONE), (NONE, NONE)])
def test_a_comparison_without_an_estimate(pair):
    words = comparison_text(("a.json", "b.json"), pair)
    table, reason = words.split("\n\n")
    assert reason == NOT_COMPARABLE[NO_ESTIMATE]
    assert table.count("no estimate") == sum(p is NONE for p in pair)
