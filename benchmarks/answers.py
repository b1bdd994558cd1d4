"""How far the answers move from those of an earlier commit, on real score matrices.

    python benchmarks/answers.py

Each commit fits ``GammaGMM("precomputed")`` with its defaults to the score matrices in the folder
scores of GAMMAGMM_DATA, by five seeds, in a process of its own. Writes
benchmarks/results/answers.json: the mean absolute error of the posterior means, CRPS and coverage
of the 90 % range, each an average over sets and seeds, and the standard deviation of the means over
the seeds; the mean change of the posterior mean, and its mean absolute change. From the results of
the track record of both commits (experiments/results/learning.jsonl) it also writes ranking.json:
the average precision of the consensus without labels, an average over the tables of a collection.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np

from timing import SOURCE, checked_out, in_new_process, measure
from waits import EARLIER

N_SEEDS = 5
LARGE = 5_000
"""Rows of the largest table that each run of a fit sees whole."""
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


def ranking(quick):
    """Average precision of the consensus by collection, of all tables and of the large ones."""
    with checked_out(EARLIER) as earlier:
        before, now = (precision_of(source.parent) for source in (earlier, SOURCE))
    found = {}
    for collection in sorted({name.split("/")[1] for name in before}):
        both = [
            (n_rows, precision, now[name][1])
            for name, (n_rows, precision) in before.items()
            if name.split("/")[1] == collection and name in now
        ]
        found[collection] = {
            size: averages([each for each in both if each[0] > least])
            for size, least in (("all", 0), ("large", LARGE))
        }
    return {"earlier": EARLIER, "large_rows": LARGE, "collections": found}


def precision_of(root):
    """Rows and average precision of the consensus, by trial of the track record."""
    lines = (root / "experiments" / "results" / "learning.jsonl").read_text().splitlines()
    return {
        one["trial"]: (one["rows"], one["figures"]["0"]["ap_consensus"])
        for one in map(json.loads, lines)
        if "ap_consensus" in one.get("figures", {}).get("0", {})
    }


def averages(tables):
    if not tables:
        return {"tables": 0}
    _, before, now = np.array(tables).T
    n_changed = int((np.abs(now - before) > 1e-9).sum())
    moved = {"before": before.mean(), "now": now.mean(), "largest_drop": (before - now).max()}
    return {"tables": len(tables), "changed": n_changed} | moved


if __name__ == "__main__":
    measure(__doc__, {"answers": answers, "ranking": ranking})
