"""What the steps of a fit have in common, wherever the rows are: `Rows`, `Scores`, `Space`.

`rows.py` has the classes for rows in memory, `dask_rows.py` those for rows on Dask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.progress import Progress
from gammagmm._support.table_encoder import TableEncoder
from gammagmm.detectors.fit import FittedDetectors
from gammagmm.errors import Note
from gammagmm.estimator.frames import Container
from gammagmm.estimator.parameters import Plan
from gammagmm.estimator.scaling import ColumnScaler
from gammagmm.inspection.known_rows import KnownRows
from gammagmm.inspection.learned_ranking import Learning
from gammagmm.mixture.score_space import ScoreScaler
from gammagmm.posterior.decisions import RankTable
from gammagmm.posterior.groups import Group
from gammagmm.posterior.runs import Run

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit

__all__ = ["Columns", "Cut", "NewRows", "Rows", "Scores", "Space"]

Array = NDArray[np.float64]


class Rows(Protocol):
    """The rows of a fit."""

    @property
    def columns(self) -> Columns:
        """Their columns."""

    def fit_detectors(self, plan: Plan) -> Scores:
        """Raw scores of the rows."""


class Scores(Protocol):
    """Raw scores of the rows, and the detectors that gave them."""

    @property
    def fitted(self) -> FittedDetectors:
        """The detectors whose scores are used, and the record of all."""

    @property
    def notes(self) -> list[Note]:
        """What was changed, left out or approximated."""

    @property
    def column_scaler(self) -> ColumnScaler | None:
        """The map that scaled the columns for the detectors; None where they were not scaled."""

    def score_space(self) -> Space:
        """The scores after logarithm and standardisation."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table; their names are None where it has none.

    `encoder` turns them into columns of numbers; None where they are numbers already.
    """

    n_features: int
    names: Any = None  # ndarray of shape (n_features,)
    encoder: TableEncoder | None = None

    @property
    def n_numbers(self) -> int:
        """Number of columns of numbers."""
        return self.n_features if self.encoder is None else len(self.encoder.outputs)

    @property
    def number_names(self) -> Any:
        """Names of the columns of numbers; None where they have none."""
        return self.names if self.encoder is None else self.encoder.outputs


@dataclass(frozen=True, eq=False, repr=False)
class Cut:
    """The training rows, cut at a share of anomalies."""

    threshold: float  # of new rows, by the ranking in use
    thresholds: dict[str, float]  # of new rows, each detector's own, on its raw scale
    labels: Any  # (n_rows,), an array or a lazy dask array
    n_flagged: int


class Space(Protocol):
    """The score space of the rows: what a fit keeps of them.

    `scores`, `values` (n_rows, n_detectors), `consensus` and `decision_scores` (n_rows,) are
    arrays, or lazy dask arrays.
    """

    @property
    def scores(self) -> Any:
        """Raw scores."""

    @property
    def values(self) -> Any:
        """The scores after logarithm and standardisation."""

    @property
    def consensus(self) -> Any:
        """Mean of the values over the detectors."""

    @property
    def decision_scores(self) -> Any:
        """Scores of the ranking in use: the consensus, or what was learned from labels."""

    @property
    def columns(self) -> Array | None:
        """The rows as the detectors have them; None on Dask and for precomputed scores."""

    @property
    def rows(self) -> Array | None:
        """The rows as they were given; None on Dask."""

    @property
    def scaler(self) -> ScoreScaler:
        """The map from raw scores to the score space."""

    @property
    def container(self) -> Container:
        """The kind of data frame that the rows came in."""

    @property
    def is_in_memory(self) -> bool:
        """Whether the arrays are in memory."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks that the rows are in."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def notes(self) -> list[Note]:
        """What was approximated."""

    def ranks(self, known: KnownRows) -> RankTable:
        """How many of the rows outside lists score at least as high as any score of a new row."""

    def fit_runs(self, plan: Plan) -> tuple[tuple[Run, ...], list[Note]]:
        """The variational runs, and what was changed for them."""

    def find_group(self, names: list[str]) -> Group | None:
        """The rows that visibly stand apart; `names` are those of the detectors."""

    def learn(self, known: KnownRows, seed: int) -> tuple[Space, Learning | None]:
        """The rows ranked by what the labels of known rows teach, and what that is."""

    def cut(self, names: list[str], gamma: float, known: KnownRows) -> Cut:
        """The rows cut at the share `gamma`; known rows keep their labels."""

    def labels_at(self, gamma: float, known: KnownRows) -> Any:
        """Labels of the rows if the share of anomalies were `gamma`; known rows keep theirs."""

    def frame(self, fit: Fit) -> Any:
        """A data frame with a line for each row."""

    def check_rows_present(self, question: str) -> None:
        """Refuse a `question` about rows that a copy of the estimator does not have."""

    def write(self, fit: Fit, folder: Any, overwrite: bool, progress: Progress) -> None:
        """Write the rows of `frame` to a folder of Parquet files."""


class NewRows(Protocol):
    """New rows for a fitted estimator to score."""

    def map(self, function: Callable[[Array], Array], n_columns: int | None = None) -> Any:
        """What `function` gives for the rows: one value each, or `n_columns`."""
