"""The README says what the code does."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(
    r"```python\n(.*?)```.*?```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
)


@pytest.mark.parametrize(("code", "expected"), EXAMPLES)
def test_the_example_prints_what_the_readme_shows(code, expected):
    assert len(code.splitlines()) <= 12
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == expected


def test_there_are_examples():
    assert len(EXAMPLES) == 2


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
