"""GammaGMM on tables with missing values and text, by missing= and categories=."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from gammagmm.estimator.encoding import encode_new_rows, encode_rows
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from gammagmm import GammaGMM
from gammagmm.errors import NewRowsWarning
from gammagmm.readers.registry import read_raw
from gammagmm.table.preparation import Choices, prepare

N = 150


def frame(seed, texts="abc"):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(N, 2)), columns=["u", "v"])
    X.iloc[:8] += 6.0
    X.loc[rng.choice(N, 9, replace=False), "v"] = np.nan
    X["kind"] = rng.choice(list(texts), N)
    X.loc[3, "kind"] = None
    return X


def estimator(**parameters):
    options = {"missing": "impute", "categories": "encode", "detectors": ["KNN", "LOF", "HBOS"]}
    return GammaGMM(**(options | parameters), n_runs=2, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return estimator().fit(frame(0))


def by_hand(X, train):
    """The table as numbers, by pandas and scikit-learn."""
    numbers = SimpleImputer(strategy="median").fit(train[["u", "v"]])
    usual = train["kind"].mode()[0]
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    hot.fit(train[["kind"]].fillna(usual))
    texts = hot.transform(X[["kind"]].fillna(usual))
    return np.hstack([numbers.transform(X[["u", "v"]]), texts])


def test_the_answer_is_that_of_the_table_encoded_by_scikit_learn(fitted):
    train, new = frame(0), frame(1)
    expected = estimator(missing="error", categories="error").fit(by_hand(train, train))
    assert fitted.posterior_.summary() == expected.posterior_.summary()
    np.testing.assert_array_equal(fitted.labels_, expected.labels_)
    np.testing.assert_array_equal(
        fitted.decision_function(new), expected.decision_function(by_hand(new, train))
    )
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["u", "v", "kind"]
    assert fitted.fit_.column_scaler.kept.tolist() == [0, 1, 2, 3, 4]
    said = [(note.subject, note.message) for note in fitted.notes_ if note.step == "tables"]
    usual = train["kind"].mode()[0]
    assert said == [
        ("v", f"9 missing values filled with the median {train['v'].median():.6g}"),
        ("kind", f"1 missing value filled with the most frequent text '{usual}'"),
        ("kind", "encoded as 3 columns of 0 and 1 for its texts 'a', 'b', 'c'"),
    ]


CONTAINERS = {
    "polars": pl.from_pandas,
    "pyarrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "nullable": lambda X: X.convert_dtypes(),
    "categories": lambda X: X.astype({"kind": "category"}),
    "object array": lambda X: X.to_numpy(dtype=object),
    "list": lambda X: X.to_numpy(dtype=object).tolist(),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_container_of_a_table_changes_no_bit(name, fitted):
    X, new = CONTAINERS[name](frame(0)), CONTAINERS[name](frame(1))
    other = estimator()
    encoded, encoder = encode_rows(other, X)
    np.testing.assert_array_equal(encoded.values, fitted.fit_.rows)
    assert other.n_features_in_ == 3
    expected = encode_new_rows(fitted, frame(1), fitted.fit_.encoder)
    np.testing.assert_array_equal(encode_new_rows(other, new, encoder), expected)


def test_tables_without_gaps_and_text_give_the_same_bits():
    X = np.random.default_rng(0).normal(size=(30, 4))
    for parameters in ({}, {"missing": "error"}, {"categories": "error"}):
        encoded, encoder = encode_rows(estimator(**parameters), X)
        np.testing.assert_array_equal(encoded.values, X)
        assert (encoder.outputs, encoded.notes) == (("x0", "x1", "x2", "x3"), ())


def test_the_command_line_encodes_alike(tmp_path, fitted):
    frame(0).to_csv(tmp_path / "t.csv", index=False)
    prepared = prepare(read_raw(tmp_path / "t.csv"), Choices(missing="impute", categories="encode"))
    assert prepared.preparation.encoder == fitted.fit_.encoder
    np.testing.assert_array_equal(prepared.values, fitted.fit_.rows)


def test_new_texts_are_a_warning(fitted):
    new = frame(2, texts="ad")
    n_new = int((new["kind"] == "d").sum())
    message = (
        f"In the column 'kind', {n_new} rows have a text that the training rows do not have ('d'), "
        "so all its columns of 0 and 1 are 0."
    )
    with pytest.warns(NewRowsWarning, match=re.escape(message)):
        fitted.decision_function(new)


def test_a_column_of_gaps_alone_is_filled_in_new_rows(fitted):
    new = frame(1).assign(kind=None, v=np.nan)
    usual, median = fitted.fit_.encoder.texts[0].usual, frame(0)["v"].median()
    filled = frame(1).assign(kind=usual, v=median)
    np.testing.assert_array_equal(fitted.decision_function(new), fitted.decision_function(filled))


def test_copies_pickles_and_files(fitted, tmp_path):
    assert clone(fitted).get_params()["missing"] == "impute"
    fitted.save(tmp_path / "kept.fit")
    for copied in (pickle.loads(pickle.dumps(fitted)), GammaGMM.load(tmp_path / "kept.fit")):
        assert copied.fit_.encoder == fitted.fit_.encoder
        assert copied.feature_names_in_.tolist() == ["u", "v", "kind"]
        np.testing.assert_array_equal(
            copied.decision_function(frame(1)), fitted.decision_function(frame(1))
        )


def test_the_report_has_the_columns_of_numbers(fitted, tmp_path):
    assert fitted.fit_.number_names == ("u", "v", "kind=a", "kind=b", "kind=c")
    fitted.report(tmp_path / "r.html")
    assert "filled with the median" in (tmp_path / "r.html").read_text("utf-8")


def test_tags():
    tags = estimator().__sklearn_tags__().input_tags
    assert (tags.allow_nan, tags.string) == (True, True)
    tags = GammaGMM().__sklearn_tags__().input_tags
    assert (tags.allow_nan, tags.string) == (False, False)


X_BAD = frame(0)
REFUSED = [
    ({"missing": "drop"}, X_BAD, 'missing="drop" is not available, .* call X.dropna() before the'),
    ({"missing": "median"}, X_BAD, 'missing must be "error" or "impute", got \'median\'.'),
    ({"categories": 1}, X_BAD, 'categories must be "error" or "encode", got 1.'),
    ({"detectors": "precomputed"}, X_BAD, 'missing and categories must be "error" with detectors'),
    (
        {"missing": "error"},
        X_BAD,
        "X contains NaN or other missing values in the columns 'v' (9), 'kind' (1): fill them,",
    ),
    (
        {"categories": "error"},
        X_BAD,
        "X must hold numbers, but it has columns of text: 'kind'. Drop them, or pass categories=",
    ),
    ({}, X_BAD.assign(u=np.inf), "X contains infinity in the columns 'u': correct it."),
    ({}, X_BAD.assign(v=np.nan), "All values of the column 'v' of X are missing: drop it."),
    (
        {},
        X_BAD.assign(kind=[f"t{i % 21}" for i in range(N)]),
        "The column 'kind' of X has 21 different texts, and at most 20 can be encoded: drop it,",
    ),
    (
        {},
        X_BAD.assign(kind=[1, "a"] * (N // 2)),
        "The column 'kind' of X must hold numbers or text alone, got 'int', 'str'.",
    ),
    ({}, X_BAD[["kind"]].assign(kind="a"), "X has only columns with a single text: give one whose"),
    ({}, X_BAD.assign(**{"kind=a": 1.0}), "Two columns of X have the same name after their texts"),
    ({}, X_BAD[:1], "X has 1 row(s), and at least 2 are needed."),
    ({}, [1.0, 2.0], "X must be a table of rows and columns."),
]


@pytest.mark.parametrize(("parameters", "X", "message"), REFUSED)
def test_what_is_refused(parameters, X, message):
    model = estimator().set_params(**parameters)
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises((TypeError, ValueError), match=pattern):
        model.fit(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"u": "x"}, "The column 'u' of X has text, but had numbers in the fit."),
        ({"kind": 1.0}, "The column 'kind' of X has numbers, but had text in the fit."),
        ({"u": np.inf}, "X contains infinity in the columns 'u'"),
        ({"more": 1.0}, "The feature names should match those that were passed during fit."),
    ],
)
def test_new_rows_that_are_refused(change, message, fitted):
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted.predict(frame(1).assign(**change))


# The checks' tiny tables have no anomalies to find.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::gammagmm.errors.GammaGMMWarning")
@parametrize_with_checks(
    [estimator(detectors=["KNN", "LOF"], p_high=0.6, n_draws=50, max_restarts=1)],
    expected_failed_checks=lambda _: dict.fromkeys(
        ("check_outliers_train", "check_outliers_fit_predict"),
        "the labels are 1 and 0 as in PyOD, not -1 and 1",
    ),
)
def test_scikit_learns_estimator_checks(estimator, check):
    check(estimator)
