"""Labels of a few rows -> a ranking of all rows, blended with the consensus of the detectors.

Extra trees learn from the known rows; their inputs are the scores of the detectors, the consensus
and the columns of the table. The rarer kind of label limits what can be learned: with m labels of
that kind, the trees have the weight m / (m + 1) and the consensus 1 / (m + 1). So the consensus
counts as much as one labelled anomaly, and labels of one kind leave it as it is.

Each tree learns from a random sample of the known rows. A known row is judged by the trees whose
sample it is not in, so its own label has no part in that ("out of bag").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.label_error import NO_ERROR, p_anomaly, without_errors

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier

__all__ = ["Inputs", "LearnedRanking", "Learning", "RankingCheck", "learn_ranking"]

Array = NDArray[np.float64]
Labels = NDArray[np.int_]

BLOCK_ROWS = 50_000
"""Rows whose inputs are put together at a time."""
LARGEST = 1e30
"""Limit of inputs: the trees work in single precision."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the trees learn from: `space` (n, M), `consensus` (n,) and `columns` (n, d) or None."""

    space: Array
    consensus: Array
    columns: Array | None

    def __len__(self) -> int:
        return len(self.consensus)

    def __getitem__(self, rows: NDArray[np.int_] | slice) -> Inputs:
        columns = None if self.columns is None else self.columns[rows]
        return Inputs(self.space[rows], self.consensus[rows], columns)

    def __add__(self, other: Inputs) -> Inputs:
        space = np.concatenate([self.space, other.space])
        consensus = np.concatenate([self.consensus, other.consensus])
        if self.columns is None or other.columns is None:
            return Inputs(space, consensus, None)
        return Inputs(space, consensus, np.concatenate([self.columns, other.columns]))

    def blocks(self) -> Iterator[Inputs]:
        """These rows, `BLOCK_ROWS` at a time."""
        for first in range(0, len(self), BLOCK_ROWS):
            yield self[first : first + BLOCK_ROWS]

    def matrix(self) -> NDArray[np.float32]:
        """All of it in one matrix, in single precision."""
        parts = [self.space, self.consensus[:, None]]
        parts += [] if self.columns is None else [self.columns]
        return np.clip(np.hstack(parts), -LARGEST, LARGEST).astype(np.float32)


@dataclass(frozen=True)
class Standard:
    """Mean and standard deviation with which values are standardised."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Array) -> Standard:
        """Those of `values`."""
        return cls(float(values.mean()), float(values.std()))

    def __call__(self, values: Array) -> Array:
        # Equal values have a deviation of rounding errors.
        is_constant = self.deviation <= 1e-12 * max(abs(self.mean), 1.0)
        return (values - self.mean) / (1.0 if is_constant else self.deviation)


@dataclass(frozen=True, eq=False)
class LearnedRanking:
    """Scores of rows by trees and consensus; a higher score is more anomalous.

    Attributes
    ----------
    trees : sklearn.ensemble.ExtraTreesClassifier
        The trees, which learned from the known rows.
    weight : float
        Weight of the trees; that of the consensus is 1 - weight.
    of_trees, of_consensus : Standard
        Mean and deviation of the trees' votes over the training rows without labels, and of the
        consensus over all training rows.
    """

    trees: ExtraTreesClassifier
    weight: float
    of_trees: Standard
    of_consensus: Standard

    def scores(self, inputs: Inputs) -> Array:
        """Score (n,) of each row."""
        return self.blend(_votes(self.trees, inputs), inputs.consensus)

    def blend(self, votes: Array, consensus: Array) -> Array:
        """Score (n,) of rows with these `votes` of the trees."""
        learned = self.weight * self.of_trees(votes)
        return learned + (1.0 - self.weight) * self.of_consensus(consensus)


@dataclass(frozen=True)
class RankingCheck:
    """How well the consensus and the learned ranking order the known rows chosen at random.

    Each of them is ranked by the trees that did not learn from it.

    Attributes
    ----------
    n_anomalies : int
        Number of anomalies among these rows.
    n_normal : int
        Number of normal rows among these rows.
    auc_consensus : float
        Area under the ROC curve of the consensus: the probability that an anomaly ranks above a
        normal row.
    auc_learned : float
        The same area for the learned ranking.
    standard_error : float
        Standard error of their difference (DeLong et al., 1988).
    """

    n_anomalies: int
    n_normal: int
    auc_consensus: float
    auc_learned: float
    standard_error: float

    @property
    def gain(self) -> float:
        """How much larger the area is for the learned ranking."""
        return self.auc_learned - self.auc_consensus

    @property
    def is_worse(self) -> bool:
        """Whether the learned ranking is worse by more than the standard error."""
        return self.gain < -self.standard_error


@dataclass(frozen=True, eq=False)
class Learning:
    """What the labels taught about the ranking.

    Attributes
    ----------
    ranking : object or None
        The ranking to use; None if the consensus stays, because all labels are of one kind or
        because the learned ranking is worse on the known rows.
    check : RankingCheck or None
        How it compares with the consensus; None if fewer than two rows of one kind were chosen at
        random.
    scores : ndarray of shape (n_rows,)
        Scores of the training rows by the ranking in use.
    honest_scores : ndarray of shape (n_rows,)
        The same for rows without labels; a known row has the score without what was learned from
        its own label.
    """

    ranking: LearnedRanking | None
    check: RankingCheck | None
    scores: Array
    honest_scores: Array


def learn_ranking(
    inputs: Inputs,
    known: KnownRows,
    seed: int,
    n_sampled: int | None = None,
    error: tuple[float, float] = NO_ERROR,
) -> Learning:
    """What the labels of the rows `known` teach; `inputs` are those of all rows that are held.

    The first `n_sampled` of them, or all, are the training rows. `error` has the probability that a
    normal row is labelled an anomaly, and that an anomaly is labelled normal.
    """
    consensus, labels = inputs.consensus, known.labels
    if len(np.unique(labels)) < 2:
        return Learning(None, None, consensus, consensus)
    n_rarer = _n_right(labels, error)
    trees = _grow(inputs[known.rows], labels, seed)
    votes = _votes(trees, inputs)
    n_sampled = len(inputs) if n_sampled is None else n_sampled
    unknown = known.unknown(n_sampled)
    ranking = LearnedRanking(
        trees,
        weight=n_rarer / (n_rarer + 1),
        of_trees=Standard.of(votes[unknown] if len(unknown) else votes[:n_sampled]),
        of_consensus=Standard.of(consensus[:n_sampled]),
    )
    scores = ranking.blend(votes, consensus)
    honest_scores = scores.copy()
    honest_scores[known.rows] = ranking.blend(
        trees.oob_decision_function_[:, 1], consensus[known.rows]
    )
    check = _check(known, consensus, honest_scores)
    if check is not None and check.is_worse:
        return Learning(None, check, consensus, consensus)
    return Learning(ranking, check, scores, honest_scores)


def _n_right(labels: Labels, error: tuple[float, float]) -> float:
    """How many labels of the rarer kind are expected to be right."""
    share = np.full(len(labels), without_errors(float(labels.mean()), error))
    p = p_anomaly(share, labels, error)
    return float(min(p[labels == 1].sum(), (1.0 - p)[labels == 0].sum()))


def _check(known: KnownRows, consensus: Array, honest_scores: Array) -> RankingCheck | None:
    """Both rankings on the rows that were chosen at random; None if that says nothing."""
    drawn = known[known.at_random]
    if min(np.bincount(drawn.labels, minlength=2)) < 2:
        return None
    return _compare(drawn.labels, consensus[drawn.rows], honest_scores[drawn.rows])


def _grow(inputs: Inputs, labels: Labels, seed: int) -> ExtraTreesClassifier:
    """Trees that have learned from rows; each tree from a random sample with replacement."""
    from sklearn.ensemble import ExtraTreesClassifier

    trees = ExtraTreesClassifier(bootstrap=True, oob_score=True, random_state=seed)
    return trees.fit(inputs.matrix(), labels)


def _votes(trees: ExtraTreesClassifier, inputs: Inputs) -> Array:
    """Share of the votes for an anomaly, (n,)."""
    shares = [trees.predict_proba(block.matrix())[:, 1] for block in inputs.blocks()]
    return np.concatenate(shares)


def _compare(labels: Labels, consensus: Array, learned: Array) -> RankingCheck:
    """Areas under the ROC curves of both scores of the same rows, with DeLong's error.

    >>> check = _compare(np.array([0, 0, 1, 1]), np.array([1.0, 3, 2, 4]), np.array([1.0, 2, 3, 4]))
    >>> check.auc_consensus, check.auc_learned, round(check.standard_error, 3)
    (0.75, 1.0, 0.354)
    """
    before, after = _places(labels, consensus), _places(labels, learned)
    # The same rows in both: the error is that of the differences.
    differences = [new - old for old, new in zip(before, after, strict=True)]
    variance = sum(each.var(ddof=1) / len(each) for each in differences)
    return RankingCheck(
        n_anomalies=len(before[0]),
        n_normal=len(before[1]),
        auc_consensus=float(before[0].mean()),
        auc_learned=float(after[0].mean()),
        standard_error=float(np.sqrt(variance)),
    )


def _places(labels: Labels, scores: Array) -> tuple[Array, Array]:
    """Share of the rows of the other kind that each anomaly and each normal row ranks right to.

    The mean of either is the area under the ROC curve; equal scores count half. Midranks give the
    shares without a comparison of all pairs.
    """
    from scipy.stats import rankdata

    anomalies, normal = scores[labels == 1], scores[labels == 0]
    ranks = rankdata(np.append(anomalies, normal))
    n = len(anomalies)
    of_anomalies = (ranks[:n] - rankdata(anomalies)) / len(normal)
    of_normal = 1.0 - (ranks[n:] - rankdata(normal)) / n
    return of_anomalies, of_normal
