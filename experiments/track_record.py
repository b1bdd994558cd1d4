"""The track record of the default fit: figures, the file in the package, and a page.

    python -m experiments.track_record

reads the results of the trials "record", "sceptic", "clean", "groups" and "labels", and the slopes
that `experiments.reliability` has fitted. It writes all figures to results/track_record.json, the
track record of the package, docs/images/track-record.svg and docs/explanations/meaning.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, logsumexp
from scipy.stats import spearmanr

from experiments import metrics
from experiments.made_tables import SHAPED_COLUMNS
from experiments.plan import HERE, load_plan, record_tables
from experiments.results import RESULTS, Result, read_file, result_file
from gammagmm import GammaPosterior
from gammagmm._support.files import write_document
from gammagmm.posterior import track_record
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.separate_rows import MIN_DEPTH

ROOT = HERE.parent
PAGE, PAGE_TEMPLATE = ROOT / "docs" / "explanations" / "meaning.md", HERE / "meaning.md"
FIGURE = ROOT / "docs" / "images" / "track-record.svg"
PACKAGED = Path(track_record.__file__).with_name(track_record.FILE)
FIGURES = RESULTS / "track_record.json"
RELIABILITY = RESULTS / "reliability.json"

N_PARTS = 2
"""Parts of the reference. With one part, tables that are left out are less likely; a third one
would be a narrow hump that describes how the tables were collected."""
N_LABELS = 30
NAMES = {"oddbench": "OddBench", "pool": "pool", "paper": "paper"}
TOLERANCE = 0.1, 2.0  # of the share of separate rows: relative, and in rows


def main() -> None:
    figures = all_figures()
    _write(figures, FIGURES)
    _write(packaged(figures), PACKAGED)
    draw(figures, FIGURE)
    write_document(page(figures), PAGE, overwrite=True)


def all_figures() -> dict[str, Any]:
    """Every figure of the page, from the result files."""
    plan = load_plan()
    tables = _tables(plan)
    return {
        "record": _record(tables, plan["record"]["mass"]),
        "reference": _reference(tables),
        "moves": _moves(tables),
        "labels": _labels(read_results("labels").values()),
        "groups": _groups(tables),
        "sceptic": _sceptic(read_results("sceptic")),
        "clean": _clean(read_results("clean")),
        "shapes": _shapes(read_results("groups"), plan["groups"]["first"]),
    }


def packaged(figures: dict[str, Any]) -> dict[str, Any]:
    """What the package carries."""
    record, labels = figures["record"]["all"], figures["labels"]
    return {
        "n_tables": record["n_tables"],
        "levels": record["levels"],
        "width_30_labels": labels["width"],
        "held_30_labels": labels["held"],
        "reference": figures["reference"]["parts"],
        "slopes": json.loads(RELIABILITY.read_text(encoding="utf-8"))["slopes"],
    }


def read_results(kind: str) -> dict[Any, Result]:
    """The results of a kind by trial; a trial that failed is an error."""
    found = read_file(result_file(kind))
    for trial, result in found.items():
        if result["status"] not in ("ok", "no data"):
            raise SystemExit(f"{trial}: {result['status']}, {result['reason']}")
    return {trial: result for trial, result in sorted(found.items()) if result["status"] == "ok"}


def _tables(plan: dict[str, Any]) -> list[Result]:
    """The results of the labelled tables that are available, with the name of their collection."""
    wanted = set(record_tables(plan))
    return [
        {"collection": trial.collection, "name": trial.dataset, **result}
        for trial, result in read_results("record").items()
        if (trial.collection, trial.dataset) in wanted
    ]


def _record(tables: list[Result], masses: list[float]) -> dict[str, Any]:
    """How often the intervals contained the truth, by nominal probability, for each collection."""
    parts = {"all": tables} | {
        name: [table for table in tables if table["collection"] == name] for name in NAMES
    }
    return {
        name: {
            "n_tables": len(part),
            "crps": _mean(table["figures"]["crps"] for table in part),
            "error": _mean(abs(table["figures"]["mean"] - table["truth"]) for table in part),
            "constant_error": _mean(abs(0.05 - table["truth"]) for table in part),
            "rank_correlation": _rank_correlation(
                (table["figures"]["mean"], table["truth"]) for table in part
            ),
            "levels": [
                {"mass": mass} | _share(table["figures"]["needed"] <= mass for table in part)
                for mass in masses
            ],
        }
        for name, part in parts.items()
        if part
    }


def _rank_correlation(pairs: Iterable[tuple[float, float]]) -> float:
    return float(spearmanr(np.array(list(pairs))).statistic)


def _share(is_held: Iterable[bool]) -> dict[str, float]:
    """A share and its standard error."""
    values = np.array(list(is_held), dtype=float)
    held = float(values.mean())
    return {"held": held, "standard_error": float(np.sqrt(held * (1.0 - held) / len(values)))}


def _reference(tables: list[Result]) -> dict[str, Any]:
    """The distribution of the tables' shares, and how well it predicts each from the others."""
    n = np.array([table["rows"] for table in tables])
    k = np.array([round(table["truth"] * table["rows"]) for table in tables])
    start = fit_reference(k, n)
    left_out = []
    for i, table in enumerate(tables):
        others = np.arange(len(n)) != i
        left_out.append(
            metrics.posterior_figures(
                GammaPosterior(0.0, as_mixture(fit_reference(k[others], n[others], start))),
                table["truth"],
            )
        )
    weights, a, b = _parts(start)
    return {
        "parts": {"weights": weights.tolist(), "a": a.tolist(), "b": b.tolist()},
        "interval": _share(found["covers"] for found in left_out),
        "crps": _mean(found["crps"] for found in left_out),
        "quantiles": np.quantile(k / n, [0.1, 0.25, 0.5, 0.75, 0.9]).tolist(),
    }


def fit_reference(k: np.ndarray, n: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """The Beta mixture under which `k` anomalies among `n` rows are most likely.

    The likelihood of a table is that of a mixture of Beta-binomial distributions, so that a table
    without anomalies among its rows is possible. The result has the logarithms of the weights
    (relative to the last one's), of a and of b.
    """
    if start is None:
        start = np.log([1.0, 1.0, 2.0, 100.0, 10.0])
    found = minimize(lambda x: -_log_likelihood(x, k, n), start, method="L-BFGS-B")
    return found.x


def _log_likelihood(logs: np.ndarray, k: np.ndarray, n: np.ndarray) -> float:
    weights, a, b = _parts(logs)
    fitting = betaln(k[:, None] + a, (n - k)[:, None] + b) - betaln(a, b)
    return float(logsumexp(np.log(weights) + fitting, axis=1).sum())


def _parts(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = np.append(logs[: N_PARTS - 1], 0.0)
    weights = np.exp(weights - logsumexp(weights))
    return weights, np.exp(logs[N_PARTS - 1 : 2 * N_PARTS - 1]), np.exp(logs[2 * N_PARTS - 1 :])


def as_mixture(logs: np.ndarray) -> BetaMixture:
    """The fitted reference as a mixture."""
    return BetaMixture(*_parts(logs))


def _moves(tables: list[Result]) -> dict[str, Any]:
    """How far other answers move the mean: from the smallest to the largest of all five means."""
    ends = [_ends_of_means(table) for table in tables]
    return {
        "quantiles": np.quantile([high - low for low, high in ends], [0.1, 0.5, 0.9]).tolist(),
        "n_held": sum(
            low <= table["truth"] <= high for table, (low, high) in zip(tables, ends, strict=True)
        ),
        "n_without_value": sum(
            any(np.isnan(mean) for mean in _other_means(table)) for table in tables
        ),
    }


def _other_means(table: Result) -> list[float]:
    """The means under other answers; NaN where there is none."""
    return [np.nan if mean is None else mean for mean in table["assumptions"].values()]


def _ends_of_means(table: Result) -> tuple[float, float]:
    means = [table["figures"]["mean"], *_other_means(table)]
    return float(np.nanmin(means)), float(np.nanmax(means))


def _labels(results: Iterable[Result]) -> dict[str, Any]:
    """The intervals after 30 labels of rows that `suggest` chose; means over draws and tables."""
    listed = list(results)
    found = [result["figures"]["spread"][str(N_LABELS)] for result in listed]
    held = np.array([figures["held"] for figures in found])
    return {
        "n_labels": N_LABELS,
        "n_draws": listed[0]["draws"],
        "width": _mean(figures["width"] for figures in found),
        "crps": _mean(figures["crps"] for figures in found),
        "held": float(held.mean()),
        "standard_error": float(held.std() / np.sqrt(len(held))),
    }


def _groups(tables: list[Result]) -> dict[str, Any]:
    """How often rows are separate from the rest, and what they have to do with the labels."""
    found = [table for table in tables if table["group"]]
    return {
        "n_tables": len(found),
        "n_contradicted": sum(is_contradicted(table) for table in found),
        "rank_correlation": _rank_correlation(
            (table["group"]["share"], table["truth"]) for table in found
        ),
        "precision": _mean(table["group"]["precision"] for table in found),
    }


def _sceptic(results: dict[Any, Result]) -> dict[str, Any]:
    """The made tables by kind and share."""
    lines: dict[tuple[str, float], list[Result]] = {}
    for trial, result in results.items():
        kind, share, n_blobs, n_rows = trial.dataset.split("-")
        case = {"n_blobs": int(n_blobs), "n_rows": int(n_rows), **result}
        lines.setdefault((kind, float(share)), []).append(case)
    shells = [
        is_found(case)
        for (kind, share), cases in lines.items()
        for case in cases
        if kind != "cluster" and 0.01 <= share <= 0.2
    ]
    return {
        "n_tables": len(results),
        "n_without_estimate": _means(results).count(0.0),
        "shells": {"n_tables": len(shells), "n_found": int(sum(shells))},
        "lines": [
            {
                "kind": kind,
                "share": share,
                "n_tables": len(cases),
                "means": _ends(c["figures"]["mean"] for c in cases if c["figures"]["mean"] > 0.0),
                "n_held": sum(case["figures"]["covers"] for case in cases),
                "n_groups": sum(case["group"] is not None for case in cases),
                "n_found": sum(is_found(case) for case in cases),
                "n_contradicted": sum(is_contradicted(case) for case in cases),
                "n_clusters": sum(is_found(c) and c["group"]["is_cluster"] for c in cases if share),
            }
            for (kind, share), cases in sorted(lines.items())
        ],
    }


def is_found(result: Result) -> bool:
    """Whether the separate rows have the share of the outliers, within a tenth or two rows."""
    share = result["group"]["share"] if result["group"] else 0.0
    tolerance = max(TOLERANCE[0] * result["truth"], TOLERANCE[1] / result["rows"])
    return abs(share - result["truth"]) <= tolerance + 1e-9


def is_contradicted(result: Result) -> bool:
    """Whether the share of the separate rows lies above the model range, which is warned of."""
    return bool(result["group"]) and result["group"]["share"] > result["figures"]["high"]


def _clean(results: dict[Any, Result]) -> dict[str, Any]:
    groups = [result["group"]["share"] for result in results.values() if result["group"]]
    return {
        "n_tables": len(results),
        "n_groups": len(groups),
        "largest_group": max(groups, default=0.0),
        "means": _ends(mean for mean in _means(results) if mean > 0.0),
        "n_contradicted": sum(is_contradicted(result) for result in results.values()),
    }


def _shapes(results: dict[Any, Result], n_first: int) -> dict[str, Any]:
    """Groups in tables of independent columns by least depth of a valley, and in two blobs.

    "again" are those in the tables of later seeds than the `n_first` ones, and "by_kind" those in
    the tables of all seeds.
    """
    default = str(MIN_DEPTH)
    first, later, by_kind, blobs = [], [], {}, []
    for trial, result in results.items():
        own = result | {"group": result["groups"][default]}
        if result["truth"]:
            blobs.append(own)
            continue
        (first if int(trial.variant) < n_first else later).append(own)
        by_kind.setdefault(trial.dataset.split("-")[0], []).append(own)
    found = [result for result in blobs if is_found(result)]
    flat = [result for result in blobs if result["columns"] == SHAPED_COLUMNS[0]]
    return {
        "n_tables": len(first),
        "n_groups": {
            depth: sum(result["groups"][depth] is not None for result in first)
            for depth in first[0]["groups"]
        },
        "again": {
            "n_tables": len(later),
            "n_groups": sum(result["group"] is not None for result in later),
        },
        "by_kind": {
            kind: {
                "n_tables": len(own),
                "n_groups": sum(result["group"] is not None for result in own),
            }
            for kind, own in by_kind.items()
        },
        "two_blobs": {
            "n_tables": len(blobs),
            "n_found": len(found),
            "n_two_columns": len(flat),
            "n_found_two_columns": sum(map(is_found, flat)),
            "n_clusters": sum(result["group"]["is_cluster"] for result in found),
        },
    }


def _means(results: dict[Any, Result]) -> list[float]:
    return [result["figures"]["mean"] for result in results.values()]


def _ends(values: Iterable[float]) -> list[float]:
    listed = list(values)
    return [min(listed), max(listed)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _write(data: dict[str, Any], path: Path) -> None:
    write_document(json.dumps(data, indent=1, allow_nan=False) + "\n", path, overwrite=True)


def draw(figures: dict[str, Any], path: Path) -> None:
    """Draw how often the intervals contained the truth; the same figures give the same file."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "gammagmm", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        ax = figure.subplots()
        ax.plot([0.45, 1.0], [0.45, 1.0], ":", color="grey", label="if the intervals were right")
        styles = {"all": ("o-", "C0", 3), "oddbench": (".-", "C1", 2), "pool": (".-", "C2", 2)}
        for name, found in figures["record"].items():
            style, colour, order = styles.get(name, (".-", "C3", 2))
            mass, held, error = (
                [level[key] for level in found["levels"]]
                for key in ("mass", "held", "standard_error")
            )
            label = f"{NAMES.get(name, 'all tables')} ({found['n_tables']})"
            ax.errorbar(
                mass, held, error, fmt=style, color=colour, label=label, capsize=2, zorder=order
            )
        ax.set_xlabel("nominal probability of the interval")
        ax.set_ylabel("share of the tables whose truth it contained")
        ax.set_ylim(0.0, 1.0)
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def page(figures: dict[str, Any]) -> str:
    """The text of docs/explanations/meaning.md."""
    template = Template(PAGE_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(page_values(figures))


def page_values(figures: dict[str, Any]) -> dict[str, str]:
    """Every number and table of the page, by the name of its placeholder."""
    record, reference, labels = figures["record"], figures["reference"], figures["labels"]
    groups, sceptic, clean = figures["groups"], figures["sceptic"], figures["clean"]
    everything, moves = record["all"], figures["moves"]
    shapes, default = figures["shapes"], str(MIN_DEPTH)
    return {
        "n_tables": str(everything["n_tables"]),
        **{f"n_{name}": str(record[name]["n_tables"]) for name in NAMES},
        "levels": _level_table(record),
        "error": f"{everything['error']:.4f}",
        "constant_error": f"{everything['constant_error']:.4f}",
        "rank_correlation": _two_digits(everything["rank_correlation"]),
        "crps": f"{everything['crps']:.4f}",
        "reference_held": f"{reference['interval']['held']:.0%}",
        "reference_crps": f"{reference['crps']:.4f}",
        **{
            f"share_{name}": f"{reference['quantiles'][place]:.1%}"
            for name, place in (("10", 0), ("50", 2), ("90", 4))
        },
        "n_labels": str(labels["n_labels"]),
        "labelled_held": f"{labels['held']:.0%}",
        "labelled_crps": f"{labels['crps']:.4f}",
        "n_contradicted": str(groups["n_contradicted"]),
        **{
            f"move_{name}": f"{100 * moves['quantiles'][place]:.1f}"
            for name, place in (("10", 0), ("50", 1), ("90", 2))
        },
        "moves_held": f"{moves['n_held'] / everything['n_tables']:.0%}",
        "n_without_value": str(moves["n_without_value"]),
        "n_groups": str(groups["n_tables"]),
        "group_correlation": _two_digits(groups["rank_correlation"]),
        "sceptic": _sceptic_table(sceptic["lines"]),
        "n_sceptic": str(sceptic["n_tables"]),
        "n_unsolved": str(sceptic["n_without_estimate"]),
        "n_shells": str(sceptic["shells"]["n_tables"]),
        "n_shells_found": str(sceptic["shells"]["n_found"]),
        "n_clean": str(clean["n_tables"]),
        "clean_contradicted": str(clean["n_contradicted"]),
        "clean_groups": str(clean["n_groups"]),
        "clean_largest": f"{clean['largest_group']:.1%}",
        "n_shaped": str(shapes["n_tables"]),
        "shaped_groups": str(shapes["n_groups"][default]),
        "n_again": str(shapes["again"]["n_tables"]),
        "again_groups": str(shapes["again"]["n_groups"]),
        "shaped_depths": ", ".join(
            f"{n} ({float(depth):.0%})"
            for depth, n in shapes["n_groups"].items()
            if depth != default
        ),
        **{
            f"{kind}_{name}": str(shapes["by_kind"][kind][name])
            for kind in ("lognormal", "t2")
            for name in ("n_groups", "n_tables")
        },
        "n_two_blobs": str(shapes["two_blobs"]["n_tables"]),
        "n_two_columns": str(shapes["two_blobs"]["n_two_columns"]),
        "found_two_columns": str(shapes["two_blobs"]["n_found_two_columns"]),
        "blobs_found": str(shapes["two_blobs"]["n_found"]),
        "blobs_clusters": str(shapes["two_blobs"]["n_clusters"]),
        "clusters_by_kind": _clusters(sceptic["lines"]),
        "clean_low": f"{clean['means'][0]:.1%}",
        "clean_high": f"{clean['means'][1]:.1%}",
    }


def _two_digits(value: float) -> str:
    """The value with two digits, and zero without a sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def _level_table(record: dict[str, Any]) -> str:
    heads = ["nominal", *(f"{NAMES.get(n, 'all')} ({r['n_tables']})" for n, r in record.items())]
    lines = [
        [f"{level['mass']:.0%}"]
        + [
            f"{found['levels'][i]['held']:.0%} ± {found['levels'][i]['standard_error']:.0%}"
            for found in record.values()
        ]
        for i, level in enumerate(record["all"]["levels"])
    ]
    return as_markdown(heads, lines)


def _clusters(lines: list[dict[str, Any]]) -> str:
    """How many of the groups that have the right share are clusters, for each kind of outliers."""
    told = []
    for kind, words in (("near", "near shells"), ("far", "far shells"), ("cluster", "clusters")):
        part = [line for line in lines if line["kind"] == kind and line["share"]]
        n_clusters, n_found = (
            sum(line[name] for line in part) for name in ("n_clusters", "n_found")
        )
        told.append(f"{n_clusters} of {n_found} {words}")
    return f"{', '.join(told[:-1])} and {told[-1]}"


def _sceptic_table(lines: list[dict[str, Any]]) -> str:
    kinds = {"near": "near shell", "far": "far shell", "cluster": "cluster"}
    rows = [
        [
            "none" if line["share"] == 0.0 else kinds[line["kind"]],
            f"{line['share']:.0%}",
            f"{line['n_tables']}",
            " to ".join(f"{mean:.1%}" for mean in line["means"]),
            *(f"{line[name]}" for name in ("n_held", "n_groups")),
            "" if line["share"] == 0.0 else f"{line['n_found']}",
            f"{line['n_contradicted']}",
        ]
        for line in sorted(lines, key=lambda line: (list(kinds).index(line["kind"]), line["share"]))
    ]
    heads = ["outliers", "share", "tables", "estimates", "range holds", "separate rows"]
    return as_markdown([*heads, "found", "contradicted"], rows)


def as_markdown(heads: list[str], lines: list[list[str]]) -> str:
    marks = ["---"] * len(heads)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, marks, *lines])


if __name__ == "__main__":
    main()
