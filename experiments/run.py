"""Runs the trials of the plan that have no result yet, on all cores.

    python -m experiments.run [--small] [--only KIND ...]

Each result is appended to the file of its kind as soon as its trial ends. A run that was stopped or
killed continues where it was; it loses only the trials that were running. The environment variable
GAMMAGMM_DATA names the folder of the datasets.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from experiments.data import NO_FOLDER, cache_path
from experiments.datasets import data_folder
from experiments.plan import Trial, load_plan, small_plan, trials
from experiments.results import RESULTS, Result, append_result, only_writer, read_results

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ORDER = (
    *("gamma", "constant", "threshold", "ablation", "subset", "dose"),
    *("pyod_agreement", "deep_agreement", "subsample", "settings", "new_rows", "quiet"),
    *("seeds", "row_order"),
    *("record", "sceptic", "clean", "groups", "labels", "learning", "finding", "peers"),
)
NEED_RECORD = frozenset({"labels", "finding"})
NEED_SCORES = frozenset({"gamma", "threshold", "constant", "subset", "ablation"})


@dataclass
class Worker:
    """A process that runs one trial after another; a trial that exceeds its limit ends it."""

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
    parser.add_argument("--small", action="store_true", help="four small datasets, every question")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="default: cores")
    parser.add_argument("--only", nargs="*", help="kinds of trials")
    options = parser.parse_args()
    plan = small_plan(load_plan()) if options.small else load_plan()
    with only_writer() as is_alone:
        if not is_alone:
            raise SystemExit(f"Another run writes to {RESULTS}. Wait for it, or stop it.")
        todo = pending(plan, options.only)
        print(f"{len(todo)} trials to do", flush=True)
        if todo:
            # Checked here, so that a run without the folder does not record failures.
            if data_folder() is None:
                raise SystemExit(NO_FOLDER)
            run(todo, plan, options.workers)


def pending(plan: dict[str, Any], kinds: list[str] | None = None) -> list[Trial]:
    """The trials without a result, and the scores that they need, most urgent first."""
    done = read_results()
    asked = [trial for trial in trials(plan) if not kinds or trial.kind in kinds]
    todo = [trial for trial in asked if trial not in done]
    needy = [t for t in todo if t.kind in NEED_SCORES and t.collection != "made"]
    users = {(t.collection, t.dataset) for t in needy}
    for collection, dataset in sorted(users):
        scores = Trial("scores", collection, dataset, "all")
        has_cache = cache_path(collection, dataset).exists()
        is_lost = scores in done and done[scores]["status"] == "ok" and not has_cache
        if scores not in todo and (scores not in done or is_lost):
            todo.append(scores)
    return sorted(todo, key=lambda trial: urgency(trial, plan))


def urgency(trial: Trial, plan: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key: scores that others need and the paper's datasets first, large datasets last."""
    is_large = trial.dataset in plan["large"]
    if trial.kind == "scores":
        return trial.collection != "paper", -1, not is_large
    return trial.collection != "paper", is_large, ORDER.index(trial.kind)


def run(todo: list[Trial], plan: dict[str, Any], n_workers: int) -> None:
    """Give the trials to the workers and append their results, until no trial is left."""
    waiting, n_done, start = deque(todo), 0, time.monotonic()
    workers = [start_worker(plan) for _ in range(min(n_workers, len(todo)))]
    try:
        while waiting or any(worker.trial for worker in workers):
            for worker in workers:
                if worker.trial is None and (trial := next_ready(waiting, workers)):
                    worker.give(trial)
            for i, result in finished(workers, plan):
                append_result(workers[i].trial, result)
                n_done += 1
                show(workers[i].trial, result, n_done, len(todo), start)
                workers[i] = renew(workers[i], plan)
    finally:
        for worker in workers:
            worker.end()


def next_ready(waiting: deque[Trial], workers: list[Worker]) -> Trial | None:
    """The next trial that does not wait for others, removed from `waiting`."""
    scoring = {(t.collection, t.dataset) for t in waiting if t.kind == "scores"}
    for worker in workers:
        if worker.trial and worker.trial.kind == "scores":
            scoring.add((worker.trial.collection, worker.trial.dataset))
    running = [worker.trial for worker in workers if worker.trial]
    is_recorded = not any(trial.kind == "record" for trial in [*waiting, *running])
    for trial in waiting:
        is_scored = (
            trial.kind not in NEED_SCORES or (trial.collection, trial.dataset) not in scoring
        )
        # The prior of the labels comes from the results of all tables.
        if is_scored and (trial.kind not in NEED_RECORD or is_recorded):
            waiting.remove(trial)
            return trial
    return None


def finished(workers: list[Worker], plan: dict[str, Any]) -> list[tuple[int, Result]]:
    """Index and result of each worker that has ended its trial, died or exceeded the limit."""
    busy = {worker.connection: i for i, worker in enumerate(workers) if worker.trial}
    results = []
    for connection in wait(list(busy), timeout=1.0):
        i = busy.pop(connection)
        try:
            results.append((i, connection.recv()))
        except EOFError:
            workers[i].process.kill()
            workers[i].process.join()
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
    # A daemon may not start processes, and some detectors run in a process of their own.
    process = context.Process(target=work, args=(theirs, plan))
    process.start()
    theirs.close()
    return Worker(process, ours)


def renew(worker: Worker, plan: dict[str, Any]) -> Worker:
    """The worker, ready for another trial, or a new one if it died or was killed."""
    if worker.process.is_alive():
        worker.trial = None
        return worker
    worker.end()
    return start_worker(plan)


def work(connection: Connection, plan: dict[str, Any]) -> None:
    """Receive trials and send their results, until the runner ends."""
    from experiments.trials import run_trial

    while True:
        try:
            connection.send(run_trial(connection.recv(), plan))
        except (EOFError, BrokenPipeError):
            return


def show(trial: Trial, result: Result, n_done: int, n_trials: int, start: float) -> None:
    """Print one line for a trial, with the time that is left at the pace so far."""
    left = (time.monotonic() - start) / n_done * (n_trials - n_done)
    done = f"[{n_done}/{n_trials}, {left / 60:.0f} min left]"
    print(f"{done} {trial} {result['status']} {result.get('reason', '')}", flush=True)


if __name__ == "__main__":
    # The workers inherit these before they load NumPy: one thread for a trial, one trial a core.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    sys.exit(main())
