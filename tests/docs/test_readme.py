"""The README agrees with the code.

``python -m tests.docs.test_readme`` runs its examples and writes their output into it.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

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


def test_the_last_block_needs_five_lines_to_a_fitted_detector():
    lines = [line for line in BLOCKS[-1].splitlines() if line]
    assert len(lines) <= 5
    names = {}
    exec(compile(BLOCKS[-1], "README.md", "exec"), names)
    assert names["knn"].contamination.posterior.mean == names["knn"].contamination
    assert 0 < names["knn"].labels_.sum() < len(names["X"])


def test_there_are_examples():
    assert (len(BLOCKS), len(EXAMPLES)) == (3, 2)


if __name__ == "__main__":
    text = TEXT
    for code, expected in EXAMPLES:
        text = text.replace(f"```text\n{expected}```", f"```text\n{output_of(code)}```")
    README.write_text(text, encoding="utf-8")
