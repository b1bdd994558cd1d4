"""``gammagmm inspect``: rows for a person to label, in a sheet or one by one in the terminal."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import as_generator
from gammagmm._support.files import write_document
from gammagmm._support.text import one_line
from gammagmm.cli.estimate import print_answer, warnings_as_lines
from gammagmm.cli.fitting import Echo, kept_fit
from gammagmm.cli.options import Inspecting, Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import check_inspect, groups_of, read_rows
from gammagmm.cli.sheet import Sheet, fill_sheet, read_sheet
from gammagmm.posterior.sentences import sentence
from gammagmm.report.origin import Origin

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit

__all__ = ["Inspection", "ask_rows", "run_inspect"]

KEYS = {"y": 1, "n": 0}
QUESTION = (
    "Is the row an anomaly? y yes, n no, s skip the row, u undo, q quit. Every answer is saved at "
    "once."
)
MIN_WIDTH = 40  # of the terminal, in characters
END = "There are no more rows to ask about: u undo, q quit."


def run_inspect(inspecting: Inspecting, request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm inspect``: write the rows to a sheet, or ask for their labels."""
    check_inspect(inspecting, request)
    force, path = request.running.force, inspecting.sheet
    X, origin = read_rows(request.reading, keep_table=True)
    groups = groups_of(request.labelling.by, origin)
    is_continued = inspecting.ask and not force and path.exists()
    # Before the fit, so that a bad sheet is refused at once.
    sheet = read_sheet(path, X, origin) if is_continued else None
    with warnings_as_lines(echo):
        fit = kept_fit(X, origin, request, path, echo, keep=not is_continued)
    inspection = Inspection(
        fit=fit,
        X=X,
        origin=origin,
        path=path,
        n=inspecting.n,
        groups=groups,
        shows_rank=inspecting.show_rank,
        rng=as_generator(request.method.seed),
    )
    if sheet is None:
        sheet = inspection.extend(Sheet((), ()))
        inspection.save(sheet, overwrite=force)
    if not inspecting.ask:
        print_answer(_what_to_do(inspection, len(sheet.rows)))
        return 0
    sheet = ask_rows(inspection, inspection.extend(sheet), echo)
    with warnings_as_lines(echo):
        print_answer(answer_text(inspection.labelled(sheet), origin))
    return 0


@dataclass(frozen=True)
class Inspection:
    """A fit without labels, and what is needed to choose, show and save rows to label."""

    fit: Fit
    X: NDArray[np.float64]
    origin: Origin
    path: Path  # of the sheet
    n: int  # rows of the sheet
    groups: NDArray[np.str_] | None
    shows_rank: bool
    rng: np.random.Generator

    def save(self, sheet: Sheet, overwrite: bool = True) -> None:
        """Write the sheet to its file, completely or not at all."""
        write_document(fill_sheet(sheet, self.X, self.origin), self.path, overwrite)

    def labelled(self, sheet: Sheet) -> Fit:
        """The fit with the answers of the sheet."""
        return self.fit.update(*sheet.answered)

    def extend(self, sheet: Sheet) -> Sheet:
        """The sheet with more suggested rows, `n` in all or as many as there are."""
        n_more = min(self.n, self.fit.n_rows) - len(sheet.rows)
        if n_more < 1:
            return sheet
        # Known with any label, the rows of the sheet are not suggested again.
        rows = self.fit.labelled_rows.update(list(sheet.rows), [0] * len(sheet.rows))
        found = rows.suggest(n_more, by=self.groups, random_state=self.rng).tolist()
        return Sheet((*sheet.rows, *found), (*sheet.answers, *(None,) * len(found)))

    def describe(self, row: int) -> list[str]:
        """Lines with the number of a row and all its columns."""
        name = f"row {self.origin.row_number(row)}"
        if self.shows_rank:
            scores = self.fit.decision_scores
            name += f", rank {int((scores > scores[row]).sum()) + 1} of {len(scores)}"
        cells = self.origin.cells(row, self.X)
        pairs = [f"{one_line(column)}: {one_line(cell)}" for column, cell in cells.items()]
        return [name, *_side_by_side(pairs, max(get_terminal_size().columns, MIN_WIDTH))]


def _side_by_side(words: list[str], width: int) -> list[str]:
    """Indented lines of at most `width` characters, unless one of the `words` is longer."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 3 + len(word) > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "  ") + word
    return lines


def _what_to_do(inspection: Inspection, n_rows: int) -> str:
    """What to do with the sheet, once it is written."""
    rows = inspection.fit.labelled_rows
    some = (n for n in (10, n_rows) if n <= n_rows)
    widths = [
        f"{100.0 * rows.expected_width(n):.0f} percentage points wide after {n} "
        f"label{'s' * (n > 1)}"
        for n in dict.fromkeys(some)
    ]
    return (
        f"{n_rows} rows to label: write 1 (anomaly) or 0 (normal) in the column anomaly of "
        f"{one_line(str(inspection.path))}, for as many rows as you like from the top, and pass "
        "the file to gammagmm estimate --inspected. The 90% interval is expected to be "
        f"{' and '.join(widths)}."
    )


def ask_rows(inspection: Inspection, sheet: Sheet, echo: Echo) -> Sheet:
    """Ask for the labels of the rows without one, and save each answer before the next question."""
    # Rows with an answer come first: those before `at` can be undone.
    places = sorted(range(len(sheet.rows)), key=lambda place: sheet.answers[place] is None)
    at, n_rows = len(sheet.answered[0]), len(places)
    if at > 0:
        echo(f"{at} of {n_rows} rows have an answer already.")
    if at < n_rows:
        echo(QUESTION)
    while True:
        lines = [END]
        if at < n_rows:
            name, *columns = inspection.describe(sheet.rows[places[at]])
            lines = [f"{places[at] + 1}/{n_rows}  {name}", *columns]
        key = _ask(lines, "ynsuq" if at < n_rows else "uq", echo)
        if key == "q":
            return sheet
        if key == "s":
            at += 1
        elif key == "u":
            at, sheet = _undo(inspection, sheet, places[:at], echo)
        else:
            sheet = _answer(inspection, sheet, places[at], KEYS[key], echo)
            at += 1


def _undo(inspection: Inspection, sheet: Sheet, before: list[int], echo: Echo) -> tuple[int, Sheet]:
    """The place to go on from, and the sheet without the answer at the last place `before` it."""
    if not before:
        echo("  There is nothing to undo.")
        return 0, sheet
    return len(before) - 1, _answer(inspection, sheet, before[-1], None, echo)


def _answer(
    inspection: Inspection, sheet: Sheet, place: int, label: int | None, echo: Echo
) -> Sheet:
    """The sheet with another answer at one place, saved; what it means is told."""
    sheet = sheet.answer(place, label)
    inspection.save(sheet)
    if label is None:
        echo(f"  Row {inspection.origin.row_number(sheet.rows[place])} has no answer now.")
        return sheet
    with warnings_as_lines(echo):
        posterior = inspection.labelled(sheet).posterior
    low, high = posterior.interval()
    width = f"{100.0 * (high - low):.1f} percentage points"
    echo(f"  {sentence(posterior)} The interval is {width} wide.")
    return sheet


def _ask(lines: list[str], keys: str, echo: Echo) -> str:
    """The one of the `keys` that was given as the answer; q at the end of the input."""
    for line in lines:
        echo(line)
    while True:
        line = sys.stdin.readline()
        key = line.strip().lower() if line else "q"
        if len(key) == 1 and key in keys:
            return key
        echo(f"  Please answer {', '.join(keys[:-1])} or {keys[-1]}.")
