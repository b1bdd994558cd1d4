"""The command line: parse the options, call the work, print errors in two lines."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import gammagmm
import gammagmm.cli.options as opt
from gammagmm.cli.supervisor import INTERRUPTED, is_supervised, run_supervised
from gammagmm.errors import ClusterError, FitTimeoutError, GammaGMMError, TableError

__all__ = ["app", "main"]

app = typer.Typer(
    name="gammagmm",
    cls=opt.Commands,
    help="What share of these unlabelled rows are anomalies, and how sure can we be?\n\n"
    "Exit codes: 0 success, 1 internal error, 2 invalid input or usage, 3 the interval lies above "
    "--fail-above, 4 the Dask cluster is lost or not found, 5 no result within --timeout, 6 the "
    "share of monitor has risen, 7 it has fallen, 130 interrupted by Ctrl-C.",
    pretty_exceptions_enable=False,
)

EXIT_CODES = {ClusterError: 4, FitTimeoutError: 5}
"""Exit codes of errors for which it is not 2."""
SEE_HELP = "Run gammagmm COMMAND --help to see the options."


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"gammagmm {gammagmm.__version__}")
        raise typer.Exit


@app.callback()
def all_commands(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options before the command."""


@app.command(cls=opt.Command)
@opt.with_options
def estimate(
    reading: opt.Reading,
    kept: opt.Kept,
    labelling: opt.Labelling,
    saving: opt.Saving,
    outputs: opt.Outputs,
    answer: opt.Answer,
    engine: opt.Engine,
    method: opt.Method,
    running: opt.Running,
) -> None:
    """Estimate the share of anomalies among the rows of one file, or of several together."""
    request = opt.Request(
        reading,
        method,
        labelling,
        outputs,
        answer,
        engine,
        running,
        kept=kept.kept and opt.kept_path(kept.kept),
        save=saving.save and opt.kept_path(saving.save),
    )
    _run("estimate", request)


@app.command(cls=opt.Command)
@opt.with_options
def predict(
    kept: opt.KeptFit,
    reading: Annotated[opt.Reading, "paths", "table", "id"],
    outputs: Annotated[opt.Outputs, "out"],
    answer: Annotated[opt.Answer, "as_json", "is_sorted"],
    engine: opt.Engine,
    running: opt.Running,
) -> None:
    """Flag new rows with a saved fit, and give the reasons."""
    request = opt.Request(
        reading,
        outputs=outputs,
        answer=answer,
        engine=engine,
        running=running,
        kept=opt.kept_path(kept.fit_name),
    )
    _run("predict", request)


@app.command(cls=opt.Command)
@opt.with_options
def monitor(
    kept: opt.KeptFit,
    reading: Annotated[opt.Reading, "paths", "table"],
    monitoring: opt.Monitoring,
    labelling: Annotated[opt.Labelling, "by"],
    outputs: Annotated[opt.Outputs, "picture", "report"],
    answer: Annotated[opt.Answer, "as_json", "fail_above"],
    engine: opt.Engine,
    running: opt.Running,
) -> None:
    """Count new rows above the threshold over time; exit codes 6 and 7 mean a change."""
    request = opt.Request(
        reading,
        labelling=labelling,
        outputs=outputs,
        answer=answer,
        engine=engine,
        running=running,
        monitoring=monitoring,
        kept=opt.kept_path(kept.fit_name),
    )
    _run("monitor", request, monitoring.history_path(kept.fit_name).resolve())


@app.command(cls=opt.Command)
@opt.with_options
def label(
    reading: opt.Reading,
    inspecting: opt.Inspecting,
    labelling: Annotated[opt.Labelling, "by", "labels"],
    engine: opt.Engine,
    method: opt.Method,
    running: opt.Running,
) -> None:
    """Choose rows for a person to label: 30 labels give an estimate that can be relied on."""
    request = opt.Request(
        reading, method, labelling, engine=engine, running=running, inspecting=inspecting
    )
    sheet = inspecting.sheet
    _run("label", request, sheet, sheet.with_suffix(opt.FIT_SUFFIX))


@app.command(cls=opt.Command)
@opt.with_options
def demo(
    outputs: Annotated[opt.Outputs, "report", "picture"],
    answer: Annotated[opt.Answer, "as_json"],
    method: Annotated[opt.Method, "seed", "jobs"],
    running: Annotated[opt.Running, "config", "force", "debug"],
) -> None:
    """Estimate the share of anomalies in a bundled dataset whose labels are known."""
    _run("demo", opt.Request(method=method, outputs=outputs, answer=answer, running=running))


@app.command(cls=opt.Command)
@opt.with_options
def compare(
    pair: opt.Pair,
    outputs: Annotated[opt.Outputs, "picture"],
    answer: Annotated[opt.Answer, "as_json"],
    running: Annotated[opt.Running, "force", "debug"],
) -> None:
    """Show two saved posteriors, fits or histories, and which share is higher.

    Posteriors are compared if both use labels, histories if they belong to the same fit.
    """
    with _short_errors(running.debug):
        from gammagmm.cli.compare import run_compare

        request = opt.Request(outputs=outputs, answer=answer, running=running)
        typer.echo(run_compare(pair, request))


@app.command(cls=opt.Command)
def mcp(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with the files.")],
) -> None:
    """Serve the files of a folder to assistants that use the Model Context Protocol (MCP).

    The server only reads. The page "MCP server" of the documentation shows how to set up a client.
    """
    with _short_errors(debug=False):
        from gammagmm.cli.mcp import run_server

        run_server(folder)


@app.command(cls=opt.Command)
@opt.with_options
def info(answer: Annotated[opt.Answer, "as_json"]) -> None:
    """Show versions, extras, threads and GPU. Include this when you ask for help."""
    from gammagmm._support.text import aligned
    from gammagmm.cli.output import environment

    found = environment()
    if answer.as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(aligned(list(found.items()), n_words=2))


def _run(command: str, request: opt.Request, *more: Path) -> None:
    """Exit with the code of a command that does work, which runs in a process of its own.

    The parent process has parsed the same options; it only waits, and removes unfinished parts of
    the outputs, those of the `request` and `more`, if the work is interrupted.
    """
    if is_supervised():
        # The search for garbage among modules, which are never garbage, would take a fifth of the
        # time of a short command. `fit_rows` turns it on again.
        gc.disable()
        with _short_errors(request.running.debug):
            module = import_module(f"gammagmm.cli.{command}")
            code = getattr(module, f"run_{command}")(request, _echo)
        gc.freeze()  # no search when the process ends
        raise typer.Exit(code)
    outputs = [*more, *request.written.values()]
    before = [_state(path) for path in outputs]
    work = run_supervised(sys.argv[1:], outputs)
    code = work.code
    if code == INTERRUPTED or code < 0:
        _show_cursor()
    if code == INTERRUPTED:
        changed = [p for p, state in zip(outputs, before, strict=True) if _state(p) != state]
        _print_interrupted(changed)
    if work.unread is not None:
        from gammagmm.cli.files import unreadable

        error = unreadable(work.unread)
        _print_error(error.what, error.todo)
        code = 2
    elif code < 0:
        _print_error(
            f"the process was ended by signal {-code}",
            "The most frequent cause is a lack of memory: give fewer rows.",
        )
        code = 1
    raise typer.Exit(code)


def _show_cursor() -> None:
    """Show the cursor again, which the progress bars of a process that was ended had hidden."""
    if sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        Console(stderr=True).show_cursor(True)


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes when the file or folder at `path` is written; None where there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None


def _print_interrupted(written: Sequence[Path]) -> None:
    """Say in one line that the command was interrupted, and which files it has written."""
    from gammagmm._support.text import one_line

    names = ", ".join(one_line(str(path)) for path in written)
    files = f"files written: {names}" if names else "nothing was written"
    _echo(f"gammagmm: interrupted; {files}.")


@contextmanager
def _short_errors(debug: bool) -> Iterator[None]:
    """Print an error as two lines on standard error and exit; with `debug`, raise it."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        if debug:
            raise
        code = 2
        if isinstance(error, TableError) and error.problems:
            _print_problems(error)
        elif isinstance(error, GammaGMMError):
            _print_error(error.what, error.todo or SEE_HELP)
            code = next((own for kind, own in EXIT_CODES.items() if isinstance(error, kind)), 2)
        elif isinstance(error, OSError) and error.strerror:
            what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
            _print_error(what, "Check the path and the free disk space.")
        elif isinstance(error, (ValueError, TypeError, OSError, ImportError)):
            _print_error(str(error), SEE_HELP)
        else:
            _print_error(
                f"internal error: {type(error).__name__}: {error}",
                "Run the command again with --debug and report the output.",
            )
            code = 1
        raise typer.Exit(code) from None


def _print_problems(error: TableError) -> None:
    """Print what is wrong with the columns of a file, and the command that works."""
    from gammagmm._support.text import one_line
    from gammagmm.cli.columns import command_without_strict, problem_lines

    if len(error.problems) == 1:
        _print_error(error.what, error.todo)
    else:
        _echo(f"gammagmm: {one_line(error.source)} has {len(error.problems):,} problems:")
        for line in problem_lines(error.problems):
            _echo(line)
    if getattr(error, "is_answered", False):
        _echo(f"  This command works: {command_without_strict()}")


def _print_error(what: str, todo: str) -> None:
    from gammagmm._support.text import terminal_safe

    what, todo = (" ".join(terminal_safe(text).split()) for text in (what, todo))
    _echo(f"gammagmm: {what}" + ("" if what.endswith((".", "?")) else "."))
    _echo(f"  {todo}")


def _echo(line: str) -> None:
    """Write a line to standard error."""
    typer.echo(line, err=True)


def main() -> None:
    """Run the command; errors in its options are printed as two lines as well."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        _print_interrupted([])
        code = INTERRUPTED
    except SystemExit:  # Rich ends so when the reader of a --help has closed the pipe
        code = 0
    except GammaGMMError as error:  # in a file with settings, which is read with the options
        if "--debug" in sys.argv:
            raise
        _print_error(error.what, error.todo)
        code = 2
    except Exception as error:
        # Typer's own errors; newer versions of it no longer use the classes of Click.
        if not hasattr(error, "format_message"):
            raise
        _print_error(str(error.format_message()), SEE_HELP)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
