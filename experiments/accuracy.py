"""Questions 2 and 3: how good the estimates are, and what they do to the detectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from experiments.results import OURS, Results, found_by

Row = dict[str, Any]


def errors(results: Results) -> list[Row]:
    """Question 2: absolute error, CRPS and rank correlation with the truth of every method."""
    return [
        _error_row(results, collection, method)
        for collection in ("paper", "pool")
        for method in results.methods
    ]


def _error_row(results: Results, collection: str, method: str) -> Row:
    found = found_by(results, collection, method)
    row: Row = {"collection": collection, "method": method, "sets": len(found)}
    if len(found) < 2:
        return row
    truth, share = (np.array([f[key] for f in found.values()]) for key in ("truth", "share"))
    error = np.abs(share - truth)
    # The CRPS of a point is its absolute error.
    crps = [
        f["figures"]["crps"] if "figures" in f else e
        for f, e in zip(found.values(), error, strict=True)
    ]
    covered = [f["figures"]["covers"] for f in found.values() if "figures" in f]
    widths = [f["figures"]["high"] - f["figures"]["low"] for f in found.values() if "figures" in f]
    is_constant = np.ptp(share) == 0.0
    return row | {
        "mae": error.mean(),
        "mae_std": error.std(ddof=1),
        "crps": np.mean(crps),
        "coverage_90": np.mean(covered) if covered else None,
        "width_90": np.mean(widths) if widths else None,
        "rank_correlation": None if is_constant else stats.spearmanr(share, truth).statistic,
        "mean_share": share.mean(),
        **_ranks(results, collection, method),
    }


def _ranks(results: Results, collection: str, method: str) -> Row:
    """Rank among gammaGMM and the paper's 21 estimators, as the paper ranks."""
    field = [OURS, *results.papers_thresholders]
    if method not in field:
        return {}
    ranks = []
    for dataset in found_by(results, collection, method):
        found = {m: results.method(m, collection, dataset) for m in field}
        error = {m: abs(f["share"] - f["truth"]) for m, f in found.items() if f}
        ranks.append(stats.rankdata(list(error.values()))[list(error).index(method)])
    ranks = np.array(ranks)
    return {
        "rank": ranks.mean(),
        "rank_std": ranks.std(ddof=1),
        "first": int((ranks == 1.0).sum()),
        "top_two": int((ranks <= 2.0).sum()),
    }


def f1(results: Results) -> list[Row]:
    """Question 3 and Table 4: what the estimate does to the detectors."""
    return [
        _f1_row(results, collection, method)
        for collection in ("paper", "pool")
        for method in results.methods
    ]


def _f1_row(results: Results, collection: str, method: str) -> Row:
    losses, better, rates, n_zero = [], [], [], 0
    for dataset, found in found_by(results, collection, method).items():
        at_truth = np.array(results.get("scores", collection, dataset, "all")["at_truth"]["f1"])
        best = at_truth == at_truth.max()
        cut = found["cut"]
        rates.append([np.mean(cut["false_alarms"]), np.mean(cut["misses"])])
        if at_truth.max() == 0.0:
            n_zero += 1
            continue
        relative = (np.array(cut["f1"])[best] - at_truth[best]) / at_truth[best]
        losses.append(relative.mean())
        better += (relative > 0.0).tolist()
    row = {"collection": collection, "method": method, "sets": len(rates), "f1_zero": n_zero}
    if len(losses) < 2:
        return row
    alarms, misses = np.array(rates).T
    return row | {
        "f1_deterioration": np.mean(losses),
        "f1_std": np.std(losses, ddof=1),
        "better_than_truth": np.mean(better),
        "false_alarms": alarms.mean(),
        "false_alarms_std": alarms.std(ddof=1),
        "misses": misses.mean(),
        "misses_std": misses.std(ddof=1),
    }


def best_detectors(results: Results) -> list[Row]:
    """Table 3: the detectors with the greatest F1 at the true gamma."""
    rows = []
    for dataset in results.datasets("paper"):
        found = results.get("scores", "paper", dataset, "all")
        theirs = results.paper["tables"]["best_detectors"][dataset]
        row = {"dataset": dataset, "paper": " ".join(theirs)}
        if found:
            score = np.array(found["at_truth"]["f1"])
            best = [found["detectors"][i] for i in np.flatnonzero(score == score.max())]
            row |= {"ours": " ".join(best), "f1": score.max(), "shared": len({*best} & {*theirs})}
        rows.append(row | {"state": results.state("scores", "paper", dataset, "all")})
    return rows
