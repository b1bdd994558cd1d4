"""What ``estimate --engine dask`` does: a cluster, Parquet files that stay on it, the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gammagmm._support.bars import block_bar
from gammagmm._support.text import one_line
from gammagmm.blocks.cluster import open_cluster, read_parquet
from gammagmm.cli.estimate import answer, do_each, fit, judge, say, writers
from gammagmm.cli.output import answer_json
from gammagmm.cli.request import Request
from gammagmm.errors import Note, TableError
from gammagmm.report.origin import Origin

__all__ = ["estimate_blocks"]


def estimate_blocks(request: Request, echo: Callable[[str], None]) -> int:
    """Exit code; the answer goes to standard output, then the files.

    `echo` writes a line to standard error.
    """
    # Dask's and asyncio's tracebacks of a connection that is gone would bury our two lines.
    logging.disable(logging.CRITICAL)
    n_jobs = request.parameters["n_jobs"]
    with open_cluster(request.scheduler, n_jobs if n_jobs > 0 else None) as client:
        if not request.quiet:
            echo(f"dashboard: {client.dashboard_link}")
        X, origin = _read(request)
        estimator = fit(request, X, origin, echo)
        told = answer_json(estimator, origin) if request.as_json else answer(estimator, origin)
        files = writers(replace(request, labels=None), estimator, X, origin)
        do_each([lambda: say(told), *files, lambda: _write_labels(request, estimator)], echo)
    return judge(request, estimator.posterior_, echo)


def _write_labels(request: Request, estimator: Any) -> None:
    """A folder of Parquet files with a line for each row, where it was asked for."""
    if request.labels:
        n_blocks = estimator.labels_.npartitions
        with block_bar(n_blocks, request.quiet) as progress:
            estimator.set_params(progress=progress).to_parquet(
                request.labels, overwrite=request.force
            )


def _read(request: Request) -> tuple[Any, Origin]:
    """The features of the files as a dask data frame, and where they came from."""
    frame, choices = read_parquet(request.paths), request.choices
    wanted = [name for name in (*choices.drop, choices.id) if name is not None]
    for name in wanted:
        if name not in frame.columns:
            raise TableError(f"There is no column {name!r}. The columns: {list(frame.columns)}.")
    frame, notes = _drop_missing(frame, choices), []
    if choices.missing == "drop":
        notes.append(Note("tables", "missing", "rows with missing values left out"))
    if choices.id is not None:
        frame = frame.map_partitions(_set_index, choices.id)
    frame = frame[[name for name in frame.columns if name not in wanted]]
    columns = tuple(str(name) for name in frame.columns)
    name = one_line(", ".join(request.paths))
    return frame, Origin(name, columns=columns, notes=tuple(notes))


def _drop_missing(frame: Any, choices: Any) -> Any:
    if choices.missing != "drop":
        return frame
    return frame.dropna(subset=[name for name in frame.columns if name not in choices.drop])


def _set_index(part: Any, column: str) -> Any:
    return part.set_index(column)
