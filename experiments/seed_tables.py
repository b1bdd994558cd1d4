"""Results of the trials "seeds" and "row_order" -> tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.metrics import calibration_figures, relative_f1
from experiments.results import OURS, Result, Results
from gammagmm.posterior.link import Constraints

Row = dict[str, Any]

FITS = ("exact", "default", "identity", "all_ten", "no_log")
PARTS = ("order_by_mean", "plug_in", "p_high_met", "both_averaged")
N_RESAMPLES = 10_000
LEVEL = 0.90
QUANTILES = {"smallest": 0.0, "5%": 0.05, "median": 0.5, "95%": 0.95, "largest": 1.0}


def seed_results(results: Results, seed: int) -> dict[str, Result]:
    """The results of a seed, by dataset."""
    found = {name: results.get("seeds", "paper", name, str(seed)) for name in _names(results)}
    return {name: result for name, result in found.items() if result}


def complete_seeds(results: Results) -> list[dict[str, Result]]:
    """The results of each seed, of the datasets that have all seeds."""
    by_seed = [seed_results(results, seed) for seed in _seeds(results)]
    whole = [name for name in _names(results) if all(name in found for found in by_seed)]
    return [{name: found[name] for name in whole} for found in by_seed] if whole else []


def _names(results: Results) -> list[str]:
    left_out = results.plan["seeds"]["left_out"]
    return [name for name in results.datasets("paper") if name not in left_out]


def _seeds(results: Results) -> list[int]:
    return list(results.plan["seeds"]["values"])


def seed_datasets(results: Results) -> list[Row]:
    """Each dataset's posterior mean: over the seeds, and over the orders of the rows."""
    rows, by_seed = [], complete_seeds(results)
    for name in by_seed[0] if by_seed else []:
        found = [one[name] for one in by_seed]
        row: Row = {"dataset": name, "rows": found[0]["rows"], "truth": found[0]["truth"]}
        for kind in ("exact", "default"):
            row |= _spread(kind, [each[kind]["figures"]["mean"] for each in found])
        orders = _variants(results, "row_order", name, "orders")
        if orders:
            row |= _spread("orders", [each["exact"]["figures"]["mean"] for each in orders])
        rows.append(row)
    return rows


def _spread(name: str, values: Sequence[float]) -> Row:
    """Mean, standard deviation, lowest and highest of values."""
    return {
        name: float(np.mean(values)),
        f"{name}_std": float(np.std(values, ddof=1)) if len(values) > 1 else None,
        f"{name}_low": min(values),
        f"{name}_high": max(values),
    }


def seed_methods(results: Results) -> list[Row]:
    """Every figure of questions 1 to 3 and of the ablations, with its spread over the seeds."""
    by_seed = complete_seeds(results)
    if not by_seed:
        return []
    rows = []
    for case in [*FITS, *PARTS, "one_run", *results.plan["seeds"]["thresholders"]]:
        each = [_case_figures(list(found.values()), case) for found in by_seed]
        row: Row = {"case": case, "sets": len(by_seed[0]), "seeds": len(by_seed)}
        for name in each[0]:
            row |= _spread(name, [figures[name] for figures in each])
        rows.append(row)
    return rows


def _case_figures(found: list[Result], case: str) -> Row:
    """Figures of one method over the datasets, with one seed."""
    if case == "one_run":
        pairs = [(run, each["truth"]) for each in found for run in each["parts"]["one_run"]]
        return _posterior_figures(pairs)
    if case in PARTS:
        pairs = [(each["parts"][case], each["truth"]) for each in found]
        unsolved = sum(each["parts"][case]["n_unsolved"] for each in found)
        return _posterior_figures(pairs) | {"unsolved": unsolved}
    if case in FITS:
        pairs = [(each[case]["figures"], each["truth"]) for each in found]
        figures = _posterior_figures(pairs)
        figures["unsolved"] = sum(each[case]["statuses"].count("unsolved") for each in found)
        return figures | (_cut_figures(found, case) if "cut" in found[0][case] else {})
    error = [abs(each["thresholders"][case]["share"] - each["truth"]) for each in found]
    return {"mae": float(np.mean(error)), **_cut_figures(found, case)}


def _posterior_figures(pairs: list[tuple[Row, float]]) -> Row:
    figures = [one for one, _ in pairs]
    return {
        "mae": float(np.mean([abs(one["mean"] - truth) for one, truth in pairs])),
        "crps": float(np.mean([one["crps"] for one in figures])),
        "coverage_90": float(np.mean([one["covers"] for one in figures])),
        "width_90": float(np.mean([one["high"] - one["low"] for one in figures])),
        "degenerate": sum(one["mean"] == 0.0 for one in figures),
        **calibration_figures([one["needed"] for one in figures]),
    }


def _cut_figures(found: list[Result], case: str) -> Row:
    """F1 deterioration of the best detectors, and the rates of Table 4."""
    losses = [loss for each in found if (loss := f1_loss(each, case)) is not None]
    cuts = [_cut(each, case) for each in found]
    return {
        "f1_deterioration": float(np.mean(losses)),
        "false_alarms": float(np.mean([cut["false_alarms"] for cut in cuts])),
        "misses": float(np.mean([cut["misses"] for cut in cuts])),
    }


def _cut(result: Result, case: str) -> Row:
    cut: Row = (result[case] if case in FITS else result["thresholders"][case])["cut"]
    return cut


def f1_loss(result: Result, case: str) -> float | None:
    """Mean relative change of F1 of the best detectors; None if their F1 is 0."""
    return _loss(result["at_truth"]["f1"], _cut(result, case)["f1"])


def _loss(at_truth: Sequence[float], at_share: Sequence[float]) -> float | None:
    relative = relative_f1(at_truth, at_share)
    return None if relative is None else float(relative.mean())


def differences(results: Results) -> list[Row]:
    """Error and F1 deterioration of other methods, minus gammaGMM's, with bootstrap intervals.

    The values of each dataset are averaged over the seeds first, where a method has several. The
    intervals are those of the mean over datasets drawn like these.
    """
    by_seed = complete_seeds(results)
    if not by_seed:
        return []
    names = list(by_seed[0])
    ours = {
        "error": _over_seeds(by_seed, names, lambda each: _error(each, "exact")),
        "f1": _over_seeds(by_seed, names, lambda each: f1_loss(each, "exact")),
    }
    rows = []
    for method in results.methods:
        if method == OURS:
            continue
        row: Row = {"method": method, **_method_values(results, by_seed, names, method)}
        for name in ("error", "f1"):
            theirs = row.pop(name)
            known = [i for i in range(len(names)) if theirs[i] is not None]
            known = [i for i in known if ours[name][i] is not None]
            row[f"{name}_sets"] = len(known)
            if len(known) > 1:
                gaps = np.array([theirs[i] - ours[name][i] for i in known])
                row |= _bootstrap(name, gaps, results.plan["seed"])
        rows.append(row)
    return rows


def p_high_met(results: Results) -> list[Row]:
    """A posterior that meets `p_high`, beside the method, where all runs of both have a solution.

    The differences are averaged over the seeds of a dataset first.
    """
    rows = []
    for case in ("p_high_met", "both_averaged"):
        by_seed = complete_seeds(results)
        every = [each for one in by_seed for each in one.values()]
        row: Row = {
            "case": case,
            "runs": sum(len(each["exact"]["statuses"]) for each in every),
            "unsolved": sum(each["parts"][case]["n_unsolved"] for each in every),
        }
        pairs: dict[str, list[tuple[Row, Row, float]]] = {}
        for one in by_seed:
            for name, each in one.items():
                changed, exact = each["parts"][case], each["exact"]
                if changed["n_unsolved"] == 0 and "unsolved" not in exact["statuses"]:
                    pairs.setdefault(name, []).append((exact["figures"], changed, each["truth"]))
        row |= {"fits": sum(map(len, pairs.values())), "sets": len(pairs)}
        for name, value in {"error": _distance, "crps": lambda one, _: one["crps"]}.items():
            values = [
                np.mean([[value(one, truth) for one in both] for *both, truth in fits], axis=0)
                for fits in pairs.values()
            ]
            if values:
                before, after = np.transpose(values)
                row |= {f"{name}_exact": float(before.mean()), name: float(after.mean())}
                row |= _bootstrap(name, after - before, results.plan["seed"])
        rows.append(row)
    return rows


def _distance(figures: Row, truth: float) -> float:
    return float(abs(figures["mean"] - truth))


def _method_values(
    results: Results, by_seed: list[dict[str, Result]], names: list[str], method: str
) -> Row:
    """Error and F1 loss of a method on each dataset, and the number of its seeds."""
    if method in results.plan["seeds"]["thresholders"]:
        return {
            "seeds": len(by_seed),
            "error": _over_seeds(by_seed, names, lambda each: _error(each, method)),
            "f1": _over_seeds(by_seed, names, lambda each: f1_loss(each, method)),
        }
    error, loss = [], []
    for name in names:
        found = results.method(method, "paper", name)
        scores = results.get("scores", "paper", name, "all")
        error.append(abs(found["share"] - found["truth"]) if found else None)
        loss.append(
            _loss(scores["at_truth"]["f1"], found["cut"]["f1"]) if found and scores else None
        )
    return {"seeds": 1, "error": error, "f1": loss}


def _error(result: Result, case: str) -> float:
    if case in FITS:
        return float(abs(result[case]["figures"]["mean"] - result["truth"]))
    return float(abs(result["thresholders"][case]["share"] - result["truth"]))


def _over_seeds(
    by_seed: list[dict[str, Result]], names: list[str], value: Callable[[Result], float | None]
) -> list[float | None]:
    """The value of each dataset, averaged over the seeds; None where a seed has none."""
    averaged: list[float | None] = []
    for name in names:
        values = [value(found[name]) for found in by_seed]
        known = [one for one in values if one is not None]
        averaged.append(float(np.mean(known)) if len(known) == len(values) else None)
    return averaged


def _bootstrap(name: str, gaps: np.ndarray, seed: int) -> Row:
    """The mean of the gaps, and a percentile interval over resampled datasets."""
    rng = np.random.default_rng(seed)
    means = gaps[rng.integers(len(gaps), size=(N_RESAMPLES, len(gaps)))].mean(axis=1)
    low, high = np.quantile(means, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return {
        f"{name}_difference": float(gaps.mean()),
        f"{name}_low": float(low),
        f"{name}_high": float(high),
    }


def row_order(results: Results) -> list[Row]:
    """How far the posterior mean moves with the order of the rows, and with the seed."""
    rows = []
    names = results.plan["row_order"]["datasets"]
    orders = [_variants(results, "row_order", name, "orders") for name in names]
    seeds = [_variants(results, "seeds", name, "values") for name in names]
    both = [pair for pair in zip(orders, seeds, strict=True) if all(pair)]
    for kind in ("exact", "default") if both else ():
        row: Row = {"settings": kind, "sets": len(both)}
        for what, found in zip(("orders", "seeds"), zip(*both, strict=True), strict=True):
            means = np.array([[each[kind]["figures"]["mean"] for each in one] for one in found])
            row[f"{what}_std"] = float(means.std(axis=1, ddof=1).mean())
            row[f"{what}_range"] = float(np.ptp(means, axis=1).max())
        rows.append(row)
    return rows


def _variants(results: Results, kind: str, name: str, key: str) -> list[Result]:
    """The results of a dataset for all variants of a kind; empty if one is missing."""
    found = [results.get(kind, "paper", name, str(one)) for one in results.plan[kind][key]]
    return [each for each in found if each] if all(found) else []


def p_high(results: Results) -> list[Row]:
    """P(gamma >= high_gamma) that solved runs reach, alone and averaged over those of a fit."""
    asked, rows = Constraints().p_high, []
    for kind in ("exact", "default"):
        found = [each[kind] for one in complete_seeds(results) for each in one.values()]
        if not found:
            continue
        fits = [solved for one in found if (solved := _solved(one))]
        runs = [reached for solved in fits for reached in solved]
        averages = [float(np.mean(solved)) for solved in fits]
        for what, values in (("a solved run", runs), ("the solved runs of a fit", averages)):
            row: Row = {"settings": kind, "of": what, "n": len(values)}
            if values:
                ratio = np.array(values) / asked
                row |= {
                    "below_half": float(np.mean(ratio < 0.5)),
                    "above_twice": float(np.mean(ratio > 2.0)),
                    **{name: float(np.quantile(values, q)) for name, q in QUANTILES.items()},
                }
            rows.append(row)
    return rows


def _solved(fit: Row) -> list[float]:
    """P(gamma >= high_gamma) of each solved run."""
    pairs = zip(fit["statuses"], fit["reached"], strict=True)
    return [reached for status, reached in pairs if status == "solved"]


SEED_TABLES: dict[str, Callable[[Results], list[Row]]] = {
    "seed_datasets": seed_datasets,
    "seed_methods": seed_methods,
    "differences": differences,
    "p_high_met": p_high_met,
    "row_order": row_order,
    "p_high": p_high,
}
