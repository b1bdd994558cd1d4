"""Requests that cannot be fulfilled are refused before the work, in two lines."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from gammagmm.cli.options import Engine, Outputs, Reading, Request, Running
from gammagmm.cli.request import UsageError, check_request, read_rows
from gammagmm.errors import Note, TableError
from tests.support.command_line import QUICK, gammagmm, gammagmm_here
from tests.support.needs import needs_posix

BAD_FILES = {
    "empty.csv": b"",
    "one_row.csv": b"a,b\n1,2\n",
    "header.csv": b"a,b\n",
    "text.csv": b"a,b\nx,1\nz,2\n",
    "mixed.csv": b"a,b\n1,2\n3,dog\n",
    "ragged.csv": b"a,b\n1,2\n3\n",
    "latin.csv": b"\xef\xbb\xbfa,b\n1,2\n3,\xe9\n",
    "twice.csv": b"a,a\n1,2\n3,4\n",
    "gap.csv": b"a,b\n1,2\n3,\n4,5\n",
    "points.csv": b"No. of items,b\nx,2\n3,4\n",
    "sheet.xlsx": b"PK\x03\x04",
    "evil.npz": b"not a zip",
    "unanswered.csv": b"row,anomaly\n3,\n8,\n",
    "told.csv": b"row,anomaly\n5,1\n",
    "\x1b[31mred.csv": b"",
}
BAD_INPUT = [
    (["nowhere.csv"], r"nowhere\.csv does not exist\.\n  Check the path"),
    (["empty.csv"], r"empty\.csv is empty\.\n  Give a file"),
    (["one_row.csv"], r"one_row\.csv .*\n  .*two rows"),
    (["header.csv"], r"header\.csv contains column names but no rows\.\n  Add the rows"),
    (["text.csv", "--strict"], r"column 'a': .* in line 2\.\n  .*without --strict"),
    (["mixed.csv", "--strict"], r"column 'b': .*'dog' in line 3"),
    (["ragged.csv"], r"line 3: found 1 cells .* has 2\.\n  Give every line"),
    (["latin.csv"], r"latin\.csv is not UTF-8.* line 3 .*\n  Save the file as UTF-8"),
    (["twice.csv", "--strict"], r"column name 'a' occurs 2 times\.\n  Give every column"),
    (["gap.csv", "--strict"], r"column 'b': 1 missing value, in line 3\.\n  .*--missing drop"),
    (
        ["sheet.xlsx"],
        r"sheet\.xlsx cannot be read: .*\n  Save it again as \.xlsx or \.ods",
    ),
    (["evil.npz"], r"evil\.npz .*\n  "),
    (["\x1b[31mred.csv"], r"\\x1b\[31mred\.csv is empty"),
    (["good.csv", "--id", "widht"], r"'widht'.*\n  .*'width'"),
    (["good.csv", "--drop", "nothing"], r"'nothing'"),
    (["good.csv", "--truth", "mass"], r"'mass'"),
    (
        ["good.csv", "--missing", "guess"],
        r"--missing.* must be drop or impute, got 'guess'\.\n  Run gammagmm",
    ),
    (["good.csv", "--detectors", "modern"], r"detectors='modern' is not a preset"),
    (
        ["good.csv", "--seed", "-3"],
        r"random_state must be at least 0, got -3\.\n  Run gammagmm COMMAND --help",
    ),
    (["good.csv", "--p0", "2"], r"p0 must lie strictly between 0 and 1, got 2"),
    (
        ["good.csv", "--fail-above", "7"],
        r"--fail-above must lie between 0 and 1, got 7\.0\.\n  Run gammagmm COMMAND --help",
    ),
    (
        ["good.csv", "--fail-above", "0.1"],
        r"--fail-above needs labels: without them, the share is not known and the estimate can be "
        r"wrong in either direction\.\n  Label rows with gammagmm label and pass the sheet with "
        r"--labels, or leave out --fail-above\.",
    ),
    (
        ["nowhere.csv", "--fail-above", "0", "--known", "told.csv"],  # before the file is read
        r"--fail-above needs labels.*\n  .*Rows in --known and rows with --purpose find do",
    ),
    (
        ["good.csv", "--fail-above", "0.1", "--labels", "unanswered.csv"],
        r"unanswered\.csv has no answers yet\.\n  Write 1 \(anomaly\) or 0 \(normal\)",
    ),
    (
        ["good.csv", "--fail-above", "0.1", "--labels", "unanswered.csv", "--known", "told.csv"],
        r"unanswered\.csv has no answers yet",
    ),
    (
        ["good.csv", "--picture", "no/such/p.png"],
        r"no/such is not a folder\.\n  Create the folder first",
    ),
    (
        ["good.csv", "--picture", "posterior.doc"],
        r"--picture writes \.png, \.svg or \.pdf, and posterior\.doc ends in \.doc\.\n  Give a "
        r"name that ends in \.png, \.svg or \.pdf",
    ),
    (["good.csv", "--picture", "p"], r"--picture writes .*, and p has no suffix"),
    (["nowhere.csv", "--out", "o.XLSX"], r"--out writes \.csv, and o\.XLSX ends in \.XLSX"),
    (["nowhere.csv", "--report", "out.csv"], r"--report writes \.html or \.htm, and out\.csv ends"),
    (["nowhere.csv", "--posterior", "out.html"], r"--posterior writes \.json, and out\.html ends"),
    (["good.csv", "--out", "good.csv"], r"good\.csv already exists\.\n  Pass --force"),
    (
        ["good.csv", "--out", "x", "--report", "../bad0/x"],
        r"Two outputs have the same path\.\n  Give each output a different path",
    ),
    (
        ["good.csv", "--out", "good.csv", "--force"],
        r"is an input and an output\.\n  Choose another output",
    ),
    (
        ["good.csv", "--out", "good.csv/l.csv"],
        r"good\.csv is not a folder\.\n  Create the folder first",
    ),
    (
        ["points.csv", "--strict"],
        r"column 'No\. of items': .* in line 2\.\n  .*--drop 'No\. of items'",
    ),
    (["good.csv", "--runs", "many"], r"'--runs': .* integer.*\n  Run gammagmm COMMAND --help"),
    (["good.csv", "-"], r"cannot be read together\.\n  Give one or the other"),
    (["good.csv", "other.csv"], r"other\.csv lacks the columns .*\n  "),
]


@pytest.fixture(scope="module")
def bad_folder(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    assert folder.name == "bad0"
    for name, content in BAD_FILES.items():
        (folder / name).write_bytes(content)
    (folder / "good.csv").write_bytes(table.read_bytes())
    (folder / "other.csv").write_bytes(b"p,q\n1,2\n3,4\n")
    return folder


def check_refusal(run, arguments, words, bad_folder):
    """Two lines with these words and perhaps a command, exit code 2, and no file changed."""
    before = sorted(os.listdir(bad_folder))
    done = run("estimate", *arguments, cwd=bad_folder)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2 or lines[2].startswith("  This command works: "), done.stderr
    assert len(lines) <= 3
    assert done.stderr.startswith("gammagmm: ")
    assert re.search(words, done.stderr), done.stderr
    assert sorted(os.listdir(bad_folder)) == before


@pytest.mark.parametrize(("arguments", "words"), BAD_INPUT, ids=lambda value: str(value)[:30])
def test_bad_input_is_two_lines_and_exit_code_2(arguments, words, bad_folder):
    check_refusal(gammagmm_here, arguments, words, bad_folder)


def test_the_real_command_refuses_bad_input_alike(bad_folder):
    for arguments, words in (BAD_INPUT[12], BAD_INPUT[-3]):
        check_refusal(gammagmm, arguments, words, bad_folder)


@needs_posix
def test_a_pipe_is_no_output(bad_folder):
    os.mkfifo(bad_folder / "pipe")
    words = r"pipe is not a regular file\.\n  Choose another name"
    check_refusal(gammagmm_here, ["good.csv", "--out", "pipe", "--force"], words, bad_folder)


def test_a_folder_without_permission_to_write(table, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    done = gammagmm_here("estimate", table, "--out", folder / "labels.csv")
    assert done.returncode == 2
    assert "is not writable" in done.stderr


def request(path, *, engine="dask", force=False, **groups):
    """A request for the Parquet file at `path`."""
    reading = Reading(paths=[str(path)], **groups.pop("reading", {}))
    return Request(
        reading=reading, engine=Engine(engine, None), running=Running(force=force), **groups
    )


def test_dask_does_not_leave_out_rows_with_gaps():
    with pytest.raises(UsageError, match="--missing drop"):
        check_request(request("rows.parquet", reading={"missing": "drop"}))


def test_the_folder_for_labels_is_checked_before_the_work(tmp_path):
    rows, folder = tmp_path / "rows.parquet", tmp_path / "labels"
    rows.touch()
    outputs = Outputs(out=folder)
    check_request(request(rows, outputs=outputs))
    folder.mkdir()
    with pytest.raises(UsageError, match=r"labels already exists\. Pass --force to replace it\."):
        check_request(request(rows, outputs=outputs))
    check_request(request(rows, outputs=outputs, force=True))
    (folder / "mine.txt").touch()
    with pytest.raises(FileExistsError, match=r"contains files that .*\. Choose another name\."):
        check_request(request(rows, outputs=outputs, force=True))


REGIONS = ("north", "south", "")


def test_a_column_of_text_with_the_groups_is_left_out_of_the_data(tmp_path):
    rows = [f"{i},{i * i % 7},{REGIONS[i % 3]}" for i in range(30)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,my region", *rows]))
    table = read_rows(Reading(paths=[str(path)], use=["a"]), by="my region")
    assert table.columns == ("a", "b")
    assert (table.values.shape, table.groups.column) == ((30, 2), "my region")
    assert table.groups.values.tolist() == [REGIONS[i % 3] for i in range(30)]
    assert Note.of("tables.groups", "my region", keep="--use 'my region'") in table.notes
    encoded = Reading(paths=[str(path)], use=["a", "my region"])
    table = read_rows(encoded, by="my region")
    assert len(table.columns) > 2
    table = read_rows(Reading(paths=[str(path)], use=["a"], drop=["my region"]), by="b")
    assert table.columns == ("a", "b")  # numbers stay in the data
    with pytest.raises(TableError, match=r"no column 'my rigion'; similar names: 'my region'"):
        read_rows(Reading(paths=[str(path)]), by="my rigion")


def test_who_labels_rows_does_not_see_known_labels(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i * i % 11},{i % 2},{i % 2},{i % 2},{i % 3}" for i in range(30)]
    path.write_text("\n".join(["a,is_fraud,outlier,label,b", *lines]))
    reading = Reading(paths=[str(path)], truth="label", drop=["outlier", "b"])
    table = read_rows(reading, keep_raw=True)
    assert list(table.cells(0)) == ["a", "b"]
    table = read_rows(replace(reading, drop=None), by="outlier", keep_raw=True)
    assert list(table.cells(0)) == ["a", "b"]
    table = read_rows(replace(reading, drop=None, use=["outlier"]), keep_raw=True)
    assert list(table.cells(0)) == ["a", "outlier", "b"]  # what the user uses as data is shown


def test_repeated_ids_are_noted(tmp_path):
    (tmp_path / "rows.csv").write_text("name,a\nu,1\nu,2\nv,3\n")
    table = read_rows(Reading(paths=[str(tmp_path / "rows.csv")], id="name"))
    assert table.values.tolist() == [[1.0], [2.0], [3.0]]
    assert table.ids == ("u", "u", "v")
    [note] = table.notes
    assert note.message == "1 rows have the same id as an earlier row; 'u' occurs 2 times"


def test_force_replaces_an_existing_file(table, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("mine")
    assert gammagmm_here("estimate", table, *QUICK, "--out", path).returncode == 2
    assert path.read_text() == "mine"
    done = gammagmm_here("estimate", table, *QUICK, "--out", path, "--force")
    assert done.returncode == 0, done.stderr
    assert path.read_text().startswith("id,score,")


def test_dask_reads_parquet_only(table):
    with pytest.raises(UsageError) as caught:
        check_request(request(table))
    assert str(table) in caught.value.what
    assert "--engine" in caught.value.todo
