"""What a user of the command line asks for -> the rows, or the reason why it cannot be done."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from gammagmm.cli.columns import working_options
from gammagmm.cli.options import (
    Inspecting,
    Labelling,
    Monitoring,
    Outputs,
    Reading,
    Request,
)
from gammagmm.cli.sheet import Sheet
from gammagmm.cli.words import COMMAND
from gammagmm.distributed.parquet import check_folder, matching_files
from gammagmm.errors import GammaGMMError, Note, TableError
from gammagmm.readers.joined_table import join_raw
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.registry import read_raw
from gammagmm.readers.source import STANDARD_INPUT
from gammagmm.table.preparation import Choices, prepare
from gammagmm.table.roles import named_columns
from gammagmm.table.table import Table

__all__ = [
    "ColumnsError",
    "UsageError",
    "check_estimate",
    "check_label",
    "check_monitor",
    "check_outputs",
    "check_predict",
    "check_sample",
    "check_suffix",
    "choices_for",
    "label_sheets",
    "read_rows",
    "read_table",
    "table_of",
]

SUFFIXES = {
    "--history": (".json",),
    "--out": (".csv",),
    "--picture": (".png", ".svg", ".pdf"),
    "--posterior": (".json",),
    "--report": (".html", ".htm"),
    "--save": (".fit",),
    "--out with --engine dask": (".parquet",),  # a folder
}
"""Suffixes of the files that an option writes."""
NO_SAMPLE = (
    "--fail-above needs labels: without them, the estimate rests on assumptions and can be wrong "
    "in either direction"
)
LABEL_ROWS = (
    "Label rows with gammagmm label and pass the sheet with --labels, or leave out "
    "--fail-above. Rows in --known and rows with --purpose find do not count: they were not chosen "
    "at random."
)


class ColumnsError(TableError):
    """Columns of a file cannot be used; `options` make the command work, if there are any."""

    def __init__(self, error: TableError, options: tuple[str, ...]) -> None:
        super().__init__(error.what, error.todo, error.problems, error.source)
        self.options = options


class UsageError(GammaGMMError, ValueError):
    """The options of a command do not fit together, or name a file that cannot be used."""


def check_estimate(request: Request) -> None:
    """Check, before the work starts, that the input can be read and the output can be written."""
    reading, outputs = request.reading, request.outputs
    if request.kept is None:
        _check_reading(reading)
    if request.answer.is_sorted and outputs.out is None:
        raise UsageError("--sort needs --out", "Add --out OUT.csv.")
    folder = _check_engine(request)
    given = [path for path, _ in label_sheets(request.labelling)]
    kept = [] if request.kept is None else [request.kept]
    inputs = [*reading.paths, *map(str, [*given, *kept])]
    check_outputs(outputs, request.running.force, inputs, folder)
    if request.save is not None:
        check_suffix("--save", request.save)
        _check_file(request.save, request.running.force)
        _check_places([*outputs.paths, request.save], inputs)
    _check_files_exist([*given, *kept])
    _check_by(request)
    _check_fail_above(request)


def check_predict(request: Request) -> None:
    """Check, before the work starts, that the input can be read and the output can be written."""
    reading, outputs = request.reading, request.outputs
    _check_reading(reading)
    kept = [] if request.kept is None else [request.kept]
    _check_files_exist(kept)
    folder = _check_engine(request)
    check_outputs(outputs, request.running.force, [*reading.paths, *map(str, kept)], folder)
    if request.answer.is_sorted and outputs.out is None:
        raise UsageError("--sort needs --out", "Add --out OUT.csv.")


def check_monitor(monitoring: Monitoring, request: Request, history: Path) -> None:
    """Check, before the work starts, the options of `monitor`; `history` is the file that grows."""
    paths, kept = request.reading.paths, [] if request.kept is None else [request.kept]
    _check_reading(request.reading)
    _check_engine(request)
    _check_files_exist(kept)
    # Both are replaced in each call after the first, because the history grows.
    force = request.running.force or history.exists()
    check_outputs(request.outputs, force, [*paths, *map(str, kept)])
    check_suffix("--history", history)
    _check_file(history, True)
    _check_places([history, *request.outputs.paths], [*paths, *map(str, kept)])
    if monitoring.every is not None and monitoring.time is None:
        raise UsageError("--every needs --time", "Add --time COLUMN.")
    if monitoring.period is not None and monitoring.time is not None:
        raise UsageError("--period and --time cannot be given together", "Give one of them.")
    if monitoring.alpha is not None and not 0.0 < monitoring.alpha < 1.0:
        raise UsageError(f"--alpha must lie strictly between 0 and 1, got {monitoring.alpha}")
    _check_limit(request.answer.fail_above)


def _check_limit(fail_above: float | None) -> None:
    if fail_above is not None and not 0.0 <= fail_above <= 1.0:
        raise UsageError(f"--fail-above must lie between 0 and 1, got {fail_above}")


def _check_files_exist(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path} does not exist or is not a file", "Check the path.")


def _check_fail_above(request: Request) -> None:
    """Refuse ``--fail-above`` without the labels that make the estimate reliable."""
    if request.answer.fail_above is None:
        return
    _check_limit(request.answer.fail_above)
    if not request.labelling.labels:
        raise UsageError(NO_SAMPLE, LABEL_ROWS)


def check_sample(sheets: Sequence[Sheet]) -> None:
    """Refuse ``--fail-above`` if no row with a label was chosen at random."""
    if not any(sheet.answered(picked=False)[0] for sheet in sheets):
        raise UsageError(NO_SAMPLE, LABEL_ROWS)


def label_sheets(labelling: Labelling) -> list[tuple[Path, bool]]:
    """The sheets with labels, and whether their rows were chosen at random."""
    known = [] if labelling.known is None else [labelling.known]
    return [(path, True) for path in labelling.labels or ()] + [(path, False) for path in known]


def _check_by(request: Request) -> None:
    """Refuse groups by the labels that the method must not use."""
    by, truth = request.labelling.by, request.reading.truth
    if by is not None and by == truth:
        raise UsageError("--by and --truth name the same column", "Give another column.")


def check_label(inspecting: Inspecting, request: Request) -> None:
    """Check, before the work starts, that the input can be read and the sheet can be written."""
    paths, sheet = request.reading.paths, inspecting.sheet
    _check_reading(request.reading)
    _check_engine(request)
    check_suffix("--out", sheet)
    # --ask continues a sheet that exists.
    _check_file(sheet, request.running.force or inspecting.ask)
    given = request.labelling.labels or ()
    _check_files_exist(given)
    _check_places([sheet], [*paths, *map(str, given)])
    _check_by(request)
    if inspecting.n < 1:
        raise UsageError(f"--n must be at least 1, got {inspecting.n}")
    if inspecting.purpose == "find" and request.labelling.by is not None:
        raise UsageError(
            "--by needs --purpose share: rows from the top of the ranking have no groups"
        )
    if inspecting.ask and "-" in paths:
        raise UsageError(
            "--ask reads the answers from standard input, so the rows cannot come from there",
            "Give the rows as a file.",
        )


def check_outputs(
    outputs: Outputs, force: bool, inputs: Sequence[str] = (), folder: Path | None = None
) -> None:
    """Refuse outputs that cannot be written, or must not be replaced.

    `inputs` are paths that the command reads; `folder` is an output that has been checked already.
    """
    for path in outputs.paths:
        if path != folder:
            _check_file(path, force)
    _check_places(outputs.paths, inputs)
    for option, path in outputs.by_option.items():
        if path != folder:
            check_suffix(option, path)


def check_suffix(option: str, path: Path) -> None:
    """Refuse the path of an output whose suffix is not one of its format.

    A path without a suffix is fine, except where the suffix chooses the format.
    """
    allowed, suffix = SUFFIXES[option], path.suffix.lower()
    if suffix in allowed or (not suffix and option != "--picture"):
        return
    formats = " or ".join(filter(None, (", ".join(allowed[:-1]), allowed[-1])))
    found = f"ends in {path.suffix}" if suffix else "has no suffix"
    raise UsageError(
        f"{option} writes {formats}, and {path} {found}",
        f"Give a name that ends in {formats}.",
    )


def _check_reading(reading: Reading) -> None:
    """Refuse standard input among files."""
    if not reading.paths:
        raise UsageError("No file with rows is given")
    if "-" in reading.paths and len(reading.paths) > 1:
        raise UsageError(
            "Standard input (-) and files cannot be read together", "Give one or the other."
        )


def choices_of(reading: Reading) -> Choices:
    """The choices about columns; an unknown value is a ValueError."""
    return Choices(
        id=reading.id,
        drop=tuple(reading.drop or ()),
        truth=reading.truth,
        missing=reading.missing,
        categories=reading.categories,
        use=tuple(reading.use or ()),
        dates=reading.dates,
    )


def _check_engine(request: Request) -> Path | None:
    """The folder that --out writes for rows on Dask."""
    engine = request.engine
    if engine.name == "memory":
        if engine.scheduler is not None:
            raise UsageError("--scheduler needs --engine dask", "Add --engine dask.")
        return None
    for path in request.reading.paths:
        suffix = Path(path).suffix.lower()
        if path == "-" or (Path(path).is_file() and suffix not in ("", ".parquet", ".pq")):
            raise UsageError(
                f"--engine dask reads Parquet files and folders, and {path} is neither",
                "Leave out --engine dask, or convert the file to Parquet.",
            )
    if request.reading.missing == "drop":
        raise UsageError(
            "--missing drop needs all rows in memory, and --engine dask reads a sample of them",
            "Use --missing impute, or leave out --engine dask.",
        )
    folder = request.outputs.out
    if folder is not None:
        _check_labels_folder(folder, request.reading, request.running.force)
    return folder


def _check_labels_folder(folder: Path, reading: Reading, force: bool) -> None:
    """Refuse a folder for labels that cannot be written, or must not be replaced."""
    check_suffix("--out with --engine dask", folder)
    if not folder.exists():
        _check_file(folder, False)
    elif folder.is_dir() and not force:
        raise UsageError(f"{folder} already exists", "Pass --force to replace it.")
    inputs = [name for pattern in reading.paths for name in matching_files(pattern)]
    check_folder(folder, force, inputs)


def _check_file(path: Path, force: bool) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{path}: {folder} is not a folder", "Create the folder first.")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{path}: the folder {folder} is not writable", "Choose another folder.")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file", "Choose another name.")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} already exists", "Pass --force to replace it.")


def _check_places(outputs: Sequence[Path], inputs: Sequence[str]) -> None:
    """Refuse two outputs in one place, and an output in the place of an input."""
    places = [path.resolve() for path in outputs]
    if len(set(places)) < len(places):
        raise UsageError("Two outputs have the same path", "Give each output a different path.")
    taken = {Path(path).resolve() for path in inputs if path != "-"} & set(places)
    if taken:
        raise UsageError(f"{taken.pop()} is an input and an output", "Choose another output.")


def read_table(reading: Reading) -> RawTable:
    """The columns of the files before any choice about them."""
    return join_raw([read_raw(path, table=reading.table) for path in reading.paths])


def read_rows(reading: Reading, *, by: str | None = None, keep_raw: bool = False) -> Table:
    """The rows of the files; see `table_of`."""
    return table_of(read_table(reading), reading, by, keep_raw=keep_raw)


def table_of(raw: RawTable, reading: Reading, by: str | None, *, keep_raw: bool) -> Table:
    """The rows of a table that was read.

    With `keep_raw`, the columns that are no features are kept as well. With `by`, the rows have the
    groups by this column.
    """
    choices = choices_for(raw, reading, by)
    try:
        table = prepare(raw, choices, COMMAND)
    except TableError as error:
        raise ColumnsError(error, working_options(raw, choices, error.problems)) from None
    names = [Path(path).name if path != "-" else STANDARD_INPUT for path in reading.paths]
    notes = list(table.notes)
    if by is not None and choices != choices_of(reading):
        notes.append(Note.of("tables.groups", by, keep=f"--use {quote(by)}"))
    if table.ids is not None and (n_repeated := len(table.ids) - len(set(table.ids))):
        first, n_times = Counter(table.ids).most_common(1)[0]
        repeated = {"n_repeated": n_repeated, "id": first, "n_times": n_times}
        notes.append(Note.of("tables.same id", choices.id or "", **repeated))
    table = replace(
        table,
        name=", ".join(names).encode("utf-8", "backslashreplace").decode("utf-8"),
        notes=tuple(notes),
    )
    table = table if by is None else table.grouped_by(by)
    return table if keep_raw or by is not None else replace(table, raw=None)


def choices_for(raw: RawTable, reading: Reading, by: str | None) -> Choices:
    """The choices about the columns of a table whose rows have groups by the column `by`.

    This column is left out if it is text and no option says what to do with it.
    """
    choices = choices_of(reading)
    if by is None:
        return choices
    named_columns(raw.source, raw.columns, Choices(id=by))  # refuses an unknown name
    is_named = by in named_columns(raw.source, raw.columns, choices)
    is_text = raw.is_text(raw.columns.index(by))
    if is_named or not is_text or choices.categories != "error":
        return choices
    return replace(choices, drop=(*choices.drop, by))
