"""Rows flagged with a bound on the false discovery rate: conformal p-values and Benjamini-Hochberg.

    python -m experiments.guaranteed_flags [--workers N]

A quarter of each table is tested against reference rows. In the split design, the detectors train
on half of the rows, and the reference is the last quarter. In the large design, they are fitted to
all rows, without labels, and the reference is the other three quarters. The references:

- "no labels": the rows as they are;
- "30 labels": without the anomalies among its 30 highest scores (Label-Trim of Bashari, Sesia and
  Romano, ICML 2025);
- "clean": the normal rows alone, and in the split design the detectors train on normal rows alone;
- "learned": 30 labels, 15 of rows that `suggest` chooses and 15 of those that then rank first,
  teach the ranking, and the anomalies among them are removed;
- "learned, clean": the same ranking, and the normal rows alone, which nobody has: a limit;
- "nonconform", "nonconform, folds": nonconform itself with an isolation forest on the normal rows
  of the three quarters, by `Split(0.5)` and by `CrossValidation(5)`.

It writes results/guaranteed_flags.json and the table of docs/guides/p-values.md. It takes about an
hour, and continues where it was interrupted: each draw has a file in build/guaranteed_flags, which
is to be deleted if the code has changed.
nonconform needs Python 3.12: use the environment of `make test-neighbours`. The environment
variable GAMMAGMM_DATA names the folder of the datasets.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import warnings
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.ensemble import IsolationForest

from experiments.datasets import data_folder, load_benchmark
from experiments.labels import default_inputs
from experiments.new_rows import unclipped_consensus
from experiments.plan import HERE
from experiments.results import RESULTS
from experiments.track_record import as_markdown
from gammagmm import GammaGMM
from gammagmm._support.files import write_document
from gammagmm.detectors.fit import score_rows
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.learned_ranking import Inputs, learn_ranking

COLLECTIONS = {"oddbench": "OddBench", "pool": "pool", "paper": "paper"}
REFERENCES = {
    "no labels": "a quarter, no labels",
    "30 labels": "a quarter, 30 labels",
    "clean": "a quarter, normal rows alone",
    "large, no labels": "three quarters, no labels",
    "large, 30 labels": "three quarters, 30 labels",
    "large, learned": "three quarters, 30 labels, learned ranking",
    "large, learned, clean": "the same, normal rows alone",
    "nonconform": "nonconform, normal rows, half of them to train",
    "nonconform, folds": "nonconform, normal rows, five folds",
}
"""The references by their names in the table."""
RATES = (0.05, 0.1, 0.2)
N_LABELS = 30
N_TAUGHT = 15
"""Of these, the labels of rows that are spread over the ranking; the others are its first rows."""
N_DRAWS = 2
FEWEST_ROWS = 100
MOST_ROWS = 4000
FLAGS = Path(RESULTS) / "guaranteed_flags.json"
DONE = HERE.parent / "build" / "guaranteed_flags"
PAGE = HERE.parent / "docs" / "guides" / "p-values.md"
MARKS = ("<!-- figures of experiments/results/guaranteed_flags.json -->\n", "<!-- end -->")

Figures = dict[str, Any]


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


def figures(scores: np.ndarray, y: np.ndarray, reference: np.ndarray) -> Figures:
    """The figures at each rate for rows that are tested against the scores of a reference."""
    p_values = conformal_p_values(scores, reference)
    return {str(rate): outcome(benjamini_hochberg(p_values, rate), y) for rate in RATES}


def outcome(chosen: np.ndarray, y: np.ndarray) -> Figures:
    """Number of flagged rows, false discovery proportion, and power; None without anomalies."""
    return {
        "flagged": int(chosen.sum()),
        "fdp": float((y[chosen] == 0).mean()) if chosen.any() else 0.0,
        "power": float(chosen[y == 1].mean()) if y.any() else None,
    }


def one_draw(collection: str, name: str, draw: int) -> Figures | None:
    """The figures of each reference on one table; None if the table is too small."""
    found = load_benchmark(name, collection)
    rng = np.random.default_rng([draw, crc32(f"{collection}/{name}".encode())])
    rows = rng.permutation(len(found.y))[:MOST_ROWS]
    X, y = found.X[rows], found.y[rows]
    if len(rows) < FEWEST_ROWS:
        return None
    n_reference = len(rows) - len(rows) // 4
    return {
        **split_design(X, y, n_reference, draw),
        **large_design(default_inputs(X, draw), y, n_reference, rng),
        **by_nonconform(X[:n_reference][y[:n_reference] == 0], X[n_reference:], y, draw),
    }


def split_design(X: np.ndarray, y: np.ndarray, n_reference: int, draw: int) -> Figures:
    """Detectors of the first half of the rows; those before row `n_reference` are the reference."""
    half = len(y) // 2
    y_reference, y_test = np.split(y[half:], [n_reference - half])
    mixed = np.split(consensus(X[:half], X[half:], draw), [n_reference - half])
    clean = np.split(consensus(X[:half][y[:half] == 0], X[half:], draw), [n_reference - half])
    return {
        "no labels": figures(mixed[1], y_test, mixed[0]),
        "30 labels": figures(mixed[1], y_test, trimmed(mixed[0], y_reference, N_LABELS)),
        "clean": figures(clean[1], y_test, clean[0][y_reference == 0]),
    }


def large_design(
    inputs: Inputs, y: np.ndarray, n_reference: int, rng: np.random.Generator
) -> Figures:
    """Detectors of all rows, which treat reference rows and tested rows alike."""
    y_reference, y_test = np.split(y, [n_reference])
    reference, tested = np.split(inputs.consensus, [n_reference])
    learned, known = learned_scores(inputs, y, n_reference, rng)
    own, left = learned[:n_reference], np.setdiff1d(np.arange(n_reference), known[y[known] == 1])
    return {
        "large, no labels": figures(tested, y_test, reference),
        "large, 30 labels": figures(tested, y_test, trimmed(reference, y_reference, N_LABELS)),
        "large, learned": figures(learned[n_reference:], y_test, own[left]),
        "large, learned, clean": figures(learned[n_reference:], y_test, own[y_reference == 0]),
    }


def learned_scores(
    inputs: Inputs, y: np.ndarray, n_reference: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Scores by the ranking that labels of reference rows teach, and these rows.

    A labelled row has the score without its own label. The rows are spread over the ranking, then
    the first ones of the ranking that these teach.
    """
    spread = LabelledRows(inputs.consensus[:n_reference]).suggest(N_TAUGHT, random_state=rng)
    rows = LabelledRows(inputs.consensus).update(spread, y[spread])
    scores = learn_ranking(inputs, rows.known_rows, 0).honest_scores[:n_reference].copy()
    scores[spread] = -np.inf
    first = np.argsort(-scores, kind="stable")[: N_LABELS - N_TAUGHT]
    rows = rows.update(first, y[first], purpose="find")
    learned = learn_ranking(inputs, rows.known_rows, 0)
    return learned.honest_scores, rows.known_rows.rows


def by_nonconform(clean: np.ndarray, tested: np.ndarray, y: np.ndarray, draw: int) -> Figures:
    """What nonconform selects from `tested`, the last rows of a table with the labels `y`."""
    from nonconform import ConformalDetector, CrossValidation, Split

    logging.getLogger("nonconform").setLevel(logging.ERROR)  # it reports when it selects nothing
    found = {}
    for name, strategy in (
        ("nonconform", Split(n_calib=0.5)),
        ("nonconform, folds", CrossValidation(k=5)),
    ):
        forest = IsolationForest(random_state=draw)
        detector = ConformalDetector(forest, strategy=strategy, seed=draw).fit(clean)
        found[name] = {
            str(rate): outcome(detector.select(tested, alpha=rate), y[-len(tested) :])
            for rate in RATES
        }
    return found


def one_table(table: tuple[str, str]) -> Figures:
    """The draws of a table; none if it is too small."""
    collection, name = table
    draws = [kept_draw(collection, name, draw) for draw in range(N_DRAWS)]
    return {"collection": collection, "name": name, "draws": [d for d in draws if d is not None]}


def kept_draw(collection: str, name: str, draw: int) -> Figures | None:
    """The figures of a draw, from its file if it has one."""
    path = DONE / f"{collection}-{name}-{draw}.json"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tables are as they are; only the scores count here
            found = one_draw(collection, name, draw)
        write_document(json.dumps(found) + "\n", path)
    return json.loads(path.read_text(encoding="utf-8"))


def summary(tables: list[Figures]) -> Figures:
    """Means over tables, each with the same weight, by collection, reference and rate."""
    means: Figures = {}
    for collection in COLLECTIONS:
        used = [t["draws"] for t in tables if t["collection"] == collection and t["draws"]]
        means[collection] = {"tables": len(used)} | {
            reference: {str(rate): _means(used, reference, str(rate)) for rate in RATES}
            for reference in REFERENCES
        }
    return means


def _means(tables: list[Any], reference: str, rate: str) -> dict[str, float]:
    """Mean over the draws of each table, then over the tables.

    `nothing` is how often no row is flagged, `fdp_if_any` the mean false discovery proportion in
    the other cases, and `fdp_error` the standard error of `fdp`.
    """
    each = [[draw[reference][rate] for draw in draws] for draws in tables]
    fdp = [np.mean([f["fdp"] for f in fs]) for fs in each]
    nothing = [np.mean([f["flagged"] == 0 for f in fs]) for fs in each]
    any_flagged = np.sum(1.0 - np.array(nothing))
    power = [[f["power"] for f in fs if f["power"] is not None] for fs in each]
    figures = {
        "fdp": np.mean(fdp),
        "fdp_error": np.std(fdp) / np.sqrt(len(fdp)),
        "fdp_if_any": np.sum(fdp) / any_flagged if any_flagged > 0.0 else 0.0,
        "power": np.mean([np.mean(fs) for fs in power if fs]),
        "nothing": np.mean(nothing),
    }
    return {name: round(float(value), 4) for name, value in figures.items()}


def section(found: Figures) -> str:
    """The table of the page, between its marks."""
    heads = [f"{name} {rate:.0%}" for name in COLLECTIONS.values() for rate in RATES]
    places = [(collection, str(rate)) for collection in COLLECTIONS for rate in RATES]
    lines = [
        [words, *(cell(found[collection][reference][rate]) for collection, rate in places)]
        for reference, words in REFERENCES.items()
    ]
    return f"{MARKS[0]}{as_markdown(['reference', *heads], lines)}\n{MARKS[1]}"


def cell(figures: dict[str, float]) -> str:
    """False discovery proportion and power in per cent."""
    return f"{100 * figures['fdp']:.1f} / {100 * figures['power']:.1f}"


def tables_of(folder: Path) -> list[str]:
    """Names of the tables of a collection."""
    return sorted(path.stem for path in folder.iterdir() if path.suffix in (".npz", ".arff"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    folder = data_folder()
    if folder is None:
        parser.error("GAMMAGMM_DATA is not set.")
    workers = parser.parse_args().workers
    tables = [
        (collection, name) for collection in COLLECTIONS for name in tables_of(folder / collection)
    ]
    DONE.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        done = pool.map(one_table, tables, chunksize=1)
    found = summary(done)
    write_document(json.dumps(found, indent=1) + "\n", FLAGS, overwrite=True)
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    write_document(before + section(found) + after, PAGE, overwrite=True)


if __name__ == "__main__":
    main()
