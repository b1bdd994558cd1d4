"""What a user of the command line asks for -> the rows, or why it cannot be done."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gammagmm.errors import TableError
from gammagmm.joining import join_raw
from gammagmm.origin import Origin
from gammagmm.preparing import Choices, Prepared, prepare
from gammagmm.tables import read_raw

__all__ = ["Request", "check_request", "read_rows"]

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    paths: tuple[str, ...] = ()
    choices: Choices = field(default_factory=Choices)
    parameters: dict[str, Any] = field(default_factory=dict)  # of the estimator
    labels: Path | None = None
    report: Path | None = None
    posterior: Path | None = None
    picture: Path | None = None
    as_json: bool = False
    fail_above: float | None = None
    force: bool = False
    quiet: bool = False

    @property
    def outputs(self) -> list[Path]:
        """The files to write."""
        asked = (self.labels, self.report, self.posterior, self.picture)
        return [path for path in asked if path is not None]


def check_request(request: Request) -> None:
    """Refuse what could not be read or written before the work, not after it."""
    if "-" in request.paths and len(request.paths) > 1:
        raise TableError("Standard input (-) cannot be read beside files. Give one or the other.")
    _check_outputs(request)
    if request.fail_above is not None and not 0.0 <= request.fail_above <= 1.0:
        raise ValueError(f"--fail-above must lie between 0 and 1, got {request.fail_above}.")


def _check_outputs(request: Request) -> None:
    for path in request.outputs:
        folder = path.absolute().parent
        if not folder.is_dir() or path.is_dir():
            raise ValueError(f"cannot write {path}: {folder} is no folder, or {path} is one.")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"cannot write {path}: the folder {folder} may not be written to.")
        if path.exists() and not request.force:
            raise ValueError(f"{path} exists already. Pass --force to replace it.")
    if len({path.absolute() for path in request.outputs}) < len(request.outputs):
        raise ValueError("two outputs have the same name. Give each a name of its own.")
    if request.picture and request.picture.suffix.lower() not in PICTURES:
        ending = f"the picture must end in {', '.join(PICTURES)}."
        raise ValueError(f"cannot write {request.picture}: {ending}")


def read_rows(request: Request) -> tuple[Prepared, Origin]:
    """The rows of the files, and what a report says of them."""
    raw = join_raw([read_raw(path) for path in request.paths])
    prepared = prepare(raw, request.choices)
    names = [Path(path).name if path != "-" else "standard input" for path in request.paths]
    has_ids = request.choices.id is not None or len(prepared.rows) < raw.n_rows
    origin = Origin(
        name=", ".join(names),
        columns=prepared.columns,
        ids=prepared.ids if has_ids else None,
        digest=_digest(request.paths),
        truth=prepared.truth,
        notes=prepared.notes,
    )
    return prepared, origin


def _digest(paths: tuple[str, ...]) -> str:
    """SHA-256 of the files' bytes, one after the other; nothing for standard input."""
    if "-" in paths:
        return ""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
