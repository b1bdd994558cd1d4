"""The same table in Python, on the command line and in a kept fit: equal to the bit."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.kept import open_kept
from gammagmm.cli.output import N_DECIMALS
from gammagmm.errors import ColumnsWarning, TableError
from gammagmm.table.preparation import Preparation
from tests.support.command_line import gammagmm_here

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

N = 150
OPTIONS = ("--missing", "impute", "--dates", "encode")
SOLVED = {"p_high": 0.5, "high_gamma": 0.4, "max_gamma": 0.5}  # on any of these tables
QUICK = ("--detectors", "KNN,LOF,HBOS", "--runs", "2", "--seed", "0", "--jobs", "1")


def orders(seed):
    """Orders with an id, known labels, a date, a text, gaps and a constant."""
    rng = np.random.default_rng(seed)
    is_fraud = np.arange(N) < 8
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, N), unit="D")
    frame = pd.DataFrame(
        {
            "order_id": 1000 * seed + rng.permutation(N),
            "amount": rng.normal(size=N) + 6.0 * is_fraud,
            "age": rng.normal(size=N) + 6.0 * is_fraud,
            "opened": days,
            "region": rng.choice(["east", "north", "west"], N),
            "currency": "EUR",
            "is_fraud": is_fraud.astype(int),
        }
    )
    frame.loc[rng.choice(N, 9, replace=False), "age"] = np.nan
    frame.loc[20, "region"] = None
    return frame


def estimator(columns=None, **parameters):
    options = {"strict": False, "n_runs": 2, "random_state": 0, "n_jobs": 1}
    return GammaGMM(["KNN", "LOF", "HBOS"], columns=columns, **(options | parameters))


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns(ColumnsWarning):
        return estimator({"dates": "encode"}).fit(orders(1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the table, and the kept fits of the command."""
    folder = tmp_path_factory.mktemp("orders")
    for name, seed in (("rows", 1), ("new", 2)):
        orders(seed).to_csv(folder / f"{name}.csv", index=False)
        orders(seed).to_parquet(folder / f"{name}.parquet")
    for suffix in ("csv", "parquet"):
        save = ("--save", suffix, "--json")
        done = gammagmm_here("estimate", f"rows.{suffix}", *OPTIONS, *QUICK, *save, cwd=folder)
        assert done.returncode == 0, done.stderr
        (folder / f"{suffix}.json").write_text(done.stdout)
    return folder


def test_the_columns_that_are_left_out_and_used(fitted):
    preparation = fitted.fit_.preparation
    assert preparation.columns == tuple(orders(1))
    assert preparation.left_out == ("order_id", "currency", "is_fraud")
    days = ("opened days", "opened weekday sine", "opened weekday cosine")
    usual = orders(1)["region"].mode()[0]
    regions = [f"region={r}" for r in ("(missing)", "east", "north", "west") if r != usual]
    assert preparation.outputs == ("amount", "age", *days, *regions)
    X = orders(1)
    first = X["opened"].min()
    expected = [X["amount"], X["age"].fillna(X["age"].median()), (X["opened"] - first).dt.days]
    np.testing.assert_array_equal(fitted.fit_.rows[:, :3], np.column_stack(expected))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_gives_the_fit_of_python(suffix, fitted, folder):
    fit, loaded = fitted.fit_, open_kept(folder / f"{suffix}.fit").fit
    assert loaded.preparation.encoder == fit.preparation.encoder
    assert loaded.preparation.columns == fit.preparation.columns
    for name in ("rows", "scores", "decision_scores", "labels"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fit, name), err_msg=name)
    assert loaded.posterior.summary() == fit.posterior.summary()
    said = json.loads((folder / f"{suffix}.json").read_text())
    assert said["n_flagged"] == int(fit.labels.sum())


SCORE = """
import sys, warnings
import numpy as np, pandas as pd
from gammagmm import GammaGMM
warnings.simplefilter("ignore")
loaded = GammaGMM.load(sys.argv[1])
X = pd.read_parquet(sys.argv[2])
found = [loaded.decision_function(X), loaded.predict_proba(X)[:, 1], loaded.predict(X)]
np.save(sys.argv[3], np.column_stack(found))
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_kept_fit_in_another_process_gives_the_answers_of_python(suffix, fitted, folder):
    new = orders(2)
    scores, probability = fitted.decision_function(new), fitted.predict_proba(new)[:, 1]
    expected = np.column_stack([scores, probability, fitted.predict(new)])
    # Python reads the fit of the command, and takes the original columns.
    paths = folder / f"{suffix}.fit", folder / "new.parquet", folder / f"{suffix}.npy"
    subprocess.run([sys.executable, "-c", SCORE, *paths], check=True)
    np.testing.assert_array_equal(np.load(paths[2]), expected)
    # The command reads the fits of both.
    fitted.save(folder / f"{suffix}-python.fit", overwrite=True)
    for kept in (suffix, f"{suffix}-python"):
        done = gammagmm_here(
            *("predict", kept, f"new.{suffix}", "--out", "out.csv", "--force"), cwd=folder
        )
        assert done.returncode == 0, done.stderr
        with (folder / "out.csv").open() as file:
            lines = list(csv.DictReader(file))
        np.testing.assert_array_equal([float(line["score"]) for line in lines], scores)
        np.testing.assert_array_equal([int(line["label"]) for line in lines], expected[:, 2])
        found = [float(line["probability"]) for line in lines]
        np.testing.assert_array_equal(found, probability.round(N_DECIMALS))


def test_ids_and_labels_are_named_in_a_warning_with_what_keeps_them():
    with pytest.warns(ColumnsWarning) as caught:
        used = estimator(**SOLVED).fit(orders(1)).fit_.preparation.used
    assert used == ("amount", "age", "region")
    [warning] = caught
    assert warning.filename == __file__
    words = str(warning.message)
    assert "'order_id'" in words
    assert "'is_fraud'" in words
    assert "columns={'use': ['order_id', 'opened', 'is_fraud']}" in words
    assert "currency" not in words


def test_use_keeps_them_silently():
    kept = ["order_id", "opened", "is_fraud"]
    roles = {"id": "order_id", "truth": "is_fraud", "drop": ["opened"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = estimator({"use": kept}, **SOLVED).fit(orders(1)).fit_
        preparation = estimator(roles, **SOLVED).fit(orders(1)).fit_.preparation
    assert fit.preparation.left_out == ("currency",)
    place = fit.preparation.outputs.index("is_fraud")
    np.testing.assert_array_equal(fit.rows[:, place], orders(1)["is_fraud"])
    assert (preparation.id, preparation.truth) == ("order_id", "is_fraud")
    assert preparation.used == ("amount", "age", "region")


class TestNewRows:
    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X.drop(columns=["order_id", "currency", "is_fraud"]),
            lambda X: X.drop(columns=["currency"]),
            lambda X: X[["is_fraud", "amount", "age", "order_id", "opened", "region", "currency"]],
            lambda X: X.assign(order_id="a", is_fraud=3.5, currency=None),
            lambda X: pl.from_pandas(X).drop("is_fraud"),
            lambda X: pa.Table.from_pandas(X, preserve_index=False).drop(["order_id"]),
        ],
        ids=["none", "some", "moved", "other cells", "polars", "pyarrow"],
    )
    def test_columns_that_are_not_used_may_be_absent_or_anything(self, change, fitted):
        expected = fitted.decision_function(orders(2))
        np.testing.assert_array_equal(fitted.decision_function(change(orders(2))), expected)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda X: X.drop(columns="age"), r"seen at fit time, yet now missing:\n- age"),
            (lambda X: X.assign(more=1.0), r"unseen at fit time:\n- more"),
            (lambda X: X[X.columns[::-1]], "must be in the same order as they were in fit"),
        ],
    )
    def test_other_columns_are_refused_as_by_scikit_learn(self, change, words, fitted):
        X = change(orders(2))
        for table in (X, pl.from_pandas(X)):
            for ask in (fitted.predict, fitted.decision_function, fitted.predict_proba):
                with pytest.raises(ValueError, match=words):
                    ask(table)

    def test_files_may_have_more_columns_in_any_order(self, fitted, folder):
        X = orders(2).assign(more=1.0).drop(columns=["is_fraud", "currency"])
        X[X.columns[::-1]].to_csv(folder / "other.csv", index=False)
        done = gammagmm_here("predict", "csv", "other.csv", "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        flagged = np.flatnonzero(fitted.predict(orders(2)))
        assert sorted(each["row"] for each in found["flagged"]) == (flagged + 1).tolist()
        assert "tables.added" in [note["code"] for note in found["notes"]]
        X.drop(columns="age").to_csv(folder / "other.csv", index=False)
        done = gammagmm_here("predict", "csv", "other.csv", cwd=folder)
        assert done.returncode == 2
        assert "'age'" in done.stderr

    def test_an_array_must_have_all_columns(self, fitted):
        rows = orders(2).assign(opened=orders(2)["opened"].astype(str)).to_numpy(dtype=object)
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            found = fitted.decision_function(rows)
        np.testing.assert_array_equal(found, fitted.decision_function(orders(2)))
        with (
            pytest.raises(ValueError, match="7 features"),
            pytest.warns(UserWarning, match="names"),
        ):
            fitted.decision_function(rows[:, 1:5])

    def test_problems_are_those_of_the_columns_that_are_used(self, fitted):
        bad = orders(2).assign(age="x", is_fraud=np.inf, order_id=None)
        with pytest.raises(TableError) as caught:
            fitted.predict(bad)
        assert [(own.column, own.code) for own in caught.value.problems] == [("age", "kind")]


MOMENTS = [pd.Timestamp("2024-02-28 22:30") + pd.Timedelta(hours=7 * i) for i in range(40)]
DATED = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda X: pd.DataFrame(X).astype({"when": object}),
    "pandas, texts": lambda X: pd.DataFrame(X).assign(when=lambda x: x["when"].astype(str)),
    "pandas, arrow": lambda X: pd.DataFrame(X).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, zone": lambda X: pd.DataFrame(X).assign(
        when=lambda x: x["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata")
    ),
    "polars": lambda X: pl.from_pandas(pd.DataFrame(X)),
    "pyarrow": lambda X: pa.Table.from_pandas(pd.DataFrame(X), preserve_index=False),
}


@pytest.mark.parametrize("is_day", [True, False], ids=["days", "times"])
@pytest.mark.parametrize("kind", DATED)
def test_dates_of_frames_are_those_of_files(kind, is_day, tmp_path):
    whens = pd.Series([m.normalize() if is_day else m for m in MOMENTS])
    whens[5] = pd.NaT
    X = {"size": np.random.default_rng(0).normal(size=40), "when": whens}
    encoders, rows = [], []
    frame = DATED[kind](X)
    pd.DataFrame(X).to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(DATED["pyarrow"](X), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        table = read(tmp_path / name)
        encoders.append(table.preparation.encoder)
        rows.append(table.values)
    fit = estimator({"use": ["when"]}, **SOLVED).fit(frame).fit_
    assert encoders == [fit.preparation.encoder] * 2
    for values in rows:
        np.testing.assert_array_equal(values, fit.rows)


def read(path):
    """What the command reads of a file with gaps and dates."""
    from gammagmm.cli.options import Reading
    from gammagmm.cli.request import read_rows

    reading = Reading(paths=[str(path)], missing="impute", dates="encode")
    return read_rows(reading)


def test_columns_that_name_and_label_the_rows(tmp_path):
    X = orders(1).assign(name=lambda frame: [f"order no {i}" for i in range(len(frame))])
    columns = {"id": "name", "truth": "is_fraud", "drop": ["order_id", "opened"]}
    model = estimator(columns, **SOLVED).fit(X)
    truth, is_fraud = model.summary().truth, X["is_fraud"].to_numpy()
    assert truth.share == is_fraud.mean()
    assert truth.hits == (model.labels_ * is_fraud).sum()
    assert truth.hits + truth.misses == is_fraud.sum()
    model.report(tmp_path / "report.html")
    first = model.suggest(1, purpose="find")[0]
    assert f"order no {first}" in (tmp_path / "report.html").read_text()


class TestTablesThatAreUsedAsTheyAre:
    def test_frames_whose_names_are_no_texts(self):
        X = orders(1)[["order_id", "amount", "is_fraud"]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = estimator(**SOLVED).fit(X.set_axis(range(3), axis=1))
            array = estimator(**SOLVED).fit(X.to_numpy())
        np.testing.assert_array_equal(model.fit_.rows, X.to_numpy(dtype=float))
        assert model.fit_.preparation.columns is None
        assert not hasattr(model, "feature_names_in_")
        np.testing.assert_array_equal(model.scores_, array.scores_)
        new = orders(2)[["order_id", "amount", "is_fraud"]].set_axis(range(3), axis=1)
        found = model.decision_function(new)
        np.testing.assert_array_equal(found, model.decision_function(new.to_numpy()))

    def test_precomputed_scores(self, fitted):
        scores = pd.DataFrame(fitted.scores_, columns=["id", "label", "KNN"])
        scores["label"] = np.arange(N) % 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = GammaGMM("precomputed", **SOLVED, n_runs=2, random_state=0).fit(scores)
        np.testing.assert_array_equal(model.scores_, scores)
        assert model.fit_.detector_names == ["id", "label", "KNN"]
        assert model.fit_.preparation == Preparation(("id", "label", "KNN"), 3)
        np.testing.assert_array_equal(model.decision_function(scores), model.fit_.decision_scores)
        with pytest.raises(ValueError, match="same order"):
            model.decision_function(scores[["label", "id", "KNN"]])


def test_an_assumed_decimal_mark_in_a_frame_is_told_in_a_warning():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame["text"] = rng.choice(["1,234", "2,500", "7,125"], N)
    with pytest.warns(ColumnsWarning, match="'text'"):
        fit = estimator(**SOLVED).fit(frame).fit_
    np.testing.assert_array_equal(fit.rows[:, 2], frame["text"].str.replace(",", "").astype(float))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnsWarning)
        estimator(**SOLVED).fit(frame.assign(text=frame["text"] + ".5"))


def test_an_assumed_decimal_mark_of_new_rows_in_a_frame_is_told_in_a_warning():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame["text"] = rng.choice(["1,2", "2,5", "7,125"], N)
    model = estimator(**SOLVED).fit(frame)
    new = frame.assign(text="1,234")
    with pytest.warns(ColumnsWarning, match="'text'") as caught:
        scores = model.decision_function(new)
    [message] = {str(each.message) for each in caught if each.category is ColumnsWarning}
    assert "--decimal" not in message  # an option of the command
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnsWarning)
        expected = model.decision_function(frame.assign(text=["1,2340", *["1,234"] * (N - 1)]))
    np.testing.assert_array_equal(scores, expected)
