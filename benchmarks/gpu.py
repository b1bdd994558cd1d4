"""The torch backend on one device: time per iteration, and ten runs on ten million rows.

    python benchmarks/gpu.py SCORES.npz OUT.json

SCORES.npz holds the raw scores `S` (n, M) of a named dataset. Rows are drawn from its score space
with replacement, and noise of N(0, 0.05) is added so that no two rows are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from gammagmm.mixture.backends import TorchRows
from gammagmm.mixture.fit import start_labels, update
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import start_statistics
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import fit_runs, plan_runs

N_COMPONENTS = 100
N_ITERATIONS = 100


def drawn_rows(path, n_rows):
    """Score space of `n_rows` rows drawn from those in the file."""
    with np.load(path) as archive:
        scores = archive["S"]
    rng = np.random.default_rng(0)
    space = fit_scaler(scores).transform(scores)[rng.integers(0, len(scores), n_rows)]
    return space + 0.05 * rng.normal(size=space.shape)


def iterate(rows, state, prior):
    for _ in range(N_ITERATIONS):
        state = update(rows.statistics(state.coefficients), prior)


def iteration_times(Z):
    """Milliseconds per iteration of a single run, and of several runs at the same time."""
    prior = MixturePrior().resolve(Z)
    rows = TorchRows(prior.whiten(Z))
    few = Z[:50_000]
    labels = start_labels(few, N_COMPONENTS, np.random.default_rng(0))
    state = update(start_statistics(rows.Z[:50_000], labels, N_COMPONENTS), prior)
    rows.statistics(state.coefficients)
    times = {}
    for n_runs in (1, 2, 3):
        with ThreadPoolExecutor(n_runs) as pool:
            began = time.perf_counter()
            list(pool.map(lambda _: iterate(rows, state, prior), range(n_runs)))
        times[n_runs] = 1e3 * (time.perf_counter() - began) / (N_ITERATIONS * n_runs)
    began = time.perf_counter()
    for _ in range(N_ITERATIONS):
        rows.statistics(state.coefficients)
    times["e_step"] = 1e3 * (time.perf_counter() - began) / N_ITERATIONS
    return times


def ten_runs(Z, n_jobs):
    """Seconds, iterations and outcome of ten complete runs."""
    settings, _ = plan_runs(
        Z, Constraints(), MixturePrior(), N_COMPONENTS, backend="torch", max_iter=1500
    )
    began = time.perf_counter()
    runs = fit_runs(Z, settings, (10, 0), np.random.default_rng(0), n_jobs)
    return {
        "seconds": time.perf_counter() - began,
        "n_jobs": n_jobs,
        "iterations": [run.n_iter for run in runs],
        "converged": [run.converged for run in runs],
        "status": [run.status for run in runs],
        "means": [run.posterior.mean if run.posterior else None for run in runs],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scores", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    result = {"device": name, "torch": torch.__version__, "scores": arguments.scores.stem}
    for n_rows in (1_000_000, 10_000_000):
        Z = drawn_rows(arguments.scores, n_rows)
        result[f"ms_per_iteration_{n_rows}"] = iteration_times(Z)
        arguments.out.write_text(json.dumps(result, indent=2))
        print(json.dumps(result, indent=2), flush=True)
    result["ten_runs_10000000"] = ten_runs(Z, n_jobs=3)
    arguments.out.write_text(json.dumps(result, indent=2))
    print(json.dumps(result["ten_runs_10000000"], indent=2))


if __name__ == "__main__":
    main()
