"""The estimator's parameters -> constraints and settings, or what is wrong with one of them."""

from __future__ import annotations

from typing import Any

from gammagmm._support.checks import check_count, check_number, check_positive
from gammagmm._support.progress import check_progress
from gammagmm.detectors.presets import MIN_ROWS
from gammagmm.mixture.prior import MixturePrior
from gammagmm.mixture.rows import check_backend
from gammagmm.posterior.link import Constraints

__all__ = ["AUTO_FIT_ROWS", "check_blocks", "check_parameters", "check_trust", "fit_rows"]

AUTO_FIT_ROWS = 20_000
"""What ``max_fit_rows="auto"`` means."""


def check_parameters(estimator: Any) -> Constraints:
    """Constraints on gamma of a `GammaGMM`, once each of its parameters has been found valid."""
    minima = {"n_components": 1, "n_runs": 1, "n_draws": 2, "max_restarts": 0, "max_iter": 1}
    for name, minimum in minima.items():
        check_count(name, getattr(estimator, name), minimum)
    check_positive("tol", estimator.tol)
    check_trust(estimator.trust)
    check_backend(estimator.backend, estimator.device)
    fit_rows(estimator.max_fit_rows)
    for name in ("detector_timeout", "timeout"):
        if getattr(estimator, name) is not None:
            check_positive(name, getattr(estimator, name))
    check_progress(estimator.progress, estimator.verbose)
    prior = estimator.mixture_prior
    if not isinstance(prior, MixturePrior | None):
        raise TypeError(f"mixture_prior must be a MixturePrior or None, got {prior!r}.")
    return Constraints(estimator.p0, estimator.p_high, estimator.high_gamma, estimator.max_gamma)


def check_blocks(estimator: Any) -> None:
    """Refuse what a `GammaGMM` cannot do with rows in blocks on Dask."""
    if estimator.backend != "numpy":
        raise ValueError(f"backend={estimator.backend!r} needs rows in memory, X is Dask's.")
    if estimator.max_fit_rows is None and estimator.detectors != "precomputed":
        raise ValueError(
            "max_fit_rows=None would bring all rows of Dask's to one place: give a number, or "
            f"'auto' for {AUTO_FIT_ROWS}."
        )


def check_trust(trust: Any) -> None:
    """Refuse what is no share below 1: a prior without the broad part may exclude the truth."""
    check_number("trust", trust)
    if not 0.0 <= trust < 1.0:
        raise ValueError(f"trust must be at least 0 and below 1, got {trust!r}.")


def fit_rows(max_fit_rows: Any) -> int | None:
    """The most rows that a detector of superlinear cost is fitted on; None for any number."""
    if max_fit_rows is None:
        return None
    if isinstance(max_fit_rows, str):
        if max_fit_rows != "auto":
            expected = 'max_fit_rows must be "auto", a whole number or None'
            raise ValueError(f"{expected}, got {max_fit_rows!r}.")
        return AUTO_FIT_ROWS
    check_count("max_fit_rows", max_fit_rows, MIN_ROWS)
    return int(max_fit_rows)
