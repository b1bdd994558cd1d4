"""What fitting the detectors of superlinear cost on a subset of the rows changes (deviation D13).

    python experiments/subsample.py

For benchmark sets of 1,700 to 4,700 rows and subsets of a half and a fifth of the rows, writes
experiments/results/subsample.csv: for each detector the mean score of the rows it was fitted on
less that of the rows it scored as new, in standard deviations of the score space, averaged over
five subsets with its standard error; the Spearman correlation with the exact scores; and, over
the whole preset `classic`, the posterior mean with and without the subset.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from gammagmm import GammaGMM
from gammagmm.datasets import load_benchmark
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import resolve_detectors
from gammagmm.errors import GammaGMMWarning
from gammagmm.mixture.score_space import fit_scaler

OUT = Path(__file__).parent / "results" / "subsample.csv"
DATASETS = ("Cardiotocography", "Waveform", "Wilt")
NAMES = ("KNN", "LOF", "OCSVM", "LSCP")
N_SUBSETS = 5


def score(X, size, seed):
    """Scores (n, 4) and the rows that the detectors were fitted on."""
    made, _ = resolve_detectors(list(NAMES), len(X), size)
    rng = np.random.default_rng(seed)
    fitted = fit_detectors(made, X, rng, FitSettings(size, n_jobs=2))
    sample_rng = np.random.default_rng(seed).spawn(1 + len(NAMES))[0]
    is_fitted = np.zeros(len(X), dtype=bool)
    is_fitted[sample_rng.choice(len(X), size, replace=False)] = True
    return fitted.scores, is_fitted


def biases(X, share, exact):
    """Shift between fitted and new rows (5, 4), and rank agreement with `exact` (5, 4)."""
    shifts, ranks = [], []
    for seed in range(N_SUBSETS):
        scores, is_fitted = score(X, int(share * len(X)), seed)
        space = fit_scaler(scores).transform(scores)
        shifts.append(space[is_fitted].mean(axis=0) - space[~is_fitted].mean(axis=0))
        ranks.append([spearmanr(*pair)[0] for pair in zip(scores.T, exact.T, strict=True)])
    return np.array(shifts), np.array(ranks)


def posterior_mean(X, max_fit_rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GammaGMMWarning)  # runs without a solution are no matter
        estimator = GammaGMM(max_fit_rows=max_fit_rows, random_state=0, n_jobs=2).fit(X)
    return estimator.posterior_.mean


def study(dataset, share):
    """Rows of the table."""
    X = load_benchmark(dataset).X
    exact, _ = score(X, len(X), 0)
    shifts, ranks = biases(X, share, exact)
    means = posterior_mean(X, None), posterior_mean(X, int(share * len(X)))
    for j, name in enumerate(NAMES):
        yield {
            "dataset": dataset,
            "rows": len(X),
            "share_fitted": share,
            "detector": name,
            "shift": round(shifts[:, j].mean(), 4),
            "standard_error": round(shifts[:, j].std(ddof=1) / np.sqrt(N_SUBSETS), 4),
            "spearman": round(ranks[:, j].mean(), 4),
            "posterior_mean_exact": round(means[0], 4),
            "posterior_mean_subset": round(means[1], 4),
        }


def main():
    table = []
    for dataset in DATASETS:
        for share in (0.5, 0.2):
            table.extend(study(dataset, share))
            print(*table[-len(NAMES) :], sep="\n", flush=True)
            with OUT.open("w", newline="") as file:
                writer = csv.DictWriter(file, table[0])
                writer.writeheader()
                writer.writerows(table)


if __name__ == "__main__":
    main()
