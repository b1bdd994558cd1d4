"""The laws of a fit on any table: it ends with a typed and true refusal or a sound posterior."""

from __future__ import annotations

import copy
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import DetectorError, GammaGMMWarning
from gammagmm.posterior.gamma_posterior import GammaPosterior

__all__ = ["CAUSES", "LawError", "Outcome", "check_fitted", "check_posterior", "fit_and_check"]

QUANTILES = np.array([0.0, 0.005, 0.05, 0.5, 0.9, 0.999, 1.0])
N_DRAWS = 1000
FALSE_ALARM = 1e-10
"""Probability that correct draws fail the check: 1e-5 over 100,000 tables."""

CAUSES = {
    "NaN": r"contains NaN|missing value",
    "infinity": r"contains infinity|infinite value",
    "too few rows": r"Found array with \d+ sample\(s\) .* minimum of 2 is required|at least 2 row",
    "too few rows for detectors": r"X has \d rows; the detectors need at least 10",
    "no columns": r"Found array with 0 feature\(s\)|and a column, got",
    "not two axes": r"Expected 2D array|Found array with dim 3",
    "complex": r"Complex data not supported",
    "text": r"X must hold numbers, but|is not a number|are not numbers",
    "nothing to use": r"X has no usable column",
    "unusable detectors": r"Only \d+ of \d+ detectors gave usable scores, but \d .+ Skipped: .+",
    "bound": r"The mixture's bound is not finite\. Scale the columns to similar ranges",
    "far rows": r"The rows are too far from 0, relative to their spread",
    "no member": r"Every component is expected to contain less .* Fit fewer components",
}
"""Why a table may be refused, and the pattern that the message must match."""


class LawError(AssertionError):
    """A law that must hold for every fit is broken."""


@dataclass(frozen=True)
class Outcome:
    """How a fit ended: a key of CAUSES, "answered" or "point mass at 0"."""

    reason: str
    estimator: Any = None  # the fitted one, unless the table was refused


def fit_and_check(estimator: Any, X: Any) -> Outcome:
    """The outcome of ``estimator.fit(X)``; raises `LawError` where it breaks a law."""
    before = copy.deepcopy(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Our own warnings are part of an answer; any other warning is a fault.
        warnings.simplefilter("ignore", GammaGMMWarning)
        try:
            estimator.fit(X)
        except (ValueError, TypeError) as error:
            reason = cause_of(error)
            is_true = _is_true_of(reason, before, estimator.detectors == "precomputed")
            _require(is_true, f"refused for {reason}, which is not true: {error}")
        else:
            check_fitted(estimator, X)
            is_zero = estimator.posterior_.is_degenerate
            reason = "point mass at 0" if is_zero else "answered"
    _require(_same(before, X), "the input was modified")
    return Outcome(reason, estimator if reason not in CAUSES else None)


def cause_of(error: Exception) -> str:
    """The key of CAUSES whose pattern the message matches."""
    for cause, pattern in CAUSES.items():
        if re.search(pattern, str(error)):
            return cause
    raise LawError(f"refused without a known cause: {type(error).__name__}: {error}") from error


def check_fitted(estimator: Any, X: Any) -> None:
    """Raise `LawError` where the attributes or the answers of a fitted estimator break a law."""
    check_posterior(estimator.posterior_)
    n_rows, n_detectors = len(X), len(estimator.fit_.detector_names)
    shapes = {"scores": (n_rows, n_detectors), "score_space": (n_rows, n_detectors)}
    shapes |= {"decision_scores": (n_rows,), "labels": (n_rows,)}
    for name, shape in shapes.items():
        value = getattr(estimator.fit_, name)
        _require(value.shape == shape, f"{name} has shape {value.shape}, expected {shape}")
        _require(np.isfinite(value).all(), f"{name} is not finite")
    thresholds = [estimator.threshold_, *estimator.thresholds_.values()]
    _require(np.isfinite(thresholds).all(), f"thresholds are not finite: {thresholds}")
    _require(
        list(estimator.thresholds_) == estimator.fit_.detector_names, "thresholds_ has other names"
    )
    _require(set(estimator.labels_.tolist()) <= {0, 1}, "labels_ holds more than 0 and 1")
    gamma = float(estimator.contamination_)
    _require(gamma == estimator.posterior_.mean, "contamination_ is not the posterior mean")
    # The threshold is a percentile: at most a share gamma, rounded up to whole rows, is above it.
    most = np.ceil(gamma * (n_rows - 1)) if gamma else 0
    n_anomalies = estimator.labels_.sum()
    _require(n_anomalies <= most, f"{n_anomalies} anomalies, at most {most} expected")
    _check_answers(estimator, X)
    _check_runs(estimator)


def _check_answers(estimator: Any, X: Any) -> None:
    try:
        probabilities = estimator.predict_proba(X)
    except DetectorError as error:
        # A detector may score its training rows, and yet fail on the same rows as new ones.
        _require(re.search(r"Detector .+ cannot score these rows: .+", str(error)), str(error))
        return
    _require(probabilities.shape == (len(X), 2), "predict_proba has another shape")
    is_share = (probabilities >= 0.0) & (probabilities <= 1.0)
    _require(is_share.all(), "predict_proba leaves [0, 1]")
    labels = estimator.predict(X)
    _require(set(labels.tolist()) <= {0, 1}, "predict returns more than 0 and 1")
    # Detectors treat the training rows as new rows here; precomputed scores stay the same.
    if not estimator.detectors_:
        same = np.array_equal(labels, estimator.labels_)
        _require(same, "predict on the training rows is not labels_")


def _check_runs(estimator: Any) -> None:
    for run in estimator.fit_.runs:
        components = vars(run.components)
        for name, value in components.items():
            _require(np.isfinite(value).all(), f"components.{name} is not finite")
        _require(np.isfinite(run.elbo), "the bound is not finite")
        low, high = run.reachable
        _require(0.0 <= low <= high <= 1.0 + 1e-12, f"reachable is {run.reachable}")
        is_solved = run.posterior is not None
        _require(
            is_solved == np.isfinite(run.tau) == np.isfinite(run.delta),
            "tau and delta are not finite exactly in a solved run",
        )


def check_posterior(posterior: GammaPosterior, seed: int = 0) -> None:
    """Raise `LawError` where a posterior is not a consistent distribution on [0, 1]."""
    total = posterior.prob_zero + posterior.betas.weights.sum()
    # A sum of at most 1,000 rounded weights.
    _require(abs(total - 1.0) <= 1e-12, f"the weights sum to {float(total)!r}")
    _require((posterior.betas.weights >= 0.0).all(), "a weight is negative")
    _check_cdf(posterior)
    _check_quantiles(posterior)
    _check_draws(posterior, np.random.default_rng(seed))
    _require(0.0 <= posterior.mean <= 1.0, f"the mean is {posterior.mean}")
    _require(0.0 <= posterior.std <= 0.5, f"the standard deviation is {posterior.std}")
    is_zero = posterior.prob_zero == 1.0
    _require(posterior.is_degenerate == is_zero, "is_degenerate contradicts prob_zero")


def _check_cdf(posterior: GammaPosterior) -> None:
    grid = np.linspace(0.0, 1.0, 101)
    cdf, sf = posterior.cdf(grid), posterior.sf(grid)
    _require(cdf[0] == posterior.prob_zero, f"the cdf starts at {float(cdf[0])!r}")
    _require(abs(cdf[-1] - 1.0) <= 1e-12, f"the cdf ends at {float(cdf[-1])!r}")
    # Each value is a sum of incomplete Beta functions, which SciPy computes to about 1e-13.
    _require((np.diff(cdf) >= -1e-12).all(), "the cdf decreases")
    _require((np.abs(cdf + sf - 1.0) <= 1e-12).all(), "cdf and sf do not add up to 1")
    _require(float(posterior.cdf(-1e-300)) == 0.0, "there is probability below 0")


def _check_quantiles(posterior: GammaPosterior) -> None:
    x = posterior.ppf(QUANTILES)
    _require(((x >= 0.0) & (x <= 1.0)).all(), f"quantiles leave [0, 1]: {x}")
    _require((np.diff(x) >= 0.0).all(), f"quantiles decrease: {x}")
    is_atom = posterior.prob_zero >= QUANTILES
    _require((x[is_atom] == 0.0).all(), "a quantile inside the atom is not 0")
    # The root is found to 1e-15 + 1e-14 x, the cdf is known to 1e-12.
    slack = 1e-12 + 4.0 * (1e-15 + 1e-14 * x) * posterior.pdf(x)
    wrong = np.abs(posterior.cdf(x) - QUANTILES) > slack
    _require(not (wrong & ~is_atom).any(), f"quantiles {x} do not invert the cdf")


def _check_draws(posterior: GammaPosterior, rng: np.random.Generator) -> None:
    """Dvoretzky, Kiefer, Wolfowitz: sup |F_n - F| > e has probability <= 2 exp(-2 n e^2)."""
    draws = np.sort(posterior.sample(N_DRAWS, rng))
    _require(((draws >= 0.0) & (draws <= 1.0)).all(), "draws leave [0, 1]")
    tolerance = np.sqrt(np.log(2.0 / FALSE_ALARM) / (2.0 * N_DRAWS))
    points = np.unique(draws)
    at_most = np.searchsorted(draws, points, side="right") / N_DRAWS
    below = np.searchsorted(draws, points, side="left") / N_DRAWS
    cdf = posterior.cdf(points)
    before = np.where(points == 0.0, 0.0, cdf)
    distance = max(np.abs(cdf - at_most).max(), np.abs(before - below).max())
    _require(
        distance <= tolerance, f"draws are {distance:.3f} off the cdf, {tolerance:.3f} allowed"
    )


def _is_true_of(cause: str, X: Any, is_precomputed: bool) -> bool:
    """Whether `cause` is true of `X`; a cause that cannot be checked here counts as true."""
    truths = {
        "NaN": lambda values: np.isnan(values).any(),
        "infinity": lambda values: np.isinf(values).any(),
        "too few rows": lambda values: len(values) < 2,
        "too few rows for detectors": lambda values: len(values) < 10,
    }
    if is_precomputed:
        truths["unusable detectors"] = lambda values: _n_usable(values) < min(2, values.shape[1])
    if cause not in truths:
        return True
    values = X.to_numpy(np.float64, na_value=np.nan) if hasattr(X, "iloc") else np.asarray(X, float)
    return bool(truths[cause](values))


def _n_usable(scores: NDArray[np.float64]) -> int:
    """Number of columns whose range is clearly above rounding and below the largest float."""
    halves = 0.5 * scores.max(axis=0) - 0.5 * scores.min(axis=0)
    is_clear = halves > 1e-11 * np.maximum(np.abs(scores).max(axis=0), 0.01)
    return int((is_clear & (halves < 4e307)).sum())


def _same(before: Any, after: Any) -> bool:
    """Whether two tables hold the same values; NaN equals NaN."""
    if type(before) is not type(after):
        return False
    if hasattr(before, "equals"):
        return bool(before.equals(after))
    if isinstance(before, list):
        return repr(before) == repr(after)
    first, second = np.asarray(before), np.asarray(after)
    return bool(np.all((first == second) | ((first != first) & (second != second))))


def _require(holds: Any, message: str) -> None:
    if not holds:
        raise LawError(message)
