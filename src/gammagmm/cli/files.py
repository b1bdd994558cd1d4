"""A file -> raw table, within a limit of memory; the parent process knows which file is read.

The libraries that read Parquet files, MAT files and workbooks may end the process on a damaged
file, and a small file may expand into gigabytes or keep them busy for hours. A command reads in a
process of its own, with a limit of time. If that ends while it reads a file, its parent raises the
same error as this process does where an allocation fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from gammagmm._support.platform import memory_limit, physical_memory, processor_limit
from gammagmm.cli.supervisor import MARKER, READ_NOW
from gammagmm.errors import TableError
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import STANDARD_INPUT, Asked

__all__ = ["read_file", "unreadable"]

FREE_GB, EXPANSION, THREAD_MB = 1, 100, 64
"""Memory for the reading of any file, as a multiple of its size, and for each CPU."""
SECONDS, SECONDS_PER_MB = 8.0, 10.0
"""Time of a CPU for the reading of any file, and for each MB of it."""


def read_file(path: str, *, table: str | None = None, asked: Asked | None = None) -> RawTable:
    """The columns of the file at `path`, see `read_raw`; also a `TableError` for lack of memory."""
    with _marked(path), memory_limit(_bytes_for(path)):
        try:
            return read_raw(path, table=table, asked=asked)
        except MemoryError:
            raise unreadable(path) from None


def unreadable(path: str) -> TableError:
    """The error for a file that ends the process, or needs too much memory."""
    name = STANDARD_INPUT if path == "-" else path
    return TableError(
        f"{name} cannot be read: it is damaged, or it needs more than "
        f"{_bytes_for(path) / 1e9:.1f} GB of memory or {_seconds_for(path):,.0f} seconds of a "
        "processor, which are the limits",
        "Write it again, also as CSV, or give fewer rows or columns.",
    )


def _bytes_for(path: str) -> int:
    """Memory that the reading of a file may take."""
    beside = FREE_GB * 10**9 + THREAD_MB * 10**6 * (os.cpu_count() or 1)
    return min(beside + EXPANSION * _size(path), physical_memory())


def _seconds_for(path: str) -> float:
    """Time of a processor that the reading of a file may take."""
    return SECONDS + SECONDS_PER_MB * _size(path) / 1e6


def _size(path: str) -> int:
    with suppress(OSError):
        return os.stat(path).st_size
    return 0


@contextmanager
def _marked(path: str) -> Iterator[None]:
    """Say in the folder of this process which file it reads, and limit its time."""
    mark = Path(os.environ.get(MARKER, ""), READ_NOW)
    if not mark.is_absolute():  # without a folder, the error is a general one
        yield
        return
    with suppress(OSError):
        mark.write_bytes(os.fsencode(path))
    try:
        with processor_limit(_seconds_for(path)) if path != "-" else nullcontext():
            yield
    finally:
        with suppress(OSError):
            mark.unlink()
