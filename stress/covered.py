"""Coverage of src/ by the tests of `make test`: lines, branches, and which test runs which line.

    python -m stress.covered            (the tests of `make test`)
    python -m stress.covered --long     (those of `make test-long`, added to the former)

The processes that tests start are measured as well. Functions that Numba compiles cannot be
traced, so they are counted apart; tests compare their values. The figures go to
stress/results/coverage.json; the raw data and the time of each test, which `stress.mutants` reads,
to build/coverage.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import sys
import tomllib
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "coverage.json"
UNCOVERED = Path(__file__).parent / "uncovered.toml"
RAW = ROOT / "build" / "coverage"
"""The data of coverage.py with the tests as contexts, the time of each test, and the sources."""
QUICK, LONG = "not slow and not browser and not long", "long and not slow and not browser"


class Seconds:
    """Plugin of pytest that adds up the time of each test."""

    def __init__(self) -> None:
        self.of_test: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.of_test[report.nodeid] += report.duration


def measure(is_long: bool, n_workers: int) -> int:
    """Run the tests; returns the exit code of pytest."""
    shutil.copytree(ROOT / "src", RAW / "src", dirs_exist_ok=True)  # the lines of the data
    seconds, path, stored = Seconds(), RAW / "seconds.json", RAW / "data"
    if is_long:
        seconds.of_test.update(json.loads(path.read_text(encoding="utf-8")))
        shutil.copy(stored, ROOT / ".coverage")
    workers = ["-n", str(n_workers), "--dist", "worksteal"]
    cov = ["--cov=gammagmm", "--cov-branch", "--cov-context=test", "--cov-report="]
    cov += ["--cov-append"] if is_long else []
    marked = ["-m", LONG if is_long else QUICK]
    code = pytest.main(["-q", *marked, *workers, *cov], plugins=[seconds])
    (ROOT / ".coverage").replace(stored)
    path.write_text(json.dumps(seconds.of_test, indent=0), encoding="utf-8")
    return int(code)


def figures() -> dict[str, Any]:
    """Shares of the lines and branches that ran, and what did not, by file and function."""
    report = RAW / "report.json"
    coverage = Coverage(data_file=str(RAW / "data"))
    coverage.load()
    coverage.json_report(outfile=str(report))
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    missing, compiled = {}, {}
    reasons = tomllib.loads(UNCOVERED.read_text(encoding="utf-8"))
    for path, found in sorted(files.items()):
        name = Path(path).relative_to("src/gammagmm")
        room = name.parts[0] if len(name.parts) > 1 else "gammagmm"
        untraced = _compiled_functions(RAW / path)
        if untraced:
            compiled[name.as_posix()] = untraced
        traced = {k: v for k, v in found["functions"].items() if k not in untraced}
        for part, total in product(traced.values(), ("all", room)):
            counts[total].update(part["summary"])
        for function, gap in _gaps(traced).items():
            place = f"{name.as_posix()}:{function}"
            why = (reason for start, reason in reasons.items() if place.startswith(start))
            missing[place] = gap | {"why": next(why, "no test of make test")}
    return {
        "shares": {room: _shares(count) for room, count in counts.items()},
        "compiled": compiled,
        "missing": missing,
    }


def _compiled_functions(path: Path) -> list[str]:
    """Functions of a file that Numba compiles."""
    return [
        node.name
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator).startswith("compiled") for decorator in node.decorator_list)
    ]


def _shares(count: Counter[str]) -> dict[str, Any]:
    lines, branches = count["num_statements"], count["num_branches"]
    return {
        "lines": lines,
        "lines_covered": round(count["covered_lines"] / max(lines, 1), 4),
        "branches": branches,
        "branches_covered": round(count["covered_branches"] / max(branches, 1), 4),
    }


def _gaps(functions: dict[str, Any]) -> dict[str, Any]:
    """Lines and branches of each function that no test ran; branches are (from, to)."""
    gaps = {}
    for function, part in functions.items():
        lines, branches = part["missing_lines"], part["missing_branches"]
        # Branches from lines that did not run say nothing more.
        branches = [pair for pair in branches if pair[0] not in lines]
        if lines or branches:
            gaps[function or "module"] = {"lines": lines, "branches": branches}
    return gaps


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--long", action="store_true", help="add the tests of make test-long")
    parser.add_argument("--report-only", action="store_true", help="read the data of the last run")
    options = parser.parse_args(arguments)
    code = 0 if options.report_only else measure(options.long, options.workers)
    found = figures()
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["shares"], indent=1))
    return code


if __name__ == "__main__":
    sys.exit(main())
