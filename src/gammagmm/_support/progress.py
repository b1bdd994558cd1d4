"""Progress of a fit: events for a callback, one bar, or lines on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from gammagmm._support.text import one_line

__all__ = [
    "Progress",
    "Work",
    "check_progress",
    "progress_bar",
    "quiet",
    "tell",
]

Progress: TypeAlias = Callable[[str, str, float], Any]
"""Called with a subject, its state ("started", then its status) and its seconds."""


LONG_SECONDS = 10.0
"""Expected seconds of a fit from which on the bar has the time left."""

TRUST = 0.2
"""Share of the work that the expectation stands for beside what the finished parts took.

With less, the first short parts would decide; with more, a slower machine would show too late.
"""


def quiet(subject: str, state: str, seconds: float) -> None:
    """Ignore the event."""


def check_progress(progress: Any) -> None:
    """Refuse a `progress` that is neither a truth value nor a function."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress must be True, False or a function, got {progress!r}.")


@contextmanager
def tell(
    progress: Progress | None, shows: bool, expected: Mapping[str, float]
) -> Iterator[Progress]:
    """Callback that passes each event of a fit on to `progress` and, if `shows`, shows it.

    A terminal and a notebook get one bar, which stays when it is full; a file and a pipe get a line
    for each step on standard error. `expected` has the expected seconds of each subject.
    """
    heard = progress or quiet
    if not shows or sys.stderr is None:
        yield heard
        return
    work = Work(expected)
    if sys.stderr.isatty():
        display = _bar("fit", work)
    else:
        display = _notebook_bar(work) if _notebook() is not None else _lines(work)
    with display as show:

        def show_and_pass_on(subject: str, state: str, seconds: float) -> None:
            show(subject, state, seconds)
            heard(subject, state, seconds)

        yield show_and_pass_on


@contextmanager
def progress_bar(
    title: str, expected: Mapping[str, float], quiet: bool = False
) -> Iterator[Progress | None]:
    """Callback for ``GammaGMM(progress=...)`` that moves a bar, which vanishes in the end.

    `expected` has the expected seconds of each subject; it is empty for a work of unknown length.
    None, and nothing is shown, without a terminal or with `quiet`.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with _bar(title, Work(expected), transient=True) as show:
        yield show


class Work:
    """Parts of a work with the seconds that each is expected to take, and how much is done.

    Parts of no expected time, such as blocks of rows, count the same.

    >>> work = Work({"KNN": 30.0, "run 1": 10.0})
    >>> work.hear("KNN", "started")
    >>> work.hear("KNN", "ok")
    >>> work.share, work.at_work
    (0.75, [])
    """

    def __init__(self, expected: Mapping[str, float]) -> None:
        in_all = sum(expected.values())
        self._left = {name: seconds if in_all else 1.0 for name, seconds in expected.items()}
        self.n_parts, self._in_all = len(self._left), sum(self._left.values())
        self._begin = time.monotonic()
        self._end = self._begin + in_all
        self.shows_time = in_all >= LONG_SECONDS
        self.at_work: list[str] = []

    @property
    def n_done(self) -> int:
        """Number of parts that are done."""
        return self.n_parts - len(self._left)

    def is_done(self, subject: str) -> bool:
        """Whether this part is done."""
        return subject not in self._left

    @property
    def share(self) -> float | None:
        """Share of the work that is done; None if it is not known."""
        return 1.0 - sum(self._left.values()) / self._in_all if self._in_all else None

    def seconds_left(self) -> float:
        """Seconds until the expected end."""
        return max(self._end - time.monotonic(), 0.0)

    def hear(self, subject: str, state: str) -> None:
        """Take note of an event: the end moves with the time that the finished parts took."""
        name = one_line(subject)
        if state == "started":
            self.at_work = sorted({*self.at_work, name})
            return
        self.at_work = [each for each in self.at_work if each != name]
        self._left.pop(subject, None)
        left, now = sum(self._left.values()), time.monotonic()
        # The expectation counts as much as a part of the work that took as long as expected.
        known = TRUST * self._in_all
        pace = (now - self._begin + known) / (self._in_all - left + known) if self._in_all else 0.0
        self._end = now + pace * left

    def words(self, title: str) -> str:
        """The title, and what is at work."""
        return f"{title}: {', '.join(self.at_work)}" if self.at_work else title

    def time_words(self) -> str:
        """The time left; empty for a short work, and when all is done."""
        if not self.shows_time or not self._left:
            return ""
        seconds = self.seconds_left()
        return f"{seconds:.0f} s left" if seconds < 90.0 else f"{seconds / 60.0:.0f} min left"


@contextmanager
def _bar(title: str, work: Work, transient: bool = False) -> Iterator[Progress]:
    """A bar on the terminal that names what is at work, with the time left of a long work."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class TimeColumn(ProgressColumn):
        """The time left, which is written again at each refresh."""

        def render(self, task: Any) -> Text:
            return Text(work.time_words())

    words = TextColumn("{task.description}", markup=False)
    with RichProgress(
        *(words, BarColumn(), TaskProgressColumn(), TimeColumn()),
        console=Console(stderr=True),
        transient=transient,
        # What the user prints stays where the user sends it.
        redirect_stdout=False,
        redirect_stderr=False,
    ) as display:
        bar = display.add_task(title, total=None if work.share is None else 1.0)

        def show(subject: str, state: str, seconds: float) -> None:
            work.hear(subject, state)
            display.update(bar, description=work.words(title), completed=work.share)

        yield show
        display.update(bar, description=title)


def _notebook() -> Any:
    """The notebook's kernel that runs this process, None if there is none."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None)


@contextmanager
def _notebook_bar(work: Work) -> Iterator[Progress]:
    """A bar in the output of a notebook's cell; Rich needs ipywidgets for that, HTML does not."""
    from html import escape

    from IPython.display import HTML, display

    done = threading.Event()

    def html() -> Any:
        words = escape(f"{work.words('fit')} {work.time_words()}")
        return HTML(f'<progress value="{work.share:.3f}" max="1"></progress> {words}')

    handle = display(html(), display_id=True)

    def count_down() -> None:
        while not done.wait(1.0):
            handle.update(html())

    def show(subject: str, state: str, seconds: float) -> None:
        work.hear(subject, state)
        handle.update(html())

    clock = threading.Thread(target=count_down, daemon=True)
    clock.start()
    try:
        yield show
    finally:
        done.set()
        clock.join()


@contextmanager
def _lines(work: Work) -> Iterator[Progress]:
    """A line for each part that is done."""

    def show(subject: str, state: str, seconds: float) -> None:
        is_again = state == "started" and work.is_done(subject)
        work.hear(subject, state)
        if is_again:
            sys.stderr.write(f"fit: {one_line(subject)} again\n")
        elif state != "started":
            done = f"{one_line(subject)} {state}, {seconds:.1f} s"
            sys.stderr.write(f"fit {work.n_done}/{work.n_parts}: {done}\n")

    yield show
