"""Rows, their periods and groups -> how many rows of each lie beyond the cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm.inspection.exact_interval import binomial_interval

__all__ = ["Count", "Period", "count_periods"]

NO_NAME = "(empty)"
"""Name of the period or group of rows whose own is an empty text."""


@dataclass(frozen=True)
class Count:
    """How many of `n_rows` rows lie beyond the cut.

    Examples
    --------
    >>> count = Count(500, 20)
    >>> count.share, [round(end, 3) for end in count.interval()]
    (0.04, [0.027, 0.058])
    """

    n_rows: int
    n_beyond: int

    def __post_init__(self) -> None:
        if not 0 <= self.n_beyond <= self.n_rows:
            raise ValueError(f"{self.n_beyond} of {self.n_rows} rows cannot lie beyond the cut")

    @property
    def share(self) -> float:
        """Share of the rows beyond the cut; NaN without rows."""
        return self.n_beyond / self.n_rows if self.n_rows else np.nan

    def interval(self, mass: float = 0.9) -> tuple[float, float]:
        """Exact confidence interval (Clopper-Pearson) of the probability to lie beyond the cut."""
        low, high = binomial_interval(self.n_rows, self.n_beyond, mass)
        return float(low), float(high)


@dataclass(frozen=True)
class Period:
    """The rows of one period.

    Attributes
    ----------
    name : str
        Name of the period, for example a day.
    count : Count
        All of its rows.
    groups : dict of Count
        Its rows in each group, by the name of the group; empty without groups.
    digest : str
        Digest of the table that was counted, by which a second count is noticed.
    """

    name: str
    count: Count
    groups: dict[str, Count] = field(default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        if "" in self.groups:  # which means all rows
            raise ValueError("a group has no name")


def count_periods(
    is_beyond: NDArray[np.int_],
    rows: NDArray[np.float64],
    periods: ArrayLike | None,
    groups: ArrayLike | None,
    name: str,
) -> list[Period]:
    """The periods, in sorted order, that the `rows` (n, d) belong to.

    `is_beyond` (n,) is 1 for the rows beyond the cut. `periods` and `groups` (n,) are the period
    and the group of each row. Without `periods`, all rows are one period with this `name`.
    """
    digest = sha256(np.ascontiguousarray(rows).data).hexdigest()
    places, names = _sorted_labels("periods", periods, len(rows))
    group_places, group_names = _sorted_labels("groups", groups, len(rows))
    if periods is None:
        names = [name]
    cells = np.zeros((2, len(names), len(group_names)), dtype=int)
    np.add.at(cells[0], (places, group_places), 1)
    np.add.at(cells[1], (places, group_places), is_beyond)
    found = []
    for own_name, n_rows, n_beyond in zip(names, *cells.tolist(), strict=True):
        own = {
            group: Count(n, k)
            for group, n, k in zip(group_names, n_rows, n_beyond, strict=True)
            if n and groups is not None
        }
        found.append(Period(own_name, Count(sum(n_rows), sum(n_beyond)), own, digest))
    return found


def _sorted_labels(
    name: str, labels: ArrayLike | None, n_rows: int
) -> tuple[NDArray[np.intp], list[str]]:
    """Place of each row's label among the sorted labels, and these as text."""
    if labels is None:
        return np.zeros(n_rows, dtype=np.intp), [""]
    values: NDArray[Any] = np.asarray(labels)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} must have one value for each of {n_rows} rows.")
    if values.dtype == object:
        values = values.astype(str)
    if values.dtype.kind == "U":
        values = np.where(values == "", NO_NAME, values)
    distinct, places = np.unique(values, return_inverse=True)
    return places, [str(value) for value in distinct]
