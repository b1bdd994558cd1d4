"""Tables of every kind, with the real libraries: pandas, polars, pyarrow, DuckDB, NumPy, SciPy."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from gammagmm import GammaGMM, GammaThreshold, estimate_contamination
from gammagmm.datasets import make_contaminated
from gammagmm.errors import ColumnsWarning, NoLabelsWarning, Note, TableError
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.rows import open_rows
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Choices, prepare

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
    "polars, lazy": lambda X, names: pl.LazyFrame(X, schema=names),
    "pyarrow": lambda X, names: pa.table(dict(zip(names, X.T, strict=True))),
    "pyarrow, batch": lambda X, names: batch(pa.table(dict(zip(names, X.T, strict=True)))),
    "DuckDB": lambda X, names: relation(pa.table(dict(zip(names, X.T, strict=True)))),
}
COLLECTED = {"polars, lazy": pl.DataFrame, "DuckDB": pa.Table}
RETURNED = COLLECTED | {"pyarrow, batch": pa.Table}


def relation(table):
    """A relation of DuckDB with the rows of a table of pyarrow."""
    return duckdb.from_arrow(table)


def batch(table):
    """The only record batch of a table of pyarrow."""
    [found] = table.to_batches()
    return found


def refused(X, **parameters):
    """Column and code of the problems of a table."""
    with pytest.raises(TableError) as caught:
        make_estimator().set_params(**{"strict": True} | parameters).fit(X)
    return [(problem.column, problem.code) for problem in caught.value.problems]


def with_column(kind, X, name, values):
    """The table with one column more, or another in the place of its own."""
    if kind.startswith("polars"):
        return FRAMES[kind](X, NAMES).with_columns(pl.Series(name, values))
    if kind in ("pyarrow", "pyarrow, batch", "DuckDB"):
        table = pa.table(dict(zip(NAMES, X.T, strict=True)) | {name: pa.array(values)})
        return TYPED[kind](table)
    return FRAMES[kind](X, NAMES).assign(**{name: values})


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_gives_the_answer_of_its_values_and_keeps_its_names(kind, data, fitted):
    frame = FRAMES[kind](data, NAMES)
    estimator = make_estimator().fit(frame)
    assert estimator.feature_names_in_.tolist() == NAMES
    assert estimator.posterior_.summary() == fitted.posterior_.summary()
    assert fitted.posterior_.mean > 0.03
    np.testing.assert_array_equal(estimator.scores_, fitted.scores_)
    np.testing.assert_array_equal(estimator.labels_, fitted.labels_)
    new, rows = data[:20] + 0.1, slice(0, 20)
    part = FRAMES[kind](data[rows] + 0.1, NAMES) if kind != "pandas" else frame.iloc[rows] + 0.1
    np.testing.assert_array_equal(estimator.decision_function(part), fitted.decision_function(new))
    np.testing.assert_array_equal(estimator.predict(frame), fitted.predict(data))
    np.testing.assert_array_equal(estimator.predict_proba(part), fitted.predict_proba(new))


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
    np.testing.assert_array_equal(answers["probability"], estimator.fit_.probability)
    joined = pd.DataFrame(data, columns=NAMES, index=INDEX).join(answers)
    assert not joined.isna().any(axis=None)
    dates = pd.MultiIndex.from_product([["a", "b"], pd.date_range("2026-01-01", periods=100)])
    assert make_estimator().fit(pd.DataFrame(data, index=dates)).to_frame().index.equals(dates)


@pytest.mark.parametrize("kind", FRAMES)
def test_the_answers_come_in_the_kind_of_the_rows(kind, data):
    frame = FRAMES[kind](data, NAMES)
    estimator = make_estimator().fit(frame)
    answers = estimator.to_frame()
    assert type(answers) is RETURNED.get(kind, type(frame))
    assert (estimator.fit_.table.container.index is not None) == kind.startswith("pandas")
    np.testing.assert_array_equal(answers["label"], estimator.labels_)
    np.testing.assert_array_equal(answers["score_LOF"], estimator.scores_[:, 1])


def test_precomputed_scores_in_a_frame_are_named_by_its_columns(fitted):
    scores = pl.DataFrame(fitted.scores_, schema=["near", "local"])
    estimator = GammaGMM("precomputed", **SMALL).fit(scores)
    assert estimator.fit_.detector_names == ["near", "local"]
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


def test_sparse_columns_of_pandas_are_refused_with_what_to_do(data, fitted):
    """scikit-learn refuses a frame of them, but only warns of a frame with some of them."""
    frame = pd.DataFrame(data, columns=NAMES)
    some = frame.assign(mass=frame["mass"].astype("Sparse[float]"))
    words = (
        r"these of X are sparse: ('width', .*)?'mass'\. Call \.sparse\.to_dense\(\) on them first"
    )
    for table in (frame.astype("Sparse[float]"), some):
        for ask in (make_estimator().fit, fitted.predict):
            with pytest.raises(TypeError, match=words):
                ask(table)
    dense = some.assign(mass=some["mass"].sparse.to_dense())
    assert make_estimator().fit(dense).posterior_.summary() == fitted.posterior_.summary()


class OtherTable:
    """A table of a library that Narwhals does not know; NumPy reads its dates as numbers."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.table, dtype=dtype)


def test_tables_that_narwhals_does_not_know_and_series_are_refused(data, fitted):
    when = pa.array([datetime.date(2026, 1, 1 + i % 28) for i in range(len(data))])
    table = pa.table([*data.T[:3], when], names=NAMES)
    others = [OtherTable(table), table.to_reader(), table["depth"], when, pl.Series(when)]
    for X in others:
        words = f"X must be an array or a data frame of rows and columns, got {type(X).__name__}"
        for ask in (make_estimator().fit, fitted.predict):
            with pytest.raises(TableError, match=rf"{words}\. Convert it to a data frame of"):
                ask(X)


@pytest.mark.parametrize("kind", FRAMES)
def test_missing_values_are_refused(kind, data):
    holes = data.copy()
    holes[3, 1] = np.nan
    assert refused(FRAMES[kind](holes, NAMES)) == [("height", "missing")]
    with pytest.raises(TableError, match="NaN"):
        make_estimator().fit(holes)


@pytest.mark.parametrize("kind", FRAMES)
def test_text_is_refused_by_the_name_of_its_column(kind, data):
    table = with_column(kind, data, "depth", ["x", "y"] * (len(data) // 2))
    assert refused(table) == [("depth", "text")]


@pytest.mark.parametrize("kind", FRAMES)
def test_dates_are_left_out_and_durations_are_refused_if_they_are_used(kind, data, fitted):
    days = [datetime.datetime(2026, 1, 1 + i % 28, 12) for i in range(len(data))]
    table = with_column(kind, data, "when", days)
    with pytest.warns(ColumnsWarning, match="'when'"):
        found = make_estimator().fit(table)
    assert found.fit_.preparation.left_out == ("when",)
    assert found.posterior_.summary() == fitted.posterior_.summary()
    durations = with_column(kind, data, "when", [datetime.timedelta(seconds=5)] * len(data))
    with pytest.raises(TypeError, match=r"column 'when' of X .*, got '\w+'\. Drop or encode it"):
        make_estimator().set_params(strict=True).fit(durations)
    with pytest.warns(ColumnsWarning, match="'when'"):
        found = make_estimator().fit(durations)
    assert Note.of("tables.unusable", "when", problem="kind") in found.notes_
    found = make_estimator().set_params(columns={"drop": ["when"]}).fit(durations)
    assert found.posterior_.summary() == fitted.posterior_.summary()
    with pytest.raises(TableError) as caught:
        found.predict(with_column(kind, data, "mass", [datetime.timedelta(1)] * len(data)))
    assert [(own.column, own.code) for own in caught.value.problems] == [("mass", "kind")]


@pytest.mark.parametrize("value", [np.datetime64("2026-01-01"), np.timedelta64(5, "ns")])
def test_times_of_numpy_are_refused_among_objects(value, data):
    """NumPy turns them into numbers without a word."""
    when = np.empty(len(data), dtype=object)
    when[:] = [value + i for i in range(len(data))]
    rows = np.column_stack([data.astype(object), when])
    for X in (rows, list(map(list, rows))):
        with pytest.raises(TypeError, match=r"X must hold numbers, got the type (date|timed)"):
            make_estimator().fit(X)
    strict, X = make_estimator(), pd.DataFrame(rows, columns=[*NAMES, "when"], dtype=object)
    strict.set_params(strict=True)
    with pytest.raises(TypeError, match="The column 'when' of X must hold numbers, text or dates"):
        strict.fit(X)


def test_masked_values_are_missing(data):
    mask = np.zeros(data.shape, dtype=bool)
    assert make_estimator().fit(np.ma.masked_array(data, mask)).posterior_.mean > 0.0
    mask[3, 1] = True
    with pytest.raises(ValueError, match="X has masked values, which are missing: fill them"):
        make_estimator().fit(np.ma.masked_array(data, mask))


@pytest.mark.parametrize("kind", COLLECTED)
def test_a_lazy_frame_is_collected_with_a_note(kind, data):
    estimator = make_estimator().fit(FRAMES[kind](data, NAMES))
    notes = [note for note in estimator.notes_ if note.step == "tables"]
    assert notes == [Note.of("tables.collected", "X")]


def test_a_name_that_comes_twice_is_said(data):
    names = ["a", "b", "a", "c"]
    arrays = [pa.array(column) for column in data.T]
    tables = [
        pd.DataFrame(data, columns=names),
        pa.Table.from_arrays(arrays, names=names),
        pa.RecordBatch.from_arrays(arrays, names=names),
        duckdb.sql("select i as a, i as b, i as a from range(20) t(i)"),
    ]
    for table in tables:
        with pytest.raises(TableError, match=r"X has 2 columns named 'a'\. Rename them"):
            make_estimator().fit(table)
    with pytest.raises(TableError, match=r"X has 4 columns named 0\. Rename them"):
        make_estimator().fit(pd.DataFrame(data, columns=[0] * 4))


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
    with pytest.raises(TableError, match="missing"):
        fitted.set_params(strict=True).fit(bad)
    assert fitted.to_frame().index[:3].tolist() == [0, 1, 2]


def test_an_index_with_repeats_keeps_its_rows(data):
    fitted = make_estimator().fit(pd.DataFrame(data, columns=NAMES, index=[0, 1] * 100))
    frame = fitted.to_frame()
    assert frame.index.tolist() == [0, 1] * 100
    np.testing.assert_array_equal(frame["score_KNN"], fitted.scores_[:, 0])


CELLS = {
    "whole": pa.array([2**53 + 1, -3, 2**62 + 1, 7, 8]),
    "gaps": pa.array([1, None, 2**53 + 1, 4, 5]),
    "real": pa.array([0.1, float("nan"), None, 1e300, -0.0]),
    "flag": pa.array([True, False, True, False, True]),
    "doubt": pa.array([True, None, False, True, None]),
    "money": pa.array([Decimal("0.1"), Decimal("2.25"), None, Decimal("1e3"), Decimal("-7.3")]),
    "small": pa.array([1, 2, 3, 250, 5], pa.uint8()),
    "single": pa.array([0.1, 2.0, 3.5, 4.0, 5.0], pa.float32()),
    "town": pa.array(["Turku", None, "Oulu", "Turku", "Oulu"]),
    "kind": pa.array(["a", "b", "a", None, "b"]).dictionary_encode(),
}
NUMBERS = {
    "whole": [2.0**53, -3.0, 2.0**62, 7.0, 8.0],
    "gaps": [1.0, 4.5, 2.0**53, 4.0, 5.0],
    "real": [0.1, 0.1, 0.1, 1e300, -0.0],
    "flag": [1.0, 0.0, 1.0, 0.0, 1.0],
    "doubt": [1.0, 1.0, 0.0, 1.0, 1.0],
    "money": [0.1, 2.25, 1.175, 1000.0, -7.3],
    "small": [1.0, 2.0, 3.0, 250.0, 5.0],
    "single": [float(np.float32(0.1)), 2.0, 3.5, 4.0, 5.0],
    "town=(missing)": [0.0, 1.0, 0.0, 0.0, 0.0],
    "town=Turku": [1.0, 0.0, 0.0, 1.0, 0.0],
    "kind=(missing)": [0.0, 0.0, 0.0, 1.0, 0.0],
    "kind=b": [0.0, 1.0, 0.0, 0.0, 1.0],
}
TYPED = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas, nullable": lambda table: table.to_pandas(
        types_mapper={
            pa.int64(): pd.Int64Dtype(),
            pa.bool_(): pd.BooleanDtype(),
            pa.float64(): pd.Float64Dtype(),
        }.get
    ),
    "pandas, arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars, enum": lambda table: pl.from_arrow(table).with_columns(
        pl.col("kind").cast(pl.String).cast(pl.Enum(["b", "a"]))
    ),
    "pyarrow, batch": batch,
    "DuckDB": relation,
}


@pytest.mark.parametrize("kind", TYPED)
def test_cells_of_every_type_are_the_same_numbers_in_every_kind_of_frame(kind):
    table = TYPED[kind](pa.table(CELLS))
    prepared = prepare(frame_table(table), Choices(missing="impute", categories="encode"))
    assert prepared.columns == tuple(NUMBERS)
    for values, (name, expected) in zip(prepared.values.T, NUMBERS.items(), strict=True):
        np.testing.assert_array_equal(values, expected, err_msg=name)


@pytest.mark.parametrize("kind", TYPED)
def test_objects_that_are_neither_numbers_nor_text_are_refused(kind):
    table = TYPED[kind](pa.table(CELLS | {"list": pa.array([[1], [2], [3], [4], [5]])}))
    with pytest.raises(TypeError, match="column 'list' of X must hold numbers, text or dates"):
        GammaGMM(strict=True).fit(table)


@pytest.mark.parametrize(
    "values", [pd.period_range("2026-01-01", periods=200), pd.interval_range(0, 200)]
)
def test_periods_and_intervals_are_refused_with_what_to_do(values, data):
    frame = pd.DataFrame(data, columns=NAMES).assign(when=values)
    with pytest.raises(TypeError, match=r"column 'when' of X .* got '(Period|Interval)'"):
        make_estimator().set_params(strict=True).fit(frame)
    with pytest.warns(ColumnsWarning, match="'when'"):
        assert make_estimator().fit(frame).fit_.preparation.left_out == ("when",)


def test_numbers_beside_texts_of_numbers_are_numbers(data, fitted):
    """As pandas reads a column of a long file in parts."""
    mass = [str(value) if i % 3 else value for i, value in enumerate(data[:, 3].tolist())]
    frame = pd.DataFrame(data, columns=NAMES).assign(mass=pd.Series(mass, dtype=object))
    np.testing.assert_array_equal(make_estimator().fit(frame).scores_, fitted.scores_)
    np.testing.assert_array_equal(make_estimator().fit(frame.to_numpy()).scores_, fitted.scores_)
    heavy = frame.assign(mass=[*mass[:7], "heavy", *mass[8:]])
    assert refused(heavy) == [("mass", "text")]


def test_a_signalling_nan_is_missing_and_a_number_above_every_float_is_infinite(data):
    for sign in (1, -1):
        large = pd.DataFrame(data, columns=NAMES).astype({"mass": object})
        large.loc[3, "mass"] = sign * 10**400
        assert refused(large) == [("mass", "infinite")]
        found = make_estimator().fit(large)
        assert Note.of("tables.infinite", "mass", n_cells=1) in found.notes_
        assert found.fit_.rows[3, 3] == np.median(np.delete(data[:, 3], 3))
    gap = pd.DataFrame(data, columns=NAMES).astype({"mass": object})
    gap.loc[3, "mass"] = Decimal("sNaN")
    assert refused(gap) == [("mass", "missing")]


@pytest.fixture(scope="module")
def mixed(data):
    """A table with gaps and categories."""
    numbers = [pa.array(np.where(np.arange(200) % 17 == 3, np.nan, column)) for column in data.T]
    texts = np.where(data[:, 0] > 0.3, "high", "low")
    return pa.table([*numbers, pa.array(texts).dictionary_encode()], names=[*NAMES, "level"])


def test_the_answer_to_gaps_and_categories_is_the_same_in_every_kind_of_frame(mixed):
    found = {}
    for kind in ("pyarrow", "pandas", "polars", "DuckDB"):
        estimator = make_estimator().set_params(strict=False).fit(TYPED[kind](mixed))
        new = TYPED[kind](mixed.slice(0, 40))
        answers = estimator.scores_, estimator.labels_, estimator.predict_proba(new)
        found[kind] = [estimator.posterior_.summary(), *(each.tobytes() for each in answers)]
    assert all(answers == found["pyarrow"] for answers in found.values())


SERIES = {
    "NumPy": np.array,
    "pandas": pd.Series,
    "pandas, nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas, arrow": lambda values: pd.Series(values).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "pyarrow": lambda values: pa.chunked_array([values]),
    "pyarrow array": pa.array,
    "polars frame": lambda values: pl.DataFrame({"only": values}),
    "pyarrow batch": lambda values: batch(pa.table({"only": values})),
    "DuckDB": lambda values: relation(pa.table({"only": values})),
}


@pytest.mark.parametrize("kind", SERIES)
def test_columns_of_every_kind_serve_as_labels_groups_periods_and_scores(kind, data, fitted):
    make = SERIES[kind]
    rows, labels = [3, 50, 120], [1, 0, 0]
    towns, days = ["Turku", "Oulu"] * 100, ["2026-01-01", "2026-01-02"] * 100
    expected = make_estimator().fit(data)
    expected.update(rows, labels)
    estimator = make_estimator().fit(data)
    estimator.update(make(rows), make(labels))
    assert estimator.posterior_.summary() == expected.posterior_.summary()
    shares = estimator.labelled_rows_.by_group(make(towns))
    assert shares == expected.labelled_rows_.by_group(towns)
    history = estimator.monitor(data, make(days), make(towns))
    assert history.periods == expected.monitor(data, days, towns).periods
    scores = fitted.scores_[:, 0].tolist()
    thresholds = [GammaThreshold(fitted).fit(each).thresh_ for each in (make(scores), scores)]
    assert thresholds[0] == thresholds[1]
    assert estimator.suggest(20, by=make(towns), random_state=0).tolist() == (
        expected.suggest(20, by=towns, random_state=0).tolist()
    )


WIDE = {
    "Int128": lambda labels: pl.Series(labels, dtype=pl.Int128),
    "Decimal": lambda labels: pl.Series(list(map(Decimal, labels))),
    "dictionary": lambda labels: pa.chunked_array([pa.array(labels).dictionary_encode()]),
    "hugeint": lambda labels: relation(pa.table({"only": labels})).select(
        duckdb.ColumnExpression("only").cast("hugeint")
    ),
}


@pytest.mark.parametrize("kind", WIDE)
def test_labels_may_be_whole_numbers_of_types_that_numpy_does_not_have(kind, data, fitted):
    if kind == "Int128" and not hasattr(pl, "Int128"):
        pytest.skip("this version of polars has no Int128")
    expected = clone(fitted).fit(data).update([3, 50], [1, 0])
    found = clone(fitted).fit(data).update([3, 50], WIDE[kind]([1, 0]))
    assert found.summary() == expected.summary()
    with pytest.raises(ValueError, match=r"labels must be 0 \(normal\) or 1 \(anomaly\), got 2"):
        clone(fitted).fit(data).update([3, 50], WIDE[kind]([1, 2]))


@pytest.mark.parametrize(
    ("scores", "error", "words"),
    [
        (pd.Series(["a"] * 200), ValueError, "scores must be numbers: .* 'a'"),
        (
            pd.Series(pd.date_range("2026-01-01", periods=200)),
            TypeError,
            "numbers, got the type datetime64",
        ),
        (
            np.array([np.datetime64("2026-01-01"), 1.0] * 100, dtype=object),
            TypeError,
            "numbers, got",
        ),
        ([{}] * 200, TypeError, "scores must be numbers: .* 'dict'"),
        ([10**400] * 200, ValueError, "scores must be finite, got 200 values"),
    ],
)
def test_scores_that_are_no_numbers_are_refused(scores, error, words):
    with pytest.raises(error, match=words):
        GammaThreshold().fit(scores)


def test_missing_cells_of_a_column_are_missing_in_every_kind(data, fitted):
    numbers, texts = [1, None, 2, 2] * 50, ["a", None, "b", "b"] * 50
    for values in (numbers, texts):
        columns = [
            pd.Series(values, dtype="Int64" if values is numbers else object),
            pl.Series(values),
            pa.chunked_array([values]),
            pa.chunked_array([pa.array(values).dictionary_encode()]),
            relation(pa.table({"only": values})),
        ]
        found = [fitted.labelled_rows_.by_group(column) for column in columns]
        groups = [str(share.group) for share in found[0]]
        assert groups == [str(values[2]), "(missing)", str(values[0])]
        assert all(list(map(str, each)) == list(map(str, found[0])) for each in found)
    with pytest.raises(ValueError, match=r"scores must be finite, got 50 values that are NaN"):
        GammaThreshold(fitted).fit(pl.Series(numbers))


def test_periods_of_an_enum_keep_its_order(data, fitted):
    names = ["spring", "autumn"]
    days = pl.Series(names * 100, dtype=pl.Enum(names))
    assert [period.name for period in fitted.monitor(data, days).periods] == names
    assert [period.name for period in fitted.monitor(data, days.cast(pl.String)).periods] == (
        names[::-1]
    )


def test_the_shortcut_takes_frames(data, fitted):
    options = {"detectors": ["KNN", "LOF"], **SMALL}
    for kind in ("polars", "DuckDB"):
        with pytest.warns(NoLabelsWarning):
            share = estimate_contamination(FRAMES[kind](data, NAMES), **options)
        assert share == fitted.contamination_


@pytest.mark.parametrize(
    ("package", "installed"),
    [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "'gammagmm[data]'")],
)
def test_without_the_package_the_frame_says_what_is_missing(package, installed):
    code = [
        f"import sys; sys.modules[{package!r}] = None",
        "from gammagmm.table.container import Container",
        f"Container({package!r}).frame({{'label': [0, 1]}})",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=False
    )
    words = f"MissingExtraError: to_frame needs {package}, which is not installed. Run: pip install"
    assert f"{words} {installed}\n" in done.stderr


def test_without_pyarrow_a_relation_says_what_is_missing():
    code = [
        "import sys; sys.modules['pyarrow'] = None",
        "import duckdb",
        "from gammagmm._support.data_frames import as_column, open_frame",
        "for take in (as_column, open_frame):",
        "    try:",
        "        take(duckdb.sql('select 1 as label'))",
        "    except ImportError as error:",
        "        print(type(error).__name__, error)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=False
    )
    words = "MissingExtraError A duckdb frame needs pyarrow, which is not installed. Run: pip "
    assert done.stdout.splitlines() == [f"{words}install 'gammagmm[data]'"] * 2, done.stderr


def test_rows_of_a_frame_are_copied_once_and_not_shared(data):
    frame = pl.DataFrame(data, schema=NAMES)
    estimator = make_estimator()
    plan = check_parameters(estimator.get_params(deep=False))
    for table in (frame, frame.to_numpy()):
        kept = open_rows(table, estimator, plan).values
        # An array is copied, because the user may change it.
        assert not np.shares_memory(kept, table.to_numpy() if table is frame else table)
        assert not any(np.shares_memory(kept, column.to_numpy()) for column in frame.iter_columns())
