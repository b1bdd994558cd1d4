"""Trials of labels of single rows: error and coverage against the number of labels.

On each table of the track record, rows are labelled from the truth, and the share is estimated by
the method of `GammaGMM.update` and by others. The prior of the method is fitted to the other
tables and has the same part Beta(1, 1) as that of the package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
from scipy.stats import beta, norm

from experiments import data, metrics
from experiments.plan import HERE, Trial
from experiments.results import Result
from experiments.track_record import as_mixture, fit_reference
from gammagmm import GammaGMM, GammaPosterior
from gammagmm.detectors.fit import score_rows
from gammagmm.estimator.parameters import check_parameters
from gammagmm.estimator.rows import open_rows
from gammagmm.estimator.space import score_space, score_training_rows
from gammagmm.labels.exact_interval import exact_interval
from gammagmm.labels.labelled_rows import LabelledRows
from gammagmm.labels.labelled_share import LabelCounts, labelled_posterior
from gammagmm.labels.learned_ranking import Inputs
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.decisions import cut_off, is_anomaly
from gammagmm.posterior.track_record import UNIFORM_PART, with_uniform_part

MASS = 0.9
SAME_SOURCE = {
    "cardio": "cardiotocography",
    "thyroid": "annthyroid",
    **dict.fromkeys(("breastw", "wdbc"), "wbc"),
    **dict.fromkeys(("http", "smtp"), "kddcup"),
    "codesmellseverity": "codesmell",
    **dict.fromkeys(
        ("customerorderpriority", "ecommerceorderpriority", "superstoreorderpriority"),
        "salesorderpriority",
    ),
    **dict.fromkeys(
        (
            *("customercampaignoutcome", "customercontactoutcomes", "systemfailure"),
            *("systemfailuremonitoring", "telecommarketing", "usersystemactivity"),
        ),
        "campaignoutcome",
    ),
    "workovertimepatterns": "adultdemographics",
    "legaleducation": "barexamprediction",
    "stormbehavior": "hurricanetracks",
    "hospitalreadmissions": "diabetesspecialty",
}
"""Names of tables that were made from the same data under another name.

Those of OddBench were found by comparing the quantiles and the rare values of all columns of all
pairs of tables: calls of a bank, orders of a store, a census, law students, storms, patients.
"""
Figures = dict[str, float]


def labels(trial: Trial, plan: dict[str, Any]) -> Result:
    """Figures of each method at each number of labels, as means over the draws of the rows."""
    found = data.load(trial.collection, trial.dataset)
    consensus = default_consensus(found.X, plan["seed"])
    record = _records()[trial.collection, trial.dataset]
    predicted = is_anomaly(consensus, cut_off(consensus, record["figures"]["mean"]))
    prior = prior_without(trial.dataset)
    settings = plan["labels"]
    numbers = [n for n in settings["numbers"] if n <= len(found.y)]
    figures: dict[str, dict[str, list[Figures]]] = {}
    for draw in range(settings["draws"]):
        # Each table has its own draws, so that their errors are independent.
        rng = np.random.default_rng([plan["seed"], draw, crc32(str(trial).encode())])
        spread = LabelledRows(consensus).suggest(max(numbers), random_state=rng)
        random = rng.permutation(len(found.y))[: max(numbers)]
        for n in numbers:
            for method, own in _answers(found.y, predicted, spread[:n], random[:n], prior):
                figures.setdefault(method, {}).setdefault(str(n), []).append(own)
    return {
        "truth": found.gamma,
        "rows": len(found.y),
        "auc": metrics.ranking_auc(consensus, found.y),
        "draws": settings["draws"],
        "figures": {
            method: {n: _means(each) for n, each in by_number.items()}
            for method, by_number in figures.items()
        },
    }


def default_consensus(X: np.ndarray, seed: int) -> np.ndarray:
    """Consensus scores of the rows by a default fit, without its mixtures."""
    return default_inputs(X, seed).consensus


def default_inputs(X: np.ndarray, seed: int) -> Inputs:
    """Score space, consensus and columns of the rows by a default fit, without its mixtures."""
    return scored(X, seed)[0]


def scored(X: np.ndarray, seed: int) -> tuple[Inputs, Callable[[np.ndarray], Inputs]]:
    """The same, and the function that gives it for new rows."""
    estimator = GammaGMM(random_state=seed)
    plan = check_parameters(estimator.get_params(deep=False))
    rows = open_rows(X, estimator, plan)
    fitted, scaler, _ = score_training_rows(rows, plan)
    space, to_space = score_space(fitted.scores)

    def scaled(values: np.ndarray) -> np.ndarray:
        return values if scaler is None else scaler.transform(values)

    def of_new(new: np.ndarray) -> Inputs:
        columns = scaled(new)
        values = to_space.transform(score_rows(fitted.detectors, columns))
        return Inputs(values, values.mean(axis=1), columns)

    return Inputs(space.values, space.consensus, scaled(rows.values)), of_new


def reference_without(name: str) -> BetaMixture:
    """The reference, fitted to the tables that do not come from the same source as `name`."""
    tables = [
        (round(record["truth"] * record["rows"]), record["rows"])
        for (_, other), record in _records().items()
        if source_of(other) != source_of(name)
    ]
    k, n = np.array(tables).T
    return as_mixture(fit_reference(k, n))


def prior_without(name: str) -> BetaMixture:
    """The prior of labels if the tables of the same source as `name` are unknown."""
    return with_uniform_part(reference_without(name), UNIFORM_PART)


def source_of(name: str) -> str:
    """What a table was made from: "PenDigits_v10" and "pendigits" are the same data."""
    first = re.split(r"[_0-9]", name)[0].lower()
    return SAME_SOURCE.get(first, first)


@cache
def _records() -> dict[tuple[str, str], Result]:
    """The committed results of the track record by collection and name."""
    found = {}
    for line in (HERE / "results" / "record.jsonl").read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        trial = Trial.parse(result["trial"])
        if result["status"] == "ok":
            found[trial.collection, trial.dataset] = result
    return found


def _answers(
    y: np.ndarray, predicted: np.ndarray, spread: np.ndarray, random: np.ndarray, prior: BetaMixture
) -> Iterator[tuple[str, Figures]]:
    """Name and figures of each method; `spread` and `random` are the labelled rows."""
    truth, n_rows, n = float(y.mean()), len(y), len(spread)
    for name, rows in (("spread", spread), ("random", random)):
        n_found = int(y[rows].sum())
        posterior = labelled_posterior(LabelCounts(n_rows, n, n_found, 0, 0), prior)
        yield name, _posterior_figures(posterior, truth)
        low, high = exact_interval(n_rows, n, n_found, MASS)
        yield f"exact_{name}", _interval_figures(low / n_rows, high / n_rows, truth)
    n_found = int(y[random].sum())
    jeffreys = BetaMixture(*np.array([[1.0], [n_found + 0.5], [n - n_found + 0.5]]))
    yield "jeffreys", _posterior_figures(GammaPosterior(0.0, jeffreys), truth)
    yield "clopper_pearson", _interval_figures(*_clopper_pearson(n, n_found), truth)
    yield "ppi", _prediction_powered(y, predicted, random, truth)


def _clopper_pearson(n: int, n_found: int) -> tuple[float, float]:
    tail = 0.5 * (1.0 - MASS)
    low = beta.ppf(tail, n_found, n - n_found + 1) if n_found > 0 else 0.0
    high = beta.ppf(1.0 - tail, n_found + 1, n - n_found) if n_found < n else 1.0
    return float(low), float(high)


def _prediction_powered(
    y: np.ndarray, predicted: np.ndarray, rows: np.ndarray, truth: float
) -> Figures:
    """Prediction-powered inference with tuned power; the predictions are the fit's labels."""
    others = np.delete(predicted, rows)
    if not len(others):
        return _interval_figures(truth, truth, truth) | {"crps": 0.0}
    mean, error = ppi_mean(y[rows], predicted[rows], others)
    half = error * norm.ppf(0.5 + 0.5 * MASS)
    figures = _interval_figures(max(mean - half, 0.0), min(mean + half, 1.0), truth)
    return figures | {"crps": _normal_crps(mean, error, truth)}


def ppi_mean(y: np.ndarray, predicted: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Mean and standard error by PPI++ (Angelopoulos, Duchi, Zrnic 2023, Example 6.1).

    `predicted` are the predictions of the rows with labels `y`, and `others` those of the others.
    """
    n, n_others = len(y), len(others)
    variance = np.append(predicted, others).var(ddof=1)
    covariance = float(np.cov(y, predicted, ddof=0)[0, 1])
    power = np.clip(covariance / ((1.0 + n / n_others) * variance), 0.0, 1.0) if variance else 0.0
    rest = y - power * predicted
    error = np.sqrt(power**2 * others.var() / n_others + rest.var() / n)
    return float(power * others.mean() + rest.mean()), float(error)


def _normal_crps(mean: float, deviation: float, truth: float) -> float:
    if not deviation > 0.0:
        return abs(mean - truth)
    z = (truth - mean) / deviation
    inside = z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi)
    return float(deviation * inside)


def _posterior_figures(posterior: GammaPosterior, truth: float) -> Figures:
    figures = _interval_figures(*posterior.interval(MASS), truth)
    return figures | {"crps": metrics.crps(posterior, truth)}


def _interval_figures(low: float, high: float, truth: float) -> Figures:
    # The ends are shares of whole rows, as the truth is, up to rounding.
    return {"held": float(low - 1e-12 <= truth <= high + 1e-12), "width": high - low}


def _means(each: list[Figures]) -> Figures:
    return {name: float(np.mean([figures[name] for figures in each])) for name in each[0]}
