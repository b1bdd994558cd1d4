"""The trials that the plan asks for and that have no result yet, on all cores.

    python -m experiments.run [--small] [--only KIND ...]

Each result is one file under results/trials, written whole or not at all, so that a run that was
stopped, or killed, goes on where it was and loses at most the trials at work.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from experiments.data import cache_path
from experiments.plan import Trial, load_plan, small_plan, trials

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ORDER = ("gamma", "constant", "threshold", "ablation", "subset", "dose", "inspection")
NEED_SCORES = frozenset({"gamma", "threshold", "constant", "subset", "ablation", "inspection"})


@dataclass
class Worker:
    """A process that takes trials one by one; a trial that outlasts its limit ends it."""

    process: Any
    connection: Connection
    trial: Trial | None = None
    started: float = 0.0

    def give(self, trial: Trial) -> None:
        self.trial, self.started = trial, time.monotonic()
        self.connection.send(trial)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="four small sets, every question")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="default: cores")
    parser.add_argument("--only", nargs="*", help="kinds of trials")
    options = parser.parse_args()
    plan = small_plan(load_plan()) if options.small else load_plan()
    todo = pending(plan, options.only)
    print(f"{len(todo)} trials to do", flush=True)
    if todo:
        run(todo, plan, options.workers)


def pending(plan: dict[str, Any], kinds: list[str] | None = None) -> list[Trial]:
    """The trials without a result, and those whose kept scores others need, scores first."""
    asked = [trial for trial in trials(plan) if not kinds or trial.kind in kinds]
    todo = [trial for trial in asked if not trial.path.exists()]
    needy = [t for t in todo if t.kind in NEED_SCORES and t.collection != "made"]
    users = {(t.collection, t.dataset) for t in needy}
    for collection, dataset in sorted(users):
        scores = Trial("scores", collection, dataset, "all")
        if scores not in todo and _lacks_cache(scores):
            todo.append(scores)
    return sorted(todo, key=lambda trial: urgency(trial, plan))


def urgency(trial: Trial, plan: dict[str, Any]) -> tuple[Any, ...]:
    """What goes first: scores that others wait for, the paper's sets; large sets go last."""
    is_large = trial.dataset in plan["large"]
    if trial.kind == "scores":
        return trial.collection != "paper", -1, not is_large
    return trial.collection != "paper", is_large, ORDER.index(trial.kind)


def run(todo: list[Trial], plan: dict[str, Any], n_workers: int) -> None:
    """Give the trials to the workers until none is left."""
    waiting, n_done, start = deque(todo), 0, time.monotonic()
    workers = [start_worker(plan) for _ in range(min(n_workers, len(todo)))]
    try:
        while waiting or any(worker.trial for worker in workers):
            for worker in workers:
                if worker.trial is None and (trial := next_ready(waiting, workers)):
                    worker.give(trial)
            for i, result in finished(workers, plan):
                write(workers[i].trial, result)
                n_done += 1
                show(workers[i].trial, result, n_done, len(todo), start)
                workers[i] = renew(workers[i], plan)
    finally:
        for worker in workers:
            worker.end()


def next_ready(waiting: deque[Trial], workers: list[Worker]) -> Trial | None:
    """The next trial whose dataset has its scores, taken out of `waiting`."""
    scoring = {(t.collection, t.dataset) for t in waiting if t.kind == "scores"}
    for worker in workers:
        if worker.trial and worker.trial.kind == "scores":
            scoring.add((worker.trial.collection, worker.trial.dataset))
    for trial in waiting:
        if trial.kind not in NEED_SCORES or (trial.collection, trial.dataset) not in scoring:
            waiting.remove(trial)
            return trial
    return None


def finished(workers: list[Worker], plan: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Places and results of the workers that are done, dead or out of time."""
    busy = {worker.connection: i for i, worker in enumerate(workers) if worker.trial}
    results = []
    for connection in wait(list(busy), timeout=1.0):
        i = busy.pop(connection)
        try:
            results.append((i, connection.recv()))
        except EOFError:
            results.append((i, {"status": "failed", "reason": "the worker died"}))
    for i in busy.values():
        limit = limit_of(workers[i].trial, plan)
        if time.monotonic() - workers[i].started > limit:
            workers[i].process.kill()
            workers[i].process.join()
            results.append((i, {"status": "timeout", "reason": f"longer than {limit:.0f} s"}))
    return results


def limit_of(trial: Trial, plan: dict[str, Any]) -> float:
    if trial.kind != "threshold":
        return math.inf
    return plan["collections"][trial.collection].get("limit", plan["thresholders"]["limit"])


def start_worker(plan: dict[str, Any]) -> Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # No daemon: those may have no children, which the networks need.
    process = context.Process(target=work, args=(theirs, plan))
    process.start()
    theirs.close()
    return Worker(process, ours)


def renew(worker: Worker, plan: dict[str, Any]) -> Worker:
    """The worker ready for another trial; a new one where it died or was out of time."""
    if worker.process.is_alive():
        worker.trial = None
        return worker
    worker.end()
    return start_worker(plan)


def work(connection: Connection, plan: dict[str, Any]) -> None:
    """A worker's life: trials in, results out, until the other end is gone."""
    from experiments.trials import run_trial

    while True:
        try:
            connection.send(run_trial(connection.recv(), plan))
        except (EOFError, BrokenPipeError):
            return


def write(trial: Trial, result: dict[str, Any]) -> None:
    """The result's file, whole or not at all."""
    from gammagmm._support.files import write_document

    trial.path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain({"trial": str(trial)} | result), indent=1, allow_nan=False)
    write_document(text + "\n", trial.path, overwrite=True)


def plain(value: Any) -> Any:
    """`value` with NaN, which JSON has not, as null."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def show(trial: Trial, result: dict[str, Any], n_done: int, n_trials: int, start: float) -> None:
    """One line for a trial, with the time left if the others take as long as these did."""
    left = (time.monotonic() - start) / n_done * (n_trials - n_done)
    done = f"[{n_done}/{n_trials}, {left / 60:.0f} min left]"
    print(f"{done} {trial} {result['status']} {result.get('reason', '')}", flush=True)


def _lacks_cache(scores: Trial) -> bool:
    if not scores.path.exists():
        return True
    was_ok = json.loads(scores.path.read_text())["status"] == "ok"
    return was_ok and not cache_path(scores.collection, scores.dataset).exists()


if __name__ == "__main__":
    # Before NumPy is loaded, here and in the workers: one thread a trial, one trial a core.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    sys.exit(main())
