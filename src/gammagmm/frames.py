"""Fitted estimator -> a data frame with a line for each training row."""

from __future__ import annotations

from typing import Any

import numpy as np

from gammagmm.errors import MissingExtraError
from gammagmm.threshold import training_probability

__all__ = ["index_of", "row_frame"]


def index_of(X: Any) -> Any:
    """The index of a pandas DataFrame, and None for what has none."""
    return X.index.copy() if hasattr(X, "iloc") and hasattr(X, "index") else None


def row_frame(estimator: Any) -> Any:
    """The answer for each training row of a fitted `GammaGMM`, as a pandas DataFrame.

    Columns: consensus score, probability, label, and each detector's raw score under its name.
    The index is that of the DataFrame the estimator was fitted on.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        message = "to_frame needs pandas: pip install pandas."
        raise MissingExtraError(message, name="pandas") from None
    consensus = estimator.decision_scores_
    answers = np.column_stack([consensus, training_probability(estimator)])
    frame = pd.DataFrame(answers, index=estimator.index_, columns=["score", "probability"])
    frame["label"] = estimator.labels_
    raw = pd.DataFrame(estimator.scores_, index=frame.index, columns=estimator.detector_names_)
    return pd.concat([frame, raw.add_prefix("score_")], axis=1)
