"""Size of the package in one or more checkouts: code, estimator, command, modules executed, tests.

    python benchmarks/size.py                         this checkout
    python benchmarks/size.py BEFORE AFTER            two checkouts side by side
    python benchmarks/size.py before.json AFTER       one of them measured earlier

Prints a Markdown table and the figures as JSON; --out also writes the figures of the last checkout
to a file. Whatever has to run does so in a new process of this Python, with the src of the checkout
in PYTHONPATH, so one environment serves all checkouts.

How it counts:

- Code lines have a token that is neither a comment nor part of a docstring. Every string that is a
  statement by itself is a docstring.
- A room is a subpackage. Attributes of GammaGMM are the names ending in _ that a fitted estimator
  has, as variables or as properties, and those that its docstring lists.
- A place of an option is a command that has it. --help and the options before the command do not
  count, and options that the help does not show are counted apart.
- A module is executed if one of its functions is called while no module of the package is being
  imported (sys.setprofile, all threads). `fit` is ``from gammagmm import GammaGMM`` and a fit with
  KNN, LOF and HBOS of the demonstration rows, which were loaded before: their module does not
  count. `estimate --report` is the command in the process that does the work, for the rows of the
  same data as CSV with an id and known labels, which it leaves out.
- A test function is one named test_*; a case is what pytest collects, doctests included.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
PACKAGE = "gammagmm"
DETECTORS = ["KNN", "LOF", "HBOS"]
BETWEEN = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
"""Tokens that do not make a line of code."""

DEFAULT_MARKER = "_GAMMAGMM_SUPERVISED"
ROUTING = r"set_\w+_request$"
"""Methods that scikit-learn adds to each class for the routing of metadata."""

MARKS = ("slow", "browser", "long")
"""Marks of tests that `make quick` leaves out."""


def code_lines(text: str) -> int:
    """Lines of code without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BETWEEN:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def sources(checkout: Path) -> dict[str, Any]:
    """Files, lines and code lines of the package, in all and by room."""
    package = checkout / "src" / PACKAGE
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        room = path.relative_to(package).parts[0] if path.parent != package else "(top)"
        figures = {"files": 1, "lines": len(text.splitlines()), "code_lines": code_lines(text)}
        rooms.setdefault(room, Counter()).update(figures)
    in_all = sum(rooms.values(), Counter())
    others = [path for path in package.rglob("*") if path.is_file() and not is_python(path)]
    return {
        **in_all,
        "other_files": len(others),
        "n_rooms": len(rooms) - ("(top)" in rooms),
        "rooms": {room: dict(figures) for room, figures in rooms.items()},
    }


def is_python(path: Path) -> bool:
    """Whether a file is a module, or the bytecode of one."""
    return path.suffix in {".py", ".pyc", ".nbi", ".nbc"}


def estimator(_: Path) -> dict[str, Any]:
    """Parameters, public methods and fitted attributes of GammaGMM, by name."""
    from gammagmm import GammaGMM

    fitted = GammaGMM(DETECTORS, n_runs=2, random_state=0).fit(demo_frame())
    own, inherited = public_methods(GammaGMM)
    names = {name for name in vars(fitted) if is_fitted_name(name)}
    for name in filter(is_fitted_name, dir(GammaGMM)):
        with contextlib.suppress(AttributeError):
            getattr(fitted, name)
            names.add(name)
    text = inspect.getdoc(GammaGMM) or ""
    listed = re.search(r"^Attributes\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    documented = re.findall(r"^(\w+_) :", listed[1], re.MULTILINE) if listed else []
    return {
        "parameters": sorted(GammaGMM._get_param_names()),
        "methods": own,
        "inherited_methods": inherited,
        "attributes": sorted(names),
        "documented_attributes": sorted(documented),
    }


def public_methods(cls: type) -> tuple[list[str], list[str]]:
    """Names of the public methods that the package defines, and of those that it inherits."""
    found: tuple[list[str], list[str]] = [], []
    for name in sorted(dir(cls)):
        home = next((base for base in cls.__mro__ if name in vars(base)), cls)
        if not name.startswith("_") and callable(getattr(cls, name, None)):
            is_ours = home.__module__.startswith(PACKAGE) and not re.match(ROUTING, name)
            found[not is_ours].append(name)
    return found


def is_fitted_name(name: str) -> bool:
    """Whether an attribute has the name of a public fitted one.

    >>> is_fitted_name("scores_"), is_fitted_name("_scores_"), is_fitted_name("scores")
    (True, False, False)
    """
    return name.endswith("_") and not name.startswith("_")


def demo_frame() -> Any:
    """The demonstration rows as a data frame, whose columns have names."""
    import pandas as pd

    from gammagmm.datasets import load_demo

    dataset = load_demo()
    return pd.DataFrame(dataset.X, columns=list(dataset.feature_names))


def command(_: Path) -> dict[str, Any]:
    """Options and arguments of each command, and the number of places where options stand."""
    from typer.main import get_command

    app = importlib.import_module(f"{PACKAGE}.cli.main").app
    shown: dict[str, list[str]] = {}
    hidden: dict[str, list[str]] = {}
    arguments: dict[str, list[str]] = {}
    for name, each in commands_of(get_command(app)):
        shown[name], hidden[name], arguments[name] = [], [], []
        for parameter in each.params:
            spelled = max(parameter.opts, key=len)
            if parameter.param_type_name == "argument":
                arguments[name].append(str(parameter.name))
            elif spelled != "--help":
                (hidden if parameter.hidden else shown)[name].append(spelled)
    return {
        "commands": list(shown),
        "options": sorted(set().union(*shown.values())),
        "places": sum(map(len, shown.values())),
        "hidden_options": sorted(set().union(*hidden.values())),
        "hidden_places": sum(map(len, hidden.values())),
        "options_of": shown,
        "arguments_of": arguments,
    }


def commands_of(tree: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    """The commands below a command of Click, each with its words, groups of commands left out."""
    for name, each in tree.commands.items():
        if hasattr(each, "commands"):
            yield from commands_of(each, f"{words}{name} ")
        else:
            yield words + name, each


class Executed:
    """The modules of the package of which a function is called inside the context, in all threads.

    A module body and a class body are no functions, and calls while a module is imported, by
    decorators for example, do not count.
    """

    def __init__(self, checkout: Path) -> None:
        self._folder = str(checkout / "src" / PACKAGE) + os.sep
        self.modules: set[str] = set()

    def __enter__(self) -> Self:
        threading.setprofile(self._watch)
        sys.setprofile(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _watch(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(self._folder):
            return
        module = name.removeprefix(self._folder).removesuffix(".py").replace(os.sep, ".")
        if module not in self.modules and self._is_executed(frame):
            self.modules.add(module)

    def _is_executed(self, frame: FrameType) -> bool:
        """Whether the frame is that of a function that no module body has called."""
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return False
        caller = frame.f_back
        while caller is not None:
            code = caller.f_code
            if code.co_name == "<module>" and code.co_filename.startswith(self._folder):
                return False
            caller = caller.f_back
        return True

    def found(self) -> dict[str, Any]:
        """The names of the modules that were executed, and of all that the process has."""
        imported = [name for name in sys.modules if f"{name}.".startswith(f"{PACKAGE}.")]
        return {"executed": sorted(self.modules), "imported": sorted(imported)}


def modules_of_fit(checkout: Path) -> dict[str, Any]:
    """The modules that the import of the class and a fit execute."""
    from gammagmm.datasets import load_demo

    X = load_demo().X
    with Executed(checkout) as seen:
        from gammagmm import GammaGMM

        GammaGMM(DETECTORS, n_runs=2).fit(X)
    return seen.found()


def modules_of_estimate(checkout: Path) -> dict[str, Any]:
    """The modules that `estimate --report` executes in the process that does the work."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_table(Path("rows.csv"))
        os.environ |= {supervisor_marker(checkout): "1", "PYTHONSAFEPATH": "1"}
        sys.argv = [PACKAGE, "estimate", "rows.csv", "--report", "report.html"]
        with contextlib.redirect_stdout(io.StringIO()), Executed(checkout) as seen:
            try:
                importlib.import_module(f"{PACKAGE}.cli.main").main()
            except SystemExit as end:
                code = end.code
        if code or not Path("report.html").stat().st_size:
            raise RuntimeError(f"estimate ended with the code {code}.")
    return seen.found()


def write_table(path: Path) -> None:
    """The rows of scikit-learn's breast-cancer data, with an id and known labels.

    They are not those of `load_demo`, whose module would be executed.
    """
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [name.replace(" ", "_") for name in bunch.feature_names]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["order_id", *names, "is_fraud"])
        for i in range(len(bunch.data)):
            if bunch.target[i] or i % 20 == 0:
                writer.writerow([1000 + i, *map(float, bunch.data[i]), 1 - int(bunch.target[i])])


def supervisor_marker(checkout: Path) -> str:
    """The variable that tells the command that this process does the work."""
    for source in sorted((checkout / "src" / PACKAGE / "cli").glob("*.py")):
        found = re.search(r'^MARKER = "(\w+)"', source.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1]
    return DEFAULT_MARKER


def tests(checkout: Path) -> dict[str, Any]:
    """Test functions and collected cases, by folder of tests/ and in all; doctests of src apart."""
    import pytest

    class Collected:
        items: tuple[Any, ...] = ()

        def pytest_collection_finish(self, session: Any) -> None:
            self.items = tuple(session.items)

    folder = checkout / "tests"
    functions = Counter[str]()
    for path in folder.rglob("*.py"):
        functions[place_of(path.relative_to(checkout))] += n_test_functions(path)
    seen = Collected()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        options = ["--collect-only", "-q", "-p", "no:cacheprovider"]
        code = pytest.main(options, plugins=[seen])
    if code:
        raise RuntimeError(f"pytest could not collect the tests:\n{said.getvalue()[-3000:]}")
    cases = Counter(place_of(item.path.relative_to(checkout)) for item in seen.items)
    marks = Counter(next(filter(item.get_closest_marker, MARKS), "quick") for item in seen.items)
    return {
        "functions": sum(functions.values()),
        "cases": len(seen.items),
        "files": len(list(folder.rglob("test_*.py"))),
        "lines": sum(len(p.read_text(encoding="utf-8").splitlines()) for p in folder.rglob("*.py")),
        "cases_by_mark": dict(sorted(marks.items())),
        "functions_by_folder": dict(sorted((+functions).items())),
        "cases_by_folder": dict(sorted(cases.items())),
        "cases_by_file": dict(
            sorted(Counter(item.nodeid.partition("::")[0] for item in seen.items).items())
        ),
    }


def place_of(path: Path) -> str:
    """The folder of tests/ with the file of this path in the checkout.

    >>> place_of(Path("tests/cli/test_main.py")), place_of(Path("src/gammagmm/errors.py"))
    ('cli', 'src (doctests)')
    """
    if path.parts[0] == "tests":
        return path.parts[1] if len(path.parts) > 2 else "(top)"
    return f"{path.parts[0]} (doctests)"


def n_test_functions(path: Path) -> int:
    """Number of functions named test_* in a module, in its classes as well."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for node in ast.walk(tree)
    )


IN_NEW_PROCESS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "estimator": estimator,
    "command": command,
    "fit": modules_of_fit,
    "estimate --report": modules_of_estimate,
    "tests": tests,
}


def measured(checkout: Path) -> dict[str, Any]:
    """All figures of a checkout."""
    git = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=7"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    figures = {"commit": done.stdout.strip(), "sources": sources(checkout)}
    for part in IN_NEW_PROCESS:
        print(f"{checkout}: {part}", file=sys.stderr, flush=True)
        figures[part] = in_new_process(checkout, part)
    return figures


def in_new_process(checkout: Path, part: str) -> dict[str, Any]:
    """What one part finds in a process of its own."""
    added = {"PYTHONPATH": str(checkout / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    own = {name: value for name, value in os.environ.items() if not name.startswith("_GAMMA")}
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        program = [sys.executable, "-P", "-W", "ignore", str(Path(__file__).resolve())]
        done = subprocess.run(
            [*program, str(checkout), "--part", part, "--out", str(answer)],
            cwd=checkout,
            env=own | added,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{part} of {checkout} failed:\n{done.stdout}{done.stderr}")
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def table_rows(figures: dict[str, Any]) -> dict[str, int]:
    """The lines of the table: what is counted, and the number."""
    package, facade, cli = figures["sources"], figures["estimator"], figures["command"]
    rows = {
        "files in src": package["files"],
        "lines": package["lines"],
        "code lines": package["code_lines"],
        "other files": package["other_files"],
        "rooms": package["n_rooms"],
        "parameters of GammaGMM": len(facade["parameters"]),
        "public methods, own": len(facade["methods"]),
        "public methods, inherited": len(facade["inherited_methods"]),
        "fitted attributes": len(facade["attributes"]),
        "fitted attributes, documented": len(facade["documented_attributes"]),
        "commands": len(cli["commands"]),
        "options": len(cli["options"]),
        "places of options": cli["places"],
        "hidden options": len(cli["hidden_options"]),
        "places of hidden options": cli["hidden_places"],
    }
    for part in IN_NEW_PROCESS:
        if "executed" in figures[part]:
            rows[f"modules executed: {part}"] = len(figures[part]["executed"])
            rows[f"modules imported: {part}"] = len(figures[part]["imported"])
    names = ("files", "lines", "functions", "cases")
    rows |= {f"tests, {name}": figures["tests"][name] for name in names}
    for mark, number in figures["tests"]["cases_by_mark"].items():
        rows[f"tests, cases {mark}"] = number
    return rows


def folder_rows(figures: dict[str, Any]) -> dict[str, str]:
    """Files and code lines of each room."""
    rooms = figures["sources"]["rooms"]
    return {f"{room}/": f"{each['files']} / {each['code_lines']:,}" for room, each in rooms.items()}


def test_rows(figures: dict[str, Any]) -> dict[str, str]:
    """Test functions and collected cases of each folder."""
    functions, cases = (figures["tests"][f"{what}_by_folder"] for what in ("functions", "cases"))
    return {
        folder: f"{functions.get(folder, 0):,} / {cases.get(folder, 0):,}"
        for folder in sorted(functions.keys() | cases.keys())
    }


def markdown(heading: str, columns: list[str], rows: list[dict[str, Any]]) -> str:
    """A table with a line for each name in any of the `rows` and a column for each of them."""
    lines = [f"| {heading} | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for name in dict.fromkeys(name for each in rows for name in each):
        cells = [each.get(name, "") for each in rows]
        shown = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def report(measurements: list[dict[str, Any]]) -> str:
    """The three tables."""
    columns = [each["commit"] or "?" for each in measurements]
    kinds: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "what": table_rows,
        "room: files / code lines": folder_rows,
        "tests: functions / cases": test_rows,
    }
    return "\n\n".join(
        markdown(heading, columns, [make(each) for each in measurements])
        for heading, make in kinds.items()
    )


def main() -> None:
    """Measure the checkouts, or one part of one checkout in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT], metavar="CHECKOUT")
    parser.add_argument("--out", type=Path, help="file for the figures of the last checkout")
    parser.add_argument("--part", choices=IN_NEW_PROCESS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    paths = [path.resolve() for path in given.checkouts]
    if given.part:
        home = Path(str(importlib.import_module(PACKAGE).__file__)).resolve()
        if not home.is_relative_to(paths[0] / "src"):
            raise RuntimeError(f"{home} is not the package of {paths[0]}.")
        given.out.write_text(json.dumps(IN_NEW_PROCESS[given.part](paths[0])), encoding="utf-8")
        return
    measurements = [
        json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else measured(path)
        for path in paths
    ]
    print(report(measurements))
    text = json.dumps(measurements[-1], indent=1)
    print(f"\n{text}")
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
