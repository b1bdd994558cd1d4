"""The README, the documentation and the messages keep to the word table of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gammagmm"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "zensical.toml")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(SOURCE.rglob("*.html")),
]
# Code, except for outputs; names in code; what templates compute.
NOT_WORDS = re.compile(
    r"^```(?!text).*?^```|`[^`]+`|\{[%{#].*?[%}#]\}|<style>.*?</style>", re.DOTALL | re.MULTILINE
)


def unwanted():
    """The phrases of the left column, as one pattern."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Words")[1]
    rows = re.findall(r"^\| (.*) \| .* \|$", section.partition("\n## ")[0], re.MULTILINE)[1:]
    phrases = [phrase for row in rows for phrase in row.split(", ")]
    assert len(phrases) > 15
    return re.compile(
        "|".join(rf"\b{re.escape(phrase)}\b".replace(r"\ ", r"\s+") for phrase in phrases),
        re.IGNORECASE,
    )


UNWANTED = unwanted()


def messages(path):
    """Texts of more than one word in a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings and " " in node.value:
            yield node.value


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_have_no_word_of_the_table(path):
    text = NOT_WORDS.sub(" ", path.read_text(encoding="utf-8"))
    assert UNWANTED.findall(text) == []


def test_messages_have_no_word_of_the_table():
    found = [
        (path.relative_to(SOURCE).as_posix(), text)
        for path in sorted(SOURCE.rglob("*.py"))
        for text in messages(path)
        if UNWANTED.search(text)
    ]
    assert found == []
