"""What an estimate rests on: separate rows, assumptions, and the method's track record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gammagmm._support.text import percent
from gammagmm.posterior.assumptions import Assumption, find_assumptions
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import Run
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.posterior.track_record import TrackRecord, load_track_record

__all__ = ["Evidence", "find_evidence"]

MAX_MOVE = 0.5
"""Posterior standard deviations by which another answer may move the mean of a "data" estimate."""


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """What an estimate without labels rests on.

    The page "What the number means" of the documentation explains it.

    Attributes
    ----------
    separate_rows : SeparateRows or None
        The rows that are visibly separate from the rest; None if there are none.
    assumptions : tuple of Assumption
        The estimate under other answers to the paper's two questions, from the same mixtures.
    rests_on : "data" or "assumptions"
        "assumptions" if one of these answers moves the mean, given that there are anomalies, by
        more than half a posterior standard deviation, or has no solution.
    track_record : TrackRecord
        How often intervals of this method contained the truth on labelled real tables.
    constraints : Constraints
        The answers that the fit used: its `p0`, `p_high`, `high_gamma` and `max_gamma`.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> estimator.fit(load_demo().X).evidence_
    Evidence(rests on assumptions, other answers give 0.093 to 0.176, no separate rows)
    """

    separate_rows: SeparateRows | None
    assumptions: tuple[Assumption, ...]
    rests_on: Literal["data", "assumptions"]
    track_record: TrackRecord
    constraints: Constraints

    @property
    def means(self) -> tuple[float, float]:
        """The smallest and the largest estimate under other answers; NaN if there is none."""
        means = [each.mean for each in self.assumptions if not np.isnan(each.mean)]
        return (min(means), max(means)) if means else (np.nan, np.nan)

    def without_rows(self) -> Evidence:
        """The evidence without the positions of the separate rows.

        Returns
        -------
        Evidence
            The same evidence, whose ``separate_rows.rows`` is None.
        """
        if self.separate_rows is None:
            return self
        return replace(self, separate_rows=replace(self.separate_rows, rows=None))

    def __repr__(self) -> str:
        separate = "no separate rows"
        if self.separate_rows is not None:
            share = percent(self.separate_rows.share)
            separate = f"{self.separate_rows.n_rows} separate rows ({share})"
        low, high = self.means
        others = f"other answers give {low:.3f} to {high:.3f}"
        if np.isnan(low):
            others = "other answers give no estimate"
        return f"Evidence(rests on {self.rests_on}, {others}, {separate})"


def find_evidence(
    runs: Sequence[Run],
    constraints: Constraints,
    posterior: GammaPosterior,
    separate_rows: SeparateRows | None,
    rng: np.random.Generator,
) -> Evidence:
    """What the `posterior` of the `runs` rests on."""
    assumptions, p0 = find_assumptions(runs, constraints, rng), posterior.prob_zero
    # The atom at 0 is p0 whatever the data are, so the distributions without it are compared.
    means = np.array([each.mean / (1.0 - each.p0) for each in assumptions])
    agree = False
    if not posterior.is_degenerate:
        given = replace(posterior, prob_zero=0.0, betas=posterior.betas.scale(1.0 / (1.0 - p0)))
        # A NaN, an answer without a solution, is not a small move.
        agree = bool((np.abs(means - given.mean) <= MAX_MOVE * given.std).all())
    rests_on: Literal["data", "assumptions"] = "data" if agree else "assumptions"
    return Evidence(separate_rows, assumptions, rests_on, load_track_record(), constraints)
