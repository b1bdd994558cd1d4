"""Files of other programs than those of `office_files`, each in one point unlike them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gammagmm.errors import TableError
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import Asked
from gammagmm.table.gap_codes import likely_codes
from gammagmm.table.guesses import guess
from tests.support.raw_columns import columns_of

N = 30


def lines(*texts):
    return "".join(f"{text}\n" for text in texts)


def test_sums_with_asterisks(write):
    rows = [f"|  |M{i % 7}  |{i + 10}|{i + 1},50|" for i in range(N)]
    rows.insert(15, "| *|   |255|120,00|")
    text = lines("Liste", "-" * 20, "|  |Mat |Menge|Wert|", "-" * 20, *rows, "|**|   |735|480,00|")
    raw = read_raw(write(text.encode(), "t.txt"))
    assert columns_of(raw)["Menge"] == [float(i + 10) for i in range(N)]
    assert columns_of(raw)["Wert"] == [i + 1.5 for i in range(N)]


@pytest.mark.parametrize("word", ["Gesamttotal", "Generaltotal", "Grand Total", "Zwischensumme"])
def test_words_for_sums(write, word):
    rows = [f"Filiale {i % 3};{i + 10};{i}.5" for i in range(N)]
    text = lines("Filiale;Kst;Betrag", *rows, f"{word};;450.0")
    assert columns_of(read_raw(write(text.encode(), "t.csv")))["Betrag"] == [
        i + 0.5 for i in range(N)
    ]


def test_codes_with_a_letter_are_no_numbers(write):
    cells = [f"C-{(7919 * i) % 90000 + 10000}" for i in range(N)]
    text = lines("part;a", *(f"{cell};{i}" for i, cell in enumerate(cells)))
    assert columns_of(read_raw(write(text.encode(), "t.csv")))["part"] == cells


@pytest.mark.parametrize(
    "text",
    [
        lines("ID   AGE  SIZE CITY", *(f"{i:<4} {i + 20:>4} {i}.25 Oslo" for i in range(N))),
        lines("  ID AGE SIZE CITY  ", *(f" {i}   {i + 20}  {i}.25    Oslo " for i in range(N))),
        lines('"AGE" "SIZE" "CITY"', *(f'"r{i}" {i + 20} {i}.25 "New York"' for i in range(N))),
    ],
    ids=["columns", "ragged", "R"],
)
def test_cells_separated_by_spaces(write, text):
    found = columns_of(read_raw(write(text.encode(), "t.txt")))
    assert found["AGE"] == [i + 20.0 for i in range(N)]
    assert found["SIZE"] == [i + 0.25 for i in range(N)]
    assert set(found["CITY"]) in ({"Oslo"}, {"New York"})


def test_one_column_of_numbers_with_spaces_stays_one(write):
    single = lines("Betrag", *(f"1 {200 + i}" for i in range(N)))
    found = columns_of(read_raw(write(single.encode(), "t.txt")))
    assert found == {"Betrag": [1200.0 + i for i in range(N)]}


def test_a_list_of_objects_inside_an_object(write):
    rows = [{"id": f"u{i}", "at": {"size": i, "where": {"x": i / 2}}} for i in range(N)]
    content = json.dumps({"meta": {"page": 1}, "data": rows, "links": []})
    raw = read_raw(write(content.encode(), "t.json"))
    assert raw.columns == ("id", "at.size", "at.where.x")
    assert columns_of(raw)["at.where.x"] == [i / 2 for i in range(N)]
    assert [note.code for note in raw.notes] == ["tables.keys"]


@pytest.mark.parametrize(
    ("encoding", "name"), [("cp932", "体重"), ("gb18030", "数量"), ("cp1250", "płeć")]
)
def test_the_encoding_that_was_asked_for(write, encoding, name):
    path = write(lines(f"{name},b", "1,2", "3,4").encode(encoding), "t.csv")
    assert read_raw(path).columns != (name, "b")
    assert read_raw(path, asked=Asked(encoding=encoding)).columns == (name, "b")
    with pytest.raises(TableError, match=r"t\.csv cannot be read: .* Give the encoding"):
        read_raw(path, asked=Asked(encoding="ascii"))


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        ([f"2024/{i % 12 + 1:02d}/{i % 28 + 1}" for i in range(N)], "year-month-day"),
        ([f"{i % 28 + 1:02d}.05.24 08:{i:02d}" for i in range(N)], "day.month.year"),
        ([f"{1_700_000_000_000 + 61_234 * i}" for i in range(N)], "Unix milliseconds"),
    ],
)
def test_dates_in_other_forms(write, cells, form):
    text = lines("Zeitpunkt,a", *(f"{cell},{i}" for i, cell in enumerate(cells)))
    found = guess(read_raw(write(text.encode(), "t.csv")), 0)
    assert (found.kind, found.form) == ("date", form)


def test_the_only_negative_value_is_named():
    sizes = np.random.default_rng(0).normal(26.0, 4.0, 200).round(1)
    sizes[:4] = -9.0
    [found] = likely_codes(sizes)
    assert (found.value, found.n_cells, found.is_clear) == (-9.0, 4, False)


def test_several_codes_of_gaps_in_one_column():
    pressure = np.random.default_rng(0).normal(120.0, 15.0, 200).round()
    pressure[:12] = [7777, 8888, 9999] * 4
    found = likely_codes(pressure)
    assert {code.value for code in found} == {7777.0, 8888.0, 9999.0}
    assert all(code.is_clear and code.n_cells == 4 for code in found)
