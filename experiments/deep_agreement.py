"""Our auto-encoders beside those of PyOD: the same ranks, in what share of the time?

    python experiments/deep_agreement.py

Writes experiments/results/deep_agreement.csv, a row for each benchmark set and network as soon as
it is there; a stopped run goes on where it was. PyOD seeds every generator of its process, so that
each row is the work of a new one, on one thread. The seconds are processor time of a fit, the
lesser of two, without what the first fit of a process has to load and compile.
"""

from __future__ import annotations

import csv
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from gammagmm.datasets import benchmark_names, data_folder, load_benchmark

SETS = (
    "Glass",
    "Stamps",
    "WDBC",
    "Pima",
    "Cardiotocography",
    "SpamBase",
    "Waveform",
    "Wilt",
    "PageBlocks",
)
NETWORKS = ("AE", "VAE")
WARM_UP_ROWS = 64

OUT = Path(__file__).parent / "results" / "deep_agreement.csv"


def classes(network):
    """PyOD's class and ours."""
    from pyod.models import auto_encoder, vae

    from gammagmm.detectors import autoencoders as neural

    theirs = {"AE": auto_encoder.AutoEncoder, "VAE": vae.VAE}
    return theirs[network], getattr(neural, network)


def timed_fit(made, X, seed):
    """Fitted detector and seconds."""
    detector = made(random_state=seed, verbose=0)
    start = time.process_time()
    detector.fit(X)
    return detector, time.process_time() - start


def compare(name, network):
    """A row of the table; the work of a process of its own."""
    import torch

    torch.set_num_threads(1)
    dataset = load_benchmark(name)
    theirs, ours = pair = classes(network)
    for made in pair:
        timed_fit(made, dataset.X[:WARM_UP_ROWS], 0)
    # In turns, so that whatever else the machine does slows both.
    turns = [(made, seed) for seed in (0, 1) for made in pair]
    fits = {(made, seed): timed_fit(made, dataset.X, seed) for made, seed in turns}
    again = fits[theirs, 0][0].decision_function(dataset.X)
    scores = {turn: detector.decision_scores_ for turn, (detector, _) in fits.items()}
    pyod_seconds, our_seconds = (min(fits[made, 0][1], fits[made, 1][1]) for made in pair)
    return {
        "dataset": name,
        "network": network,
        "rows": dataset.X.shape[0],
        "features": dataset.X.shape[1],
        **agreements(scores, theirs, ours, again),
        "auc_pyod": round(roc_auc_score(dataset.y, scores[theirs, 0]), 4),
        "auc_ours": round(roc_auc_score(dataset.y, scores[ours, 0]), 4),
        "seconds_pyod": round(pyod_seconds, 2),
        "seconds_ours": round(our_seconds, 2),
        "times_faster": round(pyod_seconds / our_seconds, 1),
    }


def agreements(scores, theirs, ours, again):
    """Rank correlations; `again` are PyOD's scores of seed 0, by the same network once more."""
    pairs = {
        "pyod_seed_0_vs_1": (scores[theirs, 0], scores[theirs, 1]),
        "ours_seed_0_vs_1": (scores[ours, 0], scores[ours, 1]),
        "pyod_scored_twice": (scores[theirs, 0], again),
        "ours_vs_pyod_seed_0": (scores[ours, 0], scores[theirs, 0]),
    }
    return {name: round(float(spearmanr(*pair).statistic), 6) for name, pair in pairs.items()}


def finished():
    """Rows that an earlier run has written."""
    if not OUT.exists():
        return []
    with OUT.open(newline="") as file:
        return list(csv.DictReader(file))


def append(row):
    is_new = not OUT.exists()
    with OUT.open("a", newline="") as file:
        writer = csv.DictWriter(file, row)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def main():
    if data_folder() is None:
        raise SystemExit("The benchmark sets are not at hand: set GAMMAGMM_DATA.")
    done = {(row["dataset"], row["network"]) for row in finished()}
    pairs = [(name, network) for name in SETS for network in NETWORKS]
    for name, network in pairs:
        if name in benchmark_names() and (name, network) not in done:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                row = pool.submit(compare, name, network).result()
            append(row)
            print(row, flush=True)
    for row in finished():
        loss = float(row["pyod_seed_0_vs_1"]) - float(row["ours_vs_pyod_seed_0"])
        if loss > 0.02:
            print(f"{row['dataset']} {row['network']}: {loss:.3f} below PyOD's own agreement")


if __name__ == "__main__":
    main()
