"""Names of columns, rows and files are only shown: in the terminal, in HTML, in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from gammagmm._support.text import one_line, spreadsheet_safe, visible
from gammagmm.cli.sheet import fill_sheet, read_sheet
from gammagmm.datasets import make_contaminated
from gammagmm.labels.sheet import Sheet
from tests.support.command_line import gammagmm, gammagmm_here
from tests.support.tables import table_of

NAMES = (
    "<script>alert(1)</script>",
    "[red]a[/red] [link=file:///etc/passwd]b[/link]",
    "\x1b[2J\x1b]0;title\x07c",
    "d\nwarning: all is well",
    "\u202eesrever",
    "=cmd|' /C calc'!A0",
)
FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Tags(HTMLParser):
    """The tags of an HTML page and the text between them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with a CSV file all of whose names are hostile."""
    folder = tmp_path_factory.mktemp("names")
    rows = make_contaminated(200, len(NAMES), 0.05, "clustered", random_state=2).X.tolist()
    rows[3] = ["", *rows[3][1:]]
    rows[4][3] = ""
    ids = [f"{NAMES[i % len(NAMES)]}{i}" for i in range(len(rows))]
    with (folder / "[b]\x1b[31m<i>.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["@id", *NAMES])
        writer.writerows([name, *row] for name, row in zip(ids, rows, strict=True))
    return folder


@pytest.fixture(scope="module")
def answered(folder):
    options = ["--id", "@id", "--missing", "impute", "--detectors", "KNN,LOF", "--runs", "1"]
    outputs = ["--out", "labels.csv", "--report", "report.html", "--jobs", "1"]
    return gammagmm("estimate", "[b]\x1b[31m<i>.csv", *options, *outputs, cwd=folder)


def test_the_terminal_gets_no_control_characters(answered):
    assert answered.returncode == 0, answered.stderr
    assert not FORBIDDEN.search(answered.stdout + answered.stderr)
    # A line break in a name does not start a new line.
    assert not re.search(r"^warning: all is well", answered.stderr, re.MULTILINE)
    assert r"'d\nwarning: all is well'" in answered.stderr


def test_the_report_shows_names_and_runs_nothing(answered, folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not FORBIDDEN.search(page)
    parsed = Tags(page)
    assert parsed.tags.count("script") == 2
    assert not {"img", "iframe", "i", "link"} & set(parsed.tags)
    # The only links lead to parts of the page.
    assert parsed.tags.count("a") == len(re.findall('<a href="#[a-z]+">', page))
    words = " ".join(parsed.words)
    for name in NAMES[:2]:
        assert name in words
    for shown in (r"\x1b[2J\x1b]0;title\x07c", r"\u202eesrever", r"[b]\x1b[31m<i>.csv"):
        assert shown in words


def test_the_labels_are_text_to_a_spreadsheet(answered, folder):
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    assert ids[5] == "'=cmd|' /C calc'!A05"
    assert ids[0] == f"{NAMES[0]}0"
    assert not any(name.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for name in ids)


@pytest.mark.parametrize(
    "cell", ["=1", "+a", "-a", "@a", "\ta", "\na", "\uff1d1+1", "\uff0ba", "\uff20a", "'=1", "''@a"]
)
def test_cells_that_a_spreadsheet_would_evaluate(cell):
    assert spreadsheet_safe(cell) == f"'{cell}"


def test_different_cells_stay_different_and_show_what_they_hold():
    cells = ["=1", "'=1", "''=1", "\t=1", "'\t=1", "a", "'a", "''a", "-1", "'-1"]
    assert len({spreadsheet_safe(cell) for cell in cells}) == len(cells)
    assert spreadsheet_safe("a\x1b[2J\u202eb\r") == r"a\x1b[2J\u202eb\r"
    assert spreadsheet_safe("two\nlines\tand a tab") == "two\nlines\tand a tab"


@pytest.mark.parametrize("cell", ["-1.5", "+2", "a=b", "", "'1", " =1"])
def test_cells_that_a_spreadsheet_would_not_evaluate(cell):
    assert spreadsheet_safe(cell) == cell


@pytest.mark.parametrize("name", NAMES)
def test_a_sheet_with_hostile_names_is_read_back(name, tmp_path):
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    table = table_of(X, (name, "b"), ids=(name, "v"))
    text = fill_sheet(Sheet((0, 1), (1, 0)), table)
    assert all(
        not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
        for line in csv.reader(io.StringIO(text))
        for cell in line
    )
    (tmp_path / "s.csv").write_text(text, encoding="utf-8", newline="")
    assert read_sheet(tmp_path / "s.csv", table) == Sheet((0, 1), (1, 0))
    # The sheet of a report shows escape sequences for invisible characters.
    file = io.StringIO()
    shown = spreadsheet_safe(visible(name))
    csv.writer(file).writerows([["row", "name of the row", "anomaly"], [1, shown, 1]])
    (tmp_path / "s.csv").write_text(file.getvalue(), encoding="utf-8", newline="")
    assert read_sheet(tmp_path / "s.csv", table) == Sheet((0,), (1,))


WRONG = ([], ["--id", "nobody"], ["--truth"], ["--drop", "b", "--drop"], [], ["--missing", "drop"])


@pytest.mark.parametrize(("name", "options"), [*zip(NAMES, WRONG, strict=True)])
def test_errors_quote_names_on_one_line(name, options, tmp_path):
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[name, "b"], ["x", 1], [name, 2]])
    given = [*options, name] if options and options[-1] in ("--truth", "--drop") else options
    done = gammagmm_here("estimate", "t.csv", "--strict", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    works = "  This command works: gammagmm estimate "
    lines = [line for line in done.stderr.splitlines() if not line.startswith(works)]
    assert len(lines) == 2, done.stderr
    assert not FORBIDDEN.search(done.stderr)


def test_escaped_texts():
    assert one_line("a\nb\x1b") == r"a\nb\x1b"
    assert visible("γ é \u200d \xa0 \u202e\x85\ud800") == "γ é \u200d \xa0 " + r"\u202e\x85\ud800"
