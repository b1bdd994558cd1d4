"""Checks of parameters and tables; the messages give the name, the rule and the value."""

from __future__ import annotations

import numbers
import re
import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "as_generator",
    "check_count",
    "check_number",
    "check_positive",
    "check_probability",
    "check_rows",
    "check_share",
    "check_table",
    "explain_rows",
    "warn_user",
]

_TIMES = re.compile(r"date|time|duration|interval|period", re.IGNORECASE)


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


def check_count(name: str, value: Any, minimum: int) -> None:
    """Refuse a value that is not a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value!r}.")


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


def check_table(X: Any) -> None:
    """Refuse tables that scikit-learn would misread, or refuse without saying what to do."""
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise TypeError("X is a lazy frame, which holds no rows yet: call X.collect() first.")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X has masked values, which are missing: fill them, or drop their rows.")
    if isinstance(X, np.ndarray) and _TIMES.match(str(X.dtype)):
        raise TypeError(f"X must hold numbers, got the type {X.dtype}.")
    columns = _column_kinds(X)
    times = [f"{name!r} ({kind})" for name, kind in columns if _TIMES.match(kind)]
    if times:
        raise TypeError(f"X must hold numbers: drop or encode the columns {', '.join(times)}.")
    names = [name for name, _ in columns]
    for name in names:
        if isinstance(name, str) and names.count(name) > 1:
            raise ValueError(f"X has {names.count(name)} columns named {name!r}: rename them.")


def _column_kinds(X: Any) -> list[tuple[Any, str]]:
    """Name and type of each column of a pandas, polars or pyarrow table; none for an array."""
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # pyarrow
        return [(field.name, str(field.type)) for field in X.schema]
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return [(name, str(kind)) for name, kind in zip(X.columns, X.dtypes, strict=True)]
    return []


def explain_rows(X: Any, error: Exception) -> Exception:
    """The error to raise where scikit-learn refused `X`: a clearer one, or its own `error`."""
    words = str(error)
    if "could not convert string to float" in words:
        return ValueError(_describe_text(X))
    if "contains NaN" in words:
        return ValueError(
            "Input X contains NaN, which is a missing value. Fill the missing values, drop their "
            'rows, or pass missing="impute".'
        )
    if words.startswith(("Expected 2D array", "Found array with")):
        return ValueError(f"X must be a table of rows and columns. {words}")
    return error


def _describe_text(X: Any) -> str:
    """Message that names the first column of `X` that holds text, and the text."""
    names = [name for name, _ in _column_kinds(X)]
    for j, column in enumerate(np.asarray(X, dtype=object).T):
        for i, value in enumerate(column):
            if isinstance(value, str | bytes) and not _is_number(value):
                name = f"column {names[j]!r}" if j < len(names) > 1 else f"column {j}"
                return (
                    f"X must hold numbers, but {name} holds text ({value[:40]!r} in row {i}): "
                    'drop the column, encode it as numbers, or pass categories="encode".'
                )
    return "X must hold numbers, but it holds text: drop or encode the columns with text."


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "gammagmm":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
