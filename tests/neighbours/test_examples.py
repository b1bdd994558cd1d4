"""The examples with neighbouring libraries run, and their guides show what they print.

``python -m tests.neighbours.test_examples`` writes the scripts and their output into the guides.
"""

from __future__ import annotations

import re
import sys
import tempfile

import pytest

from tests.support.example_scripts import GUIDES, NEIGHBOURS, code, run, show

# test_spark uses the names of this script as well, so it runs it.
SCRIPTS = sorted(set(NEIGHBOURS) - {"with_spark"})
WITH_OUTPUT = r"^```python\n{first_line}\n.*?^```\n\nOutput:\n\n```text\n.*?^```\n"


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_guide_shows_the_script_and_its_output(name, tmp_path):
    if name == "with_nonconform" and sys.version_info < (3, 12):
        pytest.skip("nonconform needs Python 3.12")
    page = (GUIDES / f"{NEIGHBOURS[name]}.md").read_text(encoding="utf-8")
    assert show(name, run(name, tmp_path)) in page


def rewrite(name, folder):
    """Write the script and its output into its guide."""
    path = GUIDES / f"{NEIGHBOURS[name]}.md"
    shown = show(name, run(name, folder))
    pattern = WITH_OUTPUT.format(first_line=re.escape(code(name).splitlines()[0]))
    page = re.sub(
        pattern, lambda _: shown, path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for each in NEIGHBOURS:
            rewrite(each, scratch)
