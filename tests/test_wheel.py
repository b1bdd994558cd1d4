"""The wheel and the source archive hold what they must, and work away from the checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import gammagmm

ROOT = Path(__file__).parents[1]


def run(*command, cwd):
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with the wheel and the source archive, as `make dist` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def python(built, tmp_path_factory):
    """Interpreter of a new environment: the wheel, and of the running one the other libraries.

    A folder named in a .pth file is searched last, and the .pth files in it, that of the checkout
    among them, are not read.
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


def test_the_wheel_holds_the_package_alone(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    version = gammagmm.__version__
    assert wheel.name == f"gammagmm-{version}-py3-none-any.whl"
    sources = {f"gammagmm/{path.name}" for path in (ROOT / "src" / "gammagmm").glob("*.py")}
    assert sources | {"gammagmm/py.typed"} == {n for n in names if n.startswith("gammagmm/")}
    described = {n.partition("/")[2] for n in names if n.startswith(f"gammagmm-{version}.dist")}
    assert described == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt"),
        "licenses/LICENSE",
    }


def test_the_source_archive_holds_what_the_tests_and_pages_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    for needed in (
        *("LICENSE", "README.md", "CHANGELOG.md", "Makefile", "constraints.txt", "mkdocs.yml"),
        *("pyproject.toml", "src/gammagmm/py.typed", "tests/test_wheel.py", "docs/index.md"),
        *("docs/images/steps.png", "examples/with_pyod.py", "experiments/table2.py"),
    ):
        assert needed in names
    assert not any("__pycache__" in name or name.startswith((".venv", "site/")) for name in names)


def test_the_installed_package_is_the_wheels(python, tmp_path):
    code = (
        "import gammagmm, importlib.metadata as m; print(gammagmm.__file__, m.version('gammagmm'))"
    )
    path, version = run(python, "-c", code, cwd=tmp_path).split()
    assert python.parents[1] in Path(path).parents
    assert version == gammagmm.__version__


# Slow: a new environment compiles the inner loops anew, some 20 s.
@pytest.mark.slow
def test_the_command_runs_the_demo(python, tmp_path):
    printed = run(python.with_name("gammagmm"), "demo", "--jobs", "1", cwd=tmp_path)
    assert printed.startswith("About ")
    assert "The truth, which the method did not see: 10 of 367 rows." in printed


@pytest.mark.slow
def test_the_readmes_first_example_runs(python, tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, _, after = re.split(r"^```python\n", readme, flags=re.MULTILINE)[1].partition("```\n")
    shown = re.search(r"```text\n(.*?)```", after, re.DOTALL)
    printed = run(python, "-c", code, cwd=tmp_path)
    assert "gammagmm" in code
    assert shown is None or printed == shown[1]
