"""The options of the command line: their words, and what they take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "P0",
    "AsJson",
    "Ask",
    "Categories",
    "Debug",
    "Detectors",
    "Drop",
    "Engine",
    "FailAbove",
    "Force",
    "HighGamma",
    "How",
    "HowMany",
    "Id",
    "InspectedIn",
    "Jobs",
    "KnownIn",
    "LabelsOut",
    "MaxGamma",
    "Missing",
    "PHigh",
    "Paths",
    "Picture",
    "PosteriorOut",
    "Quiet",
    "ReportOut",
    "Runs",
    "Scheduler",
    "Seed",
    "SheetOut",
    "Timeout",
    "Trust",
    "Truth",
]

Option, Share = typer.Option, "SHARE"

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Rows without labels: .csv, .tsv, .parquet, .feather, .arff, .mat, .npy, .npz, "
        ".jsonl, text ones also with .gz, or - for CSV on standard input.",
    ),
]
Detectors = Annotated[str, Option(help="classic, paper, fast, or names with commas.")]
P0 = Annotated[float, Option(help="How likely no anomalies at all are.", metavar=Share)]
PHigh = Annotated[float, Option(help="How likely a share of --high-gamma is.", metavar=Share)]
HighGamma = Annotated[float, Option(help="What counts as a large share.", metavar=Share)]
MaxGamma = Annotated[float, Option(help="Bound on the expected share.", metavar=Share)]
Runs = Annotated[int, Option(help="Variational runs, from different starts.")]
Seed = Annotated[int, Option(help="Seed of every random step.")]
Jobs = Annotated[int, Option(help="Processes and threads to use at once; -1 is all cores.")]
Timeout = Annotated[
    float | None,
    Option(help="For detectors and mixtures; exit code 5 when it is over.", metavar="SECONDS"),
]
Id = Annotated[str | None, Option("--id", help="Column that names the rows.", metavar="COLUMN")]
Drop = Annotated[
    list[str] | None, Option(help="Column to leave out; may be repeated.", metavar="COLUMN")
]
Truth = Annotated[
    str | None,
    Option(help="Column with the truth: kept out of the data, compared with.", metavar="COLUMN"),
]
Missing = Annotated[str, Option(help="Missing values: error, drop (rows) or impute (medians).")]
Categories = Annotated[str, Option(help="Columns of text: error or encode (as 0 and 1).")]
LabelsOut = Annotated[
    Path | None, Option("--labels", help="Write a line for each row here (CSV).", metavar="OUT")
]
ReportOut = Annotated[
    Path | None, Option("--report", help="Write a report here (HTML).", metavar="OUT")
]
PosteriorOut = Annotated[
    Path | None, Option("--posterior", help="Write the posterior here (JSON).", metavar="OUT")
]
Picture = Annotated[
    Path | None, Option(help="Draw the posterior here (.png, .svg, .pdf).", metavar="OUT")
]
AsJson = Annotated[bool, Option("--json", help="Print the answer as JSON.")]
FailAbove = Annotated[
    float | None, Option(help="Exit with 3 if the mean exceeds this.", metavar=Share)
]
Force = Annotated[bool, Option("--force", help="Replace files that exist.")]
Quiet = Annotated[bool, Option("--quiet", help="No progress bars and no notes.")]
Engine = Annotated[
    str, Option(help="memory, or dask for Parquet files that do not fit: labels go to a folder.")
]
Scheduler = Annotated[
    str | None,
    Option(help="Address of a Dask cluster; a local one otherwise.", metavar="ADDRESS"),
]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]
Trust = Annotated[
    float,
    Option(help="How far the fit is believed once labels are given.", metavar=Share),
]
InspectedIn = Annotated[
    Path | None,
    Option("--inspected", help="Labels of single rows, from `gammagmm inspect`.", metavar="CSV"),
]
KnownIn = Annotated[
    Path | None,
    Option("--known", help="The same for rows known from elsewhere: no sample.", metavar="CSV"),
]
SheetOut = Annotated[
    Path, Option("--out", help="The rows to look at, with an empty column anomaly.", metavar="CSV")
]
HowMany = Annotated[int, Option("--n", help="Rows to look at.")]
How = Annotated[str, Option("--strategy", help="random (safe) or adaptive (good rankings).")]
Ask = Annotated[
    bool, Option("--ask", help="Ask row by row, here; saves each answer, goes on where it was.")
]
