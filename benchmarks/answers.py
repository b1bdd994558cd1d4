"""How far the answers move from those of an earlier commit, on real score matrices.

    python benchmarks/answers.py

Each commit fits ``GammaGMM("precomputed")`` with its defaults to the score matrices in the folder
scores of GAMMAGMM_DATA, by five seeds, in a process of its own. Writes
benchmarks/results/answers.json: the mean absolute error of the posterior means, CRPS and coverage
of the 90 % range, each an average over sets and seeds, and the standard deviation of the means over
the seeds; the mean change of the posterior mean, and its mean absolute change.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from fits import checked_out
from timing import SOURCE, in_new_process, measure
from waits import EARLIER

N_SEEDS = 5
GRID = np.linspace(0.0, 1.0, 4001)


def answers_of(n_sets, n_seeds):
    """In a new process: what its gammagmm says of each score matrix, by seed."""
    from gammagmm import GammaGMM

    warnings.simplefilter("ignore")
    found = {}
    for path in sorted(Path(os.environ["GAMMAGMM_DATA"], "scores").glob("*.npz"))[:n_sets]:
        with np.load(path) as data:
            S, truth = data["S"], float(data["y"].mean())
        found[path.stem] = [
            judged(GammaGMM("precomputed", random_state=seed).fit(S).posterior_, truth)
            for seed in range(n_seeds)
        ]
    return found


def judged(posterior, truth):
    low, high = posterior.interval(0.9)
    return {
        "mean": posterior.mean,
        "error": abs(posterior.mean - truth),
        "crps": np.trapezoid((posterior.cdf(GRID) - (truth <= GRID)) ** 2, GRID),
        "holds": float(low <= truth <= high),
    }


def summary(found):
    """Averages over sets and seeds."""
    ones = [one for own in found.values() for one in own]
    spreads = [np.std([one["mean"] for one in own], ddof=1) for own in found.values()]
    averages = {key: np.mean([one[key] for one in ones]) for key in ("error", "crps", "holds")}
    return {
        "MAE": averages["error"],
        "CRPS": averages["crps"],
        "coverage": averages["holds"],
        "spread of seeds": np.sqrt(np.mean(np.square(spreads))),
    }


def answers(quick):
    """Both commits on all sets."""
    n_sets, n_seeds = (1, 2) if quick else (None, N_SEEDS)
    with checked_out(EARLIER) as earlier:
        before, now = (
            in_new_process(answers_of, source=source, n_sets=n_sets, n_seeds=n_seeds)
            for source in (earlier, SOURCE)
        )
    for found in (before, now):
        del found["peak_gigabytes"]
    means = [
        np.array([np.mean([one["mean"] for one in own]) for own in found.values()])
        for found in (before, now)
    ]
    change = means[1] - means[0]
    return {
        "earlier": EARLIER,
        "sets": len(before),
        "seeds": n_seeds,
        "before": summary(before),
        "now": summary(now),
        "change": {"mean": change.mean(), "absolute": np.abs(change).mean()},
    }


if __name__ == "__main__":
    measure(__doc__, {"answers": answers})
