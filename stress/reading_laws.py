"""One file through its reader: accepted, refused with a typed error, or a fault of ours."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from gammagmm.cli.sheet import read_sheet
from gammagmm.datasets import read_dami_arff, read_npz
from gammagmm.errors import MissingExtraError, SavedFileError, TableError
from gammagmm.estimator.summary import FitSummary
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.readers.prepare import Choices, prepare
from gammagmm.readers.registry import read_raw
from stress.mutations import make_input
from stress.seeds import CANARY, MAKERS, ORIGIN, TABLE

TYPED = (TableError, SavedFileError, MissingExtraError)
MAX_PEAK_BYTES = 1_000_000_000
"""Of memory, for a file of at most 200 kB."""
MAX_MESSAGE = 2_000
FORBIDDEN = re.compile(r"pickle\.find_class|os\.(system|exec|spawn|posix_spawn)|subprocess|socket")
OWN_FOLDERS = (sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[1]))
SUFFIXES = {"posterior": "json", "summary": "json", "sheet": "csv"}


class BrokenLawError(Exception):
    """A file was read, but something happened that must not."""


@dataclass(frozen=True)
class Outcome:
    """What became of one input."""

    word: str  # accepted, refused, failed
    fault: str = ""  # where it failed: the exception and the function, the same for like faults
    detail: str = ""
    seconds: float = 0.0
    peak: int = 0  # bytes of memory beyond the most that were held before


class Watch:
    """What is opened and run while a file is read, by Python's audit events."""

    def __init__(self) -> None:
        self.path, self.seen = "", list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_bad = FORBIDDEN.match(event) or (event == "open" and self._is_foreign(arguments))
        if self.path and is_bad:
            self.seen.append(f"{event} {arguments[:2]!r}"[:200])

    def _is_foreign(self, arguments: tuple[Any, ...]) -> bool:
        name = arguments[0]
        return isinstance(name, str) and name != self.path and not name.startswith(OWN_FOLDERS)


def examine(kind: str, content: bytes, watch: Watch) -> Outcome:
    """Read `content` as a file of this kind, in the working directory."""
    suffix = SUFFIXES.get(kind, kind.removeprefix("benchmark-"))
    path = Path.cwd() / f"t.{suffix}"
    path.write_bytes(content)
    before, start = _peak_memory(), time.perf_counter()
    watch.path, watch.seen = str(path), []
    try:
        READERS.get(kind, _read_table)(path)
        word, fault, detail = "accepted", "", ""
    except TYPED as error:
        word, fault, detail = "refused", "", str(error)
    except Exception as error:
        word, fault, detail = "failed", _signature(error), traceback.format_exc(limit=-4)[-1500:]
    finally:
        watch.path = ""
    seconds, peak = time.perf_counter() - start, _peak_memory() - before
    if broken := _broken_law(watch, detail if word == "refused" else "", peak):
        word, (fault, detail) = "failed", broken
    return Outcome(word, fault, detail if word == "failed" else "", seconds, peak)


def _broken_law(watch: Watch, message: str, peak: int) -> tuple[str, str] | None:
    """Name and description of what must not have happened though no exception says so."""
    if os.path.isdir(CANARY):
        os.rmdir(CANARY)
        return "pickle", "a pickle was run"
    if watch.seen:
        return "opened", watch.seen[0]
    if peak > MAX_PEAK_BYTES:
        return "memory", f"{peak / 1e6:.0f} MB"
    if len(message) > MAX_MESSAGE:
        return "message", f"{len(message)} characters: {message[:200]}"
    return None


def _signature(error: Exception) -> str:
    """The exception and the innermost function of the package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame.name for frame in frames if "gammagmm" in Path(frame.filename).parts]
    return f"{type(error).__name__} in {ours[-1] if ours else frames[-1].name}"


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _read_table(path: Path) -> None:
    """A table whose columns are as `RawTable` says, and what a fit would be given of it."""
    raw = read_raw(path)
    for j, column in enumerate(raw.data):
        cells = raw.cells(j)
        if not len(cells) == len(column) == len(raw.is_gap(j)) == raw.n_rows > 0:
            raise BrokenLawError(f"column {j} has {len(cells)} cells, {len(column)} values")
        is_text = column.dtype == object
        if not (is_text or column.dtype == np.float64):
            raise BrokenLawError(f"column {j} has the type {column.dtype}")
        if is_text and not all(cell is None or type(cell) is str for cell in column):
            raise BrokenLawError(f"column {j} holds what is neither text nor missing")
    if len(set(raw.columns)) < len(raw.columns):
        raise BrokenLawError("two columns have the same name")
    prepared = prepare(raw, Choices(missing="impute", categories="encode"))
    if not np.isfinite(prepared.values).all():
        raise BrokenLawError("the numbers are not finite")


def _read_posterior(path: Path) -> None:
    posterior = GammaPosterior.load(path)
    total = posterior.prob_zero + posterior.betas.weights.sum()
    low, high = posterior.interval()
    if abs(total - 1.0) > 1e-6 or not 0.0 <= low <= high <= 1.0:
        raise BrokenLawError(f"weights sum to {total}, interval {low} to {high}")
    if not 0.0 <= posterior.mean <= 1.0:
        raise BrokenLawError(f"mean {posterior.mean}")


def _read_benchmark(read: Callable[[Path], Any]) -> Callable[[Path], None]:
    def check(path: Path) -> None:
        found = read(path)
        if not np.isfinite(found.X).all() or found.y.shape != found.X.shape[:1]:
            raise BrokenLawError("the numbers are not finite, or the labels are too many or few")

    return check


READERS: dict[str, Callable[[Path], Any]] = {
    "posterior": _read_posterior,
    "summary": lambda path: repr(FitSummary.load(path)),
    "sheet": lambda path: read_sheet(path, TABLE, ORIGIN),
    "benchmark-arff": _read_benchmark(read_dami_arff),
    "benchmark-npz": _read_benchmark(read_npz),
}
"""Kinds that are not read by `read_raw`."""


def work(connection: Connection, folder: str) -> None:
    """A worker's life: a kind and files, or seeds of files, in; outcomes out, one by one."""
    os.chdir(folder)
    warnings.simplefilter("ignore")
    watch = Watch()
    for kind, maker in MAKERS.items():  # what readers import is there before memory is measured
        examine(kind, maker()[0], watch)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + 3 * MAX_PEAK_BYTES,) * 2)
    connection.send("ready")
    while True:
        try:
            kind, inputs = connection.recv()
        except EOFError:
            return
        for given in inputs:
            content = given if isinstance(given, bytes) else made(kind, given)
            connection.send(examine(kind, content, watch))


def made(kind: str, number: tuple[int, int]) -> bytes:
    """The input with this seed and number; the same on every machine."""
    seed, index = number
    return make_input(kind, np.random.default_rng([seed, list(MAKERS).index(kind), index]))
