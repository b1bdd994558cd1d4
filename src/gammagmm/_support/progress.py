"""What is at work now: told to a callback, shown as bars on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from gammagmm.errors import MissingExtraError

__all__ = [
    "Progress",
    "Shown",
    "block_bar",
    "check_progress",
    "progress_bars",
    "quiet",
    "tell",
    "working",
]

Progress: TypeAlias = Callable[[str, str, float], Any]
"""Called with what is at work, its state ("started", then its status) and its seconds."""


def quiet(subject: str, state: str, seconds: float) -> None:
    """Nothing: the progress of those who did not ask for it."""


def check_progress(progress: Any, verbose: Any) -> None:
    """Refuse a `progress` that cannot be called, and a bar that cannot be drawn."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function or None, got {progress!r}.")
    if verbose:
        _tqdm()


@contextmanager
def tell(
    progress: Progress | None, verbose: int, description: str, total: int
) -> Iterator[Progress]:
    """Callback that passes all it hears on to `progress` and, if `verbose`, to a bar of `total`."""
    told = progress or quiet
    if not verbose:
        yield told
        return
    with _tqdm()(total=total, desc=description) as bar:

        def tell_both(subject: str, state: str, seconds: float) -> None:
            if state == "started":
                bar.set_postfix_str(subject)
            else:
                bar.update()
            told(subject, state, seconds)

        yield tell_both


def _tqdm() -> Any:
    """The class tqdm.auto.tqdm: a bar on standard error, a widget in a notebook."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise MissingExtraError("verbose=1 needs tqdm", "tqdm") from None
    return tqdm


Shown = Callable[[str, str, float], Any]


@contextmanager
def progress_bars(n_detectors: int, n_runs: int, quiet: bool = False) -> Iterator[Shown | None]:
    """Callback for ``GammaGMM(progress=...)`` that moves two bars, with the time left.

    None where standard error is no terminal, or with `quiet`.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    told = TextColumn("{task.description}", markup=False)
    columns = (told, BarColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        detectors = bar.add_task("detectors", total=n_detectors)
        runs = bar.add_task("mixtures", total=n_runs, start=False)
        at_work: set[str] = set()

        def show(name: str, state: str, seconds: float) -> None:
            if name.startswith("run "):
                bar.start_task(runs)
                words = f"mixtures: {name} anew" if state == "started" else "mixtures"
                bar.update(runs, description=words, advance=float(state != "started"))
                return
            at_work.discard(name) if state != "started" else at_work.add(name)
            words = f"detectors: {', '.join(sorted(at_work))}" if at_work else "detectors"
            bar.update(detectors, description=words, advance=float(state != "started"))

        yield show


@contextmanager
def block_bar(n_blocks: int, quiet: bool = False) -> Iterator[Shown | None]:
    """Callback that moves a bar of `n_blocks`; None where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        blocks = bar.add_task("labels", total=n_blocks)
        yield lambda name, state, seconds: bar.advance(blocks)


@contextmanager
def working(step: str, quiet: bool = False) -> Iterator[None]:
    """Show that `step`, which cannot tell how far it is, is at work."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(step):
        yield
