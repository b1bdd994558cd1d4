"""What a user of the command line asks for -> the rows, or why it cannot be done."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gammagmm.blocks.parquet import check_folder, matching_files
from gammagmm.errors import Note, TableError
from gammagmm.readers.prepare import Choices, Prepared, prepare
from gammagmm.readers.raw_table import join_raw
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import STANDARD_INPUT
from gammagmm.report.origin import Origin

__all__ = ["Request", "check_request", "read_rows"]

PICTURES = (".png", ".svg", ".pdf")
ENGINES = ("memory", "dask")
# What --engine dask takes of the options that need all rows at once.
NEEDS_MEMORY: dict[str, tuple[str | None, ...]] = {
    "report": (None,),
    "inspected": (None,),
    "known": (None,),
    "truth": (None,),
    "missing": ("error", "drop"),
    "categories": ("error",),
}


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
    inspected: Path | None = None  # labels of single rows
    known: Path | None = None  # labels of rows that were not chosen at random
    sheet: Path | None = None  # of rows to look at, which `inspect` always has
    n: int = 30  # of them
    strategy: Literal["random", "adaptive"] = "random"
    ask: bool = False
    as_json: bool = False
    fail_above: float | None = None
    engine: str = "memory"
    scheduler: str | None = None  # address of a Dask scheduler
    force: bool = False
    quiet: bool = False

    @property
    def outputs(self) -> list[Path]:
        """The files to write."""
        asked = (self.labels, self.report, self.posterior, self.picture, self.sheet)
        return [path for path in asked if path is not None]

    @property
    def sheets(self) -> list[Path]:
        """The files with labels of single rows."""
        return [path for path in (self.inspected, self.known) if path is not None]


def check_request(request: Request) -> None:
    """Refuse what could not be read or written before the work, not after it."""
    if "-" in request.paths and len(request.paths) > 1:
        raise TableError("Standard input (-) cannot be read beside files. Give one or the other.")
    _check_engine(request)
    _check_outputs(request)
    for path in request.sheets:
        if not path.is_file():
            raise TableError(f"{path} does not exist or is not a file. Check the path.")
    if request.n < 1:
        raise ValueError(f"--n must be at least 1, got {request.n}.")
    if request.strategy not in ("random", "adaptive"):
        raise ValueError(f"--strategy must be random or adaptive, got {request.strategy!r}.")
    if request.ask and "-" in request.paths:
        raise ValueError("--ask reads the answers from standard input. Give the rows as a file.")
    if request.fail_above is not None and not 0.0 <= request.fail_above <= 1.0:
        raise ValueError(f"--fail-above must lie between 0 and 1, got {request.fail_above}.")


def _check_engine(request: Request) -> None:
    """Refuse an unknown engine, and what Dask's cannot do."""
    if request.engine not in ENGINES:
        raise ValueError(f"--engine must be memory or dask, got {request.engine!r}.")
    if request.engine == "memory":
        if request.scheduler is not None:
            raise ValueError("--scheduler is the address of a Dask cluster. Add --engine dask.")
        return
    asked = vars(request) | vars(request.choices)
    for name, usual in NEEDS_MEMORY.items():
        if asked[name] not in usual:
            option = f"--{name}" if usual == (None,) else f"--{name} {asked[name]}"
            raise ValueError(f"{option} needs the rows in memory. Leave out --engine dask, or it.")


def _check_outputs(request: Request) -> None:
    for path in request.outputs:
        if request.engine == "dask" and path == request.labels:
            _check_folder(request, path)
            continue
        # A sheet with some answers is gone on with.
        _check_output(path, request.force or (request.ask and path == request.sheet))
    places = [path.resolve() for path in request.outputs]
    if len(set(places)) < len(places):
        raise ValueError("Two outputs have the same name. Give each a name of its own.")
    given = [*request.paths, *map(str, request.sheets)]
    inputs = {Path(path).resolve() for path in given if path != "-"}
    if taken := inputs & set(places):
        raise ValueError(f"{taken.pop()} is an input and an output. Give the output another name.")
    if request.picture and request.picture.suffix.lower() not in PICTURES:
        endings = ", ".join(PICTURES)
        raise ValueError(f"{request.picture} is no name of a picture. End it in {endings}.")


def _check_folder(request: Request, path: Path) -> None:
    """Refuse a folder for the labels that could not be written, or must not be replaced."""
    if request.choices.missing == "drop" and request.choices.id is None:
        raise ValueError("--missing drop leaves rows out. Add --id, to tell which have labels.")
    if not path.exists():
        _check_output(path, False)
    inputs = [name for pattern in request.paths for name in matching_files(pattern)]
    try:
        check_folder(path, request.force, inputs)
    except FileExistsError as error:
        if not request.force and path.is_dir():
            raise ValueError(f"{path} exists already. Pass --force to replace it.") from error
        what, _, todo = str(error).partition(": ")
        raise ValueError(f"{what}. {todo.capitalize()}") from error


def _check_output(path: Path, force: bool) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{path} cannot be written: {folder} is no folder. Make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} may not be written to. Give another folder than {path}'s.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no plain file. Give another name.")
    if os.path.lexists(path) and not force:
        raise ValueError(f"{path} exists already. Pass --force to replace it.")


def read_rows(request: Request) -> tuple[Prepared, Origin]:
    """The rows of the files, and what a report says of them."""
    raw = join_raw([read_raw(path) for path in request.paths])
    prepared = prepare(raw, request.choices)
    names = [Path(path).name if path != "-" else STANDARD_INPUT for path in request.paths]
    has_ids = request.choices.id is not None or len(prepared.rows) < raw.n_rows
    origin = Origin(
        name=", ".join(names).encode("utf-8", "backslashreplace").decode("utf-8"),
        columns=prepared.columns,
        ids=prepared.ids if has_ids else None,
        rows=tuple(prepared.rows.tolist()),
        digest=raw.digest,
        truth=prepared.truth,
        notes=(*prepared.notes, *_id_notes(request.choices.id, prepared.ids)),
    )
    return prepared, origin


def _id_notes(column: str | None, ids: tuple[str, ...]) -> list[Note]:
    """A note where ids do not tell the rows apart."""
    if column is None or len(set(ids)) == len(ids):
        return []
    first, count = Counter(ids).most_common(1)[0]
    n_repeated = len(ids) - len(set(ids))
    message = f"{n_repeated} rows repeat the id of another; {first!r} comes {count} times"
    return [Note("tables", column, message)]
