"""Rows for a fit: all rows of files in memory, or a sample of Parquet files on Dask."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from gammagmm._support.checks import as_generator
from gammagmm._support.text import one_line
from gammagmm.cli.options import Reading, Request
from gammagmm.cli.request import read_rows, read_table, table_of
from gammagmm.cli.sheet import sheet_numbers
from gammagmm.cli.terminal import Echo
from gammagmm.distributed.cluster import open_cluster
from gammagmm.distributed.collection import Collection, open_collection, sample_numbers
from gammagmm.distributed.parquet import read_parquet
from gammagmm.readers.raw_table import RawTable
from gammagmm.table.frames import frame_table
from gammagmm.table.sample import Sample
from gammagmm.table.table import Table

__all__ = ["cluster_of", "open_files", "read_columns", "read_training_rows"]

MAX_ROWS = 200_000
"""Rows of a larger table that are read, as `GammaGMM` reads by default."""


@contextmanager
def cluster_of(request: Request, echo: Echo) -> Iterator[None]:
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


def read_columns(request: Request) -> RawTable:
    """The columns of the files as they are; of files on Dask, those of a sample."""
    if request.engine.name == "memory":
        return read_table(request.reading)
    return _sampled(request)[-1]


def read_training_rows(
    request: Request, sheets: Sequence[Path], *, keep_raw: bool = False
) -> Table:
    """The rows of the files; of files on Dask, a uniform sample and the other rows of the `sheets`.

    With `keep_raw`, the columns that are no features are kept as well.
    """
    reading, by = request.reading, request.labelling.by
    if request.engine.name == "memory":
        return read_rows(reading, by=by, keep_raw=keep_raw)
    return _read_sample(request, sheets)


def _read_sample(request: Request, sheets: Sequence[Path]) -> Table:
    collection, sample, raw = _sampled(request)
    table = table_of(raw, request.reading, request.labelling.by, keep_raw=True)
    table = replace(table, name=raw.source, sample=sample, collection=collection)
    table = table.with_sample_note()
    wanted = np.array(sorted({n for path in sheets for n in sheet_numbers(path)}), dtype=np.intp)
    lacking = sample.not_held(wanted[(wanted >= 0) & (wanted < sample.n_rows)])
    if not len(lacking):
        return table
    from gammagmm.estimator.rows import read_more

    return read_more(table, lacking)


def _sampled(request: Request) -> tuple[Collection, Sample, RawTable]:
    """The files on Dask, and which rows of them are a uniform sample, and their columns."""
    name, collection = open_files(request.reading)
    # The stream that the estimator uses for this.
    rng = as_generator(request.method.seed).spawn(4)[3]
    numbers = sample_numbers(collection.n_rows, MAX_ROWS, rng)
    raw = frame_table(collection.take(numbers), name, numbers)
    return collection, Sample(collection.n_rows, len(numbers), numbers), raw
