"""Rows whose labels a person has given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["KnownRows"]


@dataclass(frozen=True)
class KnownRows:
    """Rows whose labels are known, by rising row number.

    Attributes
    ----------
    rows, labels : ndarray of shape (n,)
        Row numbers from 0 on, and 1 for an anomaly, 0 for a normal row.
    at_random : ndarray of shape (n,)
        Whether the row was chosen without knowing what it is, and so tells of others too.

    Examples
    --------
    >>> known = KnownRows.none().add([7, 3], [1, 0], at_random=True, n_rows=10)
    >>> known.rows.tolist(), known.labels.tolist()
    ([3, 7], [0, 1])
    """

    rows: NDArray[np.int_]
    labels: NDArray[np.int_]
    at_random: NDArray[np.bool_]

    @classmethod
    def none(cls) -> KnownRows:
        """No row is known."""
        empty = np.empty(0, dtype=int)
        return cls(empty, empty, empty.astype(bool))

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, rows: Any, labels: Any, *, at_random: bool, n_rows: int) -> KnownRows:
        """These and the ones that were known; a row that is given twice must have one label.

        A row that was known counts as chosen at random if it was so once.
        """
        rows, labels = check_rows_known(rows, n_rows), check_labels(labels)
        if len(rows) != len(labels):
            raise ValueError(
                f"rows and labels must have the same length, got {len(rows)} and {len(labels)}."
            )
        columns = (self.rows.tolist(), self.labels.tolist(), self.at_random.tolist())
        found = {row: (label, chosen) for row, label, chosen in zip(*columns, strict=True)}
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            before, chosen = found.get(row, (label, False))
            if before != label:
                raise ValueError(f"Row {row} has both labels, 0 and 1: give one of them.")
            found[row] = (label, chosen or at_random)
        ordered = sorted(found)
        return KnownRows(
            np.array(ordered, dtype=int),
            np.array([found[row][0] for row in ordered], dtype=int),
            np.array([found[row][1] for row in ordered], dtype=bool),
        )


def check_rows_known(rows: Any, n_rows: int) -> NDArray[np.int_]:
    """`rows` as row numbers from 0 to `n_rows` - 1."""
    numbers = np.atleast_1d(np.asarray(rows))
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
    values = np.atleast_1d(np.asarray(labels))
    if values.ndim != 1 or not (values.size == 0 or values.dtype.kind in "biuf"):
        raise TypeError(f"labels must be 0 (normal) or 1 (anomaly), got {labels!r}.")
    other = values[~np.isin(values, (0, 1))]
    if other.size:
        raise ValueError(f"labels must be 0 (normal) or 1 (anomaly), got {other[0].item()!r}.")
    return values.astype(int)
