"""The answers for a part of large files, which workers of Dask compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gammagmm.cli.output import N_DECIMALS
from gammagmm.cli.words import COMMAND
from gammagmm.estimator.fit_result import Answering, RowAnswers
from gammagmm.estimator.reasons import UsualValues, flag_words
from gammagmm.readers.raw_table import RawTable, number_or_none
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Preparation
from gammagmm.table.table import Table

__all__ = [
    "are_complete",
    "first_of_part",
    "monitor_part",
    "part_answers",
    "part_frame",
    "prepare_part",
]

Array = NDArray[np.float64]


def are_complete(part: Any, source: str, kinds: dict[str, bool]) -> NDArray[np.bool_]:
    """Which rows (n,) of a part of the files have a value in each column of `kinds`.

    `kinds` says by name whether a column is text where the rows are read together. A part alone may
    look different: "NA" is a gap among numbers, and a word among words.
    """
    raw = frame_table(part[list(kinds)], source)
    is_complete = np.ones(len(part), dtype=bool)
    for j, is_text in enumerate(kinds.values()):
        is_complete &= ~_gaps(raw, j, is_text)
    return is_complete


def _gaps(raw: RawTable, j: int, is_text: bool) -> NDArray[np.bool_]:
    """Which cells of a column are missing if it is read as text, or as numbers."""
    if raw.is_text(j) == is_text:
        return raw.is_gap(j)
    cells = raw.write_cells(j)
    if is_text:
        return np.array([cell is None for cell in cells], dtype=bool)
    numbers = (math.nan if cell is None else number_or_none(cell) for cell in cells)
    return np.array([number is not None and math.isnan(number) for number in numbers], dtype=bool)


def prepare_part(
    part: Any, numbers: NDArray[np.intp], preparation: Preparation, source: str
) -> Table:
    """The rows of a part of the files, a pandas frame; `numbers` are theirs in all files."""
    table = preparation.apply(frame_table(part, source, numbers), COMMAND, n_least=0)
    return replace(table, places=numbers[table.all_places], raw=None)


def part_answers(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    answering: Answering,
    held: tuple[NDArray[np.intp], RowAnswers] | None = None,
) -> tuple[Table, RowAnswers | None]:
    """The rows of a part, whose first row has the number `first`, and the answers for them.

    The rows in `held`, by their numbers, have the answers that are given there. None if no row is
    left, because all of them have missing values.
    """
    numbers = np.arange(first, first + len(part))
    table = prepare_part(part, numbers, preparation, source)
    if not len(table):
        return table, None
    answers = answering(table.values)
    return table, answers if held is None else answers.replaced(first, *held)


def first_of_part(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    answering: Answering,
    n: int,
    flagged_only: bool,
) -> tuple[int, int, NDArray[np.intp], Array]:
    """How many rows a part has and how many are flagged, and its `n` most anomalous rows.

    These are their numbers, and their probabilities and scores (n, 2). With `flagged_only`, they
    are flagged rows.
    """
    table, answers = part_answers(part, first, preparation, source, answering)
    if answers is None:
        return 0, 0, np.empty(0, np.intp), np.empty((0, 2))
    chosen = answers.order
    chosen = (chosen[answers.labels[chosen] == 1] if flagged_only else chosen)[:n]
    keys = np.column_stack([answers.probability, answers.scores])[chosen]
    return len(answers.labels), int(answers.labels.sum()), table.all_places[chosen], keys


def monitor_part(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
    monitored: Any,
    names: Sequence[str],
) -> tuple[Array, list[list[str | None]]]:
    """What `monitored` gives for the rows of a part, and the cells of the columns with `names`."""
    raw = frame_table(part, source, np.arange(first, first + len(part)))
    table = preparation.apply(raw, COMMAND, n_least=0)
    rows = table.all_places.tolist()
    if not rows:
        return np.empty((0, 2)), [[] for _ in names]
    cells = [raw.cells(raw.columns.index(name)) for name in names]
    return monitored(table.values), [[own[row] for row in rows] for own in cells]


def part_frame(
    part: Any,
    first: int,
    preparation: Preparation,
    source: str,
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
    table, answers = part_answers(part, first, preparation, source, answering, held)
    if answers is None:
        kinds = ["str", "float64", "float64", "int64", "str", *["float64"] * len(names)]
        return pd.DataFrame({h: pd.Series([], dtype=k) for h, k in zip(heads, kinds, strict=True)})
    flagged = np.flatnonzero(answers.labels)
    reasons = np.full(len(table), "", dtype=object)
    reasons[flagged] = [flag_words(why) for why in usual.reasons(table.values[flagged])]
    cells = [
        list(table.row_names),
        answers.scores,
        answers.probability.round(N_DECIMALS),
        answers.labels,
        reasons,
    ]
    return pd.DataFrame(dict(zip(heads, [*cells, *answers.own.T], strict=True))).astype(
        {"id": "str", "reason": "str"}
    )
