"""What the command line shows on standard error while it works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Shown", "block_bar", "progress_bars", "working"]

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
