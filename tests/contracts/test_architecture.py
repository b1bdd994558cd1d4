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
MODULES = sorted(SOURCE.rglob("*.py"))
ORDER = [
    {"errors"},
    {"_support"},
    {"readers"},
    {"datasets"},
    {"detectors"},
    {"mixture"},
    {"posterior"},
    {"inspection", "blocks"},
    {"estimator"},
    {"report"},
    {"cli"},
]
"""The rooms, from the top: a room imports from those above it, and from itself."""

DOWNWARD = {
    ("errors", "mixture"),  # a warning that is scikit-learn's too, loaded when it is asked for
    ("posterior", "report"),  # a posterior draws itself
    ("estimator", "report"),  # an estimator draws itself and writes its report
}
"""The exceptions: imports inside a function, by a method that hands over to a lower room."""


def room(path):
    """Name of the room, or of the file at the top, that a module belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def place(name):
    return next(i for i, rooms in enumerate(ORDER) if name in rooms)


def imports(path):
    """Room of each module of this package that `path` imports, and whether a function does it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    guards = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n)]
    for_types = {id(node) for guard in guards for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they point"
            assert node.module != "gammagmm", "import from the module, not from the package"
            names = [node.module]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("gammagmm."):
                yield name.split(".")[1], id(node) in inside


def name_of(path):
    return str(path.relative_to(SOURCE))


def test_every_module_has_a_room():
    rooms = set().union(*ORDER)
    assert {room(path) for path in MODULES} == rooms | {"__init__"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_rooms_import_from_rooms_above(path):
    own = room(path)
    if own == "__init__":
        return
    for imported, is_in_function in imports(path):
        is_exception = (own, imported) in DOWNWARD and is_in_function
        is_above = imported == own or place(imported) < place(own)
        assert is_above or is_exception, f"{name_of(path)} imports from {imported}"
        assert {own, imported} != {"readers", "estimator"}, "rows come from anywhere"


@pytest.mark.parametrize("path", [p for p in MODULES if p.stem == "__init__"], ids=name_of)
def test_packages_import_nothing_when_they_are_loaded(path):
    assert all(is_in_function for _, is_in_function in imports(path))


def test_public_names_are_the_documented_ones_and_have_examples():
    assert sorted(gammagmm.__all__) == [
        "Contamination",
        "Fit",
        "FitSummary",
        "GammaGMM",
        "GammaPosterior",
        "GammaThreshold",
        "KnownRows",
        "MixturePrior",
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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_blocks_alone_knows_dask(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    named += [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    if any(name.partition(".")[0] in ("dask", "distributed") for name in named):
        assert room(path) == "blocks"


def test_deviations_are_marked_in_the_code_and_explained_in_the_docs():
    documented = (SOURCE.parents[1] / "docs" / "deviations.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    explained = set(re.findall(r"^\| (D\d+) \|", documented, re.MULTILINE))
    assert set(re.findall(r"# Deviation (D\d+):", code)) == explained
