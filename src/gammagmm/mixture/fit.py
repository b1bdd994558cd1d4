"""Score space -> truncated Dirichlet-process Gaussian mixture, by variational inference."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gammagmm._support.processes import NEVER, Deadline
from gammagmm.errors import MixtureError
from gammagmm.mixture.backends import Rows, place_rows
from gammagmm.mixture.m_step import MStep, Parameters, State
from gammagmm.mixture.prior import ResolvedPrior
from gammagmm.mixture.statistics import start_moments

__all__ = [
    "Ascents",
    "Mixture",
    "accelerated_step",
    "ascend",
    "begin",
    "fit_mixtures",
    "plain_step",
    "start_labels",
    "start_rows",
]

Array = NDArray[np.float64]

START_ROWS = 200_000
"""Most rows that the k-means of a start is fitted to."""

CHECK_EVERY = 20
"""Number of iterations after which it is checked whether a run has a prospect.

A check takes as long as a few M-steps, and 20 iterations are a small part of those of a run.
"""

MIN_COUNT = 0.01
"""Expected number of rows below which a component of an accelerated run gets no rows any more.

A component that loses its rows keeps less than 0.001 of one, spread over the table; the others
have 0.1 rows and more.
"""

_ONE_FIT = threading.Lock()


@dataclass(frozen=True)
class Mixture(Parameters):
    """Fitted parameters, with the bound that was reached and the number of iterations."""

    elbo: float
    n_iter: int
    converged: bool


def fit_mixtures(
    spaces: Array,
    prior: ResolvedPrior,
    rngs: Sequence[np.random.Generator],
    n_components: int,
    max_iter: int,
    tol: float,
    *,
    accelerated: bool = False,
    doubts: Callable[[Parameters], int] | None = None,
    backend: str = "numpy",
    device: Any = None,
    deadline: Deadline = NEVER,
    n_threads: int = 1,
) -> Iterator[tuple[int, Mixture]]:
    """The number and the mixture of each run, as soon as it has settled; see `ascend`.

    Each is a truncated stick-breaking mixture of `spaces` (R, n, M), the rows of each run, or
    (1, n, M), those of all, and starts from one k-means with its own generator. With plain steps,
    the iterates equal those of scikit-learn's ``BayesianGaussianMixture`` with full covariances,
    unless the prior's scale matrix is singular and has to be regularised.
    """
    whitened = prior.whiten(spaces)
    labels = start_labels(spaces, n_components, rngs, deadline, n_threads)
    own = whitened if len(whitened) > 1 else [whitened[0]] * len(labels)
    starts = [start_moments(*each, n_components) for each in zip(own, labels, strict=True)]
    rows = place_rows(whitened, backend, device, n_threads)
    return ascend(
        rows,
        np.stack(starts),
        prior,
        max_iter,
        tol,
        accelerated=accelerated,
        doubts=doubts,
        deadline=deadline,
    )


def start_labels(
    spaces: Array,
    n_components: int,
    rngs: Sequence[np.random.Generator],
    deadline: Deadline = NEVER,
    n_threads: int = 1,
) -> list[NDArray[np.intp]]:
    """Clusters of the rows of several runs, each by one k-means with its own generator.

    `spaces` (R, n, M) holds the rows of each run, or (1, n, M) those of all. Raises
    `OutOfTimeError` if the `deadline` passes before a k-means starts; once started, it is not
    interrupted.
    """
    each = list(spaces) if len(spaces) > 1 else [spaces[0]] * len(rngs)
    # Each k-means sets and then restores the number of BLAS threads of the process: several at
    # the same time leave it alone if it is 1 for all of them, and if no other fit changes it.
    with (
        _ONE_FIT,
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(n_threads) as pool,
    ):
        cluster = partial(_cluster, n_components=n_components, deadline=deadline)
        return list(pool.map(cluster, each, rngs))


def _cluster(
    Z: Array, rng: np.random.Generator, n_components: int, deadline: Deadline
) -> NDArray[np.intp]:
    """Cluster of each row of `Z` (n, M) by scikit-learn's k-means, fitted once (n_init=1)."""
    from sklearn.cluster import KMeans

    Z = _comparable(Z)
    rows = start_rows(len(Z), rng)
    chosen = Z if rows is None else Z[rows]
    n_clusters = min(n_components, _count_distinct(chosen, n_components))
    seed = int(rng.integers(2**31 - 1))
    deadline.check()
    # One thread: otherwise the order in which threads add would decide ties between centres.
    with threadpool_limits(limits=1, user_api="openmp"):
        kmeans = KMeans(n_clusters, n_init=1, random_state=seed).fit(chosen)
        labels: NDArray[np.intp] = kmeans.labels_ if rows is None else kmeans.predict(Z)
    return labels


def start_rows(n_rows: int, rng: np.random.Generator) -> NDArray[np.intp] | None:
    """Indices of the rows that k-means is fitted to; None means all rows."""
    # Deviation D12: above START_ROWS rows, k-means is fitted to a random subset; the other rows are
    # assigned to the nearest centre.
    return None if n_rows <= START_ROWS else rng.choice(n_rows, START_ROWS, replace=False)


def _count_distinct(Z: Array, enough: int) -> int:
    """About how many rows of `Z` k-means can distinguish; counted up to `enough`, or a few more."""
    # k-means compares squared distances: it cannot distinguish rows closer than 1e-7 of the spread.
    spread = float(np.ptp(Z, axis=0).max())
    cells = np.round((Z - Z[0]) / spread, 7) if spread > 0.0 else np.zeros_like(Z[:1])
    few = len(np.unique(cells[: 4 * enough], axis=0))
    return few if few >= enough else len(np.unique(cells, axis=0))


def _comparable(Z: Array) -> Array:
    """`Z`, centred and scaled if squared differences between its rows would under- or overflow."""
    spread = float(np.ptp(Z, axis=0).max())
    return Z if 1e-100 < spread < 1e100 or spread == 0.0 else (Z - Z[0]) / spread


def ascend(
    rows: Rows,
    start: Array,
    prior: ResolvedPrior,
    max_iter: int,
    tol: float,
    *,
    accelerated: bool = False,
    doubts: Callable[[Parameters], int] | None = None,
    deadline: Deadline = NEVER,
) -> Iterator[tuple[int, Mixture]]:
    """The number and the mixture of each of R runs, as soon as its coordinate ascent has settled.

    `rows` and the moments `start` (R, K, n_features) belong to whitened rows; the mixtures are in
    the coordinates of the score space. A run has settled when one plain step, or two accelerated
    ones in a row, change its bound by less than `tol`. `doubts` counts the reasons why parameters
    have no prospect, every CHECK_EVERY iterations; a run ends, unconverged, when there are two at
    one check, or some at two checks in a row. Raises `OutOfTimeError` if the `deadline` passes.
    """
    m_step = MStep(rows, prior)
    step, n_enough = (accelerated_step, 2) if accelerated else (plain_step, 1)
    ascents = begin(rows, start, m_step)
    for n_iter in range(1, max_iter + 1):
        deadline.check()
        ascents = step(ascents, m_step, tol)
        is_settled = ascents.n_small >= n_enough
        is_done = is_settled | (n_iter == max_iter)
        is_checked = n_iter % CHECK_EVERY == 0
        if accelerated and is_checked:
            ascents = replace(ascents, is_used=ascents.reached[..., 0] > MIN_COUNT)
        if doubts is not None and is_checked:
            state = m_step(ascents.reached)
            found = np.zeros_like(ascents.n_doubts)
            for place in np.flatnonzero(~is_done).tolist():
                found[place] = doubts(m_step.parameters(state, place))
            ascents = replace(ascents, n_doubts=np.where(found > 0, ascents.n_doubts + found, 0))
            is_done |= ascents.n_doubts > 1
        if is_done.any():
            done = ascents.select(np.flatnonzero(is_done).tolist())
            reached = m_step(done.reached)
            elbo = done.entropy + rows.to_numpy(reached.bound)
            for place, run in enumerate(done.runs.tolist()):
                parameters = vars(m_step.parameters(reached, place))
                converged = bool(done.n_small[place] >= n_enough)
                yield (
                    run,
                    Mixture(**parameters, elbo=elbo[place], n_iter=n_iter, converged=converged),
                )
            if is_done.all():
                return
            ascents = ascents.select(np.flatnonzero(~is_done).tolist())


@dataclass(frozen=True)
class Ascents:
    """The coordinate ascents in progress, one for each run that has not settled."""

    runs: NDArray[np.intp]  # (R,) their numbers
    rows: Rows
    state: State  # the mixtures of the next E-step
    is_used: Any  # (R, K) whether the component gets rows in the next E-step
    reached: Any  # (R, K, n_features) moments that the best E-step gave
    entropy: Array  # (R,) of the best E-step
    elbo: Array  # (R,) the bound of the best E-step
    n_steps: Array  # (R,) accelerated steps since the last plain one
    n_small: NDArray[np.intp]  # (R,) steps in a row that changed the bound by less than tol
    n_doubts: NDArray[np.intp]  # (R,) at the last checks in a row that had some

    def select(self, places: list[int]) -> Ascents:
        """The ascents at these places."""
        return Ascents(
            runs=self.runs[places],
            rows=self.rows.select(places),
            state=self.state.select(places),
            is_used=self.is_used[places],
            reached=self.reached[places],
            entropy=self.entropy[places],
            elbo=self.elbo[places],
            n_steps=self.n_steps[places],
            n_small=self.n_small[places],
            n_doubts=self.n_doubts[places],
        )


def begin(rows: Rows, start: Array, m_step: MStep) -> Ascents:
    """The ascents from the moments `start` (R, K, n_features), before their first step."""
    n_runs, moments = len(start), rows.to_backend(start)
    return Ascents(
        runs=np.arange(n_runs),
        rows=rows,
        state=m_step(moments),
        is_used=moments[..., 0] > -1.0,
        reached=moments,
        entropy=np.zeros(n_runs),
        elbo=np.full(n_runs, -np.inf),
        n_steps=np.zeros(n_runs),
        n_small=np.zeros(n_runs, dtype=np.intp),
        n_doubts=np.zeros(n_runs, dtype=np.intp),
    )


def plain_step(ascents: Ascents, m_step: MStep, tol: float) -> Ascents:
    """One iteration of scikit-learn's: E-step, M-step, and the bound after both."""
    rows = ascents.rows
    statistics = rows.statistics(ascents.state.coefficients)
    state = m_step(statistics.moments)
    entropy, bound = map(rows.to_numpy, (statistics.entropy, state.bound))
    if np.isnan(entropy).any() and (careful := rows.careful()):
        return plain_step(replace(ascents, rows=careful), m_step, tol)
    elbo = _check_finite(entropy + bound)
    return replace(
        ascents,
        state=state,
        reached=statistics.moments,
        entropy=entropy,
        elbo=elbo,
        n_small=np.where(np.abs(elbo - ascents.elbo) < tol, ascents.n_small + 1, 0),
    )


def accelerated_step(ascents: Ascents, m_step: MStep, tol: float) -> Ascents:
    """One iteration with Nesterov's momentum, which is lost where it would lower the bound.

    A plain step goes on from the moments that the E-step gives. This one goes beyond them, in the
    direction from those of the E-step before; the further, the more steps succeeded in a row. If
    the bound falls, the run goes back to the moments of its best E-step, from where a plain step
    cannot lower it, apart from the effect of `reg_covar`. The bound is that of the E-step and of
    the parameters that it used.
    """
    rows, state, before = ascents.rows, ascents.state, ascents.reached
    statistics = rows.statistics(state.coefficients, ascents.is_used)
    log_norm = statistics.entropy + (state.coefficients * statistics.moments).sum((1, 2))
    elbo = rows.to_numpy(log_norm - state.divergence)
    if np.isnan(elbo).any() and (careful := rows.careful()):
        return accelerated_step(replace(ascents, rows=careful), m_step, tol)
    has_fallen = (ascents.n_steps > 0) & ~(elbo >= ascents.elbo)
    _check_finite(elbo[~has_fallen])
    is_small = np.abs(elbo - ascents.elbo) < tol
    # The first step has no direction: the start is no E-step.
    n_steps = np.where(has_fallen | np.isinf(ascents.elbo), 0, ascents.n_steps + 1)
    momentum = rows.to_backend(n_steps / (n_steps + 3.0))[:, None, None]
    is_back = rows.to_backend(has_fallen)[:, None, None]
    reached = rows.xp.where(is_back, before, statistics.moments)
    further = rows.xp.where(is_back, before, reached + momentum * (reached - before))
    return replace(
        ascents,
        state=m_step.nearest(further, reached),
        reached=reached,
        entropy=np.where(has_fallen, ascents.entropy, rows.to_numpy(statistics.entropy)),
        elbo=np.where(has_fallen, ascents.elbo, elbo),
        n_steps=n_steps,
        n_small=np.where(has_fallen, ascents.n_small, np.where(is_small, ascents.n_small + 1, 0)),
    )


def _check_finite(elbo: Array) -> Array:
    if not np.isfinite(elbo).all():
        raise MixtureError(
            "The mixture's bound is not finite", "Scale the columns to similar ranges."
        )
    return elbo
