"""Estimates of gamma: PyThresh's, and gammaGMM's with one of its parts changed."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from gammagmm import GammaPosterior
from gammagmm.draws import AveragedConditionals, anomalousness, draw_parameters
from gammagmm.link import Constraints, conditional_probabilities, solve_link
from gammagmm.ordering import Components
from gammagmm.posterior import combine_runs, run_posterior
from gammagmm.runs import Run

N_DRAWS = 1000


def thresholder_shares(name: str, Z: np.ndarray, joint: bool, seed: int) -> list[float]:
    """Share of rows that PyThresh's `name` flags, for each column of `Z` (n, M) or for all."""
    cls = getattr(import_module(f"pythresh.thresholds.{name.lower()}"), name)
    seeded = {"random_state": seed} if "random_state" in inspect.signature(cls).parameters else {}
    columns = [Z] if joint else [column.copy() for column in Z.T]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: division by zero, deprecations
        return [float(np.mean(cls(**seeded).eval(scores))) for scores in columns]


@dataclass(frozen=True)
class Drawn:
    """A run's components with draws of each one's r, to be used again for every change."""

    components: Components
    r: np.ndarray  # (K, N_DRAWS)

    def by_mean(self, means: np.ndarray) -> Drawn:
        """The same with r the components' mean alone, not divided by 1 + sigma."""
        found = replace(self.components, anomalousness=self.components.means.mean(axis=1))
        order = np.argsort(-found.anomalousness, kind="stable")
        return Drawn(found[order], means[order])


def draw_runs(runs: tuple[Run, ...], seed: int) -> tuple[list[Drawn], list[Drawn]]:
    """Every run's draws, and the same by the components' means alone."""
    drawn, by_mean = [], []
    for run, rng in zip(runs, np.random.default_rng(seed).spawn(len(runs)), strict=True):
        means, variances = draw_parameters(run.components, N_DRAWS, rng)
        drawn.append(Drawn(run.components, anomalousness(means, variances)))
        by_mean.append(drawn[-1].by_mean(means.mean(axis=-1)))
    return drawn, by_mean


def answer(drawn: list[Drawn], constraints: Constraints, plug_in: bool = False) -> dict:
    """The posterior of the same mixtures under `constraints`, and how many have no solution.

    With `plug_in` the conditionals are taken at E[r] instead of averaged over the draws.
    """
    posteriors = []
    for run in drawn:
        link = solve_link(run.components, constraints)
        if link.status != "unsolved":
            r = run.components.anomalousness[:, None] if plug_in else run.r
            conditionals = conditional_probabilities(r[: link.n_candidates], link.tau, link.delta)
            error = conditionals.var(axis=1) / N_DRAWS
            averaged = AveragedConditionals(conditionals.mean(axis=1), error)
            posteriors.append(run_posterior(run.components, averaged, constraints.p0))
    return {"posterior": combine_runs(posteriors), "n_unsolved": len(drawn) - len(posteriors)}


def single_runs(runs: tuple[Run, ...]) -> list[GammaPosterior]:
    """Each solved run's own posterior: what one run instead of ten would have said."""
    return [run.posterior for run in runs if run.posterior is not None]
