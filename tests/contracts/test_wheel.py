"""The wheel and the source archive are complete, and the wheel works outside the checkout."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import gammagmm

ROOT = Path(__file__).parents[2]
MAX_WHEEL = 1_000_000
"""Bytes that the wheel may have; it had 395,750 in version 0.2."""


def run(*command, cwd):
    # A PYTHONPATH would let the checkout take the place of the installed wheel.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with the wheel and the source archive, built as by `make dist`."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """Interpreter of a new environment with the wheel and the libraries of the running one.

    Python searches a folder that a .pth file names last, and does not read the .pth files in it, so
    the editable installation of the checkout is not found.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    made = Path(sysconfig.get_path("scripts", "venv", paths)) / Path(sys.executable).name
    wheel = next(built.glob("*.whl"))
    pip = (sys.executable, "-m", "pip", "--python", made, "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", "--ignore-installed", wheel, cwd=folder)
    return made


def test_the_wheel_holds_only_the_package(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    version = gammagmm.__version__
    assert wheel.name == f"gammagmm-{version}-py3-none-any.whl"
    folder = ROOT / "src" / "gammagmm"
    files = (path for path in folder.rglob("*") if path.is_file())
    sources = {path.relative_to(folder.parent).as_posix() for path in files}
    sources = {name for name in sources if "__pycache__" not in name}
    assert "gammagmm/py.typed" in sources
    assert {name for name in names if name.startswith("gammagmm/")} == sources
    described = {n.partition("/")[2] for n in names if n.startswith(f"gammagmm-{version}.dist")}
    assert described == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt"),
        "licenses/LICENSE",
    }


def test_the_wheel_is_small(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < MAX_WHEEL


def test_the_readme_on_pypi_has_whole_addresses_of_files_and_pages_that_exist(built):
    (wheel,) = built.glob("*.whl")
    version = gammagmm.__version__
    metadata_file = f"gammagmm-{version}.dist-info/METADATA"
    text = zipfile.ZipFile(wheel).read(metadata_file).decode("utf-8")
    assert "\nDescription-Content-Type: text/markdown\n" in text
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    addresses = re.findall(r"\]\(([^)]+)\)", text)
    assert len(addresses) == len(re.findall(r"\]\(([^)]+)\)", readme)) > 10
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["site_url"]
    for address in addresses:
        assert address.startswith("https://"), address
        if place := re.match(rf"https://[\w./]+?/v{re.escape(version)}/([^#]+)", address):
            assert (ROOT / place[1]).exists(), address
            assert not re.match(r"docs/.*\.md", place[1]), address
        if page := re.match(rf"{re.escape(site)}([^#]+)\.html", address):
            assert (ROOT / "docs" / f"{page[1]}.md").exists(), address


def test_the_source_archive_holds_what_the_tests_and_pages_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    for needed in (
        *("LICENSE", "README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "zensical.toml"),
        *("constraints.txt", "constraints-oldest.txt", "conftest.py", "docs/index.md"),
        *("CITATION.cff", "codemeta.json", "recipe/recipe.yaml", ".github/workflows/tests.yml"),
        *("src/gammagmm/py.typed", "tests/contracts/test_wheel.py", "tests/support/good_files.py"),
        *("docs/images/steps.png", "examples/with_pyod.py", "experiments/run.py"),
    ):
        assert needed in names
    assert not any("__pycache__" in name or name.startswith((".venv", "site/")) for name in names)


def test_the_installed_package_comes_from_the_wheel(python, tmp_path):
    code = (
        "import gammagmm, importlib.metadata as m; print(gammagmm.__file__, m.version('gammagmm'))"
    )
    path, version = run(python, "-c", code, cwd=tmp_path).split()
    assert python.parents[1] in Path(path).parents
    assert version == gammagmm.__version__


def test_what_the_package_imports_is_declared():
    """Each library that the source imports is required, or belongs to an extra.

    The exceptions are pandas, which an error asks for where it is missing, and IPython, which is
    only used if a notebook has loaded it.
    """
    requirements = metadata.requires("gammagmm")
    declared = {re.match(r"[\w-]+", line)[0].lower().replace("_", "-") for line in requirements}
    declared |= {"pandas", "ipython"}
    by_module = metadata.packages_distributions()
    for path in (ROOT / "src" / "gammagmm").rglob("*.py"):
        for module in imported(path) - sys.stdlib_module_names - {"gammagmm"}:
            found = by_module.get(module, [module])  # or an extra that is not installed
            names = {name.lower().replace("_", "-") for name in found}
            assert names & declared, f"{path.name} imports {module}"


def claimed_minima():
    """Lowest versions, by name, of the required libraries, the extras and of data frames."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    extras = project["optional-dependencies"]
    runtime = [extras[name] for name in ("deep", "data", "excel", "dask", "arviz", "experiments")]
    tools = pyproject["dependency-groups"]["test"]
    frames = [line for line in tools if line.startswith(("duckdb", "pandas", "polars"))]
    lines = [*project["dependencies"], *chain.from_iterable(runtime), *frames]
    found = {}
    for requirement in map(Requirement, lines):
        (bound,) = requirement.specifier
        assert bound.operator == ">="
        found.setdefault(requirement.name, set()).add(Version(bound.version))
    return found


def test_the_oldest_versions_are_the_minima():
    """`make test-oldest` installs the lowest versions that pyproject.toml allows."""
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    pins = {name: {Version(pin)} for name, pin in re.findall(r"^([\w.-]+)==(\S+)$", text, re.M)}
    minima = claimed_minima()
    assert len(minima) == 23
    minima.pop("torch")  # pinned to the version with a CPU build; the file explains it
    assert minima == {name: pins[name] for name in minima}


def imported(path):
    """Top-level names of the modules that the file imports, at the top and in functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    return found


def readme_example():
    """The last block of code of the README, and a line that prints its result."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    *_, code = re.findall(r"^```python\n(.*?)^```\n", readme, re.DOTALL | re.MULTILINE)
    return code + "\nprint(knn.labels_.sum(), knn.contamination.posterior)\n"


WITH_PROGRESS = """
import sys
from gammagmm import GammaGMM
from gammagmm.datasets import load_demo

sys.stderr = sys.stdout
for preset in ("classic", "fast"):
    GammaGMM(preset, n_runs=2, max_restarts=2, random_state=0, progress=True).fit(load_demo().X)
"""


def check_installed(python, folder):
    """Run the demo of the command, the last example of the README and fits with progress."""
    printed = run(python.with_name("gammagmm"), "demo", "--jobs", "1", cwd=folder)
    assert " of 367 rows are flagged." in printed.splitlines()[1]
    assert (
        "By the known labels, which the method did not use, 10 of 367 rows are anomalies."
        in printed
    )
    printed = run(python, "-c", readme_example(), cwd=folder)
    assert re.fullmatch(r"\d+ GammaPosterior\(mean=0\.\d+, 90% interval .*\)\n", printed)
    printed = run(python, "-W", "ignore", "-c", WITH_PROGRESS, cwd=folder)
    assert re.search(r"^fit 8/10: \w+ ok, .*^fit 6/8: \w+ ok, ", printed, re.M | re.S)
    # Both fits end with a run; new starts of a run come last.
    assert set(re.findall(r"^fit (10/10|8/8): run ", printed, re.M)) == {"10/10", "8/8"}


@pytest.mark.long
def test_the_wheel_runs_the_demo_and_the_readmes_example(python, tmp_path):
    check_installed(python, tmp_path)


# Slow: every library is installed again.
@pytest.mark.slow
def test_an_empty_environment_gets_every_library(built, tmp_path):
    venv.create(tmp_path / "environment", with_pip=True)
    paths = {"base": str(tmp_path / "environment"), "platbase": str(tmp_path / "environment")}
    python = Path(sysconfig.get_path("scripts", "venv", paths)) / Path(sys.executable).name
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    run(*pip, next(built.glob("*.whl")), "--constraint", ROOT / "constraints.txt", cwd=tmp_path)
    check_installed(python, tmp_path)


# Slow: every library is installed again.
@pytest.mark.slow
def test_the_source_archive_installs_and_its_tests_start(built, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    venv.create(tmp_path / "environment", with_pip=True)
    paths = {"base": str(tmp_path / "environment"), "platbase": str(tmp_path / "environment")}
    python = Path(sysconfig.get_path("scripts", "venv", paths)) / Path(sys.executable).name
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    run(
        *pip,
        archive,
        "pytest",
        "hypothesis",
        "--constraint",
        ROOT / "constraints.txt",
        cwd=tmp_path,
    )
    started = run(
        python, "-m", "pytest", "-q", "tests/contracts/test_stored_results.py", cwd=folder
    )
    assert re.search(r"^\d+ passed", started, re.MULTILINE)
