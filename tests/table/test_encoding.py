"""GammaGMM on tables with missing values and texts: strict=False."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from gammagmm import GammaGMM
from gammagmm.errors import ColumnsWarning, NewRowsWarning, Note, TableError
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.rows import new_rows, open_rows

# Two detectors and two runs are fast, and may leave most starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore::gammagmm.errors.UnsolvedRunsWarning")

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
    options = {"strict": False, "detectors": ["KNN", "LOF", "HBOS"], "max_restarts": 300}
    return GammaGMM(**(options | parameters), n_runs=2, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return estimator().fit(frame(0))


def by_hand(X, train):
    """The table as numbers, by pandas and scikit-learn."""
    numbers = SimpleImputer(strategy="median").fit(train[["u", "v"]])
    usual = train["kind"].mode()[0]
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop=[usual])
    hot.fit(train[["kind"]].fillna("(missing)"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of scikit-learn, about the unknown text
        texts = hot.transform(X[["kind"]].fillna("(missing)"))
    return np.hstack([numbers.transform(X[["u", "v"]]), texts])


def test_the_answer_is_that_of_the_table_encoded_by_scikit_learn(fitted):
    train, new = frame(0), frame(1)
    expected = estimator(strict=True).fit(by_hand(train, train))
    np.testing.assert_array_equal(fitted.fit_.rows, by_hand(train, train))
    assert fitted.posterior_.summary() == expected.posterior_.summary()
    np.testing.assert_array_equal(fitted.labels_, expected.labels_)
    np.testing.assert_array_equal(
        fitted.decision_function(new), expected.decision_function(by_hand(new, train))
    )
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["u", "v", "kind"]
    assert fitted.fit_.column_scaler.kept.tolist() == [0, 1, 2, 3, 4]
    median = train["v"].median()
    assert [note for note in fitted.notes_ if note.step == "tables"] == [
        Note.of("tables.filled", "v", n_cells=9, value=median, is_new=False),
        Note.of("tables.gap text", "kind", n_cells=1, text="(missing)"),
        Note.of("tables.encoded", "kind", n_columns=3, texts="'(missing)', 'a', 'b', 'c'"),
    ]


CONTAINERS = {
    "polars": pl.from_pandas,
    "pyarrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "nullable": lambda X: X.convert_dtypes(),
    "categories": lambda X: X.astype({"kind": "category"}),
    "names that are numbers": lambda X: X.set_axis(range(3), axis=1),
    "object array": lambda X: X.to_numpy(dtype=object),
    "list": lambda X: X.to_numpy(dtype=object).tolist(),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_container_of_a_table_changes_no_bit(name, fitted):
    other = estimator().fit(CONTAINERS[name](frame(0)))
    np.testing.assert_array_equal(other.fit_.rows, fitted.fit_.rows)
    assert other.n_features_in_ == 3
    expected = new_rows(frame(1), fitted.fit_.preparation)
    found = new_rows(CONTAINERS[name](frame(1)), other.fit_.preparation)
    np.testing.assert_array_equal(found, expected)


def test_arrays_without_gaps_and_text_give_the_same_bits():
    X = by_hand(frame(0), frame(0))
    for strict in (True, False):
        fit = estimator(strict=strict).fit(X).fit_
        np.testing.assert_array_equal(fit.rows, X)
        assert (fit.preparation.columns, fit.preparation.n_columns) == (None, 5)
        assert not [note for note in fit.notes if note.step == "tables"]


def test_an_array_takes_frames_by_the_order_of_their_columns(fitted):
    X, new = by_hand(frame(0), frame(0)), by_hand(frame(1), frame(0))
    for strict in (True, False):
        model = estimator(strict=strict).fit(X)
        named = pd.DataFrame(new, columns=list("vwxyz"))
        with pytest.warns(UserWarning, match="X has feature names, but GammaGMM was fitted with"):
            found = model.decision_function(named)
        np.testing.assert_array_equal(found, model.decision_function(new))
        np.testing.assert_array_equal(found, model.decision_function(pd.DataFrame(new)))


def test_new_texts_are_a_warning(fitted):
    new = frame(2, texts="ad")
    n_new = int((new["kind"] == "d").sum())
    with pytest.warns(NewRowsWarning, match=rf"'kind', {n_new} rows .* \('d'\)"):
        found = fitted.decision_function(new)
    rows = by_hand(new, frame(0))
    assert not rows[new["kind"] == "d", 2:].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = fitted.decision_function(new[new["kind"] != "d"])
    np.testing.assert_array_equal(found[new["kind"] != "d"], known)


def test_a_column_of_gaps_alone_is_filled_in_new_rows(fitted):
    new = frame(1).assign(kind=None, v=np.nan)
    filled = frame(1).assign(kind="(missing)", v=frame(0)["v"].median())
    np.testing.assert_array_equal(fitted.decision_function(new), fitted.decision_function(filled))


def test_copies_pickles_and_files(fitted, tmp_path):
    assert clone(fitted).get_params()["strict"] is False
    fitted.save(tmp_path / "kept.fit")
    for copied in (pickle.loads(pickle.dumps(fitted)), GammaGMM.load(tmp_path / "kept.fit")):
        assert copied.fit_.preparation == fitted.fit_.preparation
        assert copied.feature_names_in_.tolist() == ["u", "v", "kind"]
        np.testing.assert_array_equal(
            copied.decision_function(frame(1)), fitted.decision_function(frame(1))
        )


def test_the_report_has_the_columns_of_numbers(fitted, tmp_path):
    assert fitted.fit_.table.columns == fitted.fit_.preparation.outputs
    assert len(fitted.fit_.preparation.outputs) == 5
    fitted.report(tmp_path / "r.html")
    assert "filled with the median" in (tmp_path / "r.html").read_text("utf-8")


def test_tags():
    tags = estimator().__sklearn_tags__().input_tags
    assert (tags.allow_nan, tags.string) == (True, True)
    tags = GammaGMM().__sklearn_tags__().input_tags
    assert (tags.allow_nan, tags.string) == (False, False)


BAD = frame(0)
TEXTS = [f"t{i % 21}" for i in range(N)]
EMPTY = [("x0", "empty"), ("x1", "infinite")]
STRICT = [("v", "missing"), ("kind", "text"), ("kind", "missing")]
REFUSED = [
    (True, BAD, STRICT),
    (True, BAD.set_axis(range(3), axis=1), [("1", "missing"), ("2", "text"), ("2", "missing")]),
    (False, BAD[["kind"]].assign(kind="a"), []),
    (False, BAD[["kind"]].assign(kind=TEXTS), [("kind", "many texts")]),
    (False, BAD.assign(v=np.nan).to_numpy(dtype=object), [("x1", "empty")]),
    (False, BAD.assign(kind=None).set_axis(range(3), axis=1), [("2", "empty")]),
    (False, BAD.assign(kind=TEXTS).to_numpy(dtype=object), [("x2", "many texts")]),
    (False, BAD.assign(u=np.nan, v=np.inf).to_numpy()[:, :2].astype(float), EMPTY),
]
LEFT_OUT = [
    (BAD.assign(u=np.inf), [("u", "empty")]),
    (BAD.assign(kind=TEXTS), [("kind", "many texts")]),
    (BAD.assign(**{"kind=a": BAD["u"], "kind=b": BAD["u"]}), [("kind", "taken name")]),
]


@pytest.mark.parametrize(("X", "expected"), LEFT_OUT)
def test_columns_that_cannot_be_used_are_left_out(X, expected):
    plan = check_parameters(estimator().get_params(deep=False))
    with pytest.warns(ColumnsWarning, match=repr(expected[0][0])):
        notes = open_rows(X, estimator(), plan).notes
    found = [(note.subject, note.fields["problem"]) for note in notes if "problem" in note.fields]
    assert found == expected


def test_frames_are_answered_by_default_and_arrays_are_not():
    model = GammaGMM(["KNN", "LOF"], n_runs=2, random_state=0)
    plan = check_parameters(model.get_params(deep=False))
    assert open_rows(BAD, model, plan).preparation.missing == "impute"
    for X in (BAD[["u", "v"]].to_numpy(), BAD.to_numpy(dtype=object)):
        with pytest.raises(TableError):
            model.fit(X)


@pytest.mark.parametrize(("strict", "X", "expected"), REFUSED)
def test_tables_that_are_refused(strict, X, expected):
    model = estimator(strict=strict)
    with pytest.raises(TableError) as caught:
        model.fit(X)
    assert caught.value.todo
    assert [(problem.column, problem.code) for problem in caught.value.problems] == expected
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("parameters", "X", "error", "words"),
    [
        ({"strict": 1}, BAD, TypeError, "strict must be True, False or None"),
        ({"detectors": "precomputed"}, BAD, ValueError, "precomputed"),
        ({"columns": {"drop": ["x1"]}}, np.ones((9, 2)), ValueError, "columns needs a data frame"),
        ({"columns": {}}, BAD.set_axis(range(3), axis=1), ValueError, "columns needs a data frame"),
        ({}, BAD.set_axis(["u", "v", 2], axis=1), TypeError, "all input features have string"),
        ({}, BAD[:1], ValueError, "at least 2 row"),
        ({}, [1.0, 2.0], ValueError, "X must be a table of rows and columns"),
    ],
)
def test_what_does_not_fit_together_is_refused(parameters, X, error, words):
    model = estimator().set_params(**parameters)
    with pytest.raises(error, match=words):
        model.fit(X)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"u": "x"}, ("u", "kind")),
        ({"u": np.inf}, ("u", "infinite")),
    ],
)
def test_new_rows_that_are_refused(change, problem, fitted):
    with pytest.raises(TableError) as caught:
        fitted.predict(frame(1).assign(**change))
    assert [(own.column, own.code) for own in caught.value.problems] == [problem]


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
