"""The quality of an estimate, given the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from sklearn.metrics import roc_auc_score

from gammagmm import GammaPosterior
from gammagmm.posterior.beta_binomials import BetaBinomialMixture
from gammagmm.posterior.betas import BetaMixture
from gammagmm.posterior.decisions import cut_off, is_anomaly

N_GRID = 1001
N_SIMULATIONS = 2000
BINS = np.linspace(0.0, 1.0, 11)
LEVELS = np.arange(1, 100) / 100  # 2 v of the paper's calibration plot


def posterior_figures(posterior: GammaPosterior, truth: float) -> dict:
    """Point, interval and probabilistic quality of a posterior.

    `needed` is the mass of the smallest central interval that contains the truth,
    2 |F(truth) - 1/2|; over datasets it is uniform if the posterior is calibrated.
    """
    low, high = posterior.interval()
    cdf = float(posterior.cdf(truth))
    return {
        "mean": posterior.mean,
        "median": posterior.median,
        "std": posterior.std,
        "low": low,
        "high": high,
        "modes": posterior.modes().tolist(),
        "cdf_at_truth": cdf,
        "needed": abs(2.0 * cdf - 1.0),
        "covers": bool(low <= truth <= high),
        "crps": crps(posterior, truth),
    }


def crps(posterior: GammaPosterior, truth: float) -> float:
    """Continuous ranked probability score, the integral of (F(x) - [x >= truth])^2 over [0, 1]."""
    if isinstance(posterior.betas, BetaBinomialMixture):
        # F is constant between the shares of whole rows, and the truth is one of those.
        n_rows = posterior.betas.n_rows
        rows = np.arange(n_rows)
        cdf = posterior.cdf(rows / n_rows)
        return float(np.square(cdf - (rows >= round(truth * n_rows))).sum() / n_rows)
    # Above the truth and nearly all of the probability the integrand is zero.
    end = max(truth, float(posterior.ppf(1.0 - 1e-9)))
    parts = np.linspace(0.0, truth, N_GRID), np.linspace(truth, end, N_GRID)
    below, above = (posterior.cdf(part) for part in parts)
    return float(np.trapezoid(below**2, parts[0]) + np.trapezoid((1.0 - above) ** 2, parts[1]))


def evaluate(S: np.ndarray, y: np.ndarray, share: float) -> dict[str, list[float]]:
    """F1, FP / n and FN / n of each detector (column of `S`) at the threshold that PyOD takes."""
    flagged = is_anomaly(S, cut_off(S, share))
    hits = (flagged * y[:, None]).sum(axis=0)
    n_flagged, n_anomalies = flagged.sum(axis=0), int(y.sum())
    f1 = 2.0 * hits / np.maximum(n_flagged + n_anomalies, 1)
    return {
        "f1": f1.tolist(),
        "false_alarms": ((n_flagged - hits) / len(y)).tolist(),
        "misses": ((n_anomalies - hits) / len(y)).tolist(),
    }


def ranking_auc(scores: np.ndarray, y: np.ndarray) -> float:
    """Area under the ROC curve; NaN unless both labels occur."""
    return float(roc_auc_score(y, scores)) if 0 < y.sum() < len(y) else np.nan


def reliability(probability: np.ndarray, y: np.ndarray) -> dict[str, list[float]]:
    """Number of rows, sum of probabilities and number of anomalies in ten bins of probability."""
    place = np.clip(np.searchsorted(BINS, probability, side="right") - 1, 0, 9)
    sums = {"rows": np.ones(len(y)), "probability": probability, "anomalies": y}
    return {name: np.bincount(place, values, 10).tolist() for name, values in sums.items()}


def beta_prior(gammas: np.ndarray) -> GammaPosterior:
    """The Beta with the mean and the variance of these shares, as a posterior."""
    mean, variance = gammas.mean(), gammas.var(ddof=1)
    total = mean * (1.0 - mean) / variance - 1.0
    parts = np.array([[1.0], [mean * total], [(1.0 - mean) * total]])
    return GammaPosterior(0.0, BetaMixture(*parts))


def calibration_figures(needed: Iterable[float]) -> dict[str, float]:
    """Distances between empirical frequencies and probabilities, over the paper's grid."""
    off = np.abs(frequencies(needed) - LEVELS)
    return {
        "within_5": np.mean(off <= 0.05 + 1e-12),
        "within_10": np.mean(off <= 0.10 + 1e-12),
        "largest_off": off.max(),
        "mean_off": off.mean(),
    }


def frequencies(needed: Iterable[float]) -> np.ndarray:
    """Share of the datasets whose truth lies in the central interval of each probability.

    `needed` is the mass of each dataset's smallest central interval that contains the truth.
    """
    return (np.array(list(needed))[:, None] <= LEVELS).mean(axis=0)


def relative_f1(at_truth: Sequence[float], at_share: Sequence[float]) -> np.ndarray | None:
    """Relative change of F1 of the detectors that are best at the true share; None if F1 is 0."""
    truth, share = np.array(at_truth), np.array(at_share)
    if truth.max() == 0.0:
        return None
    best = truth == truth.max()
    return (share[best] - truth[best]) / truth[best]


def calibrated_by_chance(n_sets: int, seed: int) -> dict[str, np.ndarray]:
    """Calibration figures (N_SIMULATIONS,) of a calibrated method over `n_sets` datasets."""
    needed = np.random.default_rng(seed).random((N_SIMULATIONS, n_sets))
    found = [calibration_figures(one) for one in needed]
    return {name: np.array([one[name] for one in found]) for name in found[0]}
