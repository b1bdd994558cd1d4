"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["write_document"]


def write_document(content: str | bytes, path: Any, overwrite: bool = False) -> None:
    """Write `content`, text as UTF-8, to `path`, whole or not at all.

    An existing file is replaced only with `overwrite`, and is a FileExistsError otherwise.
    """
    path = Path(path)
    if not overwrite and os.path.lexists(path):
        _refuse_existing(path)
    # Whose part it is, so that it can be cleared away if its process is ended.
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(_encoded(content))
            file.flush()
            os.fsync(file.fileno())
        _place(part, path, overwrite)
    except FileExistsError:
        raise
    except OSError as error:
        # A write that fails does not say of which file, and the part is none of the user's.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _encoded(content: str | bytes) -> bytes:
    """Bytes of a text; a lone surrogate, which UTF-8 has not, is written out."""
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _place(part: Path, path: Path, overwrite: bool) -> None:
    """Give `part` its name; a link is what fails where the name was taken meanwhile."""
    if overwrite:
        part.replace(path)
        return
    try:
        path.hardlink_to(part)
    except FileExistsError:
        _refuse_existing(path)
    except OSError:  # a file system without links
        if os.path.lexists(path):
            _refuse_existing(path)
        part.replace(path)


def _refuse_existing(path: Path) -> NoReturn:
    raise FileExistsError(f"{path} exists already: pass overwrite=True to replace it.") from None
