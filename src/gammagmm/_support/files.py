"""Files that are written completely or not at all, and by one process at a time."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["clear_parts", "locked", "write_document"]

LOCK_SECONDS = 60.0
"""Time for which a process waits for a file that another one changes."""
POLLING_SECONDS = 0.01


def write_document(content: str | bytes, path: Any, overwrite: bool = False) -> None:
    """Write `content` to `path`, completely or not at all; text becomes UTF-8.

    An existing file is replaced with `overwrite`, and raises FileExistsError without it.
    """
    path = Path(path)
    if not overwrite and os.path.lexists(path):
        _refuse_existing(path)
    # UTF-8 cannot hold a lone surrogate.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    # The process is named, so that its parts can be removed if it is ended.
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _place(part, path, overwrite)
    except FileExistsError:
        raise
    except OSError as error:
        # A write that fails does not name the file, and users do not know the part.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _place(part: Path, path: Path, overwrite: bool) -> None:
    """Rename `part` to `path`; without `overwrite` by a link, which fails if `path` exists."""
    if overwrite:
        part.replace(path)
        return
    try:
        path.hardlink_to(part)
    except FileExistsError:
        _refuse_existing(path)
    except OSError:  # the file system has no links
        if os.path.lexists(path):
            _refuse_existing(path)
        part.replace(path)


def _refuse_existing(path: Path) -> NoReturn:
    raise FileExistsError(f"{path} already exists: pass overwrite=True to replace it.") from None


def clear_parts(path: Any) -> None:
    """Remove the parts that ended processes have left beside the locked file at `path`."""
    path = Path(path).absolute()
    own = re.compile(rf"\.{re.escape(path.name)}\.\d+-[0-9a-f]{{8}}\.part")
    for part in path.parent.iterdir():
        if own.fullmatch(part.name):
            with suppress(OSError):
                part.unlink()


@contextmanager
def locked(path: Any) -> Iterator[None]:
    """The right to change the file at `path`, which one process has at a time.

    The lock belongs to the process and ends with it, however that ends. It is a file beside the
    other one, which is removed afterwards; one that a killed process has left does no harm. Raises
    TimeoutError if another process keeps the right for `LOCK_SECONDS`.
    """
    lock = Path(path).absolute()
    lock = lock.with_name(f".{lock.name}.lock")
    moment = time.monotonic() + LOCK_SECONDS
    while (number := _try_lock(lock)) is None:
        if time.monotonic() > moment:
            raise TimeoutError(f"another process has changed {path} for {LOCK_SECONDS:.0f} seconds")
        time.sleep(POLLING_SECONDS)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(number)


def _try_lock(lock: Path) -> int | None:
    """Descriptor of the file `lock` that this process has locked; None if another process has."""
    flags = os.O_RDWR | os.O_CREAT
    try:
        import fcntl
    except ImportError:  # Windows, which deletes such a file when the process that made it ends
        flags |= os.O_EXCL | getattr(os, "O_TEMPORARY", 0) | getattr(os, "O_NOINHERIT", 0)
        try:
            return os.open(lock, flags)
        except (FileExistsError, PermissionError):
            return None
    try:
        number = os.open(lock, flags | os.O_CLOEXEC, 0o666)
    except PermissionError:  # another user has made it
        number = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    is_ours = False
    try:
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that had it before may have removed the file in the meantime.
            is_ours = os.path.samestat(os.fstat(number), os.stat(lock))
    finally:
        if not is_ours:
            os.close(number)
    return number if is_ours else None
