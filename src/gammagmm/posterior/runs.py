"""Score space -> variational runs, each from mixture to its own posterior, with restarts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.processes import NEVER, Deadline, OutOfTimeError
from gammagmm._support.progress import Progress, quiet
from gammagmm.errors import Note
from gammagmm.mixture.backends import count_threads
from gammagmm.mixture.fit import START_ROWS, Mixture, fit_mixtures
from gammagmm.mixture.m_step import Parameters
from gammagmm.mixture.prior import ResolvedPrior
from gammagmm.posterior.components import Components, order_components
from gammagmm.posterior.gamma_posterior import GammaPosterior, run_posterior
from gammagmm.posterior.link import Constraints, average_conditionals, solve_link

__all__ = [
    "AUTO_TOL",
    "Run",
    "RunSettings",
    "choose_rows",
    "count_doubts",
    "count_starts",
    "first_solved",
    "fit_runs",
    "make_run",
    "plan_runs",
    "solved_posteriors",
]

Array = NDArray[np.float64]

AUTO_TOL = 0.4
"""Change of the bound below which an accelerated run has settled.

The posterior mean then differs from that of plain steps with a tolerance of 0.001 by as much as
between two seeds: experiments/results/tables/settings.csv, benchmarks/results/answers.json.
"""
MAX_RESTARTS = 100
"""What ``max_restarts="auto"`` means as long as no run has a solution; else, as many as runs."""


@dataclass(frozen=True)
class RunSettings:
    """The settings that all runs of a fit share."""

    constraints: Constraints
    prior: ResolvedPrior
    n_components: int = 100
    n_draws: int = 1000
    max_iter: int = 1500
    tol: float = AUTO_TOL
    accelerated: bool = True
    max_rows: int | None = None  # most rows of a run; None: any number
    backend: str = "numpy"
    device: Any = None
    progress: Progress = quiet
    deadline: Deadline = NEVER


@dataclass(frozen=True)
class Run:
    """The result of one variational run.

    Attributes
    ----------
    components : object
        Active components, most anomalous first; an internal part.
    tau : float
        Intercept of the sigmoid 1 / (1 + exp(tau + delta . r)) of the anomalousness r of a
        component; NaN if the run is unsolved.
    delta : float
        Slope of the sigmoid; NaN if the run is unsolved.
    status : "solved" or "slack" or "unsolved"
        "slack" if `p_high` is above the `reachable` range, so that it does not bind; "unsolved" if
        it is below that range, or if no component can be anomalous.
    reachable : tuple of two floats
        The smallest and the largest P(gamma >= high_gamma) that this mixture allows.
    reached : float
        P(gamma >= high_gamma) of this run's posterior, to compare with `p_high`.
    weights : ndarray of shape (n_candidates,)
        P(exactly the k most anomalous components are anomalous), given at least one.
    elbo : float
        The bound.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the bound converged.
    n_restarts : int, default=0
        Number of earlier starts of this run that had no solution.
    posterior : GammaPosterior or None, default=None
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
    def mean(self) -> float:
        """Mean of this run's posterior; NaN if the run is unsolved."""
        return np.nan if self.posterior is None else self.posterior.mean

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


def plan_runs(
    n_rows: int,
    prior: ResolvedPrior,
    constraints: Constraints,
    n_components: int = 100,
    **options: Any,
) -> tuple[RunSettings, list[Note]]:
    """Settings for a score space of `n_rows` rows, and a note for each that was changed."""
    settings = RunSettings(constraints, prior, n_components, **options)
    notes = []
    n_seen = n_rows if settings.max_rows is None else min(n_rows, settings.max_rows)
    if n_seen < n_rows:
        notes.append(Note.of("mixture.sampled", "max_mixture_rows", n_seen=n_seen, n_rows=n_rows))
    if n_seen < n_components:
        settings = replace(settings, n_components=n_seen - 1)
        have = "there are" if n_seen == n_rows else "each run has"
        sizes = {"before": n_components, "after": n_seen - 1, "have": have, "n_seen": n_seen}
        notes.append(Note.of("mixture.components", "n_components", **sizes))
    if prior.is_regularised:
        reg_covar = prior.reg_covar
        notes.append(Note.of("mixture.regularised", "mixture_prior", reg_covar=reg_covar))
    if n_seen > START_ROWS:
        notes.append(Note.of("mixture.start", "start", n_rows=START_ROWS))
    return settings, notes


def choose_rows(
    n_rows: int, max_rows: int | None, streams: Sequence[np.random.Generator]
) -> NDArray[np.intp] | None:
    """Numbers (n_runs, max_rows) of the rows that each run is fitted to; None means all rows.

    Each run draws them from its own stream.
    """
    if max_rows is None or n_rows <= max_rows:
        return None
    # Deviation D15: the paper fits every run to all rows.
    drawn = [stream.spawn(1)[0].choice(n_rows, max_rows, replace=False) for stream in streams]
    return np.sort(drawn, axis=1)


def fit_runs(
    Z: Array,
    settings: RunSettings,
    budget: tuple[int, int | None],
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[Run, ...]:
    """The runs of a fit to the score space `Z` (n, M); `budget` is (n_runs, max_restarts).

    None for `max_restarts` stands for "auto".
    """
    streams = rng.spawn(budget[0])
    rows = choose_rows(len(Z), settings.max_rows, streams)
    return _fit_spaces(Z[None] if rows is None else Z[rows], settings, budget[1], streams, n_jobs)


def _fit_spaces(
    spaces: Array,
    settings: RunSettings,
    max_restarts: int | None,
    streams: Sequence[np.random.Generator],
    n_jobs: int | None = None,
) -> tuple[Run, ...]:
    """A run from each random stream; an unsolved run is restarted while restarts are left.

    `spaces` (n_runs, n, M) holds the rows of each run, or (1, n, M) those of all. The progress
    callback of the settings is called when a run ends and when it is restarted. If the deadline of
    the settings passes, the runs that have finished are returned. The result does not depend on
    `n_jobs`, because each start has its own generator.
    """
    # Deviation D9: the published script refits the detectors as well.
    fit = partial(_fit_starts, spaces, n_threads=count_threads(n_jobs))
    found = dict(enumerate(fit(settings, [Start(i, one, 0) for i, one in enumerate(streams)])))
    runs = {i: run for i, run in found.items() if run is not None}
    while not settings.deadline.is_over:
        unsolved = unsolved_runs(runs, max_restarts)
        if not unsolved:
            break
        for i in unsolved:
            settings.progress(f"run {i + 1}", "started", 0.0)
        starts = [Start(i, streams[i], runs[i].n_restarts + 1) for i in unsolved]
        again = fit(settings, starts)
        runs |= {i: run for i, run in zip(unsolved, again, strict=True) if run is not None}
    return tuple(runs.values())


def unsolved_runs(runs: Mapping[int, Run], max_restarts: int | None) -> list[int]:
    """The runs that are started again: those without a solution, while restarts are left."""
    unsolved = [i for i, run in runs.items() if run.status == "unsolved"]
    if max_restarts is None:
        max_restarts = len(runs) if len(unsolved) < len(runs) else MAX_RESTARTS
    n_restarts = sum(run.n_restarts for run in runs.values())
    return unsolved[: max(max_restarts - n_restarts, 0)]


def count_doubts(constraints: Constraints, parameters: Parameters) -> int:
    """Whether the most anomalous component is too large for the run to have a solution: 0, 1 or 2.

    A run has none if that component alone makes gamma >= high_gamma too probable, and has no
    candidates from max_gamma on. One above the middle of both while the run is in progress is a
    doubt; one above max_gamma is two. Two doubts in a row end the run: 4 of 333 solutions are lost
    in benchmarks/results/heavy_starts.json.
    """
    middle = 0.5 * (constraints.high_gamma + constraints.max_gamma)
    counts = parameters.weight_concentration[0]
    if counts.max() <= middle * counts.sum():
        return 0
    alpha = order_components(parameters).alpha
    share = alpha[0] / alpha.sum()
    return int(share > middle) + int(share > constraints.max_gamma)


class Start(NamedTuple):
    """A start of a run: its number, its random stream, and how many earlier starts it had."""

    run: int
    stream: np.random.Generator
    n_restarts: int


def _fit_starts(
    spaces: Array, settings: RunSettings, starts: list[Start], n_threads: int
) -> list[Run | None]:
    """A run from each start; None for a run that the deadline interrupted."""
    has_all = len(spaces) in (1, len(starts))
    Z = spaces if has_all else spaces[[start.run for start in starts]]
    rngs = [start.stream.spawn(1)[0].spawn(2) for start in starts]
    doubts = partial(count_doubts, settings.constraints) if settings.accelerated else None
    began, made, told = time.perf_counter(), dict[int, Future[Run]](), set[int]()

    def tell_made() -> None:
        for place in made.keys() - told:
            status = made[place].result().status
            told.add(place)
            seconds = time.perf_counter() - began
            settings.progress(f"run {starts[place].run + 1}", status, seconds)

    with ThreadPoolExecutor(n_threads) as pool:
        with suppress(OutOfTimeError):
            for place, mixture in fit_mixtures(
                Z,
                settings.prior,
                [start for start, _ in rngs],
                settings.n_components,
                settings.max_iter,
                settings.tol,
                accelerated=settings.accelerated,
                doubts=doubts,
                backend=settings.backend,
                device=settings.device,
                deadline=settings.deadline,
                n_threads=n_threads,
            ):
                tell_made()  # those before this one: they were made while it settled
                n_restarts = starts[place].n_restarts
                made[place] = pool.submit(make_run, mixture, settings, rngs[place][1], n_restarts)
        tell_made()
    return [made[place].result() if place in made else None for place in range(len(starts))]


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


def count_starts(runs: Sequence[Run]) -> tuple[int, int]:
    """How many starts the runs had, and how many of these had no solution."""
    n_restarts = sum(run.n_restarts for run in runs)
    return n_restarts + len(runs), n_restarts + sum(run.status == "unsolved" for run in runs)


def solved_posteriors(runs: Sequence[Run]) -> list[GammaPosterior]:
    """The posteriors of the solved runs."""
    return [run.posterior for run in runs if run.posterior is not None]


def first_solved(runs: Sequence[Run]) -> Run:
    """The first run that has a posterior, or the first run if none has."""
    return next((run for run in runs if run.posterior is not None), runs[0])
