"""Rows whose labels a person has given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gammagmm._support.data_frames import as_cells, as_column
from gammagmm.posterior.decisions import RankTable, ranks_left
from gammagmm.table.sample import Sample

__all__ = ["KnownRows", "Purpose", "RowsLeft"]

Purpose = Literal["share", "find"]
"""Why a row is labelled: to know the share of anomalies, or to find anomalies."""

# How a row was chosen, by rising precedence: a row that was given twice has the higher one.
_PICKED, _AT_RANDOM, _LISTED = range(3)


@dataclass(frozen=True)
class KnownRows:
    """Rows whose labels are known, by rising row number.

    The page "Labels for the ranking, groups and batches" of the documentation explains it.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Row numbers from 0 on.
    labels : ndarray of shape (n,)
        1 for an anomaly, 0 for a normal row.
    at_random : ndarray of shape (n,)
        Whether the row was chosen blindly, so that its label says something about other rows.
    picked : ndarray of shape (n,)
        Whether the row was picked from the top of the ranking, to find anomalies, after the rows
        that were chosen blindly. Rows that are neither are a list of the user's own.

    Examples
    --------
    >>> known = KnownRows.none().add([7, 3], [1, 0], at_random=True, n_rows=10)
    >>> known.rows.tolist(), known.labels.tolist()
    ([3, 7], [0, 1])
    """

    rows: NDArray[np.int_]
    labels: NDArray[np.int_]
    at_random: NDArray[np.bool_]
    picked: NDArray[np.bool_]

    @classmethod
    def none(cls) -> KnownRows:
        """No row is known.

        Returns
        -------
        KnownRows
            A value of length 0.
        """
        empty = np.empty(0, dtype=int)
        return cls(empty, empty, empty.astype(bool), empty.astype(bool))

    def _repr_html_(self) -> str:
        from gammagmm.report.notebook import known_html

        return known_html(self)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def listed(self) -> NDArray[np.bool_]:
        """Whether each row belongs to a list of the user's own."""
        return ~(self.at_random | self.picked)

    def __getitem__(self, chosen: NDArray[Any]) -> KnownRows:
        """The rows for which `chosen` (n,) is true, or the rows at these places."""
        return KnownRows(
            self.rows[chosen], self.labels[chosen], self.at_random[chosen], self.picked[chosen]
        )

    def add(
        self,
        rows: Any,
        labels: Any,
        *,
        at_random: bool,
        picked: bool = False,
        n_rows: int,
        sample: Sample | None = None,
    ) -> KnownRows:
        """These rows and the earlier ones.

        A row that is given once with ``at_random=False`` belongs to a list and does not count as
        chosen at random: the other rows that were chosen at random are then a random sample of the
        rows outside the list, whether the list or the sample came first. A `picked` row that is
        given again with ``at_random=True`` and the same label counts as chosen at random; with
        another label, it is corrected and stays a picked one.

        Parameters
        ----------
        rows : array-like of shape (n,)
            Row numbers from 0 on.
        labels : array-like of shape (n,)
            1 for an anomaly, 0 for a normal row. A label replaces the earlier one of the row; a
            row that is given twice here must have one label.
        at_random : bool
            Whether the rows were chosen blindly.
        picked : bool, default=False
            Whether the rows were picked from the top of the ranking; `at_random` does not matter
            then.
        n_rows : int
            Number of rows of the table.
        sample : Sample, default=None
            Which rows of a larger table the rows are; messages name their numbers there.

        Returns
        -------
        KnownRows
            The new value.

        Raises
        ------
        ValueError
            A row is given twice with both labels, or does not exist.
        """
        rows, labels = check_rows_known(rows, n_rows), check_labels(labels)
        if len(rows) != len(labels):
            raise ValueError(
                f"rows and labels must have the same length, got {len(rows)} and {len(labels)}."
            )
        how = np.where(self.picked, _PICKED, np.where(self.at_random, _AT_RANDOM, _LISTED))
        columns = (self.rows.tolist(), self.labels.tolist(), how.tolist())
        found = {row: (label, chosen) for row, label, chosen in zip(*columns, strict=True)}
        before = dict(found)
        now = _PICKED if picked else _AT_RANDOM if at_random else _LISTED
        given: dict[int, int] = {}
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            if given.setdefault(row, label) != label:
                number = row if sample is None else int(sample.number(np.array([row]))[0])
                raise ValueError(f"Row {number} has both labels, 0 and 1: give one of them.")
            its_label, its_kind = before.get(row, (label, now))
            is_correction = its_label != label and its_kind == _PICKED and now == _AT_RANDOM
            found[row] = (label, _PICKED if is_correction else max(its_kind, now))
        ordered = sorted(found)
        how = np.array([found[row][1] for row in ordered], dtype=int)
        return KnownRows(
            np.array(ordered, dtype=int),
            np.array([found[row][0] for row in ordered], dtype=int),
            how == _AT_RANDOM,
            how == _PICKED,
        )

    def corrected(self, later: KnownRows) -> NDArray[np.int_]:
        """Numbers of the rows that have another label in the `later` value.

        Parameters
        ----------
        later : KnownRows
            A value to which rows were added.

        Returns
        -------
        ndarray of ints
            Row numbers, in rising order.
        """
        both, mine, theirs = np.intersect1d(self.rows, later.rows, return_indices=True)
        return both[self.labels[mine] != later.labels[theirs]]

    def unknown(self, n_rows: int) -> NDArray[np.int_]:
        """Numbers of the rows that are not known.

        Parameters
        ----------
        n_rows : int
            Number of rows of the table.

        Returns
        -------
        ndarray of ints
            Row numbers, in rising order.
        """
        is_unknown = np.ones(n_rows, dtype=bool)
        is_unknown[self.rows[self.rows < n_rows]] = False
        return np.flatnonzero(is_unknown)

    def rows_outside_lists(self, sample: Sample) -> RowsLeft:
        """The rows that are as new rows are: those outside lists, or all where all are in one."""
        return self[self.listed].rows_left(sample)

    def rows_left(self, sample: Sample) -> RowsLeft:
        """The rows to rank and to cut: those without a label, or all where none or all have one."""
        rows, n_rows = self.unknown(sample.n_sampled), sample.n_rows
        if not len(self) or not len(rows):
            return RowsLeft(np.arange(sample.n_sampled), n_rows, n_rows)
        return RowsLeft(rows, n_rows, n_rows - len(self), int(self.labels.sum()))

    def numbered(self, sample: Sample) -> KnownRows:
        """The same rows with their numbers in the table in place of their places."""
        numbers = sample.number(self.rows)
        order = np.argsort(numbers)
        return replace(self, rows=numbers)[order]


@dataclass(frozen=True)
class RowsLeft:
    """Rows that are ranked and cut, of a table of `n_rows` rows.

    They are all `n_left` such rows of the table, or a random sample of them. `n_anomalies` of the
    other rows are anomalies, which need not be a whole number; it is None where there are no other
    rows.
    """

    rows: NDArray[np.int_]
    n_rows: int
    n_left: int
    n_anomalies: float | None = None

    def share(self, gamma: float) -> float:
        """The share of anomalies among these rows if it is `gamma` in the whole table."""
        if self.n_anomalies is None:
            return gamma
        share = (gamma * self.n_rows - self.n_anomalies) / self.n_left
        return float(np.clip(share, 0.0, 1.0))

    def ranks(self, scores: NDArray[np.float64]) -> RankTable:
        """Rank table of these rows, for the `scores` (n_rows,) of the table."""
        return ranks_left(scores[self.rows], self.n_anomalies or 0, self.n_rows, self.n_left)


def check_rows_known(rows: Any, n_rows: int) -> NDArray[np.int_]:
    """`rows` as row numbers from 0 to `n_rows` - 1."""
    numbers = np.atleast_1d(as_column(rows))
    if numbers.size == 0:
        return np.empty(0, dtype=int)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise TypeError(f"rows must be row positions from 0 to {n_rows - 1}, got {rows!r}.")
    outside = numbers[(numbers < 0) | (numbers >= n_rows)]
    if outside.size:
        raise ValueError(
            f"rows must be row positions from 0 to {n_rows - 1}, got {int(outside[0])}."
        )
    return numbers.astype(int)


def check_labels(labels: ArrayLike) -> NDArray[np.int_]:
    """`labels` as 0 and 1."""
    values = np.atleast_1d(as_column(labels))
    if values.dtype == object and values.ndim == 1:
        values = as_cells(values)
    if values.ndim != 1 or not (values.size == 0 or values.dtype.kind in "biuf"):
        raise TypeError(f"labels must be 0 (normal) or 1 (anomaly), got {labels!r}.")
    other = values[~np.isin(values, (0, 1))]
    if other.size:
        raise ValueError(f"labels must be 0 (normal) or 1 (anomaly), got {other[0].item()!r}.")
    return values.astype(int)
