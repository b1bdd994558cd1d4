"""The torch backend on one device: ten runs on a million rows and more.

    python benchmarks/gpu.py SCORES.npz OUT.json

SCORES.npz holds the raw scores `S` (n, M) of a named dataset. Rows are drawn from them with
replacement, and noise of 0.05 standard deviations of the logarithm is added so that no two rows are
the same. Each part is run twice; the second time counts, since the first loads the libraries of the
device.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from gammagmm import GammaGMM
from gammagmm.mixture.backends import TorchRows
from gammagmm.mixture.fit import ascend, start_labels
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.score_space import fit_scaler
from gammagmm.mixture.statistics import start_moments

N_COMPONENTS = 100
N_ITERATIONS = 50


def drawn_scores(path, n_rows):
    """Raw scores of `n_rows` rows drawn from those in the file."""
    with np.load(path) as archive:
        scores = archive["S"]
    rng = np.random.default_rng(0)
    scaler = fit_scaler(scores)
    space = scaler.transform(scores)[rng.integers(0, len(scores), n_rows)]
    space += 0.05 * rng.normal(size=space.shape)
    return np.exp(space * scaler.deviation + scaler.mean)


def seconds_of(work):
    """Seconds of the second call, and its result."""
    for _ in range(2):
        began = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - began
    return seconds, result


def exact_iterations(S, n_runs):
    """Milliseconds of an exact iteration, for one run of those that are fitted together."""
    Z = fit_scaler(S).transform(S)
    prior = MixturePrior().resolve(Z)
    whitened, few = prior.whiten(Z), Z[:20_000]
    starts = [
        start_moments(whitened[:20_000], labels, N_COMPONENTS)
        for labels in start_labels(few[None], N_COMPONENTS, np.random.default_rng(0).spawn(n_runs))
    ]
    # A run has settled after one step that changes the bound by less than tol: never.
    rows, start = TorchRows(whitened[None]), np.stack(starts) * (len(Z) / len(few))
    seconds, _ = seconds_of(lambda: list(ascend(rows, start, prior, N_ITERATIONS, 0.0)))
    return 1e3 * seconds / (N_ITERATIONS * n_runs)


def whole_posterior(S, **settings):
    """Seconds from raw scores to posterior and labels, and what the runs did."""
    make = {"device": "cuda", "random_state": 0, "max_restarts": 0} | settings
    seconds, fitted = seconds_of(lambda: GammaGMM("precomputed", **make).fit(S))
    return {
        "seconds": seconds,
        "iterations": [run.n_iter for run in fitted.fit_.runs],
        "converged": [run.converged for run in fitted.fit_.runs],
        "status": [run.status for run in fitted.fit_.runs],
        "mean": fitted.posterior_.mean,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scores", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    result = {"device": name, "torch": torch.__version__, "scores": arguments.scores.stem}

    def keep(part, figures):
        result[part] = figures
        arguments.out.write_text(json.dumps(result, indent=2) + "\n")
        print(part, json.dumps(figures), flush=True)

    million = drawn_scores(arguments.scores, 1_000_000)
    for n_runs in (1, 10):
        figure = exact_iterations(million, n_runs)
        keep(f"exact_ms_per_iteration_and_run_1000000_rows_{n_runs}_runs", figure)
    keep("default_posterior_1000000_rows", whole_posterior(million))
    keep("default_posterior_20000_rows", whole_posterior(million[:20_000]))
    keep("exact_posterior_1000000_rows", whole_posterior(million, tol=1e-3, max_mixture_rows=None))
    ten_million = drawn_scores(arguments.scores, 10_000_000)
    keep("exact_ms_per_iteration_and_run_10000000_rows_1_run", exact_iterations(ten_million, 1))
    keep("default_posterior_10000000_rows", whole_posterior(ten_million))


if __name__ == "__main__":
    main()
