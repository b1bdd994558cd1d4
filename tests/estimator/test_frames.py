"""Tables of every kind, with the real libraries: pandas, polars, pyarrow, NumPy and SciPy."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from gammagmm import GammaGMM
from gammagmm.datasets import make_contaminated
from gammagmm.errors import MissingExtraError, Note

SMALL = {"n_components": 15, "n_runs": 2, "n_draws": 100, "p_high": 0.3, "random_state": 0}
NAMES = ["width", "height", "depth", "mass"]
INDEX = [f"row {i}" for i in range(200)]


def make_estimator():
    return GammaGMM(["KNN", "LOF"], **SMALL)


@pytest.fixture(scope="module")
def data():
    return make_contaminated(200, 4, 0.05, "clustered", random_state=1).X


@pytest.fixture(scope="module")
def fitted(data):
    return make_estimator().fit(data)


FRAMES = {
    "pandas": lambda X, names: pd.DataFrame(X, columns=names, index=INDEX),
    "pandas, nullable": lambda X, names: pd.DataFrame(X, columns=names).convert_dtypes(),
    "pandas, arrow": lambda X, names: pd.DataFrame(X, columns=names).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "polars": lambda X, names: pl.DataFrame(X, schema=names),
    "pyarrow": lambda X, names: pa.table(dict(zip(names, X.T, strict=True))),
}


def with_column(kind, X, name, values):
    """The table with one column more, or another in the place of its own."""
    table = FRAMES[kind](X, NAMES)
    if kind == "polars":
        return table.with_columns(pl.Series(name, values))
    if kind == "pyarrow":
        columns = dict(zip(table.column_names, table.columns, strict=True))
        return pa.table(columns | {name: pa.array(values)})
    return table.assign(**{name: values})


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_gives_the_answer_of_its_values_and_keeps_its_names(kind, data, fitted):
    frame = FRAMES[kind](data, NAMES)
    estimator = make_estimator().fit(frame)
    assert estimator.feature_names_in_.tolist() == NAMES
    assert estimator.posterior_.mean == fitted.posterior_.mean > 0.03
    np.testing.assert_array_equal(estimator.scores_, fitted.scores_)
    np.testing.assert_array_equal(estimator.predict(frame), fitted.predict(data))
    np.testing.assert_array_equal(estimator.predict_proba(frame), fitted.predict_proba(data))


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_in_another_order_or_under_other_names_are_refused(kind, data):
    estimator = make_estimator().fit(FRAMES[kind](data, NAMES))
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were"):
        estimator.predict(FRAMES[kind](data[:, ::-1], NAMES[::-1]))
    with pytest.raises(ValueError, match=r"names unseen at fit time:\n- weight"):
        estimator.decision_function(FRAMES[kind](data, [*NAMES[:3], "weight"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        estimator.predict(data)


def test_the_index_comes_back_with_the_answers(data):
    estimator = make_estimator().fit(pd.DataFrame(data, columns=NAMES, index=INDEX))
    answers = estimator.to_frame()
    assert answers.index.tolist() == INDEX
    assert answers.columns.tolist() == ["score", "probability", "label", "score_KNN", "score_LOF"]
    np.testing.assert_array_equal(answers["label"], estimator.labels_)
    np.testing.assert_array_equal(answers["score_LOF"], estimator.scores_[:, 1])
    for score, probability in answers[["score", "probability"]].iloc[:20].to_numpy():
        share = np.mean(estimator.decision_scores_ >= score)
        assert probability == pytest.approx(estimator.posterior_.prob_above(share), rel=1e-9)
    joined = pd.DataFrame(data, columns=NAMES, index=INDEX).join(answers)
    assert not joined.isna().any(axis=None)
    dates = pd.MultiIndex.from_product([["a", "b"], pd.date_range("2026-01-01", periods=100)])
    assert make_estimator().fit(pd.DataFrame(data, index=dates)).to_frame().index.equals(dates)


@pytest.mark.parametrize("kind", FRAMES)
def test_the_answers_come_in_the_kind_of_the_rows(kind, data):
    frame = FRAMES[kind](data, NAMES)
    estimator = make_estimator().fit(frame)
    answers = estimator.to_frame()
    assert type(answers) is type(frame)
    assert (estimator.index_ is None) == (kind in ("polars", "pyarrow"))
    np.testing.assert_array_equal(answers["label"], estimator.labels_)
    np.testing.assert_array_equal(answers["score_LOF"], estimator.scores_[:, 1])


def test_precomputed_scores_in_a_frame_are_named_by_its_columns(fitted):
    scores = pl.DataFrame(fitted.scores_, schema=["near", "local"])
    estimator = GammaGMM("precomputed", **SMALL).fit(scores)
    assert estimator.detector_names_ == ["near", "local"]
    assert estimator.to_frame().columns[-2:] == ["score_near", "score_local"]


KINDS = ["f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f4", "O"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_kind_are_numbers(kind, data):
    whole = np.round(4.0 * (data - data.min()))  # whole numbers from 0 that every kind can hold
    assert whole.max() < 127
    expected = make_estimator().fit(whole)
    typed = whole.astype(kind)
    estimator = make_estimator().fit(typed)
    np.testing.assert_array_equal(estimator.scores_, expected.scores_)
    assert estimator.posterior_.mean == expected.posterior_.mean > 0.03
    np.testing.assert_array_equal(estimator.predict(typed), expected.predict(whole))


def test_truth_values_are_0_and_1(data):
    high = data > np.median(data, axis=0)
    answers = [make_estimator().fit(rows).scores_ for rows in (high, high.astype(float))]
    np.testing.assert_array_equal(*answers)


def test_other_layouts_of_memory_change_nothing(data, fitted):
    padded = np.zeros((400, 8))
    padded[::2, ::2] = data
    read_only = data.copy()
    read_only.flags.writeable = False
    for rows in (np.asfortranarray(data), padded[::2, ::2], read_only, data.tolist()):
        assert make_estimator().fit(rows).posterior_.mean == fitted.posterior_.mean


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_are_refused_with_what_to_do(make, data, fitted):
    for ask in (make_estimator().fit, fitted.predict):
        with pytest.raises(TypeError, match=r"Sparse data was passed.*Use '\.toarray\(\)'"):
            ask(make(data))


@pytest.mark.parametrize("kind", FRAMES)
def test_missing_values_are_refused(kind, data):
    holes = data.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make_estimator().fit(FRAMES[kind](holes, NAMES))


@pytest.mark.parametrize("kind", FRAMES)
def test_text_is_refused_by_the_name_of_its_column(kind, data):
    table = with_column(kind, data, "depth", ["x"] * len(data))
    words = r"column 'depth' holds text \('x' in row 0\): drop the column, encode it"
    with pytest.raises(ValueError, match=words):
        make_estimator().fit(table)


TIMES = {
    "date": datetime.date(2026, 1, 1),
    "time stamp": datetime.datetime(2026, 1, 1, 12),
    "duration": datetime.timedelta(seconds=5),
}


@pytest.mark.parametrize("value", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_times_are_refused_by_the_name_of_their_column(kind, value, data, fitted):
    table = with_column(kind, data, "when", [value] * len(data))
    for ask in (make_estimator().fit, fitted.predict):
        with pytest.raises(TypeError, match=r"drop or encode the columns 'when' \((?i:da|ti|du)"):
            ask(table)


@pytest.mark.parametrize("value", [pd.Timestamp("2026-01-01"), pd.Timedelta("5s")])
def test_times_of_pandas_are_refused_beside_numbers_and_alone(value, data):
    frame = pd.DataFrame(data, columns=NAMES).assign(when=value)
    for table in (frame, frame[["when"]], frame.convert_dtypes(dtype_backend="pyarrow")):
        with pytest.raises(TypeError, match=r"drop or encode the columns 'when' \(\w+"):
            make_estimator().fit(table)
    with pytest.raises(TypeError, match=r"got the type (datetime|timedelta)64"):
        make_estimator().fit(frame[["when"]].to_numpy())


def test_masked_values_are_missing(data):
    mask = np.zeros(data.shape, dtype=bool)
    assert make_estimator().fit(np.ma.masked_array(data, mask)).posterior_.mean > 0.0
    mask[3, 1] = True
    with pytest.raises(ValueError, match="X has masked values, which are missing: fill them"):
        make_estimator().fit(np.ma.masked_array(data, mask))


def test_a_lazy_frame_is_collected_with_a_note(data, fitted):
    estimator = make_estimator().fit(pl.DataFrame(data, schema=NAMES).lazy())
    np.testing.assert_array_equal(estimator.scores_, fitted.scores_)
    assert isinstance(estimator.to_frame(), pl.DataFrame)
    notes = [note for note in estimator.notes_ if note.step == "tables"]
    assert notes == [Note("tables", "X", "is a lazy frame, whose rows were collected into memory")]


def test_a_name_that_comes_twice_is_said(data):
    names = ["a", "b", "a", "c"][: data.shape[1]]
    with pytest.raises(ValueError, match=r"X has 2 columns named 'a'\. Rename them"):
        make_estimator().fit(pd.DataFrame(data, columns=names))


def test_names_that_are_no_text_are_not_kept(data):
    """As in scikit-learn: the order of such columns is the user's own affair."""
    frame = pd.DataFrame(data)
    fitted = make_estimator().fit(frame)
    assert not hasattr(fitted, "feature_names_in_")
    turned = frame[frame.columns[::-1]]
    found = fitted.decision_function(turned)
    np.testing.assert_array_equal(found, fitted.decision_function(turned.to_numpy()))


def test_a_fit_that_fails_leaves_the_rows_their_names(data):
    fitted = make_estimator().fit(pd.DataFrame(data, columns=NAMES))
    bad = pd.DataFrame(data.copy(), columns=NAMES, index=np.arange(len(data)) + 1000)
    bad.iloc[0, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fitted.fit(bad)
    assert fitted.to_frame().index[:3].tolist() == [0, 1, 2]


def test_without_pandas_the_frame_says_what_is_missing(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_frame needs pandas, .*pip install pandas"):
        fitted.to_frame()


def test_an_index_with_repeats_keeps_its_rows(data):
    fitted = make_estimator().fit(pd.DataFrame(data, columns=NAMES, index=[0, 1] * 100))
    frame = fitted.to_frame()
    assert frame.index.tolist() == [0, 1] * 100
    np.testing.assert_array_equal(frame["score_KNN"], fitted.scores_[:, 0])
