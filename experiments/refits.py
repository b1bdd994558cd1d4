"""Scores -> the fits and estimates that several kinds of trials share."""

from __future__ import annotations

import inspect
import os
import warnings
from importlib import import_module
from typing import Any

import numpy as np

from experiments import metrics
from experiments.plan import EXACT
from experiments.results import Result
from gammagmm import GammaGMM
from gammagmm.detectors.usable import LOG_OFFSET

DEVICE = os.environ.get("GAMMAGMM_DEVICE")


def estimator(plan: dict[str, Any], seed: int | None = None) -> GammaGMM:
    """gammaGMM as the paper has it, with this seed or the plan's, for precomputed scores.

    GAMMAGMM_DEVICE=cuda fits the mixtures on a GPU.
    """
    random_state = plan["seed"] if seed is None else seed
    return GammaGMM("precomputed", **EXACT, random_state=random_state, device=DEVICE)


def fit_figures(fitted: GammaGMM, truth: float) -> Result:
    return {
        "backend": "numpy" if fitted.device is None else "torch",
        "figures": metrics.posterior_figures(fitted.posterior_, truth),
        "standard_error": fitted.posterior_.standard_error,
        "between_runs": fitted.posterior_.between_runs,
        "statuses": [run.status for run in fitted.fit_.runs],
        "restarts": [run.n_restarts for run in fitted.fit_.runs],
        "iterations": [run.n_iter for run in fitted.fit_.runs],
        "converged": [run.converged for run in fitted.fit_.runs],
        "reached": [run.reached for run in fitted.fit_.runs],
    }


def refit(S: np.ndarray, truth: float, plan: dict[str, Any], seed: int | None = None) -> Result:
    """Figures of a fit within the plan's budget: rows drawn at random, and restarts."""
    budget = plan["refits"]
    if len(S) > budget["max_rows"]:
        rng = np.random.default_rng(plan["seed"])
        S = S[np.sort(rng.choice(len(S), budget["max_rows"], replace=False))]
    fitted = estimator(plan, seed).set_params(max_restarts=budget["max_restarts"]).fit(S)
    return {"rows_fitted": len(S), **fit_figures(fitted, truth)}


def before_log(S: np.ndarray) -> np.ndarray:
    """Scores whose log(s - min + 0.01) is the given scores, standardised and shifted."""
    return LOG_OFFSET * np.exp((S - S.min(axis=0)) / S.std(axis=0))


def thresholder_shares(name: str, Z: np.ndarray, joint: bool, seed: int) -> list[float]:
    """Share of rows that PyThresh's `name` flags for each column of `Z` (n, M), or for all."""
    cls = getattr(import_module(f"pythresh.thresholds.{name.lower()}"), name)
    seeded = {"random_state": seed} if "random_state" in inspect.signature(cls).parameters else {}
    columns = [Z] if joint else [column.copy() for column in Z.T]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyThresh's own: division by zero, deprecations
        return [float(np.mean(cls(**seeded).eval(scores))) for scores in columns]
