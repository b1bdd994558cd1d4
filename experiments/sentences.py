"""What default fits say about ten kinds of tables, without and with labels.

    python -m experiments.sentences

fits made tables and the first table by name of each collection of labelled real tables, which must
be in the folder that GAMMAGMM_DATA names. It writes results/sentences.json and, from it,
docs/explanations/sentences.md. Read the sentences aloud after each change of them.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from string import Template
from typing import Any

import numpy as np

from experiments import data
from experiments.made_tables import clean_table, sceptic_table
from experiments.plan import HERE, load_plan, record_tables
from experiments.results import RESULTS
from gammagmm import GammaGMM
from gammagmm._support.files import write_document
from gammagmm.errors import GammaGMMWarning

PAGE, PAGE_TEMPLATE = HERE.parent / "docs" / "explanations" / "sentences.md", HERE / "sentences.md"
FOUND = RESULTS / "sentences.json"
N_ROWS, N_LABELS = 1000, 30


def main() -> None:
    seed = load_plan()["seed"]
    found = [told(title, X, y, seed) for title, X, y in tables(seed)]
    write_document(json.dumps(found, indent=1, allow_nan=False) + "\n", FOUND, overwrite=True)
    write_document(page(found), PAGE, overwrite=True)


def tables(seed: int) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Title, rows and labels of each table."""
    rng, shape, none = np.random.default_rng(seed), (N_ROWS, 6), np.zeros(N_ROWS, dtype=int)
    made = [
        ("Normal columns", clean_table("normal", N_ROWS, seed), none),
        (
            "Columns with the t distribution with 2 degrees of freedom",
            rng.standard_t(2, shape),
            none,
        ),
        ("Lognormal columns", clean_table("lognormal", N_ROWS, seed), none),
        ("Columns of counts", clean_table("integers", N_ROWS, seed), none),
        ("Columns that are mostly zero", zero_inflated(rng, shape), none),
        ("A tight cluster of anomalies", *sceptic_table("cluster", 0.2, 1, N_ROWS, seed)),
        ("Anomalies on a shell around the rest", *sceptic_table("near", 0.1, 1, N_ROWS, seed)),
    ]
    first: dict[str, str] = {}
    for collection, name in sorted(record_tables(load_plan())):
        first.setdefault(collection, name)
    real = [(collection, name, data.load(collection, name)) for collection, name in first.items()]
    titles = {"oddbench": "OddBench", "pool": "the pool", "paper": "the paper's datasets"}
    return made + [(f"{name}, of {titles[own]}", rows.X, rows.y) for own, name, rows in real]


def zero_inflated(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Rows whose values are 0 with a probability of 90 %, and lognormal otherwise."""
    return np.where(rng.random(shape) < 0.9, 0.0, np.exp(rng.normal(size=shape)))


def told(title: str, X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """The lines of a fit without and with labels, its warnings and its numbers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GammaGMMWarning)
        fitted = GammaGMM(random_state=seed).fit(X)
    evidence, posterior = fitted.evidence_, fitted.posterior_
    group, means = evidence.separate_rows, evidence.means
    found = {
        "title": title,
        "truth": float(y.mean()),
        "n_rows": len(X),
        "n_flagged": int(fitted.labels_.sum()),
        "expected": float(fitted.fit_.probability.sum()),
        "mean": posterior.mean if posterior.has_estimate else None,
        "range": list(posterior.interval()),
        "means": None if np.isnan(means[0]) else list(means),
        "starts": [evidence.n_unsolved_starts, evidence.n_starts],
        "group": None if group is None else [group.n_rows, group.share],
        "warnings": sorted(
            {w.category.__name__ for w in caught if issubclass(w.category, GammaGMMWarning)}
        ),
        "lines": fitted.fit_.lines,
    }
    rows = fitted.suggest(N_LABELS, random_state=seed)
    labelled = fitted.fit_.update(rows, y[rows])
    return found | {
        "labelled": {
            "n_anomalies": int(y[rows].sum()),
            "n_flagged": labelled.n_flagged,
            "mean": labelled.posterior.mean,
            "interval": list(labelled.posterior.interval()),
            "lines": labelled.lines,
        }
    }


def page(found: list[dict[str, Any]]) -> str:
    """The text of docs/explanations/sentences.md."""
    template = Template(PAGE_TEMPLATE.read_text(encoding="utf-8"))
    told, sections = set[str](), []
    for each in found:
        lines = *each["lines"], *each["labelled"]["lines"]
        if not {*map(_form, lines)} <= told:
            sections.append(_section(each, told))
        told |= {*map(_form, lines)}
    return template.substitute(
        table=_table(found), sections="\n\n".join(sections), n_labels=N_LABELS
    )


def _table(found: list[dict[str, Any]]) -> str:
    """What the fits say in numbers, one line for each table."""
    header = (
        "table",
        "rows",
        "true share",
        "flagged rows",
        "model range",
        "separate rows",
        f"interval with {N_LABELS} labels",
    )
    lines = [header, ("---",) * len(header), *map(_cells, found)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(each: dict[str, Any]) -> tuple[str, ...]:
    group, has_range = each["group"], each["mean"] is not None
    return (
        each["title"],
        f"{each['n_rows']:,}",
        f"{each['truth']:.1%}",
        f"{each['n_flagged']:,}",
        _range(each["range"]) if has_range else "no solution",
        "none" if group is None else f"{group[1]:.1%}",
        _range(each["labelled"]["interval"]),
    )


def _range(ends: Sequence[float]) -> str:
    return f"{ends[0]:.1%} to {ends[1]:.1%}"


def _section(each: dict[str, Any], told: set[str]) -> str:
    """The sentences of a table, without those that were `told` before with other numbers."""
    named = ", ".join(f"`{name}`" for name in each["warnings"])
    parts = [f"## {each['title']}", f"The fit warns: {named}." if named else ""]
    for words, own in (("Without labels", each), (f"With {N_LABELS} labels", each["labelled"])):
        if quoted := _quoted(own["lines"], told):
            parts += [f"{words}:", quoted]
    return "\n\n".join(filter(None, parts))


def _quoted(lines: list[str], told: set[str]) -> str:
    numbered = enumerate(lines, start=1)
    return "\n".join(f"> {i}. {line}" for i, line in numbered if _form(line) not in told)


def _form(line: str) -> str:
    """The line without its numbers."""
    return re.sub(r"\d[\d.,]*", "0", line)


if __name__ == "__main__":
    main()
