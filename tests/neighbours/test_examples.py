"""The examples with neighbouring libraries run, and their guides show what they print.

``python -m tests.neighbours.test_examples`` writes the scripts and their output into the guides.
"""

from __future__ import annotations

import re
import sys
import tempfile

import pytest

from tests.support.example_scripts import GUIDES, NEIGHBOURS, code, run, show

# The server prints nothing; test_mcp talks to it.
PRINTING = sorted(set(NEIGHBOURS) - {"mcp_server"})
# test_spark and test_ray use the names of these scripts as well, so they run them.
SCRIPTS = sorted(set(PRINTING) - {"with_ray", "with_spark"})
WITH_OUTPUT = re.compile(
    r"^```python\n.*?^```\n\nOutput:\n\n```text\n.*?^```\n", re.DOTALL | re.MULTILINE
)
ALONE = re.compile(r"^```python\n.*?^```\n", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_guide_shows_the_script_and_its_output(name, tmp_path):
    if name == "with_nonconform" and sys.version_info < (3, 12):
        pytest.skip("nonconform needs Python 3.12")
    page = (GUIDES / f"{NEIGHBOURS[name]}.md").read_text(encoding="utf-8")
    assert show(name, run(name, tmp_path)) in page


def rewrite(name, folder):
    """Write the script and, if it prints anything, its output into its guide."""
    path = GUIDES / f"{NEIGHBOURS[name]}.md"
    pattern, shown = ALONE, f"```python\n{code(name)}```\n"
    if name in PRINTING:
        pattern, shown = WITH_OUTPUT, show(name, run(name, folder))
    page = pattern.sub(lambda _: shown, path.read_text(encoding="utf-8"))
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for each in NEIGHBOURS:
            rewrite(each, scratch)
