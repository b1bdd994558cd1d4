"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="What share of these unlabelled rows are anomalies, and how sure can we be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

PICTURES = (".png", ".svg", ".pdf")

Seed = Annotated[int, typer.Option(help="Seed of every random step.")]
Jobs = Annotated[int, typer.Option(help="Processes and threads to use at once; -1 is all cores.")]
Picture = Annotated[
    Path | None, typer.Option(help="Write a picture of the posterior here (.png, .svg, .pdf).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Preset = Annotated[str, typer.Option(help="Detectors: classic, paper, fast, or names with commas.")]


@app.command()
def estimate(
    path: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Rows without labels.")],
    detectors: Preset = "classic",
    seed: Seed = 0,
    jobs: Jobs = -1,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the share of anomalies among the rows of a CSV file."""
    from gammagmm.tables import read_table

    with _short_errors():
        _check_picture(picture)
        table = read_table(path)
        result = _fit(table.values, detectors, seed, jobs)
        _show(result, picture, as_json)


@app.command()
def demo(picture: Picture = None, seed: Seed = 0, jobs: Jobs = -1, as_json: AsJson = False) -> None:
    """Estimate the share of anomalies in a bundled dataset whose truth is known."""
    from gammagmm.datasets import load_demo

    dataset = load_demo()
    with _short_errors():
        _check_picture(picture)
        result = _fit(dataset.X, "classic", seed, jobs)
        _show(result, picture, as_json)
    if not as_json:
        n_true = int(dataset.y.sum())
        typer.echo(f"The truth, which the method did not see: {n_true} of {len(dataset.y)} rows.")


@contextmanager
def _short_errors() -> Iterator[None]:
    """Turn what users can mend into one line on standard error and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        typer.echo(f"gammagmm: {error}", err=True)
        raise typer.Exit(2) from None


def _check_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be written before the work, not after it."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        raise ValueError(f"cannot write {path}: the picture must end in {', '.join(PICTURES)}.")
    if not path.parent.is_dir() or path.is_dir():
        raise ValueError(f"cannot write {path}: {path.parent} is no folder, or {path} is one.")


def _fit(X: Any, detectors: str, seed: int, jobs: int) -> Any:
    """The fitted estimator; warnings go to standard error, a line each."""
    from gammagmm.estimator import GammaGMM
    from gammagmm.presets import NAMES, PRESETS

    names = [name.strip() for name in detectors.split(",")]
    is_list = len(names) > 1 or names[0] in NAMES
    n_detectors = len(names) if is_list else len(PRESETS.get(names[0], ()))
    with warnings.catch_warnings(record=True) as caught, _progress_bar(n_detectors) as progress:
        warnings.simplefilter("always")
        estimator = GammaGMM(
            names if is_list else names[0], random_state=seed, n_jobs=jobs, progress=progress
        )
        result = estimator.fit(X)
    for warning in caught:
        typer.echo(f"warning: {warning.message}", err=True)
    return result


@contextmanager
def _progress_bar(total: int) -> Iterator[Any]:
    """Callback that moves a bar on standard error while it is a terminal; else None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    at_work: set[str] = set()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("detectors", total=total)

        def show(name: str, state: str, seconds: float) -> None:
            at_work.discard(name) if state != "started" else at_work.add(name)
            step = "fitting mixtures" if not at_work else f"detectors: {', '.join(sorted(at_work))}"
            bar.update(task, description=step, advance=float(state != "started"))

        yield show


def _show(result: Any, picture: Path | None, as_json: bool) -> None:
    if picture is not None:
        from gammagmm.plots import save_picture

        save_picture(result.posterior_, picture)
    if as_json:
        typer.echo(json.dumps(_as_data(result), indent=2, allow_nan=False))
        return
    typer.echo(sentence(result))
    _print_detectors(result)
    if picture is not None:
        typer.echo(f"The posterior is drawn in {picture}.")


def sentence(result: Any) -> str:
    """The answer of a fitted estimator in one sentence."""
    posterior = result.posterior_
    n_flagged, n_rows = int(result.labels_.sum()), len(result.labels_)
    if posterior.is_degenerate:
        return (
            "No solution: no mixture of these scores agrees with p_high, so the estimate is 0 "
            f"and none of {n_rows} rows is flagged."
        )
    low, high = posterior.interval()
    return (
        f"About {posterior.mean:.1%} of the rows are anomalies (90 % interval {low:.1%} to "
        f"{high:.1%}; none at all: {posterior.prob_zero:.1%}; more than 15 %: "
        f"{posterior.prob_above(0.15):.1%}); {n_flagged} of {n_rows} rows are flagged."
    )


def _as_data(result: Any) -> dict[str, Any]:
    """The answer as JSON data; what does not exist is null."""
    posterior = {
        name: None if value != value else value
        for name, value in result.posterior_.summary().items()
    }
    return {
        "posterior": posterior,
        "n_rows": len(result.labels_),
        "n_flagged": int(result.labels_.sum()),
        "threshold": result.threshold_,
        "flagged_rows": result.labels_.nonzero()[0].tolist(),
        "detectors": [
            {
                "name": info.name,
                "status": info.status,
                "reason": info.reason,
                "rows_fitted": info.n_rows,
                "seconds": info.seconds,
            }
            for info in result.detector_info_
        ],
        "notes": [vars(note) for note in result.notes_],
    }


def _print_detectors(result: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("detector", "status", "rows fitted", "seconds", "threshold")
    for info in result.detector_info_:
        threshold = result.thresholds_.get(info.name)
        shown = "" if threshold is None else f"{threshold:.4g}"
        table.add_row(info.name, info.status, f"{info.n_rows}", f"{info.seconds:.1f}", shown)
    Console(file=sys.stdout).print(table)
