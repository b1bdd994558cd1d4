"""End `gammagmm estimate` in each of its phases, by each kind of signal: what is left afterwards?

    python -m stress.interrupts --times 20 --results stress/results/interrupts.json

A phase is known by what the working process shows to others: the libraries that it has loaded, its
worker processes and the part of a file that it writes. After each signal, there must be no process
of its sessions, no shared memory, temporary file or part of a file, and each output must be whole
or absent. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from gammagmm.detectors.fit import MAX_VALUES_HERE

PHASES = ("reading", "detectors", "mixtures", "writing")
KINDS = ("INT", "TERM", "HUP", "KILL of the parent", "KILL of the child")
OUTPUTS = ("rows.out.csv", "posterior.json", "report.html")
PATIENCE = 6.0
"""Seconds after which nothing may be left."""
SHARED = Path("/dev/shm")
N_ROWS, N_COLUMNS = 20_500, 100
"""A table whose detectors are fitted in workers, not in threads (`MAX_VALUES_HERE`)."""


def write_rows(path: Path) -> None:
    """A table on which the detectors are fitted in workers."""
    assert N_ROWS * N_COLUMNS > MAX_VALUES_HERE
    X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
    X[: N_ROWS // 50] += 4.0
    names = ",".join(f"column {j}" for j in range(N_COLUMNS))
    np.savetxt(path, X, fmt="%.2f", delimiter=",", header=names, comments="")


def command(folder: Path, phase: str) -> list[str]:
    """The command, which writes every kind of output; only the last phase needs the mixtures' end.

    Many runs make the phase of the mixtures so long that no signal comes after it.
    """
    out, posterior, report = (str(folder / name) for name in OUTPUTS)
    runs = "2" if phase == "writing" else "40"
    options = ["--detectors", "KNN,LOF,IForest,OCSVM", "--runs", runs, "--jobs", "2"]
    options += ["--out", out, "--posterior", posterior, "--report", report]
    module = [sys.executable, "-P", "-m", "gammagmm.cli.main", "estimate"]
    return [*module, str(folder / "rows.csv"), *options, "--quiet"]


def work_of(parent: psutil.Process) -> psutil.Process | None:
    """The process that does the work, a child of the one that waits.

    The guard, which is started before it, shows another command as soon as it is itself.
    """
    children = {child: child.cmdline() for child in parent.children()}
    if not any("-I" in words for words in children.values()):
        return None
    return next((c for c, words in children.items() if "gammagmm.cli.main" in words), None)


def has_loaded(work: psutil.Process, word: str) -> bool:
    """Whether a process has loaded a library, or has ended."""
    try:
        return word in Path(f"/proc/{work.pid}/maps").read_text()
    except OSError:
        return True


def is_in(phase: str, work: psutil.Process, folder: Path) -> bool:
    """Whether the work is in a phase now."""
    if phase == "reading":
        return True
    if phase == "writing":
        return any(name.endswith(".part") for name in os.listdir(folder))
    has_workers = any("loky" in " ".join(c.cmdline()) for c in work.children(recursive=True))
    folders = SHARED.glob(f"joblib_memmapping_folder_{work.pid}_*")
    is_sharing = any(any(folder.iterdir()) for folder in folders)
    if phase == "detectors":
        return has_workers and is_sharing
    # The workers have given their last scores back once the shared rows are gone.
    return has_workers and not is_sharing and work.pid in _SHARED_BEFORE


_SHARED_BEFORE: set[int] = set()
"""Processes that have shared rows with their workers."""


def shared() -> set[str]:
    return set(os.listdir(SHARED))


def remains(sessions: set[int], folder: Path) -> dict[str, list[str]]:
    """What a command has left of the processes in these sessions, each named by its first one."""
    found = {
        "processes": [str(p.info) for p in psutil.process_iter(["cmdline"]) if _is_in(p, sessions)],
        "shared memory": [
            name
            for name in shared()
            if any(f"{mark}{pid}{mark}" in name for pid in sessions for mark in "-_")
        ],
        "temporary files": os.listdir(folder / "temporary"),
        "parts": [name for name in os.listdir(folder) if name.startswith(".")],
    }
    return {what: names for what, names in found.items() if names}


def _is_in(process: psutil.Process, sessions: set[int]) -> bool:
    with suppress(OSError, psutil.Error):
        is_over = process.status() == psutil.STATUS_ZOMBIE
        return os.getsid(process.pid) in sessions and not is_over
    return False


def bad_outputs(folder: Path) -> list[str]:
    """Outputs that exist and are not whole."""
    checks: dict[str, Callable[[str], bool]] = {
        "rows.out.csv": lambda text: text.count("\n") == N_ROWS + 1 and text.endswith("\n"),
        "posterior.json": lambda text: bool(json.loads(text)),
        "report.html": lambda text: text.rstrip().endswith("</html>"),
    }
    return [
        name
        for name, is_whole in checks.items()
        if (folder / name).exists() and not is_whole((folder / name).read_text("utf-8"))
    ]


def interrupt(phase: str, kind: str, folder: Path, rng: random.Random) -> dict[str, Any]:
    """What is left after a signal of this kind in this phase."""
    for name in OUTPUTS:
        (folder / name).unlink(missing_ok=True)
    process = subprocess.Popen(
        command(folder, phase),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(folder / "temporary")},
    )
    work, is_reached = reach(phase, process, folder)
    delay = {"reading": 0.6, "detectors": 0.4, "mixtures": 0.3, "writing": 0.02}[phase]
    time.sleep(rng.uniform(0.0, delay))
    sessions = {process.pid}
    with suppress(psutil.Error):
        sessions |= {child.pid for child in psutil.Process(process.pid).children()}
    is_hit = is_reached and process.poll() is None and work is not None
    is_hit = is_hit and (phase != "reading" or not has_loaded(work, "sklearn"))
    if work is not None and process.poll() is None:
        target = work.pid if kind == "KILL of the child" else process.pid
        with suppress(ProcessLookupError):
            os.kill(target, getattr(signal, f"SIG{kind.split()[0]}"))
    start = time.monotonic()
    words = process.communicate(timeout=60)[1].decode()
    return {
        "late": is_hit and time.monotonic() - start > PATIENCE,
        "hit": is_hit,
        "left": what_is_left(sessions, folder),
        "bad": bad_outputs(folder),
        "traceback": "Traceback" in words or "leaked" in words,
    }


def reach(
    phase: str, process: subprocess.Popen[bytes], folder: Path
) -> tuple[psutil.Process | None, bool]:
    """The process that does the work, and whether it is in the phase now; it may have ended."""
    parent, work = psutil.Process(process.pid), None
    while process.poll() is None:
        with suppress(psutil.Error, OSError):
            work = work or work_of(parent)
            if work is not None and is_in(phase, work, folder):
                return work, True
            if work is not None and phase == "mixtures" and is_in("detectors", work, folder):
                _SHARED_BEFORE.add(work.pid)
        time.sleep(0.002)
    return work, False


def what_is_left(sessions: set[int], folder: Path) -> dict[str, list[str]]:
    """What the command has left for `PATIENCE` seconds; nothing where all is as it was before."""
    moment = time.monotonic() + PATIENCE
    while (left := remains(sessions, folder)) and time.monotonic() < moment:
        time.sleep(0.02)
    return left


def main() -> None:
    """Interrupt, and write the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--phases", nargs="+", default=PHASES, choices=PHASES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for kind in ("SIGINT", "SIGHUP"):  # where this runs in the background, they are ignored
        signal.signal(getattr(signal, kind), signal.default_int_handler)
    rng, counts, faults = random.Random(options.seed), {}, []
    with tempfile.TemporaryDirectory(prefix="interrupts-") as place:
        folder = Path(place)
        write_rows(folder / "rows.csv")
        (folder / "temporary").mkdir()
        for phase in options.phases:
            for kind in KINDS:
                n_hits = n_tries = 0
                while n_hits < options.times and n_tries < 10 * options.times:
                    n_tries += 1
                    found = interrupt(phase, kind, folder, rng)
                    n_hits += found["hit"]
                    if any(found[fault] for fault in ("late", "left", "bad", "traceback")):
                        faults.append({"phase": phase, "kind": kind} | found)
                        print(faults[-1], flush=True)
                counts[f"{phase}, {kind}"] = n_hits
                print(phase, kind, n_hits, n_tries, flush=True)
                if options.results:
                    found = {
                        "times": options.times,
                        "total": sum(counts.values()),
                        "faults": faults,
                    }
                    found |= {"interrupts": counts}
                    options.results.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(bool(faults) or min(counts.values()) < options.times)


if __name__ == "__main__":
    main()
