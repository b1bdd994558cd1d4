"""Wrong labels: coverage of the 90 % interval with and without their rate, and learned rankings.

    python -m experiments.label_error [--workers N]

writes results/label_error.json. The rankings are those of every third table of the track record.
For the intervals, nothing is simulated: the true share has the reference distribution or is fixed,
and each label is wrong with the same probability. The number of labels that say "anomaly" is
binomial, so that each figure is a sum over its values and over quantiles of the share.
"""

from __future__ import annotations

import json
import warnings
from itertools import product
from typing import Any

import numpy as np
from joblib import delayed
from scipy.stats import binom
from sklearn.metrics import average_precision_score

from experiments import data
from experiments.datasets import MissingDataError
from experiments.labels import default_inputs
from experiments.plan import load_plan, record_tables
from experiments.reliability import parse_workers
from experiments.results import RESULTS
from gammagmm import GammaPosterior
from gammagmm._support.files import write_document
from gammagmm.errors import GammaGMMWarning
from gammagmm.labels.label_error import posterior_with_errors
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.learned_ranking import learn_ranking
from gammagmm.posterior.track_record import load_label_prior

NUMBERS, ERRORS, N_QUANTILES = (30, 100), (0.0, 0.02, 0.05, 0.1), 400
SHARES = (0.0, 0.0003, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
MAX_ROWS, N_DRAWS, EVERY = 2_000, 2, 3
WORSE = 0.02
"""A difference of the average precision that counts."""
FILE = RESULTS / "label_error.json"


def main() -> None:
    workers = parse_workers(__doc__)
    tables = record_tables(load_plan())[::EVERY]
    found = [own for own in workers(delayed(precisions)(*table) for table in tables) if own]
    told = coverage() | {"average_precision": summary(found)}
    write_document(json.dumps(told, indent=1) + "\n", FILE, overwrite=True)


def precisions(collection: str, name: str) -> dict[str, float]:
    """Mean average precision of the rows without labels, by number of labels and rate of errors.

    "consensus" is the ranking without labels, on the same rows. It is empty if the table is not
    there, or if the rows have too few anomalies.
    """
    try:
        found = data.load(collection, name)
    except MissingDataError:
        return {}
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(found.y))[:MAX_ROWS]
    X, y = found.X[rows], found.y[rows]
    if y.sum() < 5 or len(y) < 2 * max(NUMBERS):
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GammaGMMWarning)
        inputs = default_inputs(X, 0)
    values: dict[str, list[float]] = {}
    for n in NUMBERS:
        for draw in range(N_DRAWS):
            known = LabelledRows(inputs.consensus).suggest(n, random_state=draw)
            left, wrong = np.setdiff1d(np.arange(len(y)), known), rng.random(n)
            if not 0 < y[left].sum() < len(left):
                continue
            without = average_precision_score(y[left], inputs.consensus[left])
            values.setdefault(f"{n} consensus", []).append(without)
            for error in ERRORS:
                labels = np.where(wrong < error, 1 - y[known], y[known])
                rows_known = LabelledRows(inputs.consensus).update(known, labels).known_rows
                for name, assumed in (("without", 0.0), ("with", error)):
                    taught = learn_ranking(inputs, rows_known, 0, error=(assumed, assumed))
                    own = average_precision_score(y[left], taught.scores[left])
                    values.setdefault(f"{n} {error:g} {name}", []).append(own)
    return {key: float(np.mean(own)) for key, own in values.items()}


def summary(tables: list[dict[str, float]]) -> dict[str, Any]:
    """Means over the tables with all figures, and where the learned ranking is worse."""
    n_figures = max(map(len, tables))
    tables = [table for table in tables if len(table) == n_figures]
    told: dict[str, Any] = {"n_tables": len(tables)}
    for n in NUMBERS:
        without = np.array([table[f"{n} consensus"] for table in tables])
        told[str(n)] = {"consensus": float(without.mean())}
        for error in ERRORS:
            told[str(n)][f"{error:g}"] = {}
            for name in ("without", "with"):
                own = np.array([table[f"{n} {error:g} {name}"] for table in tables])
                worse = float((own < without - WORSE).mean())
                told[str(n)][f"{error:g}"][name] = {"learned": float(own.mean()), "worse": worse}
    return told


def coverage() -> dict[str, Any]:
    """Coverage and width by number of labels and rate of errors, over the reference and by share.

    "without" takes the labels as if they were right, and "with" has the right rate.
    """
    likely = GammaPosterior.reference().ppf((np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)
    told: dict[str, Any] = {"coverage": {}, "by_share": {}}
    for n, error in product(NUMBERS, ERRORS):
        on_average: dict[str, dict[str, float]] = {}
        by_share: dict[str, dict[str, float]] = {}
        for name, assumed in (("without", 0.0), ("with", error)):
            ends = intervals(n, assumed)
            held, widths = of_shares(likely, ends, error)
            on_average[name] = {"held": float(held.mean()), "width": float(widths.mean())}
            held, _ = of_shares(np.array(SHARES), ends, error)
            by_share[name] = dict(zip((f"{x:g}" for x in SHARES), held.tolist(), strict=True))
        told["coverage"].setdefault(str(n), {})[f"{error:g}"] = on_average
        told["by_share"].setdefault(str(n), {})[f"{error:g}"] = by_share
    return told


def intervals(n: int, error: float) -> np.ndarray:
    """Ends (n + 1, 2) of the 90 % interval after 0, ..., n labels that say "anomaly"."""
    prior, rates = load_label_prior(), (error, error)
    return np.array([posterior_with_errors(n, k, prior, rates).interval() for k in range(n + 1)])


def of_shares(shares: np.ndarray, ends: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray]:
    """Coverage and mean width at each of the `shares` if labels are wrong with this rate."""
    n, (low, high) = len(ends) - 1, ends.T
    p = shares * (1.0 - error) + (1.0 - shares) * error
    p_found = binom.pmf(np.arange(n + 1), n, p[:, None])
    is_held = (low <= shares[:, None]) & (shares[:, None] <= high)
    return (p_found * is_held).sum(axis=1), p_found @ (high - low)


if __name__ == "__main__":
    main()
