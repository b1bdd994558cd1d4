"""The columns of files as an estimator reads them, and the answers for the parts of large files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.cli.output import N_DECIMALS
from gammagmm.estimator.fit_result import Answering, RowAnswers
from gammagmm.estimator.reasons import UsualValues, flag_words
from gammagmm.estimator.rows import Columns
from gammagmm.readers.arrow import frame_table
from gammagmm.readers.prepare import Preparation, Prepared

__all__ = ["FileColumns", "first_of_part", "monitor_part", "part_answers", "part_frame"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FileColumns(Columns):
    """The columns of files, which a preparation turns into numbers."""

    preparation: Preparation | None = None
    source: str = ""

    @classmethod
    def of(cls, preparation: Preparation, source: str) -> FileColumns:
        """The columns that the training rows had when they were prepared."""
        names = preparation.encoder.outputs
        return cls(len(names), np.array(names, dtype=object), None, "error", preparation, source)

    def prepare(self, X: Any, numbers: NDArray[np.intp] | None = None) -> Prepared:
        """The rows of a part of the files, a pandas frame; `numbers` are theirs in all files."""
        if self.preparation is None:
            raise TypeError("columns of files need a preparation")
        prepared = self.preparation.apply(frame_table(self.source, X))
        if numbers is None:
            return prepared
        numbers = numbers[prepared.rows]
        ids = prepared.ids
        if self.preparation.id is None:
            ids = tuple(str(number + 1) for number in numbers.tolist())
        return replace(prepared, rows=numbers, ids=ids)

    def numbers(self, X: Any) -> Array:
        """Finite rows (n, d) of a part of the files."""
        return self.prepare(X).values

    def check_collection(self, X: Any) -> None:
        """Nothing: the schemas of the files were compared when they were opened."""


def part_answers(
    part: Any,
    first: int,
    columns: FileColumns,
    answering: Answering,
    held: tuple[NDArray[np.intp], RowAnswers] | None = None,
) -> tuple[Prepared, RowAnswers]:
    """The rows of a part, whose first row has the number `first`, and the answers for them.

    The rows in `held`, by their numbers, have the answers that are given there.
    """
    prepared = columns.prepare(part, np.arange(first, first + len(part)))
    answers = answering(prepared.values)
    return prepared, answers if held is None else answers.replaced(first, *held)


def first_of_part(
    part: Any, first: int, columns: FileColumns, answering: Answering, n: int, flagged_only: bool
) -> tuple[int, int, NDArray[np.intp], Array]:
    """How many rows a part has and how many are flagged, and its `n` most anomalous rows.

    These are their numbers, and their probabilities and scores (n, 2). With `flagged_only`, they
    are flagged rows.
    """
    if not len(part):
        return 0, 0, np.empty(0, np.intp), np.empty((0, 2))
    prepared, answers = part_answers(part, first, columns, answering)
    chosen = answers.order
    chosen = (chosen[answers.labels[chosen] == 1] if flagged_only else chosen)[:n]
    keys = np.column_stack([answers.probability, answers.scores])[chosen]
    return len(answers.labels), int(answers.labels.sum()), prepared.rows[chosen], keys


def monitor_part(
    part: Any, first: int, columns: FileColumns, monitored: Any, names: Sequence[str]
) -> tuple[Array, list[list[str | None]]]:
    """What `monitored` gives for the rows of a part, and the cells of the columns with `names`."""
    if not len(part):
        return np.empty((0, 2)), [[] for _ in names]
    raw = frame_table(columns.source, part)
    prepared = columns.prepare(part)
    rows = prepared.rows.tolist()
    cells = [raw.cells(raw.columns.index(name)) for name in names]
    return monitored(prepared.values), [[own[row] for row in rows] for own in cells]


def part_frame(
    part: Any,
    first: int,
    columns: FileColumns,
    answering: Answering,
    names: Sequence[str],
    usual: UsualValues,
    held: tuple[NDArray[np.intp], RowAnswers] | None = None,
) -> Any:
    """A line for each row of a part: id, score, probability, label, reason, each detector's score.

    The ids are numbers from 1 if the files have no column with ids.
    """
    import pandas as pd

    heads = ["id", "score", "probability", "label", "reason", *(f"score_{name}" for name in names)]
    if not len(part):
        kinds = ["str", "float64", "float64", "int64", "str", *["float64"] * len(names)]
        return pd.DataFrame({h: pd.Series([], dtype=k) for h, k in zip(heads, kinds, strict=True)})
    prepared, answers = part_answers(part, first, columns, answering, held)
    flagged = np.flatnonzero(answers.labels)
    reasons = np.full(len(prepared.rows), "", dtype=object)
    reasons[flagged] = [flag_words(why) for why in usual.reasons(prepared.values[flagged])]
    cells = [
        list(prepared.ids),
        answers.scores,
        answers.probability.round(N_DECIMALS),
        answers.labels,
        reasons,
    ]
    return pd.DataFrame(dict(zip(heads, [*cells, *answers.own.T], strict=True))).astype(
        {"id": "str", "reason": "str"}
    )
