"""Rows flagged with a bound on the false discovery rate: conformal p-values and Benjamini-Hochberg.

    python -m experiments.guaranteed_flags [--workers N]

Of each table, half of the rows train the detectors, a quarter is the reference (calibration) and a
quarter is tested. The reference is the rows as they are ("no labels"), the same without the
anomalies among its 30 highest scores ("30 labels": Label-Trim of Bashari, Sesia and Romano, ICML
2025), or, with clean training rows, the normal rows alone ("clean": what nonconform asks for). It
writes results/guaranteed_flags.json. The environment variable GAMMAGMM_DATA names the folder of the
datasets.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import warnings
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from experiments.datasets import data_folder, load_benchmark
from experiments.new_rows import unclipped_consensus
from experiments.results import RESULTS
from gammagmm import GammaGMM
from gammagmm.detectors.fit import score_rows

COLLECTIONS = ("oddbench", "pool", "paper")
RATES = (0.05, 0.1, 0.2)
REFERENCES = ("no labels", "30 labels", "clean")
N_LABELS = 30
N_DRAWS = 3
FEWEST_ROWS = 100
MOST_ROWS = 4000


def conformal_p_values(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """P-values (n,): (1 + reference scores at least as high) / (1 + size of the reference)."""
    below = np.searchsorted(np.sort(reference), scores, side="left")
    return (1 + len(reference) - below) / (1 + len(reference))


def benjamini_hochberg(p_values: np.ndarray, rate: float) -> np.ndarray:
    """Whether each hypothesis is rejected at the false discovery rate `rate`."""
    n = len(p_values)
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, n + 1) / n)
    return p_values <= (ordered[passed[-1]] if passed.size else -1.0)


def trimmed(reference: np.ndarray, y: np.ndarray, n_labels: int) -> np.ndarray:
    """The reference without the anomalies among its `n_labels` highest scores."""
    top = np.argsort(-reference, kind="stable")[:n_labels]
    return np.delete(reference, top[y[top] == 1])


def consensus(training: np.ndarray, others: np.ndarray, seed: int) -> np.ndarray:
    """Scores of rows that the detectors did not see, without an upper limit."""
    fitted = GammaGMM(n_runs=1, max_restarts=0, random_state=seed).fit(training)
    scaler = fitted.fit_.column_scaler
    rows = others if scaler is None else scaler.transform(others)
    return unclipped_consensus(score_rows(fitted.detectors_, rows), fitted.fit_.scaler)


def figures(scores: np.ndarray, y: np.ndarray, reference: np.ndarray) -> dict[str, Any]:
    """False discovery proportion, power and flagged rows at each rate."""
    p_values = conformal_p_values(scores, reference)
    rejected = {rate: benjamini_hochberg(p_values, rate) for rate in RATES}
    return {
        str(rate): {
            "flagged": int(chosen.sum()),
            "fdp": float((y[chosen] == 0).mean()) if chosen.any() else 0.0,
            "power": float(chosen[y == 1].mean()),
        }
        for rate, chosen in rejected.items()
    }


def one_draw(collection: str, name: str, draw: int) -> dict[str, Any] | None:
    """The three references on one table; None if the table is too small."""
    found = load_benchmark(name, collection)
    rng = np.random.default_rng([draw, crc32(f"{collection}/{name}".encode())])
    rows = rng.permutation(len(found.y))[:MOST_ROWS]
    X, y = found.X[rows], found.y[rows]
    half, rest = np.split(np.arange(len(rows)), [len(rows) // 2])
    if len(rows) < FEWEST_ROWS or y[rest].min() == y[rest].max():
        return None
    is_reference = np.arange(len(rest)) < len(rest) // 2
    y_reference, y_test = y[rest][is_reference], y[rest][~is_reference]
    if not y_test.any():
        return None
    mixed = consensus(X[half], X[rest], draw)
    clean = consensus(X[half][y[half] == 0], X[rest], draw)
    reference, tested = mixed[is_reference], mixed[~is_reference]
    return {
        "no labels": figures(tested, y_test, reference),
        "30 labels": figures(tested, y_test, trimmed(reference, y_reference, N_LABELS)),
        "clean": figures(clean[~is_reference], y_test, clean[is_reference][y_reference == 0]),
    }


def one_table(table: tuple[str, str]) -> dict[str, Any]:
    collection, name = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables are as they are; only the scores count here
        draws = [one_draw(collection, name, draw) for draw in range(N_DRAWS)]
    return {"collection": collection, "name": name, "draws": [d for d in draws if d is not None]}


def summary(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over tables, each with the same weight, by collection, reference and rate."""
    means: dict[str, Any] = {}
    for collection in COLLECTIONS:
        used = [t["draws"] for t in tables if t["collection"] == collection and t["draws"]]
        means[collection] = {"tables": len(used)} | {
            reference: {str(rate): _means(used, reference, str(rate)) for rate in RATES}
            for reference in REFERENCES
            if used
        }
    return means


def _means(tables: list[Any], reference: str, rate: str) -> dict[str, float]:
    """Mean over the draws of each table, then over the tables; and how often nothing is flagged."""
    each = [[draw[reference][rate] for draw in draws] for draws in tables]
    figures = {
        "fdp": [np.mean([f["fdp"] for f in fs]) for fs in each],
        "power": [np.mean([f["power"] for f in fs]) for fs in each],
        "nothing": [np.mean([f["flagged"] == 0 for f in fs]) for fs in each],
    }
    return {name: round(float(np.mean(values)), 4) for name, values in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    folder = data_folder()
    if folder is None:
        parser.error("GAMMAGMM_DATA is not set.")
    workers = parser.parse_args().workers
    tables = [
        (collection, path.stem)
        for collection in COLLECTIONS
        for path in sorted((folder / collection).iterdir())
        if path.suffix in (".npz", ".arff")
    ]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        done = pool.map(one_table, tables, chunksize=1)
    content = json.dumps(summary(done), indent=1) + "\n"
    (Path(RESULTS) / "guaranteed_flags.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
