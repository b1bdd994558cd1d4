"""The part Beta(1, 1) of the prior of labels: coverage of the interval with and without it.

    python -m experiments.label_prior

writes results/label_prior.json and docs/explanations/label-coverage.md. Nothing is simulated: the
number of anomalies among rows that are drawn at random has a hypergeometric distribution, so every
figure is a sum over its values.
"""

from __future__ import annotations

import json
from string import Template
from typing import Any

import numpy as np
from scipy.stats import betabinom, hypergeom

from experiments.labels import reference_without, source_of
from experiments.plan import HERE
from experiments.results import RESULTS
from experiments.track_record import PAGE, as_mixture, fit_reference, read_results
from gammagmm import GammaPosterior
from gammagmm._support.files import write_document
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.track_record import UNIFORM_PART, load_reference, with_uniform_part

N_LABELS, N_ROWS, MASS = 30, 10_000, 0.9
SHARES = (0.0, 0.0003, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
PRIORS = {"former": 0.0, "5 %": 0.05, "7.5 %": 0.075, "10 %": 0.1}
"""Weights of Beta(1, 1). The interval of "former" leaves 5 % on either side in every case."""
COLLECTIONS = {"oddbench": ("oddbench",), "classical": ("pool", "paper")}
FILE = RESULTS / "label_prior.json"
TEMPLATE = HERE / "label-coverage.md"
UNLIKELY = 1e-9

Array = np.ndarray


def main() -> None:
    found = {name: figures(name) for name in PRIORS}
    write_document(json.dumps(found, indent=1) + "\n", FILE, overwrite=True)
    write_document(page(found), PAGE.with_name(TEMPLATE.name), overwrite=True)


def figures(name: str) -> dict[str, Any]:
    """Coverage by share and over the reference, and over tables that the prior does not know."""
    tables = {
        group: [
            (
                trial.collection,
                trial.dataset,
                round(result["truth"] * result["rows"]),
                result["rows"],
            )
            for trial, result in read_results("record").items()
            if trial.collection in collections
        ]
        for group, collections in COLLECTIONS.items()
    }
    sources = {source_of(dataset): dataset for own in tables.values() for _, dataset, *_ in own}
    without_source = {source: reference_without(name) for source, name in sources.items()}
    found = by_share(name)
    for group, own in tables.items():
        others = np.array(
            [row[2:] for other, rows in tables.items() if other != group for row in rows]
        )
        without_group = as_mixture(fit_reference(*others.T))
        found[group] = {
            "n_tables": len(own),
            "source_left_out": over_tables(
                name, [(without_source[source_of(row[1])], *row[2:]) for row in own]
            ),
            "collection_left_out": over_tables(name, [(without_group, *row[2:]) for row in own]),
        }
    return found


def by_share(name: str) -> dict[str, Any]:
    """Coverage and mean width of the interval of `N_LABELS` labels of `N_ROWS` rows."""
    reference = load_reference()
    posteriors = [_posterior(name, reference, N_ROWS, k) for k in range(N_LABELS + 1)]
    ends = np.array([interval(name, posterior) for posterior in posteriors])
    covers, widths = coverage(ends, np.arange(N_ROWS + 1), N_ROWS)
    likely = sum(
        weight * betabinom.pmf(np.arange(N_ROWS + 1), N_ROWS, a, b)
        for weight, a, b in zip(reference.weights, reference.a, reference.b, strict=True)
    )
    up_to_half = covers[: N_ROWS // 2 + 1]
    return {
        "by_share": {f"{share:g}": float(covers[round(share * N_ROWS)]) for share in SHARES},
        "least": float(up_to_half.min()),
        "least_at": float(up_to_half.argmin() / N_ROWS),
        "held": float(likely @ covers),
        "width": float(likely @ widths),
    }


def over_tables(name: str, tables: list[tuple[BetaMixture, int, int]]) -> dict[str, float]:
    """Mean coverage, width and CRPS over tables (reference, number of anomalies, of rows)."""
    found = np.array([_of_table(name, *table) for table in tables]).mean(axis=0)
    return dict(zip(("held", "width", "crps"), found.tolist(), strict=True))


def _of_table(name: str, reference: BetaMixture, total: int, n_rows: int) -> Array:
    """The same for one table, over all samples of `N_LABELS` of its rows."""
    p_found = hypergeom.pmf(np.arange(N_LABELS + 1), n_rows, total, N_LABELS)
    shares, sums = np.arange(n_rows + 1) / n_rows, np.zeros(3)
    for k in np.flatnonzero(p_found > UNLIKELY):
        posterior = _posterior(name, reference, n_rows, int(k))
        low, high = interval(name, posterior)
        is_inside = low - 1e-12 <= total / n_rows <= high + 1e-12
        error = posterior.cdf(shares) - (shares >= total / n_rows)
        sums += p_found[k] * np.array([is_inside, high - low, (error**2).sum() / n_rows])
    return sums


def _posterior(name: str, reference: BetaMixture, n_rows: int, n_found: int) -> GammaPosterior:
    counts = LabelCounts(n_rows, N_LABELS, n_found, 0, 0)
    weight = PRIORS[name]
    prior = reference if weight == 0.0 else with_uniform_part(reference, weight)
    return labelled_posterior(counts, prior)


def interval(name: str, posterior: GammaPosterior) -> tuple[float, float]:
    """The interval of the posterior; the former one leaves the same probability on both sides."""
    if name != "former":
        return posterior.interval(MASS)
    low, high = posterior.ppf([0.5 * (1.0 - MASS), 0.5 * (1.0 + MASS)]).tolist()
    return low, high


def coverage(ends: Array, totals: Array, n_rows: int) -> tuple[Array, Array]:
    """P(the interval has the share), and its mean width, for each total number of anomalies.

    `ends` (n + 1, 2) are those of the interval after 0, ..., n anomalies among n random rows.
    """
    n = len(ends) - 1
    p_found = hypergeom.pmf(np.arange(n + 1), n_rows, totals[:, None], n)
    shares = totals[:, None] / n_rows
    is_inside = (ends[:, 0] - 1e-12 <= shares) & (shares <= ends[:, 1] + 1e-12)
    return (p_found * is_inside).sum(axis=1), p_found @ (ends[:, 1] - ends[:, 0])


def page(found: dict[str, Any]) -> str:
    """The page with its tables."""
    names = list(found)
    lines = [f"| share | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    for share in SHARES:
        cells = [f"{found[name]['by_share'][f'{share:g}']:.3f}" for name in names]
        lines.append(f"| {100 * share:g} % | {' | '.join(cells)} |")
    rows = {
        "least from 0 to 50 %": lambda own: (
            f"{own['least']:.3f} (at {100 * own['least_at']:.1f} %)"
        ),
        "mean over the reference": lambda own: f"{own['held']:.3f}",
        "mean width": lambda own: f"{own['width']:.4f}",
    }
    lines += [
        f"| {row} | {' | '.join(cell(found[n]) for n in names)} |" for row, cell in rows.items()
    ]
    left_out = [
        f"| held out | collection | tables | {' | '.join(names)} |",
        "| --- | --- | --- |" + " --- |" * len(names),
    ]
    for key, what in (
        ("source_left_out", "the table and its other versions"),
        ("collection_left_out", "the collection"),
    ):
        for group in COLLECTIONS:
            cells = [_figures_text(found[name][group][key]) for name in names]
            n_tables = found[names[0]][group]["n_tables"]
            left_out.append(f"| {what} | {group} | {n_tables} | {' | '.join(cells)} |")
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        n_labels=N_LABELS,
        n_rows=f"{N_ROWS:,}",
        weight=f"{100 * UNIFORM_PART:g}",
        by_share="\n".join(lines),
        left_out="\n".join(left_out),
    )


def _figures_text(own: dict[str, float]) -> str:
    return f"{own['crps']:.4f}, {own['held']:.3f}, {own['width']:.3f}"


if __name__ == "__main__":
    main()
