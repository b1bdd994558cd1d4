"""New rows for a kept fit, prepared as the training rows were, in memory or on Dask."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gammagmm._support.text import listed
from gammagmm.cli.options import Request
from gammagmm.cli.request import read_table
from gammagmm.cli.training_rows import open_files
from gammagmm.cli.words import COMMAND
from gammagmm.errors import Note, TableError
from gammagmm.readers.raw_table import RawTable
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Preparation
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit

__all__ = ["prepare_new_rows", "prepare_part", "read_new_rows"]


def read_new_rows(fit: Fit, request: Request, n_least: int = 1) -> Table:
    """The new rows of the files, with the notes about settings.

    At least `n_least` rows must be left where rows with missing values are dropped. For files on
    Dask, the table has no rows, but the collection of them, whose parts `prepare_part` prepares in
    the same way.
    """
    reading = request.reading
    if request.engine.name == "memory":
        table = prepare_new_rows(fit, read_table(reading), reading.id, n_least)
    else:
        name, collection = open_files(reading)
        head = frame_table(collection.take(np.arange(0)), name)  # for the names of its columns
        table = prepare_new_rows(fit, head, reading.id, 0)
        table = replace(table, name=name, collection=collection)
    return replace(table, notes=(*request.running.notes, *table.notes))


def prepare_new_rows(
    fit: Fit, raw: RawTable, id_column: str | None = None, n_least: int = 1
) -> Table:
    """The new rows as numbers, prepared as the training rows were; `id_column` names the rows.

    The columns of a fit of an array are found by their order, with a note.
    """
    preparation, said = fit.preparation, list[Note]()
    if id_column is not None:
        if id_column not in raw.columns:
            raise TableError(f"{raw.source} has no column {id_column!r}", "Check --id.")
        preparation = replace(preparation, id=id_column)
    if preparation.columns is None:
        preparation, note = _by_order(preparation, raw)
        said.append(note)
    table = preparation.apply(raw, COMMAND, n_least=n_least)
    return replace(table, notes=(*said, *table.notes))


def _by_order(preparation: Preparation, raw: RawTable) -> tuple[Preparation, Note]:
    """The preparation of an array for a file, with the names of the columns of the file."""
    given = [name for name in raw.columns if name != preparation.id]
    if len(given) != preparation.n_columns:
        raise TableError(
            f"{raw.source} has {len(given)} columns, and the training rows have "
            f"{preparation.n_columns}",
            "Give a file with the columns of the training rows; --id names a column to leave out.",
        )
    note = Note.of("tables.by order", raw.source, columns=listed(given))
    return preparation.renamed(given), note


def prepare_part(part: Any, first: int, preparation: Preparation, source: str) -> Table:
    """The rows of a part of the files, a pandas frame whose first row has the number `first`.

    No row is left if all of them have missing values and the fit drops such rows.
    """
    numbers = np.arange(first, first + len(part))
    table = preparation.apply(frame_table(part, source, numbers), COMMAND, n_least=0)
    return replace(table, sample=Sample(len(part), len(table), numbers[table.all_places]))
