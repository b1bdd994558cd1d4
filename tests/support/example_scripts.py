"""The scripts of the folder examples, what they print, and how a page shows both."""

from __future__ import annotations

import contextlib
import io
import runpy
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
NEIGHBOURS = {
    "time_series": "time-series",
    "with_nonconform": "p-values",
    "with_mlflow": "mlflow",
    "mcp_server": "mcp",
}
"""The scripts that `make test-neighbours` runs, and the guides that show them."""
SHOWN = """```python
{code}```

Output:

```text
{printed}```
"""


def script(name):
    return ROOT / "examples" / f"{name}.py"


def code(name):
    return script(name).read_text(encoding="utf-8")


def run(name, folder):
    """The output of the script, run in `folder` with warnings as errors."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed), warnings.catch_warnings():
        # Our warnings are UserWarnings; other libraries announce changes with FutureWarnings.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", UserWarning)
        runpy.run_path(str(script(name)), run_name="__main__")
    return printed.getvalue()


def show(name, printed):
    """The script and its output, as a page shows them."""
    return SHOWN.format(code=code(name), printed=printed)
