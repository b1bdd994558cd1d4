"""Progress of a fit: events for a callback, bars or lines on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from gammagmm._support.text import one_line

__all__ = [
    "Progress",
    "check_progress",
    "progress_bars",
    "quiet",
    "tell",
]

Progress: TypeAlias = Callable[[str, str, float], Any]
"""Called with a subject, its state ("started", then its status) and its seconds."""


def quiet(subject: str, state: str, seconds: float) -> None:
    """Ignore the event."""


def check_progress(progress: Any) -> None:
    """Refuse a `progress` that is neither a truth value nor a function."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress must be True, False or a function, got {progress!r}.")


@contextmanager
def tell(
    progress: Progress | None, shows_bars: bool, description: str, total: int
) -> Iterator[Progress]:
    """Callback that passes each event on to `progress` and, if `shows_bars`, shows it.

    A terminal gets a bar of `total` steps, which stays when it is full; a file, a pipe and a
    notebook get a line for each step. Both go to standard error.
    """
    heard = progress or quiet
    if not shows_bars or sys.stderr is None:
        yield heard
        return
    display = _bars({description: total}) if sys.stderr.isatty() else _lines(description, total)
    with display as show:

        def show_and_pass_on(subject: str, state: str, seconds: float) -> None:
            show(subject, state, seconds)
            heard(subject, state, seconds)

        yield show_and_pass_on


@contextmanager
def progress_bars(
    totals: Mapping[str, int | None], quiet: bool = False
) -> Iterator[Progress | None]:
    """Callback for ``GammaGMM(progress=...)`` that moves bars, with the time left.

    There is a bar for each title, of as many steps as its total, or of an unknown number for None.
    The bars vanish in the end. None, and nothing is shown, without a terminal or with `quiet`.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with _bars(totals, transient=True) as show:
        yield show


@contextmanager
def _bars(totals: Mapping[str, int | None], transient: bool = False) -> Iterator[Progress]:
    """A bar for each title, of as many steps as its total.

    A step moves the first bar that is not full, and the last one if all are.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.progress import TimeElapsedColumn as TimeElapsed
    from rich.progress import TimeRemainingColumn as TimeLeft

    words = TextColumn("{task.description}", markup=False)
    with RichProgress(
        *(words, BarColumn(), TaskProgressColumn(), TimeElapsed(), TimeLeft()),
        console=Console(stderr=True),
        transient=transient,
        # What the user prints stays where the user sends it.
        redirect_stdout=False,
        redirect_stderr=False,
    ) as display:
        titles, at_work = list(totals), set[str]()
        for title in titles:
            display.add_task(title, total=totals[title], start=title == titles[0])

        def show(subject: str, state: str, seconds: float) -> None:
            is_open = (i for i, task in enumerate(display.tasks) if not task.finished)
            place = next(is_open, len(titles) - 1)
            title, task, name = titles[place], display.tasks[place], one_line(subject)
            is_start = state == "started"
            if is_start and task.finished:  # a run that had no solution; its end is not reported
                description = f"{title}: {name} again"
            else:
                at_work.add(name) if is_start else at_work.discard(name)
                description = f"{title}: {', '.join(sorted(at_work))}" if at_work else title
            display.start_task(task.id)
            display.update(task.id, description=description, advance=float(not is_start))

        yield show
        for title, task in zip(titles, display.tasks, strict=True):
            display.update(task.id, description=title)


@contextmanager
def _lines(title: str, total: int) -> Iterator[Progress]:
    """A line for each step that is done."""
    n_done = 0

    def show(subject: str, state: str, seconds: float) -> None:
        nonlocal n_done
        if state != "started":
            n_done += 1
            done = f"{one_line(subject)} {state}, {seconds:.1f} s"
            sys.stderr.write(f"{title} {n_done}/{total}: {done}\n")
        elif n_done == total:
            sys.stderr.write(f"{title}: {one_line(subject)} again\n")

    yield show
