"""Readers in a process of their own: each file is accepted, refused with a typed error, or fails.

A process that hangs is killed, and one that dies is replaced. One that dies while a library reads a
file has refused it, as the command does.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gammagmm.cli.files import read_file
from gammagmm.cli.sheet import read_sheet
from gammagmm.cli.supervisor import MARKER, READ_NOW
from gammagmm.errors import MissingExtraError, SavedFileError, TableError
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.readers.raw_table import RawTable
from gammagmm.table.preparation import Choices, prepare
from tests.support.good_files import KINDS, NAMED, PICKLE_FOLDER
from tests.support.mutated_files import mutated_file

__all__ = ["Outcome", "ReaderProcess", "suffix_of"]

TYPED = (TableError, SavedFileError, MissingExtraError)
MAX_SECONDS = 10.0
"""Seconds of a CPU that a file may take; one that waits forever fails after ten times as long."""
START_SECONDS = 120.0
MAX_SHARE = 1.1  # the limit counts memory in another way than the peak
MAX_PEAK_BYTES = 1_000_000_000 + 64_000_000 * (os.cpu_count() or 1)
"""Memory that a file may take beside 100 times its size: the limit of `read_file`."""
MAX_MESSAGE = 2_000
MEMORY_FOLDER = Path("/dev/shm")  # each file is short-lived and needs no disk
FORBIDDEN = re.compile(r"pickle\.find_class|os\.(system|exec|spawn|posix_spawn)|subprocess|socket")
SOURCE_OF_TEXT = "<string>"  # Python's tokenizer looks there for the line of a syntax error
OWN_FOLDERS = (sys.prefix, sys.base_prefix, "/proc/self", str(Path(__file__).resolve().parents[2]))
SUFFIXES = {"posterior": "json", "sheet": "csv"}


@dataclass(frozen=True)
class Outcome:
    """The result of reading one file."""

    word: str  # accepted, refused, failed
    fault: str = ""  # name of the failure, the same for similar ones: the exception and function
    detail: str = ""
    seconds: float = 0.0
    peak: int = 0  # bytes by which the file raised the peak memory of the process
    is_ended: bool = False  # the process has ended while a library read the file


class BrokenLawError(Exception):
    """A reader accepted a file, but broke one of its rules."""


class ReaderProcess:
    """A process that reads files; one that hangs is killed, and one that dies is replaced."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        folder = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
        self.folder = tempfile.TemporaryDirectory(dir=folder)
        self._start()

    def _start(self) -> None:
        self.connection, theirs = self.context.Pipe()
        self.process = self.context.Process(target=read_files, args=(theirs, self.folder.name))
        self.process.start()
        theirs.close()
        if not self.connection.poll(START_SECONDS) or self.connection.recv() != "ready":
            raise RuntimeError("the process does not start")

    def outcomes(self, kind: str, inputs: list[Any]) -> Iterator[Outcome]:
        """One outcome for each input: the bytes of a file, or seed and number of a mutated one."""
        is_sent = False
        for i in range(len(inputs)):
            if not is_sent:
                self.connection.send((kind, inputs[i:]))
            outcome = self._next()
            is_sent = outcome.fault not in ("hang", "crash") and not outcome.is_ended
            if not is_sent:
                self._stop()
                self._start()
            yield outcome

    def _next(self) -> Outcome:
        if not self._is_answered():
            return Outcome("failed", "hang", f"longer than {MAX_SECONDS:g} s", MAX_SECONDS)
        try:
            return self.connection.recv()
        except EOFError:
            self.process.join()
        mark = Path(self.folder.name, READ_NOW)
        if mark.exists():
            mark.unlink()
            return Outcome("refused", is_ended=True)
        return Outcome("failed", "crash", f"exit code {self.process.exitcode}")

    def _is_answered(self) -> bool:
        """Whether the process answers in time; what other processes take does not count."""
        process = psutil.Process(self.process.pid)
        start, used = time.monotonic(), sum(process.cpu_times()[:2])
        while not self.connection.poll(1.0):
            with suppress(psutil.Error):  # it has ended
                is_late = sum(process.cpu_times()[:2]) - used > MAX_SECONDS
                if is_late or time.monotonic() - start > 10.0 * MAX_SECONDS:
                    return False
        return True

    def _stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()

    def end(self) -> None:
        self._stop()
        self.folder.cleanup()


def read_files(connection: Connection, folder: str) -> None:
    """Read each file that arrives through the connection, and send its outcome back."""
    os.chdir(folder)
    os.environ[MARKER] = folder
    warnings.simplefilter("ignore")
    watch = Watch()
    for kind, make_files in KINDS.items():  # readers import their libraries before memory counts
        examine(kind, make_files()[0], watch)
    connection.send("ready")
    while True:
        try:
            kind, inputs = connection.recv()
        except EOFError:
            return
        for given in inputs:
            content = given if isinstance(given, bytes) else mutated_file(kind, *given)
            connection.send(examine(kind, content, watch))


class Watch:
    """What Python opens and runs while a file is read, from its audit events."""

    def __init__(self) -> None:
        self.path, self.seen = "", list[str]()
        self.mark = str(Path(os.environ[MARKER], READ_NOW))
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_bad = FORBIDDEN.match(event) or (event == "open" and self._is_foreign(arguments))
        if self.path and is_bad:
            self.seen.append(f"{event} {arguments[:2]!r}"[:200])

    def _is_foreign(self, arguments: tuple[Any, ...]) -> bool:
        name = arguments[0]
        is_ours = name in (self.path, self.mark) or str(name).startswith(OWN_FOLDERS)
        return isinstance(name, str) and not is_ours and name != SOURCE_OF_TEXT


def suffix_of(kind: str) -> str:
    """Suffix of the files of a kind, without the dot."""
    return SUFFIXES.get(kind, kind)


def examine(kind: str, content: bytes, watch: Watch) -> Outcome:
    """The outcome of reading `content` as a file of this kind, in the working directory."""
    path = Path.cwd() / f"t.{suffix_of(kind)}"
    path.write_bytes(content)
    before, start = _peak_memory(), time.process_time()
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
    seconds, peak = time.process_time() - start, _peak_memory() - before
    most = MAX_PEAK_BYTES + 100 * len(content)
    if broken := _broken_law(watch, detail if word == "refused" else "", peak / most):
        word, (fault, detail) = "failed", broken
    return Outcome(word, fault, detail if word == "failed" else "", seconds, peak)


def _broken_law(watch: Watch, message: str, share: float) -> tuple[str, str] | None:
    """Name and description of a broken rule for which the reader raised no exception."""
    if os.path.isdir(PICKLE_FOLDER):
        os.rmdir(PICKLE_FOLDER)
        return "pickle", "a pickle was run"
    if watch.seen:
        return "opened", watch.seen[0]
    if share > MAX_SHARE:
        return "memory", f"{share:.2f} of what it may take"
    if len(message) > MAX_MESSAGE:
        return "message", f"{len(message)} characters: {message[:200]}"
    return None


def _signature(error: Exception) -> str:
    """The exception and the innermost function of the package."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame.name for frame in frames if "gammagmm" in Path(frame.filename).parts]
    return f"{type(error).__name__} in {ours[-1] if ours else frames[-1].name}"


def _peak_memory() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _read_table(path: Path) -> None:
    """Check the columns against the contract of `RawTable`, and prepare the table for a fit."""
    raw = read_file(str(path))
    for j, column in enumerate(raw.data):
        cells = raw.write_cells(j)
        if not len(cells) == len(column) == len(raw.is_gap(j)) == raw.n_rows > 0:
            raise BrokenLawError(f"column {j} has {len(cells)} cells, {len(column)} values")
        is_text = column.dtype == object
        if not (is_text or column.dtype == np.float64):
            raise BrokenLawError(f"column {j} has the type {column.dtype}")
        if is_text and not all(cell is None or type(cell) is str for cell in column):
            raise BrokenLawError(f"column {j} holds a value that is neither text nor missing")
    if len(set(raw.columns)) < len(raw.columns):
        raise BrokenLawError("two columns have the same name")
    _refuse_shortly(raw)
    drop = tuple(raw.columns[j] for j in raw.refused)
    choices = Choices(drop=drop, missing="impute", categories="encode", dates="encode")
    prepared = prepare(raw, choices)
    if not np.isfinite(prepared.values).all():
        raise BrokenLawError("the numbers are not finite")
    if not np.array_equal(prepared.preparation.apply(raw).values, prepared.values):
        raise BrokenLawError("the training rows as new rows are others")


def _refuse_shortly(raw: RawTable) -> None:
    """Check what is said about a table that cannot be used without options."""
    try:
        prepare(raw, Choices())
    except TableError as error:
        if len(str(error)) > MAX_MESSAGE:
            raise BrokenLawError(f"a message of {len(str(error))} characters") from None


def _read_posterior(path: Path) -> None:
    posterior = GammaPosterior.load(path)
    total = posterior.prob_zero + posterior.betas.weights.sum()
    low, high = posterior.interval()
    if abs(total - 1.0) > 1e-6 or not 0.0 <= low <= high <= 1.0:
        raise BrokenLawError(f"weights sum to {total}, interval {low} to {high}")
    if not 0.0 <= posterior.mean <= 1.0:
        raise BrokenLawError(f"mean {posterior.mean}")


READERS: dict[str, Callable[[Path], Any]] = {
    "posterior": _read_posterior,
    "sheet": lambda path: read_sheet(path, NAMED),
}
"""The kinds that `read_raw` does not read."""
