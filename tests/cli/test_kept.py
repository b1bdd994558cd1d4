"""Kept fits on the command line: the same answers again, new rows, and files of Python."""

from __future__ import annotations

import csv
import io
import json
import os
import re

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.kept import open_kept
from gammagmm.estimator.reasons import COMBINATION
from gammagmm.estimator.saved_fit import read_fit, save_fit
from tests.support.command_line import QUICK, gammagmm, gammagmm_here
from tests.support.saved_fits import members, npy, packed
from tests.support.tables import knowing

COUNTRIES = np.array(["DE", "FR", "US", "BR"])


def customers(n_rows, n_odd, seed):
    """Rows with an id, a skewed amount, an age with gaps, and a country; the first are odd."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"c{i}" for i in range(n_rows)],
            "amount": np.exp(rng.normal(3.7, 0.4, n_rows)).round(2),
            "age": rng.normal(42.0, 9.0, n_rows).round(),
            "country": COUNTRIES[rng.choice(4, n_rows, p=[0.6, 0.25, 0.13, 0.02])],
            "seen": rng.integers(0, 2, n_rows),
        }
    )
    frame.loc[: n_odd - 1, "amount"] = 5400.0 + np.arange(n_odd)
    frame.loc[n_rows - 3 :, "age"] = np.nan
    frame.loc[: n_odd - 1, "seen"] = 1
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with training rows, new rows and a kept fit, with its answers."""
    folder = tmp_path_factory.mktemp("kept")
    customers(200, 8, 0).to_csv(folder / "rows.csv", index=False)
    new = customers(40, 2, 1).drop(columns="seen")
    new["extra"] = 1.0
    new.loc[5, "country"] = "JP"
    new[new.columns[::-1]].to_csv(folder / "new.csv", index=False)
    options = ["--id", "id", "--truth", "seen", "--missing", "impute"]
    outputs = ["--out", "labels.csv", "--report", "report.html", "--posterior", "p.json"]
    done = gammagmm_here(
        "estimate", "rows.csv", "--save", "day1", *QUICK, *options, *outputs, "--json", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    (folder / "answer.json").write_text(done.stdout)
    return folder


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_kept_fit_gives_every_output_again_to_the_bit(folder, tmp_path):
    again = ["--out", tmp_path / "l.csv", "--report", tmp_path / "r.html"]
    again += ["--posterior", tmp_path / "p.json"]
    done = gammagmm_here("estimate", "--from", "day1", *again, "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    # The next command has the options of the call, of which a kept fit has the file alone.
    options = " --id id --truth seen --missing impute --detectors KNN,LOF --runs 2 --jobs 1"
    assert done.stdout == (folder / "answer.json").read_text().replace(options, "")
    for name, old in (("l.csv", "labels.csv"), ("r.html", "report.html"), ("p.json", "p.json")):
        before = (folder / old).read_bytes().replace(options.encode(), b"")
        assert (tmp_path / name).read_bytes() == before, name


def test_labels_of_rows_go_with_a_kept_fit(folder, tmp_path):
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("row,anomaly\n1,1\n2,1\n40,0\n80,0\n120,0\n160,0\n")
    common = ["--labels", sheet, "--json"]
    options = ["--id", "id", "--truth", "seen", "--missing", "impute"]
    done = gammagmm_here("estimate", "--from", "day1", *common, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    kept = gammagmm_here(
        "estimate",
        "rows.csv",
        "--save",
        tmp_path / "with.fit",
        *QUICK,
        *options,
        *common,
        cwd=folder,
    )
    ours, theirs = (json.loads(each.stdout) for each in (done, kept))
    again = gammagmm_here("estimate", "--from", tmp_path / "with.fit", "--json")
    found = json.loads(again.stdout)
    for each in (ours, theirs, found):  # the next command has the options of the call
        each["lines"] = [re.sub("gammagmm label .* find ", "", line) for line in each["lines"]]
    assert found["labels"]["n_rows"] == 6
    assert found == theirs
    for each in (ours, theirs):  # the seconds of the detectors differ
        for detector in each["detectors"]:
            del detector["seconds"]
    assert ours == theirs


@pytest.mark.filterwarnings("ignore:In the column 'country':gammagmm.errors.NewRowsWarning")  # JP
def test_predict_gives_the_answers_of_python(folder, tmp_path):
    labels = tmp_path / "out.csv"
    done = gammagmm_here("predict", "day1", "new.csv", "--out", labels, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (
        "note: country: 1 row has a text that the training rows do not have ('JP')" in done.stderr
    )
    rows = read_rows(labels)
    estimator = GammaGMM.load(folder / "day1.fit")
    new = pd.read_csv(folder / "new.csv")
    X = new[["amount", "age", "country"]]
    assert [row["id"] for row in rows] == new["id"].tolist()
    scores = [float(row["score"]) for row in rows]
    np.testing.assert_array_equal(scores, estimator.decision_function(X))
    probability = [float(row["probability"]) for row in rows]
    np.testing.assert_array_equal(probability, estimator.predict_proba(X)[:, 1].round(4))
    assert [int(row["label"]) for row in rows] == estimator.predict(X).tolist()
    words = zip(estimator.reasons(X), estimator.predict(X), strict=True)
    expected = [(reason or COMBINATION) if label else "" for reason, label in words]
    assert [row["reason"] for row in rows] == expected
    assert rows[0]["reason"].startswith("amount 5,400 is far above the usual ")
    assert list(rows[0])[-2:] == ["score_KNN", "score_LOF"]
    n_flagged = int(estimator.predict(X).sum())
    assert done.stdout.startswith(f"{n_flagged} of 40 new rows are flagged (")


def test_python_takes_the_original_columns(folder):
    estimator = GammaGMM.load(folder / "day1.fit")
    assert estimator.feature_names_in_.tolist() == list(pd.read_csv(folder / "rows.csv"))
    assert estimator.fit_.preparation.used == ("amount", "age", "country")
    new = pd.read_csv(folder / "new.csv")[["amount", "age", "country"]]
    with pytest.raises(ValueError, match="The feature names should match those that were passed"):
        estimator.predict(new.rename(columns={"country": "land"}))


def test_a_fit_from_beside_a_sheet_has_the_columns_that_are_asked_for_now(tmp_path):
    rows = customers(200, 8, 0).drop(columns="country").dropna()
    rows = rows.assign(code=[f"k{i}" for i in range(len(rows))])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    common = ["rows.csv", *QUICK, "--drop", "seen"]
    done = gammagmm_here(
        "label", "--sheet-only", *common, "--id", "id", "--out", "s.csv", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    sheet = list(csv.reader((tmp_path / "s.csv").read_text().splitlines()))
    answered = [[*line[:-1], "0"] for line in sheet[1:]]
    with (tmp_path / "s.csv").open("w", newline="") as file:
        csv.writer(file).writerows([sheet[0], *answered])
    options = ["--id", "code", "--labels", "s.csv", "--save", "kept"]
    done = gammagmm_here("estimate", *common, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fitted again" not in done.stderr
    assert open_kept(tmp_path / "kept.fit").fit.preparation.id == "code"


def test_predict_shows_the_first_rows_with_reasons(folder, tmp_path):
    labels = tmp_path / "sorted.csv"
    gammagmm_here("predict", "day1", "new.csv", "--out", labels, "--sort", cwd=folder)
    rows = read_rows(labels)
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    done = gammagmm_here("predict", "day1.fit", "new.csv", "--quiet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[2] == "The 10 most anomalous of them:"
    assert lines[3].split() == ["id", "score", "probability", "flagged", "reason"]
    assert len(lines) == 14
    for line, row in zip(lines[4:], rows, strict=False):
        assert line.split()[0] == row["id"]
        assert line.endswith(row["reason"])
        assert row["label"] == ("1" if "yes" in line.split() else "0")
    done = gammagmm_here("predict", "day1", "new.csv", "--json", "--quiet", cwd=folder)
    answer = json.loads(done.stdout)
    flagged = [row for row in rows if row["label"] == "1"]
    assert (answer["n_rows"], answer["n_flagged"]) == (40, len(flagged))
    assert [each["id"] for each in answer["flagged"]] == [row["id"] for row in flagged]
    assert [each["row"] for each in answer["flagged"]] == [1 + int(r["id"][1:]) for r in flagged]
    assert [each["reason"] for each in answer["flagged"]] == [row["reason"] for row in flagged]


@pytest.mark.parametrize(("name", "shown"), [("rows.parquet", "rows.parquet"), (None, "py.fit")])
def test_a_fit_keeps_the_name_of_its_rows_without_a_digest(name, shown, tmp_path, fitted):
    fit = knowing(fitted.fit_, name=name)
    assert fit.table.digest == ""
    save_fit(fit, tmp_path / "py.fit")
    assert read_fit(tmp_path / "py.fit").fit.table.name == name
    assert open_kept(tmp_path / "py.fit").fit.table.name == shown
    done = gammagmm_here("estimate", "--from", "py.fit", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["source"] == shown


def test_predict_takes_fits_of_python(tmp_path, data, fitted):
    names = ["width", "height", "depth", "mass"]
    frame = pd.DataFrame(data.X, columns=names)
    GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0).fit(frame).save(tmp_path / "named.fit")
    fitted.save(tmp_path / "plain.fit")
    new = frame.iloc[:9] + 0.1
    new["name"] = [f"part {i}" for i in range(9)]
    new[["mass", "name", "depth", "height", "width"]].to_csv(tmp_path / "new.csv", index=False)
    new[["name", *names]].to_csv(tmp_path / "ordered.csv", index=False)
    expected = fitted.decision_function(new[names].to_numpy())
    for kept, file in (("named", "new.csv"), ("plain", "ordered.csv")):
        out = tmp_path / f"{kept}.csv"
        options = ["--id", "name", "--out", out]
        done = gammagmm_here("predict", kept, file, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows = read_rows(out)
        assert [row["id"] for row in rows] == new["name"].tolist()
        np.testing.assert_array_equal([float(row["score"]) for row in rows], expected)
        words = "so the columns of the file are used in their order: 'width', 'height', 'depth'"
        assert (words in done.stderr) == (kept == "plain")
    done = gammagmm_here("predict", "plain", "new.csv", cwd=tmp_path)
    assert done.stderr.startswith("gammagmm: new.csv has 5 columns, and the training rows have 4.")
    done = gammagmm_here("estimate", "--from", "named", cwd=tmp_path)
    assert f"{fitted.posterior_.mean:.1%}" in done.stdout.splitlines()[2]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ids", lambda a: a[:-1]),
        ("places", lambda a: a - 5),
        ("truth", lambda a: a[:, None]),
    ],
)
def test_what_is_known_of_the_rows_must_fit_to_them(name, change, folder, tmp_path):
    options = ["--id", "id", "--truth", "seen", "--missing", "drop"]
    saved = tmp_path / "drop.fit"
    done = gammagmm_here("estimate", folder / "rows.csv", "--save", saved, *QUICK, *options)
    assert done.returncode == 0, done.stderr
    files = members(saved)
    array = np.load(io.BytesIO(files[f"{name}.npy"]))
    (tmp_path / "day1.fit").write_bytes(packed(files | {f"{name}.npy": npy(change(array))}))
    done = gammagmm_here("estimate", "--from", "day1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "day1.fit cannot be read as a saved fit: " in done.stderr


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["preparation", "columns"], ["amount"]),
        (["preparation", "missing"], "odd"),
        (["preparation", "encoder", "names"], ["amount"]),
        (["table_notes", 0, "code"], 3),
    ],
)
def test_a_record_that_does_not_fit_is_refused(place, value, folder, tmp_path):
    files = members(folder / "day1.fit")
    data = json.loads(files["document.json"])
    inside = data
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    files["document.json"] = json.dumps(data).encode()
    (tmp_path / "day1.fit").write_bytes(packed(files))
    done = gammagmm_here("predict", "day1", folder / "new.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "day1.fit cannot be read as a saved fit: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["estimate"], "No file with rows is given"),
        (["estimate", "rows.csv", "--from", "day1"], "--from and files with rows cannot be given"),
        (
            ["estimate", "--from", "day1", "--seed", "3"],
            "--from takes the fit as it is, and --seed",
        ),
        (["estimate", "--from", "day1", "--id", "x"], "--from takes the fit as it is, and --id"),
        (["estimate", "--from", "day1", "--by", "x"], "--by needs a column of the file, which a"),
        (["estimate", "--from", "day1", "--engine", "dask"], "it needs no engine"),
        (["estimate", "--from", "no"], "no.fit does not exist or is not a file"),
        (["estimate", "rows.csv", "--sort"], "--sort needs --out"),
        (["predict", "day1", "new.csv", "--sort"], "--sort needs --out"),
        (["predict", "no", "new.csv"], "no.fit does not exist or is not a file"),
        (
            ["predict", "rows.csv", "new.csv"],
            "rows.csv cannot be read as a saved fit: it is damage",
        ),
        (["predict", "day1", "labels.csv"], "lacks 3 columns of the training rows: 'amount'"),
        (["predict", "day1", "new.csv", "--id", "x"], "new.csv has no column 'x'"),
        (["predict", "day1", "new.csv", "--out", "rows.csv"], "rows.csv already exists"),
        (
            ["predict", "day1", "new.csv", "--out", "a.txt"],
            "--out writes .csv, and a.txt ends",
        ),
        (["estimate", "rows.csv", "--save", "day1"], "day1.fit already exists"),
        (
            ["estimate", "rows.csv", "--save", "day1.csv"],
            "--save writes .fit, and day1.csv ends in .csv",
        ),
        (["estimate", "rows.csv", "--save", "new", "--out", "new.fit"], "--out writes .csv"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments, words, folder):
    before = sorted(os.listdir(folder))
    done = gammagmm_here(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert sorted(os.listdir(folder)) == before


@pytest.mark.long
def test_the_commands_as_users_run_them(folder, tmp_path):
    done = gammagmm(
        "estimate",
        folder / "rows.csv",
        "--save",
        "kept",
        "--drop",
        "id",
        "--drop",
        "country",
        "--missing",
        "impute",
        *QUICK,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == ["kept.fit"]
    again = gammagmm("estimate", "--from", "kept", cwd=tmp_path)
    # The next command has the options of the call, of which a kept fit has the file alone.
    own, kept = (
        re.sub(r"gammagmm label .*?rows\.csv[^.]*\.", "", each.stdout) for each in (done, again)
    )
    assert kept == own
