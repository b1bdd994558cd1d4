"""What a user of the command line asks for -> the rows, or the reason why it cannot be done."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, cast

from gammagmm.cli.columns import is_answered
from gammagmm.cli.files import read_file
from gammagmm.cli.options import (
    Labelling,
    Reading,
    Request,
)
from gammagmm.cli.words import COMMAND
from gammagmm.distributed.parquet import check_folder, matching_files
from gammagmm.errors import GammaGMMError, Note, TableError
from gammagmm.labels.sheet import Sheet
from gammagmm.readers.joined_table import join_raw
from gammagmm.readers.raw_table import RawTable
from gammagmm.readers.source import STANDARD_INPUT, Asked
from gammagmm.table.preparation import Choices, prepare
from gammagmm.table.roles import named_columns
from gammagmm.table.table import Table

__all__ = [
    "ColumnsError",
    "UsageError",
    "asked_of",
    "check_fail_above",
    "check_label",
    "check_monitor",
    "check_request",
    "check_sample",
    "check_suffix",
    "choices_for",
    "choices_of",
    "label_sheets",
    "line_numbers",
    "read_rows",
    "read_table",
    "table_of",
]

LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
MAX_LINES = 1_000_000
NO_CODES = "none"
"""What `--missing-codes` has where no value marks a gap."""
"""Most lines of a range that are left out."""
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
    "--fail-above needs labels: without them, the share is not known and the estimate can be wrong "
    "in either direction"
)
LABEL_ROWS = (
    "Label rows with gammagmm label and pass the sheet with --labels, or leave out "
    "--fail-above. Rows in --known and rows with --purpose find do not count: they were not chosen "
    "at random."
)


class ColumnsError(TableError):
    """Columns of a file cannot be used; says whether the command works without ``--strict``."""

    def __init__(self, error: TableError, is_answered: bool) -> None:
        super().__init__(error.what, error.todo, error.problems, error.source)
        self.is_answered = is_answered


class UsageError(GammaGMMError, ValueError):
    """The options of a command do not fit together, or name a file that cannot be used."""


def check_request(
    request: Request,
    more: Mapping[str, Path] | None = None,
    *,
    force: bool = False,
    needs_files: bool = True,
) -> None:
    """Check, before the work starts, that the input can be read and the output can be written.

    `more` are other outputs by their options. With `force`, existing outputs are replaced although
    the user did not ask for that.
    """
    if needs_files:
        _check_reading(request)
    kept = [path for path in (request.kept, request.labelling.second_labels) if path is not None]
    given = [*(path for path, _ in label_sheets(request.labelling)), *kept]
    for path in given:
        if not path.is_file():
            raise UsageError(f"{path} does not exist or is not a file", "Check the path.")
    outputs = {**request.written, **(more or {})}
    for option, path in outputs.items():
        _check_output(option, path, request, force or request.running.force)
    _check_places(list(outputs.values()), [*request.reading.paths, *map(str, given)])
    if request.answer.is_sorted and request.outputs.out is None:
        raise UsageError("--sort needs --out", "Add --out OUT.csv.")
    by, truth = request.labelling.by, request.reading.truth
    if by is not None and by == truth:
        raise UsageError("--by and --truth name the same column", "Give another column.")
    limit = request.answer.fail_above
    if limit is not None and not 0.0 <= limit <= 1.0:
        raise UsageError(f"--fail-above must lie between 0 and 1, got {limit}")


def check_monitor(request: Request, history: Path) -> None:
    """The same for `monitor`, and its own options; `history` is the file that grows."""
    # Both are replaced in each call after the first, because the history grows.
    monitoring = request.monitoring
    needs_files = not monitoring.acknowledge or bool(request.reading.paths)
    check_request(request, {"--history": history}, force=history.exists(), needs_files=needs_files)
    if monitoring.acknowledge and not history.exists():
        raise UsageError(f"--acknowledge needs a history, and {history} does not exist")
    if monitoring.every is not None and monitoring.time is None:
        raise UsageError("--every needs --time", "Add --time COLUMN.")
    if monitoring.period is not None and monitoring.time is not None:
        raise UsageError("--period and --time cannot be given together", "Give one of them.")
    if monitoring.alpha is not None and not 0.0 < monitoring.alpha < 1.0:
        raise UsageError(f"--alpha must lie strictly between 0 and 1, got {monitoring.alpha}")


def check_label(request: Request) -> None:
    """The same for `label`, and its own options."""
    inspecting = request.inspecting
    sheet = inspecting.sheet
    if inspecting.sheet_only and sheet.is_file() and not request.running.force:
        more = sheet.with_stem(f"{sheet.stem}_2")
        raise UsageError(
            f"{sheet} already exists, and may have answers",
            f"For more rows, add --labels {quote(str(sheet))} --out {quote(str(more))}. --force "
            "replaces the file and discards its answers.",
        )
    # A sheet that exists is continued.
    check_request(request, {"--out": inspecting.sheet}, force=not inspecting.sheet_only)
    if inspecting.sheet_only and inspecting.terminal:
        raise UsageError("--sheet-only and --terminal cannot be given together", "Give one.")
    if inspecting.n < 1:
        raise UsageError(f"--n must be at least 1, got {inspecting.n}")
    if inspecting.purpose != "share" and request.labelling.by is not None:
        raise UsageError("--by needs --purpose share: rows for another purpose have no groups")
    has_labels = bool(request.labelling.labels) or inspecting.sheet.exists()
    if inspecting.purpose == "check" and not has_labels:
        raise UsageError(
            "--purpose check needs the rows that were labelled before", "Add --labels SHEET."
        )
    if inspecting.terminal and "-" in request.reading.paths:
        raise UsageError(
            "--terminal reads the answers from standard input, so the rows cannot come from there",
            "Give the rows as a file.",
        )


def check_fail_above(request: Request) -> None:
    """Refuse ``--fail-above`` without the labels that make the estimate reliable."""
    if request.answer.fail_above is not None and not request.labelling.labels:
        raise UsageError(NO_SAMPLE, LABEL_ROWS)


def check_sample(sheets: Sequence[Sheet]) -> None:
    """Refuse ``--fail-above`` if no row with a label was chosen at random."""
    if not any(sheet.answered(picked=False)[0] for sheet in sheets):
        raise UsageError(NO_SAMPLE, LABEL_ROWS)


def label_sheets(labelling: Labelling) -> list[tuple[Path, bool]]:
    """The sheets with labels, and whether their rows were chosen at random."""
    known = [] if labelling.known is None else [labelling.known]
    return [(path, True) for path in labelling.labels or ()] + [(path, False) for path in known]


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


def _check_reading(request: Request) -> None:
    """Refuse standard input among files, and what the engine cannot read."""
    paths, engine = request.reading.paths, request.engine
    if not paths:
        raise UsageError("No file with rows is given")
    if "-" in paths and len(paths) > 1:
        raise UsageError(
            "Standard input (-) and files cannot be read together", "Give one or the other."
        )
    if engine.name == "memory":
        if engine.scheduler is not None:
            raise UsageError("--scheduler needs --engine dask", "Add --engine dask.")
        return
    for path in paths:
        suffix = Path(path).suffix.lower()
        if path == "-" or (Path(path).is_file() and suffix not in ("", ".parquet", ".pq")):
            raise UsageError(
                f"--engine dask reads Parquet files and folders, and {path} is neither",
                "Leave out --engine dask, or convert the file to Parquet.",
            )
    if request.reading.missing == "drop":
        raise UsageError(
            "--missing drop needs all rows in memory, and --engine dask reads a sample of them",
            "Leave out --missing drop, or leave out --engine dask.",
        )


def choices_of(reading: Reading) -> Choices:
    """The choices about columns; an unknown value is a ValueError."""
    choices = Choices(
        id=reading.id,
        drop=tuple(reading.drop or ()),
        truth=reading.truth,
        use=tuple(reading.use or ()),
        dates=reading.dates,
        missing_codes=_codes_of(reading.missing_codes),
    ).with_strict(reading.strict)
    return choices if reading.missing is None else replace(choices, missing=reading.missing)


def _codes_of(text: str | None) -> tuple[str, ...] | None:
    """The values of ``--missing-codes``; none for "none", and None without the option."""
    if text is None:
        return None
    return () if text == NO_CODES else tuple(filter(None, map(str.strip, text.split(","))))


def _check_output(option: str, path: Path, request: Request, force: bool) -> None:
    """Refuse a file that cannot be written or must not be replaced, or such a folder on Dask."""
    if request.engine.name == "memory" or path != request.outputs.out:
        _check_file(path, force)
        check_suffix(option, path)
        return
    check_suffix("--out with --engine dask", path)
    if not path.exists():
        _check_file(path, False)
    elif path.is_dir() and not force:
        raise UsageError(f"{path} already exists", "Pass --force to replace it.")
    inputs = [name for pattern in request.reading.paths for name in matching_files(pattern)]
    check_folder(path, force, inputs)


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
    asked = asked_of(reading)
    return join_raw([read_file(path, table=reading.table, asked=asked) for path in reading.paths])


def asked_of(reading: Reading) -> Asked:
    """What the user says about how the files are written."""
    return Asked(
        reading.header,
        line_numbers(reading.skip or ""),
        cast("Any", reading.decimal or ""),
        _encoding(reading.encoding or ""),
        reading.strict,
    )


def _encoding(name: str) -> str:
    """The name of an encoding of text that Python knows; empty for none."""
    try:
        if name:
            b"".decode(name)
    except (LookupError, ValueError):
        raise UsageError(f"--encoding {name!r} is not known", "Give one such as cp1252.") from None
    return name


def line_numbers(text: str) -> tuple[int, ...]:
    """The numbers of a text such as "2,5,400-410"."""
    numbers = list[int]()
    for part in filter(None, map(str.strip, text.split(","))):
        match = LINES.fullmatch(part)
        if match is None:
            raise UsageError(f"--skip must be numbers such as 2,5,400-410, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        numbers += range(first, min(last, first + MAX_LINES) + 1)
    return tuple(numbers)


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
        raise ColumnsError(error, is_answered(raw, choices)) from None
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
    return choices if is_named or not is_text else replace(choices, drop=(*choices.drop, by))
