"""The README agrees with the code.

``python -m tests.docs.test_readme`` runs its examples and writes their output into it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import shlex
from pathlib import Path

import pytest

from gammagmm.datasets import make_contaminated
from tests.support.command_line import gammagmm_here, write_csv

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
EXAMPLES = re.findall(
    r"```python\n((?:(?!```).)*?)```\n\nOutput:\n\n```text\n(.*?)```", TEXT, re.DOTALL
)


def output_of(code):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    return printed.getvalue()


@pytest.mark.parametrize(("code", "expected"), EXAMPLES)
def test_the_example_prints_what_the_readme_shows(code, expected):
    assert len([line for line in code.splitlines() if line]) <= 11
    assert output_of(code) == expected


def test_the_last_block_needs_few_lines_to_a_fitted_detector():
    lines = [line for line in BLOCKS[-1].splitlines() if line]
    assert len(lines) <= 7
    names = {}
    exec(compile(BLOCKS[-1], "README.md", "exec"), names)
    assert names["knn"].contamination.posterior.mean == names["knn"].contamination
    assert 0 < names["knn"].labels_.sum() < len(names["X"])


def test_there_are_examples():
    assert (len(BLOCKS), len(EXAMPLES)) == (2, 1)


def test_the_first_commands_run_from_the_file_to_the_answer(tmp_path):
    data = make_contaminated(200, 3, 0.05, "clustered", random_state=2)
    columns = dict(zip("abc", data.X.T.tolist(), strict=True))
    write_csv(tmp_path / "rows.csv", columns)
    (tmp_path / "gammagmm.toml").write_text('detectors = "KNN,LOF"\nruns = 1\n')
    block = re.search(r"^```sh\n(gammagmm .*?)^```$", TEXT, re.DOTALL | re.MULTILINE)[1]
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "gammagmm"
        is_page = arguments[0] == "label"
        done = gammagmm_here(*arguments, *["--sheet-only"] * is_page, cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        if is_page:
            answer(tmp_path / "to_label.csv", data.y)
    assert re.search(r"30 labelled rows", done.stdout), done.stdout
    assert (tmp_path / "report.html").is_file()


def answer(sheet, truth):
    """Fill in the sheet, as a person does on the page."""
    rows = list(csv.DictReader(sheet.read_text(encoding="utf-8").splitlines()))
    for row in rows:
        row["anomaly"] = truth[int(row["row"]) - 1]
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    text = TEXT
    for code, expected in EXAMPLES:
        text = text.replace(f"```text\n{expected}```", f"```text\n{output_of(code)}```")
    README.write_text(text, encoding="utf-8")
