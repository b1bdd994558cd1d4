"""Each example runs, and the page of examples shows the script and its output.

``python -m tests.docs.test_examples`` writes the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "examples.md"
TITLES = {
    "with_pyod": "Use with PyOD",
    "with_isolation_forest": "Use with IsolationForest",
    "from_pandas": "Use with pandas",
    "costs": "Costs of misses and false alarms",
    "own_detector": "Your own detector",
    "scores_and_arviz": "Precomputed scores and ArviZ",
}
HEAD = """# Examples

The folder `examples/` contains six scripts. This page shows each script with its output.
"""
SECTION = """
## {title}

```python
{code}```

Output:

```text
{printed}```
"""


def script(name):
    return ROOT / "examples" / f"{name}.py"


def run(name, folder):
    """The output of the script, run in `folder` with warnings as errors."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed), warnings.catch_warnings():
        # Our warnings are UserWarnings; other libraries announce changes with FutureWarnings.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", UserWarning)
        runpy.run_path(str(script(name)), run_name="__main__")
    return printed.getvalue()


def make_section(name, printed):
    code = script(name).read_text(encoding="utf-8")
    return SECTION.format(title=TITLES[name], code=code, printed=printed)


@pytest.mark.parametrize("name", TITLES)
def test_the_page_shows_the_script_and_its_output(name, tmp_path):
    assert make_section(name, run(name, tmp_path)) in PAGE.read_text(encoding="utf-8")


def test_the_page_shows_every_script_and_nothing_else():
    assert {path.stem for path in script("*").parent.glob("*.py")} == set(TITLES)
    page = PAGE.read_text(encoding="utf-8")
    assert page.startswith(HEAD)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == list(TITLES.values())


if __name__ == "__main__":
    sections = [make_section(name, run(name, ROOT)) for name in TITLES]
    PAGE.write_text(HEAD + "".join(sections), encoding="utf-8")
