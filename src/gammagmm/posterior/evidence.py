"""What speaks for and against an estimate: separate rows, other answers, the track record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gammagmm._support.text import percent
from gammagmm.errors import Note
from gammagmm.posterior.assumptions import Assumption, find_assumptions
from gammagmm.posterior.gamma_posterior import GammaPosterior
from gammagmm.posterior.link import Constraints
from gammagmm.posterior.runs import Run, count_starts
from gammagmm.posterior.separate_rows import SeparateRows
from gammagmm.posterior.track_record import TrackRecord, load_track_record

__all__ = ["Evidence", "contradiction", "find_evidence"]


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """What speaks for and against an estimate without labels.

    The page "What the number means" of the documentation explains it.

    Attributes
    ----------
    separate_rows : SeparateRows or None
        The rows that are visibly separate from the rest; None if there are none.
    assumptions : tuple of Assumption
        The estimate under other answers to the paper's two questions, from the same mixtures.
    n_starts : int
        Number of starts of the variational runs.
    n_unsolved_starts : int
        Number of those that had no solution.
    track_record : TrackRecord
        How often model ranges contained the truth on labelled real tables.
    constraints : Constraints
        The answers that the fit used: its `p0`, `p_high`, `high_gamma` and `max_gamma`.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> from gammagmm.datasets import load_demo
    >>> estimator = GammaGMM(["KNN", "LOF", "HBOS"], n_runs=2, random_state=0)
    >>> estimator.fit(load_demo().X).evidence_
    Evidence(other answers give 0.092 to 0.176, 2 of 4 starts unsolved, no separate rows)
    """

    separate_rows: SeparateRows | None
    assumptions: tuple[Assumption, ...]
    n_starts: int
    n_unsolved_starts: int
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
        starts = f"{self.n_unsolved_starts} of {self.n_starts} starts unsolved"
        return f"Evidence({others}, {starts}, {separate})"

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import evidence_html

        return evidence_html(self)


def find_evidence(
    runs: Sequence[Run],
    constraints: Constraints,
    separate_rows: SeparateRows | None,
    rng: np.random.Generator,
) -> Evidence:
    """The evidence for and against the estimate of the `runs`."""
    assumptions = find_assumptions(runs, constraints, rng)
    return Evidence(
        separate_rows, assumptions, *count_starts(runs), load_track_record(), constraints
    )


def contradiction(separate: SeparateRows | None, posterior: GammaPosterior) -> Note | None:
    """A note if the range of the `posterior` excludes some of the separate rows, or there is none.

    A share below the range is no contradiction: anomalies need not be separate from the rest.
    """
    if separate is None:
        return None
    found = {"n_rows": separate.n_rows, "share": separate.share}
    if not posterior.has_estimate:
        return Note.of("evidence.no estimate", "separate rows", **found)
    _, high = posterior.interval()
    if separate.share <= high:
        return None
    return Note.of("evidence.separate rows", "separate rows", **found, high=high)
