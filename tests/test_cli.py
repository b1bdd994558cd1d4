"""The command line, through the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gammagmm.datasets import make_contaminated

COMMAND = str(Path(sys.executable).with_name("gammagmm"))


def gammagmm(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "rows.csv"
    X = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
    np.savetxt(path, X, delimiter=",", header="a,b,c,d", comments="")
    return path


def test_estimate_says_the_answer_in_one_sentence_and_lists_the_detectors(table, tmp_path):
    picture = tmp_path / "posterior.svg"
    done = gammagmm("estimate", table, "--detectors", "KNN,LOF,IForest", "--picture", picture)
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith("About ")
    for part in (
        "% of the rows are anomalies (90 % interval",
        "none at all: 1.0%",
        "more than 15 %",
    ):
        assert part in first
    assert "of 300 rows are flagged." in first
    assert all(any(name in line for line in rest) for name in ("KNN", "LOF", "IForest"))
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_json_holds_the_same_numbers_as_python(table):
    from gammagmm import GammaGMM
    from gammagmm.tables import read_table

    done = gammagmm("estimate", table, "--detectors", "KNN,LOF,IForest", "--seed", 4, "--json")
    answer = json.loads(done.stdout)
    estimator = GammaGMM(["KNN", "LOF", "IForest"], random_state=4).fit(read_table(table).values)
    np.testing.assert_allclose(answer["posterior"]["mean"], estimator.posterior_.mean, rtol=1e-9)
    assert answer["flagged_rows"] == estimator.labels_.nonzero()[0].tolist()
    assert (answer["n_rows"], answer["n_flagged"]) == (300, int(estimator.labels_.sum()))
    assert [d["name"] for d in answer["detectors"]] == ["KNN", "LOF", "IForest"]


def test_no_solution_is_said_in_words_and_in_json(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "clusters.csv"
    rows = np.vstack([rng.normal(5, 0.01, (20, 2)), rng.normal(1, 0.01, (20, 2))])
    np.savetxt(path, rows, delimiter=",")
    done = gammagmm("estimate", path, "--detectors", "KNN,LOF")
    assert done.stdout.startswith("No solution: no mixture of these scores agrees with p_high")
    assert "warning: No solution in any of 10 runs" in done.stderr
    answer = json.loads(gammagmm("estimate", path, "--detectors", "KNN,LOF", "--json").stdout)
    assert answer["posterior"]["is_degenerate"] is True
    assert answer["posterior"]["standard_error"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "nowhere.csv"),
        (["{table}", "--detectors", "modern"], "detectors='modern' is not a preset"),
        (["{table}", "--picture", "no/such/folder/p.png"], "no/such/folder is no folder"),
        (["{table}", "--picture", "posterior.doc"], "the picture must end in .png, .svg, .pdf"),
        (["{table}", "--detectors", "KNN,LOF", "--seed", "-3"], "random_state must be at least 0"),
    ],
)
def test_bad_input_is_two_words_and_exit_code_2(arguments, message, table):
    done = gammagmm("estimate", *(argument.format(table=table) for argument in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
