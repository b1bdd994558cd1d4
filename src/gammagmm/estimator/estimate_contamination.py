"""Rows -> contamination factor in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from gammagmm._support.checks import warn_user
from gammagmm.errors import NoContaminationError, NoLabelsWarning
from gammagmm.estimator.gamma_gmm import GammaGMM
from gammagmm.posterior.contamination import Contamination
from gammagmm.posterior.sentences import NOT_KNOWN, record_sentence
from gammagmm.posterior.track_record import load_track_record

__all__ = ["estimate_contamination"]

ADVICE = (
    "Label about 30 rows that are chosen at random, and pass labels={row: 0 or 1} with their "
    "positions."
)
REASONS = ("evidence.no estimate", "link.no solution")
"""Codes of the notes that say why the model has no estimate."""


def estimate_contamination(
    X: ArrayLike,
    *,
    labels: Mapping[int, int] | None = None,
    at_least_one: bool = False,
    **parameters: Any,
) -> Contamination:
    """The share of anomalies among the rows of `X`, for PyOD's and scikit-learn's contamination.

    Without labels, the share is hardly identifiable, and a `NoLabelsWarning` says how often such
    estimates are right. On average over tables like the 303 that were measured, 94 % of the 90 %
    intervals from the labels of 30 rows contain the true share (89 % on a collection that the prior
    does not know).

    The page "PyOD and PyThresh" of the documentation shows it in use.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows, most of them without labels.
    labels : mapping of int to int or None, default=None
        The labels of some rows, by their position in `X`: 1 for an anomaly, 0 for a normal row. The
        rows must be chosen at random, or by `GammaGMM.suggest`, and not because they are unusual.
    at_least_one : bool, default=False
        Whether an estimate of 0 becomes 1 / n_rows, which flags the row with the highest score,
        instead of raising a `NoContaminationError`.
    **parameters : dict
        Parameters of `GammaGMM`.

    Returns
    -------
    Contamination
        A float, the posterior mean, with the posterior as its attribute.

    Raises
    ------
    NoContaminationError
        The estimate is 0: no variational run could meet `p_high`, or all rows are labelled normal.

    Warns
    -----
    NoLabelsWarning
        There are no labels.
    SeparateRowsWarning
        Rows are separate from the rest, and there is no estimate, or a smaller one.

    Examples
    --------
    >>> from gammagmm.datasets import load_demo
    >>> from pyod.models.knn import KNN
    >>> X, y = load_demo().X, load_demo().y
    >>> answers = {row: int(y[row]) for row in range(0, 360, 12)}  # take yours at random
    >>> options = {"detectors": ["KNN", "LOF", "HBOS"], "n_runs": 2, "random_state": 0}
    >>> gamma = estimate_contamination(X, labels=answers, **options)
    >>> int(KNN(contamination=gamma).fit(X).labels_.sum()), gamma.posterior
    (16, GammaPosterior(mean=0.046, 90% interval 0.005 to 0.117))
    """
    if not (labels is None or isinstance(labels, Mapping)):
        raise TypeError(
            "labels must be a dict of positions of rows and their labels, such as {0: 1, 5: 0}, "
            f"got {type(labels).__name__}."
        )
    estimator = GammaGMM(**parameters).fit(X)
    if labels:
        estimator.update(list(labels), list(labels.values()))
    gamma, n_rows = estimator.contamination_, len(estimator.labels_)
    if not labels and (gamma > 0.0 or at_least_one):
        record = record_sentence(load_track_record())
        warn_user(f"{NOT_KNOWN}. {record} {ADVICE}", NoLabelsWarning)
    if gamma > 0.0:
        return gamma
    if at_least_one:
        return Contamination(gamma.posterior, 1.0 / n_rows)
    if labels:
        raise NoContaminationError(
            "All rows are labelled normal, so the share is 0, but PyOD and scikit-learn do not "
            "accept a contamination of 0",
            f"Pass at_least_one=True to get 1 / n_rows = {1.0 / n_rows:.3g}.",
            estimator,
        )
    messages = {note.code: note.message for note in estimator.notes_}
    reasons = [messages[code] for code in REASONS if code in messages]
    raise NoContaminationError(
        "The estimate is 0, but PyOD and scikit-learn do not accept a contamination of 0. "
        + " ".join(reasons),
        f"{ADVICE} Or pass at_least_one=True to get 1 / n_rows = {1.0 / n_rows:.3g}.",
        estimator,
    )
