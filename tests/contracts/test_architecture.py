"""Rules of the layout, most of them checked in the syntax trees of the modules."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gammagmm
from gammagmm import errors

ROOT = Path(__file__).parents[2]
SOURCE = Path(gammagmm.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
ORDER = [
    {"errors"},
    {"_support"},
    {"readers"},
    {"datasets"},
    {"detectors"},
    {"mixture"},
    {"posterior"},
    {"inspection", "distributed"},
    {"monitoring"},
    {"estimator"},
    {"report"},
    {"cli"},
    {"prior", "summary"},  # the modules of two public names in version 0.1, until 0.3
]
"""The rooms, from the top: a room imports only from itself and from the rooms above it."""

DOWNWARD = {
    ("errors", "mixture"),  # a warning that is also one of scikit-learn, loaded on demand
    ("posterior", "report"),  # the method that draws a posterior
    ("monitoring", "report"),  # the method that draws a history
    ("estimator", "report"),  # the methods that draw a fit and write its report
}
"""The exceptions: imports inside a method that calls a lower room."""

HEAVY = {
    *("sklearn", "scipy", "pyod", "numba", "matplotlib", "torch", "dask", "pythresh"),
    *("narwhals", "pandas", "polars", "pyarrow"),
}
"""Libraries that take long to import."""


def room(path):
    """Name of the room of a module, or of the module itself if it is in no room."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def place(name):
    return next(i for i, rooms in enumerate(ORDER) if name in rooms)


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_names(node):
    """Full names that an import statement imports; none for any other node."""
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide where they point"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def imports(path):
    """Room of each module of this package that `path` imports, and whether a function does it."""
    tree = parse(path)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    guards = [n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n)]
    for_types = {id(node) for guard in guards for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.module != "gammagmm", "import from the module, not from the package"
        for name in imported_names(node):
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


def test_importing_the_package_and_its_rooms_imports_no_heavy_library():
    packages = [path.parent for path in MODULES if path.stem == "__init__"]
    names = [".".join(path.relative_to(SOURCE.parent).parts) for path in packages]
    done = run_python(f"import {', '.join(names)}", libraries=HEAVY | {"typer", "rich"})
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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_distributed_imports_dask(path):
    names = [name for node in ast.walk(parse(path)) for name in imported_names(node)]
    if any(name.partition(".")[0] in ("dask", "distributed") for name in names):
        assert room(path) == "distributed"


def test_gamma_gmm_inherits_from_no_other_class_of_this_package():
    modules = [c.__module__ for c in gammagmm.GammaGMM.__mro__]
    assert [m for m in modules if m.startswith("gammagmm")] == ["gammagmm.estimator.gamma_gmm"]


def sets_fitted_attributes(function):
    """Whether a method sets an attribute of `self` whose name ends with an underscore.

    ``setattr`` and changes of ``self.__dict__`` or ``vars(self)`` count for any attribute.
    """
    for node in ast.walk(function):
        words = ast.unparse(node) if isinstance(node, ast.Call) else ""
        if words.startswith(("setattr(self,", "object.__setattr__(self,", "self.__setattr__(")):
            return True
        if re.match(r"(self\.__dict__|vars\(self\))\.(update|setdefault|pop|clear|__)", words):
            return True
        is_set = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        if is_set and re.match(r"(self\.__dict__|vars\(self\))", ast.unparse(node)):
            return True
        if is_set and re.fullmatch(r"self\.(?!_)\w+_", ast.unparse(node)):
            return True
    return False


def test_the_search_for_fitted_attributes_finds_every_way_to_set_them():
    for line in (
        *("self.scores_ = 1", "self.scores_: int = 1", "self.n_ += 1", "del self.scores_"),
        *("self.a, (self.scores_, b) = x", "for self.scores_ in x: pass"),
        *("setattr(self, name, 1)", "object.__setattr__(self, name, 1)", "self.__dict__ = {}"),
        *("vars(self).update(x)", "self.__dict__.update(x)", "vars(self)['scores_'] = 1"),
    ):
        assert sets_fitted_attributes(ast.parse(line)), line
    for line in ("self.detectors = 1", "self._fit = 1", "x = self.scores_", "x = vars(self)"):
        assert not sets_fitted_attributes(ast.parse(line)), line


def test_one_method_of_gamma_gmm_sets_the_fitted_attributes():
    tree = parse(SOURCE / "estimator" / "gamma_gmm.py")
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [f.name for f in functions if sets_fitted_attributes(f)] == ["_keep"]


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


def test_no_test_imports_another_test_or_a_long_run():
    found = []
    for path in TESTS:
        names = [name for node in ast.walk(parse(path)) for name in imported_names(node)]
        for name in names:
            parts = name.split(".")
            is_test = any(part.startswith("test_") or part == "conftest" for part in parts)
            # Modules that tests share import no other part of tests.
            is_support = path.parent.name == "support" and parts[0] == "tests"
            if parts[0] == "stress" or is_test or (is_support and parts[1] != "support"):
                found.append(f"{path.relative_to(ROOT)} imports {name}")
    assert found == []


def test_deviations_are_marked_in_the_code_and_explained_in_the_docs():
    documented = (ROOT / "docs" / "explanations" / "deviations.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    explained = set(re.findall(r"^\| (D\d+) \|", documented, re.MULTILINE))
    assert set(re.findall(r"# Deviation (D\d+):", code)) == explained
