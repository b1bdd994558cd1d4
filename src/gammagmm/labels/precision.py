"""Labels of rows along a ranking -> how many of the rows at its top are anomalies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gammagmm.labels.any_look import least_precision
from gammagmm.labels.exact_interval import exact_interval
from gammagmm.labels.known_rows import KnownRows

__all__ = ["Precision", "labels_at_top", "n_for_precision", "precision_at", "precision_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Precision:
    """How many of the flagged rows are anomalies, by those that have labels.

    Attributes
    ----------
    n_flagged : int
        Number of flagged rows.
    n_labels : int
        Number of rows with a label that the share comes from: those chosen at random, or all
        flagged rows if all of them have labels.
    n_anomalies : int
        Number of anomalies among these rows.
    share : float
        The share of anomalies among the flagged rows, as the labels estimate it; NaN without
        labels.
    low : float
        Lower end of the exact 90 % confidence interval of the share of anomalies among the flagged
        rows. It holds if the rows with labels are a random sample of the rows that would be
        flagged. It is a single number if all of them have labels.
    high : float
        Upper end of this interval.
    """

    n_flagged: int
    n_labels: int
    n_anomalies: int
    share: float
    low: float
    high: float


def precision_of(flagged: NDArray[np.int_], known: KnownRows) -> Precision | None:
    """Share of anomalies among the rows at the places `flagged`, by the `known` ones."""
    inside = known[np.isin(known.rows, flagged)]
    n_flagged, least = len(flagged), int(inside.labels.sum())
    if n_flagged and len(inside) == n_flagged:
        return Precision(n_flagged, n_flagged, least, *(least / n_flagged,) * 3)
    drawn, listed = inside.labels[inside.at_random], inside.labels[inside.listed]
    n_labels, n_anomalies = len(drawn), int(drawn.sum())
    if not n_labels:
        return None
    n_outside = n_flagged - len(listed)  # of lists: the random rows are a sample of these
    mean = n_outside * n_anomalies / n_labels
    ends = exact_interval(n_outside, n_labels, n_anomalies, 0.9)
    found = int(listed.sum()) + np.array([mean, *ends])
    possible = np.clip(found, least, least + n_flagged - len(inside))
    return Precision(n_flagged, n_labels, n_anomalies, *(possible / n_flagged).tolist())


def labels_at_top(known: KnownRows, scores: Array, left: Array) -> NDArray[np.int_]:
    """What is known of the rows that rank as high as the first n, for n = 1, ..., n_left.

    `scores` are those of the `known` rows, none of which is of a list, and `left` (n_left,) those
    of the rows without a label. The columns are the number of rows that were chosen at random and
    of the anomalies among them, and the same for these and the rows that were picked.
    """
    order = np.argsort(-scores, kind="stable")
    drawn, labels = known.at_random[order], known.labels[order]
    columns = np.column_stack([drawn, drawn & (labels == 1), np.ones(len(order)), labels])
    counts = np.vstack([np.zeros((1, 4)), np.cumsum(columns, axis=0)]).astype(int)
    return counts[np.searchsorted(-scores[order], np.sort(-left), side="right")]


def precision_at(top: NDArray[np.int_], n: int) -> Precision:
    """Share of anomalies among the first `n` rows without a label, by the `labels_at_top`."""
    n_labels, n_anomalies, n_known, n_found = top[n - 1].tolist()
    # The sample is one of all rows at the top, of which some were picked since.
    ends = np.array(exact_interval(n + n_known, n_labels, n_anomalies, 0.9)) - n_found
    low, high = np.clip(ends / n, 0.0, 1.0).tolist()
    return Precision(n, n_labels, n_anomalies, float(_shares_left(top)[n - 1]), low, high)


def n_for_precision(top: NDArray[np.int_], precision: float) -> int:
    """The most rows of which the labels show that they have this precision, or a ValueError."""
    if not len(top):
        raise ValueError("n_for_precision needs rows without a label.")
    if n := _last_precise(top, precision):
        return n
    best = np.nanmax(_shares_left(top), initial=0.0)
    raise ValueError(
        f"The labels do not show that a share of {precision:g} of any number of rows from the top "
        f"are anomalies; the largest estimate is {best:.2g}. Label more rows, or ask for less."
    )


def _last_precise(top: NDArray[np.int_], precision: float) -> int:
    """The most rows of which the labels show that they have this precision, or 0."""
    starts = np.flatnonzero(np.append(True, np.diff(top, axis=0).any(axis=1))) + 1
    ends = np.append(starts[1:] - 1, len(top))
    # From the number `start` to `end`, the labels at the top are the same.
    for start, end in zip(starts[::-1].tolist(), ends[::-1].tolist(), strict=True):
        n_labels, n_anomalies, n_known, n_found = top[start - 1].tolist()
        # The share is one of all rows at the top, of which some are known.
        least = least_precision(n_labels, n_anomalies, 0.9)
        n, spare = end, least * n_known - n_found
        if least < precision:
            n = min(end, int(np.floor(spare / (precision - least))))
        if n >= start and n * (least - precision) + spare >= 0.0:
            return n
    return 0


def _shares_left(top: NDArray[np.int_]) -> Array:
    """Share of anomalies among the first n rows without a label, for n = 1, 2, ...

    The share among the random rows at the top is that of all rows there; what is known to be an
    anomaly is subtracted. NaN if no random row is at the top.
    """
    n = np.arange(1, len(top) + 1)
    n_labels, n_anomalies, n_known, n_found = top.T
    with np.errstate(invalid="ignore"):
        total = (n + n_known) * (n_anomalies / n_labels)
    return np.clip((total - n_found) / n, 0.0, 1.0)
