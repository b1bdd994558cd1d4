"""Result files -> tables, one CSV file each under results/tables.

python -m experiments.tables
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.accuracy import best_detectors, errors, f1
from experiments.calibrations import ablation, calibration, sensitivity
from experiments.results import OURS, Results, found_by
from experiments.sharpened import inspection, inspection_made

Row = dict[str, Any]


def datasets(results: Results) -> list[Row]:
    """Tables 1 and 2: each set's posterior beside the paper's."""
    rows = []
    for collection in results.plan["collections"]:
        for name in results.datasets(collection):
            rows.append(_dataset_row(results, collection, name))
    return rows


def _dataset_row(results: Results, collection: str, name: str) -> Row:
    paper = results.paper["tables"]["datasets"].get(name) if collection == "paper" else None
    row = {"collection": collection, "dataset": name, "paper_mean": paper[3] if paper else None}
    state = results.state("gamma", collection, name, "default")
    found = results.get("gamma", collection, name, "default")
    if found is None:
        return row | {"true_gamma": paper[2] if paper else None, "state": state}
    figures = found["figures"]
    return row | {
        "state": state,
        "rows": found["rows"],
        "detectors": len(found["cut"]["f1"]),
        "true_gamma": found["truth"],
        "mean": figures["mean"],
        "low": figures["low"],
        "high": figures["high"],
        "error": abs(figures["mean"] - found["truth"]),
        "crps": figures["crps"],
        "humps": len(figures["modes"]),
        "standard_error": found["standard_error"],
        "between_runs": found["between_runs"],
        **{name: found["statuses"].count(name) for name in ("solved", "slack", "unsolved")},
        "restarts": sum(found["restarts"]),
        "iterations": sum(found["iterations"]),
        "seconds": found["seconds"],
    }


def reliability(results: Results) -> list[Row]:
    """Anomalies among the rows of each probability, over the paper's sets and over the pool."""
    rows = []
    for collection in ("paper", "pool"):
        found = [f["reliability"] for f in found_by(results, collection, OURS).values()]
        for i in range(10 if found else 0):
            n, probability, anomalies = (
                sum(f[key][i] for f in found) for key in ("rows", "probability", "anomalies")
            )
            row = {"collection": collection, "bin": f"{i / 10:.1f} to {(i + 1) / 10:.1f}"}
            means = {"probability": probability / n, "anomalies": anomalies / n} if n else {}
            rows.append(row | {"rows": int(n)} | means)
    return rows


def dose(results: Results) -> list[Row]:
    """Slope and error of each method as anomalies are put into the same inliers."""
    rows = []
    for collection, dataset in _dose_sets(results):
        repeats = range(results.plan["dose"]["repeats"])
        trials = [results.get("dose", collection, dataset, str(i)) for i in repeats]
        answers = [answer for found in trials if found for answer in found["answers"]]
        row = {"collection": collection, "dataset": dataset}
        if not answers:
            rows.append(row | {"state": results.state("dose", collection, dataset, "0")})
            continue
        for method in (OURS, *results.plan["dose"]["thresholders"]):
            rows.append(row | {"method": method} | _slope(answers, method))
    return rows


def _slope(answers: list[Row], method: str) -> Row:
    """Slope and error of one method over the answers that it gave, and why it did not give more."""
    given = [answer for answer in answers if method in answer["shares"]]
    failed = {answer["failed"][method] for answer in answers if answer not in given}
    state = "; ".join(["failed in some", *sorted(failed)]) if failed else "ok"
    if len({answer["truth"] for answer in given}) < 2:
        return {"state": state, "n": len(given)}
    truth = np.array([answer["truth"] for answer in given])
    share = np.array([answer["shares"][method] for answer in given])
    slope, mae = np.polyfit(truth, share, 1)[0], np.abs(share - truth).mean()
    return {"state": state, "n": len(given), "slope": slope, "mae": mae}


def _dose_sets(results: Results) -> list[tuple[str, str]]:
    sets = [("made", "separable")]
    for collection in results.plan["collections"]:
        sets += [(collection, name) for name in results.datasets(collection)]
    return sets


def cells(results: Results) -> list[Row]:
    """Every dataset and method: its share, or the reason why there is none."""
    rows = []
    for collection in ("paper", "pool"):
        for dataset in results.datasets(collection):
            for method in results.methods:
                found = results.method(method, collection, dataset)
                state = results.state(*results.place(method, collection, dataset))
                row = {"collection": collection, "dataset": dataset, "method": method}
                share = found["share"] if found else None
                rows.append(row | {"share": share, "state": state})
    return rows


TABLES: dict[str, Callable[[Results], list[Row]]] = {
    "datasets": datasets,
    "cells": cells,
    "errors": errors,
    "f1": f1,
    "best_detectors": best_detectors,
    "calibration": calibration,
    "sensitivity": sensitivity,
    "ablation": ablation,
    "reliability": reliability,
    "dose": dose,
    "inspection": inspection,
    "inspection_made": inspection_made,
}


def to_csv(rows: list[Row]) -> str:
    """The rows as CSV, numbers to six digits; a column that any row has is a column."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
