"""When may one stop to look for anomalies? Certified recall beside "20 normal rows in a row".

    python -m experiments.stopping [--workers N]

writes results/stopping.json. It uses the rankings with 30 labels that `experiments.reliability` has
kept. Rows are looked at from the top of the ranking. The rule stops after 20 normal rows in a row;
it is wrong if less than 80 % of the anomalies are found then. The check looks at random rows at the
same moments, if these are at most as many as were looked at before. Where it does not certify the
recall, one looks on until the next 20 normal rows in a row. `needed_looks` at the top of the
ranking find 80 %, if one knew when to stop. The confidence of the j-th check is
1 - 0.1 / 2^j, so that all statements on a table hold together with 90 %.

`left` is how often the 90 % interval of what is left contains the truth after 30 labels for the
share and 70 looks at the top of the ranking, by the trials `finding`. `precision` is how often
`n_for_precision` names a number of rows, and how often their true precision is the asked one then.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from joblib import delayed

from experiments.plan import load_plan, record_tables
from experiments.reliability import Ranked, parse_workers, ranks_path, read_ranks
from experiments.results import RESULTS, Result, read_results
from gammagmm._support.files import write_document
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.recall import RecallCheck, n_to_certify

RECALL, MASS, N_NORMAL, N_LABELS = 0.8, 0.9, 20, 30
ASKED, NUMBERS = (0.3, 0.5, 0.8), (30, 100)
LOOKS = ("rule_looks", "check_looks", "needed_looks")
FILE = RESULTS / "stopping.json"

Figures = dict[str, Any]


def main() -> None:
    workers, plan = parse_workers(__doc__), load_plan()
    wanted = [table for table in record_tables(plan) if ranks_path(*table).is_file()]
    found = workers(delayed(of_table)(*table) for table in wanted)
    results = read_results()
    figures = {}
    for collection in plan["record"]["collections"]:
        pairs = zip(wanted, found, strict=True)
        own = [each for (name, _), each in pairs if name == collection and each]
        searches = [
            result["finding"]
            for trial, result in results.items()
            if (trial.kind, trial.collection) == ("finding", collection) and result.get("finding")
        ]
        figures[collection] = summary([each["looks"] for each in own if each["looks"]]) | {
            "left": left(searches),
            "precision": {str(n): precision([each[str(n)] for each in own]) for n in NUMBERS},
        }
    write_document(json.dumps(figures, indent=1) + "\n", FILE, overwrite=True)


def left(searches: list[Result]) -> Figures:
    """Coverage and mean width of the interval, which is that of the share, over tables."""
    means = {key: float(np.mean([each[key] for each in searches])) for key in ("held", "width")}
    return {"n_tables": len(searches)} | means


def precision(tables: list[list[Figures]]) -> Figures:
    """How often a number is named, and how often it is right then, over all draws."""
    draws = [draw for own in tables for draw in own]
    told = {}
    for asked in ASKED:
        own = [draw for draw in draws if draw["asked"] == asked]
        n_named = sum(draw["named"] for draw in own)
        n_right = sum(draw["right"] for draw in own)
        told[f"{asked:g}"] = {"n": len(own), "n_named": n_named, "n_right": n_right}
    return told


def of_table(collection: str, name: str) -> dict[str, list[Figures]]:
    """Figures of each draw of the labels of a table; none if it has no anomaly."""
    draws = read_ranks(collection, name).whole
    if not draws[0][0].y.any():
        return {}
    found = {
        str(n): [figures for ranked in draws.get(n, []) for figures in precisions(ranked)]
        for n in NUMBERS
    }
    own = enumerate(draws.get(N_LABELS, []))
    return found | {"looks": [looks(ranked, np.random.default_rng(i)) for i, ranked in own]}


def precisions(ranked: Ranked) -> list[Figures]:
    """Whether `n_for_precision` names a number after these labels, and whether it is right."""
    rows, found = LabelledRows(-ranked.counts.astype(float)), []
    rows = rows.update(ranked.known, ranked.y[ranked.known])
    for asked in ASKED:
        try:
            first = rows.suggest(rows.n_for_precision(asked), purpose="find", random_state=0)
        except ValueError:
            found.append({"asked": asked, "named": False, "right": False})
            continue
        is_right = bool(ranked.y[first].mean() >= asked)
        found.append({"asked": asked, "named": True, "right": is_right})
    return found


def looks(ranked: Ranked, rng: np.random.Generator) -> Figures:
    """How many looks the rule and the check take, and whether what they say is true."""
    y, total = ranked.y, max(int(ranked.y.sum()), 1)
    order = ranked.left[np.lexsort((rng.random(len(ranked.left)), ranked.counts[ranked.left]))]
    is_known = np.zeros(len(y), dtype=bool)
    is_known[ranked.known] = True
    n_found, n_normal, n_checks = int(y[ranked.known].sum()), 0, 0
    found: Figures = {}
    for row in order:
        if is_known[row]:
            continue
        is_known[row] = True
        n_found += int(y[row])
        n_normal = 0 if y[row] else n_normal + 1
        if n_normal < N_NORMAL:
            continue
        if not found:
            found = {"rule_looks": int(is_known.sum()), "rule_recall": n_found / total}
        n_normal = 0
        mass, rest = 1.0 - (1.0 - MASS) / 2.0 ** (n_checks + 1), np.flatnonzero(~is_known)
        n_needed = n_to_certify(len(rest), n_found, RECALL, mass)
        if n_needed > is_known.sum():
            continue
        n_checks += 1
        rows = rng.permutation(rest)[:n_needed]
        result = RecallCheck(rows, len(rest), n_found, RECALL, mass).result(y[rows])
        is_known[rows] = True
        n_found += int(y[rows].sum())
        if result.is_certified:
            break
    looked, recall = int(is_known.sum()), n_found / total
    told = found or {"rule_looks": looked, "rule_recall": recall}
    told |= {"check_looks": looked, "check_recall": recall, "needed_looks": _needed(ranked, order)}
    return told | {"n_rows": len(y), "n": total}


def _needed(ranked: Ranked, order: np.ndarray) -> int:
    """How many looks find the share `RECALL` of the anomalies, if one knew when to stop."""
    found = ranked.y[ranked.known].sum() + np.append(0, np.cumsum(ranked.y[order]))
    return len(ranked.known) + int(np.argmax(found >= RECALL * ranked.y.sum() - 1e-9))


def summary(tables: list[list[Figures]]) -> Figures:
    """Means over tables of the means over draws."""

    def mean(value: Any) -> float:
        return float(np.mean([np.mean([value(draw) for draw in draws]) for draws in tables]))

    def median(key: str, by: str = "") -> float:
        return float(np.median([np.mean([d[key] / d.get(by, 1) for d in t]) for t in tables]))

    return {
        "n_tables": len(tables),
        "rule_is_wrong": mean(lambda draw: draw["rule_recall"] < RECALL),
        "check_is_wrong": mean(lambda draw: draw["check_recall"] < RECALL),
        **{key: median(key) for key in LOOKS},
        **{f"{key}_share": median(key, "n_rows") for key in LOOKS},
    }


if __name__ == "__main__":
    main()
