"""A cluster to work on, and folders of Parquet files that its workers read and write."""

from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gammagmm.blocks import clear_errors, compute, import_dask
from gammagmm.errors import ClusterError, TableError
from gammagmm.progress import Progress

__all__ = ["open_cluster", "read_parquet", "write_parquet"]

CONNECT_SECONDS = 10


@contextmanager
def open_cluster(scheduler: str | None = None, n_workers: int | None = None) -> Iterator[Any]:
    """Client of the cluster at the address `scheduler`, or of a local one of `n_workers` processes.

    A local cluster ends with the context; `n_workers` None is one for each core.
    """
    distributed = import_dask().distributed
    if scheduler is None:
        n_workers = n_workers or os.cpu_count()
        with (
            distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        what = f"No Dask scheduler answers at {scheduler}"
        raise ClusterError(f"{what}. Check the address, and that it runs.") from error
    with client:
        yield client


def read_parquet(paths: Sequence[str]) -> Any:
    """Lazy dask data frame of Parquet files, folders or patterns, a partition a row group."""
    read = import_dask().dataframe.read_parquet
    found = [name for path in paths for name in _matching(path)]
    try:
        with clear_errors():
            return read(found, split_row_groups=True)
    except (OSError, ValueError, TypeError) as error:  # pyarrow's errors are of these kinds
        words = " ".join(str(error).split())[:300]
        raise TableError(f"{paths[0]} cannot be read as Parquet ({words}). Check it.") from error


def _matching(path: str) -> list[str]:
    """The names that a path or pattern stands for; what is elsewhere is left to Dask."""
    if "://" in path:
        return [path]
    names = [path] if os.path.exists(path) else sorted(glob.glob(path))
    if not names:
        raise TableError(f"{path} does not exist, and no file matches it. Check the path.")
    return names


def write_parquet(frame: Any, folder: Any, overwrite: bool, progress: Progress) -> None:
    """Write a dask data frame to a new folder of Parquet files, a file for each partition.

    They are written beside and renamed when all are there; `progress` hears of each. An existing
    folder is replaced only with `overwrite`.
    """
    place = Path(folder)
    if os.path.lexists(place) and not overwrite:
        raise FileExistsError(f"{place} exists already: choose another name or overwrite it.")
    began, aside = time.perf_counter(), place.with_name(f".{place.name}.{os.getpid()}-rows.part")
    aside.mkdir()
    try:
        write = import_dask().delayed(_write_part)
        tasks = [
            write(part, str(aside.absolute() / f"part-{i:05d}.parquet"))
            for i, part in enumerate(frame.to_delayed())
        ]
        for i, _ in enumerate(_as_completed(tasks)):
            progress(f"block {i + 1}", "written", time.perf_counter() - began)
        _swap(aside, place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_part(part: Any, path: str) -> int:
    part.to_parquet(path)
    return len(part)


def _as_completed(tasks: list[Any]) -> Iterator[Any]:
    """The answers of the tasks as they come."""
    distributed = import_dask().distributed
    try:
        client = distributed.get_client()
    except ValueError:  # no cluster: this process' threads
        for task in tasks:
            yield compute([task])[0]
        return
    with clear_errors():
        for _, answer in distributed.as_completed(client.compute(tasks), with_results=True):
            yield answer


def _swap(aside: Path, place: Path) -> None:
    """Put the folder `aside` in the place of what is there, which goes."""
    old = place.with_name(f".{place.name}.{os.getpid()}-old.part")
    if os.path.lexists(place):
        place.rename(old)
    aside.rename(place)
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
