"""Counts of labelled rows -> how many anomalies are left, and a test of the recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm.labels.exact_interval import exact_interval, first_true
from gammagmm.labels.known_rows import check_labels

__all__ = [
    "AnomaliesLeft",
    "RecallCheck",
    "RecallResult",
    "anomalies_left",
    "n_to_certify",
]


@dataclass(frozen=True)
class AnomaliesLeft:
    """How many anomalies are left among the rows without a label, by the posterior of the share.

    Attributes
    ----------
    n_rows : int
        Number of rows without a label.
    n_found : int
        Number of anomalies among the rows with a label.
    mean : float
        Posterior mean of the number of anomalies among the rows without a label.
    low : float
        Lower end of the 90 % interval of this number.
    high : float
        Upper end of this interval.
    recall : float
        The share of all anomalies that is found, if `mean` are left; 1 if there is none.
    low_recall : float
        Lower end of the 90 % interval of this share.
    high_recall : float
        Upper end of this interval.
    """

    n_rows: int
    n_found: int
    mean: float
    low: float
    high: float
    recall: float
    low_recall: float
    high_recall: float


@dataclass(frozen=True)
class RecallResult:
    """What the labels of a `RecallCheck` show.

    Attributes
    ----------
    n_labels : int
        Number of fresh random rows that were looked at.
    n_anomalies : int
        Number of anomalies among them.
    most_left : int
        With the confidence of the check, at most so many anomalies are left in the other rows.
    recall : float
        With the same confidence, at least this share of all anomalies is found, with those of the
        check.
    is_certified : bool
        Whether this is at least the share that was asked for.
    """

    n_labels: int
    n_anomalies: int
    most_left: int
    recall: float
    is_certified: bool


@dataclass(frozen=True, eq=False)
class RecallCheck:
    """Fresh random rows whose labels show how many anomalies are left (elusion test).

    The rows are drawn at random from those without a label. The statement about the others has no
    assumption about the ranking, and it holds although one stopped looking for anomalies when it
    looked good: only the number of these rows must not depend on their labels.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Positions of the rows to label, all of them.
    n_rows : int
        Number of rows without a label, of which these are a random sample.
    n_found : int
        Number of anomalies found before.
    recall : float
        The share of all anomalies to certify.
    mass : float
        Confidence of the statement.
    """

    rows: NDArray[np.int_]
    n_rows: int
    n_found: int
    recall: float
    mass: float

    def result(self, labels: ArrayLike) -> RecallResult:
        """What the labels of the rows show.

        Parameters
        ----------
        labels : array-like of shape (n,)
            1 for an anomaly, 0 for a normal row, for all `rows`.

        Returns
        -------
        RecallResult
            How many anomalies are left at most, and the share that is found at least.
        """
        values, n = check_labels(labels), len(self.rows)
        if len(values) != n:
            raise ValueError(f"labels must have one value for each of the {n} rows of the check.")
        k = int(values.sum())
        most = exact_interval(self.n_rows, n, k, self.mass, "upper")[1] - k
        recall = _recall(self.n_found + k, most)
        return RecallResult(n, k, most, recall, _is_reached(self.n_found + k, most, self.recall))


def anomalies_left(
    n_rows: int, n_found: int, mean: float, ends: tuple[float, float]
) -> AnomaliesLeft:
    """What is left if the number of all anomalies has this `mean` and these `ends`.

    `n_rows` rows have no label, and `n_found` of the others are anomalies.
    """
    expected, fewest, most = np.clip(np.array([mean, *ends]) - n_found, 0.0, n_rows).tolist()
    recall, high, low = (_recall(n_found, n_left) for n_left in (expected, fewest, most))
    return AnomaliesLeft(n_rows, n_found, expected, fewest, most, recall, low, high)


def n_to_certify(n_rows: int, n_found: int, recall: float, mass: float) -> int:
    """How many of `n_rows` random rows, all normal, certify that this share is found.

    `n_found` anomalies have been found outside these rows.
    """

    def is_enough(n: int) -> bool:
        return _is_reached(n_found, exact_interval(n_rows, n, 0, mass, "upper")[1], recall)

    return first_true(is_enough, 0, n_rows)


def _recall(n_found: int, n_left: float) -> float:
    return n_found / (n_found + n_left) if n_found + n_left > 0 else 1.0


def _is_reached(n_found: int, most_left: int, recall: float) -> bool:
    return n_found >= recall * (n_found + most_left) - 1e-9
