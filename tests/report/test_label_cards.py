"""A row as a card: places on the pictures of columns, odd values first, and the ordinary row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gammagmm import GammaGMM
from gammagmm._support.text import percent
from gammagmm.report.label_cards import MAX_TEXTS, N_BARS, Cards

# Small fits are fast, and may leave all starts without a solution.
pytestmark = pytest.mark.filterwarnings("ignore:The model has no:gammagmm.errors.NoSolutionWarning")

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
    # A bar for each of the numbers from 0 to 4, which are all usual.
    expected = np.ceil(100.0 * counts.sort_index() / counts.max())
    np.testing.assert_array_equal(items["bars"], expected)
    assert items["usual"] == [0.0, 1.0]
    amount = next(column for column in cards.columns() if column["name"] == "amount")
    assert len(amount["bars"]) == N_BARS


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


TEXTS = ["DE", "FR", "NL", "BE", "AT", "CH", "LU", "IT", "ES"]


@pytest.fixture(scope="module")
def orders():
    """Texts with many different values, and whole numbers over a wide range."""
    rng = np.random.default_rng(1)
    shares = np.array([0.4, 0.2, 0.1, 0.09, 0.07, 0.06, 0.05, 0.02, 0.01])
    country = rng.choice(TEXTS, N, p=shares / shares.sum())
    paid = np.where(rng.random(N) < 0.7, "card", "invoice")
    days = rng.poisson(40.0, N).astype(float)
    return pd.DataFrame({"days": days, "country": country, "paid": paid})


@pytest.fixture(scope="module")
def order_cards(orders):
    estimator = GammaGMM(["KNN", "HBOS"], n_runs=1, random_state=0, strict=False)
    return Cards(estimator.fit(orders).fit_)


def test_every_text_is_shown_as_it_is_with_its_share(order_cards, orders):
    """The most frequent text as well, which has no column of 0 and 1 of its own."""
    country, paid = (
        next(c for c in order_cards.columns() if c["name"] == n)
        for n in orders[["country", "paid"]]
    )
    counts = orders["country"].value_counts()
    own = (counts / N).tolist()
    expected = [*own[:MAX_TEXTS], sum(own[MAX_TEXTS:])]
    np.testing.assert_allclose(country["texts"], expected, atol=1e-4)
    np.testing.assert_allclose(paid["texts"], orders["paid"].value_counts() / N, atol=1e-4)
    for row, order in orders.iterrows():
        card = order_cards.card(row)
        assert card["others"] == []
        for name in ("country", "paid"):
            value = value_of(order_cards, card, name)
            place = orders[name].value_counts().index.get_loc(order[name])
            nearest = orders.loc[card["ordinary"] - 1, name]
            assert (value["text"], value["ordinary"]) == (order[name], nearest)
            assert value["at"] == min(place, MAX_TEXTS)
            share = percent((orders[name] == order[name]).mean())
            assert value["share"].endswith(f"{share} of the rows")


def test_bars_of_whole_numbers_have_as_many_numbers_each(order_cards, orders):
    days = next(column for column in order_cards.columns() if column["name"] == "days")
    first, last = np.quantile(orders["days"], [0.005, 0.995])
    first, last = int(np.floor(first)), int(np.ceil(last))
    in_bar = -(-(last - first + 1) // N_BARS)
    assert in_bar == 2
    bars = [((orders["days"] - first) // in_bar == i).sum() for i in range(len(days["bars"]))]
    np.testing.assert_array_equal(days["bars"], np.ceil(100.0 * np.array(bars) / max(bars)))
