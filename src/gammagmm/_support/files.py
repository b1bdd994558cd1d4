"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["write_document"]


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
