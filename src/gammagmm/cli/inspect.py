"""``gammagmm inspect``: rows for a person to label, in a sheet or one by one in the terminal."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from gammagmm._support.checks import as_generator
from gammagmm._support.files import write_document
from gammagmm._support.text import one_line, percent
from gammagmm.cli.estimate import Echo, fit_rows, print_answer, warnings_as_lines
from gammagmm.cli.options import Inspecting, Request
from gammagmm.cli.output import answer_text
from gammagmm.cli.request import check_inspect, read_rows
from gammagmm.cli.sheet import Sheet, fill_sheet, read_sheet
from gammagmm.posterior.sentences import sentence
from gammagmm.report.origin import Origin

if TYPE_CHECKING:
    from gammagmm.estimator.fit_result import Fit
    from gammagmm.inspection.suggestions import Strategy

__all__ = ["Inspection", "ask_rows", "run_inspect", "write_sheet"]

KEYS = {"y": 1, "n": 0}


def run_inspect(inspecting: Inspecting, request: Request, echo: Echo) -> int:
    """Exit code of ``gammagmm inspect``: write the rows to a sheet, or ask for their labels."""
    check_inspect(inspecting, request)
    force, path = request.running.force, inspecting.sheet
    X, origin = read_rows(request.reading)
    is_continued = inspecting.ask and not force and path.exists()
    # Before the fit, so that a bad sheet is refused at once.
    sheet = read_sheet(path, X, origin) if is_continued else None
    with warnings_as_lines(echo):
        fit = fit_rows(X, origin, request, echo)
    inspection = Inspection(
        fit=fit,
        X=X,
        origin=origin,
        path=path,
        n=inspecting.n,
        strategy=cast("Strategy", inspecting.strategy),  # checked above
        overwrite=force,
        rng=as_generator(request.method.seed),
    )
    if not inspecting.ask:
        print_answer(write_sheet(inspection))
        return 0
    ask_rows(inspection, sheet, echo)
    print_answer(answer_text(inspection.fit, origin))
    return 0


@dataclass
class Inspection:
    """A fit, which each label updates, and the sheet of rows to label."""

    fit: Fit
    X: NDArray[np.float64]
    origin: Origin
    path: Path
    n: int
    strategy: Strategy
    overwrite: bool  # whether a new sheet replaces an existing file
    rng: np.random.Generator

    def save(self, sheet: Sheet, overwrite: bool = True) -> None:
        """Write the sheet to its file, completely or not at all."""
        write_document(fill_sheet(sheet, self.X, self.origin), self.path, overwrite)

    def new_sheet(self) -> Sheet:
        """A sheet of `n` suggested rows without answers, saved."""
        rows = self.suggest(self.n)
        sheet = Sheet(rows, (None,) * len(rows))
        self.save(sheet, self.overwrite)
        return sheet

    def suggest(self, n: int) -> tuple[int, ...]:
        """`n` rows to label, or as many as are left."""
        n = min(n, self.fit.n_rows - len(self.fit.known_rows))
        return tuple(self.fit.suggest(n, self.strategy, self.rng).tolist()) if n > 0 else ()

    def extend(self, sheet: Sheet, n: int) -> Sheet:
        """The sheet with up to `n` more rows; none of its rows is suggested again."""
        if n < 1:
            return sheet
        seen = set(sheet.rows)
        found = [row for row in self.suggest(n + len(seen)) if row not in seen][:n]
        return Sheet((*sheet.rows, *found), (*sheet.answers, *(None,) * len(found)))

    def answer(self, sheet: Sheet, place: int, label: int) -> Sheet:
        """The sheet with one more answer; "adaptive" chooses the rows after it again."""
        self.fit = self.fit.update([sheet.rows[place]], [label])
        answers = (*sheet.answers[:place], label, *sheet.answers[place + 1 :])
        rest = answers[place + 1 :]
        if self.strategy == "random" or any(answer is not None for answer in rest):
            return Sheet(sheet.rows, answers)
        return self.extend(Sheet(sheet.rows[: place + 1], answers[: place + 1]), len(rest))

    def describe(self, row: int) -> str:
        """Name and rank of a row, and the features in which it stands out."""
        from gammagmm.report.findings import feature_words, outstanding

        scores = self.fit.decision_scores
        rank = int((scores > scores[row]).sum()) + 1
        name = f"row {self.origin.row_number(row)}"
        if self.origin.ids is not None:
            name += f" ({self.origin.ids[row]})"
        [features] = outstanding(self.X, self.origin.columns, [row])
        return f"{name}, rank {rank} of {len(scores)}: {feature_words(features)}"


def write_sheet(inspection: Inspection) -> str:
    """Sentences that say what to do with the sheet, once it is written."""
    n_rows = len(inspection.new_sheet().rows)
    first, last = (
        inspection.fit.expected_width(n, 0.9, inspection.strategy, inspection.rng)
        for n in (1, n_rows)
    )
    return (
        f"{n_rows} rows to label: write 1 (anomaly) or 0 (normal) in the column anomaly of "
        f"{one_line(str(inspection.path))}, for as many rows as you like from the top, and pass "
        "the file to gammagmm estimate --inspected. The 90% interval is expected to be "
        f"{percent(first)} wide after the first label and {percent(last)} after all of them."
    )


def ask_rows(inspection: Inspection, sheet: Sheet | None, echo: Echo) -> Sheet:
    """Ask for the label of one row after another, and save each answer before the next question.

    `sheet` is one with answers, which is continued, or None for a new one.
    """
    if sheet is None:
        sheet = inspection.new_sheet()
    else:
        with warnings_as_lines(echo):
            inspection.fit = inspection.fit.update(*sheet.answered)
        sheet = inspection.extend(sheet, inspection.n - len(sheet.rows))
        echo(f"{len(sheet.answered[0])} of {len(sheet.rows)} rows have an answer already.")
    echo("Is the row an anomaly? y yes, n no, s skip the row, q quit. Every answer is saved.")
    for place in range(len(sheet.rows)):
        if sheet.answers[place] is not None:
            continue
        description = inspection.describe(sheet.rows[place])
        key = _ask(f"{place + 1}/{len(sheet.rows)}  {description}", echo)
        if key == "q":
            break
        if key == "s":
            continue
        with warnings_as_lines(echo):
            sheet = inspection.answer(sheet, place, KEYS[key])
        inspection.save(sheet)
        echo(f"  {sentence(inspection.fit.posterior)}")
    return sheet


def _ask(question: str, echo: Echo) -> str:
    """The key that was pressed; q at the end of the input."""
    while True:
        echo(one_line(question))
        line = sys.stdin.readline()
        key = line.strip().lower()[:1] if line else "q"
        if key in {*KEYS, "s", "q"}:
            return key
        echo("  Please answer y, n, s or q.")
