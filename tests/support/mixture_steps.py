"""The ascent of the mixtures, one iteration at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.mixture.backends import Rows
from gammagmm.mixture.fit import accelerated_step, begin, plain_step
from gammagmm.mixture.m_step import MStep, Parameters
from gammagmm.mixture.prior import ResolvedPrior

__all__ = ["iterate"]


def iterate(
    rows: Rows, start: NDArray[Any], prior: ResolvedPrior, n_iter: int, *, accelerated: bool = False
) -> Iterator[tuple[list[Parameters], NDArray[np.float64]]]:
    """The parameters of every run and its bound after each of `n_iter` iterations."""
    m_step = MStep(rows, prior)
    ascents, step = begin(rows, start, m_step), accelerated_step if accelerated else plain_step
    for _ in range(n_iter):
        ascents = step(ascents, m_step, 0.0)
        reached = m_step(ascents.reached)
        runs = range(len(start))
        yield [m_step.parameters(reached, run) for run in runs], ascents.elbo
