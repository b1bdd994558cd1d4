"""A fit -> everything that a report shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from gammagmm._support.checks import as_generator
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.summary import FitSummary, summarise
from gammagmm.posterior.decisions import cost_cut, cut_off
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.runs import Run
from gammagmm.posterior.sensitivity import draw_runs, leave_one_out, relink
from gammagmm.readers.raw_table import numbered_names
from gammagmm.report.origin import Origin

__all__ = ["Cut", "Findings", "Standout", "feature_words", "find", "outstanding"]

Array = NDArray[np.float64]
Features = tuple[tuple[str, float, float], ...]
"""Name, value and robust z-score of each."""

N_STEPS = 300
"""Steps of the control over gamma, from 0 to `MAX_STEP` or beyond the interval."""
MAX_STEP = 0.30
MAX_NAME = 60
"""Most characters of a row's name that a report shows."""
MAX_RANKED = 5000
"""Most rows that are named in a report, the most anomalous first."""
MAX_SHOWN = 50
"""Most rows whose outstanding features are shown."""
MAX_INSPECTED = 30
"""Most rows that a report asks its reader to look at."""
MISS_COSTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""What a miss may cost, in false alarms."""


@dataclass(frozen=True)
class Cut:
    """What follows if the share of anomalies is `gamma`."""

    name: str
    gamma: float
    n_flagged: int
    threshold: float  # of the consensus
    thresholds: tuple[float, ...]  # each detector's, on its raw scale


@dataclass(frozen=True)
class Standout:
    """A row near the top of the ranking, and the features in which it stands out."""

    row: str
    score: float
    probability: float
    features: Features


@dataclass(frozen=True)
class Findings:
    """What a report shows."""

    summary: FitSummary
    origin: Origin
    cuts: tuple[Cut, ...]  # the mean and the ends of the 90 % interval
    steps: tuple[Cut, ...]  # the control over gamma
    costs: tuple[tuple[float, int], ...]  # cost of a miss in false alarms, rows then flagged
    ranked: tuple[str, ...]  # names of the rows, most anomalous first, `MAX_RANKED` at most
    agreement: dict[str, float]  # rank correlation of each detector with the consensus
    components: tuple[tuple[float, float], ...]  # share and P(anomalous), most anomalous first
    sensitivity: tuple[tuple[str, str, GammaPosterior], ...]  # what changed, to what, the answer
    standouts: tuple[Standout, ...]
    fitted: GammaPosterior | None  # the posterior before labels of single rows, if there are any
    n_known: int  # rows that have such a label
    n_found: int  # those of them that are anomalies
    to_inspect: tuple[tuple[str, str, Features], ...]  # number in the file, name, what stands out


def find(fit: Fit, X: Array | None = None, origin: Origin | None = None) -> Findings:
    """What a report shows of a fitted `GammaGMM`; `X` are its training rows, if at hand."""
    origin = origin or Origin()
    scores = fit.decision_scores
    names = _shown_names(origin, len(scores))
    order = np.argsort(-scores, kind="stable")
    probability = fit.probability
    columns = origin.columns or (fit.feature_names or None)
    features = outstanding(X, columns, order[:MAX_SHOWN])
    return Findings(
        summary=summarise(fit),
        origin=origin,
        cuts=_named_cuts(fit),
        steps=_steps(fit),
        costs=tuple((c, int((probability > cost_cut((1.0, c))).sum())) for c in MISS_COSTS),
        ranked=tuple(names[i] for i in order[:MAX_RANKED]),
        agreement=_agreement(fit),
        components=_components(fit.runs),
        sensitivity=tuple(_sensitivity(fit)),
        standouts=_standouts(fit, names, order[:MAX_SHOWN], probability, features),
        **_known(fit),
        to_inspect=_to_inspect(fit, X, columns, origin),
    )


def _known(fit: Fit) -> dict[str, Any]:
    known = fit.known_rows
    fitted = fit.fitted_posterior if len(known) else None
    return {"fitted": fitted, "n_known": len(known), "n_found": int(known.labels.sum())}


def _to_inspect(
    fit: Fit, X: Array | None, columns: Any, origin: Origin
) -> tuple[tuple[str, str, Features], ...]:
    """The rows whose labels would sharpen the answer, as many as a person looks at."""
    n = min(MAX_INSPECTED, len(fit.decision_scores) - len(fit.known_rows))
    if n < 1:
        return ()
    rows = fit.suggest(n, "random", as_generator(fit.plan.seed))
    names = _shown_names(origin, len(fit.decision_scores))
    features = outstanding(X, columns, rows)
    return tuple(
        (str(origin.row_number(row)), names[row], found)
        for row, found in zip(rows.tolist(), features, strict=True)
    )


def _shown_names(origin: Origin, n_rows: int) -> tuple[str, ...]:
    """Names of the rows, cut where they are long."""
    if origin.ids is None:
        return tuple(str(i) for i in range(1, n_rows + 1))
    return tuple(i if len(i) <= MAX_NAME else f"{i[:MAX_NAME]}…" for i in origin.ids)


def _named_cuts(fit: Fit) -> tuple[Cut, ...]:
    low, high = fit.posterior.interval()
    names = ("mean", "lower end", "upper end")
    return cuts_at(fit, np.array([fit.posterior.mean, low, high]), names)


def _steps(fit: Fit) -> tuple[Cut, ...]:
    end = max(
        MAX_STEP, fit.plan.constraints.max_gamma, np.ceil(20 * fit.posterior.interval()[1]) / 20
    )
    shares = np.linspace(0.0, min(end, 1.0), N_STEPS + 1).round(6)
    return cuts_at(fit, shares, ("",) * len(shares))


def cuts_at(fit: Fit, shares: Array, names: tuple[str, ...]) -> tuple[Cut, ...]:
    """The cuts at these `shares`, by the rule of ``labels_at``."""
    scores = fit.decision_scores
    thresholds, own = cut_off(scores, shares), cut_off(fit.scores, shares)
    # Strictly above: those that a search from the right leaves behind it.
    n_flagged = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")
    columns = zip(
        names, shares.tolist(), n_flagged.tolist(), thresholds.tolist(), own.tolist(), strict=True
    )
    return tuple(Cut(name, g, n, t, tuple(each)) for name, g, n, t, each in columns)


def _agreement(fit: Fit) -> dict[str, float]:
    """Spearman's correlation of each detector's scores with the consensus."""
    consensus = rankdata(fit.decision_scores)
    ranks = rankdata(fit.scores, axis=0)
    found = [float(np.corrcoef(column, consensus)[0, 1]) for column in ranks.T]
    return dict(zip(fit.detector_names, found, strict=True))


def _components(runs: tuple[Run, ...]) -> tuple[tuple[float, float], ...]:
    """Expected share and P(anomalous) of the first solved run's components."""
    run = next((run for run in runs if run.posterior), runs[0])
    shares = run.components.alpha / run.components.alpha.sum()
    p_anomalous = np.zeros(len(shares))
    if run.posterior is not None:
        # Component k is anomalous when at least k are.
        weights = run.posterior.betas.weights
        p_anomalous[: len(weights)] = np.cumsum(weights[::-1])[::-1]
    return tuple(zip(shares.tolist(), p_anomalous.tolist(), strict=True))


def _sensitivity(fit: Fit) -> list[tuple[str, str, GammaPosterior]]:
    """The answer with one thing changed: what the user held likely, a detector, or the start."""
    rng, default = as_generator(fit.plan.seed), fit.plan.constraints
    drawn = draw_runs(fit.runs, rng)
    found = []
    for name in ("p0", "p_high"):
        for value in (0.001, 0.05, 0.1):
            changed = replace(default, **{name: value})
            found.append((name, f"{value:.1%}", relink(drawn, changed)[0]))
    names = ["all, one run", *(f"without {name}" for name in fit.detector_names)]
    if len(fit.detector_names) > 2:
        posteriors = leave_one_out(fit.score_space, default, rng, fit.plan.n_jobs)
        found += [("detectors", n, p) for n, p in zip(names, posteriors, strict=True)]
    starts = [(i, run.posterior) for i, run in enumerate(fit.runs, start=1)]
    return found + [("start", f"run {i}", p) for i, p in starts if p is not None]


def _standouts(
    fit: Fit, names: tuple[str, ...], top: Any, probability: Array, features: list[Any]
) -> tuple[Standout, ...]:
    """The rows `top` with the features in which they stand out."""
    return tuple(
        Standout(names[i], float(fit.decision_scores[i]), float(probability[i]), found)
        for i, found in zip(top, features, strict=True)
    )


def feature_words(features: Features) -> str:
    """Features with their values and, in brackets, how far they stand out."""
    return "; ".join(f"{name} = {value:.4g} ({z:+.1f})" for name, value, z in features)


def outstanding(X: Array | None, columns: Any, top: Any) -> list[Features]:
    """For each row of `top` the three features farthest from their medians, in robust deviations.

    A deviation is the quartile range / 1.349, which is the standard deviation of a normal column;
    where that is 0, the standard deviation itself.
    """
    if X is None:
        return [()] * len(top)
    labels = numbered_names(X.shape[1]) if columns is None else columns
    quartiles = np.percentile(X, [25, 50, 75], axis=0)
    spread = (quartiles[2] - quartiles[0]) / 1.349
    spread = np.where(spread > 0.0, spread, X.std(axis=0))
    z = (X[top] - quartiles[1]) / np.where(spread > 0.0, spread, 1.0)
    found = []
    for i, deviations in zip(top, z, strict=True):
        most = np.argsort(-np.abs(deviations), kind="stable")[:3]
        found.append(tuple((str(labels[j]), float(X[i, j]), float(deviations[j])) for j in most))
    return found
