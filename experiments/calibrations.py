"""Questions 1, 4 and 5 and the ablation: whether the posterior holds what it promises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from experiments.plan import subset_cases
from experiments.results import OURS, Results, found_by

LEVELS = np.arange(1, 100) / 100  # 2 v of the paper's calibration plot

Row = dict[str, Any]


def calibration(results: Results) -> list[Row]:
    """Questions 1, 4 and 5: share of the sets whose truth lies in the central interval."""
    rows = []
    for name, needed in calibration_cases(results):
        if needed:
            rows.append({"case": name, "sets": len(needed)} | calibration_figures(needed))
    return rows


def calibration_figures(needed: list[float]) -> Row:
    """How far the empirical frequencies are from the probabilities, over the paper's grid."""
    off = np.abs(frequencies(needed) - LEVELS)
    return {
        "within_5": np.mean(off <= 0.05 + 1e-12),
        "within_10": np.mean(off <= 0.10 + 1e-12),
        "largest_off": off.max(),
        "mean_off": off.mean(),
    }


def frequencies(needed: Iterable[float]) -> np.ndarray:
    """Share of the sets whose truth lies in the central interval of each probability."""
    return (np.array(list(needed))[:, None] <= LEVELS).mean(axis=0)


def calibration_cases(results: Results) -> Iterable[tuple[str, list[float]]]:
    """Name of each case, and its sets' smallest central masses that hold the truth."""
    ours = found_by(results, "paper", OURS).values()
    yield "default", [f["figures"]["needed"] for f in ours]
    yield "pool", [f["figures"]["needed"] for f in found_by(results, "pool", OURS).values()]
    for name in sensitivity_names(results):
        yield name, [f["sensitivity"][name]["needed"] for f in ours]
    for size, repeat in subset_cases(results.plan):
        yield f"M={size}, repeat {repeat}", subset_needed(results, size, repeat)


def subset_needed(results: Results, size: int, repeat: int) -> list[float]:
    names = results.datasets("paper")
    found = [results.get("subset", "paper", name, f"{size}-{repeat}") for name in names]
    return [f["figures"]["needed"] for f in found if f]


def sensitivity_names(results: Results) -> list[str]:
    plan = results.plan["sensitivity"]
    return [f"{name}={value}" for name, values in plan.items() for value in values]


def sensitivity(results: Results) -> list[Row]:
    """Question 5: error and coverage when one answer of the user changes."""
    ours = list(found_by(results, "paper", OURS).values())
    rows = [_changed_row("default", [(f["figures"], f["truth"], 0) for f in ours])]
    for name in sensitivity_names(results):
        rows.append(_changed_row(name, [_changed(f["sensitivity"][name], f) for f in ours]))
    return rows


def ablation(results: Results) -> list[Row]:
    """The method with one of its elements taken away."""
    ours = list(found_by(results, "paper", OURS).values())
    rows = [_changed_row("default", [(f["figures"], f["truth"], 0) for f in ours])]
    for name in ("order_by_mean", "plug_in"):
        rows.append(_changed_row(name, [_changed(f["parts"][name], f) for f in ours]))
    single = [(figures, f["truth"], 0) for f in ours for figures in f["parts"]["one_run"]]
    rows.append(_changed_row("one_run", single))
    n_all = len(results.plan["subsets"]["detectors"])
    rows.append(_refitted(results, "all ten detectors", "subset", f"{n_all}-0"))
    for name in results.plan["ablation"]["fits"]:
        label = name if name == "no_log" else f"one detector: {name}"
        rows.append(_refitted(results, label, "ablation", name))
    return rows


def _refitted(results: Results, label: str, kind: str, variant: str) -> Row:
    found = [results.get(kind, "paper", name, variant) for name in results.datasets("paper")]
    fits = [(f["figures"], f["truth"], f["statuses"].count("unsolved")) for f in found if f]
    return _changed_row(label, fits)


def _changed(part: Row, found: Row) -> tuple[Row, float, int]:
    return part, found["truth"], part["n_unsolved"]


def _changed_row(name: str, fits: list[tuple[Row, float, int]]) -> Row:
    """Error, coverage and calibration of figures beside their truths and unsolved runs."""
    row: Row = {"case": name, "fits": len(fits)}
    if not fits:
        return row
    error = [abs(figures["mean"] - truth) for figures, truth, _ in fits]
    return row | {
        "mae": np.mean(error),
        "mean": np.mean([figures["mean"] for figures, _, _ in fits]),
        "crps": np.mean([figures["crps"] for figures, _, _ in fits]),
        "coverage_90": np.mean([figures["covers"] for figures, _, _ in fits]),
        "unsolved_runs": sum(n for _, _, n in fits),
        "degenerate": sum(figures["mean"] == 0.0 for figures, _, _ in fits),
        **calibration_figures([figures["needed"] for figures, _, _ in fits]),
    }
