"""Laws of the layout."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gammagmm
from gammagmm import errors

SOURCE = Path(gammagmm.__file__).parent
MODULES = sorted(SOURCE.glob("*.py"))
LAYERS = [
    "errors",
    "convergence",
    "_checks",
    "documents",
    "synthetic",
    "raw",
    "sources",
    "delimited",
    "matlab",
    "arrays",
    "datasets",
    "packing",
    "columnar",
    "formats",
    "tables",
    "choosing",
    "preparing",
    "compiling",
    "regions",
    "frozen",
    "neural",
    "presets",
    "progress",
    "deadline",
    "workers",
    "scoring",
    "fitting",
    "detectors",
    "scores",
    "prior",
    "kernel",
    "statistics",
    "backends",
    "starts",
    "mixture",
    "ordering",
    "link",
    "draws",
    "betas",
    "posterior",
    "contamination",
    "saving",
    "interchange",
    "wording",
    "notebook",
    "runs",
    "remarks",
    "unfinished",
    "sensitivity",
    "threshold",
    "blocks",
    "opening",
    "cluster",
    "quantiles",
    "passes",
    "curves",
    "beliefs",
    "labels",
    "asking",
    "parameters",
    "frames",
    "summary",
    "answers",
    "rollback",
    "inspecting",
    "blockwise",
    "estimator",
    "shortcut",
    "thresholder",
    "origin",
    "findings",
    "sections",
    "report",
    "plots",
    "outputs",
    "bars",
    "joining",
    "sheets",
    "dialogue",
    "request",
    "command",
    "clustered",
    "supervise",
    "options",
    "cli",
]

# The methods that draw, save and translate may reach down to what does.
DOWNWARD = {("posterior", name) for name in ("plots", "saving", "interchange", "notebook")}
DOWNWARD |= {("errors", "convergence"), ("answers", "plots"), ("answers", "report")}


def imports(path):
    """Modules of this package that `path` imports, at its top or in its functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they point"
            assert node.module != "gammagmm", "import from the module, not from the package"
            names = [node.module]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (n.removeprefix("gammagmm.") for n in names if n.startswith("gammagmm."))


def test_every_module_has_its_layer():
    assert sorted(path.stem for path in MODULES if path.stem != "__init__") == sorted(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_point_up(path):
    own = len(LAYERS) if path.stem == "__init__" else LAYERS.index(path.stem)
    for imported in imports(path):
        is_allowed = LAYERS.index(imported) < own or (path.stem, imported) in DOWNWARD
        assert is_allowed, f"{path.stem} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 25, f"{path.stem}.{node.name} has {length} lines"


def test_public_names_are_the_documented_ones_and_have_examples():
    assert sorted(gammagmm.__all__) == [
        "Contamination",
        "GammaGMM",
        "GammaPosterior",
        "GammaThreshold",
        "estimate_contamination",
    ]
    public = [getattr(gammagmm, name) for name in gammagmm.__all__]
    public += [getattr(errors, name) for name in errors.__all__]
    for thing in public:
        assert ">>>" in thing.__doc__, thing


def test_importing_the_package_loads_no_heavy_neighbour():
    heavy = {"pyod", "numba", "torch", "matplotlib", "dask", "pythresh", "typer", "rich"}
    code = f"import sys, gammagmm; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_blocks_alone_knows_dask(path):
    trees = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    named = [node.module or "" for node in trees if isinstance(node, ast.ImportFrom)]
    trees = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    named += [alias.name for node in trees if isinstance(node, ast.Import) for alias in node.names]
    knows = any(name.partition(".")[0] in ("dask", "distributed") for name in named)
    assert knows == (path.stem == "blocks")


def test_deviations_are_marked_in_the_code_and_explained_in_the_docs():
    documented = (SOURCE.parents[1] / "docs" / "deviations.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    explained = set(re.findall(r"^\| (D\d+) \|", documented, re.MULTILINE))
    assert set(re.findall(r"# Deviation (D\d+):", code)) == explained
