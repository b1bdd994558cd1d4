"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import gammagmm.cli.options as opt
from gammagmm.cli.supervisor import is_supervised, run_supervised
from gammagmm.errors import ClusterError, FitTimeoutError

app = typer.Typer(
    name="gammagmm",
    help="What share of these unlabelled rows are anomalies, and how sure can we be?\n\n"
    "Exit codes: 0 done, 1 a fault of this program, 2 bad input or usage, 3 the estimate exceeds "
    "--fail-above or there is none, 4 the Dask cluster was lost, 5 --timeout was over, 130 stopped "
    "by Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

OUTPUTS = ("labels", "report", "posterior", "picture")
SWITCHES = ("as_json", "fail_above", "engine", "scheduler", "force", "quiet")
OWN_CODES = ((ClusterError, 4), (FitTimeoutError, 5))
INSPECTING = ("inspected", "known", "sheet", "n", "strategy", "ask")


@app.command()
def estimate(
    paths: opt.Paths,
    detectors: opt.Detectors = "classic",
    p0: opt.P0 = 0.01,
    p_high: opt.PHigh = 0.01,
    high_gamma: opt.HighGamma = 0.15,
    max_gamma: opt.MaxGamma = 0.25,
    runs: opt.Runs = 10,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    timeout: opt.Timeout = None,
    id_column: opt.Id = None,
    drop: opt.Drop = None,
    truth: opt.Truth = None,
    missing: opt.Missing = "error",
    categories: opt.Categories = "error",
    inspected: opt.InspectedIn = None,
    known: opt.KnownIn = None,
    trust: opt.Trust = 0.1,
    labels: opt.LabelsOut = None,
    report: opt.ReportOut = None,
    posterior: opt.PosteriorOut = None,
    picture: opt.Picture = None,
    as_json: opt.AsJson = False,
    fail_above: opt.FailAbove = None,
    engine: opt.Engine = "memory",
    scheduler: opt.Scheduler = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Estimate the share of anomalies among the rows of a file (of several: together)."""
    options = dict(locals())
    if not is_supervised():
        outputs = [options[name] for name in OUTPUTS if options[name] is not None]
        raise typer.Exit(_supervised(outputs))
    with _short_errors(debug):
        raise typer.Exit(_estimate(options))


def _estimate(options: dict[str, Any]) -> int:
    """Exit code of `estimate`, once its options have been parsed."""
    from gammagmm.cli.request import check_request, read_rows

    request = _request(options)
    check_request(request)
    if request.engine == "dask":
        from gammagmm.cli.estimate import estimate_blocks

        return estimate_blocks(request, _echo)
    prepared, origin = read_rows(request)
    # Only now, so that a bad file is refused without the seconds that this takes to load.
    from gammagmm.cli.estimate import fit_and_tell

    return fit_and_tell(request, prepared.values, origin, _echo)[1]


def _request(options: dict[str, Any]) -> Any:
    """What the options of `estimate` or `inspect` ask for."""
    from gammagmm.cli.request import Request
    from gammagmm.readers.prepare import Choices

    named = ("missing", "categories", "truth")
    choices = {name: options[name] for name in named} | {"id": options["id_column"]}
    given = ("p0", "p_high", "high_gamma", "max_gamma", "trust", "timeout", "detectors")
    asked = (*OUTPUTS, *SWITCHES, *INSPECTING)
    return Request(
        paths=tuple(options["paths"]),
        choices=Choices(**choices, drop=tuple(options["drop"] or ())),
        parameters={name: options[name] for name in given}
        | {"n_runs": options["runs"], "random_state": options["seed"], "n_jobs": options["jobs"]},
        **{name: options[name] for name in asked if name in options},
    )


@app.command()
def inspect(
    paths: opt.Paths,
    sheet: opt.SheetOut = Path("to_label.csv"),
    n: opt.HowMany = 30,
    strategy: opt.How = "random",
    ask: opt.Ask = False,
    detectors: opt.Detectors = "classic",
    p0: opt.P0 = 0.01,
    p_high: opt.PHigh = 0.01,
    high_gamma: opt.HighGamma = 0.15,
    max_gamma: opt.MaxGamma = 0.25,
    runs: opt.Runs = 10,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    timeout: opt.Timeout = None,
    id_column: opt.Id = None,
    drop: opt.Drop = None,
    truth: opt.Truth = None,
    missing: opt.Missing = "error",
    categories: opt.Categories = "error",
    trust: opt.Trust = 0.1,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Say which rows a person should look at: the labels sharpen the estimate."""
    options = dict(locals())
    if not is_supervised():
        raise typer.Exit(_supervised([sheet]))
    with _short_errors(debug):
        from gammagmm.cli.request import check_request, read_rows

        request = _request(options)
        check_request(request)
        prepared, origin = read_rows(request)
        from gammagmm.cli.estimate import inspect_and_tell

        inspect_and_tell(request, prepared.values, origin, _echo)


@app.command()
def demo(
    report: opt.ReportOut = None,
    picture: opt.Picture = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    as_json: opt.AsJson = False,
    force: opt.Force = False,
    debug: opt.Debug = False,
) -> None:
    """Estimate the share of anomalies in a bundled dataset whose truth is known."""
    if not is_supervised():
        raise typer.Exit(_supervised([path for path in (report, picture) if path is not None]))
    with _short_errors(debug):
        from gammagmm.cli.estimate import fit_and_tell
        from gammagmm.cli.request import Request, check_request
        from gammagmm.datasets import load_demo
        from gammagmm.report.origin import Origin

        dataset = load_demo()
        request = Request(
            parameters={"random_state": seed, "n_jobs": jobs},
            report=report,
            picture=picture,
            as_json=as_json,
            force=force,
        )
        check_request(request)
        origin = Origin(dataset.name, columns=dataset.feature_names, truth=dataset.y)
        fit_and_tell(request, dataset.X, origin, _echo)
        if not as_json:
            n_true, n_rows = int(dataset.y.sum()), len(dataset.y)
            typer.echo(f"The truth, which the method did not see: {n_true} of {n_rows} rows.")


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A.json", help="A posterior.")],
    second: Annotated[Path, typer.Argument(metavar="B.json", help="Another posterior.")],
    picture: opt.Picture = None,
    as_json: opt.AsJson = False,
    force: opt.Force = False,
    debug: opt.Debug = False,
) -> None:
    """Compare two saved posteriors: their numbers, and how likely B's share exceeds A's."""
    with _short_errors(debug):
        from gammagmm.cli.output import compare_posteriors, comparison
        from gammagmm.cli.request import Request, check_request
        from gammagmm.posterior.gamma_posterior import GammaPosterior

        check_request(Request(picture=picture, force=force))
        pair = [GammaPosterior.load(path) for path in (first, second)]
        if as_json:
            typer.echo(json.dumps(compare_posteriors(*pair), indent=2, allow_nan=False))
        else:
            typer.echo(comparison((str(first), str(second)), pair))
        if picture is not None:
            from gammagmm._support.text import visible
            from gammagmm.report.plots import save_comparison

            names = (f"A  {visible(str(first))}", f"B  {visible(str(second))}")
            save_comparison(list(zip(names, pair, strict=True)), picture, force)


@app.command()
def info(as_json: opt.AsJson = False) -> None:
    """Versions, extras, threads and GPU: what to say when asking for help."""
    from gammagmm.cli.output import environment

    found = environment()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    width = max(map(len, found))
    for name, value in found.items():
        typer.echo(f"{name.ljust(width)}  {value}")


def _supervised(outputs: list[Path]) -> int:
    """Exit code of this command in a process of its own."""
    code = run_supervised(sys.argv[1:], outputs)
    if code >= 0:
        return code
    _tell_two(
        f"the work was ended by signal {-code}", "Most often memory ran out: give fewer rows."
    )
    return 1


@contextmanager
def _short_errors(debug: bool) -> Iterator[None]:
    """Turn what users can mend into two lines on standard error and exit code 2."""
    try:
        yield
    except typer.Exit:
        raise
    except (ValueError, TypeError, OSError, ImportError, ClusterError) as error:
        if debug:
            raise
        from gammagmm._support.text import what_and_todo

        _tell_two(*what_and_todo(error))
        own = (code for kind, code in OWN_CODES if isinstance(error, kind))
        raise typer.Exit(next(own, 2)) from None
    except Exception as error:
        if debug:
            raise
        what = f"this should not have happened: {type(error).__name__}: {error}"
        _tell_two(what.rstrip("."), "Run it again with --debug and report what it prints.")
        raise typer.Exit(1) from None


def _tell_two(what: str, todo: str) -> None:
    from gammagmm._support.text import terminal_safe

    _echo(f"gammagmm: {' '.join(terminal_safe(what).split())}.")
    _echo(f"  {' '.join(terminal_safe(todo).split())}")


def _echo(line: str) -> None:
    """A line on standard error."""
    typer.echo(line, err=True)


def main() -> None:
    """Run the command; what it cannot parse is told in two lines as well."""
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        words = " ".join(str(error.format_message()).split()) or "Nothing was asked for"
        _tell_two(words.rstrip("."), "gammagmm COMMAND --help tells what can be given.")
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
