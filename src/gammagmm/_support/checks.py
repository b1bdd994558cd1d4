"""Checks of parameters and tables; the messages give the name, the rule and the value."""

from __future__ import annotations

import numbers
import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "as_generator",
    "check_array_kind",
    "check_count",
    "check_number",
    "check_positive",
    "check_probability",
    "check_rows",
    "check_share",
    "time_type",
    "warn_user",
]


def check_probability(name: str, value: Any) -> None:
    """Refuse a value that does not lie strictly between 0 and 1."""
    check_number(name, value)
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")


def check_share(name: str, value: Any) -> None:
    """Refuse a value that does not lie between 0 and 1; both are allowed."""
    check_number(name, value)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")


def check_positive(name: str, value: Any) -> None:
    """Refuse a value that is not a finite number above 0."""
    check_number(name, value)
    if not 0.0 < value < np.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")


def check_count(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    """Refuse a value that is not a whole number of at least `minimum` and at most `maximum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value!r}.")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {value!r}.")


def check_number(name: str, value: Any) -> None:
    """Refuse a value that is not a number; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")


def as_generator(random_state: Any) -> np.random.Generator:
    """Random generator for `random_state`; NumPy's global state is neither read nor changed.

    Takes None (fresh entropy), a whole number, a ``numpy.random.Generator`` (used as it is)
    or a ``numpy.random.RandomState`` (one number is drawn from it).
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31 - 1)))
    if random_state is None:
        return np.random.default_rng()
    check_count("random_state", random_state, 0)
    return np.random.default_rng(int(random_state))


def check_rows(name: str, value: Any) -> NDArray[np.float64]:
    """`value` as finite float64 rows of shape (n >= 2, m >= 1); anything else is refused."""
    rows = np.asarray(value, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2 or rows.shape[1] < 1:
        raise ValueError(f"{name} must have shape (n >= 2, m >= 1), got {rows.shape}.")
    if not np.isfinite(rows).all():
        n_bad = int((~np.isfinite(rows)).sum())
        raise ValueError(f"{name} must be finite, got {n_bad} values that are NaN or infinite.")
    return rows


def check_array_kind(X: Any) -> None:
    """Refuse arrays that scikit-learn would misread."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X has masked values, which are missing: fill them, or drop their rows.")
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of several lengths, which scikit-learn refuses
            return
    if isinstance(X, np.ndarray) and (kind := time_type(X)):
        raise TypeError(f"X must hold numbers, got the type {kind}.")


def time_type(array: NDArray[Any]) -> str:
    """The type of the dates or times of NumPy in the array; empty if there are none."""
    if array.dtype.kind in "mM":
        return str(array.dtype)
    cells = array.flat if array.dtype == object else ()
    times = (cell.dtype for cell in cells if isinstance(cell, np.datetime64 | np.timedelta64))
    return str(next(times, ""))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "gammagmm":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
