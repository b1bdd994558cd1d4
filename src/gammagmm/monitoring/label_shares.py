"""Labels of the rows of periods -> the share of anomalies in each period."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gammagmm.labels.labelled_share import LabelCounts
from gammagmm.labels.share_by_labels import posterior_by_labels
from gammagmm.monitoring.counts import Period

__all__ = ["LabelShare", "label_shares"]


@dataclass(frozen=True)
class LabelShare:
    """The share of anomalies in a period, from labels of some of its rows.

    Attributes
    ----------
    period : str
        Name of the period.
    n_labels : int
        Number of rows with a label.
    n_anomalies : int
        Number of anomalies among them.
    mean : float
        Posterior mean of the share.
    low : float
        Lower end of the 90 % interval.
    high : float
        Upper end of this interval.
    """

    period: str
    n_labels: int
    n_anomalies: int
    mean: float
    low: float
    high: float


def label_shares(periods: Iterable[Period]) -> list[LabelShare]:
    """The share of anomalies in each period with labels.

    With few labels, the share of a period is pulled towards what is usual in labelled tables, as
    that of a group is in `LabelledRows.by_group`.
    """
    found = []
    for period in periods:
        if period.labels is not None:
            n, k = period.labels.n_labels, period.labels.n_anomalies
            counts = LabelCounts(period.count.n_rows, n, k, 0, 0)
            posterior = posterior_by_labels(counts, period.labels.label_error)
            low, high = posterior.interval()
            found.append(LabelShare(period.name, n, k, posterior.mean, low, high))
    return found
