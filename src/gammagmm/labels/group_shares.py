"""Groups of rows -> their flagged rows, and the share of anomalies of each by its own labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.data_frames import as_column
from gammagmm.labels.exact_interval import binomial_interval
from gammagmm.labels.known_rows import KnownRows
from gammagmm.labels.labelled_share import count_labels
from gammagmm.labels.share_by_labels import exact_shares, posterior_by_labels

__all__ = ["MISSING_GROUP", "NO_GROUP", "GroupShare", "GroupShares", "check_groups", "group_shares"]

MISSING_GROUP = "(missing)"
"""Name of the group of the rows whose group is missing."""
NO_GROUP = frozenset({"None", "nan", "NaT", "<NA>"})
"""Missing values of Python, NumPy and pandas as text."""


@dataclass(frozen=True)
class GroupShare:
    """The flagged rows in one group of rows, and its share of anomalies by its own labels.

    Attributes
    ----------
    group : str or int or float or bool
        Value that the rows of the group have in common; "(missing)" for rows without one.
    n_rows : int
        Number of rows.
    n_flagged : int
        Number of rows that are flagged.
    low_flagged : float
        Lower end of the exact 90 % confidence interval (Clopper-Pearson) of the probability that a
        row of this group is flagged. In a group of few rows, the interval is wide.
    high_flagged : float
        Upper end of this interval.
    n_labels : int
        Number of rows with a label.
    n_anomalies : int
        Number of anomalies among the rows with a label.
    mean : float
        Posterior mean of the share of anomalies, from the labels of the group, with the same prior
        for each group; NaN without labels.
    low : float
        Lower end of the 90 % interval of that posterior; NaN without labels.
    high : float
        Upper end of this interval; NaN without labels.
    low_exact : float
        Lower end of the exact 90 % confidence interval of the share, from the labels of the group
        alone; NaN without labels. Unlike the interval of the posterior, it holds for each group,
        however unlike the others the group is.
    high_exact : float
        Upper end of this interval.
    share_flagged : float
        Share of the rows that are flagged.
    """

    group: Any
    n_rows: int
    n_flagged: int
    low_flagged: float
    high_flagged: float
    n_labels: int
    n_anomalies: int
    mean: float
    low: float
    high: float
    low_exact: float
    high_exact: float
    share_flagged: float


class GroupShares(tuple[GroupShare, ...]):
    """The groups of rows, the largest first.

    The page "Labels for the ranking, groups and batches" of the documentation shows it in use.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import groups_html

        return groups_html(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the share of flagged rows of each group with its exact interval.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        from gammagmm.report.plots import plot_groups

        return plot_groups(self, ax)


def group_shares(
    groups: NDArray[Any],
    is_flagged: NDArray[np.bool_],
    known: KnownRows,
    error: tuple[float, float],
) -> GroupShares:
    """The flagged rows in each of the `groups` (n_rows,), and its share by its own labels.

    `is_flagged` (n_rows,) says which rows are flagged, `known` has those with labels, and `error`
    the probabilities that their labels are wrong.
    """
    names, place = np.unique(groups, return_inverse=True)
    n_rows = np.bincount(place, minlength=len(names))
    n_flagged = np.bincount(place[is_flagged], minlength=len(names))
    low, high = binomial_interval(n_rows, n_flagged)
    of_known, found = place[known.rows], []
    for group in np.argsort(-n_rows, kind="stable").tolist():
        inside, size = known[of_known == group], int(n_rows[group])
        mean, ends, exact = np.nan, (np.nan, np.nan), (np.nan, np.nan)
        if len(inside):
            counts = count_labels(inside, size)
            posterior = posterior_by_labels(counts, error)
            mean, ends = posterior.mean, posterior.interval()
            exact = exact_shares(counts, error, 0.9)
        found.append(
            GroupShare(
                _group_name(names[group].item()),
                size,
                int(n_flagged[group]),
                float(low[group]),
                float(high[group]),
                len(inside),
                int(inside.labels.sum()),
                mean,
                *ends,
                *exact,
                int(n_flagged[group]) / size,
            )
        )
    return GroupShares(found)


def check_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    """`groups` as an array with one value a row."""
    values = as_column(groups)
    if values.shape != (n_rows,):
        raise ValueError(
            f"The groups must have one value for each of the {n_rows} rows, got the shape "
            f"{values.shape}."
        )
    if values.dtype.kind not in "OMm":
        return values
    # Text and missing values together cannot be sorted.
    return np.array([_group_text(value) for value in values], dtype=str)


def _group_text(value: Any) -> str:
    """The text of a value; empty if it is missing."""
    text = str(value)
    return "" if text in NO_GROUP and not isinstance(value, str) else text


def _group_name(value: Any) -> Any:
    """The name of the group of rows that have this value."""
    is_missing = value == "" or value != value
    return MISSING_GROUP if is_missing else value
