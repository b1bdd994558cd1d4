"""What the benchmarks share: repeated times, new processes, memory, results files, command line.

A part of a benchmark is a function that takes `quick`, a trial on tiny sizes, and returns a
dictionary. `measure` writes it to results/<part>.json, completely or not at all; the figures of a
file come from one run.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import psutil

from gammagmm._support.files import write_document

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
RESULTS = Path(__file__).parent / "results"
TRIAL = ROOT / "build" / "benchmarks"
sys.path.append(str(ROOT))  # for the package `experiments`
CHILD = """
import importlib, json, sys
folder, module, name, options, answer = sys.argv[1:]
sys.path.insert(0, folder)
found = getattr(importlib.import_module(module), name)(**json.loads(options))
with open(answer, "w") as file:
    json.dump(found, file, default=float)
"""


def best_seconds(work, n_repeats=1):
    """Shortest of several times, the one with the least interference, and the last result."""
    times = []
    for _ in range(n_repeats):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


class Memory:
    """Peak memory of a process and its children inside the context, in bytes.

    Memory that processes share is divided among them (proportional set size).
    """

    def __init__(self, pid=None):
        self.peak, self._root, self._done = 0, psutil.Process(pid), threading.Event()

    def __enter__(self):
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _watch(self):
        while not self._done.wait(0.2):
            self.peak = max(self.peak, sum(map(_proportional, tree(self._root))))


def tree(process):
    """A process and all its descendants."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _proportional(process):
    try:
        return process.memory_full_info().pss
    except psutil.Error:  # it has ended
        return 0


def in_new_process(function, *, source=SOURCE, limit=None, **options):
    """What `function` returns in a new process that uses the package in the folder `source`.

    The dictionary also has `peak_gigabytes`, of the process and its children. None if it takes
    more than `limit` seconds. The function is one of a module in this folder; `options` and the
    result are JSON.
    """
    module = Path(function.__code__.co_filename)
    with tempfile.TemporaryDirectory() as folder:
        answer, said = Path(folder) / "answer.json", Path(folder) / "said"
        named = [str(module.parent), module.stem, function.__name__, json.dumps(options), answer]
        with said.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", CHILD, *map(str, named)],
                env=os.environ | {"PYTHONPATH": str(source)},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with Memory(process.pid) as memory:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                _end_group(process)
        if process.returncode:
            raise RuntimeError(f"{function.__name__} failed in its process:\n{said.read_text()}")
        return json.loads(answer.read_text()) | {"peak_gigabytes": memory.peak / 1e9}


@contextlib.contextmanager
def checked_out(commit):
    """The folder with the package of another commit."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "earlier"
        git = ["git", "-C", str(ROOT), "worktree"]
        options = {"check": True, "capture_output": True}
        subprocess.run([*git, "add", "--detach", str(place), commit], **options)
        try:
            yield place / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], **options)


def _end_group(process):
    """End the process and what it has started and left behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def source_hash(*scripts):
    """Changes with every change of the package, of the scripts or of this file."""
    digest = hashlib.sha256()
    for path in (*sorted(SOURCE.rglob("*.py")), *scripts, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def rounded(value):
    """`value` with six significant digits in every number that is not whole."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def measure(description, parts, large_parts=None):
    """The command line of a benchmark: measure its parts, or with --large its long parts.

    With --large, a part that was already measured with the same code is not measured again.
    """
    large_parts = large_parts or {}
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[[], *parts, *large_parts], metavar="part")
    parser.add_argument("--large", action="store_true", help="the parts that take long")
    parser.add_argument("--again", action="store_true", help="also what is already measured")
    parser.add_argument(
        "--quick", action="store_true", help="a trial: tiny sizes, build/benchmarks"
    )
    given = parser.parse_args()
    folder, source = TRIAL if given.quick else RESULTS, source_hash(Path(sys.argv[0]))
    folder.mkdir(parents=True, exist_ok=True)
    for name in given.parts or (large_parts if given.large else parts):
        path = folder / f"{name}.json"
        if given.large and not given.again and is_current(path, source):
            print(f"{name}: already measured with this code", flush=True)
            continue
        seconds, found = best_seconds(partial((parts | large_parts)[name], given.quick))
        about = {"cores": os.cpu_count(), "source": source, "seconds_in_all": seconds}
        text = json.dumps(rounded(about | found), indent=1, default=float)
        write_document(text + "\n", path, overwrite=True)
        print(f"{name}: {seconds:.0f} s\n{text}", flush=True)


def is_current(path, source):
    """Whether the results file was measured with the code of this hash."""
    return path.exists() and json.loads(path.read_text()).get("source") == source
