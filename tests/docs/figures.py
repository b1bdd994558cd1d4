"""The figures that the pages may quote, each from a committed file or from the code.

A figure has a path, which begins with its source:

- ``errors/paper/gammaGMM/mae``: a cell of a table in experiments/results/tables, by `KEYS`;
- ``track_record/record/all/n_tables``: a number in experiments/results/track_record.json;
- ``benchmarks/command/default_seconds``: a number in benchmarks/results; ``stress/kills/kills``;
- ``default/p0``: a default of `GammaGMM`; ``code/gammagmm.mixture.fit/START_ROWS``: a constant;
- ``version/pyod``: a pin in constraints.txt, or otherwise in constraints-neighbours.txt;
- ``minimum/pyod``: the lowest version that pyproject.toml allows;
- ``plan/sceptic/rows/0``: in experiments/plan.toml;
- ``made/dose/10``: what a function below computes, with its arguments.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from experiments.monitoring import SHARE, WORLDS
from pyod.models.knn import KNN
from pyod.models.lscp import LSCP

from gammagmm import GammaGMM
from gammagmm.datasets import load_demo
from gammagmm.detectors import presets
from gammagmm.monitoring.variation import MEASURED_ICC

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
# The columns that name a row of a table.
KEYS = {
    "differences": ["method"],
    "errors": ["collection", "method"],
    "f1": ["collection", "method"],
    "finding": ["collection"],
    "labels": ["group", "labels", "method"],
    "p_high_met": ["case"],
    "peers": ["collection", "method"],
    "seed_methods": ["case"],
    "settings": ["collection", "settings"],
}


@cache
def figure(path: str) -> Any:
    """The value that a path names."""
    name, *keys = path.split("/")
    if name == "made":
        return globals()[keys[0]](*keys[1:])
    found: Any
    if name == "code":
        found = importlib.import_module(keys.pop(0))
    elif name in ("benchmarks", "stress"):
        found = json.loads(read(f"{name}/results/{keys.pop(0)}.json"))
    else:
        found = source(name)
    for key in keys:
        if isinstance(found, list | tuple):
            found = found[int(key)]
        else:
            found = found[key] if isinstance(found, Mapping) else getattr(found, key)
    return found


def percent_of(*path: str) -> str:
    """A figure in percent without the sign, for the first of two figures with one sign."""
    return f"{100 * figure('/'.join(path)):.0f}"


def points(*path: str) -> str:
    """A width in percentage points."""
    return f"{100 * figure('/'.join(path)):.1f}"


@cache
def source(name: str) -> Mapping[str, Any]:
    """The figures of a source, nested by the parts of their paths."""
    if name in KEYS:
        found: dict[str, Any] = {}
        for row in rows(name):
            part = found
            for key in KEYS[name]:
                part = part.setdefault(str(row[key]), {})
            part.update(row)
        return found
    if name == "default":
        return {k: one.default for k, one in inspect.signature(GammaGMM).parameters.items()}
    if name == "plan":
        return tomllib.loads(read("experiments/plan.toml"))
    if name == "version":
        text = read("constraints-neighbours.txt") + read("constraints.txt")  # the last one counts
        pins = re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
        return {library.lower(): number for library, number in pins}
    if name == "minimum":
        minima = re.findall(r'"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)"', read("pyproject.toml"))
        return {library.lower(): number for library, number in minima}
    return json.loads(read(f"experiments/results/{name}.json"))


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def rows(table: str) -> list[dict[str, Any]]:
    """The rows of a table of the reproduction; cells without a value are left out."""
    with (RESULTS / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: _parsed(cell) for key, cell in row.items() if cell}
            for row in csv.DictReader(file)
        ]


def _parsed(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


@cache
def results(kind: str) -> dict[str, dict[str, Any]]:
    """The results of the trials of a kind that ended well, by the name of the trial."""
    lines = read(f"experiments/results/{kind}.jsonl").splitlines()
    found = (json.loads(line) for line in lines)
    return {one["trial"]: one for one in found if one["status"] == "ok"}


def over(values: Iterable[float], how: str) -> float:
    """The "min", "max", "mean" or a quantile, such as "0.05", of the values."""
    array = np.array(list(values))
    return float(np.quantile(array, float(how)) if how[0] == "0" else getattr(np, how)(array))


def length(*path: str) -> int:
    """The number of entries of another figure."""
    return len(figure("/".join(path)))


def python() -> str:
    return re.search(r'requires-python = ">=([\d.]+)"', read("pyproject.toml"))[1]


def demo(what: str) -> float:
    """Rows, anomalies or share of the demo data."""
    y = load_demo().y
    return {"rows": len(y), "anomalies": int(y.sum()), "share": float(y.mean())}[what]


def subspaces() -> int:
    """Subspaces in which PyOD's LSCP searches for the neighbours of a row."""
    return LSCP([KNN(), KNN()]).local_region_iterations


def exit_code(error: str) -> int:
    codes = figure("code/gammagmm.cli.main/EXIT_CODES")
    return {cls.__name__: code for cls, code in codes.items()}[error]


def table_2_error() -> float:
    """Mean absolute error of the estimates that the authors published, on the sets with seeds."""
    paper = {row["dataset"]: row["paper_mean"] for row in rows("datasets") if "paper_mean" in row}
    found = rows("seed_datasets")
    return over((abs(paper[row["dataset"]] - row["truth"]) for row in found), "mean")


def constant_error() -> float:
    """Mean absolute error of a constant 5 %, on the sets with seeds."""
    return over((abs(0.05 - row["truth"]) for row in rows("seed_datasets")), "mean")


def seed_runs() -> int:
    """The runs of all datasets with one seed."""
    return figure("default/n_runs") * figure("seed_methods/exact/sets")


def held(mass: str) -> float:
    """Share of the tables of the track record whose interval contains the true share."""
    levels = figure("track_record/record/all/levels")
    return next(level["held"] for level in levels if level["mass"] == float(mass))


def dose(percent: str) -> float:
    """Mean estimate on separable data with this percentage of anomalies."""
    answers = [a for name, r in results("dose").items() if "/made/" in name for a in r["answers"]]
    asked = [a for a in answers if abs(a["truth"] - float(percent) / 100.0) < 1e-3]
    return over((answer["shares"]["gammaGMM"] for answer in asked), "mean")


def slope(method: str, collection: str, column: str = "slope") -> float:
    """Mean slope of the estimates of a method over the injected share."""
    found = [row for row in rows("dose") if row.get("method") == method and column in row]
    return over((row[column] for row in found if row["collection"] == collection), "mean")


def best_slope(error: str) -> float:
    """Largest slope on real data of a method of PyThresh with a smaller mean error than this."""
    methods = {row["method"] for row in rows("dose") if "slope" in row} - {"gammaGMM"}
    return max(
        slope(method, name)
        for method in methods
        for name in ("paper", "pool")
        if slope(method, name, "mae") < float(error)
    )


def shift(detectors: str, how: str) -> float:
    """How much lower the rows in the sample of a detector score than the other rows."""
    found = [row for row in rows("subsample") if row["detector"] in detectors.split("+")]
    return over((-row["shift"] for row in found), how)


def moved_by_sample() -> float:
    """Largest change of the posterior mean by fitting detectors on a sample."""
    names = "posterior_mean_exact", "posterior_mean_subset"
    return max(abs(row[names[0]] - row[names[1]]) for row in rows("subsample"))


def subset(column: str, fitted: str, how: str) -> float:
    """LSCP fitted on fewer rows, or with another seed, beside LSCP fitted on all rows."""
    cases = [one for one in figure("benchmarks/subsets/rows") if one["detector"] == "LSCP"]
    whole = {one["dataset"]: one for one in cases if one["rows_fitted"] == "all rows"}
    found = [one for one in cases if one["rows_fitted"] == fitted]
    if column == "sets":
        return len(found)
    if column == "gain":
        name = "auc_consensus"
        return over((one[name] - whole[one["dataset"]][name] for one in found), how)
    return over((one[column] for one in found), how)


def network(column: str, how: str) -> float:
    """Rank correlations of our VAE with PyOD's."""
    found = [row for row in rows("deep_agreement") if row["network"] == "VAE"]
    if column == "margin":
        return over((r["ours_vs_pyod_seed_0"] - r["pyod_scored_twice"] for r in found), how)
    return over((row[column] for row in found), how)


def default_settings(column: str) -> float:
    """Mean over the datasets of the paper and of the pool, or their number."""
    kind = "exact" if column == "difference_between_seeds" else "default"
    sets = [figure(f"settings/{name}/{kind}/sets") for name in ("paper", "pool")]
    if column == "sets":
        return sum(sets)
    values = [figure(f"settings/{name}/{kind}/{column}") for name in ("paper", "pool")]
    return float(np.average(values, weights=sets))


def constant_beside_pool() -> float:
    """Error of a constant 5 % on the pool, divided by that of gammaGMM."""
    methods = "constant 5%", "gammaGMM"
    return float(np.divide(*(figure(f"errors/pool/{name}/mae") for name in methods)))


def fewer_iterations() -> float:
    """Iterations of the default settings, divided by those of the exact ones."""
    names = [f"settings/{name}/{{}}/iterations" for name in ("paper", "pool")]
    return float(
        np.divide(*(sum(figure(n.format(k)) for n in names) for k in ("default", "exact")))
    )


def new_rows(scale: str, what: str) -> float:
    """Of new rows: sets "far" from the estimate, the largest share "flagged", the mean "auc"."""
    found = [one for name, one in results("new_rows").items() if name.endswith(f"/{scale}")]
    of = [one["unclipped"] if scale == "none" else one for one in found]
    if what == "sets":
        return len(of)
    if what == "far":
        factors = [one["flagged"] / r["estimate"] for one, r in zip(of, found, strict=True)]
        return sum(not 0.5 <= factor <= 2.0 for factor in factors)
    return over((one[what] for one in of), "max" if what == "flagged" else "mean")


def most_false_alarms() -> float:
    """The largest share of series with a false alarm after learning where `alpha` is stated."""
    found = figure("monitoring/most_false_alarms")
    return max(own["later"] for world, own in found.items() if WORLDS[world][0] <= MEASURED_ICC)


def share_deviation(world: str) -> float:
    """Standard deviation of the shares of simulated periods, in percentage points."""
    (icc, at_weekends), share = WORLDS[world], SHARE
    by_day = np.where(np.arange(7) >= 5, at_weekends, 1.0) * share
    return 100.0 * np.sqrt(icc * share * (1.0 - share) + by_day.var())


def quiet_series(what: str) -> int:
    """Series of real and made tables, or those of them with an alarm, of both presets."""
    return sum(one[what] for one in figure("monitoring/quiet").values())


def labels_for_half() -> float:
    """How many times as many labels halve the width, by the widths of 30 and 100 labels."""
    few, many = (figure(f"labels/all tables/{n}/spread/width_90") for n in (30, 100))
    return round(2.0 ** (np.log(100 / 30) / np.log(few / many)))


def compiling() -> float:
    """Seconds that the first command on a machine takes longer."""
    found = figure("benchmarks/command")
    return found["first_time_seconds"] - found["default_seconds"]


def formula(name: str) -> float:
    """What follows from constants of the code."""
    costs = vars(presets).__getitem__
    return {
        "cells_of_lscp": int(costs("MOST_SECONDS") / costs("_CELL_SECONDS")),
        "error_of_5_percent": (0.05 * 0.95 / figure("default/max_rows")) ** 0.5,
        "error_of_1_percent": (0.01 * 0.99 / figure("default/max_rows")) ** 0.5,
    }[name]


def fit_rows(name: str, n_rows: str, n_columns: str) -> int:
    """Rows that a detector is fitted on with ``max_fit_rows="auto"``."""
    return presets.plan_rows([name], int(n_rows), int(n_columns), "auto").n_fit[name]
