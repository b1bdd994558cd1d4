"""Labels of single rows: error, coverage and width against their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.results import Results

Row = dict[str, Any]


def inspection(results: Results) -> list[Row]:
    """Mean figures over the sets and repeats, by collection, way of choosing and labels."""
    rows = []
    for collection in results.plan["collections"]:
        for variant in results.plan["inspection"]["variants"]:
            found = _found(results, collection, variant)
            if not found:
                continue
            if variant == "random":
                fits = [f["fitted"] for f in found]
                rows.append(_row(collection, "gammaGMM, no labels", 0, fits, len(found)))
            for n in results.plan["inspection"]["labels"]:
                each = [r for f in found for repeat in f["repeats"] for r in repeat if r["n"] == n]
                n_sets = sum(any(r["n"] == n for r in f["repeats"][0]) for f in found)
                rows.append(_row(collection, variant, n, each, n_sets))
    return rows


def _found(results: Results, collection: str, variant: str) -> list[Row]:
    names = results.datasets(collection)
    found = [results.get("inspection", collection, name, variant) for name in names]
    return [f for f in found if f]


def _row(collection: str, method: str, n: int, figures: list[Row], n_sets: int) -> Row:
    row = {"collection": collection, "method": method, "labels": n, "sets": n_sets}
    names = {"mae": "error", "crps": "crps", "coverage_90": "covers", "width_90": "width"}
    return row | {name: np.mean([f[key] for f in figures]) for name, key in names.items()}


def inspection_made(results: Results) -> list[Row]:
    """Coverage and width on made-up ranks whose share of anomalies is known."""
    made, rows = results.plan["inspection"]["made"], []
    for ranking in made["rankings"]:
        for share in made["shares"]:
            row: Row = {"ranking": ranking, "gamma": float(share)}
            for variant in made["variants"]:
                found = results.get("inspection", "made", f"{ranking}-{share}", variant)
                if found:
                    repeats = found["repeats"]
                    row["repeats"] = len(repeats)
                    row[f"{variant}_coverage"] = np.mean([r["covers"] for r in repeats])
                    width = np.mean([r["width"] for r in repeats])
                    row[f"{variant}_width"] = width
                    row[f"{variant}_of_prior"] = width / found["prior_width"]
            rows.append(row)
    return rows
