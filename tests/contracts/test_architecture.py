"""What `make lint` cannot check: public names, imports when a program runs, and the lists of files.

The order of the rooms is checked by import-linter; see pyproject.toml.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import gammagmm
from gammagmm import errors

ROOT = Path(__file__).parents[2]
SOURCE = Path(gammagmm.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

HEAVY = {
    *("sklearn", "scipy", "pyod", "numba", "matplotlib", "torch", "dask", "pythresh"),
    *("narwhals", "pandas", "polars", "pyarrow"),
}
"""Libraries that take long to import."""


def test_public_names_are_the_documented_ones_and_have_examples():
    assert sorted(gammagmm.__all__) == [
        "Contamination",
        "Evidence",
        "Fit",
        "FitSummary",
        "GammaGMM",
        "GammaPosterior",
        "GammaThreshold",
        "History",
        "KnownRows",
        "LabelledRows",
        "MixturePrior",
        "estimate_contamination",
    ]
    public = [getattr(gammagmm, name) for name in gammagmm.__all__]
    public += [getattr(errors, name) for name in errors.__all__]
    for thing in public:
        assert ">>>" in thing.__doc__, thing


def run_python(code, *arguments, libraries=HEAVY, **options):
    """A new process that runs `code`, and then prints which of the libraries it has imported."""
    lines = ["import sys", "try:", f"    {code}", "finally:"]
    lines.append(f"    print('imported:', *sorted({libraries!r} & set(sys.modules)))")
    command = [sys.executable, "-c", "\n".join(lines), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_importing_the_package_and_its_rooms_imports_nothing_else():
    places = [path.with_suffix("").relative_to(SOURCE.parent).parts for path in MODULES]
    rooms = {".".join(parts[:-1]) for parts in places if parts[-1] == "__init__"}
    others = {".".join(parts) for parts in places if parts[-1] != "__init__"}
    libraries = HEAVY | {"typer", "rich"} | others
    done = run_python(f"import {', '.join(sorted(rooms))}", libraries=libraries)
    assert done.stderr == ""
    assert done.stdout == "imported:\n"


def test_help_is_shown_before_a_heavy_library_is_imported():
    done = run_python("from gammagmm.cli.main import main; main()", "--help")
    assert done.returncode == 0, done.stderr
    assert "estimate" in done.stdout
    assert done.stdout.splitlines()[-1] == "imported:"


def test_a_bad_file_is_refused_before_a_heavy_library_is_imported(tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n", encoding="utf-8")
    # Otherwise the work is done in a child process, whose imports are not seen here.
    environment = os.environ | {"_GAMMAGMM_SUPERVISED": "1"}
    code = "from gammagmm.cli.main import main; main()"
    done = run_python(code, "estimate", "bad.csv", cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("gammagmm: bad.csv, line 3: ")
    assert done.stdout == "imported:\n"


def test_an_estimate_imports_only_what_it_uses(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c", comments="")
    unused = {"torch", "dask", "distributed", "arviz", "pythresh", "tqdm", "jinja2", "matplotlib"}
    unused |= {"scipy.signal", "gammagmm.report.page", "gammagmm.report.plots"}
    environment = os.environ | {"_GAMMAGMM_SUPERVISED": "1"}
    code = "from gammagmm.cli.main import main; main()"
    arguments = ("estimate", "rows.csv", "--detectors", "classic", "--runs", "2")
    done = run_python(code, *arguments, libraries=unused, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported:"


def layout_in_contributing():
    """Rooms and modules by name, as CONTRIBUTING.md lists them, each with the words after it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"^```\w*\nsrc/gammagmm/.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
    # A line with more than two spaces before its first word continues the line above it.
    lines = re.sub(r"\n {3,}", " ", block).splitlines()
    return {line.split()[0]: line.strip().partition(" ")[2] for line in lines if line[:2] == "  "}


def test_the_layout_in_contributing_is_that_of_the_package():
    listed = layout_in_contributing()
    folders = {path.parent for path in MODULES} - {SOURCE}
    rooms = {f"{folder.name}/" for folder in folders}
    modules = {path.name for path in SOURCE.glob("*.py")}
    assert set(listed) | {"__init__.py"} == rooms | modules
    for folder in folders:
        files = [word.strip() for word in listed[f"{folder.name}/"].rpartition(":")[2].split(",")]
        stems = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
        assert files == stems, f"{folder.name}/ in CONTRIBUTING.md"


def test_deviations_are_marked_in_the_code_and_explained_in_the_docs():
    documented = (ROOT / "docs" / "explanations" / "deviations.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    explained = set(re.findall(r"^\| (D\d+) \|", documented, re.MULTILINE))
    assert set(re.findall(r"# Deviation (D\d+):", code)) == explained
