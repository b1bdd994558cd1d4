"""Results -> tables, one CSV file each under results/tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from experiments.metrics import calibration_figures, relative_f1
from experiments.plan import HERE, dose_sets, record_tables, subset_cases
from experiments.results import OURS, Result, Results
from experiments.seed_tables import SEED_TABLES

FORMER = "former curves"
LABEL_METHODS = (
    *("spread", "random", "jeffreys", "ppi", FORMER),
    *("clopper_pearson", "exact_random", "exact_spread"),
)
AUC_BANDS = (
    ("AUC below 0.6", 0.0, 0.6),
    ("AUC 0.6 to 0.8", 0.6, 0.8),
    ("AUC 0.8 to 0.95", 0.8, 0.95),
    ("AUC from 0.95", 0.95, 1.01),
)

Row = dict[str, Any]


def datasets(results: Results) -> list[Row]:
    """Tables 1 and 2: each dataset's posterior beside the paper's."""
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


def cells(results: Results) -> list[Row]:
    """Every dataset and method: the estimated share, or the reason why it is missing."""
    rows = []
    for collection in ("paper", "pool"):
        for dataset in results.datasets(collection):
            for method in results.methods:
                found = results.method(method, collection, dataset)
                state = results.state(*results.trial_of(method, collection, dataset))
                row = {"collection": collection, "dataset": dataset, "method": method}
                share = found["share"] if found else None
                rows.append(row | {"share": share, "state": state})
    return rows


def errors(results: Results) -> list[Row]:
    """Question 2: absolute error, CRPS and rank correlation with the truth of every method."""
    return [
        _error_row(results, collection, method)
        for collection in ("paper", "pool")
        for method in results.methods
    ]


def _error_row(results: Results, collection: str, method: str) -> Row:
    found = results.by_dataset(method, collection)
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
    """Rank among gammaGMM and the paper's 21 estimators, computed as in the paper."""
    field = [OURS, *results.papers_thresholders]
    if method not in field:
        return {}
    ranks = []
    for dataset in results.by_dataset(method, collection):
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
    """Question 3 and Table 4: the detectors' quality at the estimated share."""
    return [
        _f1_row(results, collection, method)
        for collection in ("paper", "pool")
        for method in results.methods
    ]


def _f1_row(results: Results, collection: str, method: str) -> Row:
    losses, better, rates, n_zero = [], [], [], 0
    for dataset, found in results.by_dataset(method, collection).items():
        at_truth = results.get("scores", collection, dataset, "all")["at_truth"]["f1"]
        cut = found["cut"]
        rates.append([np.mean(cut["false_alarms"]), np.mean(cut["misses"])])
        relative = relative_f1(at_truth, cut["f1"])
        if relative is None:
            n_zero += 1
            continue
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


def calibration(results: Results) -> list[Row]:
    """Questions 1, 4 and 5: share of the datasets whose truth lies in the central interval."""
    ours = results.by_dataset(OURS, "paper").values()
    cases = {
        "default": [f["figures"]["needed"] for f in ours],
        "pool": [f["figures"]["needed"] for f in results.by_dataset(OURS, "pool").values()],
    }
    for name in _sensitivity_cases(results):
        cases[name] = [f["sensitivity"][name]["needed"] for f in ours]
    for size, repeat in subset_cases(results.plan):
        cases[f"M={size}, repeat {repeat}"] = subset_needed(results, size, repeat)
    return [
        {"case": name, "sets": len(needed)} | calibration_figures(needed)
        for name, needed in cases.items()
        if needed
    ]


def subset_needed(results: Results, size: int, repeat: int) -> list[float]:
    """`needed` of every dataset with a subset of the detectors."""
    names = results.datasets("paper")
    found = [results.get("subset", "paper", name, f"{size}-{repeat}") for name in names]
    return [f["figures"]["needed"] for f in found if f]


def _sensitivity_cases(results: Results) -> list[str]:
    plan = results.plan["sensitivity"]
    return [f"{name}={value}" for name, values in plan.items() for value in values]


@dataclass(frozen=True)
class ChangedFit:
    """A posterior under a change of the method."""

    figures: Row
    truth: float
    n_unsolved: int = 0


def sensitivity(results: Results) -> list[Row]:
    """Question 5: error and coverage when one answer of the user changes."""
    ours = list(results.by_dataset(OURS, "paper").values())
    rows = [_changed_row("default", [ChangedFit(f["figures"], f["truth"]) for f in ours])]
    for name in _sensitivity_cases(results):
        rows.append(_changed_row(name, [_changed(f["sensitivity"][name], f) for f in ours]))
    return rows


def ablation(results: Results) -> list[Row]:
    """The method without one of its elements."""
    ours = list(results.by_dataset(OURS, "paper").values())
    rows = [_changed_row("default", [ChangedFit(f["figures"], f["truth"]) for f in ours])]
    for name in ("order_by_mean", "plug_in"):
        rows.append(_changed_row(name, [_changed(f["parts"][name], f) for f in ours]))
    single = [ChangedFit(run, f["truth"]) for f in ours for run in f["parts"]["one_run"]]
    rows.append(_changed_row("one_run", single))
    n_all = len(results.plan["subsets"]["detectors"])
    rows.append(_refitted(results, "all ten detectors", "subset", f"{n_all}-0"))
    for name in results.plan["ablation"]["fits"]:
        label = name if name == "no_log" else f"one detector: {name}"
        rows.append(_refitted(results, label, "ablation", name))
    return rows


def _refitted(results: Results, label: str, kind: str, variant: str) -> Row:
    found = [results.get(kind, "paper", name, variant) for name in results.datasets("paper")]
    fits = [
        ChangedFit(f["figures"], f["truth"], f["statuses"].count("unsolved")) for f in found if f
    ]
    return _changed_row(label, fits)


def _changed(part: Row, found: Result) -> ChangedFit:
    return ChangedFit(part, found["truth"], part["n_unsolved"])


def _changed_row(name: str, fits: list[ChangedFit]) -> Row:
    """Error, coverage and calibration over the fits."""
    row: Row = {"case": name, "fits": len(fits)}
    if not fits:
        return row
    figures = [fit.figures for fit in fits]
    return row | {
        "mae": np.mean([abs(fit.figures["mean"] - fit.truth) for fit in fits]),
        "mean": np.mean([f["mean"] for f in figures]),
        "crps": np.mean([f["crps"] for f in figures]),
        "coverage_90": np.mean([f["covers"] for f in figures]),
        "unsolved_runs": sum(fit.n_unsolved for fit in fits),
        "degenerate": sum(f["mean"] == 0.0 for f in figures),
        **calibration_figures([f["needed"] for f in figures]),
    }


def reliability(results: Results) -> list[Row]:
    """Share of anomalies among the rows of each predicted probability, by collection."""
    rows = []
    for collection in ("paper", "pool"):
        found = [f["reliability"] for f in results.by_dataset(OURS, collection).values()]
        for i in range(10 if found else 0):
            n, probability, anomalies = (
                sum(f[key][i] for f in found) for key in ("rows", "probability", "anomalies")
            )
            row = {"collection": collection, "bin": f"{i / 10:.1f} to {(i + 1) / 10:.1f}"}
            means = {"probability": probability / n, "anomalies": anomalies / n} if n else {}
            rows.append(row | {"rows": int(n)} | means)
    return rows


def dose(results: Results) -> list[Row]:
    """Slope and error of each method as more anomalies are added to the same inliers."""
    rows = []
    for collection, dataset in dose_sets(results.plan):
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
    """Slope and error over the answers that the method gave, and the reasons for missing ones."""
    given = [answer for answer in answers if method in answer["shares"]]
    failed = {answer["failed"][method] for answer in answers if answer not in given}
    state = "; ".join(["failed in some", *sorted(failed)]) if failed else "ok"
    if len({answer["truth"] for answer in given}) < 2:
        return {"state": state, "n": len(given)}
    truth = np.array([answer["truth"] for answer in given])
    share = np.array([answer["shares"][method] for answer in given])
    slope, mae = np.polyfit(truth, share, 1)[0], np.abs(share - truth).mean()
    return {"state": state, "n": len(given), "slope": slope, "mae": mae}


def labels(results: Results) -> list[Row]:
    """Labels of single rows: mean figures over tables, by collection and by band of the AUC."""
    rows = []
    for group, found in label_groups(results).items():
        for n in results.plan["labels"]["numbers"]:
            for method in LABEL_METHODS:
                figures = [f for f in (label_figures(each, method, n) for each in found) if f]
                if figures:
                    row = {"group": group, "labels": n, "method": method, "tables": len(figures)}
                    rows.append(row | _label_means(figures))
    return rows


def label_groups(results: Results) -> dict[str, list[Result]]:
    """The results of the trials "labels": all, by collection, and by band of the ranking's AUC."""
    former = former_curves()
    every = []
    for collection, name in record_tables(results.plan):
        found = results.get("labels", collection, name, "default")
        if found:
            stored = former.get(f"{collection}/{name}")
            every.append(found | {"collection": collection, "former": stored})
    groups = {"all tables": every}
    for collection in dict.fromkeys(each["collection"] for each in every):
        groups[collection] = [each for each in every if each["collection"] == collection]
    for words, low, high in AUC_BANDS:
        # A table without anomalies has no AUC and is in no band.
        inside = [each for each in every if each["auc"] is not None and low <= each["auc"] < high]
        if inside:
            groups[words] = inside
    return groups


def learning(results: Results) -> list[Row]:
    """The learned ranking beside the consensus, by collection and number of labels."""
    return [
        {"collection": collection, "labels": n, "tables": len(figures)} | _ranking_means(figures)
        for collection, found in _by_collection(results, "learning").items()
        for n in results.plan["learning"]["numbers"]
        if (figures := _drawn(found, n))
    ]


def peers(results: Results) -> list[Row]:
    """Other packages that learn from the same labels."""
    n = results.plan["learning"]["peers"]["labels"]
    rows = []
    for collection, found in _by_collection(results, "peers").items():
        figures = _drawn(found, n)
        names = [name.removeprefix("ap_") for name in figures[0] if name.startswith("ap_")]
        for method in names:
            row = {"collection": collection, "labels": n, "method": method, "tables": len(figures)}
            rows.append(row | _method_means(figures, method))
    return rows


def finding(results: Results) -> list[Row]:
    """Anomalies found with a number of looks, by collection."""
    rows = []
    for collection, found in _by_collection(results, "finding").items():
        each = [result["finding"] for result in found if result["finding"]]
        if not each:
            continue
        learned, consensus = (
            np.array([f[name][-1] for f in each]) for name in ("learned", "consensus")
        )
        rows.append(
            {
                "collection": collection,
                "tables": len(each),
                "possible": np.mean([f["possible"] for f in each]),
                "random": np.mean([f["random"] for f in each]),
                "consensus": consensus.mean(),
                "learned": learned.mean(),
                "ratio": learned.mean() / consensus.mean(),
                "difference": (learned - consensus).mean(),
                "error": _error(learned - consensus),
                "coverage_90": np.mean([f["held"] for f in each]),
                "width_90": np.mean([f["width"] for f in each]),
            }
        )
    return rows


def found_curves(results: Results, collection: str) -> dict[str, np.ndarray]:
    """Mean number of anomalies found after each step, by ranking."""
    found = _by_collection(results, "finding").get(collection, [])
    each = [result["finding"] for result in found if result["finding"]]
    names = ("learned", "consensus") if each else ()
    return {name: np.mean([f[name] for f in each], axis=0) for name in names}


def _by_collection(results: Results, kind: str) -> dict[str, list[Result]]:
    """The results of a kind of trials, by collection."""
    found: dict[str, list[Result]] = {}
    for collection, name in record_tables(results.plan):
        if result := results.get(kind, collection, name, "default"):
            found.setdefault(collection, []).append(result)
    return found


def _drawn(found: list[Result], n: int) -> list[Row]:
    """The figures at `n` labels of the tables that have any."""
    figures = [result["figures"][str(n)] for result in found]
    return [each for each in figures if each["draws"]]


def _ranking_means(figures: list[Row]) -> Row:
    return {
        "auc_consensus": np.mean([f["auc_consensus"] for f in figures]),
        "ap_consensus": np.mean([f["ap_consensus"] for f in figures]),
    } | _method_means(figures, "learned")


def _method_means(figures: list[Row], method: str) -> Row:
    """Means over tables; the errors are those of the differences to the consensus."""
    row: Row = {}
    for name in ("auc", "ap"):
        own, before = (
            np.array([f[f"{name}_{which}"] for f in figures]) for which in (method, "consensus")
        )
        row |= {
            name: own.mean(),
            f"{name}_difference": (own - before).mean(),
            f"{name}_error": _error(own - before),
        }
        if name == "ap":
            row["ap_ratio"] = own.mean() / before.mean()
    for name in ("worse", "used"):
        if f"{name}_{method}" in figures[0]:
            # Each draw counts once.
            draws = [f["draws"] for f in figures]
            row[name] = np.average([f[f"{name}_{method}"] for f in figures], weights=draws)
    return row


def _error(values: np.ndarray) -> float | None:
    """Standard error of the mean over tables."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def former_curves() -> dict[str, Row]:
    """Figures of the former model of labels at 30 labels, by table."""
    path = HERE / "results" / "former_curves.json"
    return json.loads(path.read_text(encoding="utf-8"))["tables"]


def label_figures(result: Result, method: str, n: int) -> Row | None:
    """The figures of a method at `n` labels of one table."""
    if method == FORMER:
        return result["former"] if n == 30 and "30" in result["figures"]["spread"] else None
    return result["figures"][method].get(str(n))


def _label_means(figures: list[Row]) -> Row:
    names = {"crps": "crps", "coverage_90": "held", "width_90": "width"}
    return {
        name: np.mean([each[key] for each in figures])
        for name, key in names.items()
        if key in figures[0]
    }


def pyod_agreement(results: Results) -> list[Row]:
    """Our detectors beside PyOD's own classes, one row for each dataset and detector."""
    rows = []
    for dataset in results.plan["pyod_agreement"]["datasets"]:
        found = results.get("pyod_agreement", "paper", dataset, "all")
        if found is None:
            state = results.state("pyod_agreement", "paper", dataset, "all")
            rows.append({"dataset": dataset, "status": state})
            continue
        size = {"rows": found["rows"], "features": found["features"]}
        rows += [{"dataset": dataset} | size | detector for detector in found["detectors"]]
    return rows


def deep_agreement(results: Results) -> list[Row]:
    """Our networks beside PyOD's, one row for each dataset and network."""
    plan, rows = results.plan["deep_agreement"], []
    for dataset in plan["datasets"]:
        for network in plan["networks"]:
            state = results.state("deep_agreement", "paper", dataset, network)
            found = results.get("deep_agreement", "paper", dataset, network) or {}
            figures = {k: v for k, v in found.items() if k not in ("trial", "status", "seconds")}
            rows.append({"dataset": dataset, "network": network, "state": state} | figures)
    return rows


def subsample(results: Results) -> list[Row]:
    """Detectors fitted on a share of the rows, one row for each dataset, share and detector."""
    rows = []
    for dataset, shares in results.plan["subsample"]["shares"].items():
        for share in shares:
            row = {"dataset": dataset, "share_fitted": share}
            row["state"] = results.state("subsample", "paper", dataset, str(share))
            found = results.get("subsample", "paper", dataset, str(share))
            if found is None:
                rows.append(row)
                continue
            row["rows"] = found["rows"]
            means = {k: found[k] for k in ("posterior_mean_exact", "posterior_mean_subset")}
            rows += [row | detector | means for detector in found["detectors"]]
    return rows


def settings(results: Results) -> list[Row]:
    """The exact and the default settings of the mixtures, over the datasets of a collection.

    The differences are absolute ones of posterior means, averaged over datasets and seeds: from the
    exact settings with the same seed, and between the two seeds of the same settings.
    """
    rows = []
    for collection in (*results.plan["collections"], "enlarged"):
        found = complete_settings(results, collection)
        for kind in ("exact", "default"):
            fits = [[one[f"{kind}-{seed}"] for one in found] for seed in SEEDS]
            exact = [[one[f"exact-{seed}"] for one in found] for seed in SEEDS]
            rows.append(
                {
                    "collection": collection,
                    "settings": kind,
                    "sets": len(found),
                    **(_settings_figures(fits, exact) if found else {}),
                }
            )
    return rows


SEEDS = (0, 1)


def complete_settings(results: Results, collection: str) -> list[dict[str, Result]]:
    """Results by variant, of the datasets that have them all."""
    variants = [f"{kind}-{seed}" for kind in ("exact", "default") for seed in SEEDS]
    found = [
        {variant: results.get("settings", collection, name, variant) for variant in variants}
        for name in _settings_datasets(results, collection)
    ]
    return [one for one in found if all(one.values())]


def _settings_datasets(results: Results, collection: str) -> list[str]:
    if collection != "enlarged":
        return results.datasets(collection)
    enlarged: dict[str, Any] = results.plan["settings"].get("enlarged", {})
    return list(enlarged.get("datasets", []))


def is_held(fit: Result) -> bool:
    """Whether the 90 % interval of the fit holds the true share."""
    return bool(fit["figures"]["low"] <= fit["truth"] <= fit["figures"]["high"])


def _settings_figures(fits: list[list[Result]], exact: list[list[Result]]) -> Row:
    """Figures of the fits of some settings (by seed, by dataset), beside the exact ones."""
    every = [fit for one in fits for fit in one]
    means, expected = (
        np.array([[fit["figures"]["mean"] for fit in one] for one in which])
        for which in (fits, exact)
    )
    figures = [fit["figures"] for fit in every]
    truths = np.array([fit["truth"] for fit in every])
    return {
        "difference_from_exact": float(np.abs(means - expected).mean()),
        "difference_between_seeds": float(np.abs(means[0] - means[1]).mean()),
        "mae": float(np.abs(means.ravel() - truths).mean()),
        "crps": float(np.mean([f["crps"] for f in figures])),
        "coverage_90": float(np.mean([is_held(fit) for fit in every])),
        "unsolved": sum(fit["statuses"].count("unsolved") for fit in every),
        "restarts": sum(sum(fit["restarts"]) for fit in every),
        "iterations": sum(sum(fit["iterations"]) for fit in every),
    }


TABLES: dict[str, Callable[[Results], list[Row]]] = {
    **SEED_TABLES,
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
    "labels": labels,
    "learning": learning,
    "finding": finding,
    "peers": peers,
    "pyod_agreement": pyod_agreement,
    "deep_agreement": deep_agreement,
    "subsample": subsample,
    "settings": settings,
}


def to_csv(rows: list[Row]) -> str:
    """The rows as CSV with every column that any row has; floats have six digits."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
