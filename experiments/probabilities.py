"""The page on stated probabilities and their truth, from results/reliability.json.

    python -m experiments.probabilities

writes docs/explanations/probabilities.md, docs/images/probabilities.svg and flagged.svg.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import ceil
from string import Template
from typing import Any

import numpy as np

from experiments.figures import CYCLE, GREY
from experiments.group_shares import N_GROUPS
from experiments.plan import HERE, load_plan
from experiments.reliability import EDGES, N_FEW, N_MANY
from experiments.track_record import PAGE, RELIABILITY, as_markdown
from gammagmm._support.files import write_document
from gammagmm.posterior.track_record import UNIFORM_PART
from gammagmm.report.palette import ACCENT, LINE, MUTED, REFERENCE

SAME_FILE = {"svg.hashsalt": "gammagmm", "svg.fonttype": "none"}
"""Settings of matplotlib with which the same figures give the same file."""
TEMPLATE = HERE / "probabilities.md"
FIGURE = HERE.parent / "docs" / "images" / "probabilities.svg"
FLAGGED = FIGURE.with_name("flagged.svg")
GROUPS = {"oddbench": "OddBench", "classical": "classical"}
WITH_LABELS = "labels, probabilities"
"""What is flagged so that the F1 score that the probabilities predict is largest."""
COLLECTION_NAMES = {"oddbench": "OddBench", "pool": "pool", "paper": "paper"}
BARS = {
    "typed 0.05": ("contamination=0.05", LINE),
    "typed 0.1": ("contamination=0.1", REFERENCE),
    "without labels": ("estimate_contamination(X)", MUTED),
    WITH_LABELS: ("30 labels", ACCENT),
}
"""Ways to flag rows, with their names and colours in the picture."""
METHODS = {"calibrated": "stated", "constant": "constant", "rank": "rank"}
N_LABELS = "30"
LEAST_ROWS = 1_000
"""Rows of a bin whose share is told; a bin with fewer has a share that varies by chance."""
TOLERANCE = {"oddbench": 0.05, "classical": 0.1}
"""How far the share of anomalies may lie from what is stated in a bin."""
FIRST_TOLERANCE = 0.1
"""The same for the ten first rows."""

LESS = {"10": 0.2, "30": 0.45}
"""How much less decisions should cost than by the rank, by the cost of a missed anomaly."""

Figures = dict[str, Any]


def main() -> None:
    found = json.loads(RELIABILITY.read_text(encoding="utf-8"))
    write_document(page(found), PAGE.with_name(TEMPLATE.name), overwrite=True)
    draw(found)
    draw_flagged(found["folds"]["f1"])


def page(found: Figures) -> str:
    """The text of docs/explanations/probabilities.md."""
    settings, folds = load_plan()["reliability"], found["folds"]
    first = folds["classical"]["whole"]["0"]["calibrated"]
    other = found["other_collection"]["oddbench"]["whole"]["0"]["calibrated"]
    made = found["made_rankings"]
    few, many = (made["random"][str(n)] for n in (N_FEW, N_MANY))
    most = {f"most_{group}": _largest_error(folds[group]["whole"][N_LABELS]) for group in GROUPS}
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        {f"n_{group}": str(n) for group, n in found["n_tables"].items()},
        max_rows=f"{settings['max_rows']:,}",
        n_draws=str(settings["draws"]["whole"]),
        weight=f"{100 * UNIFORM_PART:g}",
        **{name: str(ceil(100 * error)) for name, error in most.items()},
        first_stated=f"{first['first_stated']:.0%}",
        first_true=f"{first['first_true']:.0%}",
        other_stated=f"{other['first_stated']:.0%}",
        other_true=f"{other['first_true']:.0%}",
        n_few=str(N_FEW),
        n_many=str(N_MANY),
        made_share=f"{made['share']:.0%}",
        random_few=f"{few['mean']:.0%}",
        random_most=f"{few['most']:.0%}",
        random_many=f"{many['mean']:.0%}",
        scores=_scores(folds, "whole"),
        new=_scores(folds, "half"),
        other=_scores(found["other_collection"], "whole"),
        bins=_bins(folds, "whole"),
        new_bins=_bins(folds, "half"),
        least_rows=f"{LEAST_ROWS:,}",
        costs=_costs(folds),
        flagged=_flagged(folds["f1"]),
        n_groups=str(N_GROUPS),
        groups=_groups(found["group_shares"]),
        short=_short(folds),
    )


def _scores(scheme: Figures, part: str) -> str:
    """Brier score and log loss of each method, and what is stated for the ten first rows."""
    heads = ["tables", "labels"]
    heads += [f"{score}, {name}" for score in ("Brier", "log loss") for name in METHODS.values()]
    heads += ["ten first rows, stated", "true"]
    lines = []
    for group, words in GROUPS.items():
        for n, by_method in scheme[group][part].items():
            scores = [
                f"{by_method[method][score]:.4f}" if method in by_method else ""
                for score in ("brier", "log_loss")
                for method in METHODS
            ]
            ours = by_method["calibrated"]
            first = [f"{ours[name]:.0%}" for name in ("first_stated", "first_true")]
            lines.append([words, n, *scores, *first])
    return as_markdown(heads, lines)


def _bins(folds: Figures, part: str) -> str:
    """Mean of the stated probabilities of each bin, and the share of anomalies, in per cent."""
    ends = [f"{100 * edge:g}" for edge in EDGES]
    heads = [f"{low} to {high} %" for low, high in pairwise(ends)]
    lines = []
    for group, words in GROUPS.items():
        for n, by_method in folds[group][part].items():
            cells = [""] * len(heads)
            for each in _large_bins(by_method):
                place = int(np.searchsorted(EDGES, each["stated"], side="right")) - 1
                cells[place] = f"{100 * each['stated']:.1f} → {100 * each['true']:.1f}"
            lines.append([words, n, *cells])
    return as_markdown(["tables", "labels", *heads], lines)


def _large_bins(by_method: Figures) -> list[Figures]:
    return [each for each in by_method["calibrated"]["bins"] if each["n"] >= LEAST_ROWS]


def _largest_error(by_method: Figures) -> float:
    """How far the share of anomalies in a bin is from what is stated, at most."""
    return max(abs(each["stated"] - each["true"]) for each in _large_bins(by_method))


def _costs(folds: Figures) -> str:
    """Cost of a row with labels by the cost of a missed anomaly, beside that of the former."""
    heads = ["tables", "cost of a missed anomaly", *METHODS.values(), "stated, beside rank"]
    lines = []
    for group, words in GROUPS.items():
        by_method = folds[group]["whole"][N_LABELS]
        for miss in by_method["calibrated"]["costs"]:
            costs = {method: by_method[method]["costs"][miss] for method in METHODS}
            change = costs["calibrated"] / costs["rank"] - 1.0
            lines.append(
                [words, miss, *(f"{x:.4f}" for x in costs.values()), f"{round(100 * change):+d}%"]
            )
    return as_markdown(heads, lines)


def _flagged(by_collection: Figures) -> str:
    """F1 scores of the rows that each way to choose a share flags."""
    names = {
        "typed 0.1": "typed 10 %",
        "typed 0.05": "typed 5 %",
        "without labels": "model",
        "labels, share": "labels, share",
        WITH_LABELS: "labels, probabilities",
    }
    lines = [
        [words, n, str(own["n_tables"]), *(f"{own[name]:.3f}" for name in names)]
        for collection, words in COLLECTION_NAMES.items()
        for n, own in by_collection[collection].items()
    ]
    return as_markdown(["tables", "labels", "number", *names.values()], lines)


def _groups(by_case: Figures) -> str:
    """Coverage, width and CRPS of a prior for each group, and of one that groups share."""
    lines = [
        [*case.split("/"), *(_interval_text(own[name]) for name in ("own", "hierarchical"))]
        for case, own in by_case.items()
    ]
    return as_markdown(["groups", "labels of each", "own", "shared"], lines)


def _interval_text(own: Figures) -> str:
    return f"{own['held']:.0%}, {own['width']:.3f}, {own['crps']:.4f}"


def _short(folds: Figures) -> str:
    """What is further from the truth than it should be, and decisions that cost more."""
    lines = [
        [f"{words}, {what}", f"{stated:.1%}", f"{true:.1%}"]
        for group, words in GROUPS.items()
        for what, stated, true, tolerance in _pairs(folds, group)
        if abs(stated - true) > tolerance
    ] + [
        [
            f"{words}, {N_LABELS} labels, costs of decisions below the rank's, a miss costs {miss}",
            f"{LESS[miss]:.0%}",
            f"{1.0 - ours / former:.0%}",
        ]
        for group, words in GROUPS.items()
        for miss, ours, former in _pairs_of_costs(folds[group]["whole"][N_LABELS])
        if ours > (1.0 - LESS[miss]) * former
    ]
    bounds = (
        f"Bins of at least {LEAST_ROWS:,} rows should be within {100 * TOLERANCE['oddbench']:.0f} "
        f"percentage points of the truth on OddBench and within {100 * TOLERANCE['classical']:.0f} "
        f"on the classical tables, ten first rows within {100 * FIRST_TOLERANCE:.0f}, and "
        "decisions should cost less than by the rank: "
        + " and ".join(
            f"{less:.0%} if a miss costs {miss} false alarms" for miss, less in LESS.items()
        )
        + "."
    )
    if not lines:
        return f"{bounds} All do."
    table = as_markdown(["case", "predicted or aimed at", "observed"], lines)
    return f"{bounds} These do not:\n\n{table}"


def _pairs(folds: Figures, group: str) -> Iterator[tuple[str, float, float, float]]:
    for part, new in (("whole", ""), ("half", "new rows, ")):
        for n, by_method in folds[group][part].items():
            ours = by_method["calibrated"]
            what = f"{new}{n} labels, ten first rows"
            yield what, ours["first_stated"], ours["first_true"], FIRST_TOLERANCE
            for each in _large_bins(by_method):
                what = f"{new}{n} labels, a bin of {each['n']:,} rows"
                yield what, each["stated"], each["true"], TOLERANCE[group]


def _pairs_of_costs(by_method: Figures) -> Iterator[tuple[str, float, float]]:
    for miss in LESS:
        ours, former = (by_method[method]["costs"][miss] for method in ("calibrated", "rank"))
        yield miss, ours, former


def draw(found: Figures) -> None:
    """Draw the stated probabilities against the truth; the same figures give the same file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SAME_FILE):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        for ax, (group, words) in zip(
            figure.subplots(1, 2, sharey=True), GROUPS.items(), strict=True
        ):
            ax.plot([0.0, 1.0], [0.0, 1.0], ":", color=GREY)
            by_number = found["folds"][group]["whole"]
            for colour, (n, by_method) in zip(CYCLE, by_number.items(), strict=False):
                _line(ax, _large_bins(by_method), f"{n} labels", colour, "o-")
            former = by_number[N_LABELS]["rank"]["bins"]
            former = [each for each in former if each["n"] >= LEAST_ROWS]
            _line(ax, former, f"{N_LABELS} labels, by rank alone", GREY, "x--")
            ax.set(
                title=f"{words} ({found['n_tables'][group]} tables)", xlabel="stated probability"
            )
            ax.grid(alpha=0.3)
        figure.axes[0].set_ylabel("share of anomalies")
        figure.axes[0].legend(frameon=False)
        figure.savefig(FIGURE, metadata={"Date": None, "Creator": None})


def draw_flagged(by_collection: Figures) -> None:
    """Draw the F1 scores of the rows that are flagged, by collection and way to flag them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SAME_FILE):
        figure = Figure(figsize=(8.0, 3.6), layout="constrained")
        ax = figure.subplots()
        shown = [by_collection[collection][N_LABELS] for collection in COLLECTION_NAMES]
        width = 0.8 / len(BARS)
        for i, (name, (words, colour)) in enumerate(BARS.items()):
            places = np.arange(len(shown)) + (i - (len(BARS) - 1) / 2) * width
            bars = ax.bar(places, [own[name] for own in shown], width, label=words, color=colour)
            ax.bar_label(bars, fmt="{:.2f}", padding=2, fontsize=9)
        words = zip(COLLECTION_NAMES.values(), shown, strict=True)
        ax.set_xticks(
            range(len(shown)), [f"{name}\n({own['n_tables']} tables)" for name, own in words]
        )
        ax.set(ylabel="mean F1 score of the flagged rows", ylim=(0.0, None))
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(y=0.12)
        ax.legend(frameon=False, ncols=len(BARS), loc="lower center", bbox_to_anchor=(0.5, 1.0))
        figure.savefig(FLAGGED, metadata={"Date": None, "Creator": None})


def _line(ax: Any, bins: Iterable[Figures], label: str, colour: str, style: str) -> None:
    points = [(each["stated"], each["true"]) for each in bins]
    ax.plot(*zip(*points, strict=True), style, color=colour, label=label, markersize=4)


if __name__ == "__main__":
    main()
