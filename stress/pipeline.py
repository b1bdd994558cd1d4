"""Many random tables through the pipeline; the outcomes are counted in stress/results.

Tables are drawn in numbered chunks, and the number of a chunk is its seed: a run resumes where it
stopped, and the recipe of a table is enough to repeat a fault.

    python -m stress.pipeline            # 100,000 from scores, 1,000 and 1,000 with the defaults
    python -m stress.pipeline --scores 2000 --defaults 0 --data 0 --results some.json
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.posterior_laws import fit_and_check
from tests.support.random_tables import Recipe, make_table, random_recipe

from gammagmm import GammaGMM

RESULTS = Path(__file__).parent / "results" / "pipeline.json"
MAX_KEPT = 50
"""Number of failures that are described in the file; all are counted."""

CONSTRAINTS: list[dict[str, float]] = [
    {},
    {"p_high": 0.5},
    {"p_high": 0.3, "high_gamma": 0.3, "max_gamma": 0.5},
]


@dataclass(frozen=True)
class Part:
    """One kind of pipeline, and the number of its tables."""

    n_inputs: int
    chunk_size: int
    limit: float  # seconds after which a table counts as a hang
    number: int  # first half of a chunk's seed


PARTS = {
    "scores": Part(100_000, 500, 120.0, 0),
    "defaults": Part(1_000, 10, 1800.0, 1),
    "data": Part(1_000, 10, 1800.0, 2),
}


class HangError(Exception):
    """A table took longer than its part allows."""


def draw_parameters(part: str, rng: np.random.Generator) -> dict[str, Any]:
    """Parameters of `GammaGMM` for a table of `part`."""
    seed = int(rng.integers(2**31))
    if part == "data":
        return {"random_state": seed}
    if part == "defaults":
        return {"detectors": "precomputed", "random_state": seed}
    return {
        "detectors": "precomputed",
        "n_runs": 1,
        "n_components": int(rng.integers(1, 11)),
        "max_restarts": 1,
        "random_state": seed,
        **CONSTRAINTS[rng.integers(len(CONSTRAINTS))],
    }


def run_chunk(part: str, chunk: int) -> dict[str, Any]:
    """Counts and failures of the tables of one chunk, and the longest time of a table."""
    rng = np.random.default_rng([PARTS[part].number, chunk])
    outcomes: Counter[str] = Counter()
    failures, slowest = [], 0.0
    for _ in range(PARTS[part].chunk_size):
        recipe, parameters = random_recipe(rng), draw_parameters(part, rng)
        start = time.perf_counter()
        reason, failure = try_table(recipe, parameters, PARTS[part].limit)
        outcomes[reason] += 1
        failures += [failure] if failure else []
        slowest = max(slowest, time.perf_counter() - start)
    return {"outcomes": dict(outcomes), "failures": failures, "slowest": slowest}


def try_table(
    recipe: Recipe, parameters: dict[str, Any], limit: float
) -> tuple[str, dict[str, str] | None]:
    """The outcome of a table and, if the fit broke a law, what is needed to repeat it."""
    try:
        with within(limit):
            return fit_and_check(GammaGMM(**parameters), make_table(recipe)).reason, None
    except Exception as error:
        # Any exception is a fault to record; the run continues.
        message = f"{type(error).__name__}: {error}"[:500]
        return "FAILED", {"recipe": repr(recipe), "parameters": repr(parameters), "error": message}


@contextmanager
def within(limit: float) -> Iterator[None]:
    """Raise `HangError` after `limit` seconds; after twice that, end the process."""

    def stop(*_: Any) -> None:
        raise HangError(f"no outcome after {limit} s")

    faulthandler.dump_traceback_later(2.0 * limit, exit=True)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def add(total: dict[str, Any], chunk: dict[str, Any], size: int, seconds: float) -> dict[str, Any]:
    """`total` with one more chunk."""
    outcomes = Counter(total.get("outcomes", {})) + Counter(chunk["outcomes"])
    return {
        "chunks": total.get("chunks", 0) + 1,
        "inputs": total.get("inputs", 0) + size,
        "seconds": round(total.get("seconds", 0.0) + seconds, 1),
        "slowest": round(max(total.get("slowest", 0.0), chunk["slowest"]), 1),
        "outcomes": dict(sorted(outcomes.items(), key=lambda item: -item[1])),
        "n_failures": total.get("n_failures", 0) + len(chunk["failures"]),
        "failures": (total.get("failures", []) + chunk["failures"])[:MAX_KEPT],
    }


def run_part(name: str, n_inputs: int, path: Path, n_jobs: int) -> None:
    """Run the chunks of a part that are not in `path` yet; each is saved when it is done."""
    size = PARTS[name].chunk_size
    n_done = read(path).get(name, {}).get("chunks", 0)
    chunks = range(n_done, -(-n_inputs // size))
    if not chunks:
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(n_jobs, len(chunks)), mp_context=context) as pool:
        began = time.perf_counter()
        for chunk in pool.map(run_chunk, [name] * len(chunks), chunks):
            now = time.perf_counter()
            results = read(path)
            results[name] = add(results.get(name, {}), chunk, size, now - began)
            write(path, results)
            began = now
            print(name, results[name]["inputs"], results[name]["outcomes"], flush=True)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(path: Path, results: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 1 where a fit broke a law."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, part in PARTS.items():
        parser.add_argument(f"--{name}", type=int, default=part.n_inputs, metavar="N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    # There are as many processes as cores: more threads would slow each other down.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        run_part(name, getattr(options, name), options.results, options.jobs)
    return int(any(part["n_failures"] for part in read(options.results).values()))


if __name__ == "__main__":
    sys.exit(main())
