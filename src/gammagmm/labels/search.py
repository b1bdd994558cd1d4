"""Two rankings of the rows -> the rows to look at next, to find anomalies.

A ranking that was learned from a few labels can put one kind of anomalies first, and all others
last. So a search has the consensus of the detectors beside it. If `k` of the `n` rows to which a
ranking has led so far were anomalies, and if its next row is an anomaly with the calibrated
probability `p`, its rate is

    (2 p + k) / (2 + n),

the mean of the posterior whose prior is Beta(2 p, 2 (1 - p)), which weighs as much as Beta(1, 1).
The rows come from what was learned, unless its rate is below its own `p` and below the rate of the
consensus. If the consensus has led to no anomaly, its first row alone is looked at then, and so is
the first row of a ranking that has led to no row yet. The `p` of what was learned is at least that
of the consensus.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm.labels.suggestions import by_falling_score

if TYPE_CHECKING:
    from gammagmm.labels.labelled_rows import LabelledRows

__all__ = ["Candidates", "next_rows", "rows_to_find"]

Rows = NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The `rows` without a label in the order of a ranking, and what it has led to so far."""

    rows: Rows
    p_next: float  # probability of the first of them
    n_looked: int  # rows that this ranking would have chosen
    n_found: int  # the anomalies among those

    @property
    def rate(self) -> float:
        """Expected share of anomalies among the next rows."""
        return (2.0 * self.p_next + self.n_found) / (2.0 + self.n_looked)


def rows_to_find(rows: LabelledRows, unknown: Rows, n: int, rng: np.random.Generator) -> Rows:
    """`n` of the rows `unknown`, which have no label, to look at next."""
    ranked = by_falling_score(unknown, rows.scores[unknown], rng)
    if rows.consensus is None or rows.honest_scores is None:
        return ranked[:n]
    detectors = replace(rows, scores=rows.consensus, honest_scores=None, consensus=None)
    alone = by_falling_score(unknown, rows.consensus[unknown], rng)
    # Rows that a ranking has led to come before all others without a label. A row that is not of
    # the consensus was chosen by what had been learned then.
    picked = rows.known_rows[rows.known_rows.picked]
    of_consensus = rows.consensus[picked.rows] >= rows.consensus[alone[0]]
    of_learned = ~of_consensus | (rows.honest_scores[picked.rows] >= rows.scores[ranked[0]])
    consensus = _candidates(detectors, alone, picked.labels[of_consensus])
    learned = _candidates(rows, ranked, picked.labels[of_learned])
    learned = replace(learned, p_next=max(learned.p_next, consensus.p_next))
    return next_rows(learned, consensus)[:n]


def _candidates(rows: LabelledRows, ranked: Rows, labels: Rows) -> Candidates:
    """Those of a ranking that has led to rows with these `labels`."""
    (p_next,) = rows.calibration(rows.scores[ranked[:1]]).tolist()
    return Candidates(ranked, p_next, len(labels), int(labels.sum()))


def next_rows(learned: Candidates, consensus: Candidates) -> Rows:
    """All rows without a label in the order in which to look at them.

    >>> learned = Candidates(np.array([1, 2, 3, 4]), p_next=0.4, n_looked=10, n_found=1)
    >>> consensus = Candidates(np.array([4, 3, 2, 1]), p_next=0.2, n_looked=1, n_found=1)
    >>> next_rows(learned, consensus).tolist()
    [4, 3, 2, 1]
    """
    is_better = consensus.rate > learned.rate < learned.p_next
    leading = consensus if is_better and consensus.n_found else learned
    of_learned = learned.rows[: int(learned.n_looked == 0)]
    of_consensus = consensus.rows[: int(is_better or consensus.n_looked == 0)]
    joined = np.concatenate([of_learned, of_consensus, leading.rows])
    _, first = np.unique(joined, return_index=True)
    return joined[np.sort(first)]
