"""Mutation run: which small changes of the mathematics do the tests notice?

    python -m stress.mutants --sample 1200 --workers 2
    python -m stress.mutants --sample 1200 --again --seconds 120   (the survivors, with more tests)

Each mutant of `stress.mutations` is tried with the tests that run its line, those of its own test
file first, up to `--seconds` of them; it needs the data of `stress.covered`, with the option
``--long`` of both if the tests of `make test-long` are to be tried as well. A worker imports the
package from a copy of the checkout, collects the tests once and forks for each mutant. The child
replaces the code of the changed function, in memory and in the copy, from where processes that a
test starts import it. Mutants of constants and of compiled functions are imported afresh instead.
A kill counts only if the same test passes without the mutant. Outcomes are kept in build/mutants,
so a run goes on where it was stopped; the figures go to stress/results/mutants.json.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from hashlib import sha1
from importlib import import_module
from inspect import CO_OPTIMIZED
from operator import itemgetter
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import CoverageData

from stress.covered import RAW, ROOT
from stress.mutations import Mutant, mutants_of

RESULTS = Path(__file__).parent / "results" / "mutants.json"
EQUIVALENT = Path(__file__).parent / "equivalent_mutants.toml"
OUTCOMES = ROOT / "build" / "mutants" / "outcomes.jsonl"
PACKAGE = Path("src/gammagmm")
ROOMS = ("mixture", "posterior", "labels")
FILES = ("detectors/usable.py", "report/findings.py")
COMPILED = b"@compiled("
COLLECTION = "collection"
PRELOADED = (
    *("scipy.stats", "scipy.optimize", "sklearn.cluster", "sklearn.ensemble", "sklearn.mixture"),
    *("pandas", "hypothesis", "numba", "joblib", "pyod.models.base", "matplotlib.pyplot"),
    *("torch", "dask.array", "dask.dataframe", "distributed"),
)
FATAL = (
    "posterior/link.py:n_anomalous_pmf: `np.append(1.0 - p_anomalous, 1.0)` -> "
    "`np.append(1.0 - p_anomalous, 0.0)`",
    "posterior/runs.py:RunSettings: `max_iter: int = 1500` -> `max_iter: int = 0`",
)
"""Mutants that must be killed, one for each way of trying them."""
MAX_MEMORY = 6 << 30
"""Bytes beyond those of the worker that a mutant may use."""
UNKNOWN_SECONDS = 0.5
"""Time of a test that was not there when the coverage was measured."""
START_SECONDS, HANG_SECONDS = 180.0, 30.0
"""Time for the collection, and for each test beyond ten times its usual time."""
PATIENCE = 4.0
"""How much longer than usual the tests of a mutant may take; the rest is then left out."""


def all_mutants() -> list[Mutant]:
    """The mutants of the named rooms and files, in the order of their files and lines."""
    folder = ROOT / PACKAGE
    paths = [path for room in ROOMS for path in sorted((folder / room).glob("*.py"))]
    paths += [folder / file for file in FILES]
    named = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]
    return [mutant for file, source in named for mutant in mutants_of(file, source)]


def choose(mutants: list[Mutant], n: int | None, seed: int) -> list[Mutant]:
    """All mutants, or `n` random ones with the same share of every file, in random order.

    A smaller sample is a part of a larger one, and changes elsewhere hardly change a sample.
    """
    by_file = defaultdict(list)
    for mutant in sorted(mutants, key=lambda mutant: sha1(f"{seed} {mutant.id}".encode()).digest()):
        by_file[mutant.file].append(mutant)
    ranked = [
        ((place + 0.5) / len(group), mutant)
        for group in by_file.values()
        for place, mutant in enumerate(group)
    ]
    return [mutant for _, mutant in sorted(ranked, key=itemgetter(0))][:n]


class Selection:
    """The tests for a mutant, from the lines that each test ran."""

    def __init__(self) -> None:
        self.seconds = json.loads((RAW / "seconds.json").read_text(encoding="utf-8"))
        # Read completely: a process that is forked later must not touch the file.
        data = CoverageData(str(RAW / "data"))
        data.read()
        paths = (path.relative_to(ROOT) for path in (ROOT / PACKAGE).rglob("*.py"))
        self.tests_by_line = {path: self.read(data, path) for path in paths}
        data.close()

    @staticmethod
    def read(data: CoverageData, path: Path) -> dict[int, set[str]]:
        """Tests that ran each line of a file, by the numbers of today's lines."""
        if not (RAW / path).is_file():
            return {}
        contexts = data.contexts_by_lineno(str(path))
        then, now = ((top / path).read_bytes().splitlines() for top in (RAW, ROOT))
        found = {}
        for a, b, size in SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks():
            for i in range(size):
                ran = contexts.get(a + i + 1, ())
                found[b + i + 1] = {sys.intern(context.partition("|")[0]) for context in ran} - {""}
        return found

    def estimate(self, test: str) -> float:
        return float(self.seconds.get(test, UNKNOWN_SECONDS))

    def ran(self, mutant: Mutant) -> set[str]:
        """Tests that run the statement or, if none does, lines with the name that it defines."""
        by_line = self.tests_by_line[PACKAGE / mutant.file]
        first, last = mutant.lines
        found = set().union(*(by_line.get(line, ()) for line in range(first, last + 1)))
        return found or self.tests_by_word(mutant.name)

    @cache  # noqa: B019
    def tests_by_word(self, word: str) -> set[str]:
        found: set[str] = set()
        for path, by_line in self.tests_by_line.items():
            for number, line in enumerate(
                (ROOT / path).read_text(encoding="utf-8").splitlines(), 1
            ):
                if re.search(rf"\b{word}\b", line):
                    found |= by_line.get(number, set())
        return found

    def choose(self, mutant: Mutant, known: dict[str, Any], seconds: float) -> list[str]:
        """Names of the tests, those of the mutant's own test file first."""
        room, _, name = mutant.file.rpartition("/")
        own = (f"tests/{room}/test_{name}", f"{PACKAGE}/{mutant.file}")
        ran = self.ran(mutant) & known.keys()
        ran = ran or {test for test in known if test.startswith((*own, f"tests/{room}/"))}
        ran |= {test for test in known if test.startswith(own) and test not in self.seconds}
        left, chosen, totals = seconds, set(), Counter[str]()
        for test in sorted(ran, key=lambda test: (not test.startswith(own), self.estimate(test))):
            if self.estimate(test) <= left:
                left -= self.estimate(test)
                chosen.add(test)
                totals[_file_of(test)] += self.estimate(test)
        # The tests of a file stay together, since they share fixtures; whatever is short first.
        return sorted(
            chosen,
            key=lambda t: (
                not t.startswith(own),
                totals[_file_of(t)],
                _file_of(t),
                self.estimate(t),
            ),
        )


def _file_of(test: str) -> str:
    return test.partition("::")[0]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    status: str  # "killed", "timeout" or "survived"
    test: str = ""  # that noticed


class Worker:
    """Tries mutants in a copy of the checkout; also a plugin of pytest."""

    def __init__(self, folder: Path, selection: Selection, options: argparse.Namespace) -> None:
        self.folder, self.selection, self.options = folder, selection, options
        self.queue: list[Mutant] = []
        self.tell: Callable[[str], None] | None = None  # in a child that runs tests
        self.items: dict[str, Any] = {}
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        self.passes: dict[str, bool] = {}  # without a mutant

    def work(self, mutants: list[Mutant]) -> None:
        self.enter()
        functions = {mutant: self.changed_functions(mutant) for mutant in mutants}
        self.queue = [mutant for mutant in mutants if functions[mutant] is not None]
        collected = self.folder / "tests.json"
        if (server := os.fork()) == 0:
            with _leaving():
                self.pytest(f"--ignore={collected}")
        os.waitpid(server, 0)
        self.items = dict.fromkeys(json.loads(collected.read_text(encoding="utf-8")))
        for mutant in mutants:
            if functions[mutant] is None:
                _store(mutant, self.try_mutant(mutant, self.run_afresh))

    def enter(self) -> None:
        """Work in the copy from here on; the package must not have been imported yet."""
        assert "gammagmm" not in sys.modules
        source = str(self.folder / "src")
        os.environ |= {
            "PYTHONPATH": source,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_XDIST_WORKER": "gw0",  # one thread
        }
        _set_compiled(str(self.folder / "numba"))
        os.chdir(self.folder)
        sys.path[:] = [source] + [path for path in sys.path if path not in ("", str(ROOT))]
        sys.dont_write_bytecode = True
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.reuse, Phase.generate]
        settings.register_profile("mutants", phases=phases, deadline=None, derandomize=True)
        settings.load_profile("mutants")

    def pytest(self, *tests: str) -> None:
        marked = "not slow and not browser" + ("" if self.options.long else " and not long")
        quiet = ["-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:cov"]
        base = f"--basetemp={self.folder / 'temporary'}"
        pytest.main([*quiet, base, "-m", marked, *tests], plugins=[self])

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Hook of pytest, after the collection."""
        import gammagmm

        assert Path(gammagmm.__file__).is_relative_to(self.folder)
        if self.tell is not None:
            self.run_items(session.items)
            return True
        self.items = {item.nodeid: item for item in session.items}
        (self.folder / "tests.json").write_text(json.dumps(list(self.items)), encoding="utf-8")
        for file in sorted({mutant.file for mutant in self.queue}):
            import_module(f"gammagmm.{file.removesuffix('.py').replace('/', '.')}")
        for found in gc.get_objects():
            if type(found) is FunctionType:  # isinstance would ask lazy objects
                self.functions[_place(found.__code__)].append(found)
        gc.freeze()
        for mutant in self.queue[:1]:
            same = replace(mutant, start=0, end=0, text="")
            assert self.try_mutant(same, self.run_swapped).status == "survived"
        for mutant in self.queue:
            _store(mutant, self.try_mutant(mutant, self.run_swapped))
        return True

    def changed_functions(self, mutant: Mutant) -> list[CodeType] | None:
        """Code of the functions that a mutant changes; None if it must be imported afresh."""
        path = self.folder / PACKAGE / mutant.file
        source = path.read_bytes()
        if COMPILED in source:
            return None
        return _differing(*(compile(s, path, "exec") for s in (source, mutant.apply(source))))

    def try_mutant(self, mutant: Mutant, run: Callable[..., Outcome]) -> Outcome:
        tests = self.selection.choose(mutant, self.items, self.options.seconds)
        while tests:
            outcome = self.with_change(mutant, run, tests)
            if outcome.status == "survived" or self.is_certain(mutant, outcome, tests, run):
                return outcome
            if outcome.test not in tests:
                raise RuntimeError(f"the tests cannot be collected without the mutant {mutant.id}")
            tests = [test for test in tests if test != outcome.test]
        return Outcome("survived")

    def is_certain(
        self, mutant: Mutant, outcome: Outcome, tests: list[str], run: Callable[..., Outcome]
    ) -> bool:
        """Whether the test passes without the mutant and, if it took too long, does so again."""
        test = outcome.test
        alone = [test] if test in tests else tests
        if test not in self.passes:
            self.passes[test] = run(alone).status == "survived"
        if outcome.status == "timeout" and self.passes[test]:
            return self.with_change(mutant, run, alone).status != "survived"
        return self.passes[test]

    def with_change(self, mutant: Mutant, run: Callable[..., Outcome], tests: list[str]) -> Outcome:
        path = self.folder / PACKAGE / mutant.file
        source, stat = path.read_bytes(), path.stat()
        changed = self.changed_functions(mutant)
        path.write_bytes(mutant.apply(source))
        try:
            return run(tests, changed)
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def run_swapped(self, tests: list[str], changed: list[CodeType] | None = None) -> Outcome:
        """Tests in a child of this process, with the code of the changed functions replaced."""

        def child() -> None:
            for code in changed or ():
                for function in self.functions[_place(code)]:
                    function.__code__ = code
            self.run_items([self.items[test] for test in tests])

        return self.watch(child)

    def run_afresh(self, tests: list[str], changed: Any = None) -> Outcome:
        """Tests in a child that imports the package and compiles its functions itself."""

        with tempfile.TemporaryDirectory() as compiled:

            def child() -> None:
                _set_compiled(compiled)
                self.pytest(*tests)

            return self.watch(child)

    def run_items(self, items: list[pytest.Item]) -> None:
        """Run tests up to the first that fails; the parent is told what happens."""
        session, tell, stop = items[0].session, self.tell, time.monotonic()
        if session.testsfailed:
            return tell(f"failed\t{COLLECTION}")
        stop += PATIENCE * self.options.seconds
        for item, following in zip(items, [*items[1:], None], strict=True):
            tell(f"begins\t{item.nodeid}")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return tell(f"failed\t{item.nodeid}")
            if time.monotonic() > stop:
                break
        return tell("passed\t")

    def watch(self, work: Callable[[], None]) -> Outcome:
        """What a child that does this `work` tells; it is ended if a test takes too long."""
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            with _leaving():
                os.setpgid(0, 0)
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + MAX_MEMORY,) * 2)
                self.tell = lambda line: os.write(writer, f"{line}\n".encode()) and None
                work()
        os.close(writer)
        try:
            return self.follow(reader)
        finally:
            os.close(reader)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def follow(self, reader: int) -> Outcome:
        test, limit, rest = COLLECTION, START_SECONDS, b""
        while select.select([reader], [], [], limit)[0]:
            told = os.read(reader, 65536)
            if not told:
                return Outcome("killed", test)  # the process died
            *lines, rest = (rest + told).split(b"\n")
            for line in lines:
                status, _, test = line.decode().partition("\t")
                if status != "begins":
                    return Outcome("killed" if status == "failed" else "survived", test)
                limit = HANG_SECONDS + 10.0 * self.selection.estimate(test)
        return Outcome("timeout", test)


@contextmanager
def _leaving() -> Iterator[None]:
    """Leave the process at the end, without the clean-up that belongs to its parent."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _set_compiled(folder: str) -> None:
    """Let Numba keep what it compiles in this folder, here and in processes that are started."""
    import numba

    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = folder


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _differing(old: CodeType, new: CodeType) -> list[CodeType] | None:
    """Functions of the new code that differ; None if a module or a class itself differs."""
    if new.co_flags & CO_OPTIMIZED:
        return [] if old == new else [new]
    parts = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    own = [[repr(c) for c in code.co_consts if not isinstance(c, CodeType)] for code in (old, new)]
    if own[0] != own[1] or old.co_code != new.co_code or old.co_names != new.co_names:
        return None
    found = [_differing(*pair) for pair in zip(*parts, strict=True)]
    return None if None in found else [code for part in found for code in part]


def _store(mutant: Mutant, outcome: Outcome) -> None:
    line = json.dumps({"id": mutant.id, "status": outcome.status, "test": outcome.test})
    with OUTCOMES.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def _stored() -> dict[str, Outcome]:
    """The last outcome of each mutant, by id."""
    if not OUTCOMES.is_file():
        return {}
    records = map(json.loads, OUTCOMES.read_text(encoding="utf-8").splitlines())
    return {record.pop("id"): Outcome(**record) for record in records}


def _equivalent() -> dict[str, str]:
    """Why a mutant changes nothing, by id."""
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))


def try_all(mutants: list[Mutant], options: argparse.Namespace) -> None:
    """Try the mutants, shared out to the workers."""
    if not mutants:
        return
    for name in PRELOADED:
        import_module(name)
    OUTCOMES.parent.mkdir(parents=True, exist_ok=True)
    selection, workers = Selection(), []
    with tempfile.TemporaryDirectory() as top:
        for number in range(options.workers):
            folder = Path(top).resolve() / f"worker-{number}"
            left_out = shutil.ignore_patterns(".*", "build", "cache", "site", "node_modules")
            shutil.copytree(ROOT, folder, ignore=left_out)
            compileall.compile_dir(folder / "src", quiet=2)
            if (worker := os.fork()) == 0:
                with _leaving(), OUTCOMES.with_name(f"log-{number}.txt").open("w") as log:
                    os.dup2(log.fileno(), 1)
                    os.dup2(log.fileno(), 2)
                    Worker(folder, selection, options).work(mutants[number :: options.workers])
            workers.append(worker)
        failed = [number for number, worker in enumerate(workers) if os.waitpid(worker, 0)[1]]
    if failed:
        raise SystemExit(f"Workers {failed} failed: see their logs in {OUTCOMES.parent}.")


def figures(mutants: list[Mutant], n_all: int) -> dict[str, Any]:
    """Counts by room and file, and every survivor with the reason if it is equivalent."""
    outcomes, reasons = _stored(), _equivalent()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for mutant in mutants:
        if mutant.id not in outcomes:
            continue
        status = outcomes[mutant.id].status
        if status == "survived":
            reason = reasons.get(mutant.id)
            status = "equivalent" if reason else status
            survivors.append({"id": mutant.id, "line": mutant.line, "equivalent": reason})
        for total in ("all", mutant.file.partition("/")[0], mutant.file):
            counts[total].update(["mutants", status])
    return {
        "mutants": n_all,
        "tried": counts["all"]["mutants"],
        "counts": {name: _with_score(count) for name, count in counts.items()},
        "survivors": survivors,
    }


def _with_score(count: Counter[str]) -> dict[str, float]:
    """The counts, and the shares killed of all and of those that are not equivalent."""
    killed = count["killed"] + count["timeout"]
    statuses = ("mutants", "killed", "timeout", "survived", "equivalent")
    others = max(count["mutants"] - count["equivalent"], 1)
    shares = {"score": killed / count["mutants"], "score_of_others": killed / others}
    return {name: count[name] for name in statuses} | {k: round(v, 4) for k, v in shares.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="mutants to try; all without it")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for a mutant")
    parser.add_argument("--long", action="store_true", help="with the tests of make test-long")
    parser.add_argument(
        "--again", action="store_true", help="try survivors again, unless they are equivalent"
    )
    parser.add_argument("--only", default="", help="mutants whose id starts so")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(arguments)
    mutants = all_mutants()
    chosen = choose(mutants, options.sample, options.seed)
    stored = _stored()
    done = stored.keys()
    if options.again:
        survivors = {i for i, outcome in stored.items() if outcome.status == "survived"}
        done = done - (survivors - _equivalent().keys())
    left = [m for m in chosen if m.id not in done and m.id.startswith(options.only)]
    try_all([m for m in mutants if m.id in FATAL and m.id not in done] + left, options)
    if any(_stored()[known].status == "survived" for known in FATAL):
        raise SystemExit(f"One of these must be killed, the driver is at fault: {FATAL}")
    found = figures(sorted(chosen, key=lambda m: (m.file, m.start)), len(mutants))
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(found["counts"]["all"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
