"""Errors and warnings that users can meet, and the notes that a result carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gammagmm.mixture.convergence import MixtureConvergenceWarning

__all__ = [
    "ClusterError",
    "ColumnsWarning",
    "DetectorError",
    "DetectorWarning",
    "FitTimeoutError",
    "GammaGMMError",
    "GammaGMMWarning",
    "HistoryError",
    "LabelsWarning",
    "MissingExtraError",
    "MixtureConvergenceWarning",
    "MixtureError",
    "NewRowsWarning",
    "NoContaminationError",
    "NoLabelsWarning",
    "NoRowsError",
    "NoSolutionWarning",
    "Note",
    "Problem",
    "SaveError",
    "SavedFileError",
    "SavedFitWarning",
    "SeparateRowsWarning",
    "TableError",
    "UnsolvedRunsWarning",
]


EXTRAS = ("deep", "data", "excel", "dask", "arviz", "mcp", "notebook", "experiments", "all")
"""Optional groups of packages, as pyproject.toml has them."""


class GammaGMMError(Exception):
    """Base of the errors of this module.

    Attributes
    ----------
    what : str
        What happened, as a sentence without its full stop.
    todo : str
        What to do about it, as one or more sentences; empty where there is nothing to say.

    Examples
    --------
    >>> error = GammaGMMError("rows.csv is empty", "Give a file with at least one row.")
    >>> print(error)
    rows.csv is empty. Give a file with at least one row.
    >>> error.todo
    'Give a file with at least one row.'
    """

    def __init__(self, what: str, todo: str = "") -> None:
        # Not super(): OSError would take two arguments for a number and its meaning.
        Exception.__init__(self, what, todo)
        self.what = what.removesuffix(".")
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what}. {self.todo}".rstrip()


class ClusterError(GammaGMMError, RuntimeError):
    """The connection to the Dask cluster was lost, or its workers died repeatedly.

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
    ...     print(error.what)  # doctest: +ELLIPSIS
    Only 0 of 1 detectors gave usable scores, but 1 is needed. Skipped: score_1...
    """


class FitTimeoutError(GammaGMMError, TimeoutError):
    """The fit exceeded ``timeout`` seconds without a result; `so_far` holds what is finished.

    Attributes
    ----------
    so_far : PartialFit
        The finished detectors with their scores, the detectors that the fit waited for, and the
        finished runs. ``GammaGMM("precomputed").fit(error.so_far.scores)`` continues from the
        scores.

    Examples
    --------
    >>> import numpy as np
    >>> from gammagmm import GammaGMM
    >>> scores = np.random.default_rng(0).normal(size=(50, 2))
    >>> try:
    ...     GammaGMM("precomputed", timeout=1e-9).fit(scores)
    ... except FitTimeoutError as error:
    ...     print(error)  # doctest: +ELLIPSIS
    ...     print(error.so_far.scores.shape, error.so_far.waited_for)
    The fit exceeded timeout=1e-09 s. Finished: 2 of 2 detectors and 0 of 10 runs...
    (50, 2) []
    """

    def __init__(self, what: str, todo: str = "", so_far: Any = None) -> None:
        super().__init__(what, todo)
        self.so_far = so_far


class HistoryError(GammaGMMError, ValueError):
    """Rows cannot be added to a history of `monitor`, or it cannot be saved; the message says why.

    Examples
    --------
    >>> issubclass(HistoryError, ValueError)
    True
    """


class MissingExtraError(GammaGMMError, ImportError):
    """An optional package that is needed here is not installed.

    Attributes
    ----------
    name : str or None
        The module that could not be imported.

    Examples
    --------
    >>> print(MissingExtraError("to_arviz needs ArviZ", "arviz"))
    to_arviz needs ArviZ, which is not installed. Run: pip install 'gammagmm[arviz]'
    """

    def __init__(self, needs: str, extra: str, *, name: str | None = None) -> None:
        # `needs` says who needs which package; `extra` is an extra of this package, or a package.
        package = f"'gammagmm[{extra}]'" if extra in EXTRAS else extra
        verb = "are" if " and " in needs.rpartition(" needs ")[2] else "is"
        super().__init__(f"{needs}, which {verb} not installed", f"Run: pip install {package}")
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
    """The estimate is 0, but PyOD and scikit-learn do not accept a contamination of 0.

    Attributes
    ----------
    estimator : GammaGMM
        The fitted estimator, whose ``notes_`` and ``fit_.runs`` give details.

    Examples
    --------
    >>> issubclass(NoContaminationError, ValueError)
    True
    """

    def __init__(self, what: str, todo: str = "", estimator: Any = None) -> None:
        super().__init__(what, todo)
        self.estimator = estimator


class SaveError(GammaGMMError, ValueError):
    """A fit cannot be saved; the message says which part of it, and what to do.

    Examples
    --------
    >>> issubclass(SaveError, ValueError)
    True
    """


class SavedFileError(GammaGMMError, ValueError):
    """A saved posterior, history or fit cannot be read; the message says what is wrong with it.

    Examples
    --------
    >>> from gammagmm.posterior.storage import posterior_from_text
    >>> try:
    ...     posterior_from_text("{}")
    ... except SavedFileError as error:
    ...     print(error.what)
    The text cannot be read as a posterior: its schema must be 'gammagmm/posterior', got None
    """


@dataclass(frozen=True)
class Problem:
    """One reason why a column of a table cannot be used as it is.

    Attributes
    ----------
    column : str
        Name of the column.
    code : str
        What is wrong: "missing", "empty", "infinite", "text", "many texts", "taken name", "forms",
        "kind", "unit" or "truth".
    what : str
        The same in words: what is wrong, how often and where first, without a full stop.
    remedies : tuple of str, default=()
        What helps, the simplest first: "fill", "encode", "drop", "drop rows", "id", "correct",
        "same form", "fill by hand", "fill and fit", "as trained", "rename" or "words".

    Examples
    --------
    >>> Problem("a", "missing", "column 'a': 1 missing value", ("fill", "drop")).remedies
    ('fill', 'drop')
    """

    column: str
    code: str
    what: str
    remedies: tuple[str, ...] = ()


class TableError(GammaGMMError, ValueError):
    """A file or `X` cannot be read as a numeric table; the message says where and what to do.

    Attributes
    ----------
    problems : tuple of Problem
        Everything that is wrong with the columns; empty where the error is another one.
    source : str
        Name of the file that has the problems.

    Examples
    --------
    >>> from gammagmm import GammaGMM
    >>> try:
    ...     GammaGMM().fit([[1.0, None], [2.0, 3.0]])
    ... except TableError as error:
    ...     print(error.what)
    Input X contains NaN, which is a missing value
    """

    def __init__(
        self,
        what: str,
        todo: str = "",
        problems: tuple[Problem, ...] = (),
        source: str = "",
    ) -> None:
        super().__init__(what, todo)
        self.source = source
        self.problems = problems


class NoRowsError(TableError):
    """A file has no rows; the message says which.

    Attributes
    ----------
    columns : tuple of str
        Names of its columns; empty where it has none.

    Examples
    --------
    >>> issubclass(NoRowsError, TableError)
    True
    """

    def __init__(self, what: str, todo: str = "", columns: tuple[str, ...] = ()) -> None:
        super().__init__(what, todo)
        self.columns = columns


class GammaGMMWarning(UserWarning):
    """Base of every warning of this package.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", GammaGMMWarning)  # warnings become errors
    """


class ColumnsWarning(GammaGMMWarning):
    """Columns of a data frame are not used, or are read as numbers by an assumption.

    The former look like ids, codes, labels or dates; the latter hold texts such as "7,125".

    Examples
    --------
    >>> issubclass(ColumnsWarning, UserWarning)
    True
    """


class DetectorWarning(GammaGMMWarning):
    """A detector was skipped.

    Examples
    --------
    >>> issubclass(DetectorWarning, GammaGMMWarning)
    True
    """


class LabelsWarning(GammaGMMWarning):
    """Labels are not as they are said to be, such as those of rows that are not random.

    A list of rows that were not chosen at random has none of those that were, against chance: pass
    the whole list to `update`, with the rows of it that were chosen at random as well. Or rows that
    count as chosen at random come from too far up in the ranking. Or the labels contradict the rate
    of wrong labels: give a smaller `label_error`.

    Examples
    --------
    >>> issubclass(LabelsWarning, GammaGMMWarning)
    True
    """


class NewRowsWarning(GammaGMMWarning):
    """`predict` flags more than three times the estimated share, or new rows have a new text.

    A text that the training rows do not have is encoded as if the row had none of their texts.

    Examples
    --------
    >>> issubclass(NewRowsWarning, GammaGMMWarning)
    True
    """


class NoLabelsWarning(GammaGMMWarning):
    """A share was estimated without labels, and such estimates are rarely right.

    Examples
    --------
    >>> issubclass(NoLabelsWarning, GammaGMMWarning)
    True
    """


class NoSolutionWarning(GammaGMMWarning):
    """No variational run could meet ``p_high``: the result is the point mass at 0.

    Examples
    --------
    >>> issubclass(NoSolutionWarning, GammaGMMWarning)
    True
    """


class SavedFitWarning(GammaGMMWarning):
    """A saved fit cannot score new rows, or scores them with detectors that have changed.

    Detectors that are your own objects are not saved. The others are, and other versions of the
    packages can give them other scores.

    Examples
    --------
    >>> issubclass(SavedFitWarning, GammaGMMWarning)
    True
    """


class SeparateRowsWarning(GammaGMMWarning):
    """Rows are separate from the rest, and the model has no estimate or a smaller one.

    Their share lies above the model range.

    Examples
    --------
    >>> issubclass(SeparateRowsWarning, GammaGMMWarning)
    True
    """


class UnsolvedRunsWarning(GammaGMMWarning):
    """Most starts of the variational runs could not meet ``p_high``; the others are used.

    Examples
    --------
    >>> issubclass(UnsolvedRunsWarning, GammaGMMWarning)
    True
    """


@dataclass(frozen=True, repr=False)
class Note:
    """A change, omission or approximation that was made during the fit.

    Attributes
    ----------
    code : str
        What was done, such as "detectors.sampled". The part before the point is the step of the
        method: "tables", "columns", "detectors", "mixture", "link", "evidence", "labels" or "load".
    subject : str
        What it concerns: a column, a detector, a parameter, a run.
    values : tuple of pairs, default=()
        Names and values of the figures that belong to it.

    Examples
    --------
    >>> note = Note.of("detectors.sampled", "KNN", n_fit=20000, n_rows=50000)
    >>> note.step, note.fields["n_fit"], note.message
    ('detectors', 20000, 'fitted on 20000 random rows of 50000; the others are scored as new rows')
    """

    code: str
    subject: str
    values: tuple[tuple[str, str | int | float | bool | None], ...] = ()

    @classmethod
    def of(cls, code: str, subject: str, **values: Any) -> Note:
        """The note with these values.

        Parameters
        ----------
        code : str
            What was done.
        subject : str
            What it concerns.
        **values : dict
            The figures that belong to it.

        Returns
        -------
        Note
            The note.
        """
        plain = ((n, v.item() if hasattr(v, "item") else v) for n, v in values.items())
        return cls(code, subject, tuple(plain))

    @property
    def step(self) -> str:
        """The step of the method."""
        return self.code.partition(".")[0]

    @property
    def fields(self) -> dict[str, Any]:
        """The figures by name."""
        return dict(self.values)

    @property
    def message(self) -> str:
        """What was done and why, as a sentence."""
        from gammagmm._support.note_words import words_of

        return words_of(self.code, self.fields)

    def to_data(self) -> dict[str, Any]:
        """The note as plain values, with its words.

        Returns
        -------
        dict
            The keys are code, step, subject, message and values.
        """
        words = {"code": self.code, "step": self.step, "subject": self.subject}
        return words | {"message": self.message, "values": self.fields}

    def __repr__(self) -> str:
        return f"Note({self.code!r}, {self.subject!r}, {self.message!r})"


def __getattr__(name: str) -> Any:
    """Load `MixtureConvergenceWarning` on first use, so that the command line starts quickly.

    It is a subclass of a warning of scikit-learn, which takes seconds to import.
    """
    if name == "MixtureConvergenceWarning":
        from gammagmm.mixture.convergence import MixtureConvergenceWarning

        return MixtureConvergenceWarning
    raise AttributeError(f"module 'gammagmm.errors' has no attribute {name!r}")
