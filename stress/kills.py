"""Kills and failing writes while files are written: the old file stays, or the new one is whole.

    python -m stress.kills --kills 50

A child writes labels, a report, a posterior, a picture and an experiment's result over and over,
two answers in turn, until it is killed at a random moment. Then each file must be one of the two.
After that every step that writing takes is made to fail, one by one. What was tried is added up in
stress/results/kills.json.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gammagmm._support import files as documents
from gammagmm._support.files import write_document

RESULTS = Path(__file__).parent / "results" / "kills.json"
Writer = Callable[[Path], None]  # replaces the file


class TornFileError(Exception):
    """A file is neither the old one nor the new one, or something else was lost."""


@cache
def fitted(seed: int) -> tuple[Any, Any]:
    """A small fit, and what a report says of it."""
    from gammagmm import GammaGMM
    from gammagmm.datasets import make_contaminated
    from gammagmm.report.findings import find

    X = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
    estimator = GammaGMM(["KNN", "LOF"], n_runs=1, random_state=seed, n_jobs=1).fit(X)
    return estimator, find(estimator)


def write_labels(seed: int, path: Path) -> None:
    from gammagmm.cli.output import labels_csv
    from gammagmm.report.origin import Origin

    write_document(labels_csv(fitted(seed)[0], Origin()), path, overwrite=True)


def write_report(seed: int, path: Path) -> None:
    from gammagmm.report.page import render

    write_document(render(fitted(seed)[1]), path, overwrite=True)


def write_posterior(seed: int, path: Path) -> None:
    fitted(seed)[0].posterior_.save(path, overwrite=True)


def write_picture(seed: int, path: Path) -> None:
    from gammagmm.report.plots import save_picture

    save_picture(fitted(seed)[0].posterior_, path, overwrite=True)


def write_results(seed: int, path: Path) -> None:
    from experiments.results import write_file

    result = {"trial": "gamma/paper/made/default", "status": "ok", "shares": [seed + 0.1] * 5000}
    write_file(path, [result])


WRITERS: dict[str, Callable[[int, Path], None]] = {
    "labels.csv": write_labels,
    "report.html": write_report,
    "posterior.json": write_posterior,
    "picture.png": write_picture,
    "results.jsonl": write_results,
}


def expected() -> dict[str, tuple[bytes, bytes]]:
    """What each file holds after the one answer and after the other."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in WRITERS.items():
            made = []
            for seed in (0, 1):
                write(seed, Path(folder, name))
                made.append(Path(folder, name).read_bytes())
            if made[0] == made[1]:
                raise TornFileError(f"the two answers give the same {name}")
            found[name] = (made[0], made[1])
    return found


def in_child(work: Callable[[], None]) -> int:
    """Number of a process that does the work and ends."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def write_forever(folder: Path) -> None:
    while True:
        for seed in (1, 0):
            for name, write in WRITERS.items():
                write(seed, folder / name)


def kill_once(folder: Path, seconds: float, whole: dict[str, tuple[bytes, bytes]]) -> int:
    """Kill a child that writes; returns how many parts it left behind."""
    pid = in_child(partial(write_forever, folder))
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    if os.WTERMSIG(os.waitpid(pid, 0)[1]) != signal.SIGKILL:
        raise TornFileError("the child ended by itself")
    for name, contents in whole.items():
        if (folder / name).read_bytes() not in contents:
            raise TornFileError(f"{name} is neither the old file nor the new one")
    parts = sorted(set(os.listdir(folder)) - set(WRITERS))
    if any(not (part.startswith(".") and part.endswith(".part")) for part in parts):
        raise TornFileError(f"left behind: {parts}")
    return len(parts)


def kill_often(n_kills: int, seed: int) -> dict[str, int]:
    """Kill children at random moments; parts that stay behind must not disturb the next one."""
    rng, whole, n_parts, n_torn = np.random.default_rng(seed), expected(), 0, 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        start = time.perf_counter()
        for name, write in WRITERS.items():
            write(0, folder / name)
        longest = 2.0 * (time.perf_counter() - start)
        for _ in range(n_kills):
            try:
                n_parts = kill_once(folder, float(rng.uniform(0.0, longest)), whole)
            except TornFileError as error:
                print(error, flush=True)
                n_torn += 1
        for name, write in WRITERS.items():
            write(1, folder / name)
            if (folder / name).read_bytes() != whole[name][1]:
                raise TornFileError(f"{name} cannot be written any more")
    return {"kills": n_kills, "torn_by_kills": n_torn, "parts_left": n_parts}


def fail_each(seed: int = 0) -> dict[str, int]:
    """Let every step of writing fail in turn: the file stays, the error names it, no part stays."""
    n_faults = n_torn = 0
    for name, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, name)
            write(seed, path)
            old, other = path.read_bytes(), partial(write, 1 - seed)
            steps = [partial(_check_failure, other, path, old, step) for step in STEPS]
            sizes = (0, 1, 100, len(old) // 2)
            for attempt in steps + [partial(_check_full, other, path, old, n) for n in sizes]:
                n_faults += 1
                n_torn += _is_torn(attempt, path)
    return {"faults": n_faults, "torn_by_faults": n_torn}


def _is_torn(attempt: Callable[[], None], path: Path) -> bool:
    """Whether an attempt to write over `path` cost it anything, or left something behind."""
    try:
        attempt()
        if os.listdir(path.parent) != [path.name]:
            raise TornFileError(f"left behind: {os.listdir(path.parent)}")
    except TornFileError as error:
        print(error, flush=True)
        return True
    return False


def _check_full(write: Writer, path: Path, old: bytes, n_bytes: int) -> None:
    """A child has room for `n_bytes` bytes."""
    pid = in_child(partial(_with_full_disk, write, path, n_bytes))
    if os.waitpid(pid, 0)[1] or path.read_bytes() != old:
        raise TornFileError(f"{path.name} with room for {n_bytes} bytes")


STEPS = (("os", "fsync"), ("os", "replace"), ("Path", "open"), ("Path", "replace"))
"""What writing calls, as `documents` names it."""


def _check_failure(write: Writer, path: Path, old: bytes, step: tuple[str, str]) -> None:
    """One call answers that the disk is full."""
    owner = getattr(documents, step[0])
    kept = getattr(owner, step[1])

    def fail(first: Any, *others: Any, **options: Any) -> Any:
        if isinstance(first, int) or str(first).endswith(".part"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return kept(first, *others, **options)

    setattr(owner, step[1], fail)
    try:
        write(path)
    except OSError as error:
        is_told = error.filename == str(path) and error.errno == errno.ENOSPC
    else:
        is_told = False
    finally:
        setattr(owner, step[1], kept)
    if not is_told or path.read_bytes() != old:
        raise TornFileError(f"{path.name} where {step} fails: told {is_told}")


def _with_full_disk(write: Writer, path: Path, n_bytes: int) -> None:
    """Write where no file may become larger than `n_bytes`."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    try:
        write(path)
    except OSError as error:
        if error.errno == errno.EFBIG and error.filename == str(path):
            return
    raise TornFileError(f"{path.name} was written where there is no room")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = kill_often(options.kills, options.seed) | fail_each()
    kept = json.loads(options.results.read_text()) if options.results.exists() else {}
    total = {name: kept.get(name, 0) + n for name, n in found.items()}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    write_document(json.dumps(total, indent=1) + "\n", options.results, overwrite=True)
    print(found)
    return int(found["torn_by_kills"] + found["torn_by_faults"] > 0)


if __name__ == "__main__":
    sys.exit(main())
