"""COPOD and ECOD, as PyOD defines them.

They are not subclasses of PyOD's classes, whose modules import Matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyod.models.base import BaseDetector

from gammagmm.detectors.pyod_subclasses import Frozen

__all__ = ["COPOD", "ECOD"]

FloatArray: TypeAlias = NDArray[np.float64]


class TailDetector(Frozen, BaseDetector):
    """COPOD and ECOD: minus log of the training rows' ECDF from either end, feature by feature."""

    _both: Any  # combines the two ends where the skewness does not decide

    def __init__(self, contamination: float = 0.1, n_jobs: int = 1) -> None:
        super().__init__(contamination=contamination)
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fitted detector, on the rows X (n, d); y is ignored."""
        self.X_train = X = self._check_training(X, y)
        self.skewness_ = np.sign(_skewness(X))
        self.prepare_tails()
        self.__dict__.pop("_outlyingness", None)  # of an earlier fit
        self.decision_scores_ = self._scores(X)
        self._process_decision_scores()
        return self

    @cached_property
    def _outlyingness(self) -> tuple[FloatArray, ...]:
        """PyOD's attributes U_l, U_r, U_skew and O, four times as large as the training rows."""
        kinds = tuple(np.empty(self.X_train.shape) for _ in range(4))
        for j, order, found in self._by_column(self.X_train):
            for kind, values in zip(kinds, found, strict=True):
                kind[order, j] = values
        return kinds

    U_l = property(lambda self: self._outlyingness[0])
    U_r = property(lambda self: self._outlyingness[1])
    U_skew = property(lambda self: self._outlyingness[2])
    O = property(lambda self: self._outlyingness[3])  # noqa: E741

    def prepare_tails(self) -> None:
        """Compute what follows from the training rows."""
        X = self.X_train
        self.sorted_columns_ = np.sort(X.T, axis=1)
        # The values of PyOD's column_ecdf for 1, 2, ..., n rows.
        self.tails_ = -1 * np.log(np.linspace(1 / len(X), 1.0, len(X)))

    def decision_function(self, X: Any) -> FloatArray:
        """Scores (n,) of the rows X (n, d), higher for more anomalous.

        Each value is ranked among the training rows; a value beyond their range has the rank of
        the first or the last.
        """
        return self._scores(self._check_new(X))

    def _scores(self, X: NDArray[Any]) -> FloatArray:
        found = np.empty(X.shape)
        for j, order, (*_, final) in self._by_column(X):
            found[order, j] = final
        scores: FloatArray = found.sum(axis=1)
        return scores

    def _by_column(
        self, X: NDArray[Any]
    ) -> Iterator[tuple[int, NDArray[np.intp], tuple[FloatArray, ...]]]:
        """The number of each column, its rows in rising order, and how far out these lie.

        That is their left, right, skewness-corrected and final outlyingness (n,).
        """
        tails, columns = self.tails_, np.ascontiguousarray(X.T)
        for j, (column, x) in enumerate(zip(self.sorted_columns_, columns, strict=True)):
            order = np.argsort(x)
            values = x[order]  # sorted values are found several times faster
            n_below = np.searchsorted(column, values, side="right")
            n_above = len(column) - np.searchsorted(column, values, side="left")
            left, right = tails[np.maximum(n_below, 1) - 1], tails[np.maximum(n_above, 1) - 1]
            skewness = self.skewness_[j]
            corrected = left if skewness < 0 else right if skewness > 0 else left + right
            yield j, order, (left, right, corrected, np.maximum(corrected, self._both(left, right)))


def _skewness(X: NDArray[Any]) -> NDArray[Any]:
    """Skewness (d,) of each column by the arithmetic of SciPy 1.17, 0 for a constant one.

    SciPy warns about constant columns. The scores depend only on the sign, which is a matter of
    rounding for a symmetric column.
    """
    mean = X.mean(axis=0)
    centred = X - mean
    second = (centred**2).mean(axis=0)
    third = (centred**2 * centred).mean(axis=0)
    with np.errstate(all="ignore"):
        is_constant = second <= (np.finfo(second.dtype).eps * mean) ** 2
        return np.nan_to_num(np.where(is_constant, 0.0, third / second**1.5))


class COPOD(TailDetector):
    """PyOD's COPOD, with new rows ranked among the training rows; `n_jobs` has no effect.

    Examples
    --------
    >>> copod = COPOD().fit([[0.0], [1.0], [2.0], [9.0]])
    >>> copod.decision_function([[0.5], [9.0], [99.0]]).round(2).tolist()
    [0.84, 1.39, 1.39]
    """

    @staticmethod
    def _both(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.add(left, right) / 2

    def explain_outlier(self, *args: Any, **kwargs: Any) -> Any:
        """PyOD's plot of the scores of one training row, feature by feature."""
        from pyod.models.copod import COPOD as PyodCOPOD

        return PyodCOPOD.explain_outlier(self, *args, **kwargs)


class ECOD(TailDetector):
    """PyOD's ECOD, with new rows ranked among the training rows; `n_jobs` has no effect.

    Examples
    --------
    >>> ecod = ECOD().fit([[0.0], [1.0], [2.0], [9.0]])
    >>> ecod.decision_function([[0.5], [9.0], [99.0]]).round(2).tolist()
    [1.39, 1.39, 1.39]
    """

    @staticmethod
    def _both(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.maximum(left, right)

    def explain_outlier(self, *args: Any, **kwargs: Any) -> Any:
        """PyOD's plot of the scores of one training row, feature by feature."""
        from pyod.models.ecod import ECOD as PyodECOD

        return PyodECOD.explain_outlier(self, *args, **kwargs)
