"""The options of the commands: name, type, default and help text of each, declared once.

A group of options is a frozen dataclass whose fields are the options and whose `panel` is their
heading in the help. A command takes groups as parameters, and `with_options` turns them into the
parameters that Typer reads.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import partial, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from typer import Argument, BadParameter, Context, Option
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from gammagmm.errors import Note

__all__ = [
    "Answer",
    "Command",
    "Commands",
    "Engine",
    "Inspecting",
    "Kept",
    "KeptFit",
    "Labelling",
    "Method",
    "Monitoring",
    "Outputs",
    "Pair",
    "Reading",
    "Request",
    "Running",
    "Saving",
    "kept_path",
    "with_options",
]

_share, _column, _columns, _file, _sheet, _number = (
    partial(Option, metavar=metavar)
    for metavar in ("SHARE", "COLUMN", "COLUMNS", "OUT", "CSV", "N")
)
RUNNING = "Running"
"""Panel of the options about the program and not the result, at the end of the help."""


def _read_settings(ctx: Context, config: str | None) -> Any:
    """Make the settings of a file the defaults of the other options; returns the `Settings`."""
    if ctx.resilient_parsing:  # for completion in the shell
        return None
    from gammagmm.cli.settings import defaults_of

    commands = ctx.parent.command.commands  # type: ignore[union-attr]
    settings = defaults_of(str(ctx.info_name), commands, config)
    ctx.default_map = dict(settings.values)
    return settings


def _choice(*words: str) -> partial[Any]:
    """An option with one of these values."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in words:
            listed = f"{', '.join(words[:-1])} or {words[-1]}"
            raise BadParameter(f"must be {listed}, got {value!r}.")
        return value

    shown = "|".join(words)
    return partial(Option, metavar=shown, autocompletion=lambda: list(words), callback=check)


@dataclass(frozen=True)
class Method:
    """How the share is estimated."""

    panel: ClassVar[str] = "Method"

    detectors: Annotated[
        str,
        Option(
            metavar="NAMES",
            autocompletion=lambda: ["classic", "paper", "fast"],
            help="Preset (classic, paper, fast), or names separated by commas.",
        ),
    ] = "classic"
    scale: Annotated[
        str,
        _choice("standard", "robust", "none")(help="Scaling of the columns for the detectors."),
    ] = "standard"
    learn: Annotated[
        bool,
        Option("--learn/--no-learn", help="Whether labels of rows change the ranking of the rows."),
    ] = True
    label_error: Annotated[
        float, _share(help="Probability that a label in the --labels is wrong, below 0.5.")
    ] = 0.0
    p0: Annotated[float, _share(help="Prior probability that there are no anomalies.")] = 0.01
    p_high: Annotated[
        float, _share(help="Prior probability that the share is at least --high-gamma.")
    ] = 0.01
    high_gamma: Annotated[float, _share(help="Share that counts as large.")] = 0.15
    max_gamma: Annotated[float, _share(help="Upper bound on the expected share.")] = 0.25
    runs: Annotated[int, _number(help="Number of variational runs from different starts.")] = 10
    seed: Annotated[int, _number(help="Seed of all random steps.")] = 0
    jobs: Annotated[
        int,
        _number(
            help="Number of processes and threads to use; -1 uses all cores.",
            rich_help_panel=RUNNING,
        ),
    ] = -1
    timeout: Annotated[
        float | None,
        Option(
            help="Time limit: half of it for the detectors, the rest for the mixtures. What is not "
            "finished is skipped; exit code 5 if there is no result.",
            metavar="SECONDS",
            rich_help_panel=RUNNING,
        ),
    ] = None
    detector_timeout: Annotated[
        float | None,
        Option(
            help="Time limit for each detector, after which it is skipped.",
            metavar="SECONDS",
            rich_help_panel=RUNNING,
        ),
    ] = None


@dataclass(frozen=True)
class Reading:
    """The files, and the roles of their columns."""

    panel: ClassVar[str] = "Files and columns"

    paths: Annotated[
        list[str],
        Argument(
            metavar="PATH",
            show_default=False,
            help="Files with unlabelled rows: .csv, .tsv, .txt, .xlsx, .ods, .sqlite, .json, "
            ".jsonl, .parquet, .feather, .arff, .mat, .npy, .npz; text formats also as .gz or "
            ".zip. The path - reads CSV from standard input.",
        ),
    ] = None  # type: ignore[assignment]
    table: Annotated[
        str | None,
        Option(metavar="NAME", help="Sheet of a workbook, or table of a database."),
    ] = None
    id: Annotated[str | None, _column(help="Column with the names of the rows.")] = None
    drop: Annotated[
        list[str] | None,
        _columns(help="Columns to leave out: names or patterns (x_*), separated by commas."),
    ] = None
    use: Annotated[
        list[str] | None,
        _columns(help="Columns to use even if they look like ids, known labels or dates."),
    ] = None
    truth: Annotated[
        str | None, _column(help="Column with known labels, only compared with the estimate.")
    ] = None
    missing: Annotated[
        str | None,
        _choice("drop", "impute")(
            show_default="impute",
            help="Missing values: drop the rows, or impute the median.",
        ),
    ] = None
    dates: Annotated[
        str,
        _choice("drop", "encode")(help="Columns of dates: drop, or encode as numbers."),
    ] = "drop"
    missing_codes: Annotated[
        str | None,
        Option(
            metavar="VALUES",
            show_default="clear ones such as -999",
            help="Values that mark a gap, separated by commas; auto for all that notes name; none.",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        _choice(".", ",")(help="Decimal mark of all numbers of which the cells do not show it."),
    ] = None
    encoding: Annotated[
        str | None,
        Option(
            metavar="NAME",
            show_default="by the bytes",
            help="Encoding of text files, such as cp1250 or gb18030.",
        ),
    ] = None
    header: Annotated[
        int | None, _number(help="Line, or row of a sheet, with the names of the columns.")
    ] = None
    skip: Annotated[
        str | None,
        Option(metavar="LINES", help="Lines, or rows of a sheet, to leave out: 2,5,400-410."),
    ] = None
    strict: Annotated[
        bool,
        Option(
            "--strict",
            help="Refuse missing values, texts and columns that cannot be used.",
        ),
    ] = False

    def __post_init__(self) -> None:
        # Older versions of Click allow no other default for several arguments than None.
        object.__setattr__(self, "paths", list(self.paths or ()))


@dataclass(frozen=True)
class Kept:
    """A kept fit, in the place of files."""

    panel: ClassVar[str] = "Files and columns"

    kept: Annotated[
        Path | None,
        Option(
            "--from", metavar="NAME", help="Fit of `gammagmm estimate --save`, instead of files."
        ),
    ] = None


@dataclass(frozen=True)
class Saving:
    """Where a fit is kept."""

    panel: ClassVar[str] = "Output"

    save: Annotated[
        Path | None,
        Option("--save", metavar="NAME", help="Save the fit in this file (.fit), for new rows."),
    ] = None


@dataclass(frozen=True)
class KeptFit:
    """The kept fit that scores new rows."""

    panel: ClassVar[str] = "Arguments"

    fit_name: Annotated[Path, Argument(metavar="NAME", help="Fit saved by `gammagmm estimate`.")]


@dataclass(frozen=True)
class Labelling:
    """Labels that a person gave to rows."""

    panel: ClassVar[str] = "Labels and groups"

    labels: Annotated[
        list[Path] | None,
        _sheet(help="Labels of rows that `gammagmm label` chose; may be repeated."),
    ] = None
    known: Annotated[
        Path | None, _sheet(help="Labels of rows not chosen at random, such as incidents.")
    ] = None
    second_labels: Annotated[
        Path | None,
        _sheet(help="Second labels of the same rows, which show how often labels are wrong."),
    ] = None
    by: Annotated[
        str | None,
        _column(help="Column with groups of rows, which are shown, labelled or counted apart."),
    ] = None


@dataclass(frozen=True)
class Outputs:
    """The files to write."""

    panel: ClassVar[str] = "Output"

    out: Annotated[
        Path | None,
        _file(help="Write a line for each row to this file (CSV; with dask, a Parquet folder)."),
    ] = None
    report: Annotated[Path | None, _file(help="Write a report to this file (HTML).")] = None
    posterior: Annotated[Path | None, _file(help="Write the posterior to this file (JSON).")] = None
    picture: Annotated[
        Path | None, _file(help="Draw the result to this file (.png, .svg, .pdf).")
    ] = None


@dataclass(frozen=True)
class Answer:
    """The form of the result, and the exit code."""

    panel: ClassVar[str] = "Output"

    as_json: Annotated[bool, Option("--json", help="Print the result as JSON.")] = False
    columns: Annotated[
        bool,
        Option("--columns", help="Only show the columns and what would be done with each."),
    ] = False
    is_sorted: Annotated[
        bool, Option("--sort", help="Put the most anomalous rows first in --out.")
    ] = False
    fail_above: Annotated[
        float | None,
        _share(help="Exit with code 3 if the interval lies above this; estimate needs --labels."),
    ] = None


@dataclass(frozen=True)
class Engine:
    """Where the rows are while they are processed."""

    panel: ClassVar[str] = "Files larger than memory"

    name: Annotated[
        str,
        _choice("memory", "dask")(
            "--engine",
            help="Where the rows are; dask is for Parquet files, and rows are written to a folder.",
        ),
    ] = "memory"
    scheduler: Annotated[
        str | None,
        Option(help="Address of a Dask cluster; otherwise a local one starts.", metavar="ADDRESS"),
    ] = None


FIT_SUFFIX = ".fit"
"""Suffix of the file of a kept fit; `label` keeps one beside its sheet."""
HISTORY_SUFFIX = ".history.json"
"""Suffix of the file beside a kept fit in which `monitor` keeps its history."""


@dataclass(frozen=True)
class Inspecting:
    """Which rows a person labels, and how."""

    panel: ClassVar[str] = "Rows to label"

    sheet: Annotated[
        Path, _sheet("--out", help="File for the rows, with an empty column anomaly.")
    ] = Path("to_label.csv")
    n: Annotated[int, _number(help="Number of rows to label.")] = 30
    purpose: Annotated[
        str,
        _choice("share", "find", "check")(
            help="share: random rows, to know the share of anomalies. find: rows "
            "from the top of the ranking, which is learned from the labels, to find anomalies. "
            "check: as many random rows without a label as show that 80% of all anomalies are "
            "found; --n does not matter."
        ),
    ] = "share"
    terminal: Annotated[
        bool, Option("--terminal", help="Ask in the terminal instead of a page in the browser.")
    ] = False
    sheet_only: Annotated[
        bool, Option("--sheet-only", help="Only write the rows to the file, and ask nothing.")
    ] = False
    person: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Who answers. The answers of each person are kept, also where two disagree.",
        ),
    ] = ""
    no_browser: Annotated[
        bool, Option("--no-browser", help="Show the address of the page, and open no browser.")
    ] = False
    show_rank: Annotated[
        bool,
        Option("--show-rank", help="With --terminal, show the rank of each row: it may sway you."),
    ] = False


@dataclass(frozen=True)
class Monitoring:
    """The periods of new rows, and their history."""

    panel: ClassVar[str] = "Periods"

    time: Annotated[
        str | None, _column(help="Column with times; without it, all rows are one period.")
    ] = None
    every: Annotated[
        str | None,
        _choice("hour", "day", "week", "month")(help="Length of a period; day if not given."),
    ] = None
    period: Annotated[
        str | None,
        Option(metavar="NAME", help="Name of the period without --time; the file's if not given."),
    ] = None
    label_column: Annotated[
        str | None,
        _column(
            help="Column with labels of some rows, chosen at random: 1 (anomaly), 0, or empty. "
            "They give the share of anomalies of each period."
        ),
    ] = None
    history: Annotated[
        Path | None,
        _file(
            help="File of the history, which grows; NAME.history.json if not given.",
            rich_help_panel=Outputs.panel,
        ),
    ] = None
    alpha: Annotated[
        float | None,
        _share(
            help="Probability of a false alarm in 100 periods; 0.05 if not given.",
            rich_help_panel="Method",
        ),
    ] = None
    acknowledge: Annotated[
        bool,
        Option(
            "--acknowledge",
            help="Start the series again: after the newest period of the history, before the rows "
            "that are given, if any.",
        ),
    ] = False

    def history_path(self, fit_name: Path) -> Path:
        """The file of the history of a kept fit."""
        return self.history or fit_name.with_suffix(HISTORY_SUFFIX)


@dataclass(frozen=True)
class Pair:
    """Two saved posteriors, kept fits or histories."""

    panel: ClassVar[str] = "Arguments"

    first: Annotated[Path, Argument(metavar="A", help="A saved posterior, fit or history.")]
    second: Annotated[Path, Argument(metavar="B", help="Another file of the same kind.")]


@dataclass(frozen=True)
class Running:
    """Options of every command that does work."""

    panel: ClassVar[str] = RUNNING

    config: Annotated[
        str | None,
        Option(
            metavar="TOML",
            is_eager=True,
            callback=_read_settings,
            help="File with defaults of options, instead of gammagmm.toml; none for no file.",
        ),
    ] = None
    force: Annotated[
        bool, Option("--force", help="Replace existing files or, with monitor, periods.")
    ] = False
    quiet: Annotated[bool, Option("--quiet", help="Show no progress bar and no notes.")] = False
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False

    @property
    def notes(self) -> tuple[Note, ...]:
        """The settings of a file that are in use."""
        # `_read_settings` puts the settings in the place of the path.
        return getattr(self.config, "notes", ())


@dataclass(frozen=True)
class Request:
    """What the user asked `estimate`, `label`, `predict`, `monitor` or `demo` for."""

    reading: Reading = Reading()
    method: Method = Method()
    labelling: Labelling = Labelling()
    outputs: Outputs = Outputs()
    answer: Answer = Answer()
    engine: Engine = Engine()
    running: Running = Running()
    inspecting: Inspecting = Inspecting()
    monitoring: Monitoring = Monitoring()
    kept: Path | None = None  # fit in the place of files
    save: Path | None = None  # where the fit is kept

    @property
    def written(self) -> dict[str, Path]:
        """The files that are written, by the option."""
        given = {f"--{field.name}": getattr(self.outputs, field.name) for field in fields(Outputs)}
        given["--save"] = self.save
        return {option: path for option, path in given.items() if path is not None}


def kept_path(name: Path) -> Path:
    """The file of the kept fit `name`, which gets the suffix .fit if it has none."""
    return name if name.suffix else name.with_suffix(FIT_SUFFIX)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a parameter for each option of its groups, for Typer to read.

    A parameter with the annotation ``Annotated[Method, "seed", "jobs"]`` has these two options
    only; the other fields of the group have their defaults.
    """
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    parameters = []
    for name, hint in get_type_hints(command, include_extras=True).items():
        if name == "return":
            continue
        group, *chosen = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        options = [field for field in fields(group) if not chosen or field.name in chosen]
        if unknown := set(chosen) - {option.name for option in options}:
            raise TypeError(f"{group.__name__} has no options {sorted(unknown)}.")
        groups[name] = group, [option.name for option in options]
        hints = get_type_hints(group, include_extras=True)
        for option in options:
            default = Parameter.empty if option.default is MISSING else option.default
            default = None if default == () else default  # which Click before 8.2 refuses
            hint = _in_panel(hints[option.name], group)
            parameters.append(
                Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            )

    @wraps(command)
    def run(**values: Any) -> None:
        if (settings := values.get("config")) is not None:
            values["config"] = settings.used(values)
        command(
            **{
                name: group(**{o: values[o] for o in options if values[o] is not None})
                for name, (group, options) in groups.items()
            }
        )

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _in_panel(hint: Any, group: type[Any]) -> Any:
    """The annotation of an option, with the heading of its group in the help."""
    kind, declared = get_args(hint)
    if isinstance(declared, ArgumentInfo):
        return hint
    shown = copy(declared)
    shown.rich_help_panel = shown.rich_help_panel or getattr(group, "panel", None)
    return Annotated[kind, shown]


class _PlainHelp:
    """Help without the Python types of flags and arguments, which newer versions of Typer show."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters of the command, with --help."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in parameters:
            if getattr(each, "is_flag", False):
                each.metavar = ""
            elif isinstance(each, TyperArgument):
                each.display_type_rich = _no_type  # type: ignore[method-assign]
        return parameters


def _no_type(ctx: Any) -> str:
    return ""


class Command(_PlainHelp, TyperCommand):
    """A command whose --help is listed with the options about the program."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option --help."""
        option: Any = super().get_help_option(ctx)
        option.rich_help_panel = RUNNING
        return option


class Commands(_PlainHelp, TyperGroup):
    """All commands."""
