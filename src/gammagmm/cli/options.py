"""The options of the commands: name, type, default and help text of each, declared once.

A group of options is a frozen dataclass whose fields are the options. A command takes groups as
parameters, and `with_options` turns them into the parameters that Typer reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import partial, wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Argument, Option

__all__ = [
    "Answer",
    "Engine",
    "Inspecting",
    "Labelling",
    "Method",
    "Outputs",
    "Pair",
    "Reading",
    "Request",
    "Running",
    "with_options",
]

_share, _column, _file, _sheet = (
    partial(Option, metavar=metavar) for metavar in ("SHARE", "COLUMN", "OUT", "CSV")
)


@dataclass(frozen=True)
class Method:
    """How the share is estimated."""

    detectors: Annotated[
        str, Option(help="Preset (classic, paper, fast), or names separated by commas.")
    ] = "classic"
    scale: Annotated[
        str,
        Option(help="Scaling of the columns for the detectors: standard, robust or none."),
    ] = "standard"
    learn: Annotated[
        bool,
        Option("--learn/--no-learn", help="Whether labels of rows change the ranking of the rows."),
    ] = True
    p0: Annotated[float, _share(help="Prior probability that there are no anomalies.")] = 0.01
    p_high: Annotated[
        float, _share(help="Prior probability that the share is at least --high-gamma.")
    ] = 0.01
    high_gamma: Annotated[float, _share(help="Share that counts as large.")] = 0.15
    max_gamma: Annotated[float, _share(help="Upper bound on the expected share.")] = 0.25
    runs: Annotated[int, Option(help="Number of variational runs from different starts.")] = 10
    seed: Annotated[int, Option(help="Seed of all random steps.")] = 0
    jobs: Annotated[
        int, Option(help="Number of processes and threads to use; -1 uses all cores.")
    ] = -1
    timeout: Annotated[
        float | None,
        Option(help="Time limit for detectors and mixtures (exit code 5).", metavar="SECONDS"),
    ] = None


@dataclass(frozen=True)
class Reading:
    """The files, and the roles of their columns."""

    paths: Annotated[
        list[str],
        Argument(
            metavar="PATH...",
            help="Files with unlabelled rows: .csv, .tsv, .parquet, .feather, .arff, .mat, .npy, "
            ".npz, .jsonl; text formats also as .gz. The path - reads CSV from standard input.",
        ),
    ]
    table: Annotated[
        str | None,
        Option(metavar="NAME", help="Sheet of a workbook, or table of a database."),
    ] = None
    id: Annotated[str | None, _column(help="Column with the names of the rows.")] = None
    drop: Annotated[list[str] | None, _column(help="Column to ignore; may be repeated.")] = None
    truth: Annotated[
        str | None, _column(help="Column with known labels, only compared with the estimate.")
    ] = None
    missing: Annotated[
        str, Option(help="Missing values: error, drop (the rows) or impute (the median).")
    ] = "error"
    categories: Annotated[
        str, Option(help="Columns of text: error or encode (as columns of 0 and 1).")
    ] = "error"


@dataclass(frozen=True)
class Labelling:
    """Labels that a person gave to rows."""

    inspected: Annotated[
        list[Path] | None,
        _sheet(help="Labels of rows that `gammagmm inspect` chose; may be repeated."),
    ] = None
    known: Annotated[
        Path | None, _sheet(help="Labels of rows not chosen at random, such as incidents.")
    ] = None
    by: Annotated[
        str | None,
        _column(help="Column with groups: estimate shows each, inspect takes rows from each."),
    ] = None


@dataclass(frozen=True)
class Outputs:
    """The files to write."""

    labels: Annotated[Path | None, _file(help="Write a line for each row to this file (CSV).")] = (
        None
    )
    report: Annotated[Path | None, _file(help="Write a report to this file (HTML).")] = None
    posterior: Annotated[Path | None, _file(help="Write the posterior to this file (JSON).")] = None
    picture: Annotated[
        Path | None, _file(help="Draw the posterior to this file (.png, .svg, .pdf).")
    ] = None

    @property
    def paths(self) -> list[Path]:
        """The paths that were given."""
        given = (self.labels, self.report, self.posterior, self.picture)
        return [path for path in given if path is not None]


@dataclass(frozen=True)
class Answer:
    """The form of the result, and the exit code."""

    as_json: Annotated[bool, Option("--json", help="Print the result as JSON.")] = False
    fail_above: Annotated[
        float | None,
        _share(help="Exit with code 3 if the 90% interval lies above this; needs --inspected."),
    ] = None


@dataclass(frozen=True)
class Engine:
    """Where the rows are while they are processed."""

    name: Annotated[
        str,
        Option(
            "--engine",
            help="memory, or dask for Parquet files larger than memory: --labels is then a folder.",
        ),
    ] = "memory"
    scheduler: Annotated[
        str | None,
        Option(help="Address of a Dask cluster; otherwise a local one starts.", metavar="ADDRESS"),
    ] = None


FIT_SUFFIX = ".fit"
"""Suffix of the file beside a sheet in which `inspect` keeps its fit."""


@dataclass(frozen=True)
class Inspecting:
    """Which rows a person labels, and how."""

    sheet: Annotated[
        Path, _sheet("--out", help="File for the rows, with an empty column anomaly.")
    ] = Path("to_label.csv")
    n: Annotated[int, Option(help="Number of rows to label.")] = 30
    purpose: Annotated[
        str,
        Option(
            help="share: rows spread over the ranking, to know the share of anomalies. find: rows "
            "from the top of the ranking, which is learned from the labels, to find anomalies."
        ),
    ] = "share"
    ask: Annotated[
        bool,
        Option("--ask", help="Ask in the terminal and save each answer; a later call continues."),
    ] = False
    show_rank: Annotated[
        bool,
        Option("--show-rank", help="With --ask, show the rank of each row, which may sway you."),
    ] = False


@dataclass(frozen=True)
class Pair:
    """Two saved posteriors."""

    first: Annotated[Path, Argument(metavar="A.json", help="A saved posterior.")]
    second: Annotated[Path, Argument(metavar="B.json", help="Another saved posterior.")]


@dataclass(frozen=True)
class Running:
    """Options of every command that does work."""

    force: Annotated[bool, Option("--force", help="Replace existing files.")] = False
    quiet: Annotated[bool, Option("--quiet", help="Show no progress bars and no notes.")] = False
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class Request:
    """What the user asked `estimate`, `inspect` or `demo` for."""

    reading: Reading = Reading(paths=[])
    method: Method = Method()
    labelling: Labelling = Labelling()
    outputs: Outputs = Outputs()
    answer: Answer = Answer()
    engine: Engine = Engine()
    running: Running = Running()


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
            parameters.append(
                Parameter(
                    option.name,
                    Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=hints[option.name],
                )
            )

    @wraps(command)
    def run(**values: Any) -> None:
        command(
            **{
                name: group(**{option: values[option] for option in options})
                for name, (group, options) in groups.items()
            }
        )

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
