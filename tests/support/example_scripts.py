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
    "with_spark": "spark",
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


def run_with_names(name, folder):
    """The names of the script and its output, run in `folder` with warnings as errors."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed), warnings.catch_warnings():
        # Our warnings are UserWarnings; other libraries announce changes with FutureWarnings.
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", UserWarning)
        names = runpy.run_path(str(script(name)), run_name="__main__")
    return names, printed.getvalue()


def run(name, folder):
    """The output of the script, run in `folder` with warnings as errors."""
    return run_with_names(name, folder)[1]


def show(name, printed):
    """The script and its output, as a page shows them."""
    return SHOWN.format(code=code(name), printed=printed)
