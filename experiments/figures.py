"""Results -> figures, SVG files under docs/images/reproduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.metrics import LEVELS, frequencies
from experiments.results import OURS, Results
from experiments.tables import (
    errors,
    f1,
    found_curves,
    reliability,
    subset_needed,
)
from experiments.tables import labels as label_rows
from experiments.tables import learning as learning_rows
from gammagmm.posterior.storage import posterior_of

# Okabe and Ito's colours, which colour-blind readers can distinguish.
BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
CYCLE = (BLUE, VERMILION, GREEN, "#CC79A7", "#E69F00")


def posteriors(results: Results) -> Figure:
    """The paper's Figure 2: every dataset's posterior, its mean and the truth."""
    names = results.datasets("paper")
    figure = Figure(figsize=(10.0, 9.0), layout="constrained")
    axes = figure.subplots(6, 4, sharex=True).ravel()
    for ax, name in zip(axes, names, strict=False):
        ax.set_title(name, fontsize=9, loc="left")
        ax.set_yticks([])
        found = results.get("gamma", "paper", name, "default")
        if found is None:
            words = results.state("gamma", "paper", name, "default").partition(":")[0]
            ax.text(0.5, 0.5, words, ha="center", transform=ax.transAxes, color=GREY)
            continue
        _draw_posterior(found, ax)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    handles = axes[0].get_legend_handles_labels()
    axes[-1].legend(*handles, loc="center", frameon=False)
    figure.supxlabel("contamination factor γ")
    return figure


def _draw_posterior(found: dict[str, Any], ax: Any) -> None:
    posterior = posterior_of(found["posterior"], found["trial"])
    grid = np.linspace(1e-4, 0.25, 400)
    ax.fill_between(grid, posterior.pdf(grid), color=BLUE, alpha=0.3, label="posterior")
    ax.axvline(found["truth"], color=VERMILION, label="truth")
    ax.axvline(found["share"], color=BLUE, ls="--", label="posterior mean")
    ax.set(xlim=(0.0, 0.25), ylim=(0.0, None))
    ax.xaxis.set_major_formatter("{x:.0%}")


def calibration(results: Results) -> Figure:
    """The paper's Figure 3, for its datasets and for the pool."""
    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    ax = _diagonal(figure.subplots())
    for collection, colour in (("paper", BLUE), ("pool", VERMILION)):
        found = results.by_dataset(OURS, collection)
        if found:
            needed = [f["figures"]["needed"] for f in found.values()]
            label = f"{collection}, {len(needed)} sets"
            ax.plot(LEVELS, frequencies(needed), color=colour, label=label)
    ax.legend(frameon=False)
    return figure


def _diagonal(ax: Any) -> Any:
    """Perfect calibration with bands of 5 % and 10 %."""
    for band, alpha in ((0.10, 0.15), (0.05, 0.25)):
        ax.fill_between([0, 1], [-band, 1 - band], [band, 1 + band], color=GREY, alpha=alpha, lw=0)
    ax.plot([0, 1], [0, 1], color="black", ls="--", lw=1)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="expected probability", ylabel="empirical frequency")
    return ax


def mae(results: Results) -> Figure:
    """The paper's Figure 4, with the constants and the prior."""
    rows = [r for r in errors(results) if r["collection"] == "paper" and "mae" in r]
    return _bars(sorted(rows, key=lambda r: r["mae"]), "mae", "mae_std", "mean absolute error")


def f1_loss(results: Results) -> Figure:
    """The paper's Figure 5, with the constants and the prior."""
    rows = [r for r in f1(results) if r["collection"] == "paper" and "f1_std" in r]
    words = "F1 deterioration (higher is better)"
    rows.sort(key=lambda r: -r["f1_deterioration"])
    return _bars(rows, "f1_deterioration", "f1_std", words)


def _bars(rows: list[dict[str, Any]], value: str, spread: str, words: str) -> Figure:
    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    ax = figure.subplots()
    names = [row["method"] for row in rows]
    colours = [BLUE if n == OURS else GREEN if " " in n else GREY for n in names]
    means, spreads = ([row[key] for row in rows] for key in (value, spread))
    ax.barh(names, means, xerr=spreads, color=colours, error_kw={"lw": 0.8, "ecolor": "black"})
    ax.invert_yaxis()
    ax.set_xlabel(f"{words}, mean ± std over the sets")
    ax.margins(y=0.01)
    return figure


def detectors(results: Results) -> Figure:
    """The paper's Figure 6: calibration with 3, 5, 7 and all detectors."""
    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    ax = _diagonal(figure.subplots())
    plan = results.plan["subsets"]
    for size, colour in zip(plan["sizes"], CYCLE[1:], strict=False):
        needed = [subset_needed(results, size, i) for i in range(plan["repeats"])]
        curves = np.array([frequencies(n) for n in needed if n])
        if len(curves):
            mean, std = curves.mean(axis=0), curves.std(axis=0)
            ax.plot(LEVELS, mean, color=colour, label=f"M = {size}")
            ax.fill_between(LEVELS, mean - std, mean + std, color=colour, alpha=0.2, lw=0)
    n_all = len(plan["detectors"])
    if needed := subset_needed(results, n_all, 0):
        ax.plot(LEVELS, frequencies(needed), color=BLUE, label=f"M = {n_all}")
    ax.legend(frameon=False)
    return figure


def sensitivity(results: Results) -> Figure:
    """The paper's Figure 7, and the same for high_gamma and max_gamma."""
    figure = Figure(figsize=(9.0, 8.4), layout="constrained")
    ours = results.by_dataset(OURS, "paper").values()
    plan = results.plan["sensitivity"]
    for ax, (name, values) in zip(figure.subplots(2, 2).ravel(), plan.items(), strict=True):
        _diagonal(ax)
        default = frequencies(f["figures"]["needed"] for f in ours)
        ax.plot(LEVELS, default, color="black", label="default")
        for value, colour in zip(values, CYCLE, strict=False):
            needed = [f["sensitivity"][f"{name}={value}"]["needed"] for f in ours]
            ax.plot(LEVELS, frequencies(needed), color=colour, label=f"{name} = {value}")
        ax.legend(frameon=False, fontsize=8)
    return figure


def dose(results: Results) -> Figure:
    """The estimates as more anomalies are added to the same inliers, on synthetic and real data."""
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    groups = {"separable made-up data": ["made"], "labelled datasets": ["paper", "pool"]}
    for ax, (title, collections) in zip(figure.subplots(1, 2), groups.items(), strict=True):
        found = [r for t, r in results.all.items() if t.kind == "dose" and r["status"] == "ok"]
        found = [r for r in found if r["trial"].split("/")[1] in collections]
        _draw_dose(found, ax)
        sets = {r["trial"].split("/")[2] for r in found}
        ax.set_title(title if collections == ["made"] else f"{len(sets)} {title}", loc="left")
    return figure


def _draw_dose(found: list[dict[str, Any]], ax: Any) -> None:
    """Means over datasets and repeats: ours, and PyThresh's in grey."""
    ax.plot([0.0, 0.2], [0.0, 0.2], color="black", ls="--", lw=1, label="truth")
    ax.set(xlabel="true share of anomalies", ylabel="estimate", ylim=(0.0, 0.5))
    if not found:
        return
    truth = np.mean([[a["truth"] for a in r["answers"]] for r in found], axis=0)
    methods = dict.fromkeys(name for r in found for a in r["answers"] for name in a["shares"])
    for method in methods:
        given = [[a["shares"].get(method, np.nan) for a in r["answers"]] for r in found]
        share = np.nanmean(given, axis=0)
        is_ours = method == OURS
        label = method if is_ours else "PyThresh" if method == "IQR" else None
        style = {"color": BLUE, "lw": 2} if is_ours else {"color": GREY, "lw": 0.8}
        ax.plot(truth, share, label=label, zorder=3 if is_ours else 2, **style)
    ax.legend(frameon=False)


def probabilities(results: Results) -> Figure:
    """Share of anomalies among the rows of each predicted probability."""
    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="black", ls="--", lw=1)
    for collection, colour in (("paper", BLUE), ("pool", VERMILION)):
        rows = [r for r in reliability(results) if r["collection"] == collection and r["rows"]]
        x, y = ([row[key] for row in rows] for key in ("probability", "anomalies"))
        if rows:
            ax.plot(x, y, "o-", color=colour, label=collection)
    ax.set(xlabel="predicted probability", ylabel="share of anomalies", xlim=(0, 1), ylim=(0, 1))
    ax.legend(frameon=False)
    return figure


def labels(results: Results) -> Figure:
    """Error, coverage and width against the number of labels of single rows."""
    figure = Figure(figsize=(9.0, 7.6), layout="constrained")
    axes = figure.subplots(3, 3, sharex=True)
    rows = label_rows(results)
    names = {"crps": "CRPS", "coverage_90": "coverage of the 90 % interval", "width_90": "width"}
    for line, collection in zip(axes, ("paper", "pool", "oddbench"), strict=True):
        for ax, (key, words) in zip(line, names.items(), strict=True):
            for method, colour in zip(("spread", "random", "jeffreys", "ppi"), CYCLE, strict=False):
                own = [r for r in rows if (r["group"], r["method"]) == (collection, method)]
                x, y = [r["labels"] for r in own], [r[key] for r in own]
                ax.plot(x, y, "o-", color=colour, label=method, ms=3)
            ax.set(xlabel="labels", ylabel=words, title=collection)
        line[1].axhline(0.9, color="black", ls="--", lw=1)
    axes[0, 0].legend(frameon=False)
    return figure


def learning(results: Results) -> Figure:
    """Average precision against labels, and anomalies found against rows looked at."""
    figure = Figure(figsize=(9.0, 5.4), layout="constrained")
    axes = figure.subplots(2, 3)
    rows = learning_rows(results)
    for (above, below), collection in zip(axes.T, ("paper", "pool", "oddbench"), strict=True):
        own = [row for row in rows if row["collection"] == collection]
        x = [row["labels"] for row in own]
        above.plot(x, [r["ap_consensus"] for r in own], "o--", color=VERMILION, ms=3)
        above.plot(x, [r["ap"] for r in own], "o-", color=BLUE, ms=3)
        above.set(xlabel="labels", ylabel="average precision", title=collection, ylim=(0, None))
        curves = found_curves(results, collection)
        for name, curve in curves.items():
            colour, style = (BLUE, "-") if name == "learned" else (VERMILION, "--")
            step = results.plan["learning"]["finding"]["step"]
            looks = step * np.arange(len(curve) + 1)
            below.plot(looks, np.append(0.0, curve), style, color=colour, label=name)
        below.set(xlabel="rows looked at", ylabel="anomalies found", ylim=(0, None))
    handles = axes[1, 0].get_legend_handles_labels()
    if handles[0]:
        axes[1, 0].legend(frameon=False)
    return figure


FIGURES: dict[str, Callable[[Results], Figure]] = {
    "posteriors": posteriors,
    "calibration": calibration,
    "mae": mae,
    "f1": f1_loss,
    "detectors": detectors,
    "sensitivity": sensitivity,
    "dose": dose,
    "probabilities": probabilities,
    "labels": labels,
    "learning": learning,
}
