"""Parquet files on Dask: a sample of their rows, prepared as the rows of other files are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import as_generator
from gammagmm._support.text import one_line
from gammagmm.cli.options import Reading, Request
from gammagmm.cli.request import choices_for, origin_of
from gammagmm.cli.sheet import sheet_numbers
from gammagmm.cli.words import COMMAND
from gammagmm.distributed.cluster import open_cluster
from gammagmm.distributed.collection import Collection, open_collection, sample_numbers
from gammagmm.distributed.parquet import read_parquet
from gammagmm.errors import Note
from gammagmm.labels.sample import Sample
from gammagmm.readers.joined_table import join_raw
from gammagmm.readers.raw_table import RawTable
from gammagmm.report.origin import Origin
from gammagmm.table.frames import frame_table
from gammagmm.table.preparation import Preparation
from gammagmm.table.roles import assign_roles

if TYPE_CHECKING:
    from pathlib import Path

    from gammagmm.estimator.fit_result import Fit
    from gammagmm.estimator.rows import SampledRows

__all__ = ["LargeTable", "cluster_of", "open_files", "read_sample", "sample_raw"]

Array = NDArray[np.float64]
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


@dataclass(frozen=True, eq=False)
class LargeTable:
    """The files that an origin has some rows of.

    Attributes
    ----------
    name : str
        Name of the files.
    collection : Collection
        Their rows, with all columns.
    sample : Sample
        Which of them the origin has.
    preparation : Preparation
        How their columns become numbers.
    """

    name: str
    collection: Collection
    sample: Sample
    preparation: Preparation

    def to_fit(self, X: Array) -> SampledRows:
        """The rows of the sample as the estimator takes them; `X` has all rows of the origin."""
        from gammagmm.estimator.rows import PreparedRows, SampledRows

        n, numbers = self.sample.n_sampled, self.sample.number(self.sample.all_places)
        sample = Sample(self.sample.n_rows, n, numbers[:n])
        return SampledRows(PreparedRows(X[:n], self.preparation), sample, self.collection)

    def complete(self, fit: Fit, X: Array) -> Fit:
        """The fit that can read the files again and holds all rows of the origin, which are `X`."""
        fit = replace(fit, collection=self.collection)
        others = self.sample.all_places[fit.sample.n_held :]
        return fit.hold(self.sample.number(others), X[others])

    def read(self, numbers: Numbers) -> RawTable:
        """The columns of the rows with these numbers, which rise."""
        return frame_table(self.collection.take(numbers), self.name, numbers)


def holding(X: Array, origin: Origin, fit: Fit, numbers: Numbers) -> tuple[Array, Origin, Fit]:
    """The rows, their origin and their fit, with the rows with these numbers as well."""
    large: LargeTable | None = origin.large
    lacking = np.empty(0, np.intp) if large is None else large.sample.not_held(numbers)
    if large is None or not len(lacking):
        return X, origin, fit
    X, origin = _extended(X, origin, large, lacking)
    return X, origin, fit.hold(lacking, X[-len(lacking) :])


def _extended(
    X: Array, origin: Origin, large: LargeTable, numbers: Numbers
) -> tuple[Array, Origin]:
    """The rows and their origin, with the rows with these numbers as well, which rise."""
    if origin.table is None:
        raise TypeError("the origin of sampled files has a table")
    raw = large.read(numbers)
    prepared = large.preparation.apply(raw, COMMAND)
    table = join_raw([origin.table, raw])
    extended = replace(
        origin,
        ids=None if origin.ids is None else (*origin.ids, *prepared.ids),
        rows=(*origin.places(len(X)), *(origin.table.n_rows + prepared.rows).tolist()),
        numbers=(*(origin.numbers or ()), *numbers.tolist()),
        # Only the labels of the sample are compared with the estimate.
        truth=None
        if origin.truth is None
        else np.append(origin.truth, np.zeros(len(prepared.rows), dtype=int)),
        table=table,
        large=replace(large, sample=large.sample.with_more(numbers)),
    )
    if origin.group_column is not None:
        extended = extended.grouped_by(origin.group_column)
    return np.concatenate([X, prepared.values]), extended


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
    # The columns that are used are known now; the sample is one of the rows without gaps in them.
    roles = assign_roles(raw, choices_for(raw, reading, by))
    used = [raw.columns[j] for j in roles.features]
    collection = open_collection(collection.X.dropna(subset=used))
    numbers, raw = draw(collection)
    return name, collection, numbers, replace(raw, notes=(Note.of("tables.gaps left out", name),))


def read_sample(
    reading: Reading, by: str | None, seed: int, sheets: Sequence[Path]
) -> tuple[Array, Origin]:
    """A uniform sample of the rows of Parquet files, and then the other rows of the `sheets`."""
    name, collection, numbers, raw = sample_raw(reading, by, seed)
    X, origin = origin_of(raw, reading, by, keep_table=True)
    if origin.preparation is None:
        raise TypeError("rows of files have a preparation")
    sample = Sample(collection.n_rows, len(numbers), numbers)
    large = LargeTable(name, collection, sample, origin.preparation)
    origin = replace(origin, numbers=tuple(numbers.tolist()), large=large)
    wanted = np.array(sorted({n for path in sheets for n in sheet_numbers(path)}), dtype=np.intp)
    wanted = wanted[(wanted >= 0) & (wanted < collection.n_rows)]
    lacking = sample.not_held(wanted)
    return (X, origin) if not len(lacking) else _extended(X, origin, large, lacking)
