"""The parameters of an estimator -> the plan of one fit, or what is wrong with one of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from gammagmm._support.checks import as_generator, check_count, check_positive
from gammagmm._support.documents import Plain
from gammagmm._support.processes import Deadline
from gammagmm._support.progress import Progress, check_progress, tell
from gammagmm.detectors.presets import MIN_ROWS, MaxFitRows, RowPlan, plan_rows
from gammagmm.labels.label_error import check_label_error
from gammagmm.mixture.backends import check_backend
from gammagmm.mixture.prior import MixturePrior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import AUTO_TOL
from gammagmm.table.roles import Choices
from gammagmm.table.scaling import SCALES

__all__ = ["AUTO_MIXTURE_ROWS", "Plan", "check_parameters"]

AUTO_MIXTURE_ROWS = 5_000
"""What ``max_mixture_rows="auto"`` means."""

# Deviation D17: the paper does not scale the columns.
AS_GIVEN = (
    *("detectors", "scale", "n_components", "n_runs", "n_draws", "max_iter"),
    *("max_rows", "detector_timeout", "device", "n_jobs"),
)
"""Parameters that are taken as they are."""

MAX_COUNT = 1_000_000
"""Most runs, draws, restarts, iterations and components; more would only fill the memory."""


@dataclass(frozen=True)
class Plan:
    """The checked parameters of one fit.

    Attributes
    ----------
    parameters : dict
        Value of every parameter of the estimator, by name, as plain values: the device by its name,
        and what is not a string, a number, a boolean or None by its `repr`.
    detectors : str or list or dict
        As the user gave them.
    scale : "standard" or "robust" or None
        How the columns are scaled for the detectors.
    learn : bool
        Whether labels change the ranking of the rows.
    label_error : tuple of two floats
        The probabilities that a normal row is labelled an anomaly, and an anomaly normal.
    constraints : Constraints
        The user's answers to the paper's two questions.
    prior : MixturePrior
        Prior of the mixture.
    tol : float
        Change of the bound at which a run has settled.
    accelerated : bool
        Whether the runs make accelerated steps.
    max_rows : int or None
        Most rows of a collection that are sampled; None for any number.
    max_fit_rows : int or "auto" or None
        Most rows that a slow detector trains on, see `plan_rows`; None for any number.
    max_mixture_rows : int or None
        Most rows that a run is fitted to; None for any number.
    rng, detector_rng, run_rng : numpy.random.Generator
        The user's random state, and what it spawned for the detectors and for the runs.
    learning_seed : int
        Seed, drawn from the random state, of what is learned from labels.
    seed : int or None
        The random state, where it is a number.
    deadline : Deadline
        The moment by which the fit must be over.
    choices : Choices
        What the columns are, and what is done with gaps and texts.
    """

    parameters: dict[str, Plain]
    detectors: Any
    scale: str | None
    learn: bool
    label_error: tuple[float, float]
    constraints: Constraints
    prior: MixturePrior
    n_components: int
    n_runs: int
    n_draws: int
    max_restarts: int | None
    max_iter: int
    tol: float
    accelerated: bool
    max_rows: int | None
    max_fit_rows: MaxFitRows
    max_mixture_rows: int | None
    detector_timeout: float | None
    deadline: Deadline
    backend: str
    device: Any
    rng: np.random.Generator
    detector_rng: np.random.Generator
    run_rng: np.random.Generator
    learning_seed: int
    seed: int | None
    n_jobs: int | None
    progress: Any
    choices: Choices

    @property
    def is_precomputed(self) -> bool:
        """Whether the rows are raw scores already."""
        return isinstance(self.detectors, str) and self.detectors == "precomputed"

    def rows(self, n_rows: int, n_columns: int) -> RowPlan | None:
        """How many rows of a table each detector is fitted on; None without detectors."""
        if self.is_precomputed:
            return None
        return plan_rows(self.detectors, n_rows, n_columns, self.max_fit_rows)

    @property
    def run_options(self) -> dict[str, Any]:
        """Settings that all variational runs share."""
        names = ("n_draws", "max_iter", "tol", "accelerated", "backend", "device", "deadline")
        return {"max_rows": self.max_mixture_rows} | {name: getattr(self, name) for name in names}

    def tell(self, expected: Mapping[str, float]) -> AbstractContextManager[Progress]:
        """Report the progress of parts that are `expected` to take so many seconds, as asked."""
        heard = self.progress if callable(self.progress) else None
        return tell(heard, self.progress is True, expected)

    def without_progress(self) -> Plan:
        """The plan as a result keeps it: without the user's callback."""
        return replace(self, progress=None)


def check_parameters(parameters: Mapping[str, Any]) -> Plan:
    """The plan of a fit, once each of the parameters of `GammaGMM` has been found valid."""
    estimator = SimpleNamespace(**parameters)
    minima = {"n_components": 1, "n_runs": 1, "n_draws": 2, "max_iter": 1}
    for name, minimum in minima.items():
        check_count(name, getattr(estimator, name), minimum, MAX_COUNT)
    tol = _check_tol(estimator.tol)
    scale: Any = estimator.scale
    if not isinstance(scale, str | None) or scale not in SCALES:
        raise ValueError(f'scale must be "standard", "robust" or None, got {scale!r}.')
    if not isinstance(estimator.learn, bool | np.bool_):
        raise TypeError(f"learn must be True or False, got {estimator.learn!r}.")
    label_error = check_label_error(estimator.label_error)
    backend = "numpy" if estimator.device is None else "torch"
    check_backend(backend, estimator.device)
    if estimator.max_rows is not None:
        check_count("max_rows", estimator.max_rows, MIN_ROWS)
    max_fit_rows = _check_rows("max_fit_rows", estimator.max_fit_rows)
    max_mixture_rows = _check_rows("max_mixture_rows", estimator.max_mixture_rows)
    max_restarts = _check_restarts(estimator.max_restarts)
    for name in ("detector_timeout", "timeout"):
        if getattr(estimator, name) is not None:
            check_positive(name, getattr(estimator, name))
    check_progress(estimator.progress)
    _check_jobs(estimator.n_jobs)
    prior, seed = estimator.mixture_prior, estimator.random_state
    if not isinstance(prior, MixturePrior | None):
        raise TypeError(f"mixture_prior must be a MixturePrior or None, got {prior!r}.")
    constraints = Constraints(
        estimator.p0, estimator.p_high, estimator.high_gamma, estimator.max_gamma
    )
    rng = as_generator(seed)
    detector_rng, run_rng, learning_rng = rng.spawn(3)
    return Plan(
        parameters={name: _plain(value) for name, value in sorted(parameters.items())}
        | {"device": None if estimator.device is None else str(estimator.device)},
        learn=bool(estimator.learn),
        label_error=label_error,
        constraints=constraints,
        prior=prior or MixturePrior(),
        # Deviation D16: the published script makes plain steps with a tolerance of 1e-3.
        tol=AUTO_TOL if tol is None else tol,
        accelerated=tol is None,
        max_fit_rows=max_fit_rows,
        max_mixture_rows=AUTO_MIXTURE_ROWS if max_mixture_rows == "auto" else max_mixture_rows,
        max_restarts=max_restarts,
        deadline=Deadline.after(estimator.timeout),
        backend=backend,
        rng=rng,
        detector_rng=detector_rng,
        run_rng=run_rng,
        learning_seed=int(learning_rng.integers(2**32)),
        seed=int(seed) if isinstance(seed, int | np.integer) else None,
        progress=estimator.progress,
        choices=_choices(estimator),
        **{name: parameters[name] for name in AS_GIVEN},
    )


def _choices(estimator: SimpleNamespace) -> Choices:
    """What the columns are, and what is done with gaps and texts."""
    if not isinstance(estimator.strict, bool | np.bool_ | None):
        raise TypeError(f"strict must be True, False or None, got {estimator.strict!r}.")
    is_precomputed = isinstance(estimator.detectors, str) and estimator.detectors == "precomputed"
    is_answered = estimator.strict is not None and not estimator.strict
    if is_precomputed and (is_answered or estimator.columns):
        raise ValueError('detectors="precomputed" needs columns=None, and not strict=False.')
    return Choices.of(estimator.columns, strict=is_precomputed or bool(estimator.strict))


def _check_jobs(n_jobs: Any) -> None:
    """Refuse a number of workers that joblib does not take."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be a whole number or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give 1 for no workers, or -1 for all cores.")


def _check_tol(tol: Any) -> float | None:
    """The change of the bound at which a run stops; None for "auto"."""
    if isinstance(tol, str):
        if tol != "auto":
            raise ValueError(f'tol must be "auto" or a positive number, got {tol!r}.')
        return None
    check_positive("tol", tol)
    return float(tol)


def _check_rows(name: str, value: Any) -> int | Literal["auto"] | None:
    """The checked value of the parameter `name`; None stands for any number of rows."""
    if value is None:
        return None
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'{name} must be "auto", a whole number or None, got {value!r}.')
        return "auto"
    check_count(name, value, MIN_ROWS)
    return int(value)


def _check_restarts(value: Any) -> int | None:
    """The most new starts of all runs; None for "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'max_restarts must be "auto" or a whole number, got {value!r}.')
        return None
    check_count("max_restarts", value, 0, MAX_COUNT)
    return int(value)


def _plain(value: Any) -> Plain:
    """`value` where JSON holds it exactly, its `repr` otherwise."""
    value = value.item() if isinstance(value, np.generic) else value
    is_plain = value is None or isinstance(value, str | bool | int)
    is_plain = is_plain or (isinstance(value, float) and bool(np.isfinite(value)))
    if is_plain:
        return value
    try:
        return repr(value)
    except Exception:  # of a user's object
        return object.__repr__(value)
