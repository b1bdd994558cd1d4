"""Parquet files as a dask data frame, and a dask data frame as a folder of Parquet files."""

from __future__ import annotations

import glob
import importlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gammagmm._support.data_frames import check_same_columns
from gammagmm._support.progress import Progress
from gammagmm._support.text import shown
from gammagmm.distributed.cluster import LARGE_GRAPHS, clear_errors, compute, import_dask
from gammagmm.errors import ClusterError, GammaGMMError, TableError

__all__ = ["FolderError", "check_folder", "matching_files", "read_parquet", "write_parquet"]

PART = re.compile(r"part-\d{5,}\.parquet")


class FolderError(GammaGMMError, FileExistsError):
    """A folder exists and must not be replaced."""


def read_parquet(paths: Sequence[str]) -> Any:
    """Lazy dask data frame of Parquet files, folders or patterns, one partition a row group.

    A file with other columns than the first, or with other types, is a `TableError`.
    """
    read = import_dask().dataframe.read_parquet
    found = [name for path in paths for name in matching_files(path)]
    try:
        _check_schemas([name for name in found if "://" not in name])
        return read(found, split_row_groups=True)
    except TableError:
        raise
    except (OSError, ValueError, TypeError) as error:  # pyarrow's errors are of these kinds
        reason = " ".join(str(error).split())[:300]
        what = f"{paths[0]} cannot be read as Parquet ({reason})"
        raise TableError(what, "Check the file.") from error


def _check_schemas(paths: Sequence[str]) -> None:
    """Refuse files whose columns are not those of the first file, in their order and of their type.

    The parts of a table are read one by one, so a difference would be noticed late or not at all.
    """
    parquet: Any = importlib.import_module("pyarrow.parquet")

    files = [file for path in paths for file in _files_in(path)]
    schemas = [parquet.read_schema(file).remove_metadata() for file in files]
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        check_same_columns(files[0], schemas[0].names, file, schema.names)
        for own, other in zip(schemas[0], schema, strict=True):
            if own.type != other.type:
                raise TableError(
                    f"{file}: column {shown(own.name)} has the type {other.type}, and {own.type} "
                    f"in {files[0]}",
                    "Write the column with the same type in all files.",
                )


def _files_in(path: str) -> list[str]:
    """The file at `path`, or the Parquet files of a folder."""
    if not os.path.isdir(path):
        return [path]
    return sorted(map(str, Path(path).rglob("*.parquet")))


def matching_files(path: str) -> list[str]:
    """Names of the files that a path or pattern matches; an address is left to Dask."""
    if "://" in path:
        return [path]
    names = [path] if os.path.exists(path) else sorted(glob.glob(path))
    if not names:
        raise TableError(f"{path} does not exist, and no file matches it", "Check the path.")
    return names


def check_folder(folder: Any, overwrite: bool, inputs: Sequence[str] = ()) -> Path:
    """Path of the folder to write, after a check that nothing else would be replaced.

    Only a folder of earlier results may be replaced, and only with `overwrite`.
    """
    place = Path(folder)
    if "://" in str(folder) or not place.name or place.name == "..":
        raise ValueError(
            f"folder must be the path of a local folder to create, such as 'results', got {folder}."
        )
    if not os.path.lexists(place):
        return place
    if place.is_symlink():
        raise FolderError(f"{place} is a link", "Give the folder that it leads to.")
    if not overwrite:
        raise FolderError(f"{place} already exists", "Choose another name, or pass overwrite=True.")
    if not place.is_dir() or not all(PART.fullmatch(name) for name in os.listdir(place)):
        raise FolderError(
            f"{place} contains files that gammagmm did not write", "Choose another name."
        )
    if any(place.resolve() in Path(path).resolve().parents for path in inputs):
        raise FolderError(f"{place} contains the input files", "Choose another name.")
    return place


def write_parquet(
    frame: Any, folder: Any, overwrite: bool, progress: Progress, client: Any
) -> None:
    """Write a dask data frame to a new folder of Parquet files, a file for each partition.

    The files are written to a folder beside it, which is renamed when all are there; `progress` is
    called for each. A folder of earlier results is replaced only with `overwrite`.
    """
    place = check_folder(folder, overwrite)
    began, aside = time.perf_counter(), place.with_name(f".{place.name}.{os.getpid()}-rows.part")
    aside.mkdir()
    try:
        write = import_dask().delayed(_write_part)
        names = [f"part-{i:05d}.parquet" for i in range(frame.npartitions)]
        parts = zip(frame.to_delayed(), names, strict=True)
        tasks = [write(part, str(aside.absolute()), name) for part, name in parts]
        for i, _ in enumerate(_as_completed(tasks, client)):
            progress(f"block {i + 1}", "written", time.perf_counter() - began)
        if missing := set(names) - set(os.listdir(aside)):
            what = f"{len(missing)} files that the workers wrote are not visible here"
            raise ClusterError(what, "Give a folder that all workers share.")
        _swap(aside, place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_part(part: Any, folder: str, name: str) -> int:
    """Write a part completely: a task that runs twice, even at the same time, leaves one file."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f".{name}.{uuid.uuid4().hex}")
    part.to_parquet(path)
    os.replace(path, os.path.join(folder, name))
    return len(part)


def _as_completed(tasks: list[Any], client: Any) -> Iterator[Any]:
    """Results of the tasks, in the order in which they finish."""
    if client is None:
        for task in tasks:
            yield compute([task], None)[0]
        return
    as_completed = import_dask().distributed.as_completed
    with clear_errors(client), import_dask().config.set(LARGE_GRAPHS):
        for _, answer in as_completed(client.compute(tasks), with_results=True):
            yield answer


def _swap(aside: Path, place: Path) -> None:
    """Replace the folder `place`, if it exists, by the folder `aside`."""
    old = place.with_name(f".{place.name}.{os.getpid()}-old.part")
    if place.exists():
        place.rename(old)
    aside.rename(place)
    shutil.rmtree(old, ignore_errors=True)
