"""Parquet files on Dask: a sample of their rows, prepared as the rows of other files are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import as_generator
from gammagmm._support.text import one_line
from gammagmm.cli.options import Reading, Request
from gammagmm.cli.request import choices_for, table_of
from gammagmm.cli.sheet import sheet_numbers
from gammagmm.distributed.cluster import open_cluster
from gammagmm.distributed.collection import Collection, open_collection, sample_numbers
from gammagmm.distributed.parquet import read_parquet
from gammagmm.errors import Note
from gammagmm.readers.raw_table import RawTable
from gammagmm.table.frames import frame_table
from gammagmm.table.roles import assign_roles
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["cluster_of", "open_files", "read_sample", "sample_raw"]

Numbers = NDArray[np.intp]

MAX_ROWS = 200_000
"""Rows of a larger table that are read, as `GammaGMM` reads by default."""


@contextmanager
def cluster_of(request: Request, echo: Callable[[str], None]) -> Iterator[None]:
    """The cluster of the engine dask while a command works; nothing for rows in memory."""
    if request.engine.name == "memory":
        yield
        return
    # When a connection is lost, Dask and asyncio log tracebacks that would hide our two lines.
    logging.disable(logging.CRITICAL)
    jobs = request.method.jobs
    with open_cluster(request.engine.scheduler, jobs if jobs > 0 else None) as client:
        if not request.running.quiet:
            echo(f"dashboard: {client.dashboard_link}")
        yield


def open_files(reading: Reading) -> tuple[str, Collection]:
    """The rows of Parquet files, and the name of the files."""
    name = one_line(", ".join(reading.paths))
    return name, open_collection(read_parquet(reading.paths))


def sample_raw(
    reading: Reading, by: str | None, seed: int
) -> tuple[str, Collection, Numbers, RawTable]:
    """The files, and the numbers and columns of a uniform sample of their rows."""
    name, collection = open_files(reading)

    def draw(collection: Collection) -> tuple[Numbers, RawTable]:
        # The stream that the estimator uses for this.
        rng = as_generator(seed).spawn(4)[3]
        numbers = sample_numbers(collection.n_rows, MAX_ROWS, rng)
        return numbers, frame_table(collection.take(numbers), name, numbers)

    numbers, raw = draw(collection)
    if reading.missing != "drop":
        return name, collection, numbers, raw
    # The columns that are used are known now; the sample is one of the rows without gaps in them. A
    # word may not be in the new sample, so that its column is one of numbers with other gaps.
    from gammagmm.cli.large_parts import are_complete

    has_gaps = True
    while has_gaps:
        kinds = _kinds_of_used(raw, reading, by)
        collection = collection.filtered(are_complete, name, kinds)
        numbers, raw = draw(collection)
        used = map(raw.columns.index, _kinds_of_used(raw, reading, by))
        has_gaps = any(raw.is_gap(j).any() for j in used)
    return name, collection, numbers, replace(raw, notes=(Note.of("tables.gaps left out", name),))


def _kinds_of_used(raw: RawTable, reading: Reading, by: str | None) -> dict[str, bool]:
    """Whether each column that is used is text, by its name."""
    roles = assign_roles(raw, choices_for(raw, reading, by))
    return {raw.columns[j]: raw.is_text(j) for j in roles.features}


def read_sample(reading: Reading, by: str | None, seed: int, sheets: Sequence[Path]) -> Table:
    """A uniform sample of the rows of Parquet files, and then the other rows of the `sheets`."""
    from gammagmm.estimator.rows import read_more

    name, collection, numbers, raw = sample_raw(reading, by, seed)
    table = replace(
        table_of(raw, reading, by, keep_raw=True),
        name=name,
        sample=Sample(collection.n_rows, len(numbers), numbers),
        collection=collection,
    ).with_sample_note()
    wanted = np.array(sorted({n for path in sheets for n in sheet_numbers(path)}), dtype=np.intp)
    lacking = table.sample.not_held(wanted[(wanted >= 0) & (wanted < collection.n_rows)])
    return read_more(table, lacking) if len(lacking) else table
