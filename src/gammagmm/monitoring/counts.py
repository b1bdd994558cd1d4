"""Rows, their periods and groups -> how many rows of each lie above the threshold, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.data_frames import as_column
from gammagmm.errors import HistoryError
from gammagmm.labels.exact_interval import binomial_interval
from gammagmm.labels.group_shares import MISSING_GROUP, NO_GROUP
from gammagmm.labels.label_error import NO_ERROR, check_label_error
from gammagmm.monitoring.parts import Parts, count_parts

__all__ = [
    "MAX_ROWS",
    "Count",
    "Labels",
    "Period",
    "ScoredRows",
    "check_rows",
    "count_periods",
    "row_digests",
]

ODD, SHIFT, DIGITS = np.uint64(0x9E3779B97F4A7C15), np.uint64(29), np.uint64(11)
"""Multiplier and shift that mix the bits of a row, and the bits that a float cannot hold."""
MAX_ROWS = 10**10
"""Most rows of a count, and of all periods of a history together."""


@dataclass(frozen=True)
class Count:
    """How many rows lie above the threshold.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    n_above : int
        Number of rows above the threshold.

    Examples
    --------
    >>> count = Count(500, 20)
    >>> count.share, [round(end, 3) for end in count.interval()]
    (0.04, [0.027, 0.058])
    """

    n_rows: int
    n_above: int

    def __post_init__(self) -> None:
        if not 0 <= self.n_above <= self.n_rows:
            raise ValueError(f"{self.n_above} of {self.n_rows} rows cannot lie above the threshold")
        check_rows(self.n_rows)

    @property
    def share(self) -> float:
        """Share of the rows above the threshold; NaN without rows."""
        return self.n_above / self.n_rows if self.n_rows else np.nan

    def interval(self, mass: float = 0.9) -> tuple[float, float]:
        """Exact confidence interval (Clopper-Pearson) of the share above the threshold.

        Parameters
        ----------
        mass : float, default=0.9
            Probability with which the interval contains the true probability.

        Returns
        -------
        tuple of two floats
            Both ends of the interval.
        """
        low, high = binomial_interval(self.n_rows, self.n_above, mass)
        return float(low), float(high)


@dataclass(frozen=True)
class Labels:
    """Labels of rows of a period that were chosen at random.

    Attributes
    ----------
    n_labels : int
        Number of rows with a label.
    n_anomalies : int
        Number of anomalies among them.
    label_error : tuple of two floats, default=(0.0, 0.0)
        The probabilities that a label is wrong, see `GammaGMM`.
    """

    n_labels: int
    n_anomalies: int
    label_error: tuple[float, float] = NO_ERROR

    def __post_init__(self) -> None:
        check_label_error(self.label_error)
        if not 0 <= self.n_anomalies <= self.n_labels:
            raise ValueError(f"{self.n_anomalies} of {self.n_labels} labels cannot be anomalies")


@dataclass(frozen=True)
class Period:
    """The rows of one period.

    Attributes
    ----------
    name : str
        Name of the period, for example a day.
    count : Count
        All of its rows.
    groups : dict of Count, default={}
        Its rows in each group, by the name of the group; empty without groups.
    digest : str, default=""
        Digest of the table that was counted, by which a second count is noticed.
    columns : dict of tuple of int, default={}
        Its rows in each part of each column, see `Parts`; empty where they were not counted, as for
        rows on Dask.
    labels : Labels or None, default=None
        What labels of some of its rows say; None without labels.
    n_filled : int, default=0
        Number of missing values that were filled in as in the training rows; 0 where they
        were not counted, as for a Dask data frame.
    """

    name: str
    count: Count
    groups: dict[str, Count] = field(default_factory=dict)
    digest: str = ""
    columns: dict[str, tuple[int, ...]] = field(default_factory=dict)
    labels: Labels | None = None
    n_filled: int = 0

    def __post_init__(self) -> None:
        if "" in self.groups:  # which means all rows
            raise ValueError("a group has no name")
        if sum(count.n_rows for count in self.groups.values()) > self.count.n_rows:
            raise ValueError("the groups have more rows than the period")
        if any(min(own) < 0 or sum(own) != self.count.n_rows for own in self.columns.values()):
            raise ValueError("the parts of a column do not have the rows of the period")
        if self.labels is not None and self.labels.n_labels > self.count.n_rows:
            raise ValueError("a period has more labels than rows")
        if self.n_filled < 0:
            raise ValueError("a number of missing values cannot be negative")


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """New rows with their scores.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Their scores.
    digests : ndarray of shape (n,)
        Numbers by which they are recognised, see `row_digests`.
    n_filled : ndarray of shape (n,) or None, default=None
        Number of missing values in each row; None if they were not counted.
    """

    scores: NDArray[np.float64]
    digests: NDArray[np.float64]
    n_filled: NDArray[np.int_] | None = None

    @classmethod
    def joined(cls, parts: Sequence[ScoredRows]) -> ScoredRows:
        """The rows of all parts, of which there is at least one."""
        filled = [part.n_filled for part in parts if part.n_filled is not None]
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.digests for part in parts]),
            np.concatenate(filled) if len(filled) == len(parts) else None,
        )

    def __getitem__(self, rows: Any) -> ScoredRows:
        filled = None if self.n_filled is None else self.n_filled[rows]
        return ScoredRows(self.scores[rows], self.digests[rows], filled)


def check_rows(n_rows: int) -> None:
    """Refuse a number of rows above `MAX_ROWS`."""
    if n_rows > MAX_ROWS:
        raise HistoryError(f"A history has at most {MAX_ROWS:,} rows", "Start a new history.")


def count_periods(
    is_above: NDArray[np.int_],
    digests: NDArray[np.float64],
    periods: ArrayLike | None,
    groups: ArrayLike | None,
    name: str,
    rows: NDArray[np.float64] | None = None,
    parts: Mapping[str, Parts] | None = None,
    labels: ArrayLike | None = None,
    n_filled: NDArray[np.int_] | None = None,
    label_error: tuple[float, float] = NO_ERROR,
) -> list[Period]:
    """The periods, in sorted order, that some rows belong to.

    `is_above` (n,) is 1 for the rows above the threshold, and `digests` (n,) recognise them.
    `periods` and `groups` (n,) are the period and the group of each row. Without `periods`, all
    rows are one period with this `name`. Ordered categories and numbers keep their order, and all
    others are sorted as text. A missing period is refused; rows without a group are the group
    "(missing)".
    With the `rows` (n, d), their values in the `parts` of each column are counted. `labels` (n,)
    are 1 for an anomaly, 0 for a normal row and NaN for a row without a label, and wrong with the
    probabilities `label_error`. `n_filled` (n,) are the missing values of each row.
    """
    places, names = _sorted_labels("periods", periods, len(digests))
    digest = _digest(digests, None if periods is None else [names[place] for place in places])
    group_places, group_names = _sorted_labels("groups", groups, len(digests))
    if periods is None:
        names = [name]
    cells = np.zeros((2, len(names), len(group_names)), dtype=int)
    np.add.at(cells[0], (places, group_places), 1)
    np.add.at(cells[1], (places, group_places), is_above)
    marks = None if labels is None else _checked_labels(labels, len(digests))
    found = []
    for t, (own_name, n_rows, n_above) in enumerate(zip(names, *cells.tolist(), strict=True)):
        own = {
            group: Count(n, k)
            for group, n, k in zip(group_names, n_rows, n_above, strict=True)
            if n and groups is not None
        }
        count, is_own = Count(sum(n_rows), sum(n_above)), places == t
        columns = {} if rows is None or not parts else count_parts(rows[is_own], parts)
        known = None if marks is None else _labels(marks[is_own], label_error)
        filled = 0 if n_filled is None else int(n_filled[is_own].sum())
        # Periods without rows are not the same rows.
        period = Period(
            own_name, count, own, digest if count.n_rows else "", columns, known, filled
        )
        found.append(period)
    return found


def _checked_labels(labels: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    marks = np.asarray(labels, dtype=np.float64)
    if marks.shape != (n_rows,) or not (np.isnan(marks) | (marks == 0) | (marks == 1)).all():
        raise ValueError(f"labels must have 1, 0 or NaN for each of {n_rows} rows.")
    return marks


def _labels(marks: NDArray[np.float64], label_error: tuple[float, float]) -> Labels | None:
    """What the labels of a period say; None without labels."""
    known = marks[~np.isnan(marks)]
    return Labels(len(known), int(known.sum()), label_error) if len(known) else None


def row_digests(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """A number (n,) for each of the `rows` (n, d), which is the same for equal rows.

    >>> digests = row_digests(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(digests[0] == digests[2]), bool(digests[0] == digests[1])
    (True, False)
    """
    found = np.zeros(len(rows), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in (np.asarray(rows) + 0.0).T:  # -0.0 is 0.0
            found ^= np.ascontiguousarray(column).view(np.uint64)
            found *= ODD
            found ^= found >> SHIFT
    return (found >> DIGITS).astype(np.float64)


def _digest(digests: NDArray[np.float64], periods: list[str] | None) -> str:
    """Digest of the rows and, if they are given, of their periods.

    Equal rows of another day are then other rows.
    """
    digest = sha256(np.ascontiguousarray(digests).data)
    if periods is not None:
        digest.update("\n".join(map(repr, periods)).encode())
    return digest.hexdigest()


def _sorted_labels(name: str, labels: Any, n_rows: int) -> tuple[NDArray[np.intp], list[str]]:
    """Place of each row's label among the sorted labels, and these as text."""
    if labels is None:
        return np.zeros(n_rows, dtype=np.intp), [""]
    # NumPy would turn a NaN in a list of texts into the text "nan".
    is_list = isinstance(labels, list | tuple)
    values: NDArray[Any] = np.asarray(labels, dtype=object) if is_list else as_column(labels)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} must have one value for each of {n_rows} rows.")
    is_missing = _is_missing(values)
    if is_missing.any() and name == "periods":
        raise ValueError(
            f"periods must not have missing values; {is_missing.sum():,} of {n_rows:,} are missing."
        )
    distinct, inverse = _sorted_distinct(values[~is_missing], getattr(labels, "dtype", None))
    names = [*[MISSING_GROUP] * bool(is_missing.any()), *map(str, distinct)]
    # Values that are the same text are one label.
    place_of = {text: place for place, text in enumerate(dict.fromkeys(names))}
    places = np.zeros(n_rows, dtype=np.intp)
    places[~is_missing] = np.array([place_of[str(value)] for value in distinct], dtype=np.intp)[
        inverse
    ]
    return places, list(place_of)


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the values are missing in Python, NumPy or pandas, or an empty text."""
    if values.dtype.kind == "O":
        texts = ((value, str(value)) for value in values.tolist())
        found = [not t or (t in NO_GROUP and not isinstance(value, str)) for value, t in texts]
        return np.array(found, dtype=bool)
    return np.asarray(values == "" if values.dtype.kind == "U" else values != values)


def _sorted_distinct(values: NDArray[Any], dtype: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """The distinct values in their order, and the place of each value among them."""
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":  # pandas, polars
        ranks = {value: rank for rank, value in enumerate(dtype.categories.to_list())}
        found, inverse = np.unique([ranks[value] for value in values.tolist()], return_inverse=True)
        return [dtype.categories[rank] for rank in found.tolist()], inverse
    if values.dtype.kind == "O" and not all(isinstance(value, Real) for value in values.tolist()):
        values = values.astype(str)
    found, inverse = np.unique(values, return_inverse=True)
    return list(found), inverse
