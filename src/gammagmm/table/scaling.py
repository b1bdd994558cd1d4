"""Columns of the rows -> columns on one scale, with figures of the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import DetectorError, Note

__all__ = [
    "SCALES",
    "ColumnScaler",
    "constant_notes",
    "fit_column_scaler",
]

Array = NDArray[np.float64]

SCALES = ("standard", "robust", None)
"""What the parameter ``scale`` can be."""
NORMAL_IQR = 1.349
"""Interquartile range of a normal distribution with standard deviation 1."""
ROUNDING = 16 * np.finfo(np.float64).eps
"""Range, relative to the largest value, up to which a column differs by rounding alone."""
LARGEST = 1e150
"""Limit of scaled values: the squares of larger ones would overflow."""
LEAST_EXPONENT = np.intc(np.finfo(np.float64).minexp - np.finfo(np.float64).nmant)
DIGITS = 42
"""Binary digits of centre and spread."""
MAX_NAMES = 5


@dataclass(frozen=True, eq=False)
class ColumnScaler:
    """Map (x - centre) / spread of the columns that vary, with figures of the training rows.

    Attributes
    ----------
    kept : ndarray of shape (k,)
        Numbers of the columns that vary; the others are not used.
    exponent : ndarray of shape (k,)
        Power of two above the largest absolute value of each of them. `centre` and `spread` are in
        units of 2 ** exponent, so that no sum or difference overflows.
    centre, spread : ndarray of shape (k,)
        Mean and standard deviation, or median and interquartile range / 1.349.

    Examples
    --------
    >>> rows = np.array([[1.0, 7.0, -2e300], [3.0, 7.0, 2e300]])
    >>> scaler = fit_column_scaler(rows, "standard")
    >>> scaler.transform(rows).round(9).tolist(), scaler.kept.tolist()
    ([[-1.0, -1.0], [1.0, 1.0]], [0, 2])
    """

    kept: NDArray[np.intp]
    exponent: NDArray[np.intc]
    centre: Array
    spread: Array

    def transform(self, rows: Array) -> Array:
        """The scaled columns (n, k) of `rows` (n, d).

        A new value that is more than 1e150 deviations away counts as 1e150 deviations.
        """
        kept = rows if len(self.kept) == rows.shape[1] else rows[:, self.kept]
        with np.errstate(over="ignore"):
            scaled = np.ldexp(kept, -self.exponent, order="C")
            scaled -= self.centre
            scaled /= self.spread
        return np.clip(scaled, -LARGEST, LARGEST, out=scaled)


def fit_column_scaler(rows: Array, scale: str) -> ColumnScaler:
    """The map that scales the columns of the training `rows` (n, d).

    "standard" gives mean 0 and standard deviation 1, and "robust" median 0 and interquartile range
    1.349. A column whose interquartile range is 0, up to rounding, is divided by its standard
    deviation. If no column varies, it is a `DetectorError`.
    """
    lowest, highest = rows.min(axis=0), rows.max(axis=0)
    largest = np.maximum(np.abs(lowest), np.abs(highest))
    # A column of zeros has the smallest unit.
    exponent = np.where(largest > 0.0, np.frexp(largest)[1], LEAST_EXPONENT)
    low, high = np.ldexp(lowest, -exponent), np.ldexp(highest, -exponent)
    kept = np.flatnonzero(high - low > ROUNDING * np.ldexp(largest, -exponent))
    if not len(kept):
        raise DetectorError(
            "Every column of X is constant, so no detector can tell the rows apart",
            "Check that the columns vary.",
        )
    mean, deviation = _mean_and_deviation(np.ldexp(rows, -exponent, order="C"))
    exponent, spread = exponent[kept], deviation[kept]
    if scale == "standard":
        return ColumnScaler(kept, exponent, _rounded(mean[kept], spread), spread)
    units = np.ldexp(rows[:, kept], -exponent)
    low, median, high = np.quantile(units, [0.25, 0.5, 0.75], axis=0)
    has_range = high - low > ROUNDING * np.maximum(np.abs(low), np.abs(high))
    return ColumnScaler(
        kept, exponent, median, np.where(has_range, (high - low) / NORMAL_IQR, spread)
    )


def _mean_and_deviation(units: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (d,) of the columns of `units` (n, d), which are overwritten.

    `units` are in the order of rows, so that no sum depends on the layout of the memory.
    """
    mean = units.mean(axis=0)
    units -= mean
    # The mean is rounded, which matters where it is much larger than the deviation.
    error = units.mean(axis=0)
    units -= error
    deviation = np.sqrt(np.einsum("ij,ij->j", units, units) / len(units))
    return mean + error, _rounded(deviation, deviation)


def _rounded(values: Array, spread: Array) -> Array:
    """The values, rounded to a multiple of about 2 ** -42 of `spread`.

    Sums of the same rows can differ in their last bits. The detectors and the runs would amplify
    that difference; rounding removes nearly every such difference.
    """
    unit = np.frexp(spread)[1] - DIGITS
    rounded: Array = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    return rounded


def constant_notes(
    scaler: ColumnScaler | None, n_columns: int, names: Sequence[Any] | None
) -> list[Note]:
    """The note about the constant columns, which are left out; empty where all columns are kept."""
    constant = [] if scaler is None else np.delete(np.arange(n_columns), scaler.kept).tolist()
    if not constant:
        return []
    named = [str(column if names is None else names[column]) for column in constant]
    shown, n_more = ", ".join(named[:MAX_NAMES]), len(named) - MAX_NAMES
    more = f" and {n_more} more" if n_more > 0 else ""
    return [Note.of("columns.constant", "scale", n_columns=len(named), columns=f"{shown}{more}")]
