"""Hostile files for every reader, for as many minutes as asked; goes on where it was stopped.

    python -m stress.readers --minutes 60 --workers 1

Every input is made from the seed and its number. What is tried is added up in
stress/results/readers.json; an input that shows a fault is made smaller and kept in tests/corpus,
which tests/readers/test_hostile_files.py replays.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gammagmm._support.files import write_document
from stress.reading_laws import SUFFIXES, Outcome, made, work
from stress.seeds import CORPUS, MAKERS

RESULTS = Path(__file__).parent / "results" / "readers.json"
MEMORY = Path("/dev/shm")  # files that are gone at once need no disk
MAX_SECONDS = 10.0
START_SECONDS = 120.0
BATCH = 200
MAX_KEPT_BYTES = 50_000
COUNTS = ("inputs", "accepted", "refused", "failed")


class Worker:
    """A process that reads files; one that hangs is killed, one that dies is replaced."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self._start()

    def _start(self) -> None:
        self.connection, theirs = self.context.Pipe()
        self.process = self.context.Process(target=work, args=(theirs, self.folder.name))
        self.process.start()
        theirs.close()
        if not self.connection.poll(START_SECONDS) or self.connection.recv() != "ready":
            raise RuntimeError("the worker does not start")

    def outcomes(self, kind: str, inputs: list[Any]) -> Iterator[Outcome]:
        """One outcome for each input: bytes, or (seed, number)."""
        is_sent = False
        for i in range(len(inputs)):
            if not is_sent:
                self.connection.send((kind, inputs[i:]))
            outcome = self._next()
            is_sent = outcome.fault not in ("hang", "crash")
            if not is_sent:
                self.end(keep_folder=True)
                self._start()
            yield outcome

    def _next(self) -> Outcome:
        if not self.connection.poll(MAX_SECONDS):
            return Outcome("failed", "hang", f"longer than {MAX_SECONDS:g} s", MAX_SECONDS)
        try:
            return self.connection.recv()
        except EOFError:
            self.process.join()
            return Outcome("failed", "crash", f"exit code {self.process.exitcode}")

    def end(self, keep_folder: bool = False) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()
        if not keep_folder:
            self.folder.cleanup()


def minimise(worker: Worker, kind: str, content: bytes, fault: str) -> bytes:
    """A smaller input with the same fault: pieces are left out while it stays."""
    n_trials = 8 if fault in ("hang", "crash") else 400
    size = max(len(content) // 2, 1)
    while size and n_trials:
        start, was = 0, len(content)
        while start < len(content) and n_trials:
            shorter, n_trials = content[:start] + content[start + size :], n_trials - 1
            if next(worker.outcomes(kind, [shorter])).fault == fault:
                content = shorter
            else:
                start += size
        if len(content) == was:
            size //= 2
    return content


class Tally:
    """What was tried and found, of every kind; kept in a file."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.lock = path, threading.Lock()
        self.data = json.loads(path.read_text()) if path.exists() else self._empty(seed)
        for kind in MAKERS:
            new = dict.fromkeys(COUNTS, 0) | {"slowest_s": 0.0, "largest_peak_mb": 0.0}
            self.data["readers"].setdefault(kind, new)

    def _empty(self, seed: int) -> dict[str, Any]:
        return {"seed": seed, "minutes": 0.0, "readers": {}, "faults": []}

    def take(self) -> tuple[str, int]:
        """The kind that had the fewest inputs and the number of its next one."""
        with self.lock:
            counts = self.data["readers"]
            kind = min(MAKERS, key=lambda name: counts[name].setdefault("given", 0))
            first = counts[kind]["given"]
            counts[kind]["given"] += BATCH
            return kind, first

    def add(self, kind: str, outcome: Outcome) -> None:
        with self.lock:
            found = self.data["readers"][kind]
            found["inputs"] += 1
            found[outcome.word] += 1
            found["slowest_s"] = round(max(found["slowest_s"], outcome.seconds), 3)
            found["largest_peak_mb"] = round(max(found["largest_peak_mb"], outcome.peak / 1e6), 1)

    def is_new(self, kind: str, fault: str) -> bool:
        """Whether the fault was not met before; it is from now on."""
        with self.lock:
            known = any(f["reader"] == kind and f["fault"] == fault for f in self.data["faults"])
            if not known:
                self.data["faults"].append({"reader": kind, "fault": fault})
            return not known

    def save(self, minutes: float) -> None:
        with self.lock:
            self.data["minutes"] = round(self.data["minutes"] + minutes, 2)
            kept = {kind: dict(found) for kind, found in self.data["readers"].items()}
            for found in kept.values():
                found["given"] = found["inputs"]  # a batch that was not finished is tried again
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.data | {"readers": kept}, indent=1) + "\n"
            write_document(text, self.path, overwrite=True)


def keep(worker: Worker, kind: str, content: bytes, outcome: Outcome) -> Path | None:
    """Write the input, made smaller, to the corpus; None where it is too large for that."""
    small = minimise(worker, kind, content, outcome.fault)
    if len(small) > MAX_KEPT_BYTES:
        return None
    name = hashlib.sha256(small).hexdigest()[:12]
    path = CORPUS / kind / f"{name}.{SUFFIXES.get(kind, kind.removeprefix('benchmark-'))}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(small)
    return path


def fuzz(tally: Tally, until: float) -> None:
    """One worker's batches until the time is over."""
    worker = Worker()
    try:
        while time.monotonic() < until:
            kind, first = tally.take()
            numbers = [(tally.data["seed"], first + i) for i in range(BATCH)]
            for number, outcome in zip(numbers, worker.outcomes(kind, numbers), strict=True):
                tally.add(kind, outcome)
                if outcome.word == "failed" and tally.is_new(kind, outcome.fault):
                    tell(kind, number, outcome)
                    other = Worker()
                    path = keep(other, kind, made(kind, number), outcome)
                    other.end()
                    print(f"kept as {path}", flush=True)
    finally:
        worker.end()


def tell(kind: str, number: tuple[int, int], outcome: Outcome) -> None:
    print(f"{kind} {number}: {outcome.fault}\n{outcome.detail}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of a new results file")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    tally = Tally(options.results, options.seed)
    start = time.monotonic()
    until = start + 60.0 * options.minutes
    threads = [threading.Thread(target=fuzz, args=(tally, until)) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    saved = start
    while any(thread.is_alive() for thread in threads):
        threads[0].join(10.0) if threads[0].is_alive() else time.sleep(1.0)
        now = time.monotonic()
        tally.save((now - saved) / 60.0)
        saved = now
    found = tally.data["readers"]
    totals = {name: sum(counts[name] for counts in found.values()) for name in COUNTS}
    print(f"{tally.data['minutes']:.1f} minutes in all: {totals}")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
