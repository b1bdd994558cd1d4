"""Tables of companies on which a new user once got a refusal or a wrong answer."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gammagmm import GammaGMM
from gammagmm.cli.columns import columns_text
from gammagmm.cli.options import Reading
from gammagmm.cli.request import choices_of, read_rows, read_table
from gammagmm.cli.said import MAX_LINES, said_lines
from gammagmm.cli.sheet import read_answers
from gammagmm.errors import TableError
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.rows import open_rows
from gammagmm.table.gap_codes import likely_codes
from tests.support.workbooks import xlsx

N = 400


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def rows_of(path, **reading):
    return read_rows(Reading(paths=[str(path)], **reading))


def rows_in_python(X, **parameters):
    """The rows of a frame, as `GammaGMM.fit` prepares them."""
    model = GammaGMM(["KNN", "LOF"], **parameters)
    return open_rows(X, model, check_parameters(model.get_params(deep=False)))


def codes_of(table):
    return [(note.code, note.subject) for note in table.notes]


def written(path, header, *columns):
    lines = [header, *(";".join(map(str, row)) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_case_1_headings_above_the_names(rng, tmp_path):
    numbers = rng.normal(100.0, 9.0, size=(N, 4)).round(2)
    regions = rng.choice(["North", "South"], N).tolist()
    body = [[region, *row] for region, row in zip(regions, numbers.tolist(), strict=True)]
    heads = ["", "Sales", None, "Cost", None]
    path = tmp_path / "two_headers.xlsx"
    path.write_bytes(xlsx({"S": [heads, ["Region", "Q1", "Q2", "Q3", "Q4"], *body]}))
    table = rows_of(path)
    assert table.columns[-4:] == ("Q1", "Q2", "Q3", "Q4")
    np.testing.assert_array_equal(table.values[:, -4:], numbers)
    [note] = [note for note in table.notes if note.code == "tables.rows"]
    assert (note.fields["kind"], note.fields["n_rows"]) == ("headings", 1)
    # The same names in two groups are told apart by the headings.
    path.write_bytes(xlsx({"S": [heads, ["Region", "Q1", "Q2", "Q1", "Q2"], *body]}))
    assert rows_of(path).columns[-4:] == ("Sales Q1", "Sales Q2", "Cost Q1", "Cost Q2")


def test_case_2_points_between_thousands(rng, tmp_path):
    numbers = rng.integers(200, 9_000, N)
    cells = [f"{number:,}".replace(",", ".") for number in numbers]
    path = written(tmp_path / "t.csv", "revenue;count", cells, rng.integers(10, 90, N))
    table = rows_of(path)
    np.testing.assert_array_equal(table.values[:, 0], numbers)
    assert ("tables.assumed", "revenue") in codes_of(table)
    found = rows_of(path, decimal=".").values[:, 0]  # where the user knows better
    np.testing.assert_allclose(found, [float(cell) for cell in cells])


@pytest.mark.parametrize(
    ("cells", "decimal", "expected"),
    [
        (["1.232", "2.5"], None, [1.232, 2.5]),
        (["1.232", "4.500"], None, [1.232, 4.5]),
        (["1.232", "4.500"], ",", [1232.0, 4500.0]),
        (["1.232", "1232"], None, [1.232, 1232.0]),
        (["1.232", "0"], None, [1.232, 0.0]),
        (["1.232", "900", "12"], None, [1232.0, 900.0, 12.0]),
        (["1,232", "900", "12"], None, [1232.0, 900.0, 12.0]),
        (["1,232", "900", "12"], ",", [1.232, 900.0, 12.0]),
        (["1,232", "4,500"], ".", [1232.0, 4500.0]),
    ],
)
def test_case_2_the_decimal_mark(cells, decimal, expected, tmp_path):
    path = written(tmp_path / "t.csv", "a;b", cells, ["x"] * len(cells))
    assert read_table(Reading(paths=[str(path)], decimal=decimal)).data[0].tolist() == expected


def test_case_3_a_value_that_marks_gaps(rng, tmp_path):
    temperature = rng.normal(20.0, 3.0, N).round(1)
    temperature[::16] = -999.0
    path = written(tmp_path / "t.csv", "temperature;b", temperature, rng.normal(size=N))
    table = rows_of(path, missing_codes="none")
    assert table.values[:, 0].min() == -999.0
    [note] = [note for note in table.notes if note.code == "tables.likely code"]
    assert (note.fields["value"], note.fields["n_cells"]) == ("-999", 25)
    [note] = [note for note in rows_of(path).notes if note.code == "tables.clear code"]
    assert (note.fields["value"], note.fields["n_cells"]) == ("-999", 25)
    for codes in (None, "-999", "auto"):
        filled = rows_of(path, missing_codes=codes)
        assert len(filled) == N  # the rows are judged all the same
        assert set(filled.values[::16, 0]) == {np.median(temperature[temperature > -999.0])}
        assert "tables.likely code" not in dict(codes_of(filled))
    new = filled.preparation.apply(read_table(Reading(paths=[str(path)])))
    np.testing.assert_array_equal(new.values, filled.values)
    frame = pd.DataFrame({"t": temperature, "b": rng.normal(size=N)})
    for columns in (None, {"missing_codes": [-999]}):
        assert rows_in_python(frame, columns=columns).values[:, 0].min() > 0.0
    assert rows_in_python(frame, columns={"missing_codes": []}).values[:, 0].min() == -999.0


@pytest.mark.parametrize(
    ("value", "others", "is_clear"),
    [
        (-999.0, (0.0, 40.0), True),
        (-999.0, (0.0, 4000.0), True),
        (-999.0, (-20.0, 40.0), True),
        (-999.0, (-2000.0, 40.0), None),
        (9999.0, (0.0, 40.0), True),
        (9999.0, (0.0, 4900.0), True),
        (9999.0, (0.0, 6000.0), None),
        (999.0, (0.0, 40.0), False),  # a price
        (-1.0, (100.0, 101.0), False),
        (-1.0, (0.0, 40.0), None),
    ],
)
def test_which_values_mark_gaps(value, others, is_clear, rng):
    values = np.concatenate([rng.uniform(*others, N), others, [value] * 3])
    found = likely_codes(rng.permutation(values))
    assert [(code.value, code.n_cells, code.is_clear) for code in found] == (
        [] if is_clear is None else [(value, 3, is_clear)]
    )
    assert likely_codes(values[:-1]) == ()


def test_case_4_blank_remarks_are_not_filled_with_a_remark(rng, tmp_path):
    remarks = np.where(rng.random(N) < 0.7, "", "eilig, bitte prüfen")
    path = written(tmp_path / "t.csv", "a;remark", rng.normal(size=N), remarks)
    table = rows_of(path)
    assert len(table.columns) == 2
    is_blank = table.values[:, 1] if "(missing)" in table.columns[1] else 1.0 - table.values[:, 1]
    np.testing.assert_array_equal(is_blank, remarks == "")


def test_case_5_sums_and_a_source_are_no_rows(rng, tmp_path):
    amounts = rng.normal(100.0, 9.0, N).round(2)
    rows = [["Shop", "Day", "Amount", "Pieces"]]
    for i, amount in enumerate(amounts.tolist()):
        rows.append([f"Shop {i // 100}", datetime.date(2025, 1, 1 + i % 28), amount, i % 9])
        if i % 100 == 99:
            rows.append(
                [f"Subtotal Shop {i // 100}", None, float(amounts[i - 99 : i + 1].sum()), 9]
            )
    rows += [["Total", None, float(amounts.sum()), 36], [], ["Source: SAP, 3 January 2025"]]
    path = tmp_path / "totals.xlsx"
    path.write_bytes(xlsx({"S": rows}))
    table = rows_of(path)
    np.testing.assert_array_equal(table.values[:, table.columns.index("Amount")], amounts)
    kinds = {
        note.fields["kind"]: note.fields["n_rows"] for note in table.notes if "lines" in note.fields
    }
    assert kinds == {"total": 5, "remark": 1}
    raw = read_table(Reading(paths=[str(path)], strict=True))
    assert raw.n_rows == N + 6


def test_case_6_codes_are_no_quantities(rng, tmp_path):
    days = [datetime.date(2025, 1, 3) + datetime.timedelta(int(d)) for d in rng.integers(0, 300, N)]
    columns = {
        "PLZ": [f"{number:05d}" for number in rng.integers(1_067, 99_000, N)],
        "ZIP": rng.integers(10_000, 99_000, N),
        "Kreditor": rng.integers(70_000, 70_090, N),
        "Datum": [f"{day:%Y%m%d}" for day in days],
        "Wann": [(day - datetime.date(1899, 12, 30)).days for day in days],
        "Baujahr": rng.integers(1950, 2020, N),
        "Status": rng.choice([200, 404, 500], N),
        "customer_id": rng.integers(1, 90, N),
        "Betrag": rng.normal(100.0, 9.0, N).round(2),
        "Lohn": rng.integers(40_000, 52_000, N),
        "Anzahl": rng.integers(100, 999, N),
    }
    path = written(tmp_path / "codes.csv", ";".join(columns), *columns.values())
    table = rows_of(path)
    numbers = [own.name for own in table.preparation.encoder.numbers]
    assert numbers == ["Betrag", "Lohn", "Anzahl"]
    assert [own.name for own in table.preparation.encoder.texts] == ["Status"]
    frame = pd.DataFrame(columns).drop(columns=["PLZ", "Datum"])
    with pytest.warns(UserWarning, match="'customer_id'"):
        found = rows_in_python(frame)
    assert [own.name for own in found.preparation.encoder.numbers] == numbers
    raw = read_table(Reading(paths=[str(path)]))
    assert raw.cells(0) == columns["PLZ"]


def test_case_6_dates_in_numbers_can_be_encoded(tmp_path):
    days = [f"202501{day:02}" for day in range(1, 29)]
    path = written(tmp_path / "t.csv", "Datum;x", days, np.sqrt(np.arange(28.0)))
    table = rows_of(path, dates="encode")
    np.testing.assert_array_equal(
        table.values[:, table.columns.index("Datum days")], np.arange(28.0)
    )


def test_case_7_notes_fit_on_one_screen(rng, tmp_path):
    columns = {
        f"sum {j}": [f"{v:.2f}".replace(".", ",") for v in rng.normal(9, 1, N)] for j in range(22)
    }
    columns |= {f"gap {j}": np.where(rng.random(N) < 0.2, "", "1.5") for j in range(3)}
    columns |= {f"text {j}": [f"t{i}" for i in rng.integers(0, 99, N)] for j in range(19)}
    path = written(tmp_path / "t.csv", ";".join(columns), *columns.values())
    table = rows_of(path)
    assert len(table.notes) > 40
    assert len(said_lines(table.notes)) <= MAX_LINES
    text = columns_text(read_table(Reading(paths=[str(path)])), choices_of(Reading()))
    assert len(text.splitlines()) <= len(columns) + 20


def test_case_7_words_among_numbers(rng, tmp_path):
    weights = rng.normal(50.0, 9.0, 800).round(1)
    cells = [str(weight) for weight in weights]
    for i in range(10):
        cells[40 * i] = f"approx {weights[40 * i]}"
    cells[7], cells[8], cells[9] = "see note", f"{weights[8]} kg", "10 - 12"
    path = written(tmp_path / "t.csv", "weight;b", cells, rng.normal(size=800))
    raw = read_table(Reading(paths=[str(path)]))
    expected = weights.copy()
    expected[[7, 9]] = np.nan
    np.testing.assert_array_equal(raw.data[0], expected)
    [note] = [note for note in raw.notes if note.code == "tables.words"]
    assert (note.fields["n_numbers"], note.fields["n_gaps"]) == (11, 2)
    with pytest.raises(TableError) as caught:
        rows_of(path, strict=True)
    assert [(own.column, own.code) for own in caught.value.problems] == [("weight", "text")]


def test_case_8_an_id_names_the_rows(rng, tmp_path):
    ids = [f"K{number:05d}" for number in rng.permutation(N)]
    path = written(tmp_path / "t.csv", "kunde;a;b", ids, *rng.normal(size=(2, N)))
    table = rows_of(path)
    assert table.row_names == tuple(ids)
    assert table.preparation.apply(read_table(Reading(paths=[str(path)]))).ids == tuple(ids)
    frame = pd.DataFrame({"kunde": ids, "a": rng.normal(size=N), "b": rng.normal(size=N)})
    with pytest.warns(UserWarning, match="'kunde'"):
        assert rows_in_python(frame).row_names == tuple(ids)
    named = frame.set_axis([f"r{i}" for i in range(N)])
    with pytest.warns(UserWarning, match="'kunde'"):
        assert rows_in_python(named).row_names[0] == "r0"


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "json", "jsonl"])
@pytest.mark.parametrize(
    ("yes", "no"), [("ja", "nein"), ("oui", "non"), ("sí", "no"), ("tak", "nie"), ("да", "нет")]
)
def test_case_8_sheets_in_every_format_and_language(yes, no, suffix, rng, tmp_path):
    table = rows_of(written(tmp_path / "t.csv", "a;b", *rng.normal(size=(2, N))))
    sheet = pd.DataFrame({"row": [3, 1, 7], "anomaly": [yes, no, None]})
    path = tmp_path / f"sheet.{suffix}"
    if suffix == "csv":
        sheet.to_csv(path, index=False)
    elif suffix == "xlsx":
        cells = [["row", "anomaly"], [3, yes], [1, no], [7, None]]
        path.write_bytes(xlsx({"S": cells}))
    elif suffix == "parquet":
        sheet.to_parquet(path)
    else:
        records = sheet.to_dict("records")
        lines = [json.dumps(r) for r in records]
        path.write_text("\n".join(lines) if suffix == "jsonl" else f"[{','.join(lines)}]")
    answers = read_answers(path, table)
    assert (answers.rows, answers.answers) == ((2, 0, 6), (1, 0, None))


def test_case_9_principal_components_bear_the_encoded_texts(rng):
    kinds = rng.integers(0, 4, N)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame["code"] = [f"c{kind}" for kind in kinds]
    frame["name"] = np.array(["north", "south", "east", "west"])[kinds]
    frame["side"] = rng.choice(["left", "right"], N)
    model = GammaGMM("fast", n_runs=2, random_state=0, max_restarts=200).fit(frame)
    assert "PCA" in model.fit_.detector_names
    assert 0.0 < model.fit_.thresholds["PCA"] < 1e6


@pytest.mark.parametrize("kind", ["pandas", "pandas, zones", "polars", "pyarrow"])
def test_case_9_dates_of_frames_are_those_of_files(kind, rng, tmp_path):
    days = [datetime.datetime(2025, 1, 1 + i % 28, 6 * (i % 4)) for i in range(N)]
    numbers = rng.normal(size=N)
    frame = pd.DataFrame({"when": days, "x": numbers})
    if kind == "pandas, zones":
        frame["when"] = pd.to_datetime(frame["when"]).dt.tz_localize("UTC")
    table = {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}.get(kind, lambda X: X)(
        frame
    )
    found = rows_in_python(table, columns={"dates": "encode"})
    cells = [day.isoformat(sep=" ") for day in days]
    read = rows_of(written(tmp_path / "t.csv", "when;x", cells, numbers), dates="encode")
    np.testing.assert_array_equal(found.values, read.values)
