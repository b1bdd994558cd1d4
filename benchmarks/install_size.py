"""Size of an installation of the wheel without extras, in a new environment.

    python benchmarks/install_size.py

The environment has the versions in constraints.txt, and neither pip nor setuptools. A trial takes
the libraries of the running environment. Writes benchmarks/results/install_size.json.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from timing import ROOT, measure

PACKAGE, ENGINE = "gammagmm", "pyod"


def needed(name, installed: dict[str, Distribution]):
    """Names of the distribution `name` and of all that it requires without extras."""
    found, waiting = set(), [name]
    while waiting:
        if (name := waiting.pop()) in found:
            continue
        found.add(name)
        for requirement in map(Requirement, installed[name].requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return found


def sizes(folder):
    """Megabytes of the package and of each library that it needs, in a folder of libraries."""
    installed = {canonicalize_name(one.name): one for one in distributions(path=[str(folder)])}
    of_engine = needed(ENGINE, installed)
    found = []
    for name in needed(PACKAGE, installed):
        paths = [Path(each.locate()) for each in installed[name].files]
        files = {path: path.stat().st_size for path in paths if path.is_file()}
        compiled = [size for path, size in files.items() if path.suffix == ".pyc"]
        found.append(
            {
                "name": name,
                "version": installed[name].version,
                "megabytes": sum(files.values()) / 1e6,
                "bytecode_megabytes": sum(compiled) / 1e6,
                "by_pyod": name in of_engine,
            }
        )
    return sorted(found, key=lambda one: -one["megabytes"])


def run(*command):
    subprocess.run([*map(str, command)], cwd=ROOT, check=True, capture_output=True)


def install_size(quick):
    """The wheel, and what an installation of it consists of."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
        (wheel,) = folder.glob("*.whl")
        if quick:
            found = sizes(sysconfig.get_path("purelib"))
        else:
            venv.create(folder / "environment", with_pip=False)
            paths = {"base": str(folder / "environment"), "platbase": str(folder / "environment")}
            scripts, site = (sysconfig.get_path(x, "venv", paths) for x in ("scripts", "purelib"))
            python = Path(scripts) / Path(sys.executable).name
            pip = (sys.executable, "-m", "pip", "--quiet", "--python", python, "install")
            run(*pip, wheel, "--constraint", "constraints.txt")
            found = sizes(site)
        return {"wheel_megabytes": wheel.stat().st_size / 1e6, "libraries": found}


if __name__ == "__main__":
    measure(__doc__, {"install_size": install_size})
