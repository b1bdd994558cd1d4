"""The result files: one file for each kind of trial, one line for each trial.

A line is a JSON object that begins with the trial's name. Only the runner appends lines, and only
one runner can work in a folder at a time. Tables, figures and the page read nothing else.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.plan import HERE, Trial, trials
from gammagmm._support.files import write_document

RESULTS = Path(os.environ.get("GAMMAGMM_RESULTS", HERE / "results"))
OURS = "gammaGMM"

Result = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """Every result that the plan asks for and that exists."""

    plan: dict[str, Any]

    @cached_property
    def all(self) -> dict[Trial, Result]:
        """Results by trial, in the order of the plan."""
        found = read_results()
        return {trial: found[trial] for trial in trials(self.plan) if trial in found}

    @cached_property
    def paper(self) -> dict[str, Any]:
        """The numbers that the paper reports."""
        with (HERE / "paper.toml").open("rb") as file:
            return tomllib.load(file)

    def get(self, kind: str, collection: str, dataset: str, variant: str) -> Result | None:
        """The result, or None if it does not exist or its status is not "ok"."""
        found = self.all.get(Trial(kind, collection, dataset, variant))
        return found if found and found["status"] == "ok" else None

    def state(self, kind: str, collection: str, dataset: str, variant: str) -> str:
        """The status, with its reason if it is not "ok"; or "not run"."""
        found = self.all.get(Trial(kind, collection, dataset, variant))
        if found is None:
            return "not run"
        status = found["status"]
        return status if status == "ok" else f"{status}: {found['reason']}"

    def datasets(self, collection: str) -> list[str]:
        return self.plan["collections"].get(collection, {"datasets": []})["datasets"]

    @property
    def thresholders(self) -> list[str]:
        return self.plan["thresholders"]["names"]

    @property
    def papers_thresholders(self) -> list[str]:
        return self.thresholders[: self.plan["thresholders"]["paper"]]

    @property
    def methods(self) -> list[str]:
        """Every method, ours first."""
        constants = [f"constant {share:.0%}" for share in self.plan["constants"]["shares"]]
        return [OURS, *self.thresholders, *constants, "prior only"]

    def method(self, name: str, collection: str, dataset: str) -> Result | None:
        """A method's result on a dataset."""
        return self.get(*self.trial_of(name, collection, dataset))

    def trial_of(self, method: str, collection: str, dataset: str) -> tuple[str, str, str, str]:
        """Kind, collection, dataset and variant of a method's trial on a dataset."""
        if method == OURS:
            return "gamma", collection, dataset, "default"
        if method == "prior only":
            return "constant", collection, dataset, "prior"
        if method.startswith("constant"):
            share = int(method.split()[1].rstrip("%")) / 100
            return "constant", collection, dataset, f"{share:.2f}"
        return "threshold", collection, dataset, method

    def by_dataset(self, method: str, collection: str) -> dict[str, Result]:
        """The method's results by dataset."""
        found = {name: self.method(method, collection, name) for name in self.datasets(collection)}
        return {name: result for name, result in found.items() if result}


def result_file(kind: str) -> Path:
    return RESULTS / f"{kind}.jsonl"


def read_results() -> dict[Trial, Result]:
    """Every result of the folder, by trial."""
    found: dict[Trial, Result] = {}
    for path in sorted(RESULTS.glob("*.jsonl")):
        found |= read_file(path)
    return found


def read_file(path: Path) -> dict[Trial, Result]:
    """Results by trial; if a trial has two lines, the later one counts.

    A last line without a line end is left out: its writer was killed, or is still writing.
    """
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            result = json.loads(line)
        except ValueError as error:
            message = f"{path}, line {number} is not JSON. Delete the line to run its trial again."
            raise ValueError(message) from error
        found[Trial.parse(result["trial"])] = result
    return found


def append_result(trial: Trial, result: Result) -> None:
    """Append the trial's line to the file of its kind; on return it is on the disk.

    If the process is killed meanwhile, the file ends with an incomplete line, which `read_file`
    leaves out and the next call of this function removes.
    """
    path = result_file(trial.kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(_line({"trial": str(trial)} | result).encode())
        file.flush()
        os.fsync(file.fileno())


def write_file(path: Path, results: Iterable[Result]) -> None:
    """Write the results in the order of their trials, the whole file or nothing."""
    ordered = sorted(results, key=lambda result: Trial.parse(result["trial"]))
    write_document("".join(map(_line, ordered)), path, overwrite=True)


def sort_files() -> None:
    """Put the lines of every file in the order of their trials, one line for each trial."""
    for path in sorted(RESULTS.glob("*.jsonl")):
        write_file(path, read_file(path).values())


def _line(result: Result) -> str:
    """The result as one line of JSON; Python writes floats so that they are read back exactly."""
    return json.dumps(_without_nan(result), separators=(",", ":"), allow_nan=False) + "\n"


def _without_nan(value: Any) -> Any:
    """`value` with null for NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


@contextmanager
def only_writer() -> Iterator[bool]:
    """Whether this process is the only one that writes to the folder while the block runs.

    The operating system ends the lock when the process ends, however it ends.
    """
    import fcntl

    RESULTS.mkdir(parents=True, exist_ok=True)
    folder = os.open(RESULTS, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(folder)
