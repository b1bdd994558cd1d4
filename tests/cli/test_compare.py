"""``gammagmm compare`` and ``--fail-above``, for a share that doubles from 8 % to 16 %.

Without labels, the estimate does not follow such a change: it may rise, fall or be missing. So
nothing that is printed may say which share is larger.
"""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from scipy.stats import fisher_exact

from gammagmm import GammaPosterior, History
from gammagmm.cli.output import NOT_COMPARABLE
from gammagmm.monitoring.counts import Count, Period
from gammagmm.posterior.comparison import NO_ESTIMATE, NO_LABELS
from tests.support.command_line import QUICK, gammagmm_here, write_csv

CALLS_ONE_SMALLER = re.compile(
    r"\b(lower|smaller|less|fewer|falls?|fell|fallen|drops?|dropped|decreas\w+|declin\w+)\b", re.I
)
OPTIONS = (*QUICK, "--scale", "none")  # with scaled columns, these two detectors have no solution
TABLES = {"march": (0.08, 1), "april": (0.16, 2), "may": (0.16, 1)}
"""Share of anomalies and seed of each table; the fit of the last one has no solution."""


def shell_of_outliers(share, seed):
    """1000 rows (n, 5) of normal values, a share of them at 6 to 10 deviations; and labels."""
    rng = np.random.default_rng(seed)
    n_anomalies = round(share * 1000)
    X = rng.normal(size=(1000, 5))
    directions = rng.normal(size=(n_anomalies, 5))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    X[:n_anomalies] = directions * rng.uniform(6, 10, size=(n_anomalies, 1))
    return X, (np.arange(1000) < n_anomalies).astype(int)


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    """Folder with the tables and their posteriors, and what ``estimate`` printed for each."""
    folder, printed = tmp_path_factory.mktemp("doubled"), {}
    for name, (share, seed) in TABLES.items():
        X, _ = shell_of_outliers(share, seed)
        write_csv(folder / f"{name}.csv", dict(zip("abcde", X.T.tolist(), strict=True)))
        options = (*OPTIONS, "--posterior", f"{name}.json")
        done = gammagmm_here("estimate", f"{name}.csv", *options, cwd=folder)
        assert done.returncode == 0, done.stderr
        printed[name] = done.stdout + done.stderr
    return folder, printed


@pytest.fixture(scope="module")
def labelled(doubled):
    """The folder with a sheet of 30 labelled rows for the first two tables."""
    folder, _ = doubled
    for name in ("march", "april"):
        sheet = folder / f"{name}-labels.csv"
        done = gammagmm_here(
            "label", "--sheet-only", f"{name}.csv", *OPTIONS, "--out", sheet, cwd=folder
        )
        assert done.returncode == 0, done.stderr
        _, labels = shell_of_outliers(*TABLES[name])
        heads, *lines = csv.reader(sheet.read_text(encoding="utf-8").splitlines())
        for line in lines:
            line[-1] = str(labels[int(line[0]) - 1])
        columns = dict(zip(heads, zip(*lines, strict=True), strict=True))
        write_csv(sheet, columns)
    return folder


def numbers(posterior):
    """Mean and interval as the command prints them."""
    low, high = posterior.interval()
    return rf"{posterior.mean:.1%} +{low:.1%} to {high:.1%}"


@pytest.mark.parametrize(("other", "reason"), [("april", NO_LABELS), ("may", NO_ESTIMATE)])
def test_without_labels_nothing_says_which_share_is_larger(doubled, other, reason):
    folder, printed = doubled
    words = gammagmm_here("compare", "march.json", f"{other}.json", cwd=folder)
    data = gammagmm_here("compare", "march.json", f"{other}.json", "--json", cwd=folder)
    assert (words.returncode, data.returncode) == (0, 0), words.stderr + data.stderr
    for text in (words.stdout, data.stdout, printed["march"], printed[other]):
        assert not CALLS_ONE_SMALLER.search(text), text
    assert "probability" not in words.stdout
    assert "exceeds" not in words.stdout + data.stdout
    assert words.stdout.endswith(f"\n\n{NOT_COMPARABLE[reason]}\n")
    answer = json.loads(data.stdout)
    assert answer["reason"] == reason
    for name in ("prob_b_above_a", "prob_a_above_b", "prob_equal"):
        assert answer[name] is None
    assert (answer["n_labels_a"], answer["n_labels_b"]) == (0, 0)
    first = GammaPosterior.load(folder / "march.json")
    assert answer["mean_a"] == first.mean
    assert answer["model_range_a"] == list(first.interval())
    assert re.search(rf"^A  march\.json +{numbers(first)} +0$", words.stdout, re.MULTILINE)


def test_both_estimates_are_shown_side_by_side(doubled):
    folder, _ = doubled
    first, second = (GammaPosterior.load(folder / f"{name}.json") for name in ("march", "april"))
    heads, *lines = gammagmm_here(
        "compare", "march.json", "april.json", cwd=folder
    ).stdout.splitlines()[:3]
    assert heads.split() == ["mean", "model", "range", "labels"]
    assert {len(heads)} == set(map(len, lines))
    assert re.fullmatch(rf"A  march\.json +{numbers(first)} +0", lines[0])
    assert re.fullmatch(rf"B  april\.json +{numbers(second)} +0", lines[1])
    answer = json.loads(
        gammagmm_here("compare", "april.json", "march.json", "--json", cwd=folder).stdout
    )
    assert (answer["mean_a"], answer["mean_b"]) == (second.mean, first.mean)
    assert answer["model_range_b"] == list(first.interval())


def test_a_missing_estimate_is_not_shown_as_zero(doubled):
    folder, _ = doubled
    done = gammagmm_here("compare", "may.json", "march.json", cwd=folder)
    assert re.search(r"^A  may\.json +no estimate +0$", done.stdout, re.MULTILINE)
    answer = json.loads(
        gammagmm_here("compare", "may.json", "march.json", "--json", cwd=folder).stdout
    )
    assert (answer["no_answer_a"], answer["no_answer_b"]) == (True, False)
    assert (answer["mean_a"], answer["model_range_a"]) == (None, None)


def test_with_labels_the_alarm_and_the_comparison_follow_the_share(labelled):
    for name, code in (("march", 0), ("april", 3)):
        options = ("--labels", f"{name}-labels.csv", "--fail-above", "0.05")
        saved = ("--posterior", f"{name}-labelled.json")
        done = gammagmm_here("estimate", f"{name}.csv", *OPTIONS, *options, *saved, cwd=labelled)
        assert done.returncode == code, done.stderr
        assert ("lies above --fail-above 0.05" in done.stderr) == (code == 3)
        assert GammaPosterior.load(labelled / f"{name}-labelled.json").n_labels == 30
    pair = ("march-labelled.json", "april-labelled.json")
    answer = json.loads(gammagmm_here("compare", *pair, "--json", cwd=labelled).stdout)
    assert answer["prob_b_above_a"] > 0.8
    assert answer["reason"] is None
    assert (answer["n_labels_a"], answer["n_labels_b"]) == (30, 30)
    done = gammagmm_here("compare", *pair, cwd=labelled)
    assert f"The share in B exceeds that in A with probability {answer['prob_b_above_a']:.1%};" in (
        done.stdout
    )
    # One estimate with labels does not make the other one reliable.
    for names in ((pair[0], "april.json"), ("march.json", pair[1])):
        done = gammagmm_here("compare", *names, cwd=labelled)
        assert done.stdout.endswith(f"\n\n{NOT_COMPARABLE[NO_LABELS]}\n")


def test_the_legend_of_the_picture_says_which_estimate_has_no_labels(labelled, tmp_path):
    done = gammagmm_here(
        *("compare", "march.json", "april.json", "--picture", tmp_path / "pair.svg"), cwd=labelled
    )
    assert done.returncode == 0, done.stderr
    # Matplotlib draws letters as paths and repeats the text in comments.
    picture = (tmp_path / "pair.svg").read_text(encoding="utf-8")
    for name in ("A  march.json", "B  april.json"):
        assert f"{name} (without labels): mean " in picture
    assert not CALLS_ONE_SMALLER.search(picture)


@pytest.fixture
def histories(tmp_path):
    """Histories of tables with 2, 8 and 16 % beyond one cut, and one of another fit."""
    for name, n_above, fit in (("2", 20, "f"), ("8", 80, "f"), ("16", 160, "f"), ("x", 20, "g")):
        periods = [Period("earlier", Count(50, 0)), Period("newest", Count(1000, n_above))]
        History(fit, Count(2000, 40), periods=tuple(periods)).save(tmp_path / f"{name}.json")
    return tmp_path


def test_histories_of_2_8_and_16_percent_are_told_in_the_right_order(histories):
    for low, high in (("2", "8"), ("8", "16"), ("2", "16")):
        for pair, letter in (((low, high), "B"), ((high, low), "A")):
            names = [f"{name}.json" for name in pair]
            done = gammagmm_here("compare", *names, cwd=histories)
            assert (
                f"The share of rows above the threshold is higher in {letter} (Fisher"
                in done.stdout
            )
    done = gammagmm_here("compare", "2.json", "8.json", "--json", cwd=histories)
    answer = json.loads(done.stdout)
    assert (answer["share_a"], answer["share_b"]) == (0.02, 0.08)
    assert answer["exact_range_90_a"] == list(Count(1000, 20).interval())
    expected = fisher_exact([[20, 980], [80, 920]], alternative="less").pvalue
    assert answer["p_value"] == pytest.approx(2.0 * expected, rel=1e-9)


def test_a_difference_that_can_be_chance_is_called_so(histories):
    done = gammagmm_here("compare", "2.json", "2.json", cwd=histories)
    assert "The difference in the share of rows above the threshold can be chance" in done.stdout
    assert re.search(r"^A  2\.json  newest +1,000 +20 +2\.0% +1\.3% to 2\.9%$", done.stdout, re.M)


def test_histories_of_other_fits_and_other_files_are_not_compared(histories, labelled):
    done = gammagmm_here("compare", "2.json", "x.json", cwd=histories)
    assert "belong to different fits, so their cuts differ" in done.stdout
    assert "higher" not in done.stdout
    done = gammagmm_here("compare", "2.json", labelled / "march.json", cwd=histories)
    assert (done.returncode, done.stdout) == (2, "")
    assert "One file is a history of monitor and the other is not" in done.stderr
    done = gammagmm_here("compare", "2.json", "8.json", "--picture", "p.png", cwd=histories)
    assert "--picture draws posteriors" in done.stderr
    (histories / "empty.json").write_text("", encoding="utf-8")
    done = gammagmm_here("compare", "2.json", "empty.json", cwd=histories)
    assert "cannot be read as a posterior, saved fit or history: it is not JSON" in done.stderr


def test_a_kept_fit_needs_no_suffix(doubled, tmp_path):
    folder, _ = doubled
    options = (*OPTIONS, "--save", tmp_path / "kept", "--quiet")
    done = gammagmm_here("estimate", folder / "march.csv", *options)
    assert done.returncode == 0, done.stderr
    (tmp_path / "kept").mkdir()
    done = gammagmm_here("compare", "kept", "kept.fit", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["mean_a"] == answer["mean_b"] == GammaPosterior.load(folder / "march.json").mean
    # A file with the name itself goes first.
    (tmp_path / "kept").rmdir()
    (tmp_path / "kept").write_bytes((folder / "april.json").read_bytes())
    done = gammagmm_here("compare", "kept", "kept.fit", "--json", cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert answer["mean_a"] == GammaPosterior.load(folder / "april.json").mean != answer["mean_b"]
    done = gammagmm_here("compare", "nothing", "kept.fit", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing: No such file" in done.stderr
