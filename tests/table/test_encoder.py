"""Gaps, texts and dates become numbers by figures of the training rows."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from gammagmm._support.dates import date_form, seconds_of
from gammagmm._support.documents import Form, Reader, record_to_data
from gammagmm.errors import Note, SavedFileError
from gammagmm.table.encoder import NumberColumn, TableEncoder, TextColumn, fit_encoder


def objects(*cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def test_numbers_and_texts_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    numbers, new_numbers = rng.normal(size=(2, 50))
    texts = objects(*rng.choice(list("abc"), 50).tolist())
    new_texts = objects(*rng.choice(list("abcd"), 50).tolist())
    numbers[:7] = new_numbers[3:9] = np.nan
    encoder = fit_encoder(("x", "t"), [numbers, texts])
    values, notes = encoder.transform([new_numbers, new_texts])
    imputer = SimpleImputer(strategy="median").fit(numbers[:, None])
    usual = Counter(texts.tolist()).most_common(1)[0][0]
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop=[usual])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of scikit-learn, about the unknown text
        made = hot.fit(texts[:, None]).transform(new_texts[:, None])
    expected = [imputer.transform(new_numbers[:, None]), made]
    np.testing.assert_array_equal(values, np.hstack(expected))
    assert encoder.outputs == ("x", *(f"t={text}" for text in "abc" if text != usual))
    n_unknown = sum(text == "d" for text in new_texts)
    median = np.nanmedian(numbers)
    filled = Note.of("tables.filled", "x", n_cells=6, value=median, is_new=True)
    unknown = Note.of("tables.unknown text", "t", n_rows=n_unknown, texts="'d'")
    assert notes == (filled, unknown)


def test_gaps_in_text_are_a_text_of_their_own():
    encoder = fit_encoder(("t",), [objects("b", "b", "a", None)])
    assert encoder.texts == (TextColumn("t", ("(missing)", "a", "b"), ("(missing)", "a")),)
    values, notes = encoder.transform([objects(None, "a", "b")])
    assert values.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    assert notes == (Note.of("tables.gap text", "t", n_cells=1, text="(missing)"),)


def test_a_gap_that_the_training_rows_do_not_have_is_an_unknown_text():
    encoder = fit_encoder(("t",), [objects("b", "b", "a")])
    values, notes = encoder.transform([objects(None, "a")])
    assert values.tolist() == [[0.0], [1.0]]
    assert [note.code for note in notes] == ["tables.gap text", "tables.unknown text"]


def test_no_column_of_texts_is_a_sum_of_others():
    """A code and its meaning say the same, and so do two columns that together say a third."""
    rng = np.random.default_rng(0)
    code, side = rng.integers(0, 4, 200), rng.integers(0, 2, 200)
    cells = [
        objects(*(f"c{i}" for i in code)),
        objects(*(["north", "south", "east", "west"][i] for i in code)),
        objects(*(["left", "right"][i] for i in side)),
        objects(*(f"{i}{j}" for i, j in zip(code, side, strict=True))),
    ]
    encoder = fit_encoder(("code", "name", "side", "both"), cells)
    values, notes = encoder.transform(cells, is_new=False)
    assert np.linalg.matrix_rank(values - values.mean(axis=0)) == values.shape[1] == 7
    assert [note.code for note in notes if note.subject == "name"] == ["tables.implied text"]


def test_neighbours_that_say_the_same_are_found_in_a_wide_table_in_proportional_time():
    rng = np.random.default_rng(0)
    cells = [objects(*row) for row in rng.integers(0, 9, (500, 300)).astype(str)]
    pairs = [each for own in cells for each in (own, objects(*(f"={text}" for text in own)))]
    names = [f"c{j}" for j in range(len(pairs))]
    start = time.process_time()
    encoder = fit_encoder(names, pairs)
    assert time.process_time() - start < 10.0  # each with each of 8,000 columns: minutes
    assert [len(column.encoded) for column in encoder.texts].count(0) >= 490
    assert len(encoder.outputs) <= 500 * 8 + 10 * 8


def test_the_median_of_huge_numbers_is_finite():
    encoder = fit_encoder(("x",), [np.array([1.5e308, 1.7e308, np.nan])])
    assert encoder.numbers == (NumberColumn("x", 1.6e308),)


DATES = ["2024-02-29T23:15:00", "2024-03-01", "2023-12-31 06:30", "2024-03-08"]


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("year-month-day", "%Y-%m-%d %H:%M"),
        ("day.month.year", "%d.%m.%Y %H:%M"),
        ("month/day/year", "%m/%d/%Y %H:%M:%S"),
        ("day/month/year", "%d/%m/%Y %H:%M"),
    ],
)
def test_dates_are_those_of_pandas(form, pattern):
    moments = [datetime.fromisoformat(text) for text in DATES]
    cells = [moment.strftime(pattern) for moment in moments]
    assert date_form([*cells, None]) == form
    expected = pd.to_datetime(pd.Series(moments)).astype("datetime64[s]").astype(np.int64)
    np.testing.assert_array_equal(seconds_of([*cells, None], form)[:-1], expected)
    assert np.isnan(seconds_of([None, "x"], form)).all()


@pytest.mark.parametrize("cell", ["2024-13-01", "20240101", "1.5", "31.02.2024", "x", "1/2/24"])
def test_what_is_no_date(cell):
    assert date_form(["2024-01-01", cell]) is None
    assert date_form([None]) is None


def test_dates_become_days_and_circles():
    encoder = fit_encoder(("when",), [objects(*DATES, None)], dates={"when": "year-month-day"})
    values, notes = encoder.transform([objects(*DATES, None)], is_new=False)
    moments = pd.Series(pd.to_datetime(DATES, format="ISO8601"))
    moments[4] = moments.median()
    days = (moments - pd.Timestamp("2023-12-31")) / pd.Timedelta(days=1)
    # 1970 began on a Thursday.
    week = 2.0 * np.pi * ((moments.dt.day_of_week - 3) % 7) / 7.0
    hour = 2.0 * np.pi * (moments.dt.hour + moments.dt.minute / 60.0) / 24.0
    expected = np.column_stack([days, np.sin(week), np.cos(week), np.sin(hour), np.cos(hour)])
    np.testing.assert_allclose(values[:4], expected[:4], atol=1e-9)
    np.testing.assert_allclose(values[4, 0], expected[4, 0])
    assert encoder.outputs[:3] == ("when days", "when weekday sine", "when weekday cosine")
    assert [note.code for note in notes] == ["tables.dates", "tables.filled date"]


def test_parts_of_dates_that_do_not_vary_have_no_column():
    encoder = fit_encoder(
        ("d",), [objects("2024-01-01", "2024-01-08")], dates={"d": "year-month-day"}
    )
    assert encoder.outputs == ("d days",)
    assert encoder.transform([objects("2024-01-03")])[0].tolist() == [[2.0]]


def test_a_stored_encoder_reads_back_as_the_same():
    columns = [np.array([0.1, np.nan]), objects("x", None), objects("1.2.2024", "3.2.2024 7:15")]
    encoder = fit_encoder(("n", "t", "d"), columns, dates={"d": "day.month.year"})
    reader = Reader(Form("test", 1, "encoder"), "test.json")
    data = json.loads(json.dumps(record_to_data(encoder)))
    assert reader.record(TableEncoder, "encoder", data) == encoder
    for damage in ({"names": ["n", "t"]}, {"names": ["n", "t", "t"]}):
        with pytest.raises(SavedFileError, match="every column must be"):
            reader.record(TableEncoder, "encoder", data | damage)
    data["texts"][0]["encoded"] = ["y"]
    with pytest.raises(SavedFileError, match="some of the texts"):
        reader.record(TableEncoder, "encoder", data)
