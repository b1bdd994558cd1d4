"""Each story of the gallery runs, and the page shows the script and its output.

``python -m tests.docs.test_examples`` writes the page. The scripts with libraries that
need an environment of their own are run by tests/neighbours.
"""

from __future__ import annotations

import re

import pytest

from tests.support.example_scripts import GUIDES, NEIGHBOURS, ROOT, code, run, script, show

PAGE = GUIDES / "examples.md"
TITLES = {
    "invoices": "Invoices to check",
    "sensors": "A sensor that drifts",
    "patients": "Patients who get a second look",
    "logins": "Stolen accounts",
    "with_pyod": "A PyOD pipeline whose threshold is chosen by labels",
}
HEAD = """# Gallery

Scripts of the folder `examples/`, each from data to a decision, with its output:

| script | data | what the labels are for |
|---|---|---|
| [invoices](#invoices-to-check) | pandas, simulated | finding the mistakes, and when to stop |
| [sensors](#a-sensor-that-drifts) | pandas, simulated | what an alarm means |
| [patients](#patients-who-get-a-second-look) | NumPy, bundled | costs of misses and false alarms |
| [log-ins](#stolen-accounts) | polars, simulated | known incidents, and how many are left |
| [PyOD](#a-pyod-pipeline-whose-threshold-is-chosen-by-labels) | NumPy, simulated | the threshold |
| [Spark](spark.md) | a table on a cluster, simulated | ranking all rows by a sample |

Labels that a person would give are taken from the known truth.
"""
SECTION = """
## {title}

{shown}"""


def make_section(name, printed):
    return SECTION.format(title=TITLES[name], shown=show(name, printed))


@pytest.mark.long
@pytest.mark.parametrize("name", TITLES)
def test_the_page_shows_the_script_and_its_output(name, tmp_path):
    assert make_section(name, run(name, tmp_path)) in PAGE.read_text(encoding="utf-8")


def test_the_page_shows_every_script_that_is_run_here_and_nothing_else():
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == [*TITLES.values()]


def test_every_script_is_run_in_exactly_one_environment():
    scripts = [path.stem for path in script("*").parent.glob("*.py")]
    assert sorted([*TITLES, *NEIGHBOURS, "with_ray"]) == sorted(scripts)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_the_guide_shows_the_script_that_the_neighbours_run(name):
    page = (GUIDES / f"{NEIGHBOURS[name]}.md").read_text(encoding="utf-8")
    assert f"```python\n{code(name)}```\n" in page
    assert page.count("```python") == 1


if __name__ == "__main__":
    sections = [make_section(name, run(name, ROOT)) for name in TITLES]
    PAGE.write_text(HEAD + "".join(sections), encoding="utf-8")
