"""Trials of new rows: columns in other units, fitted on half of the rows, the rest flagged."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import data, metrics
from experiments.plan import Trial
from experiments.results import Result
from gammagmm import GammaGMM
from gammagmm.detectors.fit import score_rows
from gammagmm.detectors.usable import LOG_OFFSET
from gammagmm.mixture.score_space import ScoreScaler


def new_rows(trial: Trial, plan: dict[str, Any]) -> Result:
    """Share of new rows that are flagged, beside the estimate, and the area under their ROC curve.

    The variant is the parameter `scale`. The columns are multiplied by random powers of ten. The
    figures are those of `predict`, and `unclipped` those of scores without the upper limit.
    """
    settings = plan["new_rows"]
    dataset = data.load(trial.collection, trial.dataset)
    rng = np.random.default_rng(plan["seed"])
    rows = rng.permutation(len(dataset.X))[: settings["max_rows"]]
    units = 10.0 ** rng.uniform(*settings["exponents"], size=dataset.X.shape[1])
    X, y = dataset.X[rows] * units, dataset.y[rows]
    half = len(rows) // 2
    fitted = GammaGMM(
        scale=None if trial.variant == "none" else trial.variant,
        n_runs=settings["runs"],
        random_state=plan["seed"],
    ).fit(X[:half])
    new, scaler = X[half:], fitted.fit_.column_scaler
    raw = score_rows(fitted.detectors_, new if scaler is None else scaler.transform(new))
    unclipped = unclipped_consensus(raw, fitted.fit_.scaler)
    return {
        "truth": float(y.mean()),
        "rows": half,
        "new_rows": len(new),
        "estimate": float(fitted.contamination_),
        "detectors": fitted.fit_.detector_names,
        **_figures(fitted.decision_function(new), fitted.threshold_, y[half:]),
        "unclipped": _figures(unclipped, fitted.threshold_, y[half:]),
    }


def unclipped_consensus(raw: np.ndarray, scaler: ScoreScaler) -> np.ndarray:
    """Consensus of new rows whose scores may lie above those of the training rows."""
    logs = np.log(np.maximum(raw - scaler.minimum, 0.0) + LOG_OFFSET)
    return ((logs - scaler.mean) / scaler.deviation).mean(axis=1)


def _figures(consensus: np.ndarray, threshold: float, y: np.ndarray) -> Result:
    """Share above the threshold, and area under the ROC curve."""
    share = float((consensus > threshold).mean())
    return {"flagged": share, "auc": metrics.ranking_auc(consensus, y)}
