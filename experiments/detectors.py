"""Trials of the detectors: beside PyOD's own classes, and fitted on a subset of the rows."""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from experiments import data
from experiments.plan import EXACT, Trial
from experiments.results import Result
from gammagmm import GammaGMM
from gammagmm._support.processes import OutOfTimeError, run_alone
from gammagmm.detectors.fit import FitSettings, fit_detectors
from gammagmm.detectors.presets import (
    AUTO_FIT_ROWS,
    is_superlinear,
    plan_rows,
    resolve_detectors,
)
from gammagmm.mixture.score_space import fit_scaler

NETWORKS = ("AE", "VAE")
NETWORK_SEEDS = (0, 1)
WARM_UP_ROWS = 64


def pyod_agreement(trial: Trial, plan: dict[str, Any]) -> Result:
    """Each detector of the preset beside PyOD's own class with the same rows and seed.

    The networks are compared in `deep_agreement`; only their fits are recorded here. PyOD's seconds
    include the start of the process in which its detector runs.
    """
    settings, seed = plan["pyod_agreement"], plan["seed"]
    X = data.load(trial.collection, trial.dataset).X
    rows = plan_rows(settings["preset"], *X.shape, AUTO_FIT_ROWS)
    made, _ = resolve_detectors(settings["preset"], len(X), rows)
    fitted = fit_detectors(made, X, np.random.default_rng(seed), FitSettings(rows))
    scores = dict(zip(fitted.detectors, fitted.scores.T, strict=True))
    # The rows and seeds that `fit_detectors` draws.
    sample_rng, *children = np.random.default_rng(seed).spawn(1 + len(made))
    sample = all_rows = np.arange(len(X))
    if len(X) > AUTO_FIT_ROWS:
        sample = np.sort(sample_rng.choice(len(X), AUTO_FIT_ROWS, replace=False))
    seeds = [int(child.integers(2**31 - 1)) for child in children]
    found = []
    for info, detector_seed in zip(fitted.info, seeds, strict=True):
        row = {"detector": info.name, "status": info.status, "rows_fitted": info.n_rows}
        row["seconds"] = info.seconds
        if info.name not in NETWORKS and info.status == "ok":
            rows = sample if is_superlinear(made[info.name]) else all_rows
            ours = scores[info.name][rows]
            row |= _beside_pyod(info.name, ours, X[rows], detector_seed, settings["limit"])
        found.append(row)
    return {"rows": len(X), "features": X.shape[1], "detectors": found}


def _beside_pyod(name: str, ours: np.ndarray, X: np.ndarray, seed: int, limit: float) -> Result:
    """Differences between our scores of the rows X, on which both are fitted, and PyOD's."""
    start = time.perf_counter()
    try:
        theirs = run_alone(_pyod_scores, name, X, seed, timeout=limit)
    except OutOfTimeError:
        return {"pyod_status": f"longer than {limit:.0f} s"}
    difference = np.abs(ours - theirs)
    return {
        "pyod_status": "ok",
        "pyod_seconds": time.perf_counter() - start,
        "rows_equal_to_the_bit": int((ours == theirs).sum()),
        "largest_difference": float(difference.max()),
        "rows_beyond_1e-9": int((difference > 1e-9 * np.maximum(1.0, np.abs(theirs))).sum()),
    }


def _pyod_scores(name: str, X: np.ndarray, seed: int) -> np.ndarray:
    """Training scores of PyOD's own class at its defaults."""
    model = getattr(import_module(f"pyod.models.{name.lower()}"), name)
    if name == "LSCP":
        lof = import_module("pyod.models.lof").LOF
        lofs = [lof(n_neighbors=k) for k in (10, 20, 30, 40)]
        detector = model(lofs, n_bins=len(lofs), random_state=seed)
    else:
        detector = model(random_state=seed) if name in ("IForest", "LODA") else model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyOD's own; our classes avoid their causes
        return detector.fit(X).decision_scores_


def deep_agreement(trial: Trial, plan: dict[str, Any]) -> Result:
    """One of our networks beside PyOD's: rank correlations and processor time."""
    dataset = data.load(trial.collection, trial.dataset)
    # PyOD seeds every generator of its process.
    return run_alone(_compare_networks, trial.variant, dataset.X, dataset.y)


def _compare_networks(network: str, X: np.ndarray, y: np.ndarray) -> Result:
    """Figures of two seeds of either class; the seconds are the lesser of the two fits' times."""
    import torch
    from pyod.models import auto_encoder, vae

    from gammagmm.detectors import autoencoders

    torch.set_num_threads(1)
    classes = {
        "pyod": {"AE": auto_encoder.AutoEncoder, "VAE": vae.VAE}[network],
        "ours": getattr(autoencoders, network),
    }
    first, second = NETWORK_SEEDS
    for cls in classes.values():
        # The first fit of a process also loads and compiles.
        _timed_fit(cls, X[:WARM_UP_ROWS], first)
    # In turns, so that other work on the machine slows both.
    turns = [(side, seed) for seed in NETWORK_SEEDS for side in classes]
    fits = {(side, seed): _timed_fit(classes[side], X, seed) for side, seed in turns}
    scores = {turn: detector.decision_scores_ for turn, (detector, _) in fits.items()}
    seconds = {side: min(fits[side, seed][1] for seed in NETWORK_SEEDS) for side in classes}
    pairs = {
        "pyod_seed_0_vs_1": (scores["pyod", first], scores["pyod", second]),
        "ours_seed_0_vs_1": (scores["ours", first], scores["ours", second]),
        "pyod_scored_twice": (scores["pyod", first], fits["pyod", first][0].decision_function(X)),
        "ours_vs_pyod_seed_0": (scores["ours", first], scores["pyod", first]),
    }
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        **{name: float(spearmanr(*pair).statistic) for name, pair in pairs.items()},
        **{f"auc_{side}": float(roc_auc_score(y, scores[side, first])) for side in classes},
        **{f"seconds_{side}": seconds[side] for side in classes},
        "times_faster": seconds["pyod"] / seconds["ours"],
    }


def _timed_fit(cls: Any, X: np.ndarray, seed: int) -> tuple[Any, float]:
    """Fitted detector and seconds of processor time."""
    detector = cls(random_state=seed, verbose=0)
    start = time.process_time()
    detector.fit(X)
    return detector, time.process_time() - start


def subsample(trial: Trial, plan: dict[str, Any]) -> Result:
    """The effect of fitting slow detectors on a share of the rows (deviation D13).

    `shift` is the mean score of the fitted rows minus that of the other rows, in standard
    deviations of the score space, averaged over random subsets; `spearman` is the rank correlation
    with the scores of detectors fitted on all rows. The posterior means are those of the default
    preset.
    """
    settings = plan["subsample"]
    names, n_subsets = settings["detectors"], settings["subsets"]
    X = data.load(trial.collection, trial.dataset).X
    n_fitted = int(float(trial.variant) * len(X))
    exact, _ = _fit_subset(X, names, len(X), plan["seed"])
    shifts, ranks = [], []
    for seed in range(n_subsets):
        scores, is_fitted = _fit_subset(X, names, n_fitted, seed)
        space = fit_scaler(scores).transform(scores)
        shifts.append(space[is_fitted].mean(axis=0) - space[~is_fitted].mean(axis=0))
        ranks.append([spearmanr(*pair).statistic for pair in zip(scores.T, exact.T, strict=True)])
    error = np.std(shifts, axis=0, ddof=1) / np.sqrt(n_subsets)
    figures = {"shift": np.mean(shifts, axis=0), "standard_error": error}
    figures["spearman"] = np.mean(ranks, axis=0)
    return {
        "rows": len(X),
        "share_fitted": float(trial.variant),
        "detectors": [
            {"detector": name} | {key: float(values[j]) for key, values in figures.items()}
            for j, name in enumerate(names)
        ],
        "posterior_mean_exact": _posterior_mean(X, None, plan["seed"]),
        "posterior_mean_subset": _posterior_mean(X, n_fitted, plan["seed"]),
    }


def _fit_subset(
    X: np.ndarray, names: list[str], n_fitted: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, M) of detectors fitted on random rows, and whether each row is one of those."""
    rows = plan_rows(names, *X.shape, n_fitted)
    made, _ = resolve_detectors(names, len(X), rows)
    fitted = fit_detectors(made, X, np.random.default_rng(seed), FitSettings(rows))
    if list(fitted.detectors) != names:
        raise RuntimeError("; ".join(info.reason for info in fitted.info if info.reason))
    # The rows that `fit_detectors` draws.
    sample_rng = np.random.default_rng(seed).spawn(1 + len(names))[0]
    is_fitted = np.zeros(len(X), dtype=bool)
    is_fitted[sample_rng.choice(len(X), n_fitted, replace=False)] = True
    return fitted.scores, is_fitted


def _posterior_mean(X: np.ndarray, max_fit_rows: int | None, seed: int) -> float:
    made = GammaGMM(**EXACT, max_fit_rows=max_fit_rows, random_state=seed)
    return made.fit(X).posterior_.mean
