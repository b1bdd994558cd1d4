"""Every number of the README and the documentation comes from a file.

``python -m tests.docs.test_numbers`` writes the current figures into the pages.

numbers.toml lists sentences whose fields name a figure and its format, for example
``{errors/paper/gammaGMM/mae|.4f}``, orders of figures that sentences without a number state, and
phrases with constants. A number in a page that is in none of them, or that differs from its
figure, is a problem.
"""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from tests.docs.figures import ROOT, figure, read

LISTED = tomllib.loads(read("tests/docs/numbers.toml"))
ORDERS = LISTED["orders"]
# Made as a whole by scripts, which other tests repeat; their templates are read instead.
# The templates in experiments/pages have a test beside that of their script.
MADE = {
    "docs/explanations/label-coverage.md",
    "docs/explanations/meaning.md",
    "docs/explanations/probabilities.md",
    "docs/explanations/sentences.md",
    "docs/reference/command-line.md",
    "docs/reference/command-line-more.md",
    *(f"docs/explanations/{path.name}" for path in (ROOT / "experiments" / "pages").glob("*.md")),
}
TEMPLATES = (
    "experiments/label-coverage.md",
    "experiments/meaning.md",
    "experiments/probabilities.md",
    "experiments/sentences.md",
    "benchmarks/templates/README.md",
)
PAGES = [
    *("README.md", "CONTRIBUTING.md", *TEMPLATES, "benchmarks/templates/scaling.md"),
    *sorted({path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")} - MADE),
]

NUMBER = r"[−+-]?\d+(?:[.,]\d+)*(?:e[−-]?\d+)?"
TOKEN = re.compile(rf"(?<![\w.]){NUMBER}")  # a digit after a letter belongs to a name, such as F1
# Code, whose output other tests compare; sections that are made from results; links; numbers of
# list items and headings; indices; placeholders of templates; options of the reference.
NOT_PROSE = re.compile(
    r"^```.*?^```|<!-- (?:measured|figures).*?<!-- end -->|<!--.*?-->|`[^`]+`|\]\([^)]*\)"
    r"|^::: \S+\n(?:    [^\n]*\n)*|^(?:## )?\d\. |<sub>.*?</sub>|\$\{?\w+\}?",
    re.DOTALL | re.MULTILINE,
)
FIELD = re.compile(r"\{([^{}|]+)(?:\|([^{}]*))?\}")
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
FRACTIONS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}


class Problem(NamedTuple):
    """A number that differs from its figure, which is `expected`, or that has none."""

    start: int
    end: int
    message: str
    expected: str | None = None


def shown(value, form):
    """The value as the pages show it."""
    if form == "word":
        return WORDS[value]
    if form == "fraction":
        return FRACTIONS[round(1.0 / value)]
    if form.endswith(" %"):
        return f"{shown(100.0 * value, form[:-2] + 'f')} %"
    return format(value, form).replace("-", "−")


def literal(words):
    return re.sub(r"(?:\\[ \n])+", r"\\s+", re.escape(words))


@cache
def compiled():
    """Sentences as patterns, with the paths and formats of their fields; phrases as patterns."""
    sentences = {}
    for text in LISTED["claims"]:
        first, *rest = FIELD.split(text)
        fields = [(path, form or "") for path, form in zip(rest[::3], rest[1::3], strict=True)]
        pattern = literal(first)
        for (_, form), words in zip(fields, rest[2::3], strict=True):
            shape = "(?:an? )?[a-z]+" if form in ("word", "fraction") else NUMBER
            pattern += f"({shape}{' ?%' if form.endswith('%') else ''})" + literal(words)
        sentences[text] = re.compile(pattern), fields
    sentences |= {one["sentence"]: (re.compile(literal(one["sentence"])), []) for one in ORDERS}
    phrases = [phrase for group in LISTED["constants"] for phrase in group["phrases"]]
    return sentences, {phrase: re.compile(literal(phrase)) for phrase in phrases}


def check(text):
    """The problems of a page with this text, and what it contains of the lists."""
    sentences, phrases = compiled()
    problems, used, covered = [], set(), np.zeros(len(text), dtype=bool)
    for claim, (pattern, fields) in sentences.items():
        for match in pattern.finditer(text):
            used.add(claim)
            for place, field in enumerate(fields, start=1):
                covered[slice(*match.span(place))] = True
                problems += differences(match, place, *field)
    for phrase, pattern in phrases.items():
        for match in pattern.finditer(text):
            used.add(phrase)
            covered[slice(*match.span())] = True
    for token in tokens(text):
        if not covered[slice(*token.span())].all():
            around = text[max(0, token.start() - 40) : token.end() + 40]
            problems.append(Problem(*token.span(), f'no file for "{token[0]}" in "{around}"'))
    return problems, used


def differences(match, place, path, form):
    expected = shown(figure(path), form)
    if match[place] != expected:
        message = f'"{match[place]}" should be "{expected}" ({path}) in "{match[0]}"'
        yield Problem(*match.span(place), message, expected)


def tokens(text):
    """The numbers of the prose and the tables."""
    return TOKEN.finditer(NOT_PROSE.sub(lambda match: " " * len(match[0]), text))


def corrected(text):
    """The text with the current figures."""
    for problem in sorted(check(text)[0], reverse=True):
        if problem.expected is not None:
            text = text[: problem.start] + problem.expected + text[problem.end :]
    return text


@pytest.mark.parametrize("page", PAGES)
def test_every_number_has_a_file(page):
    problems, _ = check(read(page))
    assert not problems, "\n".join(problem.message for problem in problems)


def test_every_listed_sentence_and_constant_is_used():
    sentences, phrases = compiled()
    used = set().union(*(check(read(page))[1] for page in PAGES))
    assert not (sentences.keys() | phrases.keys()) - used
    assert all(group["reason"] for group in LISTED["constants"])


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order["sentence"])
def test_what_a_sentence_without_a_number_says_holds(order):
    values = [figure(one) if isinstance(one, str) else one for one in order["rising"]]
    assert values == sorted(values), order["rising"]


def main():
    """Write the figures into the pages, and print what was written and what was not."""
    for page in PAGES:
        text = read(page)
        for problem in sorted(check(text)[0]):
            line = text[: problem.start].count("\n") + 1
            state = "not written" if problem.expected is None else "written"
            sys.stdout.write(f"{page}:{line}: {state}: {' '.join(problem.message.split())}\n")
        (ROOT / page).write_text(corrected(text), encoding="utf-8")


if __name__ == "__main__":
    main()
