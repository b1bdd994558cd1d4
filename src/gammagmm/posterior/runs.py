"""Score space -> variational runs, each from mixture to its own posterior, with restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from gammagmm._support.processes import NEVER, Deadline, OutOfTimeError, allowed_jobs
from gammagmm._support.progress import Progress, quiet
from gammagmm.errors import NoSolutionWarning, Note, UnsolvedRunsWarning
from gammagmm.mixture.backends import Rows, place_rows
from gammagmm.mixture.fit import (
    START_ROWS,
    Mixture,
    MixtureConvergenceWarning,
    ascend,
    start_labels,
)
from gammagmm.mixture.prior import MixturePrior, ResolvedPrior
from gammagmm.mixture.statistics import start_statistics
from gammagmm.posterior.components import Components, order_components
from gammagmm.posterior.gamma_posterior import GammaPosterior, run_posterior
from gammagmm.posterior.link import Constraints, average_conditionals, solve_link

__all__ = [
    "FitStarts",
    "Run",
    "RunSettings",
    "Start",
    "describe_runs",
    "first_solved",
    "fit_runs",
    "make_run",
    "plan_runs",
    "settle_runs",
    "solved_posteriors",
    "start_runs",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RunSettings:
    """The settings that all runs of a fit share."""

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
    """The result of one variational run.

    Attributes
    ----------
    components : Components
        Active components, most anomalous first.
    tau, delta : float
        Parameters of the sigmoid; NaN if the run is unsolved.
    status : "solved", "slack" or "unsolved"
        As in ``gammagmm.posterior.link.Link``.
    reachable : tuple of two floats
        The smallest and the largest P(gamma >= high_gamma) that this mixture allows.
    reached : float
        P(gamma >= high_gamma) of this run's posterior, to compare with `p_high`.
    weights : ndarray of shape (n_candidates,)
        P(exactly the k most anomalous components are anomalous), given at least one.
    elbo, n_iter, converged
        The bound, the number of iterations, and whether the bound converged.
    n_restarts : int
        Number of earlier starts of this run that had no solution.
    posterior : GammaPosterior or None
        This run's own posterior; None if the run is unsolved.
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

    @property
    def n_anomalous_pmf(self) -> Array:
        """P(C* = k), the number of anomalous components, for k = 0, ..., n_candidates.

        An unsolved run has P(C* = 0) = 1.
        """
        if self.posterior is None:
            return np.ones(1)
        return np.append(self.posterior.prob_zero, self.posterior.betas.weights)

    @property
    def p_anomalous(self) -> Array:
        """P(component is anomalous) for each of `components`, which is P(C* >= k) for the k-th."""
        at_least = np.cumsum(self.n_anomalous_pmf[:0:-1])[::-1]
        return np.append(at_least, np.zeros(len(self.components) - len(at_least)))


class Start(NamedTuple):
    """A start of a run: the run's random stream, and how many earlier starts had no solution."""

    stream: np.random.Generator
    n_restarts: int


FitStarts: TypeAlias = Callable[[RunSettings, list[Start]], list[Run | None]]
"""Fits a run from each start; None for a run that the deadline interrupted."""


def plan_runs(
    Z: Array, constraints: Constraints, prior: MixturePrior, n_components: int, **options: Any
) -> tuple[RunSettings, list[Note]]:
    """Settings for the score space `Z` (n, M), and a note for each setting that was changed."""
    return settle_runs(len(Z), prior.resolve(Z), constraints, n_components, **options)


def settle_runs(
    n_rows: int,
    prior: ResolvedPrior,
    constraints: Constraints,
    n_components: int,
    **options: Any,
) -> tuple[RunSettings, list[Note]]:
    """Settings for `n_rows` rows and a resolved `prior`, and a note for each that was changed."""
    possible = n_components if n_rows >= n_components else n_rows - 1
    notes = []
    if possible < n_components:
        message = f"lowered from {n_components} to {possible}: there are {n_rows} rows"
        notes.append(Note("mixture", "n_components", message))
    if prior.is_regularised:
        message = (
            "the covariance prior is singular: reg_covar times the mean of its diagonal was added "
            f"to the diagonal, with reg_covar={prior.reg_covar}"
        )
        notes.append(Note("mixture", "mixture_prior", message))
    if n_rows > START_ROWS:
        message = (
            f"k-means was fitted to {START_ROWS} random rows; the other rows were assigned to the "
            "nearest centre"
        )
        notes.append(Note("mixture", "start", message))
    return RunSettings(constraints, prior, possible, **options), notes


def fit_runs(
    Z: Array,
    settings: RunSettings,
    budget: tuple[int, int],
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[Run, ...]:
    """The runs of a fit to the score space `Z` (n, M) in memory; see `start_runs`.

    The result does not depend on `n_jobs`, because each start has its own generator.
    """
    n_jobs = allowed_jobs(n_jobs)
    n_callers = min(effective_n_jobs(n_jobs), budget[0])
    rows = place_rows(settings.prior.whiten(Z), settings.backend, settings.device, n_callers)

    def fit_starts(settings: RunSettings, starts: list[Start]) -> list[Run | None]:
        # The callback and the streams stay here: a worker in another process could not call the
        # one, and would not advance the others.
        sent = replace(settings, progress=quiet)
        tasks = (
            delayed(_fit_run)(Z, rows, sent, start.stream.spawn(1)[0], start.n_restarts)
            for start in starts
        )
        began = time.perf_counter()
        runs: list[Run | None] = []
        for run in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
            runs.append(run)
            status = "timeout" if run is None else run.status
            settings.progress(f"run {len(runs)}", status, time.perf_counter() - began)
        return runs

    return start_runs(fit_starts, settings, budget, rng)


def start_runs(
    fit_starts: FitStarts, settings: RunSettings, budget: tuple[int, int], rng: np.random.Generator
) -> tuple[Run, ...]:
    """The runs of a fit; an unsolved run is restarted until the budget of restarts is used.

    `budget` is (n_runs, max_restarts); all runs share the restarts. The progress callback of the
    settings is called when a run ends and when it is restarted. If the deadline of the settings
    passes, the runs that have finished are returned.
    """
    # Deviation D9: the published script refits the detectors as well.
    n_runs, n_restarts_left = budget
    streams = rng.spawn(n_runs)
    runs = fit_starts(settings, [Start(stream, 0) for stream in streams])
    while n_restarts_left > 0:
        unsolved = {i: run for i, run in enumerate(runs) if run and run.status == "unsolved"}
        restarted = dict(islice(unsolved.items(), n_restarts_left))
        if not restarted or settings.deadline.is_over:
            break
        for i in restarted:
            settings.progress(f"run {i + 1}", "started", 0.0)
        starts = [Start(streams[i], run.n_restarts + 1) for i, run in restarted.items()]
        fitted = fit_starts(replace(settings, progress=quiet), starts)
        for i, run in zip(restarted, fitted, strict=True):
            runs[i] = run or runs[i]
        n_restarts_left -= len(restarted)
    return tuple(run for run in runs if run is not None)


def _fit_run(
    Z: Array, rows: Rows, settings: RunSettings, rng: np.random.Generator, n_restarts: int
) -> Run | None:
    """One run on the score space `Z`, whose whitened rows are `rows`; None if time runs out."""
    start_rng, draw_rng = rng.spawn(2)
    try:
        labels = start_labels(Z, settings.n_components, start_rng, settings.deadline)
        start = start_statistics(rows.Z, labels, settings.n_components)
        limits = (settings.max_iter, settings.tol, settings.deadline)
        mixture = ascend(rows, start, settings.prior, *limits)
    except OutOfTimeError:
        return None
    return make_run(mixture, settings, draw_rng, n_restarts)


def make_run(
    mixture: Mixture, settings: RunSettings, rng: np.random.Generator, n_restarts: int = 0
) -> Run:
    """The run of a fitted `mixture`: ordered components, link and, if solved, posterior."""
    components = order_components(mixture)
    link = solve_link(components, settings.constraints)
    run = Run(
        components=components,
        tau=link.tau,
        delta=link.delta,
        status=link.status,
        reachable=link.reachable,
        reached=np.nan,
        weights=np.empty(0),
        elbo=mixture.elbo,
        n_iter=mixture.n_iter,
        converged=mixture.converged,
        n_restarts=n_restarts,
    )
    if link.status == "unsolved":
        return run
    conditionals = average_conditionals(components, link, settings.n_draws, rng)
    posterior = run_posterior(components, conditionals, settings.constraints.p0)
    return replace(
        run,
        reached=posterior.prob_above(settings.constraints.high_gamma),
        weights=posterior.betas.weights / (1.0 - posterior.prob_zero),
        posterior=posterior,
    )


def solved_posteriors(runs: Sequence[Run]) -> list[GammaPosterior]:
    """The posteriors of the solved runs."""
    return [run.posterior for run in runs if run.posterior is not None]


def first_solved(runs: Sequence[Run]) -> Run:
    """The first run that has a posterior, or the first run if none has."""
    return next((run for run in runs if run.posterior is not None), runs[0])


def describe_runs(
    runs: tuple[Run, ...], constraints: Constraints, max_iter: int
) -> list[tuple[Note, type[Warning] | None]]:
    """Notes about the runs, each with the category of its warning, or None if it is not one."""
    n_runs = len(runs)
    n_capped = sum(not run.converged for run in runs)
    n_restarts = sum(run.n_restarts for run in runs)
    unsolved = [run for run in runs if run.status == "unsolved"]
    slack = [run for run in runs if run.status == "slack"]
    described: list[tuple[Note, type[Warning] | None]] = []
    if n_capped:
        message = (
            f"{n_capped} of {n_runs} runs stopped at max_iter={max_iter} before they converged: "
            "raise max_iter or tol."
        )
        described.append((Note("mixture", "runs", message), MixtureConvergenceWarning))
    if n_restarts:
        message = (
            "1 start had no solution and was replaced by a new one."
            if n_restarts == 1
            else f"{n_restarts} starts had no solution and were replaced by new ones."
        )
        described.append((Note("link", "runs", message), None))
    if slack:
        most = max(run.reachable[1] for run in slack)
        message = (
            f"In {len(slack)} of {n_runs} runs P(gamma >= {constraints.high_gamma}) is at most "
            f"{most:.3g}, below p_high={constraints.p_high}: these runs use delta = 0."
        )
        described.append((Note("link", "p_high", message), None))
    if unsolved:
        cause = _explain_unsolved(unsolved, constraints)
        if len(unsolved) < n_runs:
            excluded = "have no solution and are excluded from the posterior"
            message = f"{len(unsolved)} of {n_runs} runs {excluded}: {cause}"
            described.append((Note("link", "runs", message), UnsolvedRunsWarning))
        else:
            result = "The result is the point mass at 0 that the paper prescribes."
            message = f"No solution in any of {n_runs} runs: {cause} {result}"
            described.append((Note("link", "runs", message), NoSolutionWarning))
    return described


def _explain_unsolved(unsolved: list[Run], constraints: Constraints) -> str:
    """Why there is no solution, and what to change."""
    low = min(run.reachable[0] for run in unsolved)
    high = max(run.reachable[1] for run in unsolved)
    cause = (
        f"their mixtures allow {low:.3g} to {high:.3g} for P(gamma >= {constraints.high_gamma}), "
        f"but p_high is {constraints.p_high}."
    )
    if all(run.first_share >= constraints.max_gamma for run in unsolved):
        return (
            f"{cause} Their most anomalous component alone contains at least max_gamma="
            f"{constraints.max_gamma} of the rows: raise max_gamma, or check for duplicate rows."
        )
    return f"{cause} Raise p_high or high_gamma, or check for duplicate rows."
