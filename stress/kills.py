"""Kills and failing writes: a file is always the complete old version or the complete new one.

    python -m stress.kills --kills 50

A child process writes labels, a report, a posterior, a picture and the result of an experiment
repeatedly, with two versions of each in turn, until it is killed at a random moment. Each file must
then equal one of its two versions. After that, each step of writing is made to fail in turn. The
counts are added to stress/results/kills.json.
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

from gammagmm._support import files
from gammagmm._support.files import write_document

RESULTS = Path(__file__).parent / "results" / "kills.json"
Writer = Callable[[Path], None]  # replaces the file


class TornFileError(Exception):
    """A file is neither the old nor the new version, or another rule of writing is broken."""


@cache
def fitted(seed: int) -> Any:
    """A small fit."""
    from gammagmm import GammaGMM
    from gammagmm.datasets import make_contaminated

    X = make_contaminated(300, 4, 0.05, "clustered", random_state=2).X
    return GammaGMM(["KNN", "LOF"], n_runs=1, random_state=seed, n_jobs=1).fit(X)


def write_labels(seed: int, path: Path) -> None:
    from gammagmm.cli.output import labels_csv

    write_document(labels_csv(fitted(seed).fit_), path, overwrite=True)


def write_report(seed: int, path: Path) -> None:
    fitted(seed).report(path, overwrite=True)


def write_posterior(seed: int, path: Path) -> None:
    fitted(seed).posterior_.save(path, overwrite=True)


def write_picture(seed: int, path: Path) -> None:
    from gammagmm.report.plots import save_picture

    save_picture(fitted(seed).plot, path, overwrite=True)


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
    """The contents of both versions of each file."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, write in WRITERS.items():
            versions = []
            for seed in (0, 1):
                write(seed, Path(folder, name))
                versions.append(Path(folder, name).read_bytes())
            if versions[0] == versions[1]:
                raise TornFileError(f"both versions of {name} are the same")
            found[name] = (versions[0], versions[1])
    return found


def in_child(work: Callable[[], None]) -> int:
    """Process id of a child that does the work and ends."""
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


def kill_once(folder: Path, seconds: float, versions: dict[str, tuple[bytes, bytes]]) -> int:
    """Number of unfinished parts that a child leaves when it is killed while it writes."""
    pid = in_child(partial(write_forever, folder))
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    if os.WTERMSIG(os.waitpid(pid, 0)[1]) != signal.SIGKILL:
        raise TornFileError("the child ended by itself")
    for name, contents in versions.items():
        if (folder / name).read_bytes() not in contents:
            raise TornFileError(f"{name} is neither the old nor the new version")
    parts = sorted(set(os.listdir(folder)) - set(WRITERS))
    if any(not (part.startswith(".") and part.endswith(".part")) for part in parts):
        raise TornFileError(f"left behind: {parts}")
    return len(parts)


def kill_often(n_kills: int, seed: int) -> dict[str, int]:
    """Counts from children killed at random moments; parts of one must not disturb the next."""
    rng, versions, n_parts, n_torn = np.random.default_rng(seed), expected(), 0, 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        start = time.perf_counter()
        for name, write in WRITERS.items():
            write(0, folder / name)
        longest = 2.0 * (time.perf_counter() - start)
        for _ in range(n_kills):
            try:
                n_parts = kill_once(folder, float(rng.uniform(0.0, longest)), versions)
            except TornFileError as error:
                print(error, flush=True)
                n_torn += 1
        for name, write in WRITERS.items():
            write(1, folder / name)
            if (folder / name).read_bytes() != versions[name][1]:
                raise TornFileError(f"{name} cannot be written again")
    return {"kills": n_kills, "torn_by_kills": n_torn, "parts_left": n_parts}


def fail_each() -> dict[str, int]:
    """Counts from failing steps: the old file and no part stays, and the error names the file."""
    n_faults = n_torn = 0
    for name, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, name)
            write(0, path)
            old, other = path.read_bytes(), partial(write, 1)
            steps = [partial(_check_failure, other, path, old, step) for step in STEPS]
            sizes = (0, 1, 100, len(old) // 2)
            for attempt in steps + [partial(_check_full, other, path, old, n) for n in sizes]:
                n_faults += 1
                n_torn += _is_torn(attempt, path)
    return {"faults": n_faults, "torn_by_faults": n_torn}


def _is_torn(attempt: Callable[[], None], path: Path) -> bool:
    """Whether a failed attempt to replace `path` damaged it or left another file behind."""
    try:
        attempt()
        if os.listdir(path.parent) != [path.name]:
            raise TornFileError(f"left behind: {os.listdir(path.parent)}")
    except TornFileError as error:
        print(error, flush=True)
        return True
    return False


def _check_full(write: Writer, path: Path, old: bytes, n_bytes: int) -> None:
    """Replace the file in a child whose files are limited to `n_bytes` bytes."""
    pid = in_child(partial(_with_full_disk, write, path, n_bytes))
    if os.waitpid(pid, 0)[1] or path.read_bytes() != old:
        raise TornFileError(f"{path.name} at a limit of {n_bytes} bytes")


STEPS = (("os", "fsync"), ("os", "replace"), ("Path", "open"), ("Path", "replace"))
"""The calls that write a file, as attributes of `gammagmm._support.files`."""


def _check_failure(write: Writer, path: Path, old: bytes, step: tuple[str, str]) -> None:
    """Replace the file while one call reports a full disk."""
    owner = getattr(files, step[0])
    kept = getattr(owner, step[1])

    def fail(first: Any, *others: Any, **options: Any) -> Any:
        if isinstance(first, int) or str(first).endswith(".part"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return kept(first, *others, **options)

    setattr(owner, step[1], fail)
    try:
        write(path)
    except OSError as error:
        is_named = error.filename == str(path) and error.errno == errno.ENOSPC
    else:
        is_named = False
    finally:
        setattr(owner, step[1], kept)
    if not is_named or path.read_bytes() != old:
        raise TornFileError(f"{path.name} where {step} fails; the error names it: {is_named}")


def _with_full_disk(write: Writer, path: Path, n_bytes: int) -> None:
    """Write with a limit of `n_bytes` for the size of a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    try:
        write(path)
    except OSError as error:
        if error.errno == errno.EFBIG and error.filename == str(path):
            return
    raise TornFileError(f"{path.name} was written in spite of the limit")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
