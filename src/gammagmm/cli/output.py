"""A fit -> the texts that the command line writes: labels as CSV, the answer as JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gammagmm._support.text import one_line, percent, spreadsheet_safe
from gammagmm.estimator.fit_result import Fit
from gammagmm.estimator.summary import PACKAGES
from gammagmm.mixture.rows import count_threads
from gammagmm.posterior.sentences import sentence
from gammagmm.report.origin import Origin

__all__ = ["answer_json", "compare_posteriors", "comparison", "environment", "labels_csv"]

EXTRAS = {"torch": "deep", "tqdm": "deep", "pyarrow": "data", "dask": "dask", "arviz": "arviz"}


def labels_csv(fit: Fit, origin: Origin) -> str:
    """A line for each training row: id, consensus score, probability, label, detectors' scores."""
    consensus = fit.decision_scores
    probability = fit.probability
    ids = origin.ids or [str(i) for i in range(1, len(consensus) + 1)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f"score_{spreadsheet_safe(name)}" for name in fit.detector_names]
    writer.writerow(["id", "score", "probability", "label", *names])
    answers = zip(
        map(spreadsheet_safe, ids),
        consensus.tolist(),
        np.asarray(probability).tolist(),
        fit.labels.tolist(),
        fit.scores.tolist(),
        strict=True,
    )
    writer.writerows([name, s, p, label, *own] for name, s, p, label, own in answers)
    return text.getvalue()


def answer_json(fit: Fit, origin: Origin) -> str:
    """The answer as JSON; what does not exist is null."""
    posterior = {
        name: None if value != value else value for name, value in fit.posterior.summary().items()
    }
    flagged, (n_rows, n_flagged) = _flagged(fit), (fit.n_rows, fit.n_flagged)
    data = {
        "source": origin.name,
        "posterior": posterior,
        "inspected": _inspected(fit),
        "n_rows": n_rows,
        "n_flagged": n_flagged,
        "threshold": fit.threshold,
        "flagged_rows": None if flagged is None else [origin.row_number(i) for i in flagged],
        "flagged_ids": None if origin.ids is None else [origin.ids[i] for i in flagged or ()],
        "truth": _truth(fit, origin),
        "detectors": [_detector(info, fit) for info in fit.detector_info],
        "notes": [vars(note) for note in [*origin.notes, *fit.notes]],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _flagged(fit: Fit) -> list[int] | None:
    """Places of the rows with the label 1, where the rows are in memory."""
    labels = fit.labels
    return labels.nonzero()[0].tolist() if isinstance(labels, np.ndarray) else None


def _inspected(fit: Fit) -> dict[str, Any] | None:
    """How many rows a person has labelled, and what the answer was before."""
    known, fitted = fit.known_rows, fit.fitted_posterior
    if not len(known):
        return None
    return {
        "n_rows": len(known),
        "n_anomalies": int(known.labels.sum()),
        "mean_before": fitted.mean,
        "interval_90_before": list(fitted.interval()),
    }


def _detector(info: Any, fit: Fit) -> dict[str, Any]:
    return {
        "name": info.name,
        "status": info.status,
        "reason": info.reason,
        "rows_fitted": info.n_rows,
        "seconds": info.seconds,
        "threshold": fit.thresholds.get(info.name),
    }


def _truth(fit: Fit, origin: Origin) -> dict[str, Any] | None:
    """How the answer compares with labels that the method did not see."""
    if origin.truth is None:
        return None
    labels, truth = fit.labels, origin.truth
    low, high = fit.posterior.interval()
    share = float(truth.mean())
    return {
        "share": share,
        "inside_interval": bool(low <= share <= high),
        "hits": int((labels & truth).sum()),
        "false_alarms": int((labels & (1 - truth)).sum()),
        "misses": int(((1 - labels) & truth).sum()),
    }


def compare_posteriors(first: Any, second: Any) -> dict[str, Any]:
    """How likely the share of the second exceeds that of the first, the two being independent.

    P(B > A) is the integral of P(B > x) over the distribution of A, its atom at 0 included.
    """
    exceeds = _probability_above(second, first)
    equal = float(first.prob_zero * second.prob_zero)
    return {
        "no_answer_a": first.is_degenerate,
        "no_answer_b": second.is_degenerate,
        "mean_a": first.mean,
        "mean_b": second.mean,
        "prob_b_above_a": exceeds,
        "prob_a_above_b": max(0.0, 1.0 - equal - exceeds),
        "prob_equal": equal,
    }


def comparison(names: tuple[str, str], pair: list[Any]) -> str:
    """Two posteriors in words: each one's sentence, and how likely the second exceeds the first."""
    found = compare_posteriors(*pair)
    lines = [
        f"{letter}  {one_line(name)}: {sentence(posterior)}"
        for letter, name, posterior in zip("AB", names, pair, strict=True)
    ]
    if pair[0].is_degenerate or pair[1].is_degenerate:
        return "\n".join([*lines, "There is nothing to compare: one of them is no answer."])
    lines.append(
        f"The share in B exceeds that in A with probability {percent(found['prob_b_above_a'])}; "
        f"it is lower with probability {percent(found['prob_a_above_b'])}."
    )
    return "\n".join(lines)


def environment() -> dict[str, str]:
    """Versions, extras, threads and GPU, as words."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in (*PACKAGES, *EXTRAS):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            extra = EXTRAS.get(package)
            found[package] = f"not installed (pip install 'gammagmm[{extra}]')" if extra else "–"
    found["cores"] = str(os.cpu_count())
    found["threads"] = str(count_threads())
    found["GPU"] = _gpu()
    return found


def _gpu() -> str:
    try:
        import torch
    except ModuleNotFoundError:
        return "unknown without PyTorch"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"


def _probability_above(upper: Any, lower: Any) -> float:
    """P(upper > lower): the atom of `lower`, and its density by the trapezoid rule."""
    if upper.is_degenerate:
        return 0.0
    at_zero = float(lower.prob_zero * upper.prob_above(0.0))
    if lower.is_degenerate:
        return at_zero
    edges = np.unique(np.concatenate([lower.betas.grid(), upper.betas.grid(), [0.0, 1.0]]))
    mass, survival = np.diff(lower.cdf(edges)), upper.sf(edges)
    return float(at_zero + mass @ (0.5 * (survival[1:] + survival[:-1])))
