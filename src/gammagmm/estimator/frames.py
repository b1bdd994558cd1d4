"""Answers for the training rows -> a data frame with a line for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.errors import MissingExtraError
from gammagmm.inspection.labelled_rows import GroupShare
from gammagmm.posterior.decisions import is_anomaly, probability_at

__all__ = ["block_frame", "group_frame", "index_of", "row_columns", "row_frame"]

Array = NDArray[np.float64]

GROUP_COLUMNS = (
    *("n_rows", "n_flagged", "share_flagged", "low_flagged", "high_flagged"),
    *("n_labels", "n_anomalies"),
)
"""Attributes of a `GroupShare` that are columns of a data frame."""


def index_of(X: Any) -> Any:
    """The index of a pandas DataFrame, and None for what has none."""
    return X.index.copy() if hasattr(X, "iloc") and hasattr(X, "index") else None


def row_columns(
    answers: tuple[Any, Any, Any], scores: Array, names: list[str]
) -> dict[str, NDArray[Any]]:
    """Columns by name: scores, probabilities and labels, then raw scores (n, M)."""
    columns = dict(zip(("score", "probability", "label"), answers, strict=True))
    raw = {f"score_{name}": own for name, own in zip(names, scores.T, strict=True)}
    return columns | raw


def row_frame(answers: tuple[Any, Any, Any], scores: Array, names: list[str], index: Any) -> Any:
    """The columns of `row_columns` as a pandas DataFrame."""
    return _pandas("to_frame").DataFrame(row_columns(answers, scores, names), index=index)


def group_frame(shares: Sequence[GroupShare]) -> Any:
    """A line for each group, by its name, as a pandas DataFrame."""
    own = [share.posterior for share in shares]
    ends = [(np.nan, np.nan) if each is None else each.interval() for each in own]
    columns: dict[str, list[Any]] = {
        name: [getattr(share, name) for share in shares] for name in GROUP_COLUMNS
    }
    columns |= {
        "mean": [np.nan if each is None else each.mean for each in own],
        "low": [low for low, _ in ends],
        "high": [high for _, high in ends],
    }
    pd = _pandas("by_group")
    return pd.DataFrame(columns, index=pd.Index([share.group for share in shares], name="group"))


def _pandas(question: str) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        raise MissingExtraError(f"{question} needs pandas", "pandas", name="pandas") from None
    return pd


def block_frame(source: Any, first: int, scores: Array, *answers: Any) -> Any:
    """The same for a block of rows with raw `scores` (n, M); `first` is its first row's number.

    `answers` are the fit's scaler, ranks, posterior, threshold and names; `source` has the index,
    or is None: rows are numbered then.
    """
    import pandas as pd

    scaler, ranks, posterior, threshold, names = answers
    consensus = scaler.consensus(scores)
    probability = probability_at(posterior, ranks.shares_at_least(consensus))
    labels = is_anomaly(consensus, threshold)
    index = index_of(source)
    if index is None:
        index = pd.RangeIndex(first, first + len(scores))
    return row_frame((consensus, probability, labels), scores, names, index)
