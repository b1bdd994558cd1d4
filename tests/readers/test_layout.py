"""Lines that are neither names nor data are found, and lines of data are kept."""

from __future__ import annotations

import re
from time import process_time

import numpy as np
import pytest

from gammagmm.errors import TableError
from gammagmm.readers.csv import read_delimited
from gammagmm.readers.source import Asked, Source

N = 60
RNG = np.random.default_rng(0)
V, W = RNG.normal(50.0, 5.0, N).round(2).tolist(), RNG.normal(1000.0, 90.0, N).round(1).tolist()
SHOPS = RNG.choice(["North", "South", "East"], N).tolist()
DAYS = [f"{1 + i % 28}.1.2025" for i in range(N)]


def read(text, **asked):
    return read_delimited(Source("t.csv", ".csv", text.encode(), asked=Asked(**asked)))


def kinds(raw):
    """How many rows of each kind were left out."""
    found = [note.fields for note in raw.notes if note.code == "tables.rows"]
    return {fields["kind"]: fields["n_rows"] for fields in found}


def lines(*columns, mark=","):
    return "".join(f"{mark.join(map(str, row))}\n" for row in zip(*columns, strict=True))


PLAIN = lines(V, W, SHOPS)
FACTS = "Device;TH-200\nSerial;12345\nStart;2025-01-05 10:00\n\n"
SAMPLES = [f"S{i:03}" for i in range(N)]
BLOCK = lines(DAYS[:20], V[:20], W[:20], mark=";")
FILES = {
    "facts": (FACTS + "Day;a;b\n;°C;%\n" + lines(DAYS, V, W, mark=";"), {"title": 3, "units": 1}),
    "years as names": (
        "Sales report\nRegion,2022,2023\n" + lines(SAMPLES, V, W) + "Total,9,9\n",
        {"title": 1, "total": 1},
    ),
    "source": ("name,value\n" + lines(SAMPLES, V) + "\nSource: SAP export\n", {"remark": 1}),
    "brand": ("brand,price,shop\n" + lines(["Total", "Shell", "Esso"] * 20, V, SHOPS), {}),
    "units in brackets": (
        "Sample;pH;Salt\n[-];[-];[mg/l]\n" + lines(SAMPLES, ["n.b.", *V[1:]], W, mark=";"),
        {"units": 1},
    ),
    "groups": ("Sales,Sales,Cost,Cost\nQ1,Q2,Q1,Q2\n" + lines(V, W, V, W), {"headings": 1}),
    "blocks": (
        f"Branch A;;\nDay;a;b\n{BLOCK}Summe;9,9;99\n\n"
        f"Branch B;;\nDay;a;b\n{BLOCK}{BLOCK}Gesamt;2;2\n",
        {"title": 1, "total": 2, "remark": 1, "names again": 1},
    ),
    "delimiters at the ends": ("a;b;c\n" + lines(V, W, SHOPS, [""] * N, mark=";"), {}),
    "another table": (
        "a,b,shop\n" + PLAIN + "\nshop,sum,\nNorth,12,\nSouth,13,\n",
        {"other table": 3},
    ),
    "figures": ("day,a,b\n" + lines(DAYS, V, W) + "Average,50,1000\nMax,70,1300\n", {"total": 2}),
    "sums without a label": ("day,shop,a\n" + lines(DAYS, SHOPS, V) + ",,3000\n", {"total": 1}),
    "headings beside a name": (
        "Sample,2023,,2024,\n,a,b,a,b\n" + lines(SAMPLES, V, W, V, W),
        {"headings": 1},
    ),
    "years alone as names": ("2023,2024\n" + lines(V, W), {}),
    "dashes": ("a|b\n---|---\n" + lines(V, W, mark="|") + "---|---\n", {"remark": 2}),
    "plain": ("a,b,shop\n" + PLAIN, {}),
    "texts alone": ("q1;q2\n" + lines(SHOPS, SHOPS, mark=";"), {}),
    "many gaps": ("a,b,c\n" + lines(["", "", *V[2:]], ["", "1"] * 30, W), {}),
    "several lines in a cell": (
        '"a","b"\n' + lines(V[:30], ['"x\n\ny"'] * 30) + lines(V[30:], SHOPS[30:]),
        {},
    ),
}


def blocks(label, names=("North", "South", "East"), n=20):
    """Rows of shops in blocks, each with its sum, and the sum of all."""
    text = "shop,item,amount\n"
    for k, name in enumerate(names):
        own = V[n * k : n * (k + 1)]
        rows = [f"{name},K{n * k + i},{v}\n" for i, v in enumerate(own)]
        text += "".join(rows) + f"{label.format(name)},,{sum(own):.2f}\n"
    return text + f"Grand Total,,{sum(V):.2f}\n"


SUBTOTALS = ("{} Total", "{} Subtotal", "{} - Subtotal", "Total {}", "{}-Ergebnis", "Totaal {}")
SUM, MEAN = round(sum(V), 2), round(float(np.mean(V)), 2)
FIGURES = f"Mean,,{MEAN}\nMin,,{min(V)}\nMax,,{max(V)}\nRange of them,,35\nStd.,,{np.std(V):.2f}\n"
SUMMARIES = {
    **{label: (blocks(label), {"total": 4}) for label in SUBTOTALS},
    "complete rows of a brand": (
        "day,brand,amount\n" + lines(DAYS, ["TOTAL", "ARAL", "ESSO"] * 20, V),
        {},
    ),
    "tests": ("test,amount\n" + lines(["Total Protein", "ALT"] * 30, V), {}),
    "products": ("amount,name,n\n" + lines(V, ["Sum Plus", "Basic"] * 30, [1, ""] * 30), {}),
    "one brand and a sum": (
        "brand,amount\n" + lines(["Total", "Shell"] * 30, V) + f"Total,{SUM}\n",
        {"total": 1},
    ),
    "figures": ("item,kind,amount\n" + lines(SAMPLES, SHOPS, V) + FIGURES, {"total": 5}),
    "figures without known words": (
        "item,kind,amount\n"
        + lines(SAMPLES, SHOPS, V)
        + f"Keskiarvo,,{MEAN}\nPienin,,{min(V)}\nSuurin,,{max(V)}\n",
        {"total": 3},
    ),
    "balances": (
        "day,text,amount\n,Saldo anterior,250.00\n"
        + lines(DAYS, SHOPS, V)
        + ",Saldo final,9000.00\n",
        {"total": 2},
    ),
    "carries": (
        "day,shop,amount\n"
        + lines(DAYS[:30], SHOPS[:30], V[:30])
        + f"Übertrag,,{sum(V[:30]):.2f}\nPage 1 of 2,,\nday,shop,amount\n"
        + f"Übertrag,,{sum(V[:30]):.2f}\n"
        + lines(DAYS[30:], SHOPS[30:], V[30:]),
        {"total": 2, "remark": 1, "names again": 1},
    ),
    "a row of words behind a blank line": (
        "item,amount,n\n"
        + lines(SAMPLES[:30], V[:30], W[:30])
        + "\nS030,sold out,on request\n"
        + lines(SAMPLES[31:], V[31:], W[31:]),
        {},
    ),
    "a first row without a number": (
        "item,remark,n\nR0,text,\n" + lines([f"R{i}" for i in range(1, N)], SHOPS[1:], V[1:]),
        {},
    ),
    "a last record that is short": (
        "a|b|c\n" + lines(V, W, V, mark="|") + "END|000060\n",
        {"remark": 1},
    ),
}
FILES |= SUMMARIES


@pytest.mark.parametrize("name", FILES)
def test_lines_that_are_no_data(name):
    text, expected = FILES[name]
    raw = read(text)
    assert kinds(raw) == expected
    assert raw.n_rows == N
    content = text.split("\n")
    if name != "several lines in a cell":
        first = [re.split("[;,|]", content[line - 1])[0] for line in raw.lines]
        assert [cell or "" for cell in raw.cells(0)] == first


def test_names_of_groups_tell_equal_names_apart():
    assert read(FILES["groups"][0]).columns == ("Sales Q1", "Sales Q2", "Cost Q1", "Cost Q2")


def test_a_text_without_names_keeps_its_first_row():
    raw = read(PLAIN)
    assert (raw.columns, raw.n_rows, raw.lines[0]) == (("x1", "x2", "x3"), N, 1)
    np.testing.assert_array_equal(raw.data[0], V)


def test_what_the_user_says_of_lines():
    text = "about\nold,names\na,b\n" + lines(V, W)
    assert read(text, header=3).columns == ("a", "b")
    assert read(text, header=3, skip=(4, 5)).n_rows == N - 2
    with pytest.raises(TableError):
        read(text, header=999)
    text = FILES["blocks"][0]
    with pytest.raises(TableError):
        read(text.replace(";;", ""), is_strict=True)


def test_a_name_that_occurs_twice_gets_a_number():
    raw = read("a,a,a 2\n" + lines(V, W, V))
    assert raw.columns == ("a", "a 3", "a 2")
    with pytest.raises(TableError):
        read("a,a\n" + lines(V, W), is_strict=True)


def test_only_the_ends_of_a_large_text_are_looked_at():
    body = lines(V, W) * 3_000
    raw = read(f"Report\n\na,b\n{body}Total,5,\n\nSource: SAP\n")
    assert kinds(raw) == {"title": 1, "remark": 1, "total": 1}
    assert raw.n_rows == 3_000 * N
    assert raw.lines[-1] == 3 + 3_000 * N


def test_three_levels_of_headings():
    text = "Oven,,,,Press,,,\nT,,p,,T,,p,\nmin,max,min,max,min,max,min,max\n" + lines(*[V, W] * 4)
    assert read(text).columns[:5] == (
        "Oven T min",
        "Oven T max",
        "Oven p min",
        "Oven p max",
        "Press T min",
    )


@pytest.mark.parametrize("words", [("mean", "max", "min", "count"), ("TOTAL", "Esso", "Shell")])
def test_a_long_column_of_words_of_figures_is_read_in_proportional_time(words):
    values = RNG.random(20_000).round(3)
    kind = RNG.choice(words, len(values))
    text = "sensor,kind,a,b\n" + lines(RNG.choice(SAMPLES[:9], len(values)), kind, values, values)
    began = process_time()
    raw = read(text)
    assert process_time() - began < 10.0
    assert (kinds(raw), raw.n_rows) == ({}, len(values))


SHORT = "a|b|c\n" + lines(V, W, V, mark="|")


@pytest.mark.parametrize(("n_short", "n_end"), [(2, 0), (40, 0), (1, 1), (0, 6)])
def test_short_lines_of_values_at_the_end_are_refused(n_short, n_end):
    rows = SHORT.splitlines()
    first = len(rows) - n_short + 1
    cut = [row.rpartition("|")[0] for row in rows[first - 1 :]]
    text = "\n".join([*rows[: first - 1], *cut, *[f"END|{i}" for i in range(n_end)]])
    with pytest.raises(TableError, match=f"line {first}\\b"):
        read(text + "\n")


@pytest.mark.parametrize("end", ["1.5|2.5", "END|3", "END|3\nSUM|5\nQ|1"])
def test_one_short_line_or_a_few_of_another_kind_are_no_data(end):
    raw = read(f"{SHORT}{end}\n")
    assert (kinds(raw), raw.n_rows) == ({"remark": 1 + end.count("\n")}, N)


@pytest.mark.parametrize("label", ["Transport", "Balance", "Report", "Reports", "Solde"])
def test_a_complete_row_with_the_label_of_a_carry_is_data(label):
    body = lines(SHOPS, V, W)
    assert read(f"category,amount,n\n{body}{label},719.69,12\n").n_rows == N + 1
    carried = f"{label},{SUM:.2f},{sum(W):.1f}\n"
    assert read(f"category,amount,n\n{body}{carried}").n_rows == N


@pytest.mark.parametrize("statistic", [max, min])
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_last_row_without_a_name_may_have_an_extreme_value(statistic, is_constant):
    extreme = 5000 if is_constant else int(statistic(4095, 1000))
    values = [extreme if is_constant or i % 5 == 0 else 2000 + i for i in range(N)]
    body = lines(SHOPS, values, V)
    assert read(f"site,adc,temp\n{body},{extreme},46.06\n").n_rows == N + 1
    assert read(f"site,adc\n{lines(SHOPS, values)},{extreme}\n").n_rows == N + 1


def test_extremes_of_all_columns_without_a_name_are_no_data():
    text = "site,a,b\n" + lines(SHOPS, V, W) + f",{min(V)},{min(W)}\n,{max(V)},{max(W)}\n"
    raw = read(text)
    assert (kinds(raw), raw.n_rows) == ({"total": 2}, N)


LEGEND = [("Key", "Meaning", "Rate"), ("N", "North", "1.5"), ("S", "South", "2.5"), ("E", "", "7")]


def with_legend(first, is_left, legend=LEGEND):
    """The plain table with another one beside it, whose first row is the row `first`."""
    rows = [row.split(",") for row in ("a,b,shop\n" + PLAIN).splitlines()]
    beside = [("", "", "")] * first + legend + [("", "", "")] * (len(rows) - first - len(legend))
    pairs = zip(rows, beside, strict=True)
    made = ([*b, "", *a] if is_left else [*a, "", *b] for a, b in pairs)
    return "".join(f"{','.join(cells)}\n" for cells in made)


@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("first", [0, 1, 3, 40, N - 3])
@pytest.mark.parametrize("has_names", [False, True])
def test_a_small_table_beside_another_one_is_left_out_with_a_note(first, is_left, has_names):
    legend = LEGEND[not has_names :]
    raw = read(with_legend(first, is_left, legend))
    assert raw.columns == ("a", "b", "shop")
    assert [column.tolist() for column in raw.data] == [V, W, SHOPS]
    [note] = raw.notes
    assert (note.code, note.fields["n_columns"]) == ("tables.beside", 3)
    assert note.fields["lines"] == f"{first + 1} to {first + len(legend)}"
    assert all(word in note.fields["texts"] for word, *_ in legend[:3])


@pytest.mark.parametrize("first", [0, 2, 40])
def test_lines_without_cells_of_a_table_at_their_right_may_end_earlier(first):
    padded = with_legend(first, is_left=False)
    raw = read(re.sub(",{4}$", "", padded, flags=re.MULTILINE))
    assert (raw.columns, raw.notes) == (("a", "b", "shop"), read(padded).notes)
    assert [column.tolist() for column in raw.data] == [V, W, SHOPS]
    short = padded.splitlines()
    short[50] = "1,2"
    with pytest.raises(TableError, match="line 51"):
        read("\n".join(short))


@pytest.mark.parametrize("rows", [(5, 30), (20, 21, 22, 50), (1, 2, 3), range(15)])
def test_a_column_with_few_remarks_behind_a_blank_one_is_data(rows):
    remarks = ["late" if i in rows else "" for i in range(N)]
    raw = read("a,b,,remark\n" + lines(V, W, [""] * N, remarks))
    assert raw.columns == ("a", "b", "remark")
    assert [cell or "" for cell in raw.data[2]] == remarks


def test_columns_with_few_values_behind_a_blank_one_are_data():
    is_measured = [i % 2 == 0 and i < 28 for i in range(N)]
    ph, ppm = (["7.5" if own else "" for own in is_measured] for _ in range(2))
    raw = read("a,b,,ph,ppm\n" + lines(V, W, [""] * N, ph, ppm))
    assert (raw.columns, raw.notes) == (("a", "b", "ph", "ppm"), ())


def test_the_line_of_the_names_reads_all_columns():
    raw = read(with_legend(0, is_left=False), header=1)
    assert raw.columns == ("a", "b", "shop", "Key", "Meaning", "Rate")


SUMS = f"Total,,{sum(V)},{sum(W)}\nAverage,,{sum(V) / N},{sum(W) / N}\nMax,,{max(V)},{max(W)}\n"


@pytest.mark.parametrize(("above", "below"), [("", SUMS), ("Report,,,\nMay,,,\n", "")])
def test_labels_and_titles_before_a_blank_column_are_no_table(above, below):
    rows = "".join(f",,{v},{w}\n" for v, w in zip(V, W, strict=True))
    raw = read(f"{above},,a,b\n{rows}{below}")
    assert (raw.columns, raw.n_rows) == (("a", "b"), N)
    assert "tables.beside" not in {note.code for note in raw.notes}


def test_a_second_table_as_long_as_the_first_one_is_data():
    raw = read("a,b,,c\n" + lines(V, W, [""] * N, V))
    assert (raw.columns, raw.data[2].tolist()) == (("a", "b", "c"), V)
    few = read("a,b,,c\n" + lines(V[:12], W[:12], [""] * 12, [*V[:8], *[""] * 4]))
    assert few.columns == ("a", "b", "c")
