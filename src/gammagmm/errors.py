"""Errors and warnings that users can meet, and the notes that a result carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gammagmm.mixture.fit import MixtureConvergenceWarning

__all__ = [
    "ClusterError",
    "DetectorError",
    "DetectorWarning",
    "FitTimeoutError",
    "GammaGMMError",
    "GammaGMMWarning",
    "LabelsWarning",
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


EXTRAS = ("deep", "data", "dask", "arviz", "experiments", "all")
"""Optional groups of packages, as pyproject.toml has them."""


class GammaGMMError(Exception):
    """Base of every error of this package.

    Attributes
    ----------
    what : str
        What happened, as a sentence without its full stop.
    todo : str
        What to do about it, as one or more sentences; empty where there is nothing to say.

    Examples
    --------
    >>> error = GammaGMMError("rows.csv is empty", "Give a file with at least one row.")
    >>> str(error), error.todo
    ('rows.csv is empty. Give a file with at least one row.', 'Give a file with at least one row.')
    """

    def __init__(self, what: str, todo: str = "") -> None:
        # Not super(): OSError would take two arguments for a number and its meaning.
        Exception.__init__(self, what, todo)
        self.what = what.removesuffix(".")
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what}. {self.todo}".rstrip()


class ClusterError(GammaGMMError, RuntimeError):
    """The Dask cluster that the rows live on is gone, or its workers died again and again.

    Examples
    --------
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


class DetectorError(GammaGMMError, ValueError):
    """Too few detectors gave usable scores, or one cannot score new rows; the message says why.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> try:
    ...     GammaGMM("precomputed").fit([[1.0], [1.0], [1.0]])
    ... except DetectorError as error:
    ...     print(error.what)
    0 of 1 detectors gave usable scores, 1 needed. Left out: score_1: the same score for every row
    """


class FitTimeoutError(GammaGMMError, TimeoutError):
    """The fit was not done after ``timeout`` seconds; what was done is here, and not lost.

    Attributes
    ----------
    so_far : FitSoFar
        The detectors that were done, with their scores, and the runs that were, with their
        posterior. ``GammaGMM("precomputed").fit(error.so_far.scores)`` goes on from the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from gammagmm import GammaGMM
    >>> scores = np.random.default_rng(0).normal(size=(50, 2))
    >>> try:
    ...     GammaGMM("precomputed", timeout=1e-9).fit(scores)
    ... except FitTimeoutError as error:
    ...     print(error)  # doctest: +ELLIPSIS
    ...     print(error.so_far.scores.shape, error.so_far.posterior)
    The fit was not done after timeout=1e-09 s: 2 of 2 detectors were, and 0 of 10 runs...
    (50, 2) None
    """

    def __init__(self, what: str, todo: str = "", so_far: Any = None) -> None:
        super().__init__(what, todo)
        self.so_far = so_far


class MissingExtraError(GammaGMMError, ImportError):
    """A package that is optional and needed here is not installed.

    Parameters
    ----------
    needs : str
        Who needs which package: "to_arviz needs ArviZ".
    extra : str
        What to install: the name of an extra of this package, or of a package that is in none.
    name : str, default=None
        The module that could not be imported.

    Examples
    --------
    >>> print(MissingExtraError("to_arviz needs ArviZ", "arviz"))
    to_arviz needs ArviZ, which is not installed. Run: pip install 'gammagmm[arviz]'
    """

    def __init__(self, needs: str, extra: str, *, name: str | None = None) -> None:
        package = f"'gammagmm[{extra}]'" if extra in EXTRAS else extra
        super().__init__(f"{needs}, which is not installed", f"Run: pip install {package}")
        self.args = (needs, extra)
        self.msg, self.name = str(self), name


class MixtureError(GammaGMMError, ValueError):
    """The mixture cannot be fitted to these rows; the message says what to do.

    Examples
    --------
    >>> issubclass(MixtureError, ValueError)
    True
    """


class NoContaminationError(GammaGMMError, ValueError):
    """The estimate is 0, which PyOD and scikit-learn refuse as a contamination.

    Attributes
    ----------
    estimator : GammaGMM
        The fitted estimator, whose ``notes_`` and ``runs_`` tell more.

    Examples
    --------
    >>> issubclass(NoContaminationError, ValueError)
    True
    """

    def __init__(self, what: str, todo: str = "", estimator: Any = None) -> None:
        super().__init__(what, todo)
        self.estimator = estimator


class SavedFileError(GammaGMMError, ValueError):
    """A saved posterior or summary cannot be read; the message says what is wrong with the file.

    Examples
    --------
    >>> from gammagmm.posterior.storage import posterior_from_text
    >>> try:
    ...     posterior_from_text("{}")
    ... except SavedFileError as error:
    ...     print(error.what)
    The text cannot be read as a posterior: its schema must be 'gammagmm/posterior', got None
    """


class TableError(GammaGMMError, ValueError):
    """A file cannot be read as a numeric table; the message says where and what to do.

    Examples
    --------
    >>> from gammagmm.datasets import read_npz
    >>> try:
    ...     read_npz("nowhere.npz")
    ... except TableError as error:
    ...     print(error)
    nowhere.npz does not exist or is not a file. Check the path.
    """


class GammaGMMWarning(UserWarning):
    """Base of every warning of this package.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", GammaGMMWarning)  # none shall pass unseen
    """


class DetectorWarning(GammaGMMWarning):
    """A detector was left out.

    Examples
    --------
    >>> issubclass(DetectorWarning, GammaGMMWarning)
    True
    """


class LabelsWarning(GammaGMMWarning):
    """The labels contradict the ranking and the prior so much that the posterior is imprecise.

    Examples
    --------
    >>> issubclass(LabelsWarning, GammaGMMWarning)
    True
    """


class NoSolutionWarning(GammaGMMWarning):
    """No variational run could meet ``p_high``: the result is the point mass at 0.

    Examples
    --------
    >>> issubclass(NoSolutionWarning, GammaGMMWarning)
    True
    """


class UnsolvedRunsWarning(GammaGMMWarning):
    """Some variational runs could not meet ``p_high`` and do not enter the posterior.

    Examples
    --------
    >>> issubclass(UnsolvedRunsWarning, GammaGMMWarning)
    True
    """


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

    Examples
    --------
    >>> Note("detectors", "KNN", "left out: it raised").subject
    'KNN'
    """

    step: str
    subject: str
    message: str


def __getattr__(name: str) -> Any:
    """`MixtureConvergenceWarning`, which is scikit-learn's too, when it is asked for.

    The command line refuses a bad file without loading scikit-learn, which takes seconds.
    """
    if name == "MixtureConvergenceWarning":
        from gammagmm.mixture.fit import MixtureConvergenceWarning

        return MixtureConvergenceWarning
    raise AttributeError(f"module 'gammagmm.errors' has no attribute {name!r}")
