"""Hostile files through every reader, for the given number of minutes; resumes where it stopped.

    python -m stress.readers --minutes 60 --workers 1

Every file is made from a seed and a number. The counts are added to stress/results/readers.json. A
file that causes a fault is made smaller and kept in tests/corpus, where
tests/readers/test_hostile_files.py reads it again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.good_files import CORPUS, KINDS
from tests.support.mutated_files import mutated_file
from tests.support.reader_process import Outcome, ReaderProcess, suffix_of

from gammagmm._support.files import write_document

RESULTS = Path(__file__).parent / "results" / "readers.json"
BATCH = 200
MAX_KEPT_BYTES = 50_000
COUNTS = ("inputs", "accepted", "refused", "failed")


def minimise(process: ReaderProcess, kind: str, content: bytes, fault: str) -> bytes:
    """A smaller file with the same fault: pieces are removed as long as the fault stays."""
    n_trials = 8 if fault in ("hang", "crash") else 400
    size = max(len(content) // 2, 1)
    while size and n_trials:
        start, was = 0, len(content)
        while start < len(content) and n_trials:
            shorter, n_trials = content[:start] + content[start + size :], n_trials - 1
            if next(process.outcomes(kind, [shorter])).fault == fault:
                content = shorter
            else:
                start += size
        if len(content) == was:
            size //= 2
    return content


class Tally:
    """Counts and faults of every kind of file, kept in a JSON file."""

    def __init__(self, path: Path, seed: int, kinds: Sequence[str] = tuple(KINDS)) -> None:
        self.path, self.lock, self.kinds = path, threading.Lock(), kinds
        self.data: dict[str, Any] = {"seed": seed, "minutes": 0.0, "readers": {}, "faults": []}
        if path.exists():
            self.data = json.loads(path.read_text())
        for kind in KINDS:
            new = dict.fromkeys(COUNTS, 0) | {"slowest_s": 0.0, "largest_peak_mb": 0.0}
            self.data["readers"].setdefault(kind, new)

    def take(self) -> tuple[str, int]:
        """The kind with the fewest files so far, and the number of its next file."""
        with self.lock:
            counts = self.data["readers"]
            kind = min(self.kinds, key=lambda name: counts[name].setdefault("given", 0))
            first = counts[kind]["given"]
            counts[kind]["given"] += BATCH
            return kind, first

    def add(self, kind: str, outcome: Outcome) -> None:
        with self.lock:
            found = self.data["readers"][kind]
            found["inputs"] += 1
            found[outcome.word] += 1
            found["ended"] = found.get("ended", 0) + outcome.is_ended
            found["slowest_s"] = round(max(found["slowest_s"], outcome.seconds), 3)
            found["largest_peak_mb"] = round(max(found["largest_peak_mb"], outcome.peak / 1e6), 1)

    def is_new(self, kind: str, fault: str) -> bool:
        """Whether the fault is new; from now on it is known."""
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
                found["given"] = found["inputs"]  # an unfinished batch is repeated
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.data | {"readers": kept}, indent=1) + "\n"
            write_document(text, self.path, overwrite=True)


def keep(kind: str, content: bytes, fault: str) -> Path | None:
    """Path of the file in the corpus, made smaller; None where it is too large for the corpus."""
    process = ReaderProcess()
    small = minimise(process, kind, content, fault)
    process.end()
    if len(small) > MAX_KEPT_BYTES:
        return None
    name = hashlib.sha256(small).hexdigest()[:12]
    path = CORPUS / kind / f"{name}.{suffix_of(kind)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(small)
    return path


def fuzz(tally: Tally, until: float) -> None:
    """Read batches of files in one process until the time is over."""
    process = ReaderProcess()
    try:
        while time.monotonic() < until:
            kind, first = tally.take()
            numbers = [(tally.data["seed"], first + i) for i in range(BATCH)]
            for number, outcome in zip(numbers, process.outcomes(kind, numbers), strict=True):
                tally.add(kind, outcome)
                if outcome.word == "failed" and tally.is_new(kind, outcome.fault):
                    print(f"{kind} {number}: {outcome.fault}\n{outcome.detail}", flush=True)
                    path = keep(kind, mutated_file(kind, *number), outcome.fault)
                    print(f"kept as {path}", flush=True)
    finally:
        process.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=1, help="processes that read files")
    parser.add_argument("--seed", type=int, default=0, help="seed of a new results file")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, metavar="KIND")
    options = parser.parse_args()
    tally = Tally(options.results, options.seed, options.kinds)
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
    print(f"{tally.data['minutes']:.1f} minutes in total: {totals}")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
