"""Fitted runs -> the same runs with one part of the method changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gammagmm.posterior.link import draw_parameters
from gammagmm.posterior.runs import Run
from gammagmm.posterior.sensitivity import N_DRAWS, DrawnRun


def ordered_by_mean(runs: Sequence[Run], rng: np.random.Generator) -> list[DrawnRun]:
    """The runs with r the mean of a component alone, for the order and for the draws."""
    changed = []
    for run, child in zip(runs, rng.spawn(len(runs)), strict=True):
        means, _ = draw_parameters(run.components, N_DRAWS, child)
        r = run.components.means.mean(axis=1)
        order = np.argsort(-r, kind="stable")
        components = replace(run.components, anomalousness=r)[order]
        changed.append(DrawnRun(components, means.mean(axis=-1)[order]))
    return changed


def at_expected_values(drawn: Sequence[DrawnRun]) -> list[DrawnRun]:
    """The runs with the conditionals taken at E[r] instead of averaged over draws of r."""
    return [DrawnRun(run.components, run.components.anomalousness[:, None]) for run in drawn]
