"""Score space -> variational runs, each from mixture to its own posterior, with restarts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from gammagmm._support.processes import NEVER, Deadline, OutOfTimeError, allowed_jobs
from gammagmm._support.progress import Progress, quiet
from gammagmm.errors import NoSolutionWarning, Note, UnsolvedRunsWarning
from gammagmm.mixture.fit import (
    START_ROWS,
    Mixture,
    MixtureConvergenceWarning,
    ascend,
    start_labels,
)
from gammagmm.mixture.prior import MixturePrior, ResolvedPrior
from gammagmm.mixture.rows import Rows, place_rows
from gammagmm.mixture.statistics import start_statistics
from gammagmm.posterior.components import Components, order_components
from gammagmm.posterior.gamma_posterior import GammaPosterior, run_posterior
from gammagmm.posterior.link import Constraints, average_conditionals, solve_link

__all__ = [
    "Run",
    "RunSettings",
    "describe_runs",
    "fit_run",
    "fit_runs",
    "make_run",
    "plan_runs",
    "settle_runs",
    "solved_posteriors",
    "start_runs",
]

Array = NDArray[np.float64]
Start: TypeAlias = tuple[np.random.Generator, int]
"""The stream of a run, and how many of its starts had no solution."""


@dataclass(frozen=True)
class RunSettings:
    """What every run of a fit has in common."""

    constraints: Constraints
    prior: ResolvedPrior
    n_components: int = 100
    n_draws: int = 1000
    max_iter: int = 1500
    tol: float = 1e-3
    backend: str = "numpy"
    device: Any = None
    progress: Progress = quiet
    deadline: Deadline = NEVER


@dataclass(frozen=True)
class Run:
    """One variational run: what it found and how.

    Attributes
    ----------
    components : Components
        Active components, most anomalous first.
    tau, delta : float
        Parameters of the sigmoid; NaN where the run is unsolved.
    status : "solved", "slack" or "unsolved"
        As in ``gammagmm.posterior.link.Link``.
    reachable : tuple of two floats
        The P(gamma >= high_gamma) that this mixture allows.
    reached : float
        The P(gamma >= high_gamma) of this run's posterior, to compare with `p_high`.
    weights : ndarray of shape (n_candidates,)
        P(exactly the k most anomalous components are anomalous), given at least one.
    elbo, n_iter, converged
        The bound, the iterations, and whether the bound settled.
    n_restarts : int
        How many starts before this one had no solution.
    posterior : GammaPosterior or None
        This run's own posterior; None where the run is unsolved.
    """

    components: Components
    tau: float
    delta: float
    status: Literal["solved", "slack", "unsolved"]
    reachable: tuple[float, float]
    reached: float
    weights: Array
    elbo: float
    n_iter: int
    converged: bool
    n_restarts: int = 0
    posterior: GammaPosterior | None = field(default=None, repr=False)

    @property
    def first_share(self) -> float:
        """Expected weight of the most anomalous component."""
        return float(self.components.alpha[0] / self.components.alpha.sum())


FitStarts: TypeAlias = Callable[[RunSettings, list[Start]], list[Run | None]]
"""Gives a run from each start; None for one that the deadline found under way."""


def plan_runs(
    Z: Array, constraints: Constraints, prior: MixturePrior, n_components: int, **options: Any
) -> tuple[RunSettings, list[Note]]:
    """Settings as the score space `Z` (n, M) allows them, and a note of each thing that changed."""
    return settle_runs(len(Z), prior.resolve(Z), constraints, n_components, **options)


def settle_runs(
    n_rows: int,
    prior: ResolvedPrior,
    constraints: Constraints,
    n_components: int,
    **options: Any,
) -> tuple[RunSettings, list[Note]]:
    """The same for `n_rows` rows whose `prior` is known in numbers."""
    possible = n_components if n_rows >= n_components else n_rows - 1
    notes = []
    if possible < n_components:
        message = f"lowered from {n_components} to {possible}: there are {n_rows} rows"
        notes.append(Note("mixture", "n_components", message))
    if prior.is_regularised:
        message = f"covariance prior singular: {prior.reg_covar} of its mean added to the diagonal"
        notes.append(Note("mixture", "mixture_prior", message))
    if n_rows > START_ROWS:
        message = f"k-means of {START_ROWS} random rows, the others put to the nearest centre"
        notes.append(Note("mixture", "start", message))
    return RunSettings(constraints, prior, possible, **options), notes


def fit_runs(
    Z: Array,
    settings: RunSettings,
    budget: tuple[int, int],
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[Run, ...]:
    """The runs of a fit, unsolved ones started anew while the restarts last.

    `budget` is (n_runs, max_restarts); the restarts are shared by all runs. Each start has a
    generator of its own, so that the answer does not depend on `n_jobs`. The progress of the
    settings hears of each run when it has ended, and again when it is started anew.
    """
    n_jobs = allowed_jobs(n_jobs)
    n_callers = min(effective_n_jobs(n_jobs), budget[0])
    rows = place_rows(settings.prior.whiten(Z), settings.backend, settings.device, n_callers)
    fit_starts = partial(_fit_starts, Z, rows, n_jobs)
    return start_runs(fit_starts, settings, budget, rng)


def start_runs(
    fit_starts: FitStarts, settings: RunSettings, budget: tuple[int, int], rng: np.random.Generator
) -> tuple[Run, ...]:
    """The runs that `fit_starts` gives, unsolved ones started anew while the restarts last.

    Where the deadline of the settings has come, those that are done.
    """
    # Deviation D9: the published script fits the detectors anew as well.
    n_runs, n_restarts_left = budget
    streams = rng.spawn(n_runs)
    runs = fit_starts(settings, [(stream, 0) for stream in streams])
    while n_restarts_left > 0:
        unsolved = {i: run for i, run in enumerate(runs) if run and run.status == "unsolved"}
        again = dict(islice(unsolved.items(), n_restarts_left))
        if not again or settings.deadline.is_over:
            break
        for i in again:
            settings.progress(f"run {i + 1}", "started", 0.0)
        starts = [(streams[i], run.n_restarts + 1) for i, run in again.items()]
        fitted = fit_starts(replace(settings, progress=quiet), starts)
        for i, run in zip(again, fitted, strict=True):
            runs[i] = run or runs[i]
        n_restarts_left -= len(again)
    return tuple(run for run in runs if run is not None)


def _fit_starts(
    Z: Array, rows: Rows, n_jobs: int | None, settings: RunSettings, starts: list[Start]
) -> list[Run | None]:
    # The callback stays here: a worker in another process could not call it.
    sent = replace(settings, progress=quiet)
    tasks = (delayed(_try_run)(Z, rows, sent, stream.spawn(1)[0], n) for stream, n in starts)
    began = time.perf_counter()
    runs: list[Run | None] = []
    for run in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
        runs.append(run)
        status = "timeout" if run is None else run.status
        settings.progress(f"run {len(runs)}", status, time.perf_counter() - began)
    return runs


def _try_run(*task: Any) -> Run | None:
    """The run of a task; None where its time was over before."""
    try:
        return fit_run(*task)
    except OutOfTimeError:
        return None


def fit_run(
    Z: Array, rows: Rows, settings: RunSettings, rng: np.random.Generator, n_restarts: int = 0
) -> Run:
    """One run: mixture, ordering, link and, if that is solved, posterior.

    `rows` are those of the score space `Z` after the prior's whitening.
    """
    start_rng, draw_rng = rng.spawn(2)
    labels = start_labels(Z, settings.n_components, start_rng, settings.deadline)
    start = start_statistics(rows.Z, labels, settings.n_components)
    limits = (settings.max_iter, settings.tol, settings.deadline)
    mixture = ascend(rows, start, settings.prior, *limits)
    return make_run(mixture, settings, draw_rng, n_restarts)


def make_run(
    mixture: Mixture, settings: RunSettings, rng: np.random.Generator, n_restarts: int = 0
) -> Run:
    """The record of a fitted `mixture`: its order, link and posterior."""
    components = order_components(mixture)
    link = solve_link(components, settings.constraints)
    common: dict[str, Any] = {
        "components": components,
        "tau": link.tau,
        "delta": link.delta,
        "status": link.status,
        "reachable": link.reachable,
        "elbo": mixture.elbo,
        "n_iter": mixture.n_iter,
        "converged": mixture.converged,
        "n_restarts": n_restarts,
    }
    if link.status == "unsolved":
        return Run(**common, reached=np.nan, weights=np.empty(0))
    conditionals = average_conditionals(components, link, settings.n_draws, rng)
    posterior = run_posterior(components, conditionals, settings.constraints.p0)
    reached = posterior.prob_above(settings.constraints.high_gamma)
    weights = posterior.betas.weights / (1.0 - posterior.prob_zero)
    return Run(**common, reached=reached, weights=weights, posterior=posterior)


def solved_posteriors(runs: tuple[Run, ...]) -> list[GammaPosterior]:
    """The posteriors of the runs that have one."""
    return [run.posterior for run in runs if run.posterior is not None]


def describe_runs(
    runs: tuple[Run, ...], constraints: Constraints, max_iter: int
) -> list[tuple[Note, type[Warning] | None]]:
    """What is to be said of the runs: notes, each with the category of its warning if it is one."""
    n_capped = sum(not run.converged for run in runs)
    n_restarts = sum(run.n_restarts for run in runs)
    unsolved = [run for run in runs if run.status == "unsolved"]
    slack = [run for run in runs if run.status == "slack"]
    told: list[tuple[Note, type[Warning] | None]] = []
    if n_capped:
        message = f"{n_capped} of {len(runs)} runs stopped at max_iter={max_iter}: raise it or tol."
        told.append((Note("mixture", "runs", message), MixtureConvergenceWarning))
    if n_restarts:
        message = f"{n_restarts} starts had no solution and were made anew."
        told.append((Note("link", "runs", message), None))
    if slack:
        most = max(run.reachable[1] for run in slack)
        message = (
            f"{len(slack)} of {len(runs)} runs reach at most {most:.3g} for P(gamma >= "
            f"{constraints.high_gamma}), less than p_high={constraints.p_high}: delta = 0 there."
        )
        told.append((Note("link", "p_high", message), None))
    if unsolved:
        told.append(_describe_unsolved(unsolved, len(runs), constraints))
    return told


def _describe_unsolved(
    unsolved: list[Run], n_runs: int, constraints: Constraints
) -> tuple[Note, type[Warning]]:
    cause = _explain_unsolved(unsolved, constraints)
    if len(unsolved) < n_runs:
        message = f"{len(unsolved)} of {n_runs} runs have no solution and do not count: {cause}"
        return Note("link", "runs", message), UnsolvedRunsWarning
    message = (
        f"No solution in any of {n_runs} runs: {cause} The result is the point mass at 0 that the "
        "paper prescribes."
    )
    return Note("link", "runs", message), NoSolutionWarning


def _explain_unsolved(unsolved: list[Run], constraints: Constraints) -> str:
    """Why there is no solution, and what could be changed."""
    low = min(run.reachable[0] for run in unsolved)
    high = max(run.reachable[1] for run in unsolved)
    n_large = sum(run.first_share >= constraints.max_gamma for run in unsolved)
    cause = (
        f"their mixtures allow {low:.3g} to {high:.3g} for P(gamma >= {constraints.high_gamma}), "
        f"p_high is {constraints.p_high}."
    )
    if n_large == len(unsolved):
        return (
            f"{cause} Their most anomalous component alone expects max_gamma="
            f"{constraints.max_gamma} of the rows or more: raise max_gamma, or look for duplicate "
            "rows."
        )
    return f"{cause} Raise p_high or high_gamma, or look for duplicate rows."
