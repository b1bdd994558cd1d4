"""Each example runs, and a page shows the script and its output.

``python -m tests.docs.test_examples`` writes the page of examples. The scripts with libraries that
need an environment of their own are run by tests/neighbours.
"""

from __future__ import annotations

import re

import pytest

from tests.support.example_scripts import GUIDES, NEIGHBOURS, ROOT, code, run, script, show

PAGE = GUIDES / "examples.md"
TITLES = {
    "with_pyod": "Use with PyOD",
    "with_pyod_engine": "Use with PyOD's engine",
    "with_isolation_forest": "Use with IsolationForest",
    "from_pandas": "Use with pandas",
    "costs": "Costs of misses and false alarms",
    "own_detector": "Your own detector",
    "scores_and_arviz": "Precomputed scores and ArviZ",
}
HEAD = """# Examples

This page shows scripts of the folder `examples/` with their output. The guides on
[time series](time-series.md), [p-values](p-values.md), [MLflow](mlflow.md), [MCP](mcp.md),
[Spark](spark.md) and [Ray](ray.md) show the others.
"""
SECTION = """
## {title}

{shown}"""


def make_section(name, printed):
    return SECTION.format(title=TITLES[name], shown=show(name, printed))


@pytest.mark.parametrize("name", TITLES)
def test_the_page_shows_the_script_and_its_output(name, tmp_path):
    assert make_section(name, run(name, tmp_path)) in PAGE.read_text(encoding="utf-8")


def test_the_page_shows_every_script_that_is_run_here_and_nothing_else():
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == list(TITLES.values())


def test_every_script_is_run_in_exactly_one_environment():
    scripts = [path.stem for path in script("*").parent.glob("*.py")]
    assert sorted([*TITLES, *NEIGHBOURS]) == sorted(scripts)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_the_guide_shows_the_script_that_the_neighbours_run(name):
    page = (GUIDES / f"{NEIGHBOURS[name]}.md").read_text(encoding="utf-8")
    assert page.count("```python") == 1
    assert f"```python\n{code(name)}```\n" in page


if __name__ == "__main__":
    sections = [make_section(name, run(name, ROOT)) for name in TITLES]
    PAGE.write_text(HEAD + "".join(sections), encoding="utf-8")
