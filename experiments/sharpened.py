"""Labels of single rows: error, coverage and width against their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.markup import formatted, markdown
from experiments.plan import inspection_variants
from experiments.results import Results

Row = dict[str, Any]


def inspection(results: Results) -> list[Row]:
    """Mean figures over the sets and repeats, by collection, way of choosing and labels."""
    rows = []
    for collection in results.plan["collections"]:
        for variant in inspection_variants(results.plan):
            found = _found(results, collection, variant)
            if not found:
                continue
            if variant == "random":
                fits = [f["fitted"] for f in found]
                rows.append(_row(collection, "gammaGMM, no labels", 0, fits, len(found)))
            for n in results.plan["inspection"]["labels"]:
                each = [r for f in found for repeat in f["repeats"] for r in repeat if r["n"] == n]
                n_sets = sum(any(r["n"] == n for r in f["repeats"][0]) for f in found)
                if each:
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


def labels_values(results: Results, made: dict[str, list[Row]]) -> dict[str, str]:
    """What the page says of labels, by the name of its place."""
    columns = {
        **{"collection": "", "method": "", "labels": "d", "sets": "d", "mae": ".4f"},
        **{"crps": ".4f", "coverage_90": ".0%", "width_90": ".3f"},
    }
    cells = {"ranking": "", "gamma": ".1%"}
    for variant in ("random", "adaptive"):
        cells |= {f"{variant}_coverage": ".1%", f"{variant}_width": ".3f"}
        cells |= {f"{variant}_of_prior": ".2f"}
    rows = made["inspection"]
    return {
        "made_repeats": str(results.plan["inspection"]["made"]["repeats"]),
        "label_repeats": str(results.plan["inspection"]["repeats"]),
        "thirty_repeats": str(results.plan["inspection"]["thirty"]["repeats"]),
        "table_labels": markdown(rows, columns),
        "table_labels_made": markdown(made["inspection_made"], cells),
        **{f"labels_{k}": v for k, v in _label_ratios(rows).items()},
    }


def _label_ratios(rows: list[Row]) -> dict[str, str]:
    """CRPS with thirty labels against that without, by collection."""
    found = {(row["collection"], row["method"], row["labels"]): row["crps"] for row in rows}
    others = {
        "fitted": ("gammaGMM, no labels", 0),
        "prior": ("random", 0),
        "plain": ("plain-thirty", 30),
    }
    ratios = {}
    for group in ("paper", "pool"):
        after = found.get((group, "random-thirty", 30))
        for name, key in others.items():
            other = found.get((group, *key))
            ratio = after / other if after is not None and other else None
            ratios[f"{group}_{name}"] = formatted(ratio, ".2f")
    return ratios
