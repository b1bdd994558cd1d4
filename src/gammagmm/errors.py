"""Errors and warnings that users can meet, and the notes that a result carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "DetectorError",
    "DetectorWarning",
    "GammaGMMWarning",
    "MissingExtraError",
    "MixtureConvergenceWarning",
    "MixtureError",
    "NoContaminationError",
    "NoSolutionWarning",
    "Note",
    "SavedFileError",
    "TableError",
    "UnsolvedRunsWarning",
]


class DetectorError(ValueError):
    """Too few detectors gave usable scores; the message lists the reason of each."""


class MissingExtraError(ImportError):
    """A package that this needs is not installed; the message gives the command."""


class MixtureError(ValueError):
    """The mixture cannot be fitted to these rows; the message says what to do."""


class NoContaminationError(ValueError):
    """The estimate is 0, which PyOD and scikit-learn refuse as a contamination.

    Attributes
    ----------
    estimator : GammaGMM
        The fitted estimator, whose ``notes_`` and ``runs_`` tell more.
    """

    def __init__(self, message: str, estimator: Any) -> None:
        super().__init__(message, estimator)
        self.estimator = estimator

    def __str__(self) -> str:
        return str(self.args[0])


class SavedFileError(ValueError):
    """A saved posterior or summary cannot be read; the message says what is wrong with the file."""


class TableError(ValueError):
    """A file cannot be read as a numeric table; the message says where and what to do."""


class GammaGMMWarning(UserWarning):
    """Base of every warning of this package."""


class DetectorWarning(GammaGMMWarning):
    """A detector was left out."""


class MixtureConvergenceWarning(GammaGMMWarning, ConvergenceWarning):
    """A variational run stopped at ``max_iter`` before its bound settled."""


class NoSolutionWarning(GammaGMMWarning):
    """No variational run could meet ``p_high``: the result is the point mass at 0."""


class UnsolvedRunsWarning(GammaGMMWarning):
    """Some variational runs could not meet ``p_high`` and do not enter the posterior."""


@dataclass(frozen=True)
class Note:
    """One thing that was changed, left out or approximated on the way to the result.

    Attributes
    ----------
    step : str
        The step of the method, named as its module: "detectors", "scores", "mixture", ...
    subject : str
        What it concerns: a detector, a parameter, a run.
    message : str
        What was done and why, as a sentence.
    """

    step: str
    subject: str
    message: str
