"""Fitted runs -> the estimate under other answers to the paper's two questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.text import percent
from gammagmm.posterior.components import Components
from gammagmm.posterior.gamma_posterior import GammaPosterior, combine_runs, run_posterior
from gammagmm.posterior.link import (
    AveragedConditionals,
    Constraints,
    anomalousness,
    conditional_probabilities,
    count_candidates,
    draw_parameters,
    solve_link,
)
from gammagmm.posterior.runs import Run

__all__ = [
    "N_DRAWS",
    "Assumption",
    "DrawnRun",
    "draw_runs",
    "find_assumptions",
    "other_answers",
    "relink",
]

Array = NDArray[np.float64]

FACTOR = 10.0
"""How many times as likely, or as unlikely, the other answers hold something."""
N_DRAWS = 1000
"""Draws of each component's r."""
N_FEW_DRAWS = 200
"""Draws for the other answers: their error is small beside the effect of another answer."""
MAX_GAMMA = 0.5
"""The largest `max_gamma` that `Constraints` allows."""


@dataclass(frozen=True)
class DrawnRun:
    """The components of a run with draws of r, to be used with any constraints.

    Only the first components have draws: those that can be candidates.
    """

    components: Components
    r: Array  # (n_drawn, n_draws)


def draw_runs(
    runs: Sequence[Run],
    rng: np.random.Generator,
    max_gamma: float = MAX_GAMMA,
    n_draws: int = N_DRAWS,
) -> list[DrawnRun]:
    """The components of each run, with `n_draws` draws of r.

    The draws serve all constraints whose `max_gamma` is at most this one.
    """
    drawn = []
    for run, child in zip(runs, rng.spawn(len(runs)), strict=True):
        candidates = run.components[slice(0, count_candidates(run.components, max_gamma))]
        r = anomalousness(*draw_parameters(candidates, n_draws, child))
        drawn.append(DrawnRun(run.components, r))
    return drawn


def relink(drawn: Sequence[DrawnRun], constraints: Constraints) -> tuple[GammaPosterior, int]:
    """The posterior of the same mixtures under `constraints`, and how many have no solution.

    Nothing is refitted. `constraints.max_gamma` is at most that of the draws.
    """
    posteriors = []
    for run in drawn:
        link = solve_link(run.components, constraints)
        if link.n_candidates > len(run.r):
            raise ValueError(f"The draws do not reach max_gamma={constraints.max_gamma}.")
        if link.status != "unsolved":
            r = run.r[: link.n_candidates]
            conditionals = conditional_probabilities(r, link.tau, link.delta)
            error = conditionals.var(axis=1) / conditionals.shape[1]
            averaged = AveragedConditionals(conditionals.mean(axis=1), error)
            posteriors.append(run_posterior(run.components, averaged, constraints.p0))
    return combine_runs(posteriors), len(drawn) - len(posteriors)


@dataclass(frozen=True)
class Assumption:
    """The estimate under another answer to one of the two questions.

    Attributes
    ----------
    changed : tuple of str
        The parameters that differ from those of the fit.
    p0 : float
        Prior probability that there are no anomalies.
    p_high : float
        Prior probability that the share of anomalies is at least `high_gamma`.
    high_gamma : float
        The share of anomalies that counts as high.
    max_gamma : float
        Bound on the expected total weight of the components that may be anomalous.
    mean : float
        Posterior mean of the same mixtures under these answers; NaN if no mixture agrees with them.
    """

    changed: tuple[str, ...]
    p0: float
    p_high: float
    high_gamma: float
    max_gamma: float
    mean: float

    @property
    def words(self) -> str:
        """The parameters that differ, with their values."""
        return ", ".join(f"{name} = {percent(getattr(self, name))}" for name in self.changed)


def find_assumptions(
    runs: Sequence[Run], constraints: Constraints, rng: np.random.Generator
) -> tuple[Assumption, ...]:
    """The posterior mean under each of `other_answers`; nothing is refitted."""
    others = other_answers(constraints)
    drawn = draw_runs(runs, rng, max(other.max_gamma for other in others), N_FEW_DRAWS)
    return tuple(_assumption(constraints, other, drawn) for other in others)


def other_answers(constraints: Constraints) -> list[Constraints]:
    """What another user could have answered.

    No anomalies ten times as likely; a high share ten times as likely, and ten times less; and
    twice the share that counts as high, with twice the bound on the share.
    """
    max_gamma = min(2.0 * constraints.max_gamma, 0.5)
    high_gamma = min(2.0 * constraints.high_gamma, 0.5 * (constraints.high_gamma + max_gamma))
    return [
        replace(constraints, p0=_more_likely(constraints.p0)),
        replace(constraints, p_high=constraints.p_high / FACTOR),
        replace(constraints, p_high=_more_likely(constraints.p_high)),
        replace(constraints, high_gamma=high_gamma, max_gamma=max_gamma),
    ]


def _more_likely(p: float) -> float:
    """`p` times `FACTOR`, or halfway to 1 where that is less."""
    return min(FACTOR * p, 0.5 * (1.0 + p))


def _assumption(given: Constraints, other: Constraints, drawn: Sequence[DrawnRun]) -> Assumption:
    posterior, _ = relink(drawn, other)
    answers = vars(other)
    changed = tuple(name for name in answers if answers[name] != getattr(given, name))
    mean = np.nan if posterior.is_degenerate else posterior.mean
    return Assumption(changed, **answers, mean=mean)
