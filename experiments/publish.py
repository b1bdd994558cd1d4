"""Results -> the tables, the figures and docs/explanations/reproduction*.md.

    python -m experiments.publish [--small]

Every number of the pages comes from the result files, through the placeholders of the templates in
pages/.
"""

from __future__ import annotations

import sys
from string import Template
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy import stats

from experiments.figures import FIGURES
from experiments.learning import WORSE
from experiments.metrics import calibrated_by_chance
from experiments.plan import HERE, Trial, load_plan, small_plan, trials
from experiments.results import OURS, RESULTS, Result, Results, only_writer, sort_files
from experiments.seed_tables import LEVEL, complete_seeds
from experiments.seeds import MIXTURE_ROWS
from experiments.tables import (
    AUC_BANDS,
    FORMER,
    SEEDS,
    TABLES,
    Row,
    complete_settings,
    is_held,
    label_figures,
    label_groups,
    to_csv,
)
from gammagmm._support.files import write_document
from gammagmm.estimator.parameters import AUTO_MIXTURE_ROWS

DOCS = HERE.parent / "docs"
TEMPLATES = HERE / "pages"


def publish(results: Results) -> None:
    """Write everything that is made from the results; a small run does not change the docs."""
    is_whole = results.plan == load_plan()
    pictures = DOCS / "images" / "reproduction" if is_whole else RESULTS / "figures"
    pages = DOCS / "explanations" if is_whole else RESULTS / "pages"
    for folder in (RESULTS / "tables", pictures, pages):
        folder.mkdir(parents=True, exist_ok=True)
    with only_writer() as is_alone:
        if is_alone:  # otherwise a run is appending to the files
            sort_files()
    for name, table in TABLES.items():
        write_document(to_csv(table(results)), RESULTS / "tables" / f"{name}.csv", overwrite=True)
    # The same results give the same files.
    with mpl.rc_context({"svg.hashsalt": "gammagmm"}):
        for name, draw in FIGURES.items():
            draw(results).savefig(pictures / f"{name}.svg", metadata={"Date": None})
    for name, text in render(results).items():
        write_document(text, pages / name, overwrite=True)


def render(results: Results) -> dict[str, str]:
    """The pages by their file names, with the placeholders replaced by numbers and tables."""
    found = values(results)
    return {
        path.name: Template(path.read_text(encoding="utf-8")).substitute(found)
        for path in sorted(TEMPLATES.glob("*.md"))
    }


def values(results: Results) -> dict[str, str]:
    """Every number and table of the pages, by the name of its placeholder."""
    made = {name: table(results) for name, table in TABLES.items()}
    paper = {f"paper_{k}": str(v) for k, v in results.paper.items() if k != "tables"}
    return {
        **paper,
        **_budgets(results.plan),
        **_progress(results),
        **_datasets(made["datasets"]),
        **_errors(made["errors"]),
        **_f1(results, made["f1"], made["best_detectors"]),
        **_changes(made),
        **_seeds(results, made),
        **_dose(made["dose"]),
        "table_dose_levels": _dose_levels(results),
        **_pool(made),
        **_labels(results, made),
        **_learning(results, made),
        **_detectors(results, made),
        **_settings(results, made["settings"]),
    }


def _settings(results: Results, rows: list[Row]) -> dict[str, str]:
    """The default settings of the mixtures beside the exact ones."""
    found = {name: complete_settings(results, name) for name in results.plan["collections"]}
    fits = [one for each in found.values() for one in each]
    pairs = [
        [is_held(one[f"{kind}-{i}"]) for kind in ("exact", "default")]
        for one in fits
        for i in SEEDS
    ]
    exact, default = zip(*pairs, strict=True) if pairs else ((), ())
    enlarged = results.plan["settings"].get("enlarged", {"rows": 0, "noise": 0.0})
    large = complete_settings(results, "enlarged")
    return {
        "mixture_rows": f"{AUTO_MIXTURE_ROWS:,}",
        "seed_mixture_rows": f"{MIXTURE_ROWS:,}",
        "enlarged_rows": f"{enlarged['rows']:,}",
        "enlarged_noise": str(enlarged["noise"]),
        "table_settings": markdown([row for row in rows if row["sets"]], SETTINGS_COLUMNS),
        **dict(zip(("moved_sets", "seed_sets"), _differences(fits), strict=True)),
        **dict(zip(("moved_enlarged", "seed_enlarged"), _differences(large), strict=True)),
        "held_fits": str(len(pairs)),
        "held_exact": str(sum(exact)),
        "held_default": str(sum(default)),
        "held_changed": str(sum(one != other for one, other in pairs)),
    }


def _differences(fits: list[dict[str, Result]]) -> tuple[str, str]:
    """Mean differences of posterior means: from exact to default settings, and between seeds."""
    if not fits:
        return "–", "–"
    means = {name: np.array([one[name]["figures"]["mean"] for one in fits]) for name in fits[0]}
    moved = [np.abs(means[f"default-{i}"] - means[f"exact-{i}"]) for i in SEEDS]
    seeds = np.abs(means["exact-1"] - means["exact-0"])
    return f"{np.mean(moved):.4f}", f"{np.mean(seeds):.4f}"


SETTINGS_COLUMNS = {
    **{"collection": "", "settings": "", "sets": "d", "difference_from_exact": ".4f"},
    **{"difference_between_seeds": ".4f", "mae": ".4f", "crps": ".4f", "coverage_90": ".1%"},
    **{"unsolved": "d", "restarts": "d", "iterations": ",d"},
}


def _budgets(plan: dict[str, Any]) -> dict[str, str]:
    return {
        "budget_rows": f"{plan['refits']['max_rows']:,}",
        "budget_restarts": str(plan["refits"]["max_restarts"]),
        "dose_rows": f"{plan['dose']['max_rows']:,}",
        "paper_limit": str(plan["thresholders"]["limit"]),
        "pool_limit": str(plan["collections"].get("pool", {}).get("limit", "–")),
    }


def _progress(results: Results) -> dict[str, str]:
    asked = list(trials(results.plan))
    done = [results.all[trial] for trial in asked if trial in results.all]
    hours = sum(found.get("seconds", 0.0) for found in done) / 3600.0
    states = [found["status"] for found in done]
    failed = [f for f in done if f["status"] in ("failed", "timeout")]
    by_kind = {trial.kind: [0, 0] for trial in asked}
    for trial in asked:
        by_kind[trial.kind][0] += trial in results.all
        by_kind[trial.kind][1] += 1
    rows = [{"kind": k, "done": n, "asked": total} for k, (n, total) in by_kind.items()]
    return {
        "n_asked": f"{len(asked):,}",
        "n_done": f"{len(done):,}",
        "n_no_data": str(states.count("no data")),
        "n_failed": str(states.count("failed")),
        "n_timeout": str(states.count("timeout")),
        "hours": f"{hours:.1f}",
        "progress": markdown(rows, {"kind": "", "done": "d", "asked": "d"}),
        "failures": markdown(_failures(failed), {"method": "", "sets": "", "why": ""}),
    }


def _failures(failed: list[Row]) -> list[Row]:
    """The failed trials, by method and reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for found in failed:
        trial = Trial.parse(found["trial"])
        why = "exceeded its time limit" if found["status"] == "timeout" else found["reason"]
        method = trial.variant if trial.kind == "threshold" else f"{trial.kind} {trial.variant}"
        grouped.setdefault((method, why.split("\n")[0][:90]), []).append(trial.dataset)
    return [{"method": m, "sets": ", ".join(d), "why": w} for (m, w), d in grouped.items()]


def _datasets(rows: list[Row]) -> dict[str, str]:
    papers = [row for row in rows if row["collection"] == "paper"]
    found = [row for row in papers if row["state"] == "ok"]
    truth, ours, theirs = (
        np.array([row[key] for row in found]) for key in ("true_gamma", "mean", "paper_mean")
    )
    columns = {
        "dataset": "",
        "rows": ",d",
        "true_gamma": ".4f",
        "paper_mean": ".4f",
        "mean": ".4f",
        "low": ".3f",
        "high": ".3f",
        "state": "",
    }
    counts = {name: sum(row[name] for row in found) for name in ("solved", "slack", "unsolved")}
    return {
        "n_sets": str(len(found)),
        "n_runs": str(sum(counts.values())),
        **{f"n_{name}": str(count) for name, count in counts.items()},
        "n_restarts": str(sum(row["restarts"] for row in found)),
        "n_humps": str(sum(row["humps"] > 1 for row in found)),
        "mae_ours": mean_of(np.abs(ours - truth), ".4f"),
        "mae_table2": mean_of(np.abs(theirs - truth), ".4f"),
        "apart": mean_of(np.abs(ours - theirs), ".4f"),
        "table_datasets": markdown(papers, columns),
    }


def _errors(rows: list[Row]) -> dict[str, str]:
    papers = {row["method"]: row for row in rows if row["collection"] == "paper"}
    columns = {
        **{"method": "", "sets": "d", "mae": ".4f", "mae_std": ".4f", "crps": ".4f"},
        **{"rank": ".2f", "rank_std": ".2f", "first": "d", "top_two": "d"},
        **{"rank_correlation": ".2f", "mean_share": ".3f"},
    }
    ours, constant, prior = (papers[name] for name in (OURS, "constant 5%", "prior only"))
    ordered = sorted(papers.values(), key=lambda row: row.get("mae", np.inf))
    place = [row["method"] for row in ordered].index(OURS) + 1
    return {
        "mae_constant_5": formatted(constant.get("mae"), ".4f"),
        "rank_ours": " ± ".join(formatted(ours.get(k), ".2f") for k in ("rank", "rank_std")),
        "first_ours": formatted(ours.get("first"), "d"),
        "top_two_ours": formatted(ours.get("top_two"), "d"),
        "place_ours": str(place),
        "n_methods": str(len(papers)),
        "correlation_ours": formatted(ours.get("rank_correlation"), ".2f"),
        "crps_ours": formatted(ours.get("crps"), ".4f"),
        "crps_prior": formatted(prior.get("crps"), ".4f"),
        "coverage_ours": formatted(ours.get("coverage_90"), ".0%"),
        "coverage_prior": formatted(prior.get("coverage_90"), ".0%"),
        "width_ours": formatted(ours.get("width_90"), ".3f"),
        "width_prior": formatted(prior.get("width_90"), ".3f"),
        "table_errors": markdown(ordered, columns),
    }


def _f1(results: Results, rows: list[Row], best: list[Row]) -> dict[str, str]:
    papers = {row["method"]: row for row in rows if row["collection"] == "paper"}
    names = [n for n in results.papers_thresholders if "misses" in papers[n]]
    theirs = np.array([results.paper["tables"]["rates"][name] for name in names])
    ours = np.array([[papers[n]["false_alarms"], papers[n]["misses"]] for n in names])
    columns = {
        **{"method": "", "sets": "d", "f1_deterioration": ".3f", "f1_std": ".3f"},
        **{"better_than_truth": ".0%", "false_alarms": ".3f", "misses": ".3f"},
    }
    ordered = sorted(papers.values(), key=lambda row: -row.get("f1_deterioration", -np.inf))
    gamma = papers[OURS]
    ran = [row for row in best if row["state"] == "ok"]
    return {
        "f1_ours": formatted(gamma.get("f1_deterioration"), ".3f"),
        "f1_std_ours": formatted(gamma.get("f1_std"), ".3f"),
        "f1_constant_10": formatted(papers["constant 10%"].get("f1_deterioration"), ".3f"),
        "f1_place": str([row["method"] for row in ordered].index(OURS) + 1),
        "f1_better": formatted(gamma.get("better_than_truth"), ".0%"),
        "f1_zero": formatted(gamma.get("f1_zero"), "d"),
        "n_best_shared": str(sum(row["shared"] > 0 for row in ran)),
        "rates_alarms": _correlation(ours[:, :1], theirs[:, :1]),
        "rates_misses": _correlation(ours[:, 1:], theirs[:, 1:]),
        "rates_methods": str(len(names)),
        "changed": _changed(names, ours, theirs),
        "table_f1": markdown(ordered, columns),
        "table_best": markdown(best, {"dataset": "", "paper": "", "ours": "", "f1": ".2f"}),
    }


def _correlation(ours: np.ndarray, theirs: np.ndarray) -> str:
    if len(ours) < 3:
        return "–"
    return f"{stats.spearmanr(ours.ravel(), theirs.ravel()).statistic:.2f}"


def _changed(names: list[str], ours: np.ndarray, theirs: np.ndarray) -> str:
    """The estimators whose false alarms differ most from the paper's, with both numbers."""
    if not names:
        return "–"
    apart = np.abs(ours[:, 0] - theirs[:, 0])
    most = np.argsort(-apart)[:8]
    return ", ".join(f"{names[i]} ({ours[i, 0]:.2f}, paper {theirs[i, 0]:.2f})" for i in most)


def _changes(made: dict[str, list[Row]]) -> dict[str, str]:
    """Calibration, sensitivity and ablation."""
    columns = {
        **{"case": "", "fits": "d", "mae": ".4f", "mean": ".3f", "crps": ".4f"},
        **{"coverage_90": ".0%", "within_5": ".0%", "within_10": ".0%", "largest_off": ".2f"},
        **{"unsolved_runs": "d"},
    }
    cases = {row["case"]: row for row in made["calibration"]}
    asked = made["sensitivity"]
    paper5 = [r["mae"] for r in asked if r["case"].startswith(("p0", "p_high")) and "mae" in r]
    bounds = [r["mae"] for r in asked if "gamma" in r["case"] and "mae" in r]
    default = cases.get("default", {})
    return {
        "within_5": formatted(default.get("within_5"), ".0%"),
        "within_10": formatted(default.get("within_10"), ".0%"),
        "largest_off": formatted(default.get("largest_off"), ".2f"),
        "q5_low": formatted(min(paper5, default=None), ".4f"),
        "q5_high": formatted(max(paper5, default=None), ".4f"),
        "bounds_low": formatted(min(bounds, default=None), ".4f"),
        "bounds_high": formatted(max(bounds, default=None), ".4f"),
        "table_detectors": _subsets_table(cases),
        "table_sensitivity": markdown(asked, columns),
        "table_ablation": markdown(made["ablation"], columns),
    }


def _seeds(results: Results, made: dict[str, list[Row]]) -> dict[str, str]:
    """Other seeds and orders of the rows: figures with their spreads, and what may be chance."""
    methods = {row["case"]: row for row in made["seed_methods"]}
    sets = made["seed_datasets"]
    paper = results.paper["tables"]["datasets"]
    truth = np.array([row["truth"] for row in sets])
    table2 = np.array([paper[row["dataset"]][3] for row in sets])
    forms = {"mae": ".4f", "crps": ".4f", "coverage_90": ".0%", "within_5": ".0%"}
    forms |= {"within_10": ".0%", "largest_off": ".2f", "mean_off": ".3f"}
    forms |= {"f1_deterioration": ".3f", "unsolved": ".0f", "degenerate": ".0f"}

    def over(case: str, name: str) -> str:
        return _with_ends(methods.get(case, {}), name, forms[name])

    ablations = [row for row in methods.values() if "crps" in row]
    named = ("mae", "crps", "coverage_90", "mean_off", "unsolved", "degenerate")
    table = [
        {"case": row["case"]} | {name: over(row["case"], name) for name in named}
        for row in ablations
    ]
    orders = [row for row in sets if "orders" in row]
    return {
        "n_seeds": str(len(results.plan["seeds"]["values"])),
        "n_orders": str(len(results.plan["row_order"]["orders"])),
        "n_seed_sets": str(len(sets)),
        "seeds_left_out": " and ".join(results.plan["seeds"]["left_out"]),
        "order_sets": str(len(orders)),
        "order_rows": f"{max((row['rows'] for row in orders), default=0):,}",
        "seed_mae_table2": mean_of(np.abs(table2 - truth), ".4f"),
        "seed_mae_constant_5": mean_of(np.abs(0.05 - truth), ".4f"),
        "seed_mae": over("exact", "mae"),
        "seed_mae_default": over("default", "mae"),
        "seed_crps": over("exact", "crps"),
        "seed_crps_default": over("default", "crps"),
        "seed_coverage": over("exact", "coverage_90"),
        "seed_coverage_default": over("default", "coverage_90"),
        "seed_within_5": over("exact", "within_5"),
        "seed_within_10": over("exact", "within_10"),
        "seed_largest_off": over("exact", "largest_off"),
        "seed_f1": over("exact", "f1_deterioration"),
        **{f"mean_off_{case}": over(case, "mean_off") for case in ("exact", "p_high_met")},
        **{f"{case}_active": _active(results, case) for case in ("exact", "identity")},
        "table_seed_datasets": markdown([_seed_cells(row) for row in sets], SEED_COLUMNS),
        "table_seed_methods": markdown(table, dict.fromkeys(("case", *named), "")),
        "table_row_order": markdown(
            made["row_order"],
            {"settings": "", "sets": "d"}
            | dict.fromkeys(("orders_std", "orders_range", "seeds_std", "seeds_range"), ".4f"),
        ),
        "sets_without_p_high": _without_p_high(results),
        "table_p_high": markdown(made["p_high"], P_HIGH_COLUMNS),
        "table_p_high_met": markdown(_met_cells(made["p_high_met"]), MET_COLUMNS),
        **_calibrated(len(sets), results.plan["seed"]),
        **_chance(made["differences"]),
    }


SEED_COLUMNS = {
    **{"dataset": "", "rows": ",d", "truth": ".4f", "mean": ".4f", "lowest": ".4f"},
    **{"highest": ".4f", "lowest_order": ".4f", "highest_order": ".4f"},
}
P_HIGH_COLUMNS = {
    **{"settings": "", "of": "", "n": "d", "below_half": ".0%", "above_twice": ".0%"},
    **dict.fromkeys(("smallest", "5%", "median", "95%", "largest"), ".4f"),
}


MET_COLUMNS = {
    **{"case": "", "unsolved": "", "fits": "d", "sets": "d", "error_exact": ".4f"},
    **{"error": ".4f", "error_gap": "", "crps_exact": ".4f", "crps": ".4f", "crps_gap": ""},
}


def _met_cells(rows: list[Row]) -> list[Row]:
    return [
        row
        | {"unsolved": f"{row['unsolved']} of {row['runs']}"}
        | {f"{name}_gap": _interval(row, name) for name in ("error", "crps") if name in row}
        for row in rows
    ]


def _interval(row: Row, name: str) -> str:
    """A difference with its bootstrap interval."""
    gap, low, high = (row[f"{name}_{key}"] for key in ("difference", "low", "high"))
    return f"{gap:+.4f} ({low:+.4f} to {high:+.4f})"


def _calibrated(n_sets: int, seed: int) -> dict[str, str]:
    """Calibration figures of a calibrated method: the mean, and 90 % of the simulations."""
    forms = {"within_5": ".0%", "within_10": ".0%", "largest_off": ".2f", "mean_off": ".3f"}
    if n_sets == 0:
        return {f"chance_{name}": "–" for name in forms}
    found = calibrated_by_chance(n_sets, seed)
    return {
        f"chance_{name}": f"{found[name].mean():{form}} ({np.quantile(found[name], 0.05):{form}} "
        f"to {np.quantile(found[name], 0.95):{form}})"
        for name, form in forms.items()
    }


def _without_p_high(results: Results) -> str:
    """The datasets on which, with some seed, no run can meet `p_high`."""
    names = [
        name
        for one in complete_seeds(results)
        for name, each in one.items()
        if each["parts"]["p_high_met"]["n_unsolved"] == len(each["exact"]["statuses"])
    ]
    return ", ".join(dict.fromkeys(names)) or "none"


def _seed_cells(row: Row) -> Row:
    keys = {"mean": "exact", "lowest": "exact_low", "highest": "exact_high"}
    keys |= {"lowest_order": "orders_low", "highest_order": "orders_high"}
    return row | {name: row.get(key) for name, key in keys.items()}


def _with_ends(row: Row, name: str, form: str) -> str:
    """The mean over the seeds, with the lowest and the highest in brackets."""
    if row.get(name) is None:
        return "–"
    mean, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{mean:{form}} ({low:{form}} to {high:{form}})"


def _active(results: Results, case: str) -> str:
    """The smallest and the largest number of active components of a run."""
    found = [
        n for one in complete_seeds(results) for each in one.values() for n in each[case]["active"]
    ]
    return f"{min(found)} to {max(found)}" if found else "–"


def _chance(rows: list[Row]) -> dict[str, str]:
    """Which methods have an error whose difference to gammaGMM's has an interval without 0."""
    known = [row for row in rows if "error_low" in row]
    better = [row["method"] for row in known if row["error_high"] < 0.0]
    worse = [row["method"] for row in known if row["error_low"] > 0.0]
    unclear = [row["method"] for row in known if row["method"] not in (*better, *worse)]
    cells = [
        {"method": row["method"], "seeds": row["seeds"], "sets": row["error_sets"]}
        | {name: _interval(row, name) for name in ("error", "f1") if f"{name}_low" in row}
        for row in sorted(known, key=lambda row: row["error_difference"])
    ]
    return {
        "level_differences": f"{LEVEL:.0%}".replace("%", " %"),
        "n_differences": str(len(known)),
        "n_clearly_worse": str(len(worse)),
        "clearly_better": ", ".join(better) or "none",
        "unclear": ", ".join(unclear) or "none",
        "table_differences": markdown(
            cells, {"method": "", "seeds": "d", "sets": "d", "error": "", "f1": ""}
        ),
    }


def _subsets_table(cases: dict[str, Row]) -> str:
    """Question 4: calibration with fewer detectors, over the repeats."""
    rows = []
    for size in dict.fromkeys(n.split(",")[0] for n in cases if n.startswith("M=")):
        found = [row for name, row in cases.items() if name.startswith(f"{size},")]
        off = np.array([row["mean_off"] for row in found])
        rows.append(
            {
                "detectors": size,
                "repeats": len(found),
                "sets": " to ".join(str(f([row["sets"] for row in found])) for f in (min, max)),
                "mean_off": off.mean(),
                "spread": off.std(ddof=1) if len(off) > 1 else None,
                "within_10": np.mean([row["within_10"] for row in found]),
            }
        )
    columns = {"detectors": "", "repeats": "d", "sets": "", "mean_off": ".3f", "spread": ".3f"}
    return markdown(rows, columns | {"within_10": ".0%"})


def _dose(rows: list[Row]) -> dict[str, str]:
    ran = [row for row in rows if "slope" in row]
    methods = dict.fromkeys(row["method"] for row in ran)
    slopes = []
    for method in methods:
        row: Row = {"method": method}
        for group in ("made", "paper", "pool"):
            found = [r for r in ran if (r["method"], r["collection"]) == (method, group)]
            row[f"{group}_slope"] = np.mean([r["slope"] for r in found]) if found else None
            row[f"{group}_mae"] = np.mean([r["mae"] for r in found]) if found else None
        slopes.append(row)
    ours = slopes[0] if slopes else {}
    names = [f"{group}_{key}" for group in ("made", "paper", "pool") for key in ("slope", "mae")]
    sets = {(r["collection"], r["dataset"]) for r in ran if r["collection"] != "made"}
    return {
        "dose_sets": str(len(sets)),
        "dose_failed": _dose_failures([row for row in rows if "method" in row]),
        "dose_made": formatted(ours.get("made_slope"), ".2f"),
        "dose_paper": formatted(ours.get("paper_slope"), ".2f"),
        "dose_pool": formatted(ours.get("pool_slope"), ".2f"),
        "table_dose": markdown(slopes, {"method": ""} | dict.fromkeys(names, ".2f")),
    }


def _dose_levels(results: Results) -> str:
    """gammaGMM's mean estimate on separable data at each level, over the repeats."""
    found: dict[float, list[float]] = {}
    for repeat in range(results.plan["dose"]["repeats"]):
        trial = results.get("dose", "made", "separable", str(repeat))
        for answer in trial["answers"] if trial else []:
            found.setdefault(round(answer["truth"], 3), []).append(answer["shares"][OURS])
    rows = [{"truth": truth, "estimate": np.mean(shares)} for truth, shares in found.items()]
    return markdown(rows, {"truth": ".1%", "estimate": ".1%"})


def _dose_failures(rows: list[Row]) -> str:
    """The methods that failed at some or all levels, and on how many datasets."""
    failed = [row for row in rows if row["state"] != "ok"]
    names = dict.fromkeys(row["method"] for row in failed)
    counted = [f"{name} (sets: {sum(r['method'] == name for r in failed)})" for name in names]
    return ", ".join(counted) or "none"


def _pool(made: dict[str, list[Row]]) -> dict[str, str]:
    rows = [row for row in made["errors"] if row["collection"] == "pool" and "mae" in row]
    columns = {
        **{"method": "", "sets": "d", "mae": ".4f", "crps": ".4f", "coverage_90": ".0%"},
        **{"width_90": ".3f", "rank_correlation": ".2f"},
    }
    bins = {"collection": "", "bin": "", "rows": ",d", "probability": ".2f", "anomalies": ".2f"}
    ordered = sorted(rows, key=lambda row: row["mae"])
    return {
        "table_pool": markdown(ordered, columns),
        "table_reliability": markdown(made["reliability"], bins),
    }


def _labels(results: Results, made: dict[str, list[Row]]) -> dict[str, str]:
    rows = made["labels"]
    found = {(row["group"], row["labels"], row["method"]): row for row in rows}
    groups = list(dict.fromkeys(row["group"] for row in rows))
    bands = [words for words, _, _ in AUC_BANDS if words in groups]
    first = [name for name in groups if name not in bands]
    numbers = results.plan["labels"]["numbers"]
    named = {"group": "", "labels": "d", "tables": "d"}
    sample = {"spread": "", "random": "", "jeffreys": "", "ppi": "", FORMER: ""}
    exact = {"clopper_pearson": "", "exact_random": "", "exact_spread": ""}

    def table(of: list[str], methods: dict[str, str]) -> str:
        cells = [
            {"group": group, "labels": n, "tables": found[group, n, "spread"]["tables"]}
            | {method: _label_cell(found.get((group, n, method))) for method in methods}
            for group in of
            for n in numbers
            if (group, n, "spread") in found
        ]
        return markdown(cells, named | methods)

    return {
        "label_draws": str(results.plan["labels"]["draws"]),
        "label_tables": str(found["all tables", 30, "spread"]["tables"]),
        "table_labels": table(first, sample),
        "table_label_bands": table(bands, sample),
        "table_label_exact": table(first, exact),
        "table_label_former": markdown(
            _former_rows(results), {"group": "", "tables": "d", "ratio": ".2f", "difference": ""}
        ),
    }


def _learning(results: Results, made: dict[str, list[Row]]) -> dict[str, str]:
    settings = results.plan["learning"]
    finding, peers = settings["finding"], settings["peers"]
    curve = {
        **{"collection": "", "labels": "d", "tables": "d", "auc_consensus": ".3f", "auc": ".3f"},
        "auc_gain": "",
        **{"ap_consensus": ".3f", "ap": ".3f", "ap_ratio": ".2f", "ap_gain": "", "worse": ".1%"},
        "used": ".0%",
    }
    found = {
        **{"collection": "", "tables": "d", "possible": ".1f", "random": ".1f"},
        **{"consensus": ".1f", "learned": ".1f", "ratio": ".2f", "gain": "", "coverage_90": ".0%"},
        "width_90": ".3f",
    }
    others = {
        **{"collection": "", "method": "", "tables": "d", "auc": ".3f", "ap": ".3f"},
        **{"ap_ratio": ".2f", "worse": ".1%"},
    }
    curves = [
        row
        | {
            f"{name}_gain": _with_error(row, f"{name}_difference", f"{name}_error", ".3f")
            for name in ("auc", "ap")
        }
        for row in made["learning"]
    ]
    looks = [
        row | {"gain": _with_error(row, "difference", "error", ".1f")} for row in made["finding"]
    ]
    return {
        "learning_draws": str(settings["draws"]),
        "worse_auc": f"{WORSE:g}",
        "table_learning": markdown(curves, curve),
        "finding_looks": str(finding["looks"]),
        "finding_spread": str(finding["spread"]),
        "finding_step": str(finding["step"]),
        "finding_draws": str(finding["draws"]),
        "finding_rows": str(finding["min_rows"]),
        "table_finding": markdown(looks, found),
        "peer_labels": str(peers["labels"]),
        "peer_draws": str(peers["draws"]),
        "table_peers": markdown(made["peers"], others),
    }


def _with_error(row: Row, name: str, error: str, form: str) -> str:
    value = format(row[name], f"+{form}")
    return value if row[error] is None else f"{value} ± {row[error]:{form}}"


def _label_cell(row: Row | None) -> str:
    """CRPS, coverage and width in one cell."""
    if row is None:
        return ""
    crps = [f"{row['crps']:.4f}"] if "crps" in row else []
    return ", ".join([*crps, f"{row['coverage_90']:.0%}", f"{row['width_90']:.3f}"])


def _former_rows(results: Results) -> list[Row]:
    """CRPS at 30 labels beside that of the former curves, on the same rows of each table."""
    rows = []
    for group, found in label_groups(results).items():
        pairs = [
            (label_figures(each, "spread", 30)["crps"], each["former"]["crps"])
            for each in found
            if label_figures(each, "spread", 30) and each["former"]
        ]
        if not pairs:
            continue
        ours, former = np.array(pairs).T
        error = np.std(ours - former) / np.sqrt(len(pairs))
        difference = f"{np.mean(ours - former):+.4f} ± {error:.4f}"
        ratio = ours.mean() / former.mean()
        rows.append(
            {"group": group, "tables": len(pairs), "ratio": ratio, "difference": difference}
        )
    return rows


def _detectors(results: Results, made: dict[str, list[Row]]) -> dict[str, str]:
    """Our detectors beside PyOD's, and fitted on a share of the rows."""
    compared = [row for row in made["pyod_agreement"] if row.get("pyod_status") == "ok"]
    equal = [row for row in compared if row["rows_equal_to_the_bit"] == row["rows_fitted"]]
    other = [row for row in compared if row not in equal]
    differ = [
        f"{row['detector']} on {row['dataset']} (largest difference "
        f"{row['largest_difference']:.2g})"
        for row in other
    ]
    slow = [row for row in made["pyod_agreement"] if row.get("pyod_status", "ok") != "ok"]
    networks = []
    for network in dict.fromkeys(row["network"] for row in made["deep_agreement"]):
        ran = [r for r in made["deep_agreement"] if r["network"] == network and r["state"] == "ok"]
        row: Row = {"network": network, "sets": len(ran)}
        for key in ("ours_vs_pyod_seed_0", "pyod_scored_twice", "pyod_seed_0_vs_1"):
            row[key] = " to ".join(f"{f([r[key] for r in ran]):.3f}" for f in (min, max) if ran)
        row["times_faster"] = np.median([r["times_faster"] for r in ran]) if ran else None
        networks.append(row)
    agreement = dict.fromkeys(("ours_vs_pyod_seed_0", "pyod_scored_twice", "pyod_seed_0_vs_1"), "")
    shifts = {
        **{"dataset": "", "share_fitted": ".0%", "detector": "", "shift": ".4f"},
        **{"standard_error": ".4f", "spearman": ".4f"},
        **{"posterior_mean_exact": ".4f", "posterior_mean_subset": ".4f"},
    }
    return {
        "pyod_limit": str(results.plan["pyod_agreement"]["limit"]),
        "pyod_sets": str(len({row["dataset"] for row in compared})),
        "pyod_compared": str(len(compared)),
        "pyod_equal": str(len(equal)),
        "pyod_differ": ", ".join(differ) or "none",
        "pyod_slow": ", ".join(f"{r['detector']} on {r['dataset']}" for r in slow) or "none",
        "table_networks": markdown(
            networks, {"network": "", "sets": "d"} | agreement | {"times_faster": ".1f"}
        ),
        "subsample_subsets": str(results.plan["subsample"]["subsets"]),
        "table_subsample": markdown(made["subsample"], shifts),
    }


def markdown(rows: list[Row], columns: dict[str, str]) -> str:
    """A Markdown table with these columns and their formats; a missing value is a dash."""
    heads = [name.replace("_", "_<wbr>") for name in columns]  # long names may wrap
    lines = [heads, ["---"] * len(columns)]
    lines += [[formatted(row.get(name), form) for name, form in columns.items()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def formatted(value: Any, form: str) -> str:
    return "–" if value is None else format(value, form)


def mean_of(values: np.ndarray, form: str) -> str:
    return format(values.mean(), form) if len(values) else "–"


if __name__ == "__main__":
    plan = load_plan()
    publish(Results(small_plan(plan) if "--small" in sys.argv else plan))
