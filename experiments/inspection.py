"""Trials of labels of single rows: the error against the number of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from experiments import metrics
from experiments.plan import EXACT
from experiments.results import Result
from gammagmm import GammaGMM, GammaPosterior
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.labelled_posterior import (
    Belief,
    CurvePrior,
    GammaPrior,
    count_labels,
    labelled_posterior,
    prior_belief,
    rank_cells,
)
from gammagmm.inspection.suggestions import suggest_rows

Choose = Callable[[Belief, np.ndarray, int, np.random.Generator], np.ndarray]

# Separation of two normal scores with an area under the curve of 1, 0.9 and 0.5.
SEPARATIONS = {"perfect": 20.0, "good": 1.8124, "useless": 0.0}


def on_scores(
    consensus: np.ndarray, y: np.ndarray, fitted: GammaPosterior, variant: str, plan: dict[str, Any]
) -> Result:
    """Figures of the posterior at each of the plan's numbers of labels, for each repeat."""
    variant, _, part = variant.partition("-")
    settings = plan["inspection"][part] if part else plan["inspection"]
    belief = start(consensus, fitted, variant)
    repeats = []
    for repeat in range(settings["repeats"]):
        rng = np.random.default_rng([plan["seed"], repeat])
        beliefs = sharpen(belief, y, settings["labels"], CHOICES[variant], rng)
        repeats.append([_figures(n, labelled_posterior(b), y.mean()) for n, b in beliefs])
    return {"fitted": _figures(0, fitted, y.mean()), "repeats": repeats}


def start(consensus: np.ndarray, fitted: GammaPosterior, variant: str) -> Belief:
    """The belief without labels; the belief of "plain" makes no use of the ranking."""
    prior = GammaPrior(fitted, GammaGMM().trust)
    curve_prior = CurvePrior(p_flat=1.0, label_weight=1.0) if variant == "plain" else None
    return prior_belief(rank_cells(consensus), prior, curve_prior)


def sharpen(
    belief: Belief,
    y: np.ndarray,
    stops: list[int],
    choose: Choose,
    rng: np.random.Generator,
) -> Iterator[tuple[int, Belief]]:
    """The belief at each number of labels; when all chosen rows are labelled, more are chosen."""
    known, start = KnownRows.none(), belief
    order = np.argsort(belief.cells.of_row, kind="stable")  # highest score first
    stops = [n for n in stops if n <= len(y)]
    waiting = np.empty(0, dtype=int)
    for n in range(max(stops) + 1):
        if n in stops:
            yield n, belief
        if n == max(stops):
            return
        if not len(waiting):
            unknown = order[~np.isin(order, known.rows)]
            waiting = choose(belief, unknown, max(stops) - n, rng)
        known = known.add(waiting[:1], y[waiting[:1]], at_random=True, n_rows=len(y))
        waiting = waiting[1:]
        if n + 1 in stops or not len(waiting):
            belief = start.given(count_labels(belief.cells, known))


def _spread(belief: Belief, unknown: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return suggest_rows(belief, unknown, n, "random", rng)


def _adaptively(
    belief: Belief, unknown: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Three rows at a time, about as in the terminal; ten at a time from 30 labels on."""
    n_known = int(belief.labels.known.sum())
    return suggest_rows(belief, unknown, min(n, 3 if n_known < 30 else 10), "adaptive", rng)


def _plainly(belief: Belief, unknown: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(unknown, n, replace=False)


CHOICES: dict[str, Choose] = {
    "random": _spread,
    "adaptive": _adaptively,
    "plain": _plainly,
}


def on_made(ranking: str, gamma: float, variant: str, plan: dict[str, Any]) -> Result:
    """Coverage and width on synthetic rankings with this share of anomalies, over many repeats."""
    settings = plan["inspection"]["made"]
    n_rows, stops = settings["rows"], settings["labels"]
    rng = np.random.default_rng([plan["seed"], round(1000 * gamma)])
    fitted = _fit_made(ranking, gamma, n_rows, rng)
    ranks = np.arange(n_rows)
    belief = start(-ranks.astype(float), fitted, variant)
    low, high = labelled_posterior(belief).interval()
    repeats = []
    for _ in range(settings["repeats"]):
        y = _made_ranks(ranking, gamma, n_rows, rng)
        *_, (n, after) = sharpen(belief, y, stops, CHOICES[variant], rng)
        repeats.append(_interval_figures(n, labelled_posterior(after), y.mean()))
    return {"truth": gamma, "prior_width": high - low, "repeats": repeats}


def _made_ranks(ranking: str, gamma: float, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Labels in the order of a score that separates the anomalies as well as `ranking` says."""
    y = (np.arange(n_rows) < round(gamma * n_rows)).astype(int)
    scores = rng.normal(size=n_rows) + SEPARATIONS[ranking] * y
    return y[np.argsort(-scores, kind="stable")]


def _fit_made(ranking: str, gamma: float, n_rows: int, rng: np.random.Generator) -> GammaPosterior:
    """The posterior of gammaGMM from ten noisy copies of such a score."""
    is_anomaly = np.arange(n_rows) < round(gamma * n_rows)
    score = rng.normal(size=n_rows) + SEPARATIONS[ranking] * is_anomaly
    # Skewed, like the scores of detectors.
    S = np.exp(0.5 * score[:, None] + 0.3 * rng.normal(size=(n_rows, 10)))
    fit = GammaGMM("precomputed", **EXACT, n_runs=2, random_state=rng)
    return fit.fit(S).posterior_


def _figures(n: int, posterior: GammaPosterior, truth: float) -> Result:
    return _interval_figures(n, posterior, truth) | {"crps": metrics.crps(posterior, truth)}


def _interval_figures(n: int, posterior: GammaPosterior, truth: float) -> Result:
    low, high = posterior.interval()
    return {
        "n": n,
        "error": abs(posterior.mean - truth),
        "covers": bool(low <= truth <= high),
        "width": high - low,
    }
