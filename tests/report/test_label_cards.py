"""A row as a card: places on the pictures of columns, odd values first, and the ordinary row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm.report.label_cards import N_BARS, Cards

N = 400


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(50.0, 10.0, N),
            "steady": np.full(N, 3.0),
            "region": rng.choice(["north", "south"], N, p=[0.98, 0.02]),
            "items": rng.integers(0, 5, N).astype(float),
        }
    )
    frame.loc[7, "amount"] = 500.0
    frame.loc[7, "region"] = "south"
    return frame


@pytest.fixture(scope="module")
def cards(rows):
    estimator = GammaGMM(["KNN", "HBOS"], n_runs=1, random_state=0, strict=False)
    return Cards(estimator.fit(rows).fit_)


def value_of(cards, card, name):
    columns = [column["name"] for column in cards.columns()]
    return next(value for value in card["values"] if columns[value["column"]] == name)


def test_a_value_far_away_is_first_and_lies_beyond_the_end(cards):
    card = cards.card(7)
    amount = value_of(cards, card, "amount")
    assert card["values"][0] == amount
    assert amount["side"].startswith("far above")
    assert amount["at"] > 1.0
    assert "amount 500" in card["why"]
    assert value_of(cards, card, "region")["is_rare"]
    assert value_of(cards, card, "region")["text"] == "south"


def test_usual_values_have_their_place_by_size(cards, rows):
    order = rows["amount"].drop(7).sort_values().index
    places = [value_of(cards, cards.card(row), "amount")["at"] for row in order[[20, 200, 380]]]
    assert 0.0 < places[0] < places[1] < places[2] < 1.0


def test_bars_count_the_rows(cards, rows):
    items = next(column for column in cards.columns() if column["name"] == "items")
    counts = rows["items"].value_counts()
    heights = [height for height in items["bars"] if height]
    assert len(items["bars"]) == N_BARS
    expected = np.ceil(100.0 * counts.sort_index() / counts.max())
    np.testing.assert_array_equal(heights, expected)


def test_the_ordinary_row_is_the_nearest_one_in_the_lower_half(cards):
    fit = cards.fit
    scores = fit.decision_scores
    for row in (7, 30, 200):
        nearest = cards.card(row)["ordinary"] - 1
        assert nearest != row
        assert scores[nearest] <= np.median(scores)
        assert fit.labels[nearest] == 0


def test_every_column_is_on_the_card_once(cards):
    for row in (0, 7):
        card = cards.card(row)
        names = [cards.columns()[value["column"]]["name"] for value in card["values"]]
        names += [name for name, _ in card["others"]]
        assert sorted(set(names)) == sorted(names)
        assert {"amount", "region", "items"} <= set(names)
