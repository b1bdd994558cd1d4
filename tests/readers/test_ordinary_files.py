"""Files as spreadsheets, databases and programs export them, in five locales: read value by value.

Every file is written from the same values. Columns of text keep their cells as the file has them.
"""

from __future__ import annotations

import datetime
import gzip
import io
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from gammagmm.cli.options import Reading
from gammagmm.cli.request import ColumnsError, read_rows
from gammagmm.readers.registry import read_raw
from tests.support.raw_columns import columns_of
from tests.support.workbooks import ods, xlsx, zipped

N = 12
RNG = np.random.default_rng(7)
AMOUNTS = [round(float(x), 2) for x in RNG.normal(0, 3e3, N)]
AMOUNTS[3] = None
SALES = [int(x) for x in RNG.integers(1, 3_000_000, N)]
SALES[5] = 950
SHARES = [round(float(x), 1) for x in RNG.uniform(0, 99, N)]
ACTIVE = [bool(x) for x in RNG.integers(0, 2, N)]
ACTIVE[:2] = [True, False]
NAMES = ["Müller", "Côté", "Núñez", "Größe & Söhne", "O'Hara", "x, y; z|w"] * 2
CODES = [f"{i:03}" for i in range(N)]
DAYS = [datetime.date(2024, 12, 20) + datetime.timedelta(days=i) for i in range(N)]
HEADER = ["Code", "Name", "Betrag", "Umsatz", "Anteil", "Aktiv", "Tag"]


@dataclass(frozen=True)
class Locale:
    """How a country writes numbers, booleans, dates and missing values."""

    decimal: str
    group: str
    money: str
    percent: str
    words: tuple[str, str]
    day: str
    missing: str = ""
    trailing_minus: bool = False
    parentheses: bool = False

    def number(self, value, digits=None):
        if value is None:
            return self.missing
        text = f"{abs(value):,}" if digits is None else f"{abs(value):,.{digits}f}"
        text = text.translate(str.maketrans({",": self.group, ".": self.decimal}))
        if value >= 0:
            return text
        if self.parentheses:
            return f"({text})"
        return f"{text}-" if self.trailing_minus else f"-{text}"

    def row(self, i):
        amount = AMOUNTS[i]
        return [
            CODES[i],
            NAMES[i],
            self.missing if amount is None else self.money.format(self.number(amount, 2)),
            self.number(SALES[i]),
            self.percent.format(self.number(SHARES[i], 1)),
            self.words[not ACTIVE[i]],
            DAYS[i].strftime(self.day),
        ]


GERMAN = Locale(",", ".", "{} €", "{} %", ("WAHR", "FALSCH"), "%d.%m.%Y", "-")
FRENCH = Locale(",", "\u202f", "{}\u00a0€", "{}\u00a0%", ("VRAI", "FAUX"), "%d/%m/%Y", "#N/A")
AMERICAN = Locale(".", ",", "${}", "{}%", ("TRUE", "FALSE"), "%m/%d/%Y", "N/A")
SWISS = Locale(".", "\u2019", "CHF {}", "{}%", ("WAHR", "FALSCH"), "%d.%m.%Y", "–")
BRAZILIAN = Locale(",", ".", "R$ {}", "{}%", ("VERDADEIRO", "FALSO"), "%d/%m/%Y", "(vazio)")
PLAIN = Locale(".", "", "{}", "{}", ("True", "False"), "%Y-%m-%d")
SAP = Locale(",", ".", "{}", "{}", ("WAHR", "FALSCH"), "%d.%m.%Y", trailing_minus=True)
BANK = Locale(".", ",", "{}", "{}", ("t", "f"), "%Y-%m-%d", "", parentheses=True)
MYSQL = Locale(".", "", "{}", "{}", ("1", "0"), "%Y-%m-%d", "\\N")
POSTGRES = Locale(".", "", "{}", "{}", ("t", "f"), "%Y-%m-%d")
STATA = Locale(".", "", "{}", "{}", ("1", "0"), "%Y-%m-%d", ".")


def delimited(locale, delimiter, *, newline="\r\n", quote="needed", header=True, end=""):
    """Text of the table as a program writes it."""

    def cell(text):
        is_needed = any(sign in text for sign in (delimiter, '"', "\n"))
        return f'"{text}"' if quote == "all" or is_needed else text

    rows = ([HEADER] if header else []) + [locale.row(i) for i in range(N)]
    return "".join(delimiter.join(map(cell, row)) + end + newline for row in rows)


def frame():
    return pd.DataFrame(
        {
            "Code": CODES,
            "Name": NAMES,
            "Betrag": AMOUNTS,
            "Umsatz": SALES,
            "Anteil": SHARES,
            "Aktiv": ACTIVE,
            "Tag": pd.to_datetime(pd.Series(DAYS)),
        }
    )


def r_table(delimiter, shifted):
    """What R's write.csv and write.table write: row names without a header cell, NA, TRUE."""
    names = [f'"{name}"' for name in HEADER]
    lines = [delimiter.join(names if shifted else ['""', *names])]
    for i in range(N):
        amount = "NA" if AMOUNTS[i] is None else repr(AMOUNTS[i])
        texts = [f'"{i + 1}"', f'"{CODES[i]}"', f'"{NAMES[i]}"', amount, str(SALES[i])]
        texts += [repr(SHARES[i]), str(ACTIVE[i]).upper(), DAYS[i].isoformat()]
        lines.append(delimiter.join(texts))
    return ("\n".join(lines) + "\n").encode()


def sheet(title=False):
    rows = [[*HEADER]]
    rows += [
        list(row) for row in zip(CODES, NAMES, AMOUNTS, SALES, SHARES, ACTIVE, DAYS, strict=True)
    ]
    return [["Umsätze 2024"], [], *rows] if title else rows


def text_sheet():
    """A sheet in which somebody pasted German text."""
    return [HEADER, *(GERMAN.row(i) for i in range(N))]


def database(n_tables=1):
    columns = "Code TEXT, Name TEXT, Betrag REAL, Umsatz INTEGER, Anteil REAL, Aktiv BOOL, Tag DATE"
    days = [day.isoformat() for day in DAYS]
    with closing(sqlite3.connect(":memory:")) as connection:
        for name in ["sales", "other"][:n_tables]:
            connection.execute(f"CREATE TABLE {name} ({columns})")
            rows = zip(CODES, NAMES, AMOUNTS, SALES, SHARES, ACTIVE, days, strict=True)
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
        return connection.serialize()


def records():
    rows = zip(CODES, NAMES, AMOUNTS, SALES, SHARES, ACTIVE, DAYS, strict=True)
    return [dict(zip(HEADER, [*row[:-1], row[-1].isoformat()], strict=True)) for row in rows]


def arrow_bytes(write):
    table = pa.table(
        dict(zip(HEADER, [CODES, NAMES, AMOUNTS, SALES, SHARES, ACTIVE, DAYS], strict=True))
    )
    file = io.BytesIO()
    write(table, file)
    return file.getvalue()


def pandas_csv(**options):
    return frame().to_csv(**options).encode()


FILES = {
    # Excel
    "excel-de.csv": (delimited(GERMAN, ";").encode("cp1252"), GERMAN),
    "excel-de-sep.csv": (("sep=;\r\n" + delimited(GERMAN, ";")).encode("cp1252"), GERMAN),
    "excel-de-utf8.csv": (delimited(GERMAN, ";").encode("utf-8-sig"), GERMAN),
    "excel-fr.csv": (
        delimited(FRENCH, ";").replace("\u202f", "\u00a0").encode("cp1252"),
        FRENCH,
    ),
    "excel-fr-utf8.csv": (delimited(FRENCH, ";").encode("utf-8-sig"), FRENCH),
    "excel-us.csv": (delimited(AMERICAN, ",").encode("cp1252"), AMERICAN),
    "excel-us-utf8.csv": (delimited(AMERICAN, ",").encode("utf-8-sig"), AMERICAN),
    "excel-ch.csv": (delimited(SWISS, ";").encode("cp1252"), SWISS),
    "excel-br.csv": (delimited(BRAZILIAN, ";").encode("cp1252"), BRAZILIAN),
    "unicode-text-de.txt": (delimited(GERMAN, "\t").encode("utf-16"), GERMAN),
    "unicode-text-fr.txt": (
        b"\xfe\xff" + delimited(FRENCH, "\t").encode("utf-16-be"),
        FRENCH,
    ),
    "excel.xlsx": (xlsx({"Tabelle1": sheet(), "Tabelle2": []}), None),
    "excel-title.xlsx": (xlsx({"Tabelle1": sheet(title=True)}), None),
    "excel-pasted.xlsx": (xlsx({"Tabelle1": text_sheet()}), GERMAN),
    # LibreOffice
    "calc.ods": (ods({"Tabelle1": sheet()}), None),
    "calc-quoted.csv": (delimited(GERMAN, ",", quote="all", newline="\n").encode(), GERMAN),
    "calc.tsv": (delimited(BRAZILIAN, "\t", newline="\n").encode(), BRAZILIAN),
    # Databases
    "mysql.txt": (delimited(MYSQL, "\t", newline="\n").encode(), MYSQL),
    "postgres.csv": (delimited(POSTGRES, ",", newline="\n").encode(), POSTGRES),
    "pipes.txt": (delimited(PLAIN, "|", newline="\n").encode(), PLAIN),
    "app.sqlite": (database(), None),
    "two.db": (database(2), None),
    # Business software and banks
    "sap.txt": (delimited(SAP, "\t").encode("cp1252"), SAP),
    "sap-end.csv": (delimited(SAP, ";", end=";").encode("latin-1"), SAP),
    "bank.csv": (delimited(BANK, ",", quote="all").encode(), BANK),
    # pandas, R, Stata
    "pandas.csv": (pandas_csv(index=False), None),
    "pandas-index.csv": (pandas_csv(), None),
    "pandas-de.csv": (pandas_csv(index=False, sep=";", decimal=","), None),
    "pandas.csv.gz": (gzip.compress(pandas_csv(index=False), mtime=0), None),
    "pandas.json": (frame().to_json(date_format="iso").encode(), None),
    "records.json": (json.dumps(records(), indent=1, ensure_ascii=False).encode(), None),
    "lines.jsonl": ("\n".join(map(json.dumps, records())).encode(), None),
    "r.csv": (r_table(",", shifted=False), None),
    "r.txt": (r_table("\t", shifted=True), None),
    "stata.csv": (delimited(STATA, ",", newline="\n").encode(), STATA),
    "excel-de.zip": (zipped({"Export 2024.csv": delimited(GERMAN, ";").encode("cp1252")}), GERMAN),
    "arrow.parquet": (arrow_bytes(pyarrow.parquet.write_table), None),
    "arrow.feather": (arrow_bytes(pyarrow.feather.write_feather), None),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for name, (content, _) in FILES.items():
        (path / name).write_bytes(content)
    return path


def expected_columns(name, locale):
    day = "%Y-%m-%d" if locale is None else locale.day
    days = [moment.strftime(day) for moment in DAYS]
    if name == "pandas.json":  # pandas writes milliseconds
        days = [f"{moment.isoformat()}T00:00:00.000" for moment in DAYS]
    return {
        "Code": CODES,
        "Name": NAMES,
        "Betrag": AMOUNTS,
        "Umsatz": [float(value) for value in SALES],
        "Anteil": SHARES,
        "Aktiv": [float(value) for value in ACTIVE],
        "Tag": days,
    }


@pytest.mark.parametrize("name", FILES)
def test_every_value_is_read_right(folder, name):
    raw = read_raw(folder / name)  # of two tables, the largest one
    found = columns_of(raw)
    if raw.columns[0] == "index":
        assert found.pop("index") in ([float(i) for i in range(N)], [i + 1.0 for i in range(N)])
    assert found == expected_columns(name, FILES[name][1])
    assert raw.cells(raw.columns.index("Code")) == CODES  # without losing a zero
    told = {note.subject for note in raw.notes}
    if FILES[name][1] in (GERMAN, FRENCH, AMERICAN, SWISS, BRAZILIAN):
        assert {"Betrag", "Umsatz", "Anteil", "Aktiv"} <= told


@pytest.mark.parametrize(
    "name",
    ["excel-de.csv", "excel.xlsx", "calc.ods", "two.db", "r.txt", "lines.jsonl", "arrow.parquet"],
)
def test_a_file_is_refused_with_strict_alone(folder, name):
    table = "sales" if name == "two.db" else None
    path = str(folder / name)
    with pytest.raises(ColumnsError) as caught:
        read_rows(Reading(paths=[path], table=table, strict=True))
    # The missing amount and the names, which are text, are told in one go.
    assert {problem.column for problem in caught.value.problems} >= {"Betrag", "Name"}
    assert caught.value.is_answered
    values = read_rows(Reading(paths=[path], table=table)).values
    columns = {tuple(column) for column in values.T.tolist()}
    assert {tuple(map(float, SALES)), tuple(SHARES)} <= columns
